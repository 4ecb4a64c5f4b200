// What happens inside an accepted step: save points on the interpolant, the location of events and resets.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "lockstep/ode/cpu/reset_tile.h"
#include "lockstep/ode/cpu/solve_context.h"
#include "lockstep/ode/cpu/turning_lanes.h"
#include "lockstep/ode/numerics.h"

namespace lockstep::ode::cpu {

// Save time to come, or one never reached in the direction of the span.
template <class T>
double next_save_time(const SolveContext<T>& context, const LaneRecord<T>& lane, double span) {
  if (lane.saved < context.save_points()) return lane.save_times[lane.saved];
  return std::copysign(std::numeric_limits<double>::infinity(), span);
}

// Column `lane` of [row][lane] numbers, to contiguous memory.
template <class T>
void copy_column(const T* in, int lane, std::size_t rows, T* out) {
  for (std::size_t c = 0; c < rows; ++c) out[c] = in[c * kTileLanes + static_cast<std::size_t>(lane)];
}

// What happens to a loaded lane at its start: save points there, and behind them its impulses.
template <class T>
void leave_start(const SolveContext<T>& context, TileState<T>& tile, int lane, LaneRecord<T>& record) {
  for (; record.saved < context.save_points() && record.save_times[record.saved] == tile.t[lane]; ++record.saved)
    copy_column(tile.y.data(), lane, context.components(), record.state + record.saved * context.components());
  if (context.step.settings.has_stops && tile.t[lane] != record.t_end) give_impulses(tile, lane);
}

// Works on one tile and the records of its lanes, between the kernels' decide() and advance().
template <class T>
class StepSaver {
 public:
  // `code` is what makes the tile's steps, and may change.
  StepSaver(const SolveContext<T>& context, const StepCode<T>& code, TileState<T>& tile, LaneRecord<T>* records)
      : context_(context),
        code_(code),
        tile_(tile),
        records_(records),
        event_values_(context.event ? kTileLanes : 0),
        event_states_(context.event ? context.components() * kTileLanes : 0),
        turns_(context.event ? kTileLanes : 0),
        resets_(context, tile, records, seen_) {}

  // Values of event and resets at the start of staged trajectories, or of those of the tile itself.
  void start_events(TileState<T>& staged, LaneRecord<T>* records) {
    if (!context_.watches_functions()) return;
    double begin[kTileLanes];
    times_behind(staged, code_.settings.has_stops, begin);
    resets_.start(staged, begin);
    if (!context_.event) return;
    evaluate_event(begin, staged.y.data(), staged);
    for (int lane = 0; lane < staged.lanes; ++lane)
      records[lane].event_value = event_values_[static_cast<std::size_t>(lane)];
  }

  void keep_changes(std::vector<ResetChange>* changes) { resets_.keep_changes(changes); }
  // Those lanes' resets go with them.
  void install(int staged, int lane) { resets_.install(staged, lane); }
  void move(int from, int to) { resets_.move(from, to); }

  // Saves what is due in the step just accepted. Returns the lanes that their event stops in it; reset() is for those
  // that a reset does.
  LaneMask save_step() {
    interpolant_ready_ = context_.interpolant_stages() == 0;
    counted_ = cut_ = piled_up_ = 0;
    LaneMask stopped = 0;
    if (context_.watches_functions()) code_.kernels.estimate_middle(tile_, code_.settings);
    see_ends();
    const LaneMask inside = resets_.look_at_end(ends());
    if (context_.event) stopped = locate_events();
    if (resets_.count() != 0) stopped = locate_resets(inside, stopped);
    const LaneMask terminated = stopped & ~cut_;
    if (context_.event) {
      for (LaneMask bits = tile_.accepted & ~stopped; bits != 0; bits &= bits - 1)
        records_[__builtin_ctz(bits)].event_value = event_after_[__builtin_ctz(bits)];
    }
    LaneMask due = tile_.save_due & ~piled_up_;
    for (LaneMask bits = due & stopped; bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      if (!reached(lane, stopped)) due &= ~(LaneMask{1} << lane);
    }
    while (due != 0) due = save_once(due, stopped);
    return terminated;
  }

  // Of the step just saved.
  LaneMask cut() const { return cut_; }            // lanes that a reset stops in it
  LaneMask piled_up() const { return piled_up_; }  // of these, those for which no time has passed: they stay
  LaneMask cut_within() const {                    // likewise, those that do not come to its end
    LaneMask within = 0;
    for (LaneMask bits = cut_; bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      if (event_times_[lane] != tile_.t_new[lane]) within |= LaneMask{1} << lane;
    }
    return within;
  }
  // After advance() of the others: moves the lanes that are cut to where they are reset, and resets them. Returns those
  // that their event ends there.
  LaneMask reset() {
    const LaneMask moved = cut_ & ~piled_up_;
    if (moved == 0) return 0;
    for (LaneMask bits = moved; bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      tile_.t[lane] = event_times_[lane];
      seen_[lane] = event_thetas_[lane] == 1 ? behind_[lane] : event_times_[lane];
      for (std::size_t at = static_cast<std::size_t>(lane); at < cut_states_.size(); at += kTileLanes)
        tile_.y[at] = cut_states_[at];
    }
    return settle(moved, striking_);
  }

