// The loss of a fit's phases: which solves it is made of, and what their derivatives add to.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/text.h"
#include "lockstep/ode/detail/data_rows.h"
#include "lockstep/ode/detail/fit_data.h"
#include "lockstep/ode/detail/refuse.h"
#include "lockstep/ode/detail/segments.h"
#include "lockstep/ode/detail/shooting.h"
#include "lockstep/ode/detail/start_solver.h"
#include "lockstep/ode/fit.h"
#include "lockstep/train/shuffle.h"

namespace lockstep::ode {
namespace {

using detail::count_of;
using detail::refuse;

}  // namespace

template <class T>
struct FitLoss<T>::Parts {
  Rhs rhs;
  TrajectoryData data;
  FitOptions options;
  double weighed_unit = 1;                                // what of the loss's unit is in options.component_weights
  std::vector<std::optional<GradientSolver>> phases;      // made when first needed
  std::vector<std::optional<detail::Shooting>> shooting;  // likewise, of phases with free states
  std::optional<GradientSolver> whole, validation;
  std::vector<double> weights;
  std::vector<double> filled;     // [trajectory][point][component], where there are free states: data without gaps
  std::vector<double> units;      // [component], of free states; empty where no phase has any
  std::vector<double> by_states;  // [trajectory][point][component]
  std::optional<detail::StartSolver> starts, validation_starts;  // where some are given
  // Of the last evaluation: [trajectory of all or of the mini-batch][component].
  std::vector<double> by_starts;
  std::vector<std::size_t> batch_segments;    // [phase], of the mini-batch that its solver was made for; 0: not known
  std::vector<std::uint32_t> batch;           // the trajectories of the last mini-batch, empty where all were taken
  std::span<const TrajectoryRecord> records;  // of the last evaluation; the solver's
  std::size_t left_out = 0;
  std::optional<std::size_t> good_phase;  // the one that has had a loss before

  using Result = detail::Shooting::Result;

  Result evaluate(std::optional<GradientSolver>& solver, const TrajectoryData& of, const FitPhase& phase,
                  std::span<const T> at) {
    const bool frees = &solver == &whole && ends_with_free_states();
    if (!solver) {
      solver_of(solver, of, phase, at);  // begins at the states
    } else if (starts || frees) {
      solver->set_initial_states(initial_states(of, phase, at, frees));
    }
    return evaluate_placed(solver, of, phase, at);
  }
  // From the initial states that the solver has.
  Result evaluate_placed(std::optional<GradientSolver>& solver, const TrajectoryData& of, const FitPhase& phase,
                         std::span<const T> at) {
    take_weights(at);
    // Losses of whole trajectories are looked at, not followed downhill.
    const bool looks = &solver == &whole || &solver == &validation;
    const Gradients& gradients = looks ? solver->evaluate_loss(weights) : solver->evaluate(weights);
    note(gradients);
    return {gradients.loss + (starts && !looks ? loss_of_starts(of, phase, gradients) : 0), gradients};
  }

  void take_weights(std::span<const T> at) {
    weights.assign(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(rhs->weights().size()));
  }
  // Of a trajectory of the data, or of the mini-batch.
  std::size_t trajectory_of(const TrajectoryData& of, std::size_t i) const {
    return &of == &data || batch.empty() ? i : batch[i];
  }
  bool is_validation(const TrajectoryData& of) const { return options.validation && &of == &*options.validation; }

  // Where solves begin: at the data, or free states, and what is given at its values.
  std::vector<double> initial_states(const TrajectoryData& of, const FitPhase& phase, std::span<const T> at,
                                     bool free) {
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

  // What the data have of given starts, compared with those that the solves began at; sets by_starts.
  double loss_of_starts(const TrajectoryData& of, const FitPhase& phase, const Gradients& gradients) {
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
        const double difference = starts->start(trajectory_of(of, trajectory), c) - of.states[row];
        const double weight =
            detail::measurement_weight(of, options.component_weights, row, c) / static_cast<double>(of.trajectories);
        sum += weight * difference * difference;
        by_starts[start] += 2 * weight * difference;
      }
    }
    return sum;
  }

  // What was trained from the data's own starts is judged from them, whatever phases before it had.
  bool ends_with_free_states() const { return options.phases.back().continuity.has_value(); }

