// A training as a sequence of phases of gradient descent or L-BFGS over one parameter vector, which can be stopped
// after any iteration and continued from its state with the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/kernels/step_ahead.h"
#include "lockstep/train/descent.h"
#include "lockstep/train/lbfgs.h"
#include "lockstep/train/learning_rate.h"
#include "lockstep/train/squares.h"

namespace lockstep::train {

struct Phase {
  std::string name;                // for people; may be empty
  std::int64_t iterations = 1000;  // >= 1
  // Either; the options that follow belong to gradient descent.
  std::variant<OptimiserOptions, LbfgsOptions> rule = OptimiserOptions{};
  LearningRateOptions learning_rate;
  ClipOptions clip;
  std::optional<double> target;  // the phase ends when the watched loss is at or below this
  std::int64_t patience = 0;     // > 0: and when this many iterations brought none below the best

  bool is_lbfgs() const { return std::holds_alternative<LbfgsOptions>(rule); }
  // Throws Error (invalid_argument) naming the field.
  void validate() const;
};

// Where an iteration stands.
struct Place {
  std::size_t phase = 0;
  std::int64_t iteration = 0;  // within the phase, from 0
  std::int64_t total = 0;      // over all phases: those finished before this one
};

struct IterationReport {
  Place place;
  double loss = 0;           // before the step (L-BFGS: after it)
  double watched = 0;        // what decides about the best: the validation loss where there is one, else `loss`
  double gradient_norm = 0;  // before clipping
  double learning_rate = 0;  // L-BFGS: the step's length relative to the quasi-Newton step
  std::int64_t left_out = 0;  // as count_left_out() said of this loss
  bool best = false;          // no better watched loss came before in this phase
  bool phase_ended = false;
  bool stalled = false;  // L-BFGS found no step that lowers the loss by what is no rounding
};

// All that decides what follows, besides phases and losses.
template <class T>
struct TrainingState {
  Place place;                // of the next iteration
  std::vector<T> parameters;  // [parameter]
  OptimiserState<T> optimiser;
  PlateauState plateau;
  LbfgsState<T> lbfgs;
  std::vector<T> best;  // parameters of the lowest watched loss of this phase
  // Steps by the model of squares in a row, by which the phase is being finished; 0: by its own rule.
  std::int64_t by_squares = 0;
  double best_loss = std::numeric_limits<double>::infinity();
  std::int64_t best_at = 0;                                  // iterations over all phases before it
  std::int64_t best_left_out = 0, left_out = 0;              // with the best parameters; with L-BFGS' current ones
  double watched = std::numeric_limits<double>::infinity();  // the last one
  // Where a validation decides: the best of the phases before, as above; else nothing.
  std::vector<T> earlier_best;
  double earlier_best_loss = std::numeric_limits<double>::infinity();
  std::int64_t earlier_best_left_out = std::numeric_limits<std::int64_t>::max();
};

// A phase starts from the best parameters of the one before. Within a phase the best is the lowest watched loss, among
// those that left out least of their data; phases may have different losses (a longer horizon), which are not compared.
// A validation is the same for all: where there is one, its lowest value over all phases decides what comes out.
// T is float or double.
template <class T>
class Training {
 public:
  // The loss at `parameters`, its derivative into `gradient`. May depend on the place (mini-batches, horizons); with
  // L-BFGS on its phase alone.
  using Loss = std::function<double(const Place& place, std::span<const T> parameters, std::span<T> gradient)>;
  // A loss on other data, without gradient, that does not depend on the place.
  using Validation = std::function<double(const Place& place, std::span<const T> parameters)>;

  // Throws like the phases' validate(), and when there is none.
  Training(std::vector<Phase> phases, std::vector<T> parameters);

  bool finished() const { return state_.place.phase == phases_.size(); }
  // One iteration; not to be called when finished(). Throws Error (invalid_argument) naming phase and iteration when
  // loss or gradient are not finite; parameters and the best stay as they were before. What the loss or the
  // validation throws passes through likewise: the iteration can be made again, with the same bits.
  IterationReport iterate(const Loss& loss);

  // Losses keep their unit, but the gradients that the loss sets are those of the loss divided by `unit`, a power of
  // two (loss_unit.h): optimisers see both so, and reports, targets and clipping are of the loss as it is. To be called
  // before the first iteration and restore().
  void measure_in(double unit);