  // Lanes whose states impulses have changed, which are seen at tile.t_stage: which of them are at their event for
  // that, or for the resets that this strikes.
  LaneMask strike(LaneMask changed) {
    std::copy_n(tile_.t_stage, kTileLanes, seen_);
    return settle(changed, ResetTile<T>::none());
  }
  // When functions of a lane that reset() or strike() changed were evaluated.
  double seen(int lane) const { return seen_[lane]; }
  // Whether what stops a lane in the step is a function's leap, with the time, at its end, and no crossing.
  bool leapt(int lane) const { return (((event_leapt_ & ~cut_) | (resets_.leapt() & cut_)) >> lane) & 1; }

  // Of a lane that save_step(), reset() or strike() returned.
  double event_time(int lane) const { return event_times_[lane]; }
  double event_theta(int lane) const { return event_thetas_[lane]; }  // in its step
  const T* event_states() const { return event_states_.data(); }      // [component][lane]

 private:
  LaneMask settle(LaneMask changed, const typename ResetTile<T>::Striking& striking) {
    const LaneMask struck = resets_.settle(changed, striking, [this](LaneMask lanes) { return at_event(lanes); });
    if (context_.event) {
      for (LaneMask bits = changed & ~struck; bits != 0; bits &= bits - 1) {
        const int lane = __builtin_ctz(bits);
        records_[lane].event_value = event_values_[static_cast<std::size_t>(lane)];
      }
    }
    return struck;
  }
  LaneMask at_event(LaneMask changed) {
    if (!context_.event || changed == 0) return 0;
    evaluate_event(seen_, tile_.y.data(), tile_);
    LaneMask struck = 0;
    for (LaneMask bits = changed; bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      const T after = event_values_[static_cast<std::size_t>(lane)];
      if (crosses(records_[lane].event_value, after)) {
        struck |= LaneMask{1} << lane;
        event_times_[lane] = tile_.t[lane];
        for (std::size_t at = static_cast<std::size_t>(lane); at < event_states_.size(); at += kTileLanes)
          event_states_[at] = tile_.y[at];
      }
    }
    return struck;
  }

  bool reached(int lane, LaneMask stopped) const {
    const double stop = (stopped >> lane) & 1 ? event_times_[lane] : tile_.t_new[lane];
    return (stop - tile_.next_save[lane]) * tile_.h_try[lane] >= 0;
  }

  // One save point of each lane that is due; returns the lanes with another one in this step.
  LaneMask save_once(LaneMask due, LaneMask stopped) {
    LaneMask inside = 0;
    for (LaneMask bits = due; bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      const double theta = scalar::step_fraction<ScalarLane<double>>(tile_.next_save[lane], tile_.t[lane],
                                                                     tile_.t_new[lane], tile_.h_try[lane]);
      tile_.theta[lane] = theta;
      if (theta != 1) inside |= LaneMask{1} << lane;
    }
    const T* states = code_.whole_step != nullptr ? tile_.y.data() : tile_.y1.data();
    if (inside != 0) {
      make_interpolant_ready(inside);
      code_.kernels.interpolate(tile_, code_.settings);
      states = tile_.scratch.data();
    }
    const std::size_t n = context_.components();
    for (LaneMask bits = due; bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      LaneRecord<T>& record = records_[lane];
      T* to = record.state + record.saved * n;
      copy_column(states, lane, n, to);
      // A sink's memory is seldom in the cache: the next line is fetched while steps are computed.
      __builtin_prefetch(reinterpret_cast<const char*>(to) + 64, 1);
      ++record.saved;
      tile_.next_save[lane] = next_save_time(context_, record, tile_.h_try[lane]);
      if (!reached(lane, stopped)) due &= ~(LaneMask{1} << lane);
    }
    return due;
  }

  void make_interpolant_ready(LaneMask lanes) {
    if (context_.interpolant_stages() == 0) return;
    if (!interpolant_ready_) code_.kernels.complete_interpolant(tile_, code_.settings);
    interpolant_ready_ = true;
    for (LaneMask bits = lanes & ~counted_; bits != 0; bits &= bits - 1) {
      records_[__builtin_ctz(bits)].extra_evaluations += context_.interpolant_stages();
    }
    counted_ |= lanes;
  }

