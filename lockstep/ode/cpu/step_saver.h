// What happens inside an accepted step: save points on the interpolant, and the location of events.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/ode/cpu/solve_context.h"
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
        event_states_(context.event ? context.components() * kTileLanes : 0) {}

  // Event values at the start of staged trajectories.
  void start_events(const TileState<T>& staged, LaneRecord<T>* records) {
    if (!context_.event) return;
    evaluate_event(staged.t, staged.y.data(), staged);
    for (int lane = 0; lane < staged.lanes; ++lane)
      records[lane].event_value = event_values_[static_cast<std::size_t>(lane)];
  }

  // Saves what is due in the step just accepted. Returns the lanes that their event stops in it.
  LaneMask save_step() {
    interpolant_ready_ = context_.interpolant_stages() == 0;
    counted_ = 0;
    LaneMask stopped = 0;
    if (context_.event) stopped = locate_events();
    LaneMask due = tile_.save_due;
    for (LaneMask bits = due & stopped; bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      if (!reached(lane, stopped)) due &= ~(LaneMask{1} << lane);
    }
    while (due != 0) due = save_once(due, stopped);
    return stopped;
  }

  // Lanes whose states have changed at once, outside of steps: which of them are at their event for that.
  LaneMask strike(LaneMask changed) {
    if (!context_.event) return 0;
    evaluate_event(tile_.t, tile_.y.data(), tile_);
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
      records_[lane].event_value = after;
    }
    return struck;
  }

  // Of a lane that save_step() or strike() returned.
  double event_time(int lane) const { return event_times_[lane]; }
  double event_theta(int lane) const { return event_thetas_[lane]; }  // in its step
  const T* event_states() const { return event_states_.data(); }      // [component][lane]

 private:
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

  bool crosses(T before, T after) const {
    const auto direction = context_.problem->event->direction;
    const bool rises = before < 0 && after >= 0;
    const bool falls = before > 0 && after <= 0;
    return (rises && direction != TerminalEvent::Direction::falling) ||
           (falls && direction != TerminalEvent::Direction::rising);
  }

  // Bisection on the interpolant, all crossing lanes at once; each ends on the far side of its crossing.
  LaneMask locate_events() {
    evaluate_event(tile_.t_new, tile_.y1.data(), tile_);
    LaneMask crossing = 0;
    for (LaneMask bits = tile_.accepted; bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      const T after = event_values_[static_cast<std::size_t>(lane)];
      if (crosses(records_[lane].event_value, after)) {
        crossing |= LaneMask{1} << lane;
      } else {
        records_[lane].event_value = after;
      }
    }
    if (crossing == 0) return 0;
    make_interpolant_ready(crossing);
    double low[kTileLanes] = {}, high[kTileLanes];
    std::fill(std::begin(high), std::end(high), 1.0);
    for (int i = 0; i < scalar::kEventBisections; ++i) {
      for (int lane = 0; lane < tile_.lanes; ++lane) {
        tile_.theta[lane] = 0.5 * (low[lane] + high[lane]);
        tile_.t_stage[lane] = std::fma(tile_.theta[lane], tile_.h_try[lane], tile_.t[lane]);
      }
      code_.kernels.interpolate(tile_, code_.settings);
      evaluate_event(tile_.t_stage, tile_.scratch.data(), tile_);
      for (LaneMask bits = crossing; bits != 0; bits &= bits - 1) {
        const int lane = __builtin_ctz(bits);
        const bool past = crosses(records_[lane].event_value, event_values_[static_cast<std::size_t>(lane)]);
        (past ? high : low)[lane] = tile_.theta[lane];
      }
    }
    std::copy(std::begin(high), std::end(high), tile_.theta);
    code_.kernels.interpolate(tile_, code_.settings);
    for (LaneMask bits = crossing; bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      event_thetas_[lane] = high[lane];
      event_times_[lane] = high[lane] == 1 ? tile_.t_new[lane] : std::fma(high[lane], tile_.h_try[lane], tile_.t[lane]);
      for (std::size_t c = 0; c < context_.components(); ++c) {
        const std::size_t at = c * kTileLanes + static_cast<std::size_t>(lane);
        event_states_[at] = tile_.scratch[at];
      }
    }
    return crossing;
  }

  const SolveContext<T>& context_;
  const StepCode<T>& code_;
  TileState<T>& tile_;
  LaneRecord<T>* records_;
  AlignedBuffer<T> event_values_;  // [lane]
  AlignedBuffer<T> event_states_;  // [component][lane], where events stopped trajectories
  double event_times_[kTileLanes] = {}, event_thetas_[kTileLanes] = {};
  bool interpolant_ready_ = true;
  LaneMask counted_ = 0;  // lanes whose interpolant stages of this step are counted
};

}  // namespace lockstep::ode::cpu