  // For the loss while iterate() asks it: which step will be taken from parameters() with its gradient. Nothing at
  // other times and with L-BFGS.
  const std::optional<StepAhead<T>>& ahead() const { return ahead_; }

  // `validation` is asked every `every` iterations from a phase's first on, and once more where a phase ends; in
  // between its last value stands, which neither patience nor the plateau schedule takes for another one.
  void validate_with(Validation validation, std::int64_t every = 1);
  // Finishes the last phase by the loss as a sum of squares, where that is an L-BFGS phase without validation:
  // `squares` of parameters that left nothing out, or nothing where there is no such model. It is asked every 50
  // iterations, and takes over where the loss falls by its Gauss-Newton step as it foretells; where no step of L-BFGS
  // lowers the loss, and in the last 50 iterations that a phase may make, by the first damped step that lowers it, by
  // more than a hundredth of a standard error is worth. It does so where the step leads more than a tenth of one (of
  // all unknowns together, of errors that are as large as what it leaves of the residuals), and ends the phase within a
  // hundredth.
  using Squares = std::function<std::optional<SquaresModel>(const Place& place, std::span<const T> parameters)>;
  void finish_by(Squares squares) { squares_ = std::move(squares); }
  // How much of its data the last call of loss or validation went without: trajectories that diverged. Fewer of them
  // are better than a lower loss; L-BFGS takes no step that leaves out more, and begins anew where one of its trials
  // leaves out fewer.
  void count_left_out(std::function<std::int64_t()> count) { left_out_ = std::move(count); }

  std::span<const T> parameters() const { return state_.parameters; }
  // Of the current phase or, when that has made no iteration yet, what it starts from; with a validation of all phases.
  std::span<const T> best_parameters() const { return earlier_was_better() ? state_.earlier_best : state_.best; }
  double best_loss() const { return earlier_was_better() ? state_.earlier_best_loss : state_.best_loss; }
  // Where the last iteration's step led, even if it ended its phase; not part of the state.
  std::span<const T> last_parameters() const { return last_.empty() ? state_.parameters : last_; }
  const std::vector<Phase>& phases() const { return phases_; }
  const Place& place() const { return state_.place; }
  std::int64_t total_iterations() const;  // that all phases may make

  TrainingState<T> state() const;
  // Throws Error (invalid_argument) when the state does not fit phases and parameters.
  void restore(TrainingState<T> state);

 private:
  void begin_phase();
  bool earlier_was_better() const;
  IterationReport descend(const Loss& loss);
  IterationReport quasi_newton(const Loss& loss);
  // Whether there was no step to be taken, it was taken, or it would lead no farther than errors are large.
  enum class Finish { none, stepped, near };
  Finish finish(const Loss& loss, bool takes_any, IterationReport& report);
  bool may_finish() const;
  template <class Part>
  IterationReport undone_if_it_throws(const Part& part);
  // Notes the watched loss at `parameters`; true when it was looked at anew.
  bool watch(double loss, std::span<const T> parameters, IterationReport& report);
  bool note_if_best(double loss, std::int64_t left_out, std::span<const T> parameters);
  // `fresh`: as watch() said; `stalled`: no further step can be made.
  bool ends_phase(const IterationReport& report, bool fresh, bool stalled) const;
  void end_iteration(IterationReport& report, bool fresh, bool stalled);
  void require_finite(double loss, double gradient_norm) const;

  std::vector<Phase> phases_;
  TrainingState<T> state_;  // optimiser and lbfgs are kept in the objects below
  double unit_ = 1;
  std::vector<T> gradient_;  // of the loss in units of it
  std::vector<T> last_;  // empty within a phase
  std::optional<Descent<T>> descent_;
  std::optional<StepAhead<T>> ahead_;
  std::uint64_t number_ = 0;  // of the step ahead
  std::optional<LearningRate> rate_;
  std::optional<Lbfgs<T>> lbfgs_;
  Validation validation_;
  std::int64_t validate_every_ = 1;
  Squares squares_;
  std::function<std::int64_t()> left_out_ = [] { return std::int64_t{0}; };
};

extern template class Training<float>;
extern template class Training<double>;

}  // namespace lockstep::train
