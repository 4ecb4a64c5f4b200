// What a run that was killed or stopped left behind, and whether a run of today would continue it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

#include "lockstep/core/precision.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/result_writer.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode {

struct UnfinishedResult {
  std::filesystem::path file;  // NAME.part, or the target itself
  std::size_t trajectories = 0;
  std::size_t stored = 0;  // of them, with any status but cancelled
  Summary totals;          // counts of the stored ones
  bool has_name = false;   // it is the target itself

  bool complete() const { return stored == trajectories; }
};

// NAME.part beside the target, else the target itself when it is a result file, complete or not; nothing where neither
// is there or no run came so far as to begin one. Throws Error (file) when NAME.part is damaged.
std::optional<UnfinishedResult> find_unfinished(const std::filesystem::path& target);
// The target itself, whatever lies beside it; nothing where it is no result file.
std::optional<UnfinishedResult> find_named(const std::filesystem::path& target);

// Throws Error (file) listing what differs, as the file has it and as it would be now: number type, sizes, times,
// initial states, parameters, and the attributes of metadata.must_match.
void check_continues(const UnfinishedResult& left, const Problem& problem, Precision precision,
                     const ResultMetadata& metadata);

}  // namespace lockstep::ode
