#include "lockstep/nn/detail/read_bytes.h"

#include <fstream>
#include <system_error>

#include "lockstep/core/error.h"

namespace lockstep::nn::detail {

std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
  const auto fail = [&](const char* found, const char* remedy) {
    throw Error(ErrorKind::file, {path.string(), found, "a model file", remedy});
  };
  std::error_code reason;
  const auto status = std::filesystem::status(path, reason);
  if (!std::filesystem::exists(status)) fail("no such file", "check the path");
  if (std::filesystem::is_directory(status)) fail("a folder", "name the file inside it");
  if (!std::filesystem::is_regular_file(status)) fail("a device or pipe", "copy it into a file");
  const std::uintmax_t size = std::filesystem::file_size(path, reason);
  std::ifstream stream(path, std::ios::binary);
  if (reason || !stream) fail("no permission to read it", "check its permissions");
  std::vector<std::byte> bytes(size);
  stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (stream.gcount() != static_cast<std::streamsize>(size)) fail("a reading error", "check the disk");
  return bytes;
}

}  // namespace lockstep::nn::detail
