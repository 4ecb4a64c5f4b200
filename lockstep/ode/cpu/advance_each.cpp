// Per-trajectory control: each lane of a tile is a trajectory with its own time and step. All lanes attempt a step
// together; a lane that is done is refilled from a staged tile whose first evaluations were made in one go.
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "lockstep/core/parallel.h"
#include "lockstep/ode/cpu/block_queue.h"
#include "lockstep/ode/cpu/engine.h"
#include "lockstep/ode/cpu/step_saver.h"
#include "lockstep/ode/detail/fixed_steps.h"
#include "lockstep/ode/methods.h"

namespace lockstep::ode::cpu {
namespace {

template <class T>
class Worker {
 public:
  Worker(const SolveContext<T>& context, BlockQueue& queue)
      : context_(context),
        code_(context.step),
        queue_(queue),
        workspace_(context.workspace_bytes()),
        staged_(context.components(), context.parameters(), 2, workspace_.data()),
        tile_(context.components(), context.parameters(), context.stages() + context.interpolant_stages(),
              workspace_.data()),
        saver_(context, code_, tile_, lanes_) {}

  Summary run() {
    while (tile_.lanes < queue_.lanes() && install(tile_.lanes)) ++tile_.lanes;
    const std::atomic<std::uint32_t>* const wishes = queue_.wishes();
    std::uint32_t heard = wishes == nullptr ? 0 : wishes->load(std::memory_order_relaxed);
    while (tile_.lanes > 0 && !queue_.stopped()) {
      step();
      if (wishes == nullptr || wishes->load(std::memory_order_relaxed) == heard) continue;
      heard = wishes->load(std::memory_order_relaxed);
      for (const auto& open : open_) hand_in(*open);
    }
    cancel();
    context_.note_steps(steps_);
    return summary_;
  }

 private:
  // Fixed steps before any save point or end, all lanes together, where the system's own kernel can run them in one go.
  void run_plain_steps() {
    double room = 4096;  // steps between looks at the caller's wish to stop
    for (int lane = 0; lane < tile_.lanes; ++lane) {
      const double until_save = std::floor((tile_.next_save[lane] - tile_.t[lane]) / tile_.h[lane]) - 1;
      // One attempt is left for the step after these.
      const auto attempts_left =
          static_cast<double>(context_.options->max_steps - (steps_ - lanes_[lane].started_at) - 1);
      room = std::min({room, tile_.step_count[lane] - tile_.step_index[lane] - 1, until_save, attempts_left});
    }
    const int count = static_cast<int>(room);
    if (count < 2) return;
    // Where times do not tell one step from the next, rounding may have brought the save point nearer.
    for (int lane = 0; lane < tile_.lanes; ++lane) {
      const double t = std::fma(tile_.step_index[lane] + count, tile_.h[lane], tile_.t_start[lane]);
      if ((t - tile_.next_save[lane]) * tile_.h[lane] >= 0) return;
    }
    if (code_.inlined->run_fixed(tile_, code_.settings, count)) steps_ += count;
  }

  void step() {
    if (steps_ >= take_code_at_) take_code_at_ = context_.take_generated_code(code_);
    const bool plain = code_.settings.fixed && !code_.settings.has_stops && !context_.event;
    if (code_.inlined != nullptr && plain) run_plain_steps();
    const auto& kernels = code_.kernels;
    if (code_.whole_step != nullptr) {
      code_.whole_step(tile_, code_.settings);
    } else {
      kernels.propose(tile_, code_.settings);
      kernels.attempt(tile_, code_.settings);
      kernels.decide(tile_, code_.settings);
    }
    ++steps_;

    LaneMask finished = saver_.save_step();  // lanes stopped by their event
    LaneMask terminated = finished;
    const LaneMask cut = saver_.cut(), piled_up = saver_.piled_up();  // by their resets
    if (code_.whole_step == nullptr) kernels.advance(tile_, code_.settings, tile_.accepted & ~terminated & ~cut);
    const LaneMask over = cut == 0 ? 0 : saver_.reset();
    terminated |= over;
    if (!code_.settings.fixed) {
      for (LaneMask bits = tile_.after_rejection; bits != 0; bits &= bits - 1) ++lanes_[__builtin_ctz(bits)].rejected;
    }
    const LaneMask exhausted = steps_ >= next_limit_ ? lanes_at_limit() : 0;
    const LaneMask advanced = tile_.accepted & ~terminated & ~saver_.cut_within();
    const LaneMask reset = cut & ~terminated & ~piled_up;
    const auto strike = [this](LaneMask changed) { return saver_.strike(changed); };
    const Landing landing = pass_stops(code_, tile_, lanes_, advanced, exhausted, reset, strike);
    const LaneMask successful = landing.ended;
    terminated |= landing.struck;
    finished |= terminated | successful | tile_.stuck | exhausted | piled_up;

    // From the highest down: a hole is filled from the end, which then holds an unfinished lane.
    while (finished != 0) {
      const int lane = 31 - __builtin_clz(finished);
      const LaneMask bit = LaneMask{1} << lane;
      finished &= ~bit;
      Status status = Status::too_many_steps;
      if (terminated & bit) status = Status::terminated;
      if (successful & bit) status = Status::success;
      if (piled_up & bit) status = Status::step_too_small;
      if (tile_.stuck & bit) {
        const double error = tile_.error_squared[lane];
        status = error <= std::numeric_limits<double>::max() && !code_.settings.fixed ? Status::step_too_small
                                                                                      : Status::not_finite;
      }
      retire(lane, status);
      if (install(lane)) continue;
      const int last = --tile_.lanes;
      if (lane != last) move(last, lane);
    }
  }

