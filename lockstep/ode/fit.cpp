#include "lockstep/ode/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"
#include "lockstep/ode/detail/data_rows.h"
#include "lockstep/ode/detail/fit_data.h"
#include "lockstep/ode/detail/moments.h"
#include "lockstep/ode/detail/segments.h"
#include "lockstep/ode/detail/shooting.h"
#include "lockstep/train/shuffle.h"

namespace lockstep::ode {
namespace {

[[noreturn]] void refuse(const std::string& field, const std::string& found, const std::string& expected,
                         const std::string& remedy = {}) {
  throw Error(ErrorKind::invalid_argument, {.field = field, .found = found, .expected = expected, .remedy = remedy});
}

std::string count_of(std::size_t count) { return std::to_string(count) + " numbers"; }

}  // namespace

void FitOptions::validate() const {
  solve.validate();
  if (phases.empty()) refuse("options.phases", "none", "at least one phase");
  for (const FitPhase& phase : phases) {
    phase.training.validate();
    if (phase.solve) phase.solve->validate();
    if (phase.continuity && !(*phase.continuity > 0 && std::isfinite(*phase.continuity))) {
      refuse("options.phases.continuity", number_text(*phase.continuity), "a finite number greater than 0");
    }
    if (phase.batch != 0 && (phase.training.is_lbfgs() || phase.continuity)) {
      refuse("options.phases.batch",
             std::to_string(phase.batch) + (phase.continuity ? " with free states" : " with L-BFGS"),
             "0: both need the same loss in every iteration");
    }
    if (phase.horizon == 1) refuse("options.phases.horizon", "1", "at least 2 points, or 0 for all");
  }
  for (const double w : component_weights) {
    if (!(w >= 0) || !std::isfinite(w)) {
      refuse("options.component_weights", number_text(w), "finite numbers that are not negative");
    }
  }
  if (validate_every < 1) refuse("options.validate_every", std::to_string(validate_every), "at least 1");
}

std::int64_t FitOptions::iterations_per_epoch(std::size_t trajectories) const {
  std::size_t most = 1;
  for (const FitPhase& phase : phases) {
    if (phase.batch != 0) most = std::max(most, (trajectories + phase.batch - 1) / phase.batch);
  }
  return static_cast<std::int64_t>(most);
}

std::vector<FitPhase> recommended_phases(std::size_t points, std::optional<double> target, bool gaps) {
  const auto lbfgs = [](const char* name, std::int64_t iterations) {
    train::Phase phase;
    phase.name = name;
    phase.iterations = iterations;
    phase.rule = train::LbfgsOptions{};
    return phase;
  };
  std::vector<FitPhase> phases;
  // With gaps all starts are free. An interval by itself may then hold nothing that was measured.
  if (!gaps) phases.push_back({.training = lbfgs("segments of 1 interval", 100), .segment = 1});
  const auto segments = [&](const char* name, std::size_t length, double continuity) {
    phases.push_back({.training = lbfgs(name, 100), .segment = length});
    if (gaps) phases.back().continuity = continuity;
  };
  if (points > 10) segments("segments of 5 intervals", 5, 1);
  if (points > 40) segments("segments of 20 intervals", 20, 100);
  phases.push_back({.training = lbfgs("whole trajectories", 2000)});
  phases.back().training.target = target;
  return phases;
}

std::vector<FitPhase> noisy_phases(std::size_t points, std::optional<double> target) {
  std::vector<FitPhase> phases = recommended_phases(points, target, true);
  phases.back().continuity = 1;
  return phases;
}

template <class T>
struct FitLoss<T>::Parts {
  Rhs rhs;
  TrajectoryData data;
  FitOptions options;
  std::vector<std::optional<GradientSolver>> phases;      // made when first needed
  std::vector<std::optional<detail::Shooting>> shooting;  // likewise, of phases with free states
  std::optional<GradientSolver> whole, validation;
  std::vector<double> weights;
  std::vector<double> filled;        // [trajectory][point][component], where there are free states: data without gaps
  std::vector<double> units;         // [component], of free states; empty where no phase has any
  std::vector<double> by_states;     // [trajectory][point][component]
  std::vector<std::size_t> batch_segments;  // [phase], of the mini-batch that its solver was made for; 0: not known
  std::vector<std::uint32_t> batch;  // the trajectories of the last mini-batch, empty where all were taken
  std::span<const TrajectoryRecord> records;  // of the last evaluation; the solver's
  std::size_t left_out = 0;
  std::optional<std::size_t> good_phase;  // the one that has had a loss before