  void evaluate_event(const double* t, const T* states, const TileState<T>& tile) {
    context_.event->evaluate({t, states, tile.parameters.data(), event_values_.data(), tile.lanes}, tile.workspace);
  }

  bool crosses(T before, T after) const { return detail::crosses(context_.problem->event->direction, before, after); }

  // Bisection on the interpolant, all crossing lanes at once; each ends on the far side of its crossing. `scratch` has
  // the states' estimates in the middle of the step.
  LaneMask locate_events() {
    double low[kTileLanes] = {}, high[kTileLanes];
    std::fill(std::begin(high), std::end(high), 1.0);
    T before[kTileLanes];
    const LaneMask crossing = find_crossings(low, before, high);
    find_leaps(crossing);
    if (crossing == 0) return event_leapt_;
    make_interpolant_ready(crossing);
    for (int i = 0; i < scalar::kEventBisections; ++i) {
      for (int lane = 0; lane < tile_.lanes; ++lane) tile_.theta[lane] = 0.5 * (low[lane] + high[lane]);
      evaluate_event_within();
      for (LaneMask bits = crossing; bits != 0; bits &= bits - 1) {
        const int lane = __builtin_ctz(bits);
        const bool past = crosses(before[lane], event_values_[static_cast<std::size_t>(lane)]);
        (past ? high : low)[lane] = tile_.theta[lane];
      }
    }
    std::copy(std::begin(high), std::end(high), tile_.theta);
    code_.kernels.interpolate(tile_, code_.settings);
    for (LaneMask bits = crossing; bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      event_thetas_[lane] = high[lane];
      event_times_[lane] = time_within(lane, high[lane]);
      for (std::size_t c = 0; c < context_.components(); ++c) {
        const std::size_t at = c * kTileLanes + static_cast<std::size_t>(lane);
        event_states_[at] = tile_.scratch[at];
      }
    }
    return crossing | event_leapt_;
  }
  // Of lanes that do not cross: those at whose end the event's function leaps, with the time, over the event.
  void find_leaps(LaneMask crossing) {
    event_leapt_ = 0;
    if (leaping_ == 0) return;
    evaluate_event(behind_, tile_.y1.data(), tile_);
    for (LaneMask bits = leaping_ & ~crossing; bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      const T leapt = event_values_[static_cast<std::size_t>(lane)];
      if (crosses(std::exchange(event_after_[lane], leapt), leapt)) {
        event_leapt_ |= LaneMask{1} << lane;
        event_thetas_[lane] = 1;
        event_times_[lane] = tile_.t_new[lane];
        for (std::size_t at = static_cast<std::size_t>(lane); at < event_states_.size(); at += kTileLanes)
          event_states_[at] = tile_.y1[at];
      }
    }
  }

  // The lanes that cross: between which places, of which the first has that value.
  LaneMask find_crossings(double* low, T* before, double* high) {
    const auto strikes = [this](T from, T to) { return crosses(from, to); };
    StepValues<T> values;
    evaluate_event(tile_.t_stage, tile_.scratch.data(), tile_);
    std::copy_n(event_values_.data(), kTileLanes, values.middle);
    evaluate_event(ends().before, tile_.y1.data(), tile_);
    std::copy_n(event_values_.data(), kTileLanes, values.after);
    LaneMask crossing = 0;
    for (int lane = 0; lane < kTileLanes; ++lane) {
      before[lane] = values.before[lane] = records_[lane].event_value;
      event_after_[lane] = values.after[lane];
      crossing |= LaneMask{strikes(values.before[lane], values.after[lane])} << lane;
    }
    crossing &= tile_.accepted;
    const auto turn_of = [this](int lane) -> detail::TurnSearch<T>& { return turns_[static_cast<std::size_t>(lane)]; };
    LaneMask looking = turning_lanes(tile_.accepted & ~crossing, values);
    for (LaneMask bits = looking; bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      turn_of(lane) = {values.before[lane], values.middle[lane], values.after[lane], strikes};
      if (!turn_of(lane).open()) looking &= ~(LaneMask{1} << lane);
    }
    if (looking == 0) return crossing;
    make_interpolant_ready(looking);
    follow_turns(
        looking, turn_of, tile_.theta, [this] { evaluate_event_within(); }, event_values_.data(), strikes);
    for (; looking != 0; looking &= looking - 1) {
      const int lane = __builtin_ctz(looking);
      const detail::TurnSearch<T>& turn = turn_of(lane);
      if (!turn.found()) continue;
      crossing |= LaneMask{1} << lane;
      low[lane] = turn.low();
      before[lane] = turn.at_low();
      high[lane] = turn.high();
    }
    return crossing;
  }
  // At theta of each lane's step.
  void evaluate_event_within() {
    for (int lane = 0; lane < tile_.lanes; ++lane)
      tile_.t_stage[lane] = std::fma(tile_.theta[lane], tile_.h_try[lane], tile_.t[lane]);
    code_.kernels.interpolate(tile_, code_.settings);
    evaluate_event(tile_.t_stage, tile_.scratch.data(), tile_);
  }

