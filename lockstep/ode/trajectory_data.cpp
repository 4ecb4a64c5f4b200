// What training trajectories must be, and the scaling of a net that follows from them.
#include <cmath>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/ode/detail/moments.h"
#include "lockstep/ode/fit.h"

namespace lockstep::ode {
namespace {

[[noreturn]] void refuse(const std::string& field, const std::string& found, const std::string& expected,
                         const std::string& remedy = {}) {
  throw Error(ErrorKind::invalid_argument, {.field = field, .found = found, .expected = expected, .remedy = remedy});
}

std::string count_of(std::size_t count) { return std::to_string(count) + " numbers"; }

}  // namespace

std::size_t TrajectoryData::points(std::size_t components) const {
  return trajectories == 0 || components == 0 ? 0 : states.size() / components / trajectories;
}

void TrajectoryData::validate(const StateFunction& rhs) const {
  const std::size_t n = rhs.components(), m = rhs.parameters();
  if (trajectories == 0) refuse("data.trajectories", "0", "at least one");
  if (states.empty() || states.size() % (n * trajectories) != 0) {
    refuse("data.states", count_of(states.size()),
           "a multiple of " + std::to_string(trajectories) + " trajectories x " + std::to_string(n) + " components");
  }
  const std::size_t count = points(n);
  if (count < 2) refuse("data.states", "one point a trajectory", "at least two");
  if (times.size() != count && times.size() != count * trajectories) {
    refuse("data.times", count_of(times.size()),
           std::to_string(count) + " shared by all, or " + std::to_string(count * trajectories) +
               " for points of their own");
  }
  for (std::size_t i = 0; i < times.size(); ++i) {
    const std::size_t row = i % count;
    const std::string where = "trajectory " + std::to_string(i / count) + ", row " + std::to_string(row);
    if (!std::isfinite(times[i])) refuse("data.times", "a number that is not finite in " + where, "finite times");
    if (row < 2) {
      if (row == 1 && times[i] == times[i - 1])
        refuse("data.times", "the same time twice in " + where, "times in order");
      continue;
    }
    const bool descends = times[i - row + 1] < times[i - row];
    if (descends ? times[i] < times[i - 1] : times[i] > times[i - 1]) continue;
    refuse("data.times", std::to_string(times[i]) + " after " + std::to_string(times[i - 1]) + " in " + where,
           "times in order", "sort the rows and drop repeats");
  }
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (std::isfinite(states[i])) continue;
    const std::size_t row = i / n;
    refuse("data.states",
           "a number that is not finite in trajectory " + std::to_string(row / count) + ", row " +
               std::to_string(row % count) + ", component " + std::to_string(i % n),
           "finite states");
  }
  if (parameters.size() != m && parameters.size() != m * trajectories) {
    refuse("data.parameters", count_of(parameters.size()),
           std::to_string(m) + " shared by all, or " + std::to_string(m * trajectories));
  }
  for (const double p : parameters) {
    if (!std::isfinite(p)) refuse("data.parameters", "a number that is not finite", "finite numbers");
  }
  if (!numbers.empty() && numbers.size() != trajectories) {
    refuse("data.numbers", count_of(numbers.size()), std::to_string(trajectories) + ", one for each trajectory");
  }
}

void fit_scaling(Mlp& mlp, const TrajectoryData& data) {
  const std::size_t n = mlp.outputs(), points = data.points(n), given = data.parameters.size();
  const auto are_given = [&](std::size_t m) { return given == m || given == m * data.trajectories; };
  const std::size_t more = mlp.inputs() < n ? 0 : mlp.inputs() - n;
  const bool with_time = !are_given(more);
  const std::size_t m = with_time ? more - 1 : more;
  if (mlp.inputs() < n || points < 2 || (with_time && (more == 0 || !are_given(m)))) {
    refuse("data",
           std::to_string(points) + " points a trajectory and " + count_of(given) + " of parameters for a net with " +
               std::to_string(mlp.inputs()) + " inputs and " + std::to_string(n) + " outputs",
           "at least 2 points, and the net's inputs to be state, parameters and perhaps time");
  }
  std::vector<detail::Moments> inputs(mlp.inputs()), outputs(n);
  for (std::size_t row = 0; row < data.trajectories * points; ++row) {
    const std::size_t trajectory = row / points, point = row % points;
    const double* times = data.times.data() + (data.shares_times(n) ? 0 : trajectory * points);
    const double* state = data.states.data() + row * n;
    const double* parameters = data.parameters.data() + (given == m ? 0 : trajectory * m);
    for (std::size_t c = 0; c < n; ++c) {
      inputs[c].add(state[c]);
      if (point > 0) outputs[c].add((state[c] - *(state + c - n)) / (times[point] - times[point - 1]));
    }
    for (std::size_t i = 0; i < m; ++i) inputs[n + i].add(parameters[i]);
    if (with_time) inputs[n + m].add(times[point]);
  }
  mlp.input_scaling = {};
  mlp.output_scaling = {};
  for (const detail::Moments& moments : inputs) {
    mlp.input_scaling.shift.push_back(moments.mean());
    mlp.input_scaling.scale.push_back(moments.deviation());
  }
  for (const detail::Moments& moments : outputs) {
    mlp.output_scaling.scale.push_back(moments.deviation());
    mlp.output_scaling.shift.push_back(moments.mean());
  }
}

}  // namespace lockstep::ode
