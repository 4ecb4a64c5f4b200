#include "lockstep/ode/detail/stops.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/resolved_text.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"
#include "lockstep/ode/detail/fixed_steps.h"
#include "lockstep/ode/detail/knot_bounds.h"
#include "lockstep/ode/detail/near_knots.h"
#include "lockstep/ode/detail/problem_knots.h"

namespace lockstep::ode::detail {
namespace {

// Jumps that repeat have room between their sides: else which of them are joined depended on where the span begins.
void require_apart(const TimeKnot& knot, Precision precision, const Problem& problem) {
  const double least = 4 * StopSides::of_roundings(knot, precision);
  if (knot.apart == 0 || knot.apart >= least) return;
  // Knots beside the span are known, too.
  const auto [first, last] = problem.time_range();
  const double time = std::clamp(knot.time, first, last);
  throw Error(ErrorKind::invalid_argument, {"options.stop_at_knots",
                                            "a function that jumps every " + rounded_text(knot.apart, 3) +
                                                " of time at t = " + resolved_text(time, last - first),
                                            "jumps " + rounded_text(least, 3) + " apart or more, to be told apart in " +
                                                std::string(to_string(precision)),
                                            std::string(precision == Precision::f32 ? "take precision f64, " : "") +
                                                "begin times nearer to 0, or give stop_at_knots = false"});
}

// How far from its time a fixed step may end: as far as fixed_steps() lets a span end, or three roundings, of dt, of
// k dt and of the sum with the start.
double slack(const Problem& problem, double dt) {
  const auto [first, last] = problem.time_range();
  return std::max(kStepSlack * dt, 3 * 0x1p-52 * std::max(std::fabs(first), std::fabs(last)));
}

StopSides sides_of(const Problem& problem, const Options& options) {
  if (options.control != StepControl::fixed) return {};
  return {slack(problem, options.dt), options.dt / 4};
}

// The knots of all these parameters that some of a span depend on; of which some may repeat.
std::vector<TimeKnot> knots_of(const ProblemKnots& functions, std::span<const std::span<const double>> parameters,
                               bool some_repeat, const TimeSpan& span) {
  std::vector<TimeKnot> knots;
  for (const std::span<const double> each : parameters) {
    const std::vector<TimeKnot> more = knots_beside(functions, each, some_repeat, span);
    knots.insert(knots.end(), more.begin(), more.end());
  }
  return knots;
}

// What holds for the knots of all these.
KnotBounds bounds_of(const ProblemKnots& functions, std::span<const std::span<const double>> parameters) {
  KnotBounds bounds;
  for (const std::span<const double> each : parameters) bounds = bounds_of_both(bounds, knot_bounds(functions, each));
  return bounds;
}

}  // namespace

Stops::Stops(const Problem& problem, const Options& options)
    : sides_(sides_of(problem, options)), fixed_(options.control == StepControl::fixed) {
  // Where only spans are told there are no parameters.
  const ProblemKnots functions(problem);
  const bool moves = options.stop_at_knots && functions.moves_knots() && !problem.parameters.empty();
  const std::size_t each = problem.rhs->parameters();
  std::vector<std::span<const double>> parameters;  // of those that have knots of their own
  const std::size_t sets = moves && problem.parameters.size() != each ? problem.trajectories() : 1;
  for (std::size_t i = 0; i < sets; ++i) {
    parameters.push_back(moves ? std::span(problem.parameters_of(i), each) : std::span<const double>());
  }
  if (problem.impulses_differ() || (moves && knots_differ(problem, options))) {
    first_.push_back(0);
    for (std::size_t i = 0; i < problem.trajectories(); ++i) {
      const auto [first, last] = std::minmax({problem.start_time(i), problem.end_time(i)});
      const std::span<const std::span<const double>> own(&parameters[sets == 1 ? 0 : i], 1);
      add(problem, options, {{first, last}, own, problem.impulses_of(i), moves});
      if (time_.size() == first_.back()) add_beyond_reach();
      first_.push_back(time_.size());
    }
    end_changes();
    return;
  }
  const auto [first, last] = problem.time_range();
  add(problem, options, {{first, last}, parameters, problem.impulses, moves});
  const bool others_have = moves || (options.stop_at_knots && functions.repeats_knots());
  if (others_have && time_.empty()) add_beyond_reach();
  end_changes();
}

std::size_t Stops::most(std::size_t trajectories) const {
  std::size_t each = 0;
  for (std::size_t i = 1; i < first_.size(); ++i) each = std::max(each, first_[i] - first_[i - 1]);
  return differ() ? std::min(time_.size(), trajectories * each) : time_.size();
}

std::size_t Stops::most_changes(std::size_t trajectories) const {
  if (changes_.empty() || !differ()) return changes_.size();
  std::int64_t each = 0;
  for (std::size_t i = 1; i < first_.size(); ++i)
    each = std::max(each, first_change_[first_[i]] - first_change_[first_[i - 1]]);
  return std::min(changes_.size(), trajectories * static_cast<std::size_t>(each));
}

void Stops::add_time(double time, double side, bool jumps) {
  time_.push_back(time);
  jumps_.push_back(jumps);
  low_.push_back(time - side);
  high_.push_back(time + side);
  first_change_.push_back(static_cast<std::int64_t>(changes_.size()));
}

void Stops::join_last() {
  high_.end()[-2] = std::max(high_.end()[-2], high_.back());
  jumps_.end()[-2] = jumps_.end()[-2] || jumps_.back();
  time_.pop_back();
  jumps_.pop_back();
  low_.pop_back();
  high_.pop_back();
  first_change_.pop_back();
}

void Stops::add_beyond_reach() { add_time(std::numeric_limits<double>::infinity(), 0, false); }

void Stops::end_changes() {
  if (!changes_.empty()) first_change_.push_back(static_cast<std::int64_t>(changes_.size()));
}

void Stops::add(const Problem& problem, const Options& options, const Added& added) {
  if (!options.stop_at_knots) return add_knots(problem, options, {}, added);
  // Spans that lie on a device are not told.
  const bool are_told = !problem.end_times.empty() && added.span.first <= added.span.last;
  const ProblemKnots functions(problem);
  if (functions.has_many_knots() && are_told) return add_near(problem, options, added);
  if (functions.repeats_knots() && !functions.has_many_knots()) {
    return add_knots(problem, options, repeated_knots(problem, options, added, bounds_of(functions, added.parameters)),
                     added);
  }
  const TimeSpan span = functions.has_many_knots() ? kEver : added.span;
  add_knots(problem, options, knots_of(functions, added.parameters, false, span), added);
}

std::vector<TimeKnot> Stops::repeated_knots(const Problem& problem, const Options& options, const Added& added,
                                            const KnotBounds& bounds) const {
  const auto ask = [&](const TimeSpan& span) {
    return knots_of(ProblemKnots(problem), added.parameters, bounds.repeats, span);
  };
  const TimeSpan wide = span_of_repeated(added.span, bounds.magnitude, sides_, options.precision);
  // Far from time 0 float32 tells so little apart that those beside a short span may be too many to list: the reason is
  // that they are too close, and so are those within it.
  if (wide.last - wide.first > 8 * (added.span.last - added.span.first)) {
    for (const TimeKnot& knot : ask(added.span)) require_apart(knot, options.precision, problem);
  }
  return ask(wide);
}

void Stops::add_near(const Problem& problem, const Options& options, const Added& added) {
  const ProblemKnots functions(problem);
  const KnotBounds bounds = bounds_of(functions, added.parameters);
  const std::size_t first = time_.size();
  const TimeSpan rounded = rounded_span(added.span, bounds.magnitude, sides_, options.precision);
  const auto ask = [&](const TimeSpan& span) { return knots_of(functions, added.parameters, bounds.repeats, span); };
  if (bounds.repeats) {
    add_knots(problem, options, repeated_knots(problem, options, added, bounds), added);
  } else {
    std::vector<OtherStop> others;
    for (const double stop : options.stops) others.push_back({stop, sides_.of({stop, true, 0}, options.precision)});
    for (const Impulse& impulse : added.impulses) {
      others.push_back({impulse.time, sides_.of({impulse.time, true, 0}, Precision::f64)});
    }
    add_knots(problem, options, near_knots(rounded, bounds, std::move(others), sides_, options.precision, ask), added);
  }
  drop_beyond(rounded, first);
  const bool some = fixed_ && !added.moves ? bounds.some_jump : bounds.some;
  const bool others_have = some || !options.stops.empty();
  if (others_have && time_.size() == first) add_beyond_reach();
}

void Stops::drop_beyond(const TimeSpan& span, std::size_t first) {
  const auto changes_at = [&](std::size_t stop) {
    const auto end = stop + 1 < time_.size() ? first_change_[stop + 1] : static_cast<std::int64_t>(changes_.size());
    return end != first_change_[stop];
  };
  std::size_t begin = first, end = time_.size();
  while (begin < end && high_[begin] < span.first && !changes_at(begin)) ++begin;
  while (end > begin && low_[end - 1] > span.last && !changes_at(end - 1)) --end;
  const auto keep = [&](auto& numbers) {
    numbers.erase(numbers.begin() + static_cast<std::ptrdiff_t>(end), numbers.end());
    numbers.erase(numbers.begin() + static_cast<std::ptrdiff_t>(first),
                  numbers.begin() + static_cast<std::ptrdiff_t>(begin));
  };
  keep(time_);
  keep(low_);
  keep(high_);
  keep(jumps_);
  keep(first_change_);
}

void Stops::add_knots(const Problem& problem, const Options& options, const std::vector<TimeKnot>& knots,
                      const Added& added) {
  struct Stop {
    TimeKnot knot;
    const Impulse* impulse = nullptr;
  };
  std::vector<Stop> stops;
  stops.reserve(knots.size() + options.stops.size() + added.impulses.size());
  for (const TimeKnot& knot : knots) {
    // Where the function only bends, and no derivative jumps, a fixed step has nothing to choose.
    if (!fixed_ || knot.jumps || added.moves) stops.push_back({knot});
  }
  // What a given stop is for is not known: that the function jumps is the worst.
  for (const double stop : options.stops) stops.push_back({{stop, true, 0}});
  for (const Impulse& impulse : added.impulses) stops.push_back({{impulse.time, true, 0}, &impulse});
  std::ranges::stable_sort(stops, {}, [](const Stop& stop) { return stop.knot.time; });
  const std::size_t first = time_.size();
  double widest = 0;  // of the sides of those that are one with the last
  for (const auto& [knot, impulse] : stops) {
    require_apart(knot, options.precision, problem);
    // An impulse is where its time says, in float64: the function that the state's precision blurs need not jump there.
    const Precision blur = impulse != nullptr ? Precision::f64 : options.precision;
    const double sides = sides_.of(knot, blur);
    // Where a parameter moves a bend the derivative by it jumps there: one evaluation for both sides would give the
    // step before it the slope of the step behind.
    const bool two_sides = knot.jumps || added.moves;
    const double side = two_sides ? sides : 0;
    // Times that the precision does not tell apart, by what leads to the one or to the other, are one, with the widest
    // sides: those within them of the first. Many that lie close are as many as have room beside each other.
    while (time_.size() > first + 1 && knot.time - time_.end()[-2] <= sides) join_last();
    if (time_.size() > first && knot.time - time_.back() <= std::max(sides, widest)) {
      widest = std::max(widest, side);
      if (two_sides) high_.back() = std::max(high_.back(), knot.time + side);
      if (two_sides) low_.back() = std::min(low_.back(), knot.time - side);
      jumps_.back() = jumps_.back() || knot.jumps;
    } else {
      widest = side;
      add_time(knot.time, side, knot.jumps);
    }
    if (impulse != nullptr)
      changes_.push_back({impulse->factor, impulse->change, static_cast<std::int32_t>(impulse->component)});
  }
}

}  // namespace lockstep::ode::detail

