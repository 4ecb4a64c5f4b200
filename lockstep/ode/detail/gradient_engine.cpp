#include "lockstep/ode/detail/gradient_engine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/ode/cpu/engine.h"
#include "lockstep/ode/detail/problem_knots.h"
#include "lockstep/ode/differentiable_event.h"

namespace lockstep::ode::detail {
namespace {

class DiscardingSink : public SolutionSink {
 public:
  DiscardingSink(Solution& solution) : solution_(solution) {}
  SolutionBlock acquire(std::size_t first, std::size_t count) override { return solution_.block(first, count); }
  void commit(const SolutionBlock&) override {}

 private:
  Solution& solution_;
};

}  // namespace

void GradientEngine::set_initial_states(std::span<const double> states) {
  const bool finite = std::all_of(states.begin(), states.end(), [](double x) { return std::isfinite(x); });
  if (states.size() != problem_.initial_states.size() || !finite) {
    throw Error(ErrorKind::invalid_argument,
                {.field = "initial_states",
                 .found = finite ? std::to_string(states.size()) + " numbers" : "numbers that are not finite",
                 .expected = std::to_string(problem_.initial_states.size()) + " finite numbers"});
  }
  std::copy(states.begin(), states.end(), problem_.initial_states.begin());
}

void GradientEngine::set_parameters(std::span<const double> parameters) {
  std::ranges::copy(parameters, problem_.parameters.begin());  // tiles refer to them
  if (ProblemKnots(problem_).moves_knots()) take_trajectories();
}

void GradientEngine::replace_trajectories(Problem problem, Loss loss) {
  // Tiles and samples refer to these vectors, and are made for their sizes.
  for (const auto& [name, member] : {std::pair{"initial_states", &Problem::initial_states},
                                     {"parameters", &Problem::parameters},
                                     {"start_times", &Problem::start_times},
                                     {"end_times", &Problem::end_times},
                                     {"save_times", &Problem::save_times}}) {
    if ((problem.*member).size() != (problem_.*member).size()) {
      throw Error(ErrorKind::invalid_argument, {.field = std::string("problem.") + name,
                                                .found = std::to_string((problem.*member).size()) + " numbers",
                                                .expected = std::to_string((problem_.*member).size()) + ", as before"});
    }
    problem_.*member = std::move(problem.*member);
  }
  problem_.impulses = std::move(problem.impulses);
  problem_.first_impulse = std::move(problem.first_impulse);
  loss_ = std::move(loss);
  expand_loss();
  take_trajectories();
}

void GradientEngine::expand_loss() {
  loss_weights_.clear();
  loss_thresholds_.clear();
  const auto* squares = std::get_if<SquaredError>(&loss_);
  if (squares == nullptr) return;
  const std::size_t n = problem_.rhs->components(), row = problem_.save_points() * n;
  const auto count = [&](const std::vector<double>& given) {
    return is_of_each_target(given, *squares, n) ? given.size() : row;
  };
  const std::vector<double>&weights = squares->weights, &thresholds = squares->thresholds;
  for (std::size_t i = 0; i < count(weights); ++i) {
    loss_weights_.push_back(squares->scale * (weights.empty() ? 1.0 : weights[i % weights.size()]));
  }
  for (std::size_t i = 0; !thresholds.empty() && i < count(thresholds); ++i) {
    loss_thresholds_.push_back(thresholds[i % thresholds.size()]);
  }
}

const double* GradientEngine::row_of(const std::vector<double>& numbers, std::size_t trajectory) const {
  const std::size_t row = problem_.save_points() * problem_.rhs->components();
  return numbers.data() + (numbers.size() == row ? 0 : trajectory * row);
}

const double* GradientEngine::loss_weights_of(std::size_t trajectory) const {
  return row_of(loss_weights_, trajectory);
}

const double* GradientEngine::loss_thresholds_of(std::size_t trajectory) const {
  return loss_thresholds_.empty() ? nullptr : row_of(loss_thresholds_, trajectory);
}

bool is_of_each_target(const std::vector<double>& numbers, const SquaredError& loss, std::size_t components) {
  return numbers.size() == loss.targets.size() && numbers.size() != components;
}

void require_differentiable(const Problem& problem, const Options& options, SaveRows rows) {
  validate(problem, options, rows);
  for (std::size_t i = 0; i < problem.resets.size(); ++i) {
    const auto require = [i](const Rhs& function, bool differentiable, const char* member, const char* remedy) {
      if (differentiable) return;
      throw Error(ErrorKind::unsupported, {.field = "problem.resets[" + std::to_string(i) + "]." + member,
                                           .found = function->description() + ", which has no derivative",
                                           .expected = "a function that can be differentiated",
                                           .remedy = remedy});
    };
    const auto& [function, state, direction] = problem.resets[i];
    require(function, dynamic_cast<const DifferentiableEvent*>(function.get()) != nullptr, "function",
            "use ode::differentiable_event_function");
    require(state, dynamic_cast<const DifferentiableReset*>(state.get()) != nullptr, "state",
            "use ode::differentiable_reset_function");
  }
  if (!problem.event || dynamic_cast<const DifferentiableEvent*>(problem.event->function.get()) != nullptr) return;
  throw Error(ErrorKind::unsupported, {.field = "problem.event",
                                       .found = problem.event->function->description() + ", which has no derivative",
                                       .expected = "an event function that can be differentiated",
                                       .remedy = "use ode::differentiable_event_function"});
}

template <class T>
CommonSteps find_common_steps(const Problem& problem, const Options& options, const cpu::EnginePlan& plan,
                              const cpu::DifferentiableRhs<T>& rhs, const RunControl& control) {
  CommonSteps common;
  if (options.control != StepControl::common) return common;
  Solution solution(options.precision, problem.trajectories(), problem.rhs->components(), problem.save_times,
                    problem.save_times_per_trajectory);
  DiscardingSink sink(solution);
  cpu::advance_together<T>(problem, options, plan, sink, control, &common.steps, rhs.function, rhs.jacobian);
  common.ends.assign(solution.records().begin(), solution.records().end());
  return common;
}
template CommonSteps find_common_steps(const Problem&, const Options&, const cpu::EnginePlan&,
                                       const cpu::DifferentiableRhs<float>&, const RunControl&);
template CommonSteps find_common_steps(const Problem&, const Options&, const cpu::EnginePlan&,
                                       const cpu::DifferentiableRhs<double>&, const RunControl&);

}  // namespace lockstep::ode::detail
