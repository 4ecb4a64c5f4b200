#include "lockstep/ode/detail/fit_solves.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "lockstep/core/text.h"
#include "lockstep/ode/detail/huber.h"
#include "lockstep/ode/detail/refuse.h"
#include "lockstep/ode/detail/segments.h"
#include "lockstep/train/shuffle.h"

namespace lockstep::ode {
template <class T>
typename FitLoss<T>::Parts::Result FitLoss<T>::Parts::evaluate(std::optional<GradientSolver>& solver,
                                                               const TrajectoryData& of, const FitPhase& phase,
                                                               std::span<const T> at) {
  const bool frees = &solver == &whole && ends_with_free_states();
  if (!solver) {
    solver_of(solver, of, phase, at);  // begins at the states
  } else if (starts || frees) {
    solver->set_initial_states(initial_states(of, phase, at, frees));
  }
  return evaluate_placed(solver, of, phase, at);
}

template <class T>
typename FitLoss<T>::Parts::Result FitLoss<T>::Parts::evaluate_placed(std::optional<GradientSolver>& solver,
                                                                      const TrajectoryData& of, const FitPhase& phase,
                                                                      std::span<const T> at) {
  take_weights(at);
  // Losses of whole trajectories are looked at, not followed downhill.
  const bool looks = &solver == &whole || &solver == &validation;
  const Gradients& gradients = looks ? solver->evaluate_loss(weights, control) : solver->evaluate(weights, control);
  note(gradients);
  return {gradients.loss + (starts && !looks ? loss_of_starts(of, phase, gradients) : 0), gradients};
}

template <class T>
typename FitLoss<T>::Parts::Result FitLoss<T>::Parts::evaluate_batch(const train::Place& place, std::span<const T> at) {
  const FitPhase& phase = options.phases[place.phase];
  const std::size_t count = data.trajectories, epoch_steps = (count + phase.batch - 1) / phase.batch;
  const auto iteration = static_cast<std::size_t>(place.total);
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  train::shuffle(order, options.seed, train::kOrderStream, iteration / epoch_steps);
  const std::size_t first = std::min(iteration % epoch_steps * phase.batch, count - phase.batch);
  batch.assign(order.begin() + static_cast<std::ptrdiff_t>(first),
               order.begin() + static_cast<std::ptrdiff_t>(first + phase.batch));
  const TrajectoryData some = detail::chosen(data, rhs->components(), rhs->parameters(), batch);
  std::optional<GradientSolver>& solver = phases[place.phase];
  if (solver) {
    detail::Task task = task_of(some, phase, at, false);
    const std::size_t segments = task.problem.trajectories();
    if (std::exchange(batch_segments[place.phase], segments) == segments) {
      solver->replace_trajectories(std::move(task.problem), std::move(task.loss));
      return evaluate_placed(solver, some, phase, at);
    }
    solver.reset();  // these trajectories have fewer segments, or more
  }
  return evaluate(solver, some, phase, at);
}

template <class T>
typename FitLoss<T>::Parts::Result FitLoss<T>::Parts::shoot(std::size_t at_phase, std::span<const T> at,
                                                            std::span<T> gradient) {
  const std::size_t count = rhs->weights().size(), n = rhs->components();
  take_weights(at);
  const Result result = shooting_of(at_phase).evaluate(weights, states(at), by_states, control);
  const detail::DataRows rows(data, n);
  by_starts.assign(starts ? data.trajectories * n : 0, 0.0);
  for (std::size_t start = 0; start < by_starts.size(); ++start) {
    if (options.starts->has(start % n)) {
      by_starts[start] = std::exchange(by_states[rows.first(start / n) * n + start % n], 0.0);
    }
  }
  for (std::size_t i = 0; i < by_states.size(); ++i) {
    gradient[count + i] = static_cast<T>(units[i % units.size()] * by_states[i]);
  }
  note(result.gradients);
  return result;
}

template <class T>
double FitLoss<T>::Parts::loss_of(std::optional<GradientSolver>& solver, const TrajectoryData& of,
                                  std::span<const T> at) {
  try {
    return mean_or_infinity(evaluate(solver, of, {}, at).loss);
  } catch (const StartsNotFinite&) {
    note_none();
    return std::numeric_limits<double>::infinity();
  }
}

template <class T>
std::vector<double> FitLoss<T>::Parts::initial_states(const TrajectoryData& of, const FitPhase& phase,
                                                      std::span<const T> at, bool free) {
  take_weights(at);
  std::vector<double> freed;
  if (free) freed = states(at);
  const std::span<const double> from = free ? freed : of.states;
  detail::StartSolver* const given = !starts ? nullptr : is_validation(of) ? &*validation_starts : &*starts;
  if (given != nullptr) given->evaluate(weights);
  const std::size_t n = rhs->components();
  const detail::DataRows rows(of, n);
  const detail::SegmentList segments(phase, rows);
  std::vector<double> initial;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const auto [trajectory, segment] = segments[i];
    const std::size_t row = rows.first(trajectory) + segments.of(trajectory).first(segment);
    const std::size_t numbered = is_validation(of) ? trajectory : trajectory_of(of, trajectory);
    for (std::size_t c = 0; c < n; ++c) {
      const bool is_given = given != nullptr && segment == 0 && options.starts->has(c);
      initial.push_back(is_given ? given->start(numbered, c) : from[row * n + c]);
    }
  }
  return initial;
}

