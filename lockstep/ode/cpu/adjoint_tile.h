// One tile of trajectories forward with a record, and back again. The forward pass uses the engine's own kernels: its
// states have the engine's bits.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/run_control.h"
#include "lockstep/ode/cpu/adjoint_kernels.h"
#include "lockstep/ode/cpu/differentiable_rhs.h"
#include "lockstep/ode/cpu/step_record.h"
#include "lockstep/ode/cpu/step_saver.h"
#include "lockstep/ode/differentiable_event.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/sensitivity.h"

namespace lockstep::ode::cpu {

// A thread's workplace; it takes tile after tile. The right-hand side may get other weights between tiles.
template <class T>
class AdjointTile {
 public:
  // problem, options and rhs are kept by reference. `memory_bytes` bounds the records.
  AdjointTile(const Problem& problem, const Options& options, const DifferentiableRhs<T>& rhs, CpuTarget target,
              std::size_t memory_bytes);

  // From now on forward(), backward() and sensitivities() look between steps, and throw Error (cancelled) when it is
  // requested. Null: they go on.
  void stop_when(const CancelToken* cancel) { cancel_ = cancel; }
  // sensitivities() follow, never backward(): nothing is recorded that they do not read. Before the first forward().
  void carry_forward_only() {
    const bool reads = !rhs_.pushes_forward() && context_.problem->trajectories() > kTileLanes / 2;
    plan_.keep_recorded = plan_.keep_recorded && reads;
  }
  // The problem has other trajectories.
  void take_trajectories() { context_.take_stops(); }
  // Whether steps end where they must, in any trajectory.
  bool has_stops() const { return context_.step.settings.has_stops; }

  // Advances trajectories [first, first + lanes), lanes <= kTileLanes. With common control `common` holds the accepted
  // steps and `ends` each of these trajectories' outcome.
  void forward(std::size_t first, int lanes, std::span<const AcceptedStep> common = {},
               std::span<const TrajectoryRecord> ends = {});

  // Of the last forward(): [lane][time][component], and how each lane ended.
  std::span<const T> states() const { return states_.span(); }
  const TrajectoryRecord& record(int lane) const { return outcome_[lane]; }
  std::vector<AcceptedStep> steps_of(int lane) const;
  // From now on forward() notes some steps of each lane, LongStep::kOfATrajectory of them.
  void note_long_steps() { notes_steps_ = true; }
  const LongStep<T>* long_steps(int lane) const { return long_steps_[lane]; }
  // From now on forward() samples the steps of the first lane too.
  void sample_steps() { notes_steps_ = samples_steps_ = true; }
  const std::vector<LongStep<T>>& sampled_steps() const { return sample_.steps; }
  std::size_t saved(int lane) const { return lanes_[lane].saved; }  // save points reached
  T end_state(int lane, std::size_t component) const { return at(end_state_.data(), lane, component); }

  // For the next backward(): dL/d(end state) [component] of a lane that succeeded or met its event, and of the latter
  // dL/d(end time).
  void set_end_bar(int lane, std::span<const double> state_bar, double time_bar);

  // The transpose, once after each forward(). states_bar [lane][time][component]; zeros for lanes to be left out.
  // gradient[weight] += (null when there are no weights); the rest is read from below.
  void backward(std::span<const T> states_bar, T* gradient);
  // Instead of backward(): out [lane][time][component][direction], the derivatives of the saved states along these
  // directions, of which the tile's begin at trajectory `first`; NaN at save points that were not reached. ends
  // [lane][end time, then components of the end state][direction]; NaN of lanes that failed. Then local_error(lane)
  // says how well steps resolved them. Both need room for the lanes of forward() alone. Defined in
  // sensitivity_tile.cpp.
  void sensitivities(const Directions& directions, std::size_t first, std::span<T> out, std::span<double> ends);
  // Of the last sensitivities().
  const LocalError& local_error(int lane) const { return local_errors_[lane]; }
  T initial_state_bar(int lane, std::size_t component) const { return at(bar_.y.data(), lane, component); }
  T parameter_bar(int lane, std::size_t parameter) const { return at(parameter_bar_.data(), lane, parameter); }

  // Of the solves to come, but for the first few.
  const RecordPlan& plan() const { return lasting_plan_; }
  // Rows of kTileLanes numbers that a step keeps for each component.
  std::size_t kept_stages() const { return total_stages() - 1 + solved_stages(); }

 private:
  static T at(const T* rows, int lane, std::size_t row) {
    return rows[row * kTileLanes + static_cast<std::size_t>(lane)];
  }
  std::size_t total_stages() const {
    return static_cast<std::size_t>(context_.stages() + context_.interpolant_stages());
  }
  // Stages whose k is the solution of linear equations: 2 .. s - 1 of a linearly implicit method.
  std::size_t solved_stages() const { return directional_ ? static_cast<std::size_t>(context_.stages()) - 2 : 0; }
  bool is_solved(std::size_t stage) const { return stage >= 1 && stage <= solved_stages(); }
  std::size_t segment_end() const { return segment_first_ + segment_count_; }

