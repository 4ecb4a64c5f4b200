// Derivatives of a loss over saved states: by weights, initial states and parameters, through the whole solve.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/core/run_control.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/solution.h"
#include "lockstep/ode/unresolved_derivatives.h"

namespace lockstep::ode {

// L = scale * sum over trajectories, save points and components of weight h(e), e = state - target and h(e) = e^2, or
// with a threshold d where |e| is more than that d (2 |e| - d): twice the loss of Huber (Ann. Math. Stat. 35 (1964)
// 73), so that errors within it cost, to the last bit, what they cost without.
struct SquaredError {
  std::vector<double> targets;  // [trajectory][time][component]; NaN: not observed, which adds nothing
  // [component], or [trajectory][time][component] as targets, whatever finite number where these are NaN; empty: 1.
  std::vector<double> weights = {};
  double scale = 1;
  std::vector<double> thresholds = {};  // of errors, > 0, likewise or infinite; empty: infinite
};

// L = sum of what this returns for each trajectory, given its states[time][component]; sets gradient[time][component]
// to its derivative. Called from several threads at once, never for a trajectory that failed and is left out. Where an
// event ended the trajectory, later states are NaN and their gradient is ignored; SquaredError counts those before it.
using TrajectoryLoss =
    std::function<double(std::size_t trajectory, std::span<const double> states, std::span<double> gradient)>;

// Any function of all saved states at once; both spans [trajectory][time][component], gradient zero at first. States of
// failed trajectories are NaN where they never arrived; their gradient is ignored. Costs a second forward solve.
using EnsembleLoss = std::function<double(std::span<const double> states, std::span<double> gradient)>;

// Where a trajectory ended: at its terminal event, or at its end time, which is a constant.
struct TrajectoryEnd {
  bool terminated = false;
  double time = 0;
  std::span<const double> state;  // [component]
};
// Derivatives of a loss, zero at first, to be set.
struct EndSlopes {
  std::span<double> states;     // [time][component]; ignored where the trajectory never arrived
  std::span<double> end_state;  // [component]
  double end_time = 0;          // counts for terminated trajectories alone
};
// As TrajectoryLoss, of the end too. states [time][component] are NaN at save points past an event.
using EndLoss = std::function<double(std::size_t trajectory, std::span<const double> states, const TrajectoryEnd& end,
                                     EndSlopes& slopes)>;

using Loss = std::variant<SquaredError, TrajectoryLoss, EnsembleLoss, EndLoss>;

// Of those that end before their time without an event: no part of the loss; Error naming the first; or the states that
// they saved before count, as of those that an event ends, and their ends do not.
enum class FailedTrajectories { leave_out, stop, count_until_then };

struct GradientOptions {
  FailedTrajectories failed = FailedTrajectories::leave_out;
  // For the records of all threads together. Where they would need more, states are kept at checkpoints only and the
  // steps between them computed again; the gradient keeps its bits. A few steps are kept whatever the budget. Below
  // 32 MiB a net's few trajectories are taken as a tile, not one by one, whose sums run in another order.
  std::size_t memory_bytes = std::size_t{1} << 30;
  enum class Keep { gradients, steps };
  Keep keep = Keep::gradients;  // steps: fills Gradients::steps
  // Whether to look for steps that are unstable for derivatives: Gradients::unresolved. With few trajectories and short
  // solves that takes about as long as they do.
  bool check_steps = false;
};

// An accepted step: t_new = t + h up to rounding (the end time exactly, at the end).
struct AcceptedStep {
  double t = 0, t_new = 0, h = 0;
};

struct Gradients {
  double loss = 0;                        // of the trajectories that did not fail, or until they did
  std::vector<double> weights;            // [weight]: dL/dw in the order of StateFunction::weights()
  std::vector<double> initial_states;     // [trajectory][component]; zero for those left out
  std::vector<double> parameters;         // as Problem::parameters: [trajectory][parameter], or [parameter] summed
  std::vector<TrajectoryRecord> records;  // [trajectory]
  std::size_t left_out = 0;               // trajectories that failed, whether or not a part of them counts
  std::vector<std::vector<AcceptedStep>> steps;  // [trajectory], where asked for
  std::optional<UnresolvedDerivatives> unresolved;  // found where asked for: derivatives are wrong (docs/adjoint.md)
};

// Prepared once for a problem and a loss, then asked again and again with other weights.
//
// The gradient is exact for what was computed with the accepted steps taken as constants: t and h of each step do not
// vary with the weights (docs/adjoint.md says what that means); the times at which a terminal event and resets strike
// do vary, as the interpolant's roots, and behind a reset all is taken to shift with its time: the gradient is that of
// the solution there, up to the tolerance. States have the bits of solve(). Sums over trajectories run over at most 64
// fixed groups and then a fixed tree: the same bits for any number of threads and on every instruction set.
//
// Trajectories may have fewer save points than others: with save_times_per_trajectory a row ends in infinities, in the
// direction of its span. States there are NaN and count in no loss.
class GradientSolver {
 public:
  // Throws Error (invalid_argument, unsupported): as solve(), for functions without a derivative, those of events and
  // resets among them (differentiable_event.h), with a linearly implicit method for right-hand sides without second
  // ones (StateFunction::directional_f64()), for targets that do not fit, and for a loss that is an empty function.
  GradientSolver(Problem problem, Options options, Loss loss, GradientOptions gradient_options = {});
  ~GradientSolver();
  GradientSolver(GradientSolver&&) noexcept;
  GradientSolver& operator=(GradientSolver&&) noexcept;

  std::size_t weights() const;
  // Loss and derivatives at these weights, rounded to the solve's precision. The result stays until the next call.
  // Throws Error (cancelled) when control.cancel is requested.
  const Gradients& evaluate(std::span<const double> weights, const RunControl& control = {});
  // At the right-hand side's own weights.
  const Gradients& evaluate(const RunControl& control = {});
  // Loss, records and left_out alone, of the same bits, without the way back; derivatives and steps are not set.
  const Gradients& evaluate_loss(std::span<const double> weights, const RunControl& control = {});

  // New initial states [trajectory][component] for the following calls: as many numbers as before.
  void set_initial_states(std::span<const double> states);
  // Other trajectories for the following calls, with a loss of their own: initial states, parameters, spans and save
  // times of `problem`, each of as many numbers as before, and its impulses; the right-hand side and all else stay.
  // Throws Error as the constructor, and on other counts.
  void replace_trajectories(Problem problem, Loss loss);

  // What is recorded, how much memory that takes and what is computed again: sentences for people.
  std::vector<std::string> explain() const;

 private:
  friend Gradients solve_with_gradients(const Problem& problem, const Options& options, const Loss& loss,
                                        const GradientOptions& gradient_options, const RunControl& control);
  void set_weights(std::span<const double> weights);

  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

// The same for one evaluation.
Gradients solve_with_gradients(const Problem& problem, const Options& options, const Loss& loss,
                               const GradientOptions& gradient_options = {}, const RunControl& control = {});

}  // namespace lockstep::ode
