#include "lockstep/ode/detail/shooting.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "lockstep/ode/detail/segments.h"

namespace lockstep::ode::detail {

struct Shooting::Parts {
  Parts(const Rhs& rhs, const TrajectoryData& data_of, std::span<const double> first_starts, const FitOptions& options,
        const FitPhase& phase)
      : components(rhs->components()),
        data(data_of.states),
        rows(data_of, components),
        segments(phase, rows),
        continuity(*phase.continuity),
        weights(components, 1.0 / static_cast<double>(rows.trajectories())),
        starts(segments.size() * components),
        gap_slopes(starts.size()) {
    for (std::size_t c = 0; c < options.component_weights.size(); ++c) weights[c] *= options.component_weights[c];
    const TrajectoryLoss loss = [this](std::size_t i, std::span<const double> states, std::span<double> slopes) {
      return segment_loss(i, states, slopes);
    };
    solver.emplace(
        segment_problem(rhs, data_of, first_starts, rows, segments, Segments(phase, data_of.points(components)).length),
        phase.solve.value_or(options.solve), loss,
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

  // Called from several threads at once: each segment has places of its own.
  double segment_loss(std::size_t i, std::span<const double> states, std::span<double> slopes) {
    const auto [trajectory, segment] = segments[i];
    const Segments& of = segments.of(trajectory);
    const std::size_t first = of.first(segment);
    const auto add = [&](std::size_t at, double target, double weight) {
      if (std::isnan(target)) return 0.0;
      const double difference = states[at] - target;
      slopes[at] += 2 * weight * difference;
      return weight * difference * difference;
    };
    double sum = 0;
    for (std::size_t point = of.first_new(segment); point <= first + of.length; ++point) {
      for (std::size_t c = 0; c < components; ++c) {
        sum += add((point - first - 1) * components + c, data[row(trajectory, point) + c], weights[c]);
      }
    }
    if (segment + 1 == of.count) return sum;
    const std::size_t joint = of.first(segment + 1) - first - 1;
    for (std::size_t c = 0; c < components; ++c) {
      const std::size_t next = (i + 1) * components + c, at = joint * components + c;
      sum += add(at, starts[next], continuity * weights[c]);
      gap_slopes[next] = -2 * continuity * weights[c] * (states[at] - starts[next]);
    }
    return sum;
  }

  std::size_t components;
  std::vector<double> data;  // [trajectory][point][component]
  DataRows rows;
  SegmentList segments;
  double continuity;
  std::vector<double> weights;             // [component], divided by the number of trajectories
  std::vector<double> starts, gap_slopes;  // [trajectory][segment][component]; slopes by the start after the gap
  std::optional<GradientSolver> solver;
};

Shooting::Shooting(const Rhs& rhs, const TrajectoryData& data, std::span<const double> starts,
                   const FitOptions& options, const FitPhase& phase)
    : parts_(std::make_unique<Parts>(rhs, data, starts, options, phase)) {}
Shooting::~Shooting() = default;
Shooting::Shooting(Shooting&&) noexcept = default;
Shooting& Shooting::operator=(Shooting&&) noexcept = default;

std::vector<std::string> Shooting::explain() const { return parts_->solver->explain(); }

Shooting::Result Shooting::evaluate(std::span<const double> weights, std::span<const double> states,
                                    std::span<double> by_state) {
  Parts& parts = *parts_;
  const std::size_t n = parts.components, count = parts.segments.size();
  for (std::size_t i = 0; i < count; ++i) {
    std::copy_n(states.data() + parts.start_row(i), n, parts.starts.data() + i * n);
  }
  std::fill(parts.gap_slopes.begin(), parts.gap_slopes.end(), 0.0);
  parts.solver->set_initial_states(parts.starts);
  const Gradients& gradients = parts.solver->evaluate(weights);
  double loss = gradients.loss;
  std::fill(by_state.begin(), by_state.end(), 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t row = parts.start_row(i);
    for (std::size_t c = 0; c < n; ++c) {
      by_state[row + c] = gradients.initial_states[i * n + c] + parts.gap_slopes[i * n + c];
      if (parts.segments[i].segment != 0) continue;
      const double difference = states[row + c] - parts.data[row + c];
      loss += parts.weights[c] * difference * difference;
      by_state[row + c] += 2 * parts.weights[c] * difference;
    }
  }
  return {loss, gradients};
}

}  // namespace lockstep::ode::detail
