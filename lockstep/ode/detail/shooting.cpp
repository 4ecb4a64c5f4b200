#include "lockstep/ode/detail/shooting.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lockstep/ode/detail/segments.h"

namespace lockstep::ode::detail {

struct Shooting::Parts {
  Parts(const Rhs& rhs, const TrajectoryData& data_of, const FitOptions& options, const FitPhase& phase)
      : components(rhs->components()),
        trajectories(data_of.trajectories),
        data(data_of.states),
        segments(phase, data_of.points(components)),
        continuity(*phase.continuity),
        weights(components, 1.0 / static_cast<double>(trajectories)),
        starts(trajectories * segments.count * components),
        gap_slopes(starts.size()) {
    for (std::size_t c = 0; c < options.component_weights.size(); ++c) weights[c] *= options.component_weights[c];
    const TrajectoryLoss loss = [this](std::size_t i, std::span<const double> states, std::span<double> slopes) {
      return segment_loss(i, states, slopes);
    };
    solver.emplace(segment_problem(rhs, data_of, segments), phase.solve.value_or(options.solve), loss,
                   GradientOptions{.failed = FailedTrajectories::leave_out, .memory_bytes = options.memory_bytes});
  }
  Parts(const Parts&) = delete;

  std::size_t row(std::size_t trajectory, std::size_t point) const {
    return (trajectory * segments.points + point) * components;
  }

  // Called from several threads at once: each segment has places of its own.
  double segment_loss(std::size_t i, std::span<const double> states, std::span<double> slopes) {
    const std::size_t trajectory = i / segments.count, segment = i % segments.count, first = segments.first(segment);
    const auto add = [&](std::size_t at, double target, double weight) {
      const double difference = states[at] - target;
      slopes[at] += 2 * weight * difference;
      return weight * difference * difference;
    };
    double sum = 0;
    for (std::size_t point = segments.first_new(segment); point <= first + segments.length; ++point) {
      for (std::size_t c = 0; c < components; ++c) {
        sum += add((point - first - 1) * components + c, data[row(trajectory, point) + c], weights[c]);
      }
    }
    if (segment + 1 == segments.count) return sum;
    const std::size_t joint = segments.first(segment + 1) - first - 1;
    for (std::size_t c = 0; c < components; ++c) {
      const std::size_t next = (i + 1) * components + c, at = joint * components + c;
      sum += add(at, starts[next], continuity * weights[c]);
      gap_slopes[next] = -2 * continuity * weights[c] * (states[at] - starts[next]);
    }
    return sum;
  }

  std::size_t components, trajectories;
  std::vector<double> data;  // [trajectory][point][component]
  Segments segments;
  double continuity;
  std::vector<double> weights;             // [component], divided by the number of trajectories
  std::vector<double> starts, gap_slopes;  // [trajectory][segment][component]; slopes by the start after the gap
  std::optional<GradientSolver> solver;
};

Shooting::Shooting(const Rhs& rhs, const TrajectoryData& data, const FitOptions& options, const FitPhase& phase)
    : parts_(std::make_unique<Parts>(rhs, data, options, phase)) {}
Shooting::~Shooting() = default;
Shooting::Shooting(Shooting&&) noexcept = default;
Shooting& Shooting::operator=(Shooting&&) noexcept = default;

std::vector<std::string> Shooting::explain() const { return parts_->solver->explain(); }

Shooting::Result Shooting::evaluate(std::span<const double> weights, std::span<const double> states,
                                    std::span<double> by_state) {
  Parts& parts = *parts_;
  const std::size_t n = parts.components, count = parts.segments.count;
  for (std::size_t i = 0; i < parts.trajectories * count; ++i) {
    const double* from = states.data() + parts.row(i / count, parts.segments.first(i % count));
    std::copy_n(from, n, parts.starts.data() + i * n);
  }
  std::fill(parts.gap_slopes.begin(), parts.gap_slopes.end(), 0.0);
  parts.solver->set_initial_states(parts.starts);
  const Gradients& gradients = parts.solver->evaluate(weights);
  double loss = gradients.loss;
  std::fill(by_state.begin(), by_state.end(), 0.0);
  for (std::size_t i = 0; i < parts.trajectories * count; ++i) {
    const std::size_t row = parts.row(i / count, parts.segments.first(i % count));
    for (std::size_t c = 0; c < n; ++c) {
      by_state[row + c] = gradients.initial_states[i * n + c] + parts.gap_slopes[i * n + c];
      if (i % count != 0) continue;
      const double difference = states[row + c] - parts.data[row + c];
      loss += parts.weights[c] * difference * difference;
      by_state[row + c] += 2 * parts.weights[c] * difference;
    }
  }
  return {loss, gradients};
}

}  // namespace lockstep::ode::detail
