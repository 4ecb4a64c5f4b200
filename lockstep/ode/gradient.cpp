#include "lockstep/ode/gradient.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"
#include "lockstep/ode/detail/gradient_engine.h"
#include "lockstep/ode/detail/opened_parameters.h"

namespace lockstep::ode {
namespace {

void require_function(const Loss& loss) {
  const auto require = [&]<class Function>(const Function* function, const char* name) {
    if (function == nullptr || *function) return;
    throw Error(ErrorKind::invalid_argument,
                {.field = "loss", .found = std::string("an empty ") + name, .expected = "a function"});
  };
  require(std::get_if<TrajectoryLoss>(&loss), "TrajectoryLoss");
  require(std::get_if<EnsembleLoss>(&loss), "EnsembleLoss");
  require(std::get_if<EndLoss>(&loss), "EndLoss");
}

void check(const Problem& problem, const Options& options, const Loss& loss) {
  detail::require_differentiable(problem, options, detail::SaveRows::may_end_early);
  require_function(loss);
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
  const auto require_count = [&](const std::vector<double>& numbers, const char* field) {
    if (numbers.empty() || numbers.size() == n || detail::is_of_each_target(numbers, *squares, n)) return;
    throw Error(ErrorKind::invalid_argument,
                {.field = field,
                 .found = std::to_string(numbers.size()) + " numbers",
                 .expected = std::to_string(n) + ", one for each component, " +
                             std::to_string(squares->targets.size()) + ", one for each target, or none"});
  };
  require_count(squares->weights, "loss.weights");
  require_count(squares->thresholds, "loss.thresholds");
  for (const double threshold : squares->thresholds) {
    if (threshold > 0) continue;
    throw Error(ErrorKind::invalid_argument, {.field = "loss.thresholds",
                                              .found = number_text(threshold),
                                              .expected = "numbers greater than 0, or infinity for none"});
  }
}

}  // namespace

class GradientSolver::Implementation {
 public:
  Implementation(Problem problem, Options options, Loss loss, GradientOptions gradient_options)
      : opened_(detail::OpenedParameters::of(problem)) {
    const StandardArithmetic arithmetic;
    if (opened_) problem = opened_->opened(std::move(problem));
    check(problem, options, loss);
    engine_ = detail::make_gradient_engine(std::move(problem), std::move(options), std::move(loss),
                                           std::move(gradient_options));
  }

  detail::GradientEngine& engine() { return *engine_; }
  const detail::GradientEngine& engine() const { return *engine_; }
  std::size_t weights() const { return engine_->weights() + (opened_ ? opened_->count() : 0); }

  void set_weights(std::span<const double> weights) {
    engine_->set_weights(weights.first(engine_->weights()));
    if (opened_) open(weights.subspan(engine_->weights()));
  }
  void set_own_weights() {
    engine_->set_own_weights();
    if (opened_) open(opened_->starts());
  }

  const Gradients& evaluate(const RunControl& control, detail::Derivatives derivatives) {
    const Gradients& found = engine_->evaluate(control, derivatives);
    if (!opened_) return found;
    closed_ = found;
    opened_->close(closed_, x_, engine_->options().precision);
    return closed_;
  }

  // What evaluate() returned last, to be kept; this is not asked again.
  Gradients take() { return opened_ ? std::move(closed_) : engine_->take(); }

  void replace_trajectories(Problem problem, Loss loss) {
    if (opened_) problem = opened_->opened(std::move(problem));
    check(problem, engine_->options(), loss);
    engine_->replace_trajectories(std::move(problem), std::move(loss));
  }

 private:
  void open(std::span<const double> x) {
    x_.assign(x.begin(), x.end());
    engine_->set_parameters(opened_->parameters(x_, engine_->options().precision));
  }

  std::unique_ptr<detail::GradientEngine> engine_;
  std::optional<detail::OpenedParameters> opened_;  // where resets read trained parameters
  std::vector<double> x_;                           // of these
  Gradients closed_;
};

GradientSolver::GradientSolver(Problem problem, Options options, Loss loss, GradientOptions gradient_options)
    : implementation_(std::make_unique<Implementation>(std::move(problem), std::move(options), std::move(loss),
                                                       std::move(gradient_options))) {}
GradientSolver::~GradientSolver() = default;
GradientSolver::GradientSolver(GradientSolver&&) noexcept = default;
GradientSolver& GradientSolver::operator=(GradientSolver&&) noexcept = default;

std::size_t GradientSolver::weights() const { return implementation_->weights(); }

void GradientSolver::set_weights(std::span<const double> weights) {
  const StandardArithmetic arithmetic;
  if (weights.size() != this->weights()) {
    throw Error(ErrorKind::invalid_argument, {.field = "weights",
                                              .found = std::to_string(weights.size()) + " numbers",
                                              .expected = std::to_string(this->weights()),
                                              .remedy = "give them in the order of the right-hand side's weights()"});
  }
  implementation_->set_weights(weights);
}

const Gradients& GradientSolver::evaluate(std::span<const double> weights, const RunControl& control) {
  const StandardArithmetic arithmetic;
  set_weights(weights);
  return implementation_->evaluate(control, detail::Derivatives::all);
}

const Gradients& GradientSolver::evaluate_loss(std::span<const double> weights, const RunControl& control) {
  const StandardArithmetic arithmetic;
  set_weights(weights);
  return implementation_->evaluate(control, detail::Derivatives::none);
}

const Gradients& GradientSolver::evaluate(const RunControl& control) {
  const StandardArithmetic arithmetic;
  implementation_->set_own_weights();
  return implementation_->evaluate(control, detail::Derivatives::all);
}

void GradientSolver::set_initial_states(std::span<const double> states) {
  const StandardArithmetic arithmetic;
  implementation_->engine().set_initial_states(states);
}

void GradientSolver::replace_trajectories(Problem problem, Loss loss) {
  const StandardArithmetic arithmetic;
  implementation_->replace_trajectories(std::move(problem), std::move(loss));
}

std::vector<std::string> GradientSolver::explain() const { return implementation_->engine().explain(); }

Gradients solve_with_gradients(const Problem& problem, const Options& options, const Loss& loss,
                               const GradientOptions& gradient_options, const RunControl& control) {
  const StandardArithmetic arithmetic;
  GradientSolver solver(problem, options, loss, gradient_options);
  solver.evaluate(control);
  return solver.implementation_->take();
}

}  // namespace lockstep::ode
