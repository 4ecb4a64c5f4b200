// Common-step control: all trajectories share one time and one step size, decided by the largest error of any. Every
// tile stays in memory; threads meet twice a step. The maximum is free of order, so the bits do not depend on threads.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel.h"
#include "lockstep/ode/cpu/step_saver.h"

namespace lockstep::ode::cpu {
namespace {

using D = ScalarLane<double>;
constexpr double kNoEnd = std::numeric_limits<double>::infinity();

bool is_finite(double error) { return error <= std::numeric_limits<double>::max(); }

// Thirty-two trajectories that stay together from start to end; lanes that ended keep their place.
template <class T>
struct ResidentTile {
  ResidentTile(const SolveContext<T>& context, const StepCode<T>& code, std::size_t first_trajectory, int lanes)
      : first(first_trajectory),
        tile(context.components(), context.parameters(), context.stages() + context.interpolant_stages(), nullptr),
        saver(context, code, tile, records) {
    tile.lanes = lanes;
    open = lanes == kTileLanes ? ~LaneMask{0} : (LaneMask{1} << lanes) - 1;
  }
  ResidentTile(const ResidentTile&) = delete;

  std::size_t first;
  TileState<T> tile;
  LaneRecord<T> records[kTileLanes] = {};
  OpenBlock block;
  StepSaver<T> saver;
  LaneMask open;  // lanes still on their way
};

template <class T>
class Lockstep {
 public:
  Lockstep(const SolveContext<T>& context, int threads, SolutionSink& sink, const RunControl& control,
           std::vector<AcceptedStep>* accepted)
      : context_(context), code_(context.step), team_(threads), sink_(sink), control_(control), accepted_(accepted) {
    const std::size_t count = context.problem->trajectories();
    for (std::size_t first = 0; first < count; first += kTileLanes) {
      tiles_.push_back(std::make_unique<ResidentTile<T>>(
          context, code_, first, static_cast<int>(std::min<std::size_t>(kTileLanes, count - first))));
    }
    for (int thread = 0; thread < threads; ++thread) workspaces_.emplace_back(context.workspace_bytes());
  }

  Summary run() {
    const Problem& problem = *context_.problem;
    t_ = problem.start_time(0);
    t_end_ = problem.end_time(0);
    double h = kNoEnd;
    for_each_tile([&](ResidentTile<T>& tile) { start(tile); });
    for (const auto& tile : tiles_) {
      for (int lane = 0; lane < tile->tile.lanes; ++lane) {
        if (tile->tile.error_squared[lane] != 0) {
          end_lane(*tile, lane, Status::not_finite);
        } else {
          h = std::min(h, std::fabs(tile->tile.h[lane]));
        }
      }
    }
    if (t_ == t_end_) {
      end_all(Status::success);
    } else {
      advance(std::copysign(h, t_end_ - t_));
    }
    for (const auto& tile : tiles_) {
      for (int lane = 0; lane < tile->tile.lanes; ++lane) summary_.add(tile->block.block.records[lane]);
      sink_.commit(tile->block.block);
    }
    context_.note_steps(attempts_);
    return summary_;
  }

 private:
  // Returns the time that all threads together spent on it.
  std::chrono::nanoseconds for_each_tile(const std::function<void(ResidentTile<T>&)>& body) {
    using Clock = std::chrono::steady_clock;
    std::atomic<std::size_t> next{0};
    std::atomic<Clock::rep> spent{0};
    team_.run(threads_, [&](int thread) {
      const auto begin = Clock::now();
      for (std::size_t i = next++; i < tiles_.size(); i = next++) {
        tiles_[i]->tile.workspace = workspaces_[static_cast<std::size_t>(thread)].data();
        body(*tiles_[i]);
      }
      spent += (Clock::now() - begin).count();
    });
    return Clock::duration(spent.load());
  }

