// What all threads of one solve share, and what is kept of each trajectory on its way.
#pragma once

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <mutex>

#include "lockstep/ode/cpu/engine.h"
#include "lockstep/ode/cpu/generated_step.h"
#include "lockstep/ode/cpu/inlined.h"
#include "lockstep/ode/cpu/linear_tile.h"
#include "lockstep/ode/cpu/tile_kernels.h"
#include "lockstep/ode/detail/stops.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/numerics.h"

namespace lockstep::ode::cpu {

// Whether a save point may fall between the ends of a step. With fixed steps any might, by a rounding.
inline bool saves_within_steps(const Problem& problem, bool fixed) {
  if (problem.save_points() == 0) return false;
  if (fixed) return true;
  for (std::size_t i = 0; i < problem.trajectories(); ++i) {
    const double* times = problem.save_times_of(i);
    for (std::size_t k = 0; k < problem.save_points(); ++k) {
      if (times[k] != problem.start_time(i) && times[k] != problem.end_time(i)) return true;
    }
    if (!problem.save_times_per_trajectory && problem.start_times.size() == 1 && problem.end_times.size() == 1)
      return false;
  }
  return false;
}

// Of one of methods.h, which live as long as the program: lowered once.
template <class T>
const LoweredTableau<T>& lowered_tableau(const Tableau& tableau) {
  static std::mutex mutex;
  static std::map<const Tableau*, LoweredTableau<T>> lowered;
  const std::lock_guard lock(mutex);
  return lowered.try_emplace(&tableau, tableau).first->second;
}

// The kernels that make a tile's steps.
template <class T>
struct StepCode {
  TileKernels<T> kernels;
  const InlinedKernels<T>* inlined;  // null without any; kernels.attempt is then the general one
  // Null, or what replaces propose, attempt, decide and advance where each trajectory has its own adaptive step.
  void (*whole_step)(TileState<T>&, const StepSettings<T>&) = nullptr;
  StepSettings<T> settings = {};
};

template <class T>
struct LoweredReset {
  std::shared_ptr<const TileFunction<T>> function, state;
};

template <class T>
struct SolveContext {
  SolveContext(const Problem& the_problem, const Options& the_options, CpuTarget target)
      : problem(&the_problem),
        options(&the_options),
        stops(the_problem, the_options),
        step{tile_kernels<T>(target), inlined_kernels<T>(the_problem.rhs->inlined_name(), the_options.method, target)},
        tableau(lowered_tableau<T>(method(the_options.method))),
        rhs(lower<T>(*the_problem.rhs, target)),
        event(the_problem.event ? lower<T>(*the_problem.event->function, target) : nullptr) {
    if (tableau.source->is_linearly_implicit()) jacobian = lower_jacobian<T>(*the_problem.rhs, target);
    for (std::size_t c = 0; c < the_problem.rhs->components(); ++c) {
      atol_f64_.push_back(the_options.atol_of(c));
      atol_.push_back(static_cast<T>(atol_f64_.back()));
    }
    for (const Reset& reset : the_problem.resets)
      resets.push_back({lower<T>(*reset.function, target), lower<T>(*reset.state, target)});
    const auto exponents =
        scalar::control_exponents(scalar::error_power(tableau.source->error_order, !tableau.source->error3.empty()));
    const bool fixed = the_options.control == StepControl::fixed;
    step.settings = {.tableau = &tableau,
                     .rhs = rhs.get(),
                     .rtol = static_cast<T>(the_options.rtol),
                     .atol = atol_.data(),
                     .rtol_f64 = the_options.rtol,
                     .atol_f64 = atol_f64_.data(),
                     .max_step = the_options.max_step.value_or(std::numeric_limits<double>::infinity()),
                     .initial_step = the_options.initial_step.value_or(0),
                     .beta1 = exponents.beta1,
                     .beta2 = exponents.beta2,
                     .fixed = fixed,
                     .has_stops = !stops.empty(),
                     .keep_stages = event != nullptr || !resets.empty() || saves_within_steps(the_problem, fixed),
                     .few = the_problem.trajectories() <= kFewTrajectories,
                     .one_lane = the_problem.trajectories() == 1,
                     .jacobian = jacobian.get(),
                     .linear_tile_at = function_bytes()};
    take_inlined(step);
    components_ = the_problem.rhs->components();
    parameters_ = the_problem.rhs->parameters();
    save_points_ = the_problem.save_points();
    start_evaluations = fixed || the_options.initial_step ? 1 : 2;
  }