  std::size_t workspace_bytes(const DifferentiableRhs<T>& rhs, CpuTarget target);
  void stop_if_cancelled() const {
    if (cancel_ == nullptr || !cancel_->requested()) return;
    throw Error(ErrorKind::cancelled, {.found = "derivatives stopped by their caller"});
  }
  void choose_plan(int lanes);
  void widen_rows(int lanes);
  const T* spread(const T* kept);
  const double* spread_times(const double* kept);
  int kept_lanes() const { return static_cast<int>(kept_lanes_); }
  void load(std::size_t first, int lanes);
  void begin_lanes();
  void stand_in_for_broken_starts();
  LaneMask stay_before_dead_ends(LaneMask renewed);
  double stands_at(int lane) const { return ((dead_ends_ >> lane) & 1) != 0 ? stands_at_[lane] : tile_.t[lane]; }
  bool starts_nowhere() const { return broken_starts_ == ~LaneMask{0}; }
  void keep_accepted(StageRecord<T>& record, LaneMask accepted, LaneMask lost);
  void keep_end_state(int lane, const T* rows);
  LaneMask without_derivative(LaneMask accepted);
  void forget_last_stages(StageRecord<T>& record, LaneMask lanes);
  void stay_before_last_states(LaneMask lanes);
  void note_long_step(int lane, const TileStep& step);
  void end_lane(int lane, Status status);
  void run_own_steps();
  void run_common_steps(std::span<const AcceptedStep> steps, std::span<const TrajectoryRecord> ends);
  Landing pass(LaneMask advanced, LaneMask reset = 0);
  StageRecord<T>& next_record();
  void record_into(StageRecord<T>* record);
  // `lost`: without_derivative() of those accepted.
  void keep_step(StageRecord<T>& record, LaneMask accepted, bool interpolated, LaneMask lost = 0);
  void add_checkpoint();
  void restore(std::size_t end);
  void replay(std::size_t step, StageRecord<T>* record);
  void reverse_step(const TileStep& step, StageRecord<T>& record, const StageRecord<T>* before,
                    std::span<const T> states_bar);
  // In implicit_reverse.cpp: of stages that are solved for.
  void linearise(const TileStep& step, const StageRecord<T>& record);
  std::size_t direction_numbers() const { return (2 * context_.components() + 1) * kTileLanes; }
  const T* direction_of(std::size_t stage, const StageRecord<T>& record);
  void reverse_solution(std::size_t stage, const StageRecord<T>& record);
  void keep_event_end(int lane);
  // du/dt [component] within the step just made, from its stages.
  std::vector<double> rate_within(int lane, double theta) const;
  // In reset_adjoint.cpp. reset_lanes() is for lanes that resets cut, before their derivative behind them is known, and
  // returns those that ended; keep_resets() for the changes since then; know_behind() once it is known.
  LaneMask reset_lanes();
  void keep_resets(bool within);
  void know_behind(LaneMask renewed);
  std::span<const ResetRecord<T>> resets_of(std::size_t step) const;
  // Of a crossing within the step, or null.
  const ResetRecord<T>* crossing_of(const TileStep& step, int lane) const;
  double left_at(const TileStep& step, int lane) const {  // the time at which the lane left it
    const ResetRecord<T>* const crossing = crossing_of(step, lane);
    return crossing == nullptr ? step.t_new[lane] : crossing->t;
  }
  // Derivatives [component][direction] across what resets changed; adds them to `by_time` [direction], of the time at
  // which it was.
  void push_forward(const ResetRecord<T>& record, const Directions& directions, std::span<double> columns,
                    std::span<double> by_time) const;
  // The transpose: bar [component] of the state behind becomes that of the one before, time_bar is of the time.
  void pull_back(const ResetRecord<T>& record, std::span<double> bar, double time_bar);
  void put_behind(std::size_t step, T* rows) const;  // the states with which lanes go on that were reset in it
  // Takes the lane's row of bar_.y back across its resets in the step; whether to within the step, into reset_bar_.
  bool reverse_reset_lane(std::size_t step, int lane);
  void reverse_resets(std::size_t step);
  // Of the event function where it ended the lane; `rate` along the trajectory.
  struct EventSlopes {
    double rate;
    std::vector<double> by_state, by_parameter;
  };
  EventSlopes event_slopes(int lane) const;
  bool changes_at_once() const { return !context_.problem->impulses.empty() || !context_.resets.empty(); }
  bool ends_by_impulse(int lane) const {
    return outcome_[lane].status == Status::terminated && event_ends_[lane].by_impulse;
  }
  void reverse_first(T* gradient);
  void reverse_renewal(const TileStep& step, const StageRecord<T>& record);
  void scale_by_impulses(int lane, double t, T* rows) const;
  const T* behind_changes(const TileStep& step, const T* y1);
  void reverse_events(std::size_t step);
  void reverse_saves(const TileStep& step, std::span<const T> states_bar);
  void reverse_evaluation(const double* t, const T* argument, const std::byte* recorded, const std::byte* next,
                          const T* out_bar, T* in_bar);
  void flush(T* gradient, std::size_t first);
  void make_cotangents();