  // Lanes that have made all the attempts they may.
  LaneMask lanes_at_limit() {
    LaneMask result = 0;
    next_limit_ = std::numeric_limits<std::int64_t>::max();
    for (int lane = 0; lane < tile_.lanes; ++lane) {
      const std::int64_t limit = lanes_[lane].started_at + context_.options->max_steps;
      if (steps_ >= limit) {
        result |= LaneMask{1} << lane;
      } else {
        next_limit_ = std::min(next_limit_, limit);
      }
    }
    return result;
  }

  // Writes a lane's end; its saved states are in the block already.
  void retire(int lane, Status status) {
    LaneRecord<T>& record = lanes_[lane];
    const std::size_t n = context_.components();
    const T* from = status == Status::terminated ? saver_.event_states() : tile_.y.data();
    copy_column(from, lane, n, static_cast<T*>(record.block->block.end_state) + record.row * n);
    const double end_time = status == Status::terminated ? saver_.event_time(lane) : tile_.t[lane];
    const std::int64_t attempts = steps_ - record.started_at;
    // Attempts that only found a state that is not finite count as rejected.
    if (code_.settings.fixed && status == Status::not_finite) ++record.rejected;
    finish(record, status, attempts, context_.start_evaluations + attempts * context_.evaluations(), end_time);
  }

  void finish(LaneRecord<T>& record, Status status, std::int64_t attempts, std::int64_t evaluations, double end_time) {
    summary_.add(close_record(context_, record, status, attempts, evaluations, end_time));
    if (--record.block->unfinished == 0) close(record.block);
  }

  void close(OpenBlock* open) {
    queue_.commit(open->block);
    for (auto& block : open_) {
      if (block.get() == open) {
        std::swap(block, open_.back());
        open_.pop_back();
        return;
      }
    }
  }

  // A block waits for its slowest trajectory; the others need not.
  void hand_in(OpenBlock& open) {
    const std::size_t count = open.block.count;
    std::vector<std::uint8_t> busy(count, 0);
    const auto note = [&](const LaneRecord<T>& record) {
      if (record.block == &open) busy[record.row] = 1;
    };
    for (int lane = 0; lane < tile_.lanes; ++lane) note(lanes_[lane]);
    for (std::size_t i = staged_next_; i < staged_ready_.size(); ++i) note(staged_records_[staged_ready_[i]]);
    const std::size_t read = unread_ == &open ? unread_row_ : count;
    open.handed_in.resize(count, 0);
    std::vector<std::size_t> rows;
    for (std::size_t row = 0; row < read; ++row) {
      if (busy[row] == 0 && open.handed_in[row] == 0) rows.push_back(row);
    }
    if (rows.empty()) return;
    queue_.hand_in(open.block, rows);
    for (const std::size_t row : rows) open.handed_in[row] = 1;
    open.block.handed_in = open.handed_in.data();
  }

  // Puts the next staged trajectory into a lane; false when there is none left.
  bool install(int lane) {
    if (staged_next_ == staged_ready_.size() && !stage_more()) return false;
    const int from = staged_ready_[staged_next_++];
    copy_lane(staged_, from, tile_, lane);
    lanes_[lane] = staged_records_[from];
    saver_.install(from, lane);
    lanes_[lane].started_at = steps_;
    next_limit_ = std::min(next_limit_, steps_ + context_.options->max_steps);
    tile_.log_error[lane] = scalar::kFirstLogError;
    tile_.after_rejection &= ~(LaneMask{1} << lane);
    return true;
  }

