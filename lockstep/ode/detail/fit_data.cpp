#include "lockstep/ode/detail/fit_data.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/text.h"
#include "lockstep/ode/detail/data_rows.h"
#include "lockstep/ode/detail/refuse.h"
#include "lockstep/ode/detail/segments.h"
#include "lockstep/ode/detail/steps_of_resets.h"

namespace lockstep::ode::detail {

double measurement_weight(const TrajectoryData& data, std::span<const double> component_weights, std::size_t at,
                          std::size_t component) {
  const double of_component = component_weights.empty() ? 1.0 : component_weights[component];
  if (data.sigma.empty()) return of_component;
  if (std::isnan(data.states[at])) return 0;
  return of_component / (data.sigma[at] * data.sigma[at]);
}

const std::vector<double>& component_weights(const FitOptions& options, const FitPhase& phase) {
  return phase.component_weights.empty() ? options.component_weights : phase.component_weights;
}

double measurement_threshold(const TrajectoryData& data, std::span<const double> thresholds, std::size_t at,
                             std::size_t component) {
  const bool has = !thresholds.empty() && !std::isnan(data.states[at]);
  if (!has) return std::numeric_limits<double>::infinity();
  return data.sigma.empty() ? thresholds[component] : thresholds[component] * data.sigma[at];
}

Task make_task(const Rhs& rhs, const TrajectoryData& data, const FitOptions& options, const FitPhase& phase,
               std::size_t width, std::span<const double> thresholds) {
  const std::size_t n = rhs->components();
  const DataRows rows(data, n);
  const SegmentList segments(phase, rows);
  const std::vector<double>& of_components = component_weights(options, phase);
  SquaredError loss{.targets = {}, .weights = of_components, .scale = 1.0 / static_cast<double>(data.trajectories)};
  std::vector<double> weights, each_threshold;
  if (data.sigma.empty()) loss.thresholds.assign(thresholds.begin(), thresholds.end());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const auto [trajectory, segment] = segments[i];
    const Segments& of = segments.of(trajectory);
    const double* after = data.states.data() + (rows.first(trajectory) + of.first(segment) + 1) * n;
    loss.targets.insert(loss.targets.end(), after, after + of.length * n);
    loss.targets.resize((i + 1) * width * n, std::numeric_limits<double>::quiet_NaN());
    // What a last segment that reaches back has in common with the one before it counts there.
    const std::size_t counted_before = of.first_new(segment) - of.first(segment) - 1;
    std::fill_n(loss.targets.begin() + static_cast<std::ptrdiff_t>(i * width * n), counted_before * n,
                std::numeric_limits<double>::quiet_NaN());
    if (data.sigma.empty()) continue;
    const std::size_t first = (rows.first(trajectory) + of.first(segment) + 1) * n;
    for (std::size_t at = first; at < first + of.length * n; ++at) {
      weights.push_back(measurement_weight(data, of_components, at, at % n));
      if (!thresholds.empty()) each_threshold.push_back(measurement_threshold(data, thresholds, at, at % n));
    }
    weights.resize((i + 1) * width * n);
    if (!thresholds.empty()) each_threshold.resize(weights.size(), std::numeric_limits<double>::infinity());
  }
  if (!data.sigma.empty()) {
    loss.weights = std::move(weights);
    loss.thresholds = std::move(each_threshold);
  }
  Task task{segment_problem(rhs, data, data.states, rows, segments, width), std::move(loss)};
  task.problem.resets = options.resets;
  return task;
}

FirstPoints first_points(const FitOptions& options) {
  const auto is_free = [](const FitPhase& phase) { return phase.continuity.has_value(); };
  return std::ranges::all_of(options.phases, is_free) ? FirstPoints::may_miss : FirstPoints::complete;
}