  SolveContext<T> context_;
  const DifferentiableTile<T>& rhs_;
  const DifferentiableTile<T>* directional_;  // null with an explicit method
  const CancelToken* cancel_ = nullptr;
  std::shared_ptr<Recorder<T>> recorder_;
  const AdjointKernels<T>& adjoint_;
  const RecordPlan lasting_plan_;
  RecordPlan plan_;  // now
  int solves_ = 0;   // that did without activations
  AlignedBuffer<std::byte> workspace_;
  TileState<T> tile_;
  LaneRecord<T> lanes_[kTileLanes] = {};
  OpenBlock block_{};
  StepSaver<T> saver_;
  TrajectoryRecord outcome_[kTileLanes] = {};
  std::size_t lanes_taken_ = 0;  // by the last forward(); those behind them are copies
  LaneMask open_ = 0;
  std::int64_t attempts_ = 0;
  AlignedBuffer<T> initial_;                     // u0 [component][lane], behind its impulses
  alignas(64) double t_first_[kTileLanes] = {};  // the time at which k_1 there was evaluated
  LaneMask broken_starts_ = 0;                   // whose trajectories fail there
  LaneMask dead_ends_ = 0;                       // lanes that failed behind a change, and the times where they stand
  double stands_at_[kTileLanes] = {};
  AlignedBuffer<T> states_;                      // [lane][time][component]
  AlignedBuffer<T> behind_;                      // behind_changes()

  TileSteps steps_;
  LongStep<T> long_steps_[kTileLanes][LongStep<T>::kOfATrajectory];
  std::size_t step_counts_[kTileLanes] = {};
  bool notes_steps_ = false, samples_steps_ = false;
  StepSample<T> sample_;
  LocalError local_errors_[kTileLanes];
  RecordMemory record_memory_;
  std::size_t kept_lanes_ = 0;  // in a row of records
  AlignedBuffer<T> spread_;
  alignas(64) double spread_times_[kTileLanes] = {};
  std::vector<StageRecord<T>> segment_;  // steps [segment_first_, segment_first_ + segment_count_)
  std::size_t segment_first_ = 0, segment_count_ = 0;
  std::vector<Checkpoint<T>> checkpoints_;
  std::vector<ResetChange> changes_;    // of the last step, not kept yet
  std::vector<ResetRecord<T>> resets_;  // by step

  AlignedBuffer<T> reset_bar_;  // [component][lane]: before a crossing within the step
  TileCotangents<T> bar_;
  AlignedBuffer<T> parameter_bar_;
  const DifferentiableEvent* event_ = nullptr;
  struct EventEnd {
    std::size_t step = 0;  // in steps_
    double theta = 0;
    bool by_impulse = false;   // at the step's end: the time is the impulse's, whatever the state
    bool by_reset = false;     // by the state that the step's reset left
    bool leapt = false;        // by its function's leap at the step's end, at a time that nothing moves
    std::vector<double> rate;  // [component], of the interpolant there: du/dt
  };
  EventEnd event_ends_[kTileLanes];          // of lanes that met their event
  AlignedBuffer<T> end_state_;               // [component][lane]
  AlignedBuffer<T> end_bar_;                 // of them
  std::size_t saved_[kTileLanes] = {};       // save points not yet met on the way back
  // Of pending evaluations that were recorded on the way back; made as they are needed, as what follows is.
  std::vector<AlignedBuffer<std::byte>> scratch_records_;
  std::size_t scratch_records_used_ = 0;
  AlignedBuffer<std::byte> cotangents_;  // [pending][cotangent_bytes()]
  std::vector<RecordedEvaluation> pending_;

  // Of the step on its way back, with a linearly implicit method.
  AlignedBuffer<std::byte> linear_memory_;
  std::optional<LinearTile<T>> linear_;           // the factors of W
  alignas(64) double t_linear_[kTileLanes] = {};  // the time of the Jacobian
  AlignedBuffer<T> direction_;                    // [2 components + 1][lane], as the directional derivative reads it
  AlignedBuffer<std::byte> directional_cotangents_;
  std::vector<RecordedEvaluation> pending_directional_;
};

extern template class AdjointTile<float>;
extern template class AdjointTile<double>;

}  // namespace lockstep::ode::cpu
