// The loss of a fit's phases: what it asks of data and options, and its value and gradient for a training.
#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/ode/detail/fit_solves.h"
#include "lockstep/ode/detail/refuse.h"
#include "lockstep/ode/fit.h"
#include "lockstep/ode/huber.h"

namespace lockstep::ode {
namespace {

using detail::count_of;
using detail::refuse;

}  // namespace

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
  const auto require_each = [&](const std::vector<double>& weights, const char* field) {
    if (weights.empty() || weights.size() == rhs->components()) return;
    refuse(field, count_of(weights.size()), std::to_string(rhs->components()) + ", one for each component, or none");
  };
  require_each(options.component_weights, "options.component_weights");
  for (const FitPhase& phase : options.phases)
    require_each(phase.component_weights, "options.phases.component_weights");
  detail::require_resets(*rhs, options);
  detail::require_starts(data, rhs->components(), options);
  detail::require_one_span(data, rhs->components(), options);
  detail::require_steps_at_impulses(rhs, data, options);
  parts_ = std::make_unique<Parts>();
  parts_->phases.resize(options.phases.size());
  parts_->shooting.resize(options.phases.size());
  parts_->batch_segments.resize(options.phases.size());
  parts_->rhs = std::move(rhs);
  parts_->data = std::move(data);
  if (options.huber_threshold) {
    parts_->thresholds =
        huber_thresholds(parts_->data, parts_->rhs->components(), options.component_weights, *options.huber_threshold);
  }
  // All that the loss has counts by its weights. More than this of the unit is no matter of theirs: float32 has no room
  // for it beside a state's own.
  const bool narrow = options.solve.precision == Precision::f32;
  parts_->weighed_unit = narrow ? std::clamp(options.loss_unit, 0x1p-96, 0x1p96) : options.loss_unit;
  const std::vector<double> stated_weights = options.component_weights;
  if (parts_->weighed_unit != 1) {
    if (options.component_weights.empty()) options.component_weights.assign(parts_->rhs->components(), 1.0);
    for (double& weight : options.component_weights) weight /= parts_->weighed_unit;
    for (FitPhase& phase : options.phases) {
      for (double& weight : phase.component_weights) weight /= parts_->weighed_unit;
    }
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
    if (!parts_->thresholds.empty()) begun.states = detail::without_glitches(begun, n, parts_->thresholds);
    parts_->filled = detail::without_gaps(begun, n);
    for (const detail::Moments& of_component : detail::moments(begun, n)) {
      parts_->spreads.push_back(of_component.size());
    }
    parts_->units = detail::units_of_starts(parts_->data, stated_weights, parts_->spreads);
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
void FitLoss<T>::stop_when(const CancelToken* cancel) {
  parts_->control.cancel = cancel;
}

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
  if (!found || (parts_->must_stop(phase) && may_fail)) {
    std::fill(gradient.begin(), gradient.end(), T(0));
    return std::numeric_limits<double>::infinity();
  }
  const auto& [loss, gradients] = *found;
  parts_->require_success(place);
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