  // At which functions are evaluated of the states at the steps' ends.
  StepEnds ends() const { return {code_.settings.has_stops ? tile_.t_last : tile_.t_new, behind_, leaping_}; }
  void see_ends() {
    leaping_ = 0;
    if (!context_.watches_functions()) return;
    std::copy_n(ends().before, kTileLanes, behind_);
    if (!code_.settings.has_stops) return;
    for (LaneMask bits = tile_.accepted; bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      const double before = tile_.t_last[lane], t_new = tile_.t_new[lane];
      if (t_new == records_[lane].t_end || (before == t_new && !code_.settings.fixed)) continue;
      const double behind = detail::step_end(tile_.stops[lane], t_new, t_new < tile_.t[lane]).behind;
      if (behind == before) continue;
      behind_[lane] = behind;
      leaping_ |= LaneMask{1} << lane;
    }
  }

  double time_within(int lane, double theta) const {
    return theta == 1 ? tile_.t_new[lane] : std::fma(theta, tile_.h_try[lane], tile_.t[lane]);
  }
  // Whether the reset that strikes at t follows its last time without time between them.
  bool piles_up(int lane, double t) const {
    return resets_.piles_up(striking_[static_cast<std::size_t>(lane)], lane, t,
                            scalar::smallest_step<ScalarLane<double>>(tile_.t[lane], records_[lane].t_end));
  }
  // Where resets come first; the event's lanes are `stopped`. Returns the lanes that either stops.
  LaneMask locate_resets(LaneMask inside, LaneMask stopped) {
    constexpr double kNowhere = 2;
    if ((inside | leaping_) != 0) {
      if (inside != 0) make_interpolant_ready(inside);
      double theta[kTileLanes];
      for (int lane = 0; lane < kTileLanes; ++lane)
        theta[lane] = (stopped >> lane) & 1 ? event_thetas_[lane] : kNowhere;
      striking_ = resets_.find_first(code_, inside, leaping_, theta);
      for (LaneMask bits = inside | leaping_; bits != 0; bits &= bits - 1) {
        const int lane = __builtin_ctz(bits);
        const LaneMask bit = LaneMask{1} << lane;
        if ((resets_.resting() & bit) != 0) {
          piled_up_ |= bit;
          cut_ |= bit;
          event_times_[lane] = tile_.t[lane];
          continue;
        }
        if (striking_[static_cast<std::size_t>(lane)] == ResetTile<T>::kNone) continue;
        const double t = time_within(lane, theta[lane]);
        if (t == records_[lane].t_end) continue;  // it ends before it
        if (piles_up(lane, t)) piled_up_ |= bit;
        cut_ |= bit;
        event_times_[lane] = t;
        event_thetas_[lane] = t == tile_.t_new[lane] ? 1 : theta[lane];
      }
    }
    stopped |= cut_;
    resets_.keep_ends(tile_.accepted & ~stopped);
    resets_.keep_cuts(cut_ & ~piled_up_, striking_);
    if (cut_ == 0) return stopped;
    std::copy(std::begin(event_thetas_), std::end(event_thetas_), tile_.theta);
    code_.kernels.interpolate(tile_, code_.settings);
    cut_states_.assign(tile_.scratch.begin(), tile_.scratch.end());
    return stopped;
  }

  const SolveContext<T>& context_;
  const StepCode<T>& code_;
  TileState<T>& tile_;
  LaneRecord<T>* records_;
  AlignedBuffer<T> event_values_;  // [lane]
  AlignedBuffer<T> event_states_;  // [component][lane], where events stopped trajectories
  std::vector<detail::TurnSearch<T>> turns_;  // [lane], of the event
  double seen_[kTileLanes] = {};              // at which functions are evaluated of states that lie at tile.t
  double behind_[kTileLanes] = {};            // of those at the step's end, StepEnds::behind
  LaneMask leaping_ = 0, event_leapt_ = 0;
  double event_times_[kTileLanes] = {}, event_thetas_[kTileLanes] = {};
  T event_after_[kTileLanes] = {};  // the event's value at the end of the accepted step
  ResetTile<T> resets_;
  typename ResetTile<T>::Striking striking_ = {};
  std::vector<T> cut_states_;  // [component][lane]: before their resets
  LaneMask cut_ = 0, piled_up_ = 0;
  bool interpolant_ready_ = true;
  LaneMask counted_ = 0;  // lanes whose interpolant stages of this step are counted
};

}  // namespace lockstep::ode::cpu