namespace lockstep::ode {

bool knots_differ(const Problem& problem, const Options& options) {
  const StandardArithmetic arithmetic;
  return options.stop_at_knots && problem.rhs && detail::ProblemKnots(problem).moves_knots() &&
         options.control != StepControl::common && problem.parameters.size() != problem.rhs->parameters();
}

std::vector<double> stop_times(const Problem& problem, const Options& options) {
  const StandardArithmetic arithmetic;
  if (options.control == StepControl::fixed || problem.trajectories() == 0) return {};
  const auto [first, last] = problem.time_range();
  const detail::Stops stops(problem, options);
  const detail::StopTimes times = stops.times(0);
  std::vector<double> within;
  for (std::int32_t i = 0; i < times.count; ++i) {
    if (times.time[i] > first && times.time[i] < last) within.push_back(times.time[i]);
  }
  return within;
}

std::optional<PassedJump> passed_jump(const Problem& problem, const Options& options, std::size_t most) {
  const StandardArithmetic arithmetic;
  // Spans alone will do: of trajectories whose states are not known yet.
  if (options.control != StepControl::fixed || !problem.rhs || problem.end_times.empty()) return std::nullopt;
  const detail::Stops stops(problem, options);
  const std::size_t spans =
      stops.differ() ? problem.trajectories() : std::max(problem.start_times.size(), problem.end_times.size());
  for (std::size_t i = 0; i < std::min(most, spans); ++i) {
    const detail::StopTimes times = stops.times(i);
    const double start = problem.start_time(i), end = problem.end_time(i);
    if (start == end) continue;
    const auto steps = detail::fixed_steps(start, end, options.dt);
    for (std::int32_t k = 0; k < times.count; ++k) {
      if (!stops.jumps(i, k)) continue;
      const double time = times.time[k];
      const double ratio = (time - start) / steps.dt;
      if (!(ratio > 0) || (end - time) * steps.dt <= 0) continue;
      const double nearest = std::fma(std::round(ratio), steps.dt, start);
      // Not merely between its sides: another one's may hold that time, too, and takes it.
      const auto at_jump = [&](double t) { return detail::stop_at(times, t, end < start) == k; };
      if (!at_jump(nearest) && !at_jump(start) && !at_jump(end)) return PassedJump{time, i};
    }
  }
  return std::nullopt;
}

}  // namespace lockstep::ode
