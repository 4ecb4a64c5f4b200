// What training trajectories become: problems whose trajectories are their segments, mini-batches, starts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/ode/fit.h"

namespace lockstep::ode::detail {

// All trajectories or their segments, and their squared error. Rows of save times and targets have room for segments of
// `width` intervals.
struct Task {
  Problem problem;
  SquaredError loss;
};
Task make_task(const Rhs& rhs, const TrajectoryData& data, const FitOptions& options, const FitPhase& phase,
               std::size_t width);

// What the squared error of the number at `at` of the states counts: weight[component] / sigma^2, 0 where nothing was
// measured though the others have a sigma.
double measurement_weight(const TrajectoryData& data, std::span<const double> component_weights, std::size_t at,
                          std::size_t component);

// Throws Error where a segment that starts from the data has some of them missing there.
void require_starts(const TrajectoryData& data, std::size_t components, const FitOptions& options);

// Throws Error where trajectories or segments that would take common steps differ in their time spans.
void require_one_span(const TrajectoryData& data, std::size_t components, const FitOptions& options);

// The states; where some are missing on the line through those measured before and after, or as the last one measured.
std::vector<double> without_gaps(const TrajectoryData& data, std::size_t components);

// Some trajectories of the data, in the order given, with times of their own.
TrajectoryData chosen(const TrajectoryData& data, std::size_t components, std::size_t parameters,
                      std::span<const std::uint32_t> trajectories);

}  // namespace lockstep::ode::detail