  const Gradients& evaluate(std::optional<GradientSolver>& solver, const TrajectoryData& of, const FitPhase& phase,
                            std::span<const T> at) {
    solver_of(solver, of, phase);
    weights.assign(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(rhs->weights().size()));
    if (&solver == &whole && ends_with_free_states()) {
      const std::vector<double> free = states(at);
      const std::size_t n = units.size();
      const detail::DataRows rows(data, n);
      std::vector<double> initial;
      for (std::size_t i = 0; i < data.trajectories; ++i) {
        const auto first = free.begin() + static_cast<std::ptrdiff_t>(rows.first(i) * n);
        initial.insert(initial.end(), first, first + static_cast<std::ptrdiff_t>(n));
      }
      solver->set_initial_states(initial);
    }
    // Losses of whole trajectories are looked at, not followed downhill.
    const bool looks = &solver == &whole || &solver == &validation;
    const Gradients& gradients = looks ? solver->evaluate_loss(weights) : solver->evaluate(weights);
    note(gradients);
    return gradients;
  }

  // What was trained from the data's own starts is judged from them, whatever phases before it had.
  bool ends_with_free_states() const { return options.phases.back().continuity.has_value(); }

  std::vector<double> states(std::span<const T> at) const {
    std::vector<double> states = units.empty() ? data.states : filled;
    const T* const offsets = at.data() + rhs->weights().size();
    for (std::size_t i = 0; i < states.size() && !units.empty(); ++i) {
      states[i] += units[i % units.size()] * static_cast<double>(offsets[i]);
    }
    return states;
  }

  detail::Shooting& shooting_of(std::size_t phase) {
    std::optional<detail::Shooting>& solver = shooting[phase];
    if (!solver) solver.emplace(rhs, data, filled, options, options.phases[phase]);
    return *solver;
  }
  // Intervals of the longest segment: a mini-batch's rows have room for those of all the data.
  std::size_t width(const TrajectoryData& of, const FitPhase& phase) const {
    const bool validates = options.validation && &of == &*options.validation;
    return detail::Segments(phase, (validates ? of : data).points(rhs->components())).length;
  }
  GradientSolver& solver_of(std::optional<GradientSolver>& solver, const TrajectoryData& of, const FitPhase& phase) {
    if (!solver) {
      detail::Task task = detail::make_task(rhs, of, options, phase, width(of, phase));
      solver.emplace(std::move(task.problem), phase.solve.value_or(options.solve), std::move(task.loss),
                     GradientOptions{.failed = FailedTrajectories::leave_out, .memory_bytes = options.memory_bytes});
    }
    return *solver;
  }

  // The loss with free states; the part of `gradient` that belongs to them is set.
  detail::Shooting::Result shoot(std::size_t at_phase, std::span<const T> at, std::span<T> gradient) {
    const std::size_t count = rhs->weights().size();
    weights.assign(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(count));
    const detail::Shooting::Result result = shooting_of(at_phase).evaluate(weights, states(at), by_states);
    for (std::size_t i = 0; i < by_states.size(); ++i) {
      gradient[count + i] = static_cast<T>(units[i % units.size()] * by_states[i]);
    }
    note(result.gradients);
    return result;
  }

  bool has_batches(const FitPhase& phase) const { return phase.batch != 0 && phase.batch < data.trajectories; }

  // The mini-batch of an iteration, its trajectories in `batch`.
  const Gradients& evaluate_batch(const train::Place& place, std::span<const T> at) {
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
      detail::Task task = detail::make_task(rhs, some, options, phase, width(some, phase));
      const std::size_t segments = task.problem.trajectories();
      if (std::exchange(batch_segments[place.phase], segments) == segments) {
        solver->replace_trajectories(std::move(task.problem), std::move(task.loss));
      } else {
        solver.reset();  // these trajectories have fewer segments, or more
      }
    }
    return evaluate(solver, some, phase, at);
  }

  void note(const Gradients& gradients) {
    records = gradients.records;
    left_out = gradients.left_out;
  }
  bool must_stop() const {
    return left_out != 0 && (options.failed == FailedTrajectories::stop || left_out == records.size());
  }
  // Sums over all that was solved are divided by the number of trajectories; the mean is over those that succeeded.
  double mean_of_others() const {
    return static_cast<double>(records.size()) / static_cast<double>(records.size() - left_out);
  }
  double mean_or_infinity(double loss) const {
    if (must_stop()) return std::numeric_limits<double>::infinity();
    return left_out == 0 ? loss : mean_of_others() * loss;
  }

