// Trains what is trainable in a right-hand side (a net, or a net beside physics) from trajectories.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/core/run_control.h"
#include "lockstep/kernels/mlp/mlp.h"
#include "lockstep/ode/given_starts.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/state_function.h"
#include "lockstep/train/training.h"

namespace lockstep::ode {

// Whether all numbers of trajectories' first points must be there: solves begin at them, but where each phase of a
// training has free states.
enum class FirstPoints { complete, may_miss };

// Measured or simulated trajectories, of equally many points or not. The first point of each is where its solve begins.
struct TrajectoryData {
  std::size_t trajectories = 1;
  // [trajectory][time], or [time] shared by all, of the longest; ascending or descending.
  std::vector<double> times;
  // [trajectory][time][component], without gaps between trajectories. NaN: not measured, and not in the loss. At a
  // first point only where all phases have free states.
  std::vector<double> states;
  std::vector<double> parameters;  // [trajectory][parameter], or [parameter] shared by all; empty without
  std::vector<std::size_t> numbers;  // [trajectory], what messages call them; empty: 0, 1, ...
  std::vector<std::size_t> lengths;  // [trajectory], points of each; empty: all have as many
  // The standard deviation of each measurement, as states: each counts in units of its own. Greater than 0 where a
  // state was measured, not looked at elsewhere. Empty: 1.
  std::vector<double> sigma;
  std::vector<std::string> names;  // [trajectory], what messages call them instead of a number; or empty
  // What happens to states at given times, as Problem has it; times ascend then. A point at such a time is a state
  // measured before it. Solves that begin there, of segments too, start behind it.
  std::vector<Impulse> impulses;           // of all, or one trajectory's after the other's with
  std::vector<std::size_t> first_impulse;  // [trajectory + 1]

  // Throws Error (invalid_argument): counts that do not fit `rhs`, times not in order, numbers that are not finite, by
  // trajectory and row; impulses on times that descend.
  void validate(const StateFunction& rhs, FirstPoints first = FirstPoints::complete) const;
  std::size_t points(std::size_t components) const;  // of the longest trajectory
  std::size_t points(std::size_t trajectory, std::size_t components) const;
  bool shares_times(std::size_t components) const { return times.size() == points(components); }
  std::size_t number(std::size_t trajectory) const { return numbers.empty() ? trajectory : numbers[trajectory]; }
  std::string name(std::size_t trajectory) const {
    return names.empty() ? std::to_string(number(trajectory)) : names[trajectory];
  }
  bool impulses_differ() const { return !first_impulse.empty(); }
  std::span<const Impulse> impulses_of(std::size_t trajectory) const;
};

// A phase of training, and what of the data it sees. The loss is the sum over the numbers measured of
// weight[component] ((state - data) / sigma)^2, or of Huber's loss in the place of the square where
// FitOptions::huber_threshold says so, averaged over trajectories: long ones count for more.
struct FitPhase {
  train::Phase training;
  // Multiple shooting: trajectories are cut into segments of this many intervals, each solved on its own from the
  // data at its start, where nothing may be missing; the last one reaches back where the intervals do not divide, and
  // counts only the points that no other has. 0: one segment.
  std::size_t segment = 0;
  // With a value, greater than 0: the states that segments start from are free, trained beside the weights from the
  // data on, and the squares of the gaps between a segment's end and the next one's start are added to the loss times
  // this. For noisy data, where solves from the data would fit the noise. Without segments the whole trajectory's
  // initial state is free. Starts that were not measured begin on the line between the measurements around them,
  // before the first of a trajectory at that one, and of a component that it has none of at the mean over all data.
  // With Huber's loss those that stand out from their neighbours begin at one of these.
  std::optional<double> continuity;
  // Growing horizon: only the first this many points of each trajectory are used. 0: all.
  std::size_t horizon = 0;
  // Mini-batches: trajectories in a step, in an order that each epoch has of its own; where the number does not divide
  // that of all, the last batch reaches back. 0: all, and so it must be with L-BFGS and with free states.
  std::size_t batch = 0;
  // [component], in the place of FitOptions::component_weights, as long as states that jump are to wait for the others;
  // empty: those. What is watched and told are losses with those.
  std::vector<double> component_weights = {};
  // In the place of FitOptions::failed: stop or leave_out. What fails of a phase that goes before others need not end
  // the training: those that are left teach a net what the rest needs to be solved.
  std::optional<FailedTrajectories> failed = {};
  // Steps for this phase, where they are to differ from FitOptions::solve: short segments need no adaptive ones.
  std::optional<Options> solve;
};

struct FitOptions {
  Options solve;  // method, tolerances, precision, threads
  std::vector<FitPhase> phases{FitPhase{}};
  std::vector<double> component_weights;  // [component], or empty: 1
  // With a value, greater than 0: errors of measurements that are beyond this many standard deviations count by their
  // size alone, as SquaredError::thresholds: huber_thresholds() says what deviations. All that has "loss" in its name
  // is with that; kHuberThreshold suits. Gaps between segments count by their squares whatever their size.
  std::optional<double> huber_threshold;
  // Losses are computed in this unit, greater than 0, and told in the data's: see loss_unit(). What FitLoss sets as
  // gradient is that of loss / loss_unit, as Training::measure_in() has it.
  double loss_unit = 1;
  // Components that start neither from the data's first points nor free. What the data have there is a measurement.
  std::optional<GivenStarts> starts;
  // Where states change as functions of them cross zero, in all solves, those of validation data too: with each
  // trajectory's own adaptive steps alone. Parameters that `rhs` trains are trained in these as well by
  // train_parameters(). A segment begins on the side of a threshold where the data, or its free start, are.
  std::vector<Reset> resets;
  std::uint64_t seed = 0;                 // of the order of mini-batches, a function of it and the epoch alone
  FailedTrajectories failed = FailedTrajectories::stop;
  std::size_t memory_bytes = std::size_t{1} << 30;  // for the records of solves
  std::optional<TrajectoryData> validation;         // watched for the best weights and for patience
  std::int64_t validate_every = 10;                 // iterations

