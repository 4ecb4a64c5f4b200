// Huber's loss of measurements: from where on an error counts by its size alone, so that a glitch of a sensor does not
// draw a fit to it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lockstep/ode/fit.h"

namespace lockstep::ode {

// In standard deviations of the errors: of normal ones without outliers parameters then have 95 % of the efficiency of
// least squares (Huber, Robust Statistics, 1981, section 4.5).
inline constexpr double kHuberThreshold = 1.345;

// How large the errors of each component are, where nobody has said it: [component], in the data's unit; infinite where
// nothing was measured. Of each three successive measurements of a trajectory the middle one is compared with the line
// through the others, in units in which independent errors of deviation 1 give 1 (Gasser, Sroka & Jennen-Steinmetz,
// Biometrika 73 (1986) 625, who take the mean of squares); the median of the sizes, over that of the normal
// distribution, stands up to outliers, each of which is in three of them, until they are a sixth of the data. The same
// is done with the cubic through the four neighbours, of which a curve that bends between points leaves less and
// outliers, in five each, more: both err above alone, and the smaller one is taken where eight or more say it. It is a
// thousandth of the component's own spread (from medians too) at least, and that spread where no trajectory has three
// measurements.
std::vector<double> measurement_errors(const TrajectoryData& data, std::size_t components);

// What a threshold in standard deviations is in the data's unit: [component], of measurements whose sigma is 1 where
// data have a sigma, which it is to be multiplied by. The deviation is 1 / sqrt(component_weights) where the data have
// a sigma or weights are given, else measurement_errors().
std::vector<double> huber_thresholds(const TrajectoryData& data, std::size_t components,
                                     std::span<const double> component_weights, double threshold);

}  // namespace lockstep::ode