  void start(ResidentTile<T>& resident) {
    const Problem& problem = *context_.problem;
    TileState<T>& tile = resident.tile;
    const std::size_t n = context_.components();
    resident.block = {sink_.acquire(resident.first, static_cast<std::size_t>(tile.lanes)),
                      static_cast<std::size_t>(tile.lanes)};
    for (int lane = 0; lane < tile.lanes; ++lane) {
      const std::size_t row = static_cast<std::size_t>(lane);
      const std::size_t trajectory = resident.first + row;
      for (std::size_t c = 0; c < n; ++c)
        tile.y[c * kTileLanes + row] = static_cast<T>(problem.initial_states[trajectory * n + c]);
      const double* p = problem.parameters_of(trajectory);
      for (std::size_t i = 0; i < context_.parameters(); ++i)
        tile.parameters[i * kTileLanes + row] = static_cast<T>(p[i]);
      tile.t[lane] = t_;
      tile.t_end[lane] = t_end_;
      tile.t_stage[lane] = time_behind();
      LaneRecord<T>& record = resident.records[lane];
      record = {.block = &resident.block,
                .row = row,
                .save_times = problem.save_times_of(trajectory),
                .state = static_cast<T*>(resident.block.block.state) + row * context_.save_points() * n,
                .t_end = t_end_};
      tile.stops[lane] = stops_;
      leave_start(context_, tile, lane, record);
      tile.next_save[lane] = next_save_time(context_, record, t_end_ - t_);
    }
    code_.kernels.start(tile, code_.settings);
    resident.saver.start_events(tile, resident.records);
  }

  void advance(double h) {
    const float beta1 = code_.settings.beta1, beta2 = code_.settings.beta2;
    double log_error = scalar::kFirstLogError;
    bool after_rejection = false;
    int failures_in_a_row = 0;
    while (remaining() > 0) {
      if (control_.cancelled()) return end_all(Status::cancelled);
      if (attempts_ >= context_.options->max_steps) return end_all(Status::too_many_steps);
      if (attempts_ >= take_code_at_) take_code_at_ = context_.take_generated_code(code_);
      const auto [limit, before] = detail::limit_at(stops_, t_, t_end_);
      const auto step =
          scalar::propose_adaptive_step<D>(code_.settings.has_stops, t_, limit, h, code_.settings.max_step);
      const double error = attempt(step.h, step.t_new, step.last ? before : step.t_new);
      ++attempts_;
      const auto decision = scalar::decide_step<D>(error, step.h, log_error, after_rejection, beta1, beta2);
      h = decision.h_next;
      after_rejection = !decision.accept;
      if (decision.accept) {
        failures_in_a_row = 0;
        log_error = decision.log_error;
        for_each_tile([&](ResidentTile<T>& tile) { accept(tile); });
        if (accepted_ != nullptr) accepted_->push_back({t_, step.t_new, step.h});
        t_ = step.t_new;
        if (t_ == t_end_) {
          end_all(Status::success);
        } else if (step.last && time_behind() != t_ && attempts_ < context_.options->max_steps) {
          for_each_tile([&](ResidentTile<T>& tile) { renew(tile); });
        }
      } else {
        ++rejected_;
        // A trajectory that stays NaN however small the step, or whose own error asks for steps below time's spacing,
        // would hold up all others: it is left behind.
        failures_in_a_row = is_finite(error) ? 0 : failures_in_a_row + 1;
        if (failures_in_a_row == kMostFailures) {
          drop_lanes([](double own) { return !is_finite(own); });
          failures_in_a_row = 0;
        }
        const double smallest = scalar::smallest_shared_step<D>(t_, limit);
        if (std::fabs(h) <= smallest) {
          drop_lanes([](double own) { return !(own <= 1); });
          failures_in_a_row = 0;
          h = std::copysign(smallest, h);
        }
      }
      if (control_.progress) report();
    }
  }

  // Ten steps in a row, each a fifth of the one before.
  static constexpr int kMostFailures = 10;

