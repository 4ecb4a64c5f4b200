// What a fit takes of trajectories as they were read, and what of them is said.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/cli/training_data.h"
#include "lockstep/cli/training_file.h"
#include "lockstep/ode/fit.h"
#include "lockstep/ode/problem.h"

namespace lockstep::cli {

// As ode::fit takes them. `parameters` are the right-hand side's.
ode::TrajectoryData library_data(const TrajectoryTable& table, const std::vector<double>& parameters,
                                 const std::vector<std::string>& names = {});

// The right-hand side and the times that the data's trajectories reach from and to.
ode::Problem spans_of(const TrajectoryTable& table, ode::Rhs rhs);

// How many there are, of how many points, for people. First points whose numbers `starts` gives are none that miss.
std::string text_of(const TrajectoryData& data, const StartsSection& starts);

// Whether segments would have nowhere to begin: whether of some component nothing was measured, or where it moves less
// behind the first points than one number for each of the longest segments that are usual, of 20 intervals. In between
// a segment would begin on a line to the next measurement, or at the last one, which says nothing of what swings.
// `still` [component], or none: which stand still, and are at any time what they were once.
bool hides_component(const TrajectoryTable& table, const std::vector<bool>& still = {});

// 1 / sigma^2 of each component; nothing where the file has no sigma, or one of each measurement.
std::vector<double> component_weights(const DataSection& section, const TrajectoryData& data);

// Of trained or given starts [trajectory][component] against measured first points, which are measurements like others
// then, as in the phases' losses; of the trajectories that the last loss had, whose `records` these are. `weights` of
// each component, or none; `thresholds` likewise, ode::huber_thresholds().
double loss_of_starts(const TrajectoryTable& table, const std::vector<double>& starts,
                      const std::vector<double>& weights, std::span<const ode::TrajectoryRecord> records,
                      std::span<const double> thresholds = {});

}  // namespace lockstep::cli