  // Steps in an epoch of the phase with the most of them; 1 without mini-batches. `trajectories` of the data.
  std::int64_t iterations_per_epoch(std::size_t trajectories) const;

  // Throws Error (invalid_argument) naming the field.
  void validate() const;
};

// Short segments first, whose loss is nearly that of a regression, then longer ones, then whole trajectories by
// L-BFGS: what fits a net to a smooth trajectory of some hundred points in seconds. `points` a trajectory; the last
// phase ends at `target`. Where data have gaps, segments have free states. Segments that cannot be solved are passed
// over in all phases but the last.
std::vector<FitPhase> recommended_phases(std::size_t points, std::optional<double> target = {}, bool gaps = false);

// The same for data with noise, where solves from the data would fit it: all starts are free, the initial state of
// whole trajectories too. Segments of 5 intervals with a continuity of 1, of 20 with 100, then whole trajectories.
std::vector<FitPhase> noisy_phases(std::size_t points, std::optional<double> target = {});

// Whole trajectories by L-BFGS of which more and more is seen: an eighth of their points, a quarter, a half, then all;
// from where that is 15 points on, since fewer may lead parameters to extremes.
// For data with resets: segments may begin beyond a threshold that measurements err about, and the first resets say
// when the next ones come. With a continuity the initial states are free.
std::vector<FitPhase> growing_phases(std::size_t points, std::optional<double> target = {},
                                     std::optional<double> continuity = {});

// Scalings of a net whose inputs are the state, then parameters and time where it has that many inputs, and whose
// outputs are the state's derivative: inputs to mean 0 and deviation 1 over the data, outputs from that of the
// difference quotients of successive points, without those across an impulse where others are. Weights drawn for inputs
// and outputs of size 1 then fit the problem, which decides whether a training gets anywhere; set it before they are
// drawn. Throws Error (invalid_argument) when the data are not the net's.
void fit_scaling(Mlp& mlp, const TrajectoryData& data);

// Absolute tolerances for solves that are compared with these data, where nobody has said any: of each component the
// default of Options times the smaller of 1 and its largest magnitude over what was measured, so that small units cost
// no accuracy. As Options::component_atol; empty where that is the default for all.
std::vector<double> fit_tolerances(const TrajectoryData& data, std::size_t components, Precision precision);

// The loss of the phases as train::Training wants it, for callers that run the training themselves: to write
// checkpoints, or losses of their own beside it. T is the type of the weights; the solves run in options.solve's
// precision.
template <class T>
class FitLoss {
 public:
  // Copies what it needs. Throws Error (invalid_argument, unsupported).
  FitLoss(Rhs rhs, TrajectoryData data, FitOptions options);
  ~FitLoss();
  FitLoss(FitLoss&&) noexcept;
  FitLoss& operator=(FitLoss&&) noexcept;

