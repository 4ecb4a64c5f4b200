#include "lockstep/ode/detail/weight_columns.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/hash.h"
#include "lockstep/ode/detail/knots_of_inner.h"
#include "lockstep/ode/differentiable_tile.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode::detail {
namespace {

// A right-hand side at other weights than its own.
class AtWeights final : public KnotsOfInner {
 public:
  AtWeights(Rhs inner, std::span<const double> weights)
      : KnotsOfInner(std::move(inner)), weights_(weights.begin(), weights.end()) {}

  std::size_t components() const override { return inner_->components(); }
  std::size_t parameters() const override { return inner_->parameters(); }
  std::string description() const override { return inner_->description(); }
  std::string digest() const override {
    return ContentHash().add("weights").add(inner_->digest()).add(std::span<const double>(weights_)).hex();
  }
  std::shared_ptr<const TileFunction<float>> lower_f32(CpuTarget target) const override {
    return lower_differentiable<float>(*this, target);
  }
  std::shared_ptr<const TileFunction<double>> lower_f64(CpuTarget target) const override {
    return lower_differentiable<double>(*this, target);
  }
  std::vector<double> weights() const override { return weights_; }
  std::shared_ptr<DifferentiableTile<float>> differentiable_f32(CpuTarget target) const override {
    return with_weights(inner_->differentiable_f32(target));
  }
  std::shared_ptr<DifferentiableTile<double>> differentiable_f64(CpuTarget target) const override {
    return with_weights(inner_->differentiable_f64(target));
  }
  std::shared_ptr<DifferentiableTile<float>> directional_f32(CpuTarget target) const override {
    return with_weights(inner_->directional_f32(target));
  }
  std::shared_ptr<DifferentiableTile<double>> directional_f64(CpuTarget target) const override {
    return with_weights(inner_->directional_f64(target));
  }

 private:
  template <class T>
  std::shared_ptr<DifferentiableTile<T>> with_weights(std::shared_ptr<DifferentiableTile<T>> tile) const {
    if (tile) tile->set_weights(std::vector<T>(weights_.begin(), weights_.end()));
    return tile;
  }
  std::vector<double> weights_;
};

}  // namespace

Rhs at_weights(Rhs rhs, std::span<const double> weights) {
  return std::make_shared<AtWeights>(std::move(rhs), weights);
}

std::optional<std::vector<double>> weight_columns(Problem problem, std::span<const double> weights, Options options,
                                                  const RunControl& control) {
  constexpr double kStep = 1e-3, kTighter = 0.01, kLeastTolerance = 1e-13;
  options.precision = Precision::f64;
  if (options.control != StepControl::fixed) {
    const auto tighten = [&](double& tolerance) {
      tolerance = std::max(kTighter * tolerance, std::min(tolerance, kLeastTolerance));
    };
    tighten(options.rtol);
    tighten(options.atol);
    for (double& each : options.component_atol) tighten(each);
  }
  const Rhs rhs = problem.rhs;
  const std::size_t numbers = problem.trajectories() * problem.save_points() * rhs->components();
  std::vector<double> columns(numbers * weights.size()), moved(weights.begin(), weights.end());
  for (std::size_t w = 0; w < weights.size(); ++w) {
    const double step = kStep * std::max(1.0, std::fabs(weights[w]));
    for (const double sign : {1.0, -1.0}) {
      moved[w] = weights[w] + sign * step;
      problem.rhs = at_weights(rhs, moved);
      const Solution solution = solve(problem, options, control);
      if (control.cancelled()) throw Error(ErrorKind::cancelled, {.found = "derivatives stopped by their caller"});
      for (std::size_t i = 0; i < solution.trajectories(); ++i) {
        if (solution.record(i).status != Status::success) return std::nullopt;
      }
      const auto states = solution.states<double>();
      for (std::size_t at = 0; at < numbers; ++at) columns[at * weights.size() + w] += sign * states[at] / (2 * step);
    }
    moved[w] = weights[w];
  }
  return columns;
}

}  // namespace lockstep::ode::detail
