#include "lockstep/ode/detail/shooting.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "lockstep/ode/detail/fit_data.h"
#include "lockstep/ode/detail/huber.h"
#include "lockstep/ode/detail/segments.h"

namespace lockstep::ode::detail {

struct Shooting::Parts {
  Parts(const Rhs& rhs, const TrajectoryData& data_of, std::span<const double> first_starts,
        std::span<const double> units, const FitOptions& options, const FitPhase& phase,
        std::span<const double> of_thresholds)
      : components(rhs->components()),
        data(data_of.states),
        rows(data_of, components),
        segments(phase, rows),
        continuity(*phase.continuity),
        weights(components, 1.0 / static_cast<double>(rows.trajectories())),
        gap_weights(components),
        starts(segments.size() * components),
        gap_slopes(starts.size()) {
    const std::vector<double>& of_components = component_weights(options, phase);
    for (std::size_t c = 0; c < of_components.size(); ++c) weights[c] *= of_components[c];
    gap_weights = weights;
    if (!data_of.sigma.empty()) weigh_one_by_one(data_of);
    weigh_gaps_of_unmeasured(units);
    for (std::size_t at = 0; at < data.size() && !of_thresholds.empty(); ++at) {
      thresholds.push_back(measurement_threshold(data_of, of_thresholds, at, at % components));
    }
    const TrajectoryLoss loss = [this](std::size_t i, std::span<const double> states, std::span<double> slopes) {
      return segment_loss(i, states, slopes);
    };
    Problem problem =
        segment_problem(rhs, data_of, first_starts, rows, segments, Segments(phase, data_of.points(components)).length);
    problem.resets = options.resets;
    solver.emplace(std::move(problem), phase.solve.value_or(options.solve), loss,
                   GradientOptions{.failed = FailedTrajectories::leave_out, .memory_bytes = options.memory_bytes});
  }
  Parts(const Parts&) = delete;

  // Where the numbers of a point are, and of the point that segment i starts from.
  std::size_t row(std::size_t trajectory, std::size_t point) const {
    return (rows.first(trajectory) + point) * components;
  }
  std::size_t start_row(std::size_t i) const {
    const auto [trajectory, segment] = segments[i];
    return row(trajectory, segments.of(trajectory).first(segment));
  }

  double weight(std::size_t at, std::size_t c) const { return each.empty() ? weights[c] : each[at]; }
  double threshold(std::size_t at) const { return thresholds.empty() ? kNone : thresholds[at]; }

  // A gap is no measurement: it counts as the component's measurements do on average.
  void weigh_one_by_one(const TrajectoryData& data_of) {
    std::vector<double> sums(components), counts(components);
    each.resize(data.size());
    for (std::size_t at = 0; at < data.size(); ++at) {
      const std::size_t c = at % components;
      if (std::isnan(data[at])) continue;
      const double squared = data_of.sigma[at] * data_of.sigma[at];
      each[at] = weights[c] / squared;
      sums[c] += 1 / squared;
      ++counts[c];
    }
    for (std::size_t c = 0; c < components; ++c) gap_weights[c] *= counts[c] > 0 ? sums[c] / counts[c] : 1;
  }

  void weigh_gaps_of_unmeasured(std::span<const double> units) {
    std::vector<bool> measured(components);
    for (std::size_t at = 0; at < data.size(); ++at) {
      if (!std::isnan(data[at])) measured[at % components] = true;
    }
    double sum = 0, count = 0;
    for (std::size_t c = 0; c < components; ++c) {
      if (measured[c]) sum += gap_weights[c] * units[c] * units[c], ++count;
    }
    for (std::size_t c = 0; c < components; ++c) {
      if (!measured[c] && count > 0) gap_weights[c] = sum / count / (units[c] * units[c]);
    }
  }

  // Called from several threads at once: each segment has places of its own.
  double segment_loss(std::size_t i, std::span<const double> states, std::span<double> slopes) {
    const auto [trajectory, segment] = segments[i];
    const Segments& of = segments.of(trajectory);
    const std::size_t first = of.first(segment);
    const auto add = [&](std::size_t at, double target, double weight, double threshold) {
      if (std::isnan(target)) return 0.0;
      const auto [loss, slope] = measurement_loss(weight, states[at] - target, threshold);
      slopes[at] += slope;
      return loss;
    };
    double sum = 0;
    for (std::size_t point = of.first_new(segment); point <= first + of.length; ++point) {
      for (std::size_t c = 0; c < components; ++c) {
        const std::size_t of_data = row(trajectory, point) + c;
        sum += add((point - first - 1) * components + c, data[of_data], weight(of_data, c), threshold(of_data));
      }
    }
    if (segment + 1 == of.count) return sum;
    const std::size_t joint = of.first(segment + 1) - first - 1;
    for (std::size_t c = 0; c < components; ++c) {
      const std::size_t next = (i + 1) * components + c, at = joint * components + c;
      sum += add(at, starts[next], continuity * gap_weights[c], kNone);
      gap_slopes[next] = -2 * continuity * gap_weights[c] * (states[at] - starts[next]);
    }
    return sum;
  }

  static constexpr double kNone = std::numeric_limits<double>::infinity();
  std::size_t components;
  std::vector<double> data;  // [trajectory][point][component]
  DataRows rows;
  SegmentList segments;
  double continuity;
  std::vector<double> weights;             // [component], divided by the number of trajectories
  std::vector<double> each;                // likewise over sigma^2, as data; empty where there is no sigma
  std::vector<double> thresholds;          // likewise as data, of errors; empty: kNone
  std::vector<double> gap_weights;         // [component]
  std::vector<double> starts, gap_slopes;  // [trajectory][segment][component]; slopes by the start after the gap
  std::optional<GradientSolver> solver;
};

Shooting::Shooting(const Rhs& rhs, const TrajectoryData& data, std::span<const double> starts,
                   std::span<const double> units, const FitOptions& options, const FitPhase& phase,
                   std::span<const double> thresholds)
    : parts_(std::make_unique<Parts>(rhs, data, starts, units, options, phase, thresholds)) {}
Shooting::~Shooting() = default;
Shooting::Shooting(Shooting&&) noexcept = default;
Shooting& Shooting::operator=(Shooting&&) noexcept = default;

std::vector<std::string> Shooting::explain() const { return parts_->solver->explain(); }

Shooting::Result Shooting::evaluate(std::span<const double> weights, std::span<const double> states,
                                    std::span<double> by_state, const RunControl& control) {
  Parts& parts = *parts_;
  const std::size_t n = parts.components, count = parts.segments.size();
  for (std::size_t i = 0; i < count; ++i) {
    std::copy_n(states.data() + parts.start_row(i), n, parts.starts.data() + i * n);
  }
  std::fill(parts.gap_slopes.begin(), parts.gap_slopes.end(), 0.0);
  parts.solver->set_initial_states(parts.starts);
  const Gradients& gradients = parts.solver->evaluate(weights, control);
  double loss = gradients.loss;
  std::fill(by_state.begin(), by_state.end(), 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t row = parts.start_row(i);
    for (std::size_t c = 0; c < n; ++c) {
      by_state[row + c] = gradients.initial_states[i * n + c] + parts.gap_slopes[i * n + c];
      if (parts.segments[i].segment != 0) continue;
      if (std::isnan(parts.data[row + c])) continue;
      const MeasurementLoss of =
          measurement_loss(parts.weight(row + c, c), states[row + c] - parts.data[row + c], parts.threshold(row + c));
      loss += of.loss;
      by_state[row + c] += of.slope;
    }
  }
  return {loss, gradients};
}

}  // namespace lockstep::ode::detail
