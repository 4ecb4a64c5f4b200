#include "lockstep/nn/detail/read_bytes.h"

#include <fstream>
#include <span>
#include <system_error>

#include "lockstep/core/error.h"

namespace lockstep::nn::detail {

namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* found, const char* remedy) {
  throw Error(ErrorKind::file, {path.string(), found, "a model file", remedy});
}

struct OpenFile {
  std::ifstream stream;
  std::uintmax_t size = 0;
};

OpenFile open_file(const std::filesystem::path& path) {
  std::error_code reason;
  const auto status = std::filesystem::status(path, reason);
  if (!std::filesystem::exists(status)) fail(path, "no such file", "check the path");
  if (std::filesystem::is_directory(status)) fail(path, "a folder", "name the file inside it");
  if (!std::filesystem::is_regular_file(status)) fail(path, "a device or pipe", "copy it into a file");
  OpenFile file{std::ifstream(path, std::ios::binary), std::filesystem::file_size(path, reason)};
  if (reason || !file.stream) fail(path, "no permission to read it", "check its permissions");
  return file;
}

void read_into(std::span<std::byte> bytes, OpenFile& file, const std::filesystem::path& path) {
  const auto count = static_cast<std::streamsize>(bytes.size());
  file.stream.read(reinterpret_cast<char*>(bytes.data()), count);
  if (file.stream.gcount() != count) fail(path, "a reading error", "check the disk");
}

}  // namespace

std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
  OpenFile file = open_file(path);
  std::vector<std::byte> bytes(file.size);
  read_into(bytes, file, path);
  return bytes;
}

std::vector<std::byte> read_ends(const std::filesystem::path& path, std::size_t each) {
  OpenFile file = open_file(path);
  if (file.size <= 2 * each) return read_bytes(path);
  std::vector<std::byte> bytes(2 * each);
  read_into(std::span(bytes).first(each), file, path);
  file.stream.seekg(-static_cast<std::streamoff>(each), std::ios::end);
  read_into(std::span(bytes).last(each), file, path);
  return bytes;
}

}  // namespace lockstep::nn::detail
