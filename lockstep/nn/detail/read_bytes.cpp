#include "lockstep/nn/detail/read_bytes.h"

#include <fstream>
#include <span>
#include <system_error>

#include "lockstep/core/error.h"

namespace lockstep::nn::detail {

namespace {

// A file to read, and what it should be.
struct Wanted {
  const std::filesystem::path& path;
  const char* expected = "a model file";
};

[[noreturn]] void fail(const Wanted& wanted, const char* found, const char* remedy) {
  throw Error(ErrorKind::file, {wanted.path.string(), found, wanted.expected, remedy});
}

struct OpenFile {
  std::ifstream stream;
  std::uintmax_t size = 0;
};

OpenFile open_file(const Wanted& wanted) {
  const std::filesystem::path& path = wanted.path;
  std::error_code reason;
  const auto status = std::filesystem::status(path, reason);
  if (!std::filesystem::exists(status)) fail(wanted, "no such file", "check the path");
  if (std::filesystem::is_directory(status)) fail(wanted, "a folder", "name the file inside it");
  if (!std::filesystem::is_regular_file(status)) fail(wanted, "a device or pipe", "copy it into a file");
  OpenFile file{std::ifstream(path, std::ios::binary), std::filesystem::file_size(path, reason)};
  if (reason || !file.stream) fail(wanted, "no permission to read it", "check its permissions");
  return file;
}

void read_into(std::span<std::byte> bytes, OpenFile& file, const Wanted& wanted) {
  const auto count = static_cast<std::streamsize>(bytes.size());
  file.stream.read(reinterpret_cast<char*>(bytes.data()), count);
  if (file.stream.gcount() != count) fail(wanted, "a reading error", "check the disk");
}

}  // namespace

std::vector<std::byte> read_bytes(const std::filesystem::path& path, const char* expected) {
  const Wanted wanted{path, expected};
  OpenFile file = open_file(wanted);
  std::vector<std::byte> bytes(file.size);
  read_into(bytes, file, wanted);
  return bytes;
}

std::vector<std::byte> read_ends(const std::filesystem::path& path, std::size_t each) {
  const Wanted wanted{path};
  OpenFile file = open_file(wanted);
  if (file.size <= 2 * each) return read_bytes(path);
  std::vector<std::byte> bytes(2 * each);
  read_into(std::span(bytes).first(each), file, wanted);
  file.stream.seekg(-static_cast<std::streamoff>(each), std::ios::end);
  read_into(std::span(bytes).last(each), file, wanted);
  return bytes;
}

}  // namespace lockstep::nn::detail
