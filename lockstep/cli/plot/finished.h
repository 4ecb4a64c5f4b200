// Trajectories that a file has the numbers of: while a solve is under way, or was stopped, others are without.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lockstep/ode/result_file.h"

namespace lockstep::cli {

// Ascending indices of those that are not cancelled: the numbers of cancelled ones mean nothing, whatever is stored.
std::vector<std::size_t> finished_trajectories(const ode::ResultFile& file);
// Of those that are finished in both. Of the same number of trajectories.
std::vector<std::size_t> finished_trajectories(const ode::ResultFile& file, const ode::ResultFile& other);

// "60 of 100 trajectories left out: not finished in a.h5.part"; "" where all are finished.
std::string left_out_text(const ode::ResultFile& file);

}  // namespace lockstep::cli
