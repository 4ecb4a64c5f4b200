#include "lockstep/cli/shard.h"

#include <array>
#include <charconv>
#include <cstdio>

#include "lockstep/cli/provenance.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"

namespace lockstep::cli {

std::string Shard::text() const { return std::to_string(index) + "/" + std::to_string(count); }

Shard parse_shard(const std::string& text) {
  Shard shard;
  const char* const end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, shard.index);
  const bool slash = index.ec == std::errc() && index.ptr != end && *index.ptr == '/';
  const auto count = slash ? std::from_chars(index.ptr + 1, end, shard.count) : index;
  const bool numbers = slash && count.ec == std::errc() && count.ptr == end;
  if (!numbers || shard.count == 0 || shard.index == 0 || shard.index > shard.count) {
    throw Error(ErrorKind::invalid_argument, {"--shard", "\"" + text + "\"", "I/N with I from 1 to N, as in 3/16", {}});
  }
  return shard;
}

std::filesystem::path shard_path(const std::filesystem::path& whole, const Shard& shard) {
  const std::string count = std::to_string(shard.count);
  std::string index = std::to_string(shard.index);
  index.insert(0, count.size() - index.size(), '0');  // so that names sort as numbers do
  std::filesystem::path name = whole.stem();
  name += ".shard-" + index + "-of-" + count;
  name += whole.extension();
  return whole.parent_path() / name;
}

void keep_shard(ProblemSetup& setup, const Shard& shard) {
  const std::size_t total = setup.problem.trajectories();
  const std::string found = shard.text();
  if (setup.options.control == ode::StepControl::common) {
    throw Error(ErrorKind::invalid_argument,
                {"--shard", found + " of an ensemble with one common step", "control = \"per_trajectory\" or \"fixed\"",
                 "the largest error of all trajectories decides a common step: solve such an ensemble in one run"});
  }
  if (shard.count > total) {
    throw Error(ErrorKind::invalid_argument, {"--shard",
                                              found + " of " + count_text(total) + " trajectories",
                                              "at most " + count_text(total) + " shards, one for each trajectory",
                                              {}});
  }
  // total * index / count without overflow.
  const auto start = [&](std::size_t index) {
    return total / shard.count * index + total % shard.count * index / shard.count;
  };
  ode::ResultMetadata::PartOf place;
  place.first_trajectory = start(shard.index - 1);
  place.trajectories = total;
  const std::size_t parameters = setup.problem.rhs->parameters();
  place.parameters_per_trajectory = parameters > 0 && setup.problem.parameters.size() != parameters;
  setup.whole_digest = problem_digest(setup.problem);
  place.end_times_per_trajectory = setup.problem.end_times.size() > 1;
  place.impulses = ode::impulse_form(setup.problem);
  setup.problem = setup.problem.part(place.first_trajectory, start(shard.index) - place.first_trajectory);
  setup.part_of = place;
  setup.shard = found;
}

}  // namespace lockstep::cli