  std::vector<double> states(std::span<const T> at) {
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
  // What is given into states [trajectory][point][component], in place of numbers that are `replaced`.
  template <class Replaced>
  void place_starts(std::vector<double>& states, const Replaced& replaced) {
    starts->evaluate(weights);
    const std::size_t n = rhs->components();
    const detail::DataRows rows(data, n);
    for (std::size_t i = 0; i < data.trajectories; ++i) {
      for (const std::size_t c : options.starts->components) {
        double& state = states[rows.first(i) * n + c];
        if (replaced(state)) state = starts->start(i, c);
      }
    }
  }

  detail::Shooting& shooting_of(std::size_t phase) {
    std::optional<detail::Shooting>& solver = shooting[phase];
    if (!solver) solver.emplace(rhs, data, filled, units, options, options.phases[phase]);
    return *solver;
  }
  // Intervals of the longest segment: a mini-batch's rows have room for those of all the data.
  std::size_t width(const TrajectoryData& of, const FitPhase& phase) const {
    return detail::Segments(phase, (is_validation(of) ? of : data).points(rhs->components())).length;
  }
  detail::Task task_of(const TrajectoryData& of, const FitPhase& phase, std::span<const T> at, bool frees) {
    detail::Task task = detail::make_task(rhs, of, options, phase, width(of, phase));
    if (starts || frees) task.problem.initial_states = initial_states(of, phase, at, frees);
    return task;
  }
  GradientSolver& solver_of(std::optional<GradientSolver>& solver, const TrajectoryData& of, const FitPhase& phase,
                            std::span<const T> at) {
    if (!solver) {
      detail::Task task = task_of(of, phase, at, &solver == &whole && ends_with_free_states());
      solver.emplace(std::move(task.problem), phase.solve.value_or(options.solve), std::move(task.loss),
                     GradientOptions{.failed = FailedTrajectories::leave_out, .memory_bytes = options.memory_bytes});
    }
    return *solver;
  }

  // The loss with free states; the part of `gradient` that belongs to them is set.
  Result shoot(std::size_t at_phase, std::span<const T> at, std::span<T> gradient) {
    const std::size_t count = rhs->weights().size(), n = rhs->components();
    take_weights(at);
    const Result result = shooting_of(at_phase).evaluate(weights, states(at), by_states);
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

  bool has_batches(const FitPhase& phase) const { return phase.batch != 0 && phase.batch < data.trajectories; }

  // The mini-batch of an iteration, its trajectories in `batch`.
  Result evaluate_batch(const train::Place& place, std::span<const T> at) {
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

  void note(const Gradients& gradients) {
    records = gradients.records;
    left_out = gradients.left_out;
  }
  // Without a state to start from nothing was solved.
  void note_none() {
    records = {};
    left_out = 0;
  }
  // Of whole trajectories.
  double loss_of(std::optional<GradientSolver>& solver, const TrajectoryData& of, std::span<const T> at) {
    try {
      return mean_or_infinity(evaluate(solver, of, {}, at).loss);
    } catch (const StartsNotFinite&) {
      note_none();
      return std::numeric_limits<double>::infinity();
    }
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

  // What of this the phase does not do already.
  static std::string remedy(const FitPhase& phase, bool stops) {
    std::vector<std::string> ways;
    if (!phase.training.is_lbfgs()) ways.emplace_back("lower the learning rate");
    if (phase.segment != 1) ways.emplace_back("begin with short segments");
    if (stops) ways.emplace_back("leave failed trajectories out");
    if (ways.empty()) return "start from parameters that are nearer to the data";
    std::string text = ways[0];
    for (std::size_t i = 1; i < ways.size(); ++i) text += (i + 1 < ways.size() ? ", " : ", or ") + ways[i];
    return text;
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
               stops ? "every trajectory to reach its end" : "one that reaches its end", remedy(phase, stops));
      }
    }
  }
};

template <class T>
FitLoss<T>::FitLoss(Rhs rhs, TrajectoryData data, FitOptions options) {
  options.validate();
  if (!rhs) refuse("rhs", "none", "a right-hand side");
  if (options.starts) options.starts->validate(*rhs);
  data.validate(*rhs, options.starts ? FirstPoints::may_miss : detail::first_points(options));
  if (options.starts && detail::first_points(options) == FirstPoints::complete) {
    detail::require_first_points(data, rhs->components(), "data.states",
                                 "give every phase a continuity, as noisy_phases() does, or say where it starts",
                                 options.starts);
  }
  if (options.validation) {
    options.validation->validate(*rhs, FirstPoints::may_miss);
    detail::require_first_points(*options.validation, rhs->components(), "options.validation.states",
                                 "leave out the points before the first complete one: starts of validation data are "
                                 "not trained, whatever the phases free",
                                 options.starts);
  }
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
  detail::require_steps_at_impulses(rhs, data, options);
  parts_ = std::make_unique<Parts>();
  parts_->phases.resize(options.phases.size());
  parts_->shooting.resize(options.phases.size());
  parts_->batch_segments.resize(options.phases.size());
  parts_->rhs = std::move(rhs);
  parts_->data = std::move(data);
  // All that the loss has counts by its weights. More than this of the unit is no matter of theirs: float32 has no room
  // for it beside a state's own.
  const bool narrow = options.solve.precision == Precision::f32;
  parts_->weighed_unit = narrow ? std::clamp(options.loss_unit, 0x1p-96, 0x1p96) : options.loss_unit;
  if (parts_->weighed_unit != 1) {
    if (options.component_weights.empty()) options.component_weights.assign(parts_->rhs->components(), 1.0);
    for (double& weight : options.component_weights) weight /= parts_->weighed_unit;
  }
  parts_->options = std::move(options);
  if (const std::optional<GivenStarts>& starts = parts_->options.starts) {
    parts_->starts.emplace(*starts, parts_->data);
    if (parts_->options.validation) parts_->validation_starts.emplace(*starts, *parts_->options.validation);
    parts_->weights = parts_->rhs->weights();
  }
  const std::size_t n = parts_->rhs->components();
  if (std::ranges::any_of(parts_->options.phases, [](const FitPhase& phase) { return phase.continuity.has_value(); })) {
    TrajectoryData begun = parts_->data;
    if (parts_->starts) {
      parts_->place_starts(begun.states, [](double measured) { return std::isnan(measured); });
    }
    parts_->filled = detail::without_gaps(begun, n);
    for (const detail::Moments& of_component : detail::moments(begun, n)) {
      parts_->units.push_back(of_component.size());
    }
    parts_->by_states.resize(begun.states.size());
  }
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
  const std::vector<double> own = parts_->rhs->weights();
  return parts_->solver_of(parts_->phases[phase], some, of, std::vector<T>(own.begin(), own.end())).explain();
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
  // A line search that went too far takes a shorter step when it is told so. A training that continues from a
  // checkpoint has had the phase's first loss before.
  const bool begun = parts_->good_phase == place.phase || place.iteration > 0;
  const bool may_fail = phase.training.is_lbfgs() && begun;
  const auto evaluate = [&]() -> std::optional<detail::Shooting::Result> {
    parts_->batch.clear();
    try {
      if (phase.continuity) return parts_->shoot(place.phase, parameters, gradient);
      if (parts_->has_batches(phase)) return parts_->evaluate_batch(place, parameters);
      return parts_->evaluate(parts_->phases[place.phase], parts_->data, phase, parameters);
    } catch (const StartsNotFinite&) {
      if (!may_fail) throw;
      parts_->note_none();
      return std::nullopt;
    }
  };
  const std::optional<detail::Shooting::Result> found = evaluate();
  if (!found || (parts_->must_stop() && may_fail)) {
    std::fill(gradient.begin(), gradient.end(), T(0));
    return std::numeric_limits<double>::infinity();
  }
  const auto& [loss, gradients] = *found;
  parts_->require_success(phase);
  parts_->good_phase = place.phase;
  std::transform(gradients.weights.begin(), gradients.weights.end(), gradient.begin(),
                 [](double g) { return static_cast<T>(g); });
  if (parts_->starts) {
    const std::span<const double> more = parts_->starts->slopes(parts_->weights, parts_->by_starts, parts_->batch);
    T* const own = gradient.data() + weights() - more.size();
    for (std::size_t i = 0; i < more.size(); ++i) own[i] += static_cast<T>(more[i]);
  }
  const double unit = parts_->weighed_unit;
  if (const double rest = parts_->options.loss_unit / unit; rest != 1) {
    for (T& g : gradient) g = static_cast<T>(static_cast<double>(g) / rest);
  }
  if (parts_->left_out == 0) return unit * loss;
  const double scale = parts_->mean_of_others();
  for (T& g : gradient) g *= static_cast<T>(scale);
  return unit * (scale * loss);
}

template <class T>
double FitLoss<T>::loss(std::span<const T> parameters) {
  return parts_->weighed_unit * parts_->loss_of(parts_->whole, parts_->data, parameters);
}

template <class T>
double FitLoss<T>::validation_loss(std::span<const T> parameters) {
  if (!parts_->options.validation) refuse("options.validation", "none", "validation data");
  return parts_->weighed_unit * parts_->loss_of(parts_->validation, *parts_->options.validation, parameters);
}

template class FitLoss<float>;
template class FitLoss<double>;

}  // namespace lockstep::ode