template <class T>
std::vector<double> FitLoss<T>::Parts::states(std::span<const T> at) {
  std::vector<double> states = units.empty() ? data.states : filled;
  const T* const offsets = at.data() + rhs->weights().size();
  for (std::size_t i = 0; i < states.size() && !units.empty(); ++i) {
    states[i] += units[i % units.size()] * static_cast<double>(offsets[i]);
  }
  if (starts) {
    take_weights(at);
    place_starts(states, [](double) { return true; });
  }
  return states;
}

template <class T>
double FitLoss<T>::Parts::loss_of_starts(const TrajectoryData& of, const FitPhase& phase, const Gradients& gradients) {
  const std::size_t n = rhs->components();
  const detail::DataRows rows(of, n);
  const detail::SegmentList segments(phase, rows);
  by_starts.assign(of.trajectories * n, 0.0);
  double sum = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const auto [trajectory, segment] = segments[i];
    if (segment != 0 || gradients.records[i].status != Status::success) continue;
    for (const std::size_t c : options.starts->components) {
      const std::size_t start = trajectory * n + c, row = rows.first(trajectory) * n + c;
      by_starts[start] = gradients.initial_states[i * n + c];
      if (std::isnan(of.states[row])) continue;
      const double error = starts->start(trajectory_of(of, trajectory), c) - of.states[row];
      const double weight = detail::measurement_weight(of, detail::component_weights(options, phase), row, c) /
                            static_cast<double>(of.trajectories);
      const auto [loss, slope] =
          detail::measurement_loss(weight, error, detail::measurement_threshold(of, thresholds, row, c));
      sum += loss;
      by_starts[start] += slope;
    }
  }
  return sum;
}

template <class T>
detail::Shooting& FitLoss<T>::Parts::shooting_of(std::size_t phase) {
  std::optional<detail::Shooting>& solver = shooting[phase];
  if (!solver) solver.emplace(rhs, data, filled, spreads, options, options.phases[phase], thresholds);
  return *solver;
}

template <class T>
GradientSolver& FitLoss<T>::Parts::solver_of(std::optional<GradientSolver>& solver, const TrajectoryData& of,
                                             const FitPhase& phase, std::span<const T> at) {
  if (!solver) {
    detail::Task task = task_of(of, phase, at, &solver == &whole && ends_with_free_states());
    solver.emplace(std::move(task.problem), phase.solve.value_or(options.solve), std::move(task.loss),
                   GradientOptions{.failed = FailedTrajectories::leave_out, .memory_bytes = options.memory_bytes});
  }
  return *solver;
}