  // Code for the whole step where none was compiled for it: at once where the solve is known to win back the time that
  // this takes, or where an earlier solve left it. Otherwise take_code_after() says when.
  void generate_code(CpuTarget target) {
    code_target_ = target;
    if (step.inlined != nullptr || jacobian != nullptr) return;
    const KeptStep<T> kept = kept_step(step.settings, components_);
    if (!kept.possible) return;
    if (kept.code != nullptr || makes_many_steps() || kept.steps >= kStepsBeforeCode) {
      if (const StepCode<T>* const code = generated_code()) step = *code;
    } else {
      take_code_after_ = kStepsBeforeCode - kept.steps;
    }
  }
  // Steps of a tile after which generated_code() is worth its time: generating takes about as long as they do. Of those
  // that a shorter solve makes, note_steps() tells the next solve with the same right-hand side and settings. kNever
  // where there is no such code, or where `step` is it.
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::int64_t take_code_after() const { return take_code_after_; }
  // The same kernels as `step`, with generated code; null where there is none. Any thread may ask.
  const StepCode<T>* generated_code() const {
    std::call_once(generated_once_, [this] {
      generated_ = generate_step<T>(step.settings, components_, code_target_);
      if (generated_ == nullptr) return;
      generated_code_ = step;
      generated_code_.settings.generated = generated_.get();
      generated_code_.inlined = &generated_kernels<T>(code_target_);
      take_inlined(generated_code_);
    });
    return generated_ == nullptr ? nullptr : &generated_code_;
  }
  // Puts that in the place of `code`, where there is any. Returns when to ask again: kNever.
  std::int64_t take_generated_code(StepCode<T>& code) const {
    if (const StepCode<T>* const generated = generated_code()) code = *generated;
    return kNever;
  }
  void note_steps(std::int64_t steps) const {
    if (take_code_after_ != kNever) note_kept_steps(step.settings, components_, steps);
  }

  // Advances with another right-hand side over the same state, and its Jacobian where the method needs one, with the
  // general kernels: those compiled in one piece with a system have the same bits, but know the system alone.
  void use(std::shared_ptr<const TileFunction<T>> function, std::shared_ptr<const JacobianTile<T>> of_function,
           CpuTarget target) {
    rhs = std::move(function);
    jacobian = std::move(of_function);
    step.settings.rhs = rhs.get();
    step.settings.jacobian = jacobian.get();
    step.settings.linear_tile_at = function_bytes();
    step.kernels = tile_kernels<T>(target);
    step.inlined = nullptr;
    step.whole_step = nullptr;
  }

  // Of a problem that has got other trajectories.
  void take_stops() {
    stops = detail::Stops(*problem, *options);
    step.settings.has_stops = !stops.empty();
  }

  std::size_t components() const { return components_; }
  std::size_t parameters() const { return parameters_; }
  std::size_t save_points() const { return save_points_; }
  int stages() const { return tableau.source->stages; }
  int interpolant_stages() const { return tableau.source->interpolant_stages; }
  // Whether an event or resets look at where states are.
  bool watches_functions() const { return event != nullptr || !resets.empty(); }
  int evaluations() const { return tableau.source->evaluations(!step.settings.fixed); }  // by an attempt
  std::size_t workspace_bytes() const {
    return function_bytes() + (jacobian ? LinearTile<T>::bytes(jacobian->layout()) : std::size_t{0});
  }

  const Problem* problem;
  const Options* options;
  detail::Stops stops;
  StepCode<T> step;
  const LoweredTableau<T>& tableau;
  std::shared_ptr<const TileFunction<T>> rhs;
  std::shared_ptr<const TileFunction<T>> event;  // null without one
  std::vector<LoweredReset<T>> resets;           // of Problem::resets
  std::shared_ptr<const JacobianTile<T>> jacobian;  // null with an explicit method
  std::int64_t start_evaluations;                // of the right-hand side before the first step

