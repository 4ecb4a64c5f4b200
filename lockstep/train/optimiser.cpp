#include "lockstep/train/optimiser.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/core/names.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/train/detail/positive.h"
#include "lockstep/train/detail/update_kernels.h"

namespace lockstep::train {
namespace {

constexpr std::array<std::string_view, 6> kRuleNames{"sgd", "nesterov", "adam", "adamw", "adamax", "radam"};

bool has_second(Rule rule) { return rule != Rule::sgd && rule != Rule::nesterov; }

detail::Update plain_update(Rule rule) {
  switch (rule) {
    case Rule::sgd:
      return detail::Update::momentum;
    case Rule::nesterov:
      return detail::Update::nesterov;
    case Rule::adamax:
      return detail::Update::maximum;
    default:
      return detail::Update::root_mean_square;
  }
}

// Liu et al., eqs. 3 to 6: 0 while the variance of the adaptive rate is not yet defined well enough, otherwise the
// factor r that makes it that of many steps.
double rectification(double beta2, double beta2_power, double steps) {
  const double limit = 2 / (1 - beta2) - 1;
  const double rho = limit - 2 * steps * beta2_power / (1 - beta2_power);
  if (!(rho > 5)) return 0;
  return std::sqrt(((rho - 4) * (rho - 2) * limit) / ((limit - 4) * (limit - 2) * rho));
}

template <class T>
void copy_into(AlignedBuffer<T>& to, const std::vector<T>& from, const char* name) {
  if (from.size() != to.size()) {
    detail::refuse(std::string("optimiser state: ") + name, std::to_string(from.size()) + " numbers",
                   std::to_string(to.size()), "restore the state of the same rule and number of parameters");
  }
  std::copy(from.begin(), from.end(), to.data());
}

}  // namespace

std::span<const std::string_view> rule_names() { return kRuleNames; }

std::string_view to_string(Rule rule) { return kRuleNames[static_cast<std::size_t>(rule)]; }

Rule parse_rule(const std::string& field, std::string_view name) {
  const auto found = std::find(kRuleNames.begin(), kRuleNames.end(), name);
  if (found == kRuleNames.end()) throw unknown_name(field, name, kRuleNames);
  return static_cast<Rule>(found - kRuleNames.begin());
}

void OptimiserOptions::validate() const {
  detail::require_fraction("optimiser.momentum", momentum);
  detail::require_fraction("optimiser.beta1", beta1);
  detail::require_fraction("optimiser.beta2", beta2);
  detail::require_positive("optimiser.epsilon", epsilon);
  detail::require_not_negative("optimiser.weight_decay", weight_decay);
  if (cpu_target) require_cpu_target(*cpu_target);
}

template <class T>
Optimiser<T>::Optimiser(const OptimiserOptions& options, std::size_t parameter_count)
    : options_(options), first_(parameter_count), second_(has_second(options.rule) ? parameter_count : 0) {
  options_.validate();
}

template <class T>
void Optimiser<T>::step(std::span<T> parameters, std::span<const T> gradient, double learning_rate) {
  const StandardArithmetic arithmetic;
  if (parameters.size() != first_.size() || gradient.size() != first_.size()) {
    detail::refuse("optimiser step",
                   std::to_string(parameters.size()) + " parameters, a gradient of " + std::to_string(gradient.size()),
                   std::to_string(first_.size()) + " of each");
  }
  detail::require_not_negative("learning rate", learning_rate);
  ++steps_;
  beta1_power_ *= options_.beta1;
  beta2_power_ *= options_.beta2;
  double step = learning_rate;
  double root_scale = 1;
  detail::Update update = plain_update(options_.rule);
  if (has_second(options_.rule)) {
    step /= 1 - beta1_power_;
    root_scale = 1 / std::sqrt(1 - beta2_power_);
  }
  if (options_.rule == Rule::radam) {
    const double factor = rectification(options_.beta2, beta2_power_, static_cast<double>(steps_));
    if (factor == 0)
      update = detail::Update::mean_alone;
    else
      step *= factor;
  }
  const bool momentum_alone = !has_second(options_.rule);
  const double beta1 = momentum_alone ? options_.momentum : options_.beta1;
  const bool decay_apart = options_.rule == Rule::adamw;
  const detail::UpdateScalars<T> scalars{
      .step = static_cast<T>(step),
      .root_scale = static_cast<T>(root_scale),
      .epsilon = static_cast<T>(options_.epsilon),
      .beta1 = static_cast<T>(beta1),
      .beta1_rest = static_cast<T>(1 - beta1),
      .beta2 = static_cast<T>(options_.beta2),
      .beta2_rest = static_cast<T>(1 - options_.beta2),
      .added_decay = static_cast<T>(decay_apart ? 0 : options_.weight_decay),
      .keep = static_cast<T>(decay_apart ? 1 - learning_rate * options_.weight_decay : 1),
  };
  const CpuTarget target = options_.cpu_target.value_or(best_cpu_target());
  detail::update_loop<T>(update, target)(parameters.data(), gradient.data(), first_.data(), second_.data(),
                                         first_.size(), scalars);
}

template <class T>
OptimiserState<T> Optimiser<T>::state() const {
  return {steps_,
          beta1_power_,
          beta2_power_,
          {first_.data(), first_.data() + first_.size()},
          {second_.data(), second_.data() + second_.size()}};
}

template <class T>
void Optimiser<T>::restore(const OptimiserState<T>& state) {
  copy_into(first_, state.first, "first");
  copy_into(second_, state.second, "second");
  steps_ = state.steps;
  beta1_power_ = state.beta1_power;
  beta2_power_ = state.beta2_power;
}

template class Optimiser<float>;
template class Optimiser<double>;

}  // namespace lockstep::train