template <class T>
detail::Task FitLoss<T>::Parts::task_of(const TrajectoryData& of, const FitPhase& phase, std::span<const T> at,
                                        bool frees) {
  detail::Task task = detail::make_task(rhs, of, options, phase, width(of, phase), thresholds);
  if (starts || frees) task.problem.initial_states = initial_states(of, phase, at, frees);
  return task;
}

template <class T>
std::size_t FitLoss<T>::Parts::width(const TrajectoryData& of, const FitPhase& phase) const {
  return detail::Segments(phase, (is_validation(of) ? of : data).points(rhs->components())).length;
}

template <class T>
double FitLoss<T>::Parts::mean_or_infinity(double loss) const {
  if (must_stop({})) return std::numeric_limits<double>::infinity();
  return left_out == 0 ? loss : mean_of_others() * loss;
}

// What helps, but for what the phase, or one before it, does already.
template <class T>
std::string FitLoss<T>::Parts::remedy_of_failure(const train::Place& place, bool piled_up) const {
  const FitPhase& phase = options.phases[place.phase];
  std::vector<std::string> ways;
  if (piled_up) ways.emplace_back("end the data before resets follow each other without end");
  if (!phase.training.is_lbfgs()) ways.emplace_back("lower the learning rate");
  if (phase.segment != 1 && place.phase == 0) ways.emplace_back("begin with short segments");
  if (failed(phase) == FailedTrajectories::stop) ways.emplace_back("leave failed trajectories out");
  if (place.iteration == 0)
    ways.emplace_back(
        "start from parameters that are nearer to the data, or from a net of another seed or fewer weights");
  if (ways.empty()) return "start from parameters that are nearer to the data";
  std::string text = ways[0];
  for (std::size_t i = 1; i < ways.size(); ++i) text += (i + 1 < ways.size() ? ", " : ", or ") + ways[i];
  return text;
}

template <class T>
void FitLoss<T>::Parts::require_success(const train::Place& place) const {
  const FitPhase& phase = options.phases[place.phase];
  if (!must_stop(phase)) return;
  const detail::DataRows rows(data, rhs->components());
  const std::string& name = phase.training.name;
  const std::string called = !name.empty()               ? name
                             : options.phases.size() > 1 ? "phase " + std::to_string(place.phase + 1)
                                                         : "";
  const std::string iteration = "iteration " + std::to_string(place.total) +
                                (called.empty() ? "" : " (" + called + ", " + std::to_string(place.iteration) + ")");
  std::size_t i = 0;
  for (std::size_t at = 0; at < (batch.empty() ? data.trajectories : batch.size()); ++at) {
    const std::size_t trajectory = batch.empty() ? at : batch[at];
    const std::size_t segments = detail::Segments(phase, rows.points(trajectory)).count;
    for (std::size_t segment = 0; segment < segments; ++segment, ++i) {
      const TrajectoryRecord& record = records[i];
      if (record.status == Status::success) continue;
      const bool stops = failed(phase) == FailedTrajectories::stop;
      const bool piled_up = !options.resets.empty() && record.status == Status::step_too_small;
      detail::refuse(iteration + ", trajectory " + data.name(trajectory) +
                         (segments == 1 ? "" : ", segment " + std::to_string(segment)),
                     std::string(to_string(record.status)) + " at t = " + number_text(record.end_time) +
                         (stops ? "" : ", and no other succeeded"),
                     stops ? "every trajectory to reach its end" : "one that reaches its end",
                     remedy_of_failure(place, piled_up));
    }
  }
}

template struct FitLoss<float>::Parts;
template struct FitLoss<double>::Parts;

}  // namespace lockstep::ode
