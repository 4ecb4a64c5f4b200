// An ensemble of initial value problems that share a right-hand side.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lockstep/ode/event_direction.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::ode {

// Stops a trajectory where function(t, u, p) crosses zero in the given direction. The crossing is located on the
// method's interpolant after each accepted step; docs/numerics.md says which passages within one step are found. Where
// it is NaN, or throws, it tells no side, and nothing is found on the way to or from there.
struct TerminalEvent {
  using Direction = EventDirection;
  Rhs function;  // outputs() == 1, over the same components and parameters
  Direction direction = Direction::either;
};

// What happens to a state all at once, such as a dose, a harvest or a burn of an engine: u[component] becomes
// factor * u[component] + change, rounded once (numerics.md). Save points at that time hold the state before it.
struct Impulse {
  double time;
  std::size_t component;
  double change = 0;
  double factor = 1;
  bool operator==(const Impulse&) const = default;
  // What u[component] becomes, in float64.
  double behind(double u) const { return std::fma(factor, u, change); }
};

// Where function(t, u, p) crosses zero in the given direction the state becomes state(t, u, p), and the trajectory goes
// on: a ball that bounces, a neuron that fires, a thermostat. Located on the interpolant (docs/numerics.md). Save
// points at that time hold the state before, and the derivative is evaluated anew behind it. A state that a reset or an
// impulse carries over the threshold of another reset is changed by that one as well, each at most once at one time, in
// their order in Problem::resets; over that of Problem::event, the trajectory ends. Where a reset leaves its own
// function no farther from zero than roundings, and where a span starts with the function at 0, the trajectory stands
// on the threshold and not beyond: it next crosses from the side to which it leaves. A trajectory whose resets follow
// themselves without time between, or that comes to rest on a threshold, ends with Status::step_too_small.
struct Reset {
  Rhs function;  // outputs() == 1, over the same components and parameters
  Rhs state;     // outputs() == components()
  TerminalEvent::Direction direction = TerminalEvent::Direction::either;
};

inline constexpr std::size_t kMostResets = 64;  // of a problem: the bits of a mask

// All numbers are float64 here and are rounded to the solve's precision when a trajectory starts.
struct Problem {
  Rhs rhs;
  std::vector<double> initial_states;  // [trajectory][component]
  std::vector<double> parameters;      // [trajectory][parameter], or [parameter] shared by all
  std::vector<double> start_times{0};  // [trajectory], or one shared by all
  std::vector<double> end_times;       // likewise; before the start time means backwards
  std::vector<double> save_times;      // [time] shared by all, or [trajectory][time] with save_times_per_trajectory
  bool save_times_per_trajectory = false;
  std::optional<TerminalEvent> event;
  // In any order of time; those of the same time follow one another as they stand here. A trajectory that begins at one
  // starts behind it, one that ends there ends before it; others than those within its span do nothing. Spans then run
  // forward in time. The derivative is evaluated anew behind each, as behind Options::stops.
  std::vector<Impulse> impulses;           // of all, or one trajectory's after the other's with
  std::vector<std::size_t> first_impulse;  // [trajectory + 1]: i's are those from first_impulse[i] to the next one's
  // At most kMostResets; with each trajectory's own adaptive steps alone. Of several within a step the first one
  // counts. On a GPU those whose functions come as text (cuda_source.h, graph_function) or are thresholds:
  // docs/cuda.md.
  std::vector<Reset> resets;
  // Whether the solution keeps which resets changed each trajectory's state, and when (Solution::events), on the CPU
  // alone. The end by `event` is no reset: its time is the record's end_time.
  bool keep_events = false;

  std::size_t trajectories() const;
  std::size_t save_points() const;  // a trajectory
  double start_time(std::size_t trajectory) const;
  double end_time(std::size_t trajectory) const;
  std::pair<double, double> time_range() const;  // the least and the greatest start or end time of all
  const double* parameters_of(std::size_t trajectory) const;
  const double* save_times_of(std::size_t trajectory) const;  // [time], in the direction of integration
  bool impulses_differ() const { return !first_impulse.empty(); }
  std::span<const Impulse> impulses_of(std::size_t trajectory) const;

  // The ensemble of trajectories [first, first + count) alone. Those solve to the same bits as within the whole, but
  // where all share one step size (StepControl::common).
  Problem part(std::size_t first, std::size_t count) const;
  // The same of trajectories rows[0], rows[1], ...; throws Error of one that there is not, as part() does.
  Problem selection(const std::vector<std::size_t>& rows) const;

  // Throws Error (invalid_argument) naming field, found and expected: sizes that do not fit, numbers that are not
  // finite, save times outside the span or not in order, impulses on spans that run backwards, functions of other
  // sizes, events to keep where there are no resets.
  void validate() const;
};

}  // namespace lockstep::ode
