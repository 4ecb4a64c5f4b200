// Runs the tiles of an ensemble forward and back and adds up their gradients; one for each number type.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/ode/cpu/differentiable_rhs.h"
#include "lockstep/ode/cpu/engine.h"
#include "lockstep/ode/detail/save_rows.h"
#include "lockstep/ode/gradient.h"

namespace lockstep::ode::detail {

enum class Derivatives { all, none };

class GradientEngine {
 public:
  GradientEngine(Problem problem, Options options, Loss loss, GradientOptions gradient_options)
      : problem_(std::move(problem)),
        options_(std::move(options)),
        loss_(std::move(loss)),
        gradient_options_(std::move(gradient_options)) {
    expand_loss();
  }
  virtual ~GradientEngine() = default;

  virtual std::size_t weights() const = 0;
  virtual void set_weights(std::span<const double> weights) = 0;
  virtual void set_own_weights() { set_weights(problem_.rhs->weights()); }
  virtual const Gradients& evaluate(const RunControl& control, Derivatives derivatives = Derivatives::all) = 0;
  // What evaluate() returned, of an engine that is not asked again.
  virtual Gradients take() = 0;
  virtual std::vector<std::string> explain() const = 0;

  const Problem& problem() const { return problem_; }
  const Options& options() const { return options_; }
  void set_initial_states(std::span<const double> states);
  void set_parameters(std::span<const double> parameters);  // as many as before
  // As GradientSolver's, of a problem that is valid.
  void replace_trajectories(Problem problem, Loss loss);

 protected:
  // What follows from trajectories beside their numbers has changed with them.
  virtual void take_trajectories() = 0;
  // Of a squared error, its scale among them: [time][component] of this trajectory.
  const double* loss_weights_of(std::size_t trajectory) const;
  const double* loss_thresholds_of(std::size_t trajectory) const;  // likewise; null without

  Problem problem_;
  Options options_;
  Loss loss_;
  GradientOptions gradient_options_;

 private:
  void expand_loss();
  const double* row_of(const std::vector<double>& numbers, std::size_t trajectory) const;
  std::vector<double> loss_weights_, loss_thresholds_;  // [time][component], or [trajectory][time][component]
};

// Whether these are one for each target of the loss; else they are those of components, or none.
bool is_of_each_target(const std::vector<double>& numbers, const SquaredError& loss, std::size_t components);

// Throws Error when the two are not valid, or the problem has an event or a reset that cannot be differentiated.
void require_differentiable(const Problem& problem, const Options& options, SaveRows rows = SaveRows::full);

// With common control, the steps that the engine finds for all trajectories; nothing otherwise.
struct CommonSteps {
  std::vector<AcceptedStep> steps;
  std::vector<TrajectoryRecord> ends;  // [trajectory]
  std::span<const TrajectoryRecord> ends_of(std::size_t first, std::size_t count) const {
    return ends.empty() ? std::span<const TrajectoryRecord>() : std::span(ends).subspan(first, count);
  }
};
template <class T>
CommonSteps find_common_steps(const Problem& problem, const Options& options, const cpu::EnginePlan& plan,
                              const cpu::DifferentiableRhs<T>& rhs, const RunControl& control);

// Of a validated problem, for the options' precision.
std::unique_ptr<GradientEngine> make_gradient_engine(Problem problem, Options options, Loss loss,
                                                     GradientOptions gradient_options);

}  // namespace lockstep::ode::detail