void require_first_points(const TrajectoryData& data, std::size_t components, const char* field, const char* remedy,
                          const std::optional<GivenStarts>& starts) {
  const DataRows rows(data, components);
  for (std::size_t i = 0; i < rows.trajectories(); ++i) {
    for (std::size_t c = 0; c < components; ++c) {
      if (!std::isnan(data.states[rows.first(i) * components + c]) || (starts && starts->has(c))) continue;
      throw Error(ErrorKind::invalid_argument,
                  {.field = field,
                   .found = "NaN in trajectory " + data.name(i) + ", row 0, component " + std::to_string(c),
                   .expected = "a complete state, from which the trajectory starts",
                   .remedy = remedy});
    }
  }
}

void require_starts(const TrajectoryData& data, std::size_t components, const FitOptions& options) {
  const DataRows rows(data, components);
  for (std::size_t c = 0; c < components; ++c) {
    bool has = options.starts && options.starts->has(c);
    for (std::size_t at = c; at < data.states.size() && !has; at += components) has = !std::isnan(data.states[at]);
    if (has) continue;
    throw Error(ErrorKind::invalid_argument,
                {.field = "data.states",
                 .found = "no number of component " + std::to_string(c) + " in any trajectory",
                 .expected = "one at least, near which free states begin",
                 .remedy = "say where it starts: FitOptions::starts"});
  }
  for (std::size_t phase = 0; phase < options.phases.size(); ++phase) {
    if (options.phases[phase].continuity) continue;
    const SegmentList segments(options.phases[phase], rows);
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const auto [trajectory, segment] = segments[i];
      const std::size_t row = segments.of(trajectory).first(segment);
      const double* const state = data.states.data() + (rows.first(trajectory) + row) * components;
      const double* const missing = std::find_if(state, state + components, [&, first = segment == 0](const double& x) {
        const auto c = static_cast<std::size_t>(&x - state);
        return std::isnan(x) && !(first && options.starts && options.starts->has(c));
      });
      if (missing == state + components) continue;
      throw Error(ErrorKind::invalid_argument,
                  {.field = "data.states",
                   .found = "NaN in trajectory " + data.name(trajectory) + ", row " + std::to_string(row) +
                            ", component " + std::to_string(missing - state) + ", where a segment of phase " +
                            std::to_string(phase + 1) + " starts",
                   .expected = "complete states at the starts of segments",
                   .remedy = "give the phase a continuity, which frees its starts, or no segments"});
    }
  }
}

void require_one_span(const TrajectoryData& data, std::size_t components, const FitOptions& options) {
  const auto require = [&](const TrajectoryData& of, const FitPhase& phase) {
    if (phase.solve.value_or(options.solve).control != StepControl::common) return;
    const DataRows rows(of, components);
    const SegmentList segments(phase, rows);
    const auto span_of = [&](std::size_t i) {
      const auto [trajectory, segment] = segments[i];
      const Segments& cut = segments.of(trajectory);
      const double* const times = rows.times(of, trajectory) + cut.first(segment);
      return std::pair(times[0], times[cut.length]);
    };
    for (std::size_t i = 1; i < segments.size(); ++i) {
      if (span_of(i) == span_of(0)) continue;
      const auto [trajectory, segment] = segments[i];
      throw Error(ErrorKind::invalid_argument,
                  {.field = "options.control",
                   .found = "common with a time span of its own for trajectory " + of.name(trajectory) +
                            (segments.of(trajectory).count == 1 ? "" : ", segment " + std::to_string(segment)),
                   .expected = "one time span for all",
                   .remedy = "use per_trajectory control"});
    }
  };
  for (const FitPhase& phase : options.phases) require(data, phase);
  require(data, {});
  if (options.validation) require(*options.validation, {});
}

