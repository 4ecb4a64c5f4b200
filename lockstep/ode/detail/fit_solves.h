// The solves that a fit's loss is made of: one for each phase, and those of whole trajectories that judge what was
// trained; what they start from, and how those that failed count.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/ode/detail/data_rows.h"
#include "lockstep/ode/detail/fit_data.h"
#include "lockstep/ode/detail/shooting.h"
#include "lockstep/ode/detail/start_solver.h"
#include "lockstep/ode/fit.h"

namespace lockstep::ode {

template <class T>
struct FitLoss<T>::Parts {
  Rhs rhs;
  TrajectoryData data;
  FitOptions options;
  double weighed_unit = 1;                                // what of the loss's unit is in options.component_weights
  std::vector<std::optional<GradientSolver>> phases;      // made when first needed
  std::vector<std::optional<detail::Shooting>> shooting;  // likewise, of phases with free states
  std::optional<GradientSolver> whole, validation;
  std::vector<double> weights;
  std::vector<double> thresholds;  // [component], of errors of all data; empty: the sum of squares
  std::vector<double> filled;     // [trajectory][point][component], where there are free states: data without gaps
  std::vector<double> spreads;    // [component], of the data; empty where no phase has free states
  std::vector<double> units;      // likewise, of free states
  std::vector<double> by_states;  // [trajectory][point][component]
  std::optional<detail::StartSolver> starts, validation_starts;  // where some are given
  // Of the last evaluation: [trajectory of all or of the mini-batch][component].
  std::vector<double> by_starts;
  std::vector<std::size_t> batch_segments;    // [phase], of the mini-batch that its solver was made for; 0: not known
  std::vector<std::uint32_t> batch;           // the trajectories of the last mini-batch, empty where all were taken
  std::span<const TrajectoryRecord> records;  // of the last evaluation; the solver's
  std::size_t left_out = 0;
  std::optional<std::size_t> good_phase;  // the one that has had a loss before
  RunControl control;

  using Result = detail::Shooting::Result;

  // ---- the loss of a phase, and of whole trajectories
  Result evaluate(std::optional<GradientSolver>& solver, const TrajectoryData& of, const FitPhase& phase,
                  std::span<const T> at);
  // From the initial states that the solver has.
  Result evaluate_placed(std::optional<GradientSolver>& solver, const TrajectoryData& of, const FitPhase& phase,
                         std::span<const T> at);
  // The mini-batch of an iteration, its trajectories in `batch`.
  Result evaluate_batch(const train::Place& place, std::span<const T> at);
  // The loss with free states; the part of `gradient` that belongs to them is set.
  Result shoot(std::size_t at_phase, std::span<const T> at, std::span<T> gradient);
  // Of whole trajectories.
  double loss_of(std::optional<GradientSolver>& solver, const TrajectoryData& of, std::span<const T> at);

  // ---- where solves begin: at the data, or free states, and what is given at its values
  std::vector<double> initial_states(const TrajectoryData& of, const FitPhase& phase, std::span<const T> at, bool free);
  std::vector<double> states(std::span<const T> at);
  // What is given into states [trajectory][point][component], in place of numbers that are `replaced`.
  template <class Replaced>
  void place_starts(std::vector<double>& states, const Replaced& replaced) {
    starts->evaluate(weights);
    const std::size_t n = rhs->components();
    const detail::DataRows rows(data, n);
    for (std::size_t i = 0; i < data.trajectories; ++i) {
      for (const std::size_t c : options.starts->components) {
        double& state = states[rows.first(i) * n + c];
        if (replaced(state)) state = starts->start(i, c);
      }
    }
  }
  // What the data have of given starts, compared with those that the solves began at; sets by_starts.
  double loss_of_starts(const TrajectoryData& of, const FitPhase& phase, const Gradients& gradients);
  // What was trained from the data's own starts is judged from them, whatever phases before it had.
  bool ends_with_free_states() const { return options.phases.back().continuity.has_value(); }

  // ---- solvers, made when first needed
  detail::Shooting& shooting_of(std::size_t phase);
  GradientSolver& solver_of(std::optional<GradientSolver>& solver, const TrajectoryData& of, const FitPhase& phase,
                            std::span<const T> at);
  detail::Task task_of(const TrajectoryData& of, const FitPhase& phase, std::span<const T> at, bool frees);
  // Intervals of the longest segment: a mini-batch's rows have room for those of all the data.
  std::size_t width(const TrajectoryData& of, const FitPhase& phase) const;
  void take_weights(std::span<const T> at) {
    weights.assign(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(rhs->weights().size()));
  }
  // Of a trajectory of the data, or of the mini-batch.
  std::size_t trajectory_of(const TrajectoryData& of, std::size_t i) const {
    return &of == &data || batch.empty() ? i : batch[i];
  }
  bool is_validation(const TrajectoryData& of) const { return options.validation && &of == &*options.validation; }
  bool has_batches(const FitPhase& phase) const { return phase.batch != 0 && phase.batch < data.trajectories; }

  // ---- trajectories that failed
  void note(const Gradients& gradients) {
    records = gradients.records;
    left_out = gradients.left_out;
  }
  // Without a state to start from nothing was solved.
  void note_none() {
    records = {};
    left_out = 0;
  }
  FailedTrajectories failed(const FitPhase& phase) const { return phase.failed.value_or(options.failed); }
  bool must_stop(const FitPhase& phase) const {
    return left_out != 0 && (failed(phase) == FailedTrajectories::stop || left_out == records.size());
  }
  // Sums over all that was solved are divided by the number of trajectories; the mean is over those that succeeded.
  double mean_of_others() const {
    return static_cast<double>(records.size()) / static_cast<double>(records.size() - left_out);
  }
  double mean_or_infinity(double loss) const;
  // Names the iteration and its phase, and the first trajectory, with its segment where they are cut, that did not
  // reach its end.
  void require_success(const train::Place& place) const;
  std::string remedy_of_failure(const train::Place& place, bool piled_up) const;
};

}  // namespace lockstep::ode
