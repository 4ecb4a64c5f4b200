#include "lockstep/ode/gradient.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/ode/detail/gradient_engine.h"

namespace lockstep::ode {
namespace {

void check(const Problem& problem, const Options& options, const Loss& loss) {
  detail::require_differentiable(problem, options, detail::SaveRows::may_end_early);
  const auto* squares = std::get_if<SquaredError>(&loss);
  if (squares == nullptr) return;
  const std::size_t n = problem.rhs->components();
  const std::size_t row = problem.save_points() * n;
  if (squares->targets.size() != problem.trajectories() * row) {
    throw Error(ErrorKind::invalid_argument, {.field = "loss.targets",
                                              .found = std::to_string(squares->targets.size()) + " numbers",
                                              .expected = std::to_string(problem.trajectories() * row) + ": " +
                                                          std::to_string(problem.trajectories()) + " trajectories x " +
                                                          std::to_string(problem.save_points()) + " save points x " +
                                                          std::to_string(n) + " components"});
  }
  for (std::size_t i = 0; i < squares->targets.size(); ++i) {
    if (!std::isinf(squares->targets[i])) continue;
    throw Error(ErrorKind::invalid_argument,
                {.field = "loss.targets",
                 .found = "infinity at trajectory " + std::to_string(i / row) + ", save point " +
                          std::to_string(i % row / n) + ", component " + std::to_string(i % n),
                 .expected = "finite numbers, or NaN where nothing was observed"});
  }
  if (!squares->weights.empty() && squares->weights.size() != n && !detail::has_weight_of_each_target(*squares, n)) {
    throw Error(ErrorKind::invalid_argument,
                {.field = "loss.weights",
                 .found = std::to_string(squares->weights.size()) + " numbers",
                 .expected = std::to_string(n) + ", one for each component, " +
                             std::to_string(squares->targets.size()) + ", one for each target, or none"});
  }
}

}  // namespace

class GradientSolver::Implementation {
 public:
  Implementation(Problem problem, Options options, Loss loss, GradientOptions gradient_options)
      : engine(detail::make_gradient_engine(std::move(problem), std::move(options), std::move(loss),
                                            std::move(gradient_options))) {}
  std::unique_ptr<detail::GradientEngine> engine;
};

GradientSolver::GradientSolver(Problem problem, Options options, Loss loss, GradientOptions gradient_options) {
  check(problem, options, loss);
  implementation_ = std::make_unique<Implementation>(std::move(problem), std::move(options), std::move(loss),
                                                     std::move(gradient_options));
}
GradientSolver::~GradientSolver() = default;
GradientSolver::GradientSolver(GradientSolver&&) noexcept = default;
GradientSolver& GradientSolver::operator=(GradientSolver&&) noexcept = default;

std::size_t GradientSolver::weights() const { return implementation_->engine->weights(); }

void GradientSolver::set_weights(std::span<const double> weights) {
  if (weights.size() != this->weights()) {
    throw Error(ErrorKind::invalid_argument, {.field = "weights",
                                              .found = std::to_string(weights.size()) + " numbers",
                                              .expected = std::to_string(this->weights()),
                                              .remedy = "give them in the order of the right-hand side's weights()"});
  }
  implementation_->engine->set_weights(weights);
}

const Gradients& GradientSolver::evaluate(std::span<const double> weights, const RunControl& control) {
  const StandardArithmetic arithmetic;
  set_weights(weights);
  return implementation_->engine->evaluate(control);
}

const Gradients& GradientSolver::evaluate_loss(std::span<const double> weights, const RunControl& control) {
  const StandardArithmetic arithmetic;
  set_weights(weights);
  return implementation_->engine->evaluate(control, detail::Derivatives::none);
}

const Gradients& GradientSolver::evaluate(const RunControl& control) {
  const StandardArithmetic arithmetic;
  implementation_->engine->set_weights(implementation_->engine->problem().rhs->weights());
  return implementation_->engine->evaluate(control);
}

void GradientSolver::set_initial_states(std::span<const double> states) {
  implementation_->engine->set_initial_states(states);
}

void GradientSolver::replace_trajectories(Problem problem, Loss loss) {
  check(problem, implementation_->engine->options(), loss);
  implementation_->engine->replace_trajectories(std::move(problem), std::move(loss));
}

std::vector<std::string> GradientSolver::explain() const { return implementation_->engine->explain(); }

Gradients solve_with_gradients(const Problem& problem, const Options& options, const Loss& loss,
                               const GradientOptions& gradient_options, const RunControl& control) {
  const StandardArithmetic arithmetic;
  return GradientSolver(problem, options, loss, gradient_options).evaluate(control);
}

}  // namespace lockstep::ode
