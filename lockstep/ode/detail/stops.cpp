#include "lockstep/ode/detail/stops.h"

#include <algorithm>
#include <cmath>

namespace lockstep::ode::detail {
namespace {

// How far from a jump its sides are evaluated, in units of the precision at the numbers that lead there: the argument
// of a table takes a few roundings on its way from the time.
constexpr double kUlps = 8;

double width(const TimeKnot& knot, Precision precision) {
  const bool single = precision == Precision::f32;
  const double epsilon = single ? 0x1p-23 : 0x1p-52;
  const double least = single ? 0x1p-120 : 0x1p-1000;
  return std::max(kUlps * epsilon * std::max(std::fabs(knot.time), knot.magnitude), least);
}

}  // namespace

Stops::Stops(const Problem& problem, const Options& options) {
  if (options.control == StepControl::fixed) return;
  std::vector<TimeKnot> knots;
  if (options.stop_at_knots) {
    const auto known = problem.rhs->time_knots();
    knots.assign(known.begin(), known.end());
  }
  // What a given stop is for is not known: that the function jumps is the worst.
  for (const double stop : options.stops) knots.push_back({stop, true, 0});
  std::ranges::stable_sort(knots, {}, &TimeKnot::time);
  for (const TimeKnot& knot : knots) {
    const double side = knot.jumps ? width(knot, options.precision) : 0;
    // Times that the precision does not tell apart are one.
    if (!time_.empty() && knot.time - time_.back() <= width(knot, options.precision)) {
      if (knot.jumps) high_.back() = knot.time + side;
      if (knot.jumps && low_.back() == time_.back()) low_.back() = time_.back() - side;
      continue;
    }
    time_.push_back(knot.time);
    low_.push_back(knot.time - side);
    high_.push_back(knot.time + side);
  }
}

}  // namespace lockstep::ode::detail

namespace lockstep::ode {

std::vector<double> stop_times(const Problem& problem, const Options& options) {
  const auto [first, last] = problem.time_range();
  const detail::Stops stops(problem, options);
  const detail::StopTimes times = stops.times();
  std::vector<double> within;
  for (std::int32_t i = 0; i < times.count; ++i) {
    if (times.time[i] > first && times.time[i] < last) within.push_back(times.time[i]);
  }
  return within;
}

}  // namespace lockstep::ode