  double attempt(double h, double t_new, double t_last) {
    constexpr std::chrono::microseconds kWorthwhile{50};  // two meetings take some, and hundreds on a busy machine
    constexpr std::int64_t kTrials = 8;                   // the first has memory that is new
    std::atomic<double> largest{0};
    const auto spent = for_each_tile([&](ResidentTile<T>& resident) {
      TileState<T>& tile = resident.tile;
      if (resident.open == 0) return;
      for (int lane = 0; lane < kTileLanes; ++lane) {
        tile.h_try[lane] = h;
        tile.t_new[lane] = t_new;
        tile.t_last[lane] = t_last;
      }
      code_.kernels.attempt(tile, code_.settings);
      double most = 0;
      for (LaneMask bits = resident.open; bits != 0; bits &= bits - 1) {
        const double error = tile.error_squared[__builtin_ctz(bits)];
        most = error <= most ? most : (is_finite(error) ? error : kNoEnd);
      }
      double seen = largest.load();
      while (most > seen && !largest.compare_exchange_weak(seen, most)) {
      }
    });
    if (attempts_ < kTrials && spent < kWorthwhile) threads_ = 1;
    return largest.load();
  }

  void accept(ResidentTile<T>& resident) {
    TileState<T>& tile = resident.tile;
    if (resident.open == 0) return;
    tile.accepted = resident.open;
    tile.save_due = 0;
    for (LaneMask bits = resident.open; bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      if ((tile.t_new[lane] - tile.next_save[lane]) * tile.h_try[lane] >= 0) tile.save_due |= LaneMask{1} << lane;
    }
    const LaneMask stopped = resident.saver.save_step();
    code_.kernels.advance(tile, code_.settings, resident.open & ~stopped);
    for (LaneMask bits = stopped; bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      end_lane(resident, lane, Status::terminated, resident.saver.event_states(), resident.saver.event_time(lane));
    }
  }

  double time_behind() const { return detail::step_end(stops_, t_, t_end_ < t_).behind; }

  // Behind a jump at t_.
  void renew(ResidentTile<T>& resident) {
    if (resident.open == 0) return;
    TileState<T>& tile = resident.tile;
    std::fill_n(tile.t_stage, kTileLanes, time_behind());
    LaneMask changed = 0;
    for (LaneMask bits = resident.open; bits != 0; bits &= bits - 1) {
      if (give_impulses(tile, __builtin_ctz(bits))) changed |= bits & -bits;
    }
    for (LaneMask bits = resident.saver.strike(changed); bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      end_lane(resident, lane, Status::terminated, resident.saver.event_states(), resident.saver.event_time(lane));
    }
    if (resident.open == 0) return;
    code_.kernels.renew(tile, code_.settings, resident.open);
    for (LaneMask bits = resident.open; bits != 0; bits &= bits - 1)
      ++resident.records[__builtin_ctz(bits)].extra_evaluations;
  }

  // Ends the lanes whose error in the last attempt, as its square, is such as `hopeless` says.
  template <class Predicate>
  void drop_lanes(const Predicate& hopeless) {
    for (const auto& resident : tiles_) {
      for (LaneMask bits = resident->open; bits != 0; bits &= bits - 1) {
        const int lane = __builtin_ctz(bits);
        const double error = resident->tile.error_squared[lane];
        if (hopeless(error)) {
          end_lane(*resident, lane, is_finite(error) ? Status::step_too_small : Status::not_finite);
        }
      }
    }
  }

  void end_lane(ResidentTile<T>& resident, int lane, Status status) {
    end_lane(resident, lane, status, resident.tile.y.data(), resident.tile.t[lane]);
  }
  // attempts_ counts an accepted step only after accept() when called from there: the one under way is added.
  void end_lane(ResidentTile<T>& resident, int lane, Status status, const T* states, double end_time) {
    LaneRecord<T>& record = resident.records[lane];
    const std::size_t n = context_.components();
    copy_column(states, lane, n, static_cast<T*>(resident.block.block.end_state) + record.row * n);
    record.rejected = static_cast<std::int32_t>(rejected_);
    close_record(context_, record, status, attempts_, context_.start_evaluations + attempts_ * context_.evaluations(),
                 end_time);
    resident.open &= ~(LaneMask{1} << lane);
  }
  void end_all(Status status) {
    for (const auto& resident : tiles_) {
      while (resident->open != 0) end_lane(*resident, __builtin_ctz(resident->open), status);
    }
  }

