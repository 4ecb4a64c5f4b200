#include "lockstep/train/training.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"
#include "lockstep/train/detail/lower.h"
#include "lockstep/train/detail/positive.h"
#include "lockstep/train/sums.h"

namespace lockstep::train {
namespace {

constexpr std::int64_t kLookEvery = 50;  // iterations: a look costs a few

}  // namespace

void Phase::validate() const {
  if (iterations < 1) detail::refuse("phase.iterations", std::to_string(iterations), "at least 1");
  if (patience < 0) detail::refuse("phase.patience", std::to_string(patience), "0 or more");
  if (target && !std::isfinite(*target)) detail::refuse("phase.target", number_text(*target), "a finite loss");
  std::visit([](const auto& options) { options.validate(); }, rule);
  if (is_lbfgs()) return;
  learning_rate.validate();
  clip.validate();
}

template <class T>
Training<T>::Training(std::vector<Phase> phases, std::vector<T> parameters) : phases_(std::move(phases)) {
  if (phases_.empty()) detail::refuse("phases", "none", "at least one");
  for (const Phase& phase : phases_) phase.validate();
  state_.parameters = std::move(parameters);
  state_.best = state_.parameters;
  gradient_.resize(state_.parameters.size());
  begin_phase();
}

template <class T>
void Training<T>::measure_in(double unit) {
  if (!(unit > 0) || !std::isfinite(unit)) detail::refuse("loss unit", number_text(unit), "a number greater than 0");
  unit_ = unit;
  begin_phase();
}

template <class T>
void Training<T>::validate_with(Validation validation, std::int64_t every) {
  if (every < 1) detail::refuse("validation.every", std::to_string(every), "at least 1");
  validation_ = std::move(validation);
  validate_every_ = every;
}

template <class T>
std::int64_t Training<T>::total_iterations() const {
  std::int64_t total = 0;
  for (const Phase& phase : phases_) total += phase.iterations;
  return total;
}

template <class T>
void Training<T>::begin_phase() {
  descent_.reset();
  rate_.reset();
  lbfgs_.reset();
  state_.parameters = state_.best;
  number_ += 2;
  if (finished()) return;
  state_.best_loss = state_.watched = std::numeric_limits<double>::infinity();
  state_.best_at = state_.place.total;
  state_.best_left_out = std::numeric_limits<std::int64_t>::max();
  state_.left_out = 0;
  state_.by_squares = 0;
  const Phase& phase = phases_[state_.place.phase];
  if (const auto* options = std::get_if<LbfgsOptions>(&phase.rule)) {
    lbfgs_.emplace(*options);
  } else {
    ClipOptions clipping = phase.clip;
    for (std::optional<double>* bound : {&clipping.norm, &clipping.value}) {
      if (*bound) **bound /= unit_;
    }
    descent_.emplace(std::get<OptimiserOptions>(phase.rule), clipping, state_.parameters.size());
    rate_.emplace(phase.learning_rate);
  }
}

template <class T>
bool Training<T>::earlier_was_better() const {
  if (state_.earlier_best.empty()) return false;
  if (state_.earlier_best_left_out != state_.best_left_out) return state_.earlier_best_left_out < state_.best_left_out;
  return state_.earlier_best_loss < state_.best_loss;
}

template <class T>
IterationReport Training<T>::iterate(const Loss& loss) {
  const StandardArithmetic arithmetic;
  if (!lbfgs_) return descend(loss);
  const std::int64_t iteration = state_.place.iteration;
  const bool looks = state_.by_squares > 0 || (iteration > 0 && iteration % kLookEvery == 0);
  if (looks && may_finish()) {
    const bool is_late = phases_[state_.place.phase].iterations - iteration <= kLookEvery;
    IterationReport report;
    report.place = state_.place;
    const Finish found = finish(loss, state_.by_squares > 0 || is_late, report);
    if (found == Finish::stepped || (found == Finish::near && state_.by_squares > 0)) {
      const bool fresh = watch(report.loss, state_.parameters, report);
      end_iteration(report, fresh, found == Finish::near);
      return report;
    }
    state_.by_squares = 0;
  }
  if (!validation_) return quasi_newton(loss);
  return undone_if_it_throws([&] { return quasi_newton(loss); });
}

template <class T>
bool Training<T>::may_finish() const {
  return squares_ && !validation_ && state_.place.phase + 1 == phases_.size() && state_.left_out == 0 &&
         !lbfgs_->state().gradient.empty();
}

// With s^2 = (1 - fall) loss / freedom the step's length in standard errors is the root of fall loss / s^2: by the
// quadratic model the loss rises by s^2 where all unknowns together are a standard error from its least.
template <class T>
typename Training<T>::Finish Training<T>::finish(const Loss& loss, bool takes_any, IterationReport& report) {
  constexpr double kFar = 0.1, kNear = 0.01;             // standard errors
  constexpr double kAsForetold = 0.75, kMuchOfIt = 0.1;  // of the fall that the model has
  constexpr std::array kDampings{0.0, 1e-8, 1e-6, 1e-4, 1e-2, 1.0, 100.0};
  const double start = lbfgs_->state().loss;
  report.loss = unit_ * start;
  report.gradient_norm = unit_ * norm(std::span<const T>(lbfgs_->state().gradient));
  const std::optional<SquaresModel> model = squares_(state_.place, state_.parameters);
  if (!model) return Finish::none;
  SquaresStep step = model->step(0);
  const double left = std::max(1 - step.fall, std::numeric_limits<double>::epsilon());
  const double distance = std::sqrt(step.fall * model->freedom / left);
  if (!(distance > (state_.by_squares > 0 ? kNear : kFar))) return Finish::near;
  // What a hundredth of a standard error is worth. A parameter that the data would have beyond its bound comes nearer
  // to it for ever, by steps that are worth less.
  const double worthwhile = kNear * kNear * left * start / model->freedom;
  double best = start;
  std::vector<T> parameters, gradient, trial(state_.parameters.size());
  for (const double damping : kDampings) {
    if (damping > 0) step = model->step(damping);
    for (std::size_t i = 0; i < trial.size(); ++i) {
      trial[i] = static_cast<T>(static_cast<double>(state_.parameters[i]) + step.step[i]);
    }
    const double value = loss(state_.place, trial, gradient_) / unit_;
    const bool is_good = left_out_() == 0 && std::isfinite(value) &&
                         std::isfinite(norm(std::span<const T>(gradient_))) && detail::is_lower<T>(value, start) &&
                         start - value > worthwhile;
    const double share = (start - value) / (step.fall * start);
    if (!takes_any && !(is_good && share > kAsForetold)) return Finish::none;
    if (!is_good || !(value < best)) continue;
    best = value;
    parameters = trial;
    gradient = gradient_;
    if (share > kMuchOfIt) break;
  }
  if (parameters.empty()) return Finish::none;
  state_.parameters = std::move(parameters);
  report.loss = unit_ * best;
  report.gradient_norm = unit_ * norm(std::span<const T>(gradient));
  report.learning_rate = 1;
  lbfgs_->restore({.pairs = {}, .loss = best, .gradient = std::move(gradient)});
  ++state_.by_squares;
  return Finish::stepped;
}

// What is to be validated may throw after a step was made.
template <class T>
template <class Part>
IterationReport Training<T>::undone_if_it_throws(const Part& part) {
  TrainingState<T> before = state();
  try {
    return part();
  } catch (...) {
    restore(std::move(before));
    throw;
  }
}

template <class T>
void Training<T>::require_finite(double loss, double gradient_norm) const {
  if (std::isfinite(loss) && std::isfinite(gradient_norm)) return;
  const Phase& phase = phases_[state_.place.phase];
  detail::refuse(
      "iteration " + std::to_string(state_.place.total) +
          (phase.name.empty() ? "" : " (" + phase.name + ", " + std::to_string(state_.place.iteration) + ")"),
      detail::loss_text(loss, gradient_norm), "finite numbers",
      state_.place.total > 0
          ? "lower the learning rate, or clip the gradient"
          : "no step has been taken yet: give data in units in which they are of about 1, train in float64, or start "
            "from other parameters");
}

template <class T>
bool Training<T>::watch(double loss, std::span<const T> parameters, IterationReport& report) {
  report.watched = loss;
  if (validation_) {
    report.watched = state_.watched;
    if (state_.place.iteration % validate_every_ != 0) return false;
    report.watched = validation_(state_.place, parameters);
  }
  state_.watched = report.watched;
  report.best = note_if_best(report.watched, validation_ ? left_out_() : report.left_out, parameters);
  return true;
}

template <class T>
bool Training<T>::note_if_best(double loss, std::int64_t left_out, std::span<const T> parameters) {
  const bool fewer = left_out < state_.best_left_out;
  if (!std::isfinite(loss) || !(fewer || (left_out == state_.best_left_out && loss < state_.best_loss))) return false;
  state_.best_loss = loss;
  state_.best_left_out = left_out;
  state_.best.assign(parameters.begin(), parameters.end());
  state_.best_at = state_.place.total;
  return true;
}

template <class T>
IterationReport Training<T>::descend(const Loss& loss) {
  IterationReport report;
  report.place = state_.place;
  report.learning_rate = rate_->rate(state_.place.iteration);
  {
    struct Announced {
      std::optional<StepAhead<T>>& ahead;
      ~Announced() { ahead.reset(); }
    } const announced{ahead_};
    ahead_ = {&*descent_, report.learning_rate, number_};
    report.loss = loss(state_.place, state_.parameters, gradient_);
  }
  report.left_out = left_out_();
  report.gradient_norm = unit_ * clip(std::span<T>(gradient_), descent_->clipping);
  require_finite(report.loss, report.gradient_norm);
  const bool fresh = watch(report.loss, state_.parameters, report);
  const auto go_on = [&] {
    rate_->observe(fresh ? std::optional(report.watched) : std::nullopt);
    descent_->optimiser.step(state_.parameters, gradient_, report.learning_rate);
    ++number_;
    end_iteration(report, fresh, false);
    return report;
  };
  return validation_ && ends_phase(report, fresh, false) ? undone_if_it_throws(go_on) : go_on();
}

template <class T>
IterationReport Training<T>::quasi_newton(const Loss& loss) {
  IterationReport report;
  report.place = state_.place;
  if (lbfgs_->state().gradient.empty()) {
    const double start = loss(state_.place, state_.parameters, gradient_);
    require_finite(start, unit_ * norm(std::span<const T>(gradient_)));
    lbfgs_->restore({.loss = start / unit_, .gradient = gradient_});
    report.left_out = state_.left_out = left_out_();
    if (!validation_) watch(start, state_.parameters, report);
  }
  // By its loss the accepted point is known among those tried.
  std::vector<std::pair<double, std::int64_t>> tried{{lbfgs_->state().loss, state_.left_out}};
  // What comes back when fewer are left out may cost much, as a trajectory does that nearly went astray: no line search
  // would take it. Fewer are better all the same, and the search goes on from there anew.
  std::int64_t fewest = state_.left_out;
  double least = 0;
  std::vector<T> with_fewest;
  LbfgsReport step = lbfgs_->step(state_.parameters, [&](std::span<const T> parameters, std::span<T> gradient) {
    const double value = loss(state_.place, parameters, gradient) / unit_;
    const std::int64_t left_out = left_out_();
    tried.emplace_back(value, left_out);
    const bool fewer = left_out < fewest || (left_out == fewest && !with_fewest.empty() && value < least);
    if (fewer && std::isfinite(value)) {
      fewest = left_out;
      least = value;
      with_fewest.assign(parameters.begin(), parameters.end());
    }
    return left_out > state_.left_out ? std::numeric_limits<double>::infinity() : value;
  });
  for (const auto& [value, left_out] : tried) {
    if (value == step.loss && left_out <= state_.left_out) report.left_out = left_out;
  }
  if (fewest < report.left_out) {
    state_.parameters = with_fewest;
    lbfgs_->restart();
    step.status = LbfgsStatus::advanced;
    step.loss = least;
    report.left_out = fewest;
  }
  state_.left_out = report.left_out;
  report.loss = unit_ * step.loss;
  report.gradient_norm = unit_ * step.gradient_norm;
  report.learning_rate = step.step;
  const bool is_over =
      step.status != LbfgsStatus::advanced && !(may_finish() && finish(loss, true, report) == Finish::stepped);
  report.stalled = is_over && step.status == LbfgsStatus::stalled;
  const bool fresh = watch(report.loss, state_.parameters, report);
  end_iteration(report, fresh, is_over);
  return report;
}

template <class T>
bool Training<T>::ends_phase(const IterationReport& report, bool fresh, bool stalled) const {
  const Phase& phase = phases_[state_.place.phase];
  return stalled || state_.place.iteration + 1 == phase.iterations ||
         (phase.target && report.watched <= *phase.target) ||
         (phase.patience > 0 && fresh && state_.place.total - state_.best_at >= phase.patience);
}

template <class T>
void Training<T>::end_iteration(IterationReport& report, bool fresh, bool stalled) {
  const Phase& phase = phases_[state_.place.phase];
  report.phase_ended = ends_phase(report, fresh, stalled);
  ++state_.place.iteration;
  ++state_.place.total;
  last_.clear();
  if (!report.phase_ended) return;
  // Where validation decides, the last step's outcome may not have been looked at.
  if (validation_ && !(fresh && phase.is_lbfgs())) {
    const double last = validation_(state_.place, state_.parameters);
    note_if_best(last, left_out_(), state_.parameters);
  }
  last_ = state_.parameters;
  if (validation_ && !earlier_was_better()) {
    state_.earlier_best = state_.best;
    state_.earlier_best_loss = state_.best_loss;
    state_.earlier_best_left_out = state_.best_left_out;
  }
  const double best_loss = state_.best_loss;
  ++state_.place.phase;
  state_.place.iteration = 0;
  begin_phase();
  if (finished()) state_.best_loss = best_loss;
}

template <class T>
TrainingState<T> Training<T>::state() const {
  TrainingState<T> state = state_;
  if (descent_) state.optimiser = descent_->optimiser.state();
  if (rate_) state.plateau = rate_->state();
  if (lbfgs_) state.lbfgs = lbfgs_->state();
  return state;
}

template <class T>
void Training<T>::restore(TrainingState<T> state) {
  const std::size_t count = state_.parameters.size();
  const std::size_t earlier = state.earlier_best.size();
  if (state.parameters.size() != count || state.best.size() != count || (earlier != 0 && earlier != count)) {
    detail::refuse("training state", std::to_string(state.parameters.size()) + " parameters", std::to_string(count),
                   "restore the state of a training of the same net");
  }
  if (state.place.phase > phases_.size()) {
    detail::refuse("training state", "phase " + std::to_string(state.place.phase),
                   "at most " + std::to_string(phases_.size()), "restore the state of a training of the same phases");
  }
  state_.place = state.place;
  begin_phase();
  if (descent_) descent_->optimiser.restore(state.optimiser);
  if (rate_) rate_->restore(state.plateau);
  // The loss that a phase begins with is asked for again where the state was left in its first line search: by that one
  // a loss knows that what fails from then on is a step too far.
  if (lbfgs_ && state.place.iteration > 0) lbfgs_->restore(std::move(state.lbfgs));
  state_ = std::move(state);
  // These stand in the objects above, and nowhere once their phase has ended.
  state_.optimiser = {};
  state_.plateau = {};
  state_.lbfgs = {};
}

template class Training<float>;
template class Training<double>;

}  // namespace lockstep::train
