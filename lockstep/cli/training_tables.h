// Tables of a training's data as files have them, checked as they are read, on their way to load_regression() and
// load_trajectories().
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lockstep/cli/training_data.h"

namespace lockstep::cli {

// Throws Error where there is no file.
bool is_hdf5(const DataSection& data);
RegressionTable read_regression(const DataSection& data);
TrajectoryTable read_trajectories(const DataSection& data, const FirstNumbers& first);

// The remedy for a trajectory of one point.
inline constexpr const char* kLeavePointOut =
    "leave it out: what starts at its only point is not compared with anything";

// First points as they must be, and times that ascend. `lines`: of a file that has them, [row]; else places are named
// by trajectory and point after what times and states are called.
void require_order(const TrajectoryTable& table, const FirstNumbers& first, const std::string& times,
                   const std::string& states, const std::vector<std::size_t>& lines);
// What starts at a number has none to be compared with there.
void leave_out_known_starts(TrajectoryTable& table, const FirstNumbers& first);

}  // namespace lockstep::cli