  std::size_t remaining() const {
    return static_cast<std::size_t>(
        std::count_if(tiles_.begin(), tiles_.end(), [](const auto& tile) { return tile->open != 0; }));
  }

  // All trajectories advance together: progress is the share of the time span.
  void report() {
    const double share = (t_ - context_.problem->start_time(0)) / (t_end_ - context_.problem->start_time(0));
    const std::size_t total = context_.problem->trajectories();
    control_.progress(static_cast<std::size_t>(share * static_cast<double>(total)), total);
  }

  const SolveContext<T>& context_;
  StepCode<T> code_;
  std::int64_t take_code_at_ = context_.take_code_after();  // attempts_ when better code is worth its time
  Team team_;
  int threads_ = team_.threads();  // at work
  SolutionSink& sink_;
  const RunControl& control_;
  std::vector<AcceptedStep>* accepted_;  // null, or where accepted steps are noted
  std::vector<std::unique_ptr<ResidentTile<T>>> tiles_;
  std::vector<AlignedBuffer<std::byte>> workspaces_;
  detail::StopTimes stops_ = context_.stops.times(0);
  double t_ = 0, t_end_ = 0;
  std::int64_t attempts_ = 0, rejected_ = 0;
  Summary summary_;
};

}  // namespace

template <class T>
Summary advance_together(const Problem& problem, const Options& options, const EnginePlan& plan, SolutionSink& sink,
                         const RunControl& control, std::vector<AcceptedStep>* accepted,
                         std::shared_ptr<const TileFunction<T>> rhs, std::shared_ptr<const JacobianTile<T>> jacobian) {
  if (problem.trajectories() == 0) return {};
  for (std::size_t i = 0; i < problem.trajectories(); ++i) {
    if (problem.start_time(i) != problem.start_time(0) || problem.end_time(i) != problem.end_time(0)) {
      throw Error(ErrorKind::invalid_argument,
                  {.field = "options.control",
                   .found = "common with a time span of its own for trajectory " + std::to_string(i),
                   .expected = "one time span for all",
                   .remedy = "use per_trajectory control"});
    }
  }
  SolveContext<T> context(problem, options, plan.target);
  if (rhs != nullptr) {
    context.use(std::move(rhs), std::move(jacobian), plan.target);
  } else {
    context.generate_code(plan.target);
  }
  // Threads meet twice a step: each needs enough tiles to be worth the wait.
  constexpr std::size_t kTilesPerThread = 8;
  const std::size_t tiles = (problem.trajectories() + kTileLanes - 1) / kTileLanes;
  const std::size_t useful = std::max<std::size_t>(1, tiles / kTilesPerThread);
  const int threads = static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(plan.threads), useful));
  Summary summary = Lockstep<T>(context, threads, sink, control, accepted).run();
  summary.kernel = context.rhs->description();
  return summary;
}

template Summary advance_together<float>(const Problem&, const Options&, const EnginePlan&, SolutionSink&,
                                         const RunControl&, std::vector<AcceptedStep>*,
                                         std::shared_ptr<const TileFunction<float>>,
                                         std::shared_ptr<const JacobianTile<float>>);
template Summary advance_together<double>(const Problem&, const Options&, const EnginePlan&, SolutionSink&,
                                          const RunControl&, std::vector<AcceptedStep>*,
                                          std::shared_ptr<const TileFunction<double>>,
                                          std::shared_ptr<const JacobianTile<double>>);

}  // namespace lockstep::ode::cpu
