// A Solution from a result file, whole or in part: some trajectories, some save points, some components.
#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "lockstep/ode/result_file.h"
#include "lockstep/ode/solution.h"

namespace lockstep::ode {

// Indices first, first + stride, ... that lie below first + count and below the file's end.
struct IndexRange {
  std::size_t first = 0;
  std::size_t count = std::numeric_limits<std::size_t>::max();
  std::size_t stride = 1;
};

// What to read of a file; as it stands, everything.
struct Part {
  IndexRange trajectories;
  IndexRange times;                     // save points
  std::vector<std::string> components;  // by name, in the order wanted; empty: all
};

// States, end states, times and records of the part, in the file's precision. Besides the result it needs about 8 MB,
// so a file of any size is read piece by piece:
//   for (std::size_t first = 0; first < file.trajectories(); first += 10'000)
//     use(read_solution(file, {.trajectories = {first, 10'000}}));
// Throws Error: invalid_argument (part.trajectories, part.times: they begin beyond the file's end or have a stride of
// zero; part.components: no such name), file (it cannot be read).
Solution read_solution(const ResultFile& file, const Part& part = {});
Solution read_solution(const std::filesystem::path& path, const Part& part = {});

}  // namespace lockstep::ode