  // Names the first trajectory, and its segment where they are cut, that did not reach its end.
  void require_success(const FitPhase& phase) const {
    if (!must_stop()) return;
    const detail::DataRows rows(data, rhs->components());
    std::size_t i = 0;
    for (std::size_t at = 0; at < (batch.empty() ? data.trajectories : batch.size()); ++at) {
      const std::size_t trajectory = batch.empty() ? at : batch[at];
      const std::size_t segments = detail::Segments(phase, rows.points(trajectory)).count;
      for (std::size_t segment = 0; segment < segments; ++segment, ++i) {
        const TrajectoryRecord& record = records[i];
        if (record.status == Status::success) continue;
        const bool stops = options.failed == FailedTrajectories::stop;
        refuse("trajectory " + data.name(trajectory) + (segments == 1 ? "" : ", segment " + std::to_string(segment)),
               std::string(to_string(record.status)) + " at t = " + number_text(record.end_time) +
                   (stops ? "" : ", and no other succeeded"),
               stops ? "every trajectory to reach its end" : "one that reaches its end",
               std::string("lower the learning rate, ") + (stops ? "" : "or ") + "begin with short segments" +
                   (stops ? ", or leave failed trajectories out" : ""));
      }
    }
  }
};

template <class T>
FitLoss<T>::FitLoss(Rhs rhs, TrajectoryData data, FitOptions options) {
  options.validate();
  if (!rhs) refuse("rhs", "none", "a right-hand side");
  data.validate(*rhs);
  if (options.validation) options.validation->validate(*rhs);
  if (rhs->weights().empty()) {
    refuse("rhs", rhs->description() + ", which has no weights", "a right-hand side with something to train",
           "use ode::net, or a sum of which one part is a net");
  }
  if (!options.component_weights.empty() && options.component_weights.size() != rhs->components()) {
    refuse("options.component_weights", count_of(options.component_weights.size()),
           std::to_string(rhs->components()) + ", one for each component, or none");
  }
  detail::require_starts(data, rhs->components(), options);
  detail::require_one_span(data, rhs->components(), options);
  parts_ = std::make_unique<Parts>();
  parts_->phases.resize(options.phases.size());
  parts_->shooting.resize(options.phases.size());
  parts_->batch_segments.resize(options.phases.size());
  const auto is_free = [](const FitPhase& phase) { return phase.continuity.has_value(); };
  if (std::any_of(options.phases.begin(), options.phases.end(), is_free)) {
    std::vector<detail::Moments> moments(rhs->components());
    for (std::size_t i = 0; i < data.states.size(); ++i) {
      if (!std::isnan(data.states[i])) moments[i % moments.size()].add(data.states[i]);
    }
    parts_->filled = detail::without_gaps(data, rhs->components());
    for (const detail::Moments& of_component : moments) parts_->units.push_back(of_component.deviation());
    parts_->by_states.resize(data.states.size());
  }
  parts_->rhs = std::move(rhs);
  parts_->data = std::move(data);
  parts_->options = std::move(options);
}
template <class T>
FitLoss<T>::~FitLoss() = default;
template <class T>
FitLoss<T>::FitLoss(FitLoss&&) noexcept = default;
template <class T>
FitLoss<T>& FitLoss<T>::operator=(FitLoss&&) noexcept = default;

template <class T>
std::size_t FitLoss<T>::weights() const {
  return parts_->rhs->weights().size();
}
template <class T>
std::size_t FitLoss<T>::parameters() const {
  return weights() + parts_->by_states.size();
}
template <class T>
std::vector<double> FitLoss<T>::states(std::span<const T> parameters) const {
  return parts_->states(parameters);
}
template <class T>
std::vector<std::string> FitLoss<T>::explain(std::size_t phase) {
  const FitPhase& of = parts_->options.phases[phase];
  if (of.continuity) return parts_->shooting_of(phase).explain();
  TrajectoryData some = parts_->data;
  if (parts_->has_batches(of)) {
    std::vector<std::uint32_t> first(of.batch);
    std::iota(first.begin(), first.end(), 0u);
    some = detail::chosen(some, parts_->rhs->components(), parts_->rhs->parameters(), first);
  }
  return parts_->solver_of(parts_->phases[phase], some, of).explain();
}
template <class T>
std::span<const TrajectoryRecord> FitLoss<T>::records() const {
  return parts_->records;
}
template <class T>
std::size_t FitLoss<T>::left_out() const {
  return parts_->left_out;
}