  // All losses below look at it between steps, and throw Error (cancelled) when it is requested. Null: they go on.
  void stop_when(const CancelToken* cancel);

  std::size_t weights() const;
  // The weights and, where some phase has free states, after them what these differ from the data, in units of the
  // component's standard deviation, or of a hundred of its measurements' where these are stated and that is less:
  // [trajectory][point][component], zeros to begin with. All below take them all.
  std::size_t parameters() const;
  // Failed trajectories, or segments of them, count neither in the loss, which is the mean over the others, nor in its
  // derivative. Where they are to stop the run, and where none is left: throws Error naming the first. Where a given
  // start is not finite: throws StartsNotFinite. With L-BFGS, after its phase's first loss, the loss is infinite
  // instead of both, which shortens the line search's step.
  double operator()(const train::Place& place, std::span<const T> parameters, std::span<T> gradient);
  // For train::Training::finish_by(): the loss of a phase of whole trajectories by L-BFGS as a sum of squares, where
  // parameters alone are trained, with their starts or without; of few unknowns and by squares whatever their size.
  // Nothing elsewhere, and where some trajectory cannot be solved, or not with derivatives.
  std::optional<train::SquaresModel> squares(const train::Place& place, std::span<const T> parameters);
  // Of whole trajectories, from the data's first points or, where the last phase frees them, the free states there, or
  // as given, these themselves not counted; infinite when one fails that is not to be left out, or all do, or a given
  // start is not finite.
  double loss(std::span<const T> parameters);
  double validation_loss(std::span<const T> parameters);
  // The free states, the data where there are none, where these are missing or far off as FitPhase::continuity says:
  // [trajectory][point][component].
  std::vector<double> states(std::span<const T> parameters) const;
  // How the gradients of a phase come about and what they keep in memory: GradientSolver::explain().
  std::vector<std::string> explain(std::size_t phase);
  // How the trajectories or segments of the last call ended, and how many of them failed and were left out.
  std::span<const TrajectoryRecord> records() const;
  std::size_t left_out() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// The unit that suits these data, the square of the power of 256 near the largest of the components' deviations: with
// it the course of a training does not depend on the unit of the states. 1 where data have a sigma, in units of which
// residuals are of about 1 anyway. fit() takes it where options have 1 and no component_weights.
double loss_unit(const TrajectoryData& data, std::size_t components);

struct FitControl {
  // Looked at between the steps of solves. What is returned then takes another solve or two, which it does not stop.
  const CancelToken* cancel = nullptr;
  std::function<void(const train::IterationReport&)> progress;
};

struct FitResult {
  // The best of the last phase, or where validation or all mini-batches decide of all phases, as
  // StateFunction::weights().
  std::vector<double> weights;
  std::vector<double> states;   // as FitLoss::states(); empty where the last phase has no free ones
  double loss = 0;              // of whole trajectories at these weights, as FitLoss::loss
  std::optional<double> validation_loss;
  std::int64_t iterations = 0;
  bool cancelled = false;
};

// With mini-batches and no validation data the loss of whole trajectories, once an epoch, decides about the best
// weights. Starts from the right-hand side's own weights, or from `start`. Throws Error: (invalid_argument,
// unsupported) for data and options; (invalid_argument) naming phase and iteration when loss or gradient are not
// finite, or naming these and the trajectory that failed, as options.failed asks.
FitResult fit(const Rhs& rhs, const TrajectoryData& data, const FitOptions& options = {},
              const FitControl& control = {}, std::optional<std::vector<double>> start = {});

extern template class FitLoss<float>;
extern template class FitLoss<double>;

}  // namespace lockstep::ode
