#include "lockstep/cli/existing_output.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <system_error>

#include "lockstep/core/error.h"

namespace lockstep::cli {
namespace {

std::string ending_of(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return ending;
}

// Of another format.
void refuse_other_ending(const std::filesystem::path& path, const std::string& where, const std::string& expected) {
  constexpr std::array<std::string_view, 14> kOthers{".csv",  ".tsv",  ".txt",         ".json", ".toml",
                                                     ".npy",  ".npz",  ".pkl",         ".mat",  ".parquet",
                                                     ".xlsx", ".onnx", ".safetensors", ".zarr"};
  if (std::ranges::find(kOthers, ending_of(path)) == kOthers.end()) return;
  std::filesystem::path other = path;
  throw Error(ErrorKind::invalid_argument,
              {where, '"' + path.string() + '"', expected, "name it " + other.replace_extension(".h5").string()});
}

}  // namespace

void refuse_existing(const std::filesystem::path& path, const char* remedy) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw Error(ErrorKind::file, {path.string(), "a folder", "a file name", "name a file inside it"});
  throw Error(ErrorKind::file, {path.string(), "a file of that name", "none", remedy});
}

void refuse_to_replace(const std::filesystem::path& output, const std::vector<std::filesystem::path>& inputs) {
  for (const std::filesystem::path& input : inputs) {
    std::error_code ignored;  // of a file that is not there
    if (!std::filesystem::equivalent(output, input, ignored)) continue;
    throw Error(ErrorKind::invalid_argument, {output.string(), "a file that is read as well",
                                              "a file of its own for the output", "choose another name"});
  }
}

bool is_csv_name(const std::filesystem::path& path) { return ending_of(path) == ".csv"; }

void require_result_name(const std::filesystem::path& path, const std::string& where) {
  refuse_other_ending(path, where, "a name that ends in .h5: results are HDF5");
}

void require_answers_name(const std::filesystem::path& path, const std::string& where) {
  if (!is_csv_name(path)) refuse_other_ending(path, where, "a name that ends in .h5, for HDF5, or in .csv");
}

Existing existing_output(const std::filesystem::path& path, bool overwrite) {
  if (overwrite) return Existing::replace;
  std::error_code ignored;
  // A folder of that name is told by the writer.
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_directory(path, ignored)) refuse_existing(path);
  return Existing::refuse;
}

}  // namespace lockstep::cli