  void move(int from, int to) {
    copy_lane(tile_, from, tile_, to);
    lanes_[to] = lanes_[from];
    saver_.move(from, to);
    tile_.log_error[to] = tile_.log_error[from];
    tile_.step_index[to] = tile_.step_index[from];
    const LaneMask rejected = (tile_.after_rejection >> from) & 1;
    tile_.after_rejection = (tile_.after_rejection & ~(LaneMask{1} << to)) | (rejected << to);
  }

  // What a lane carries from one step to the next, but for its step history.
  void copy_lane(TileState<T>& from_tile, int from, TileState<T>& to_tile, int to) {
    const auto column = [from, to](T* out, const T* in, std::size_t rows) {
      for (std::size_t c = 0; c < rows; ++c)
        out[c * kTileLanes + static_cast<std::size_t>(to)] = in[c * kTileLanes + static_cast<std::size_t>(from)];
    };
    column(to_tile.y.data(), from_tile.y.data(), context_.components());
    column(to_tile.stage(0), from_tile.stage(0), context_.components());
    column(to_tile.parameters.data(), from_tile.parameters.data(), context_.parameters());
    to_tile.t[to] = from_tile.t[from];
    to_tile.t_end[to] = from_tile.t_end[from];
    to_tile.t_before[to] = from_tile.t_before[from];
    if (code_.settings.has_stops) to_tile.stops[to] = from_tile.stops[from];
    to_tile.h[to] = from_tile.h[from];
    to_tile.next_save[to] = from_tile.next_save[from];
    to_tile.t_start[to] = from_tile.t_start[from];
    to_tile.step_index[to] = 0;
    to_tile.step_count[to] = from_tile.step_count[from];
    to_tile.last_dt[to] = from_tile.last_dt[from];
  }

  // Loads up to a tile of trajectories and makes their first evaluations together. Those that end at once (a start
  // that is not finite, an empty span) are finished here.
  bool stage_more() {
    staged_next_ = 0;
    staged_ready_.clear();
    while (staged_ready_.empty()) {
      if (unread_ == nullptr || unread_row_ == unread_->block.count) {
        const SolutionBlock block = queue_.claim();
        if (block.count == 0) {
          unread_ = nullptr;
          return false;
        }
        open_.push_back(std::make_unique<OpenBlock>(OpenBlock{block, block.count}));
        unread_ = open_.back().get();
        unread_row_ = 0;
      }
      staged_.lanes = static_cast<int>(std::min<std::size_t>(kTileLanes, unread_->block.count - unread_row_));
      for (int lane = 0; lane < staged_.lanes; ++lane) load(lane, unread_row_ + static_cast<std::size_t>(lane));
      code_.kernels.start(staged_, code_.settings);
      saver_.start_events(staged_, staged_records_);
      OpenBlock* const block = unread_;
      const bool whole = unread_row_ + static_cast<std::size_t>(staged_.lanes) == block->block.count;
      unread_row_ += static_cast<std::size_t>(staged_.lanes);
      if (whole) unread_ = nullptr;  // finishing its trajectories may close the block
      for (int lane = 0; lane < staged_.lanes; ++lane) begin(lane);
    }
    return true;
  }

  void load(int lane, std::size_t row) {
    const Problem& problem = *context_.problem;
    const std::size_t trajectory = unread_->block.first + row;
    const std::size_t n = context_.components();
    const double* u0 = &problem.initial_states[trajectory * n];
    for (std::size_t c = 0; c < n; ++c)
      staged_.y[c * kTileLanes + static_cast<std::size_t>(lane)] = static_cast<T>(u0[c]);
    const std::size_t m = context_.parameters();
    const double* p = problem.parameters.data() + (problem.parameters.size() == m ? 0 : trajectory * m);
    for (std::size_t i = 0; i < m; ++i) {
      staged_.parameters[i * kTileLanes + static_cast<std::size_t>(lane)] = static_cast<T>(p[i]);
    }
    const double start = problem.start_time(trajectory), end = problem.end_time(trajectory);
    staged_.t[lane] = staged_.t_start[lane] = start;
    staged_.t_end[lane] = end;
    if (code_.settings.fixed && start != end) {
      const auto steps = detail::fixed_steps(start, end, context_.options->dt);
      staged_.h[lane] = steps.dt;
      staged_.last_dt[lane] = steps.last_dt;
      staged_.step_count[lane] = steps.count;
    }
    // A sink's memory is seldom in the cache: what the end will be written to is fetched while steps are computed.
    __builtin_prefetch(static_cast<T*>(unread_->block.end_state) + row * n, 1);
    __builtin_prefetch(unread_->block.records + row, 1);
    staged_records_[lane] = {.block = unread_,
                             .row = row,
                             .save_times = problem.save_times_of(trajectory),
                             .state = static_cast<T*>(unread_->block.state) + row * context_.save_points() * n,
                             .t_end = end,
                             .events = unread_->block.events == nullptr ? nullptr : unread_->block.events + row};
    staged_.t_stage[lane] = start;
    if (code_.settings.has_stops) {
      staged_.stops[lane] = context_.stops.times(trajectory);
      staged_.t_stage[lane] = detail::step_end(staged_.stops[lane], start, end < start).behind;
    }
    leave_start(context_, staged_, lane, staged_records_[lane]);
  }