 private:
  // Of the workspace: what functions need, one at a time.
  std::size_t function_bytes() const {
    std::size_t most = std::max(rhs->workspace_bytes(), event ? event->workspace_bytes() : std::size_t{0});
    for (const LoweredReset<T>& reset : resets)
      most = std::max({most, reset.function->workspace_bytes(), reset.state->workspace_bytes()});
    if (jacobian) most = std::max(most, jacobian->workspace_bytes());
    return (most + 63) / 64 * 64;
  }

  // A register of float64 on AVX2.
  static constexpr std::size_t kFewTrajectories = 4;

  // Code takes 15 to 60 microseconds and saves 0.2 to 0.6 in each step of one trajectory; in larger systems both grow.
  static constexpr std::int64_t kStepsBeforeCode = 128;

  // How many steps adaptive trajectories will make is not known.
  bool makes_many_steps() const {
    constexpr std::size_t kManyTrajectories = 256;
    constexpr double kManyTileSteps = 200;
    const std::size_t count = problem->trajectories();
    if (count >= kManyTrajectories || count == 0) return count > 0;
    const double tiles = std::ceil(static_cast<double>(count) / kTileLanes);
    const double span = std::abs(problem->end_time(0) - problem->start_time(0));
    return step.settings.fixed && tiles * span / options->dt >= kManyTileSteps;
  }

  void take_inlined(StepCode<T>& code) const {
    if (code.inlined == nullptr) return;
    code.kernels.attempt = code.inlined->attempt;
    // Those of the systems know no stops.
    const bool finds_ends = stops.empty() || code.settings.generated != nullptr;
    if (options->control == StepControl::per_trajectory && !code.settings.keep_stages && finds_ends)
      code.whole_step = code.inlined->whole_step;
  }