void require_steps_at_impulses(const Rhs& rhs, const TrajectoryData& data, const FitOptions& options) {
  const auto require = [&](const TrajectoryData& of, const FitPhase& phase) {
    if (of.impulses.empty()) return;
    Options steps = phase.solve.value_or(options.solve);
    if (steps.control == StepControl::common && of.impulses_differ())
      refuse("options.control", "common with impulses of each trajectory's own", "impulses that all trajectories share",
             "use per_trajectory control");
    if (steps.control != StepControl::fixed) return;
    steps.stops.clear();
    steps.stop_at_knots = false;
    const DataRows rows(of, rhs->components());
    const SegmentList segments(phase, rows);
    const Problem problem = segment_problem(rhs, of, of.states, rows, segments, of.points(rhs->components()) - 1);
    const std::optional<PassedJump> passed = passed_jump(problem, steps, segments.size());
    if (!passed) return;
    refuse(
        "data.impulses",
        number_text(passed->time) + " within a step of trajectory " + of.name(segments[passed->trajectory].trajectory),
        "times at which fixed steps end", "choose a dt whose steps end there, or adaptive steps");
  };
  for (const FitPhase& phase : options.phases) require(data, phase);
  require(data, {});
  if (options.validation) require(*options.validation, {});
}

void require_resets(const StateFunction& rhs, const FitOptions& options) {
  if (options.resets.empty()) return;
  for (std::size_t i = 0; i < options.resets.size(); ++i) {
    const Reset& reset = options.resets[i];
    for (const auto& [function, member] : {std::pair{&reset.function, ".function"}, {&reset.state, ".state"}}) {
      const std::string field = "options.resets[" + std::to_string(i) + "]" + member;
      if (!*function) refuse(field, "none", "a function");
      if ((*function)->components() == rhs.components() && (*function)->parameters() == rhs.parameters()) continue;
      refuse(field,
             std::to_string((*function)->components()) + " components and " +
                 std::to_string((*function)->parameters()) + " parameters",
             std::to_string(rhs.components()) + " and " + std::to_string(rhs.parameters()) +
                 ", as the right-hand side has",
             "parameters trained there are trained here too: train_parameters(resets, parameters)");
    }
  }
  const auto require = [](const std::string& field, const Options& steps) {
    if (steps.control == StepControl::per_trajectory) return;
    refuse(field, std::string(steps.control == StepControl::fixed ? "fixed" : "common") + " with resets",
           kStepsOfResets, "use per_trajectory control");
  };
  require("options.solve.control", options.solve);
  for (std::size_t i = 0; i < options.phases.size(); ++i) {
    if (const auto& steps = options.phases[i].solve)
      require("options.phases[" + std::to_string(i) + "].solve.control", *steps);
  }
}

std::vector<Moments> moments(const TrajectoryData& data, std::size_t components) {
  std::vector<Moments> result(components);
  for (std::size_t at = 0; at < data.states.size(); ++at) {
    if (!std::isnan(data.states[at])) result[at % components].add(data.states[at]);
  }
  return result;
}

std::vector<double> units_of_starts(const TrajectoryData& data, std::span<const double> component_weights,
                                    std::vector<double> spreads) {
  constexpr double kDeviations = 100;
  if (data.sigma.empty() && component_weights.empty()) return spreads;
  const std::size_t n = spreads.size();
  std::vector<double> sums(n), counts(n);
  for (std::size_t at = 0; at < data.states.size(); ++at) {
    if (std::isnan(data.states[at])) continue;
    sums[at % n] += measurement_weight(data, component_weights, at, at % n);
    ++counts[at % n];
  }
  for (std::size_t c = 0; c < n; ++c) {
    if (sums[c] > 0) spreads[c] = std::min(spreads[c], kDeviations * std::sqrt(counts[c] / sums[c]));
  }
  return spreads;
}

