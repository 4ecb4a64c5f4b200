#include "lockstep/ode/detail/opened_parameters.h"

#include <algorithm>
#include <string>
#include <utility>

#include "lockstep/ode/detail/refuse.h"

namespace lockstep::ode::detail {
namespace {

const WithTrained* trained_in(const Rhs& function) { return dynamic_cast<const WithTrained*>(function.get()); }

double value_at(const TrainedParameter& of, double x, Precision precision) {
  return precision == Precision::f32 ? static_cast<double>(of.value(static_cast<float>(x))) : of.value(x);
}
double slope_at(const TrainedParameter& of, double x, Precision precision) {
  return precision == Precision::f32 ? static_cast<double>(of.slope(static_cast<float>(x))) : of.slope(x);
}

}  // namespace

Rhs untrained(const Rhs& function) {
  const WithTrained* const with = trained_in(function);
  return with == nullptr ? function : with->untrained();
}

std::vector<double> with_values(std::span<const double> given, std::size_t parameters,
                                std::span<const TrainedParameter> trained, std::span<const double> values) {
  const std::size_t own = parameters - trained.size();
  const std::size_t rows = own == 0 ? 1 : given.size() / own;
  std::vector<double> all;
  for (std::size_t row = 0; row < rows; ++row) {
    auto next = given.begin() + static_cast<std::ptrdiff_t>(row * own);
    for (std::size_t i = 0; i < parameters; ++i) {
      const auto found = std::ranges::find(trained, i, &TrainedParameter::parameter);
      const auto place = static_cast<std::size_t>(found - trained.begin());
      all.push_back(found == trained.end() ? *next++ : values[place]);
    }
  }
  return all;
}

std::optional<OpenedParameters> OpenedParameters::of(const Problem& problem) {
  const WithTrained* const rhs = trained_in(problem.rhs);
  bool any = false;
  for (std::size_t i = 0; i < problem.resets.size(); ++i) {
    const Reset& reset = problem.resets[i];
    for (const auto& [function, member] : {std::pair{&reset.function, "function"}, {&reset.state, "state"}}) {
      const WithTrained* const with = trained_in(*function);
      if (with == nullptr) continue;
      any = true;
      if (rhs != nullptr && rhs->trained() == with->trained()) continue;
      refuse("resets[" + std::to_string(i) + "]." + member, (*function)->description(),
             "the parameters that the right-hand side trains", "give train_parameters() the same ones for both");
    }
  }
  if (!any) return std::nullopt;
  return OpenedParameters(rhs->untrained(), rhs->trained());
}

Problem OpenedParameters::opened(Problem problem) {
  given_ = std::move(problem.parameters);
  std::vector<double> values;
  for (const TrainedParameter& each : trained_) values.push_back(each.start);
  problem.parameters = with_values(given_, untrained_->parameters(), trained_, values);
  problem.rhs = untrained_;
  for (Reset& reset : problem.resets) {
    reset.function = untrained(reset.function);
    reset.state = untrained(reset.state);
  }
  return problem;
}

std::vector<double> OpenedParameters::parameters(std::span<const double> x, Precision precision) const {
  std::vector<double> values;
  for (std::size_t i = 0; i < trained_.size(); ++i) values.push_back(value_at(trained_[i], x[i], precision));
  return with_values(given_, untrained_->parameters(), trained_, values);
}

void OpenedParameters::close(Gradients& gradients, std::span<const double> x, Precision precision) const {
  const std::size_t width = untrained_->parameters();
  std::vector<double> bars(trained_.size()), given;
  for (std::size_t at = 0; at < gradients.parameters.size(); ++at) {
    const auto found = std::ranges::find(trained_, at % width, &TrainedParameter::parameter);
    if (found == trained_.end()) {
      given.push_back(gradients.parameters[at]);
    } else {
      bars[static_cast<std::size_t>(found - trained_.begin())] += gradients.parameters[at];
    }
  }
  for (std::size_t i = 0; i < bars.size(); ++i)
    gradients.weights.push_back(bars[i] * slope_at(trained_[i], x[i], precision));
  gradients.parameters = std::move(given);
}

std::vector<double> OpenedParameters::starts() const {
  std::vector<double> all;
  for (const TrainedParameter& each : trained_) all.push_back(each.first());
  return all;
}

}  // namespace lockstep::ode::detail
