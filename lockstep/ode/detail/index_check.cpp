#include "lockstep/ode/detail/index_check.h"

#include <array>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "lockstep/core/detail/links.h"
#include "lockstep/core/error.h"
#include "lockstep/core/text.h"
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

// An index copies what its parts count and how long their lists of events are: they change where a part is continued,
// or solved again by another method.
constexpr std::array<std::pair<const char*, const char*>, 3> kCounts{
    {{"accepted_steps", "accepted steps"}, {"rejected_steps", "rejected steps"}, {"rhs_evaluations", "evaluations"}}};

std::size_t events_of(const hdf5::File& file) {
  return file.has(names::kEventTime) ? file.dataset(names::kEventTime).size() : 0;
}

struct Counts {
  std::size_t finished = 0, events = 0;
  std::array<std::int64_t, kCounts.size()> totals{};

  void add_totals(const hdf5::File& file) {
    for (std::size_t i = 0; i < kCounts.size(); ++i) totals[i] += integer_of(file, kCounts[i].first);
  }
};

void refuse_stale(const hdf5::File& index, const Counts& then, const Counts& now) {
  const auto check = [&](const char* what, auto before, auto today) {
    if (before == today) return;
    throw Error(ErrorKind::file, {index.path().string(),
                                  "an index of parts that have changed since: " +
                                      grouped_digits(static_cast<std::uint64_t>(today)) + " " + what + " in them",
                                  grouped_digits(static_cast<std::uint64_t>(before)),
                                  "make the index again with `lockstep merge --index --overwrite`, of the parts"});
  };
  check("finished trajectories", then.finished, now.finished);
  check("events", then.events, now.events);
  for (std::size_t i = 0; i < kCounts.size(); ++i) check(kCounts[i].second, then.totals[i], now.totals[i]);
}

}  // namespace

std::filesystem::path folder_behind(const std::filesystem::path& index) { return behind_links(index).parent_path(); }

std::vector<std::string> check_index(const hdf5::File& index) {
  if (!index.has_attribute(names::kIndexFiles)) return {};
  const std::vector<std::string> files = index.string_list_attribute(names::kIndexFiles);
  const std::vector<double> firsts = index.number_list_attribute(names::kIndexFirst);
  if (files.empty() || firsts.size() != files.size()) {
    throw Error(ErrorKind::file, {index.path().string(), "an index whose lists of files and trajectories differ",
                                  "as many of each", "make it again with `lockstep merge --index`"});
  }
  const hdf5::Shape shape = index.dataset(names::kState).shape();
  const std::filesystem::path folder = folder_behind(index.path());
  Counts now;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::filesystem::path path = folder / files[i];
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
    now.events += events_of(part);
    now.add_totals(part);
  }
  now.finished = index.dataset(names::kStatus).size() - count_cancelled(index);
  Counts then;
  for (const std::int64_t count : index.dataset(names::kCommitted).read<std::int64_t>())
    then.finished = static_cast<std::size_t>(count);
  then.events = events_of(index);
  then.add_totals(index);
  refuse_stale(index, then, now);
  return files;
}

}  // namespace lockstep::ode