std::vector<double> without_gaps(const TrajectoryData& data, std::size_t components) {
  const DataRows rows(data, components);
  const std::vector<Moments> over_all = moments(data, components);
  std::vector<double> states = data.states;
  for (std::size_t trajectory = 0; trajectory < rows.trajectories(); ++trajectory) {
    const double* const times = rows.times(data, trajectory);
    for (std::size_t c = 0; c < components; ++c) {
      double* const state = states.data() + rows.first(trajectory) * components + c;
      std::size_t before = 0;  // the last point that has a number
      while (before < rows.points(trajectory) && std::isnan(state[before * components])) ++before;
      const double first = before < rows.points(trajectory) ? state[before * components] : over_all[c].mean();
      for (std::size_t point = 0; point < before; ++point) state[point * components] = first;
      for (std::size_t point = before + 1; point < rows.points(trajectory); ++point) {
        if (!std::isnan(state[point * components])) {
          before = point;
          continue;
        }
        std::size_t after = point + 1;
        while (after < rows.points(trajectory) && std::isnan(state[after * components])) ++after;
        const double from = state[before * components];
        const double slope =
            after == rows.points(trajectory) ? 0 : (state[after * components] - from) / (times[after] - times[before]);
        for (; point < after; ++point) state[point * components] = from + slope * (times[point] - times[before]);
        before = --point;
      }
    }
  }
  return states;
}

std::vector<double> without_glitches(const TrajectoryData& data, std::size_t components,
                                     std::span<const double> thresholds) {
  const DataRows rows(data, components);
  std::vector<double> states = data.states;
  for (std::size_t trajectory = 0; trajectory < rows.trajectories(); ++trajectory) {
    for (std::size_t c = 0; c < components; ++c) {
      std::vector<std::size_t> measured;  // where
      for (std::size_t point = 0; point < rows.points(trajectory); ++point) {
        const std::size_t at = (rows.first(trajectory) + point) * components + c;
        if (!std::isnan(data.states[at])) measured.push_back(at);
      }
      for (std::size_t i = 0; i < measured.size() && measured.size() >= 3; ++i) {
        const std::size_t first = std::clamp<std::size_t>(i, 1, measured.size() - 2) - 1, at = measured[i];
        std::vector<double> others;
        for (std::size_t k = first; k < first + 3; ++k) {
          if (k != i) others.push_back(data.states[measured[k]]);
        }
        const auto [low, high] = std::minmax(others[0], others[1]);
        const double median = std::clamp(data.states[at], low, high);
        const double far = measurement_threshold(data, thresholds, at, c) + 2 * (high - low);
        if (std::fabs(data.states[at] - median) > far) states[at] = median;
      }
    }
  }
  return states;
}

TrajectoryData chosen(const TrajectoryData& data, std::size_t components, std::size_t parameters,
                      std::span<const std::uint32_t> trajectories) {
  const DataRows rows(data, components);
  TrajectoryData some{.trajectories = trajectories.size()};
  const bool own_parameters = data.parameters.size() != parameters;
  if (!own_parameters) some.parameters = data.parameters;
  if (data.impulses_differ()) {
    some.first_impulse.push_back(0);
  } else {
    some.impulses = data.impulses;
  }
  for (const std::uint32_t trajectory : trajectories) {
    const std::size_t points = rows.points(trajectory);
    const double* const times = rows.times(data, trajectory);
    const double* const states = data.states.data() + rows.first(trajectory) * components;
    some.lengths.push_back(points);
    if (!data.names.empty()) some.names.push_back(data.names[trajectory]);
    some.times.insert(some.times.end(), times, times + points);
    some.states.insert(some.states.end(), states, states + points * components);
    if (!data.sigma.empty()) {
      const double* const sigma = data.sigma.data() + rows.first(trajectory) * components;
      some.sigma.insert(some.sigma.end(), sigma, sigma + points * components);
    }
    if (own_parameters) {
      const double* const own = data.parameters.data() + trajectory * parameters;
      some.parameters.insert(some.parameters.end(), own, own + parameters);
    }
    if (!data.impulses_differ()) continue;
    const std::span<const Impulse> impulses = data.impulses_of(trajectory);
    some.impulses.insert(some.impulses.end(), impulses.begin(), impulses.end());
    some.first_impulse.push_back(some.impulses.size());
  }
  return some;
}

}  // namespace lockstep::ode::detail