template <class T>
double FitLoss<T>::operator()(const train::Place& place, std::span<const T> parameters, std::span<T> gradient) {
  const FitPhase& phase = parts_->options.phases[place.phase];
  std::fill(gradient.begin(), gradient.end(), T(0));
  const auto evaluate = [&]() -> detail::Shooting::Result {
    parts_->batch.clear();
    if (phase.continuity) return parts_->shoot(place.phase, parameters, gradient);
    if (parts_->has_batches(phase)) {
      const Gradients& of_batch = parts_->evaluate_batch(place, parameters);
      return {of_batch.loss, of_batch};
    }
    const Gradients& gradients = parts_->evaluate(parts_->phases[place.phase], parts_->data, phase, parameters);
    return {gradients.loss, gradients};
  };
  const auto [loss, gradients] = evaluate();
  // A line search that went too far takes a shorter step when it is told so. A training that continues from a
  // checkpoint has had the phase's first loss before.
  const bool begun = parts_->good_phase == place.phase || place.iteration > 0;
  if (parts_->must_stop() && phase.training.is_lbfgs() && begun) {
    std::fill(gradient.begin(), gradient.end(), T(0));
    return std::numeric_limits<double>::infinity();
  }
  parts_->require_success(phase);
  parts_->good_phase = place.phase;
  std::transform(gradients.weights.begin(), gradients.weights.end(), gradient.begin(),
                 [](double g) { return static_cast<T>(g); });
  if (parts_->left_out == 0) return loss;
  const double scale = parts_->mean_of_others();
  for (T& g : gradient) g *= static_cast<T>(scale);
  return scale * loss;
}

template <class T>
double FitLoss<T>::loss(std::span<const T> parameters) {
  const Gradients& gradients = parts_->evaluate(parts_->whole, parts_->data, {}, parameters);
  return parts_->mean_or_infinity(gradients.loss);
}

template <class T>
double FitLoss<T>::validation_loss(std::span<const T> parameters) {
  if (!parts_->options.validation) refuse("options.validation", "none", "validation data");
  const Gradients& gradients = parts_->evaluate(parts_->validation, *parts_->options.validation, {}, parameters);
  return parts_->mean_or_infinity(gradients.loss);
}

template class FitLoss<float>;
template class FitLoss<double>;

namespace {

template <class T>
FitResult fit_as(const Rhs& rhs, const TrajectoryData& data, const FitOptions& options, const FitControl& control,
                 const std::vector<double>& start) {
  FitLoss<T> loss(rhs, data, options);
  std::vector<train::Phase> phases;
  for (const FitPhase& phase : options.phases) phases.push_back(phase.training);
  std::vector<T> parameters(start.begin(), start.end());
  parameters.resize(loss.parameters());
  train::Training<T> training(std::move(phases), std::move(parameters));
  if (options.validation) {
    training.validate_with([&](const train::Place&, std::span<const T> w) { return loss.validation_loss(w); },
                           options.validate_every);
  } else if (const std::int64_t epoch = options.iterations_per_epoch(data.trajectories); epoch > 1) {
    training.validate_with([&](const train::Place&, std::span<const T> w) { return loss.loss(w); }, epoch);
  }
  training.count_left_out([&loss] { return static_cast<std::int64_t>(loss.left_out()); });
  FitResult result;
  while (!training.finished() && !(result.cancelled = control.cancel != nullptr && control.cancel->requested())) {
    const auto report = training.iterate(
        [&](const train::Place& place, std::span<const T> w, std::span<T> g) { return loss(place, w, g); });
    ++result.iterations;
    if (control.progress) control.progress(report);
  }
  const auto best = training.best_parameters();
  result.weights.assign(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(loss.weights()));
  if (options.phases.back().continuity) result.states = loss.states(best);
  result.loss = loss.loss(best);
  if (options.validation) result.validation_loss = loss.validation_loss(best);
  return result;
}

}  // namespace

FitResult fit(const Rhs& rhs, const TrajectoryData& data, const FitOptions& options, const FitControl& control,
              std::optional<std::vector<double>> start) {
  const StandardArithmetic arithmetic;
  if (!rhs) refuse("rhs", "none", "a right-hand side");
  const std::vector<double> weights = start ? *start : rhs->weights();
  if (weights.size() != rhs->weights().size()) {
    refuse("start", count_of(weights.size()), std::to_string(rhs->weights().size()) + ", as the right-hand side has");
  }
  return options.solve.precision == Precision::f32 ? fit_as<float>(rhs, data, options, control, weights)
                                                   : fit_as<double>(rhs, data, options, control, weights);
}

}  // namespace lockstep::ode