  CpuTarget code_target_ = {};
  std::int64_t take_code_after_ = kNever;
  mutable std::once_flag generated_once_;
  mutable std::shared_ptr<const GeneratedStep<T>> generated_;
  mutable StepCode<T> generated_code_ = {};
  // Asked for at every trajectory's start and end: kept rather than called for.
  std::size_t components_, parameters_, save_points_;
  std::vector<T> atol_;           // [component]
  std::vector<double> atol_f64_;  // [component]
};

// A block of the sink with trajectories still on their way.
struct OpenBlock {
  SolutionBlock block;
  std::size_t unfinished;
  std::vector<std::uint8_t> handed_in = {};  // what block.handed_in shows; empty before the first time
};

// One trajectory's bookkeeping.
template <class T>
struct LaneRecord {
  OpenBlock* block = nullptr;
  std::size_t row = 0;                 // within the block
  const double* save_times = nullptr;  // [time]
  T* state = nullptr;                  // [time][component], within the block
  double t_end = 0;                    // of its span
  std::size_t saved = 0;
  std::int64_t started_at = 0;  // the worker's step count then
  std::int32_t rejected = 0;
  std::int32_t extra_evaluations = 0;  // for the interpolant
  T event_value = 0;                   // at the step's start
  TrajectoryEvents* events = nullptr;  // within the block; null: not kept
};

// Lets the lane head for the first stop on its way to `t_end`.
template <class T>
void head_for_stop(TileState<T>& tile, int lane, double t_end) {
  const auto [limit, before] = detail::limit_at(tile.stops[lane], tile.t[lane], t_end);
  tile.t_end[lane] = limit;
  tile.t_before[lane] = before;
}

// At which functions are evaluated of the states at the lanes' times, from which steps go on: the far sides of jumps
// there.
template <class T>
void times_behind(const TileState<T>& tile, bool has_stops, double* behind) {
  for (int lane = 0; lane < kTileLanes; ++lane) {
    const bool jumps = has_stops && lane < tile.lanes;
    behind[lane] =
        jumps ? detail::step_end(tile.stops[lane], tile.t[lane], tile.t_end[lane] < tile.t[lane]).behind : tile.t[lane];
  }
}

// What happens to a lane's state at time t, in rows [component][lane]; whether anything does.
template <class T>
bool give_impulses(const detail::StopTimes& stops, double t, int lane, T* rows) {
  bool any = false;
  detail::for_changes(stops, t, [&](const detail::StateChange& change) {
    T& u = rows[static_cast<std::size_t>(change.component) * kTileLanes + static_cast<std::size_t>(lane)];
    u = detail::changed(u, change);
    any = true;
  });
  return any;
}
// The same where the lane stands. Behind it the derivative has to be evaluated anew.
template <class T>
bool give_impulses(TileState<T>& tile, int lane) {
  return give_impulses(tile.stops[lane], tile.t[lane], lane, tile.y.data());
}

struct Landing {
  LaneMask ended;    // lanes at the end of their span
  LaneMask renewed;  // lanes behind a jump or a reset, whose derivative is that behind it
  LaneMask struck;   // lanes that an impulse there ends, being their event
};

// Of lanes that were advanced: where there are stops, those that are at one and not at the end of their span go on,
// but for those that have made all the attempts they may. strike(lanes) tells which of these, whose states impulses
// have changed, are at their event. `reset` lanes have been, and are not at the end of their span.
template <class T, class Strike>
Landing pass_stops(const StepCode<T>& code, TileState<T>& tile, LaneRecord<T>* records, LaneMask advanced,
                   LaneMask exhausted, LaneMask reset, const Strike& strike) {
  const LaneMask landed = advanced & tile.last;
  Landing landing{landed, reset & ~exhausted, 0};
  if (!code.settings.has_stops && reset == 0) return landing;
  LaneMask changed = 0;
  for (LaneMask bits = reset; bits != 0; bits &= bits - 1) {
    const int lane = __builtin_ctz(bits);
    tile.t_stage[lane] = tile.t[lane];
  }
  LaneMask at_stops = code.settings.fixed ? advanced : landed;
  if (!code.settings.has_stops) at_stops = 0;
  for (LaneMask bits = at_stops; bits != 0; bits &= bits - 1) {
    const int lane = __builtin_ctz(bits);
    const LaneMask bit = LaneMask{1} << lane;
    if (tile.t[lane] == records[lane].t_end) continue;
    detail::StepEnd here{tile.t_last[lane], tile.t_behind[lane]};
    if (!code.settings.fixed) {
      landing.ended &= ~bit;
      head_for_stop(tile, lane, records[lane].t_end);
      here = detail::step_end(tile.stops[lane], tile.t[lane], records[lane].t_end < tile.t[lane]);
    }
    tile.t_stage[lane] = here.behind;
    if (here.behind != here.before) landing.renewed |= bit & ~exhausted;
    if (here.behind != here.before && (landing.renewed & bit) != 0 && give_impulses(tile, lane)) changed |= bit;
  }
  if (changed != 0) landing.struck = strike(changed);
  landing.renewed &= ~landing.struck;
  if (landing.renewed == 0) return landing;
  for (int lane = 0; lane < tile.lanes; ++lane) {
    if (((landing.renewed >> lane) & 1) != 0) {
      ++records[lane].extra_evaluations;
    } else {
      tile.t_stage[lane] = tile.t[lane];
    }
  }
  code.kernels.renew(tile, code.settings, landing.renewed);
  return landing;
}

// Fills what the trajectory never reached with NaN and writes its record. Returns the record.
template <class T>
const TrajectoryRecord& close_record(const SolveContext<T>& context, LaneRecord<T>& lane, Status status,
                                     std::int64_t attempts, std::int64_t evaluations, double end_time) {
  const std::size_t n = context.components();
  for (; lane.saved < context.save_points(); ++lane.saved) {
    for (std::size_t c = 0; c < n; ++c) lane.state[lane.saved * n + c] = std::numeric_limits<T>::quiet_NaN();
  }
  // In place: a copy put together on the stack would be read back in pieces larger than were written, and wait for it.
  TrajectoryRecord& record = lane.block->block.records[lane.row];
  record.status = status;
  record.accepted = static_cast<std::int32_t>(attempts - lane.rejected);
  record.rejected = lane.rejected;
  record.evaluations = static_cast<std::int32_t>(evaluations + lane.extra_evaluations);
  record.end_time = end_time;
  return record;
}

}  // namespace lockstep::ode::cpu
