#include "lockstep/cli/existing_output.h"

#include "lockstep/core/error.h"

namespace lockstep::cli {

void refuse_existing(const std::filesystem::path& path, const char* remedy) {
  throw Error(ErrorKind::file, {path.string(), "a file of that name", "none", remedy});
}

Existing existing_output(const std::filesystem::path& path, bool overwrite) {
  if (overwrite) return Existing::replace;
  std::error_code ignored;
  // A folder of that name is told by the writer.
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_directory(path, ignored)) refuse_existing(path);
  return Existing::refuse;
}

}  // namespace lockstep::cli
