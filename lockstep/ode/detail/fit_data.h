// What training trajectories become: problems whose trajectories are their segments, mini-batches, starts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/ode/detail/moments.h"
#include "lockstep/ode/fit.h"

namespace lockstep::ode::detail {

// The phase's, or else those of all.
const std::vector<double>& component_weights(const FitOptions& options, const FitPhase& phase);

// All trajectories or their segments, and their squared error. Rows of save times and targets have room for segments of
// `width` intervals. `thresholds` [component]: huber_thresholds() of the training data, or none.
struct Task {
  Problem problem;
  SquaredError loss;
};
Task make_task(const Rhs& rhs, const TrajectoryData& data, const FitOptions& options, const FitPhase& phase,
               std::size_t width, std::span<const double> thresholds = {});

// Of the error of the number at `at` of the states, from huber_thresholds(); infinite without any.
double measurement_threshold(const TrajectoryData& data, std::span<const double> thresholds, std::size_t at,
                             std::size_t component);

// What the squared error of the number at `at` of the states counts: weight[component] / sigma^2, 0 where nothing was
// measured though the others have a sigma.
double measurement_weight(const TrajectoryData& data, std::span<const double> component_weights, std::size_t at,
                          std::size_t component);

// May miss where all phases have free states.
FirstPoints first_points(const FitOptions& options);

// Throws Error where a number of a first point is missing that is not given; `field` is what it calls the states.
void require_first_points(const TrajectoryData& data, std::size_t components, const char* field, const char* remedy,
                          const std::optional<GivenStarts>& starts = {});

// Throws Error where a segment that starts from the data has some of them missing there, and for a component that no
// trajectory has a number of and whose starts are not given.
void require_starts(const TrajectoryData& data, std::size_t components, const FitOptions& options);

// Throws Error where trajectories or segments that would take common steps differ in their time spans.
void require_one_span(const TrajectoryData& data, std::size_t components, const FitOptions& options);

// Throws Error where solves of the data would not end a step at each of their impulses: with common steps those of a
// trajectory's own, with fixed steps those between their ends.
void require_steps_at_impulses(const Rhs& rhs, const TrajectoryData& data, const FitOptions& options);

// Throws Error where resets are of another size than the right-hand side, or beside steps that do not end at them.
void require_resets(const StateFunction& rhs, const FitOptions& options);

// Mean and spread of each component over what was measured.
std::vector<Moments> moments(const TrajectoryData& data, std::size_t components);

// What free starts are moved in, [component]: `spreads`, but a hundred of the measurements' standard deviations where
// that is less. These are the root of 1 over the mean of 1 / sigma^2, or with weights of components alone
// 1 / sqrt(weight). A loss by squares of errors is curved along a start by (unit / deviation)^2: a start that is
// measured to a ten-millionth of the spread would be, in units of this, 1e14 times as steep as a parameter of little
// effect, and no quasi-Newton method sees that beside it.
std::vector<double> units_of_starts(const TrajectoryData& data, std::span<const double> component_weights,
                                    std::vector<double> spreads);

// The states; where some are missing on the line through those measured before and after, as the first or the last one
// measured before and behind these, and at the component's mean over all data where the trajectory has none.
std::vector<double> without_gaps(const TrajectoryData& data, std::size_t components);

// The states; a measurement that stands out from its neighbours, at an end from the two nearest ones, is the median of
// the three: for free states to begin at, which are trained anyway, away from glitches. It stands out that is farther
// from the median than its threshold and twice what the other two differ by.
std::vector<double> without_glitches(const TrajectoryData& data, std::size_t components,
                                     std::span<const double> thresholds);

// Some trajectories of the data, in the order given, with times of their own.
TrajectoryData chosen(const TrajectoryData& data, std::size_t components, std::size_t parameters,
                      std::span<const std::uint32_t> trajectories);

}  // namespace lockstep::ode::detail
