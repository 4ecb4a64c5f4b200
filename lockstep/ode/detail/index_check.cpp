#include "lockstep/ode/detail/index_check.h"

#include <filesystem>
#include <optional>

#include "lockstep/core/error.h"
#include "lockstep/ode/result_file.h"

namespace lockstep::ode {
namespace {

namespace names = result_names;

std::string digest_of(const hdf5::File& file) {
  constexpr const char* kDigest = "problem_digest";
  const auto value = file.has_attribute(kDigest) ? file.attribute(kDigest) : std::nullopt;
  const auto* text = value ? std::get_if<std::string>(&*value) : nullptr;
  return text == nullptr ? std::string() : *text;
}

std::int64_t integer_of(const hdf5::File& file, const char* attribute) {
  return file.has_attribute(attribute) ? file.integer_attribute(attribute) : 0;
}

}  // namespace

std::vector<std::string> check_index(const hdf5::File& index) {
  if (!index.has_attribute(names::kIndexFiles)) return {};
  const std::vector<std::string> files = index.string_list_attribute(names::kIndexFiles);
  const std::vector<double> firsts = index.number_list_attribute(names::kIndexFirst);
  if (files.empty() || firsts.size() != files.size()) {
    throw Error(ErrorKind::file, {index.path().string(), "an index whose lists of files and trajectories differ",
                                  "as many of each", "make it again with `lockstep merge --index`"});
  }
  const hdf5::Shape shape = index.dataset(names::kState).shape();
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::filesystem::path path = index.path().parent_path() / files[i];
    const auto first = static_cast<std::int64_t>(firsts[i]);
    const double end =
        i + 1 < files.size() ? firsts[i + 1] : firsts[0] + static_cast<double>(shape.empty() ? 0 : shape[0]);
    const std::string rows =
        "trajectories " + std::to_string(first) + " to " + std::to_string(static_cast<std::int64_t>(end) - 1);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) {
      throw Error(ErrorKind::file, {index.path().string(), "no file " + path.string() + " behind this index",
                                    "the file with " + rows, "put it back, or solve that part again"});
    }
    const hdf5::File part = hdf5::File::open(path);
    const bool is_result = part.has_attribute(names::kFormatAttribute) && part.has(names::kStatus);
    const hdf5::Shape part_shape = is_result ? part.dataset(names::kStatus).shape() : hdf5::Shape{};
    const bool fits = part_shape.size() == 1 &&
                      part_shape[0] == static_cast<std::size_t>(static_cast<std::int64_t>(end) - first) &&
                      integer_of(part, names::kFirstTrajectory) == first && digest_of(part) == digest_of(index);
    if (!fits) {
      throw Error(ErrorKind::file, {path.string(), "another file than " + index.path().string() + " was made of",
                                    rows + " of the same run", "make the index again with `lockstep merge --index`"});
    }
  }
  return files;
}

}  // namespace lockstep::ode
