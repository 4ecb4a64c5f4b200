// What training trajectories must be, and the scaling of a net that follows from them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"
#include "lockstep/ode/detail/data_rows.h"
#include "lockstep/ode/detail/fit_data.h"
#include "lockstep/ode/detail/impulses.h"
#include "lockstep/ode/detail/moments.h"
#include "lockstep/ode/detail/refuse.h"
#include "lockstep/ode/fit.h"

namespace lockstep::ode {
namespace {

using detail::count_of;
using detail::refuse;

std::string row_text(const std::string& trajectory, std::size_t row) {
  return "trajectory " + trajectory + ", row " + std::to_string(row);
}

// Of a measurement alone: an empty place of a table has no size either.
void require_sigma(const TrajectoryData& data, const detail::DataRows& rows, std::size_t n) {
  if (data.sigma.empty()) return;
  if (data.sigma.size() != data.states.size()) {
    refuse("data.sigma", count_of(data.sigma.size()), std::to_string(data.states.size()) + ", one for each state");
  }
  for (std::size_t i = 0; i < rows.trajectories(); ++i) {
    for (std::size_t at = rows.first(i) * n; at < rows.first(i + 1) * n; ++at) {
      const double sigma = data.sigma[at];
      if (std::isnan(data.states[at]) || (sigma > 0 && std::isfinite(sigma))) continue;
      refuse("data.sigma",
             (std::isnan(sigma) ? "NaN" : number_text(sigma)) + " in " +
                 row_text(data.name(i), at / n - rows.first(i)) + ", component " + std::to_string(at % n),
             "a finite number greater than 0 for each state that was measured");
    }
  }
}

bool has_impulse(std::span<const Impulse> impulses, std::size_t component, double from, double to) {
  return std::ranges::any_of(impulses, [&](const Impulse& impulse) {
    return impulse.component == component && impulse.time >= from && impulse.time < to;
  });
}

}  // namespace

std::size_t TrajectoryData::points(std::size_t components) const {
  if (!lengths.empty()) return *std::max_element(lengths.begin(), lengths.end());
  return trajectories == 0 || components == 0 ? 0 : states.size() / components / trajectories;
}
std::size_t TrajectoryData::points(std::size_t trajectory, std::size_t components) const {
  return lengths.empty() ? points(components) : lengths[trajectory];
}

std::span<const Impulse> TrajectoryData::impulses_of(std::size_t trajectory) const {
  return detail::impulses_of(trajectory, impulses, first_impulse);
}

void TrajectoryData::validate(const StateFunction& rhs, FirstPoints first) const {
  const StandardArithmetic arithmetic;
  const std::size_t n = rhs.components(), m = rhs.parameters();
  if (trajectories == 0) refuse("data.trajectories", "0", "at least one");
  if (!numbers.empty() && numbers.size() != trajectories) {
    refuse("data.numbers", count_of(numbers.size()), std::to_string(trajectories) + ", one for each trajectory");
  }
  if (!names.empty() && names.size() != trajectories) {
    refuse("data.names", std::to_string(names.size()) + " names",
           std::to_string(trajectories) + ", one for each trajectory");
  }
  std::size_t total = 0;
  if (!lengths.empty()) {
    if (lengths.size() != trajectories) {
      refuse("data.lengths", count_of(lengths.size()), std::to_string(trajectories) + ", one for each trajectory");
    }
    for (std::size_t i = 0; i < trajectories; ++i) {
      if (lengths[i] >= 2) continue;
      refuse("data.lengths", std::to_string(lengths[i]) + " points of trajectory " + name(i), "at least two");
    }
    total = std::accumulate(lengths.begin(), lengths.end(), std::size_t{0});
    if (states.size() != total * n) {
      refuse("data.states", count_of(states.size()),
             std::to_string(total * n) + ": " + std::to_string(total) + " points, as data.lengths adds up to, x " +
                 std::to_string(n) + " components");
    }
  } else {
    if (states.empty() || states.size() % (n * trajectories) != 0) {
      refuse("data.states", count_of(states.size()),
             "a multiple of " + std::to_string(trajectories) + " trajectories x " + std::to_string(n) + " components");
    }
    total = points(n) * trajectories;
  }
  detail::require_impulses("data", impulses, first_impulse, trajectories, n);
  const std::size_t most = points(n);
  if (most < 2) refuse("data.states", "one point a trajectory", "at least two");
  if (times.size() != most && times.size() != total) {
    refuse("data.times", count_of(times.size()),
           std::to_string(most) + " shared by all, or " + std::to_string(total) + " for points of their own");
  }
  const detail::DataRows rows(*this, n);
  for (std::size_t i = 0; i < trajectories; ++i) {
    const double* of = rows.times(*this, i);
    for (std::size_t row = 0; row < rows.points(i); ++row) {
      const std::string where = row_text(name(i), row);
      if (!std::isfinite(of[row])) refuse("data.times", "a number that is not finite in " + where, "finite times");
      if (row == 1 && of[1] == of[0]) refuse("data.times", "the same time twice in " + where, "times in order");
      if (row < 2 || (of[1] < of[0] ? of[row] < of[row - 1] : of[row] > of[row - 1])) continue;
      refuse("data.times", number_text(of[row]) + " after " + number_text(of[row - 1]) + " in " + where,
             "times in order", "sort the rows and drop repeats");
    }
    if (of[1] < of[0] && !impulses_of(i).empty())
      refuse("data.impulses", "some, and times that descend in trajectory " + name(i),
             "times that ascend where states change at once", "turn the trajectory round");
    const double* state = states.data() + rows.first(i) * n;
    for (std::size_t at = 0; at < rows.points(i) * n; ++at) {
      if (std::isfinite(state[at]) || std::isnan(state[at])) continue;
      refuse("data.states",
             "a number that is not finite in " + row_text(name(i), at / n) + ", component " + std::to_string(at % n),
             "finite states, or NaN where none was measured");
    }
  }
  if (first == FirstPoints::complete) {
    detail::require_first_points(*this, n, "data.states",
                                 "give every phase a continuity, as noisy_phases() does, which trains the starts; or "
                                 "leave out the points before the first complete one");
  }
  require_sigma(*this, rows, n);
  if (parameters.size() != m && parameters.size() != m * trajectories) {
    refuse("data.parameters", count_of(parameters.size()),
           std::to_string(m) + " shared by all, or " + std::to_string(m * trajectories));
  }
  for (const double p : parameters) {
    if (!std::isfinite(p)) refuse("data.parameters", "a number that is not finite", "finite numbers");
  }
}

std::vector<double> fit_tolerances(const TrajectoryData& data, std::size_t components, Precision precision) {
  // Below that float32 has few digits, and then none.
  const double least =
      precision == Precision::f32 ? double{std::numeric_limits<float>::min()} : std::numeric_limits<double>::min();
  std::vector<double> sizes(components);
  for (std::size_t at = 0; at < data.states.size(); ++at) {
    double& size = sizes[at % components];
    if (!std::isnan(data.states[at])) size = std::max(size, std::fabs(data.states[at]));
  }
  const double usual = Options().atol;
  bool differs = false;
  for (double& size : sizes) {
    differs = differs || (size > 0 && size < 1);
    size = size > 0 && size < 1 ? std::max(least, usual * size) : usual;  // of what was not measured nothing is known
  }
  return differs ? sizes : std::vector<double>();
}

void fit_scaling(Mlp& mlp, const TrajectoryData& data) {
  const StandardArithmetic arithmetic;
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
  std::vector<detail::Moments> inputs(mlp.inputs()), outputs(n), across(n);  // across impulses: no derivative's
  const detail::DataRows rows(data, n);
  constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> before(n);  // the point of the trajectory where a component was last measured
  for (std::size_t row = 0, trajectory = 0; row < rows.total(); ++row) {
    trajectory += row == rows.first(trajectory + 1);
    const std::size_t point = row - rows.first(trajectory);
    if (point == 0) before.assign(n, kNever);
    const double* times = rows.times(data, trajectory);
    const double* state = data.states.data() + row * n;
    const double* parameters = data.parameters.data() + (given == m ? 0 : trajectory * m);
    for (std::size_t c = 0; c < n; ++c) {
      if (std::isnan(state[c])) continue;
      inputs[c].add(state[c]);
      if (before[c] != kNever) {
        const std::size_t back = point - before[c];
        const bool changed = has_impulse(data.impulses_of(trajectory), c, times[before[c]], times[point]);
        (changed ? across : outputs)[c].add((state[c] - *(state + c - back * n)) / (times[point] - times[before[c]]));
      }
      before[c] = point;
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
  for (std::size_t c = 0; c < n; ++c) {
    const detail::Moments& moments = outputs[c].empty() ? across[c] : outputs[c];
    mlp.output_scaling.scale.push_back(moments.deviation());
    mlp.output_scaling.shift.push_back(moments.mean());
  }
}

}  // namespace lockstep::ode