  void begin(int lane) {
    LaneRecord<T>& record = staged_records_[lane];
    staged_.next_save[lane] = next_save_time(context_, record, staged_.t_end[lane] - staged_.t[lane]);
    const bool broken = staged_.error_squared[lane] != 0;
    if (broken || staged_.t[lane] == staged_.t_end[lane]) {
      end_before_start(lane, broken ? Status::not_finite : Status::success);
    } else {
      if (code_.settings.heads_for_stops()) head_for_stop(staged_, lane, record.t_end);
      staged_ready_.push_back(lane);
    }
  }

  void end_before_start(int lane, Status status) {
    LaneRecord<T>& record = staged_records_[lane];
    const std::size_t n = context_.components();
    copy_column(staged_.y.data(), lane, n, static_cast<T*>(record.block->block.end_state) + record.row * n);
    finish(record, status, 0, 1, staged_.t[lane]);
  }

  // Whatever this thread still holds, when the solve was stopped, is handed in as it stands.
  void cancel() {
    for (int lane = 0; lane < tile_.lanes; ++lane) retire(lane, Status::cancelled);
    tile_.lanes = 0;
    for (; staged_next_ < staged_ready_.size(); ++staged_next_)
      end_before_start(staged_ready_[staged_next_], Status::cancelled);
    while (unread_ != nullptr && unread_row_ < unread_->block.count) {
      const bool whole = unread_row_ + 1 == unread_->block.count;
      load(0, unread_row_++);
      if (whole) unread_ = nullptr;  // finishing its last trajectory closes the block
      end_before_start(0, Status::cancelled);
    }
  }

  const SolveContext<T>& context_;
  StepCode<T> code_;
  std::int64_t take_code_at_ = context_.take_code_after();  // steps_ when better code is worth its time
  BlockQueue& queue_;
  AlignedBuffer<std::byte> workspace_;
  TileState<T> staged_;
  TileState<T> tile_;
  LaneRecord<T> staged_records_[kTileLanes] = {};
  LaneRecord<T> lanes_[kTileLanes] = {};
  StepSaver<T> saver_;
  std::vector<int> staged_ready_;
  std::size_t staged_next_ = 0;
  std::vector<std::unique_ptr<OpenBlock>> open_;
  OpenBlock* unread_ = nullptr;  // the block whose trajectories are being staged
  std::size_t unread_row_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t next_limit_ = std::numeric_limits<std::int64_t>::max();
  Summary summary_;
};

}  // namespace

template <class T>
Summary advance_each(const Problem& problem, const Options& options, const EnginePlan& plan, SolutionSink& sink,
                     const RunControl& control) {
  SolveContext<T> context(problem, options, plan.target);
  context.generate_code(plan.target);
  const std::size_t bytes = (context.save_points() + 1) * context.components() * sizeof(T) + sizeof(TrajectoryRecord);
  // Of AVX-512; the narrower ones divide them.
  const std::size_t lanes = 64 / sizeof(T);
  BlockQueue queue(problem.trajectories(), bytes, lanes, plan.threads, sink, control);
  std::vector<Summary> parts(static_cast<std::size_t>(plan.threads));
  run_on_threads(plan.threads, [&](int thread) {
    try {
      parts[static_cast<std::size_t>(thread)] = Worker<T>(context, queue).run();
    } catch (...) {
      queue.fail();
      throw;
    }
  });
  Summary summary;
  for (const Summary& part : parts) summary.add(part);
  summary.kernel = context.rhs->description();
  return summary;
}

template Summary advance_each<float>(const Problem&, const Options&, const EnginePlan&, SolutionSink&,
                                     const RunControl&);
template Summary advance_each<double>(const Problem&, const Options&, const EnginePlan&, SolutionSink&,
                                      const RunControl&);

}  // namespace lockstep::ode::cpu
