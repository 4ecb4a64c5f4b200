#include "lockstep/ode/cpu/adjoint_tile.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "lockstep/ode/detail/fixed_steps.h"

namespace lockstep::ode::cpu {
namespace {

using D = ScalarLane<double>;

// Steps that a trajectory may be thought to take, to choose what to keep.
double expected_steps(const Problem& problem, const Options& options) {
  if (options.control != StepControl::fixed || problem.trajectories() == 0) return 256;
  const double start = problem.start_time(0), end = problem.end_time(0);
  return start == end ? 0 : detail::fixed_steps(start, end, options.dt).count;
}

template <class Element>
AlignedBuffer<Element> copy_of(const Element* from, std::size_t count) {
  AlignedBuffer<Element> to(count);
  std::copy_n(from, count, to.data());
  return to;
}

template <class Number>
void spread_row(const Number* kept, std::size_t lanes, Number* to) {
  std::copy_n(kept, lanes, to);
  std::fill_n(to + lanes, kTileLanes - lanes, kept[lanes - 1]);
}

// A lane's numbers in so many rows of `width`.
template <class T>
bool is_finite(const T* rows, std::size_t count, std::size_t width, int lane) {
  T sum = 0;
  for (std::size_t row = 0; row < count; ++row) sum += rows[row * width + static_cast<std::size_t>(lane)] * 0;
  return sum == 0;
}

}  // namespace

// Records one by one at first; what is left over of larger pieces is never touched.
void RecordMemory::add_piece(std::size_t bytes, std::size_t most) {
  constexpr std::size_t kSmall = std::size_t{512} << 10, kLeast = std::size_t{4} << 20, kMost = std::size_t{64} << 20;
  const std::size_t wanted = all_ + bytes < kSmall ? bytes : std::clamp(all_, kLeast, kMost);
  const std::size_t records = (wanted + bytes - 1) / bytes;  // not less than what large pages begin at
  const std::size_t size = std::clamp(records, std::size_t{1}, std::max(most, std::size_t{1})) * bytes;
  pieces_.emplace_back(size);
  left_ = size;
  all_ += size;
}

void TileSteps::add_piece() {
  const std::size_t rows = has_stops_ ? 5 : 3;
  pieces_.push_back(std::make_unique<TileStep[]>(kPiece));
  rows_.emplace_back(kPiece * rows * lanes_);
  double* row = rows_.back().data();
  for (std::size_t i = 0; i < kPiece; ++i, row += rows * lanes_) {
    TileStep& step = pieces_.back()[i];
    step.index = size_ + i;
    step.t = row;
    step.t_new = row + lanes_;
    step.h = row + 2 * lanes_;
    step.t_last = has_stops_ ? row + 3 * lanes_ : step.t_new;
    step.t_behind = has_stops_ ? row + 4 * lanes_ : step.t_new;
  }
}

template <class T>
AdjointTile<T>::AdjointTile(const Problem& problem, const Options& options, const DifferentiableRhs<T>& rhs,
                            CpuTarget target, std::size_t memory_bytes)
    : context_(problem, options, target),
      rhs_(*rhs.function),
      directional_(rhs.directional.get()),
      recorder_(std::make_shared<Recorder<T>>(rhs_, context_.components())),
      adjoint_(adjoint_kernels<T>(target)),
      lasting_plan_(plan_records<T>(memory_bytes, context_.components(), kept_stages(), total_stages() - 1,
                                    rhs_.record_bytes(), expected_steps(problem, options))),
      plan_(plan_records<T>(memory_bytes, context_.components(), kept_stages(), total_stages() - 1, 0, 0)),
      workspace_(workspace_bytes(rhs, target)),
      tile_(context_.components(), context_.parameters(), static_cast<int>(total_stages()), workspace_.data()),
      saver_(context_, context_.step, tile_, lanes_),
      initial_(context_.components() * kTileLanes),
      states_(kTileLanes * context_.save_points() * context_.components()),
      reset_bar_(context_.components() * kTileLanes),
      bar_(context_.components(), static_cast<int>(total_stages())),
      parameter_bar_(context_.parameters() * kTileLanes),
      end_state_(context_.components() * kTileLanes),
      end_bar_(context_.components() * kTileLanes),
      linear_memory_(directional_ ? LinearTile<T>::bytes(context_.jacobian->layout()) : 0),
      direction_(directional_ ? direction_numbers() : 0) {
  if (directional_) linear_.emplace(context_.jacobian->layout(), linear_memory_.data());
  if (!problem.resets.empty()) saver_.keep_changes(&changes_);
  if (problem.event) event_ = dynamic_cast<const DifferentiableEvent*>(problem.event->function.get());
}

// From here on the context advances with the recorder.
template <class T>
std::size_t AdjointTile<T>::workspace_bytes(const DifferentiableRhs<T>& rhs, CpuTarget target) {
  context_.use(recorder_, rhs.jacobian, target);
  return std::max({context_.workspace_bytes(), rhs_.reverse_workspace_bytes(),
                   directional_ ? directional_->reverse_workspace_bytes() : std::size_t{0}});
}

template <class T>
void AdjointTile<T>::forward(std::size_t first, int lanes, std::span<const AcceptedStep> common,
                             std::span<const TrajectoryRecord> ends) {
  choose_plan(lanes);
  widen_rows(lanes);
  load(first, lanes);
  recorder_->point_at(nullptr);
  context_.step.kernels.start(tile_, context_.step.settings);
  saver_.start_events(tile_, lanes_);
  std::fill_n(end_bar_.data(), end_bar_.size(), T(0));
  std::fill_n(parameter_bar_.data(), parameter_bar_.size(), T(0));
  std::fill_n(reset_bar_.data(), reset_bar_.size(), T(0));
  steps_.clear(kept_lanes_, has_stops());
  sample_ = {};
  checkpoints_.clear();
  resets_.clear();
  segment_first_ = segment_count_ = 0;
  dead_ends_ = 0;
  begin_lanes();
  if (ends.empty()) {
    run_own_steps();
  } else {
    run_common_steps(common, ends);
  }
}

// Memory for activations that the system has to hand out first costs more than to compute them again, but where a cache
// holds all lanes' and most are needed: it pays as solves come back to it.
template <class T>
void AdjointTile<T>::choose_plan(int lanes) {
  constexpr int kSolvesBefore = 2, kFew = kTileLanes / 4;
  constexpr std::size_t kCached = std::size_t{4} << 20;
  if (!lasting_plan_.keep_recorded || plan_.keep_recorded) return;
  const auto steps = static_cast<std::size_t>(expected_steps(*context_.problem, *context_.options));
  const bool cached = steps * (total_stages() - 1) * rhs_.record_bytes() <= kCached;
  if (solves_++ < kSolvesBefore && (lanes <= kFew || !cached)) return;
  plan_ = lasting_plan_;
  segment_.clear();
  record_memory_ = {};
}

// Few trajectories leave most of a tile's lanes empty: their records need the first registers alone, a quarter of the
// memory or half of it, which the system would have to hand out first.
template <class T>
void AdjointTile<T>::widen_rows(int lanes) {
  constexpr std::size_t kRegister = 64 / sizeof(T);
  const std::size_t wanted = std::bit_ceil(std::max(static_cast<std::size_t>(lanes), kRegister));
  if (wanted <= kept_lanes_) return;
  kept_lanes_ = wanted;
  recorder_->keep_lanes(kept_lanes_);
  if (kept_lanes_ < kTileLanes && spread_.empty()) spread_ = AlignedBuffer<T>(context_.components() * kTileLanes);
  segment_.clear();
  record_memory_ = {};
}

// Times [kept lane] as a tile has them, lanes behind those as the last of them; until the next call.
template <class T>
const double* AdjointTile<T>::spread_times(const double* kept) {
  if (kept_lanes_ == kTileLanes) return kept;
  spread_row(kept, kept_lanes_, spread_times_);
  return spread_times_;
}

// The same of rows of each component.
template <class T>
const T* AdjointTile<T>::spread(const T* kept) {
  if (kept_lanes_ == kTileLanes) return kept;
  for (std::size_t at = 0; at < spread_.size(); at += kTileLanes, kept += kept_lanes_)
    spread_row(kept, kept_lanes_, spread_.data() + at);
  return spread_.data();
}

// Lanes past the last trajectory hold copies of it, or of its start where nothing is recorded and they do not advance,
// so that none computes with numbers that no trajectory has.
template <class T>
void AdjointTile<T>::load(std::size_t first, int lanes) {
  const Problem& problem = *context_.problem;
  const std::size_t n = context_.components();
  tile_.lanes = bar_.lanes = lanes;
  tile_.after_rejection = 0;
  attempts_ = 0;
  open_ = 0;
  lanes_taken_ = static_cast<std::size_t>(lanes);
  for (int lane = 0; lane < kTileLanes; ++lane) {
    const auto column = static_cast<std::size_t>(lane);
    const std::size_t trajectory = first + static_cast<std::size_t>(std::min(lane, lanes - 1));
    const double* u0 = &problem.initial_states[trajectory * n];
    for (std::size_t c = 0; c < n; ++c) tile_.y[c * kTileLanes + column] = static_cast<T>(u0[c]);
    const double* p = problem.parameters_of(trajectory);
    for (std::size_t i = 0; i < context_.parameters(); ++i) {
      tile_.parameters[i * kTileLanes + column] = static_cast<T>(p[i]);
    }
    const double start = problem.start_time(trajectory), end = problem.end_time(trajectory);
    tile_.t[lane] = tile_.t_start[lane] = start;
    tile_.t_end[lane] = end;
    tile_.stops[lane] = context_.stops.times(trajectory);
    tile_.t_stage[lane] = t_first_[lane] = detail::step_end(tile_.stops[lane], start, end < start).behind;
    tile_.step_index[lane] = 0;
    for (LongStep<T>& step : long_steps_[lane]) {
      step.trajectory = trajectory;
      step.h = 0;
    }
    step_counts_[lane] = 0;
    tile_.log_error[lane] = scalar::kFirstLogError;
    if (context_.step.settings.fixed && start != end) {
      const auto steps = detail::fixed_steps(start, end, context_.options->dt);
      tile_.h[lane] = steps.dt;
      tile_.last_dt[lane] = steps.last_dt;
      tile_.step_count[lane] = steps.count;
    }
    lanes_[lane] = {.block = &block_,
                    .row = column,
                    .save_times = problem.save_times_of(trajectory),
                    .state = states_.data() + column * context_.save_points() * n,
                    .t_end = end};
    leave_start(context_, tile_, lane, lanes_[lane]);
    if (lane < lanes) {
      open_ |= LaneMask{1} << lane;
    } else {
      lanes_[lane].saved = 0;
    }
  }
  std::copy_n(tile_.y.data(), n * kTileLanes, initial_.data());
}

template <class T>
void AdjointTile<T>::begin_lanes() {
  for (LaneMask bits = open_; bits != 0; bits &= bits - 1) {
    const int lane = __builtin_ctz(bits);
    LaneRecord<T>& record = lanes_[lane];
    tile_.next_save[lane] = next_save_time(context_, record, tile_.t_end[lane] - tile_.t[lane]);
    outcome_[lane] = {};
    if (tile_.error_squared[lane] != 0) {
      end_lane(lane, Status::not_finite);
    } else if (tile_.t[lane] == tile_.t_end[lane]) {
      end_lane(lane, Status::success);
    } else if (context_.step.settings.heads_for_stops()) {
      head_for_stop(tile_, lane, record.t_end);
    }
  }
  stand_in_for_broken_starts();
}

// A trajectory that fails where it starts leaves its lane: what is no number would reach the others' sums, where even
// zero times that counts, and a user's code may throw there, which on the way back nobody holds up. Another's start
// takes its place, and stays there.
template <class T>
void AdjointTile<T>::stand_in_for_broken_starts() {
  broken_starts_ = 0;
  for (int lane = 0; lane < kTileLanes; ++lane) {
    const int of =
        std::min(lane, static_cast<int>(lanes_taken_) - 1);  // those past the last trajectory are copies of it
    if (tile_.error_squared[of] != 0) broken_starts_ |= LaneMask{1} << lane;
  }
  if (starts_nowhere()) return;
  const int whole = std::countr_one(broken_starts_);
  const auto copy_rows = [&](std::span<T> rows, int lane) {
    for (std::size_t row = 0; row < rows.size(); row += kTileLanes) {
      rows[row + static_cast<std::size_t>(lane)] = rows[row + static_cast<std::size_t>(whole)];
    }
  };
  for (LaneMask bits = broken_starts_; bits != 0; bits &= bits - 1) {
    const int lane = __builtin_ctz(bits);
    copy_rows(tile_.y, lane);
    copy_rows(tile_.parameters, lane);
    copy_rows({tile_.stage(0), context_.components() * kTileLanes}, lane);
    copy_rows(initial_.span(), lane);
    t_first_[lane] = t_first_[whole];
    for (double* const numbers : {tile_.t, tile_.t_stage, tile_.h}) numbers[lane] = numbers[whole];
  }
}

template <class T>
void AdjointTile<T>::end_lane(int lane, Status status) {
  LaneRecord<T>& record = lanes_[lane];
  const std::size_t n = context_.components();
  for (std::size_t i = record.saved * n; i < context_.save_points() * n; ++i) {
    record.state[i] = std::numeric_limits<T>::quiet_NaN();
  }
  const std::int64_t evaluations = context_.start_evaluations + attempts_ * context_.evaluations();
  outcome_[lane] = {status, static_cast<std::int32_t>(attempts_ - record.rejected), record.rejected,
                    static_cast<std::int32_t>(evaluations + record.extra_evaluations), tile_.t[lane]};
  if (((dead_ends_ >> lane) & 1) == 0) keep_end_state(lane, tile_.y.data());
  open_ &= ~(LaneMask{1} << lane);
}

// From rows [component][lane].
template <class T>
void AdjointTile<T>::keep_end_state(int lane, const T* rows) {
  for (std::size_t place = static_cast<std::size_t>(lane); place < end_state_.size(); place += kTileLanes)
    end_state_[place] = rows[place];
}

// The step in which an event ended the lane is the last one kept; du/dt there, from its stages.
template <class T>
void AdjointTile<T>::keep_event_end(int lane) {
  end_lane(lane, Status::terminated);
  outcome_[lane].end_time = saver_.event_time(lane);
  const double theta = saver_.event_theta(lane);
  const bool leapt = saver_.leapt(lane);
  event_ends_[lane] = {.step = steps_.size() - 1, .theta = theta, .leapt = leapt, .rate = {}};
  if (!leapt) event_ends_[lane].rate = rate_within(lane, theta);
  keep_end_state(lane, saver_.event_states());
}

template <class T>
std::vector<double> AdjointTile<T>::rate_within(int lane, double theta) const {
  std::vector<double> rate(context_.components(), 0.0);
  const Tableau& tableau = *context_.tableau.source;
  for (const std::size_t j : context_.tableau.interpolant_stages) {
    double weight = 0;  // sum over m of m p_jm theta^(m - 1)
    for (int m = tableau.interpolant_degree; m-- > 0;) {
      const std::size_t power = j * static_cast<std::size_t>(tableau.interpolant_degree) + static_cast<std::size_t>(m);
      weight = weight * theta + (m + 1) * tableau.interpolant[power];
    }
    const T* k = tile_.k.data() + j * rate.size() * kTileLanes;
    for (std::size_t c = 0; c < rate.size(); ++c) rate[c] += weight * static_cast<double>(at(k, lane, c));
  }
  return rate;
}

template <class T>
void AdjointTile<T>::run_own_steps() {
  const auto& kernels = context_.step.kernels;
  const bool fixed = context_.step.settings.fixed;
  while (open_ != 0) {
    stop_if_cancelled();
    StageRecord<T>& record = next_record();
    record_into(&record);
    kernels.propose(tile_, context_.step.settings);
    kernels.attempt(tile_, context_.step.settings);
    kernels.decide(tile_, context_.step.settings);
    ++attempts_;
    tile_.accepted &= open_;
    tile_.save_due &= open_;
    const LaneMask terminated = saver_.save_step();
    const LaneMask accepted = tile_.accepted, lost = without_derivative(accepted);
    if (accepted != 0)
      keep_step(record, accepted, recorder_->stages() + 1 > static_cast<std::size_t>(context_.stages()), lost);
    for (LaneMask bits = terminated; bits != 0; bits &= bits - 1) keep_event_end(__builtin_ctz(bits));
    recorder_->point_at(nullptr);
    const LaneMask cut = saver_.cut(), piled_up = saver_.piled_up();
    for (LaneMask bits = lost & ~terminated; bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      keep_end_state(lane, tile_.y1.data());
      stands_at_[lane] = tile_.t[lane];
    }
    dead_ends_ |= lost & ~terminated;
    stay_before_last_states(lost & ~terminated);
    kernels.advance(tile_, context_.step.settings, accepted & ~terminated & ~cut);
    const LaneMask over = terminated | (cut == 0 ? 0 : reset_lanes());
    const LaneMask rejected = open_ & ~accepted;
    if (!fixed) {
      for (LaneMask bits = rejected; bits != 0; bits &= bits - 1) ++lanes_[__builtin_ctz(bits)].rejected;
    }
    const LaneMask successful = pass(accepted & ~over & ~saver_.cut_within(), cut & ~over & ~piled_up).ended;
    for (LaneMask bits = piled_up; bits != 0; bits &= bits - 1) end_lane(__builtin_ctz(bits), Status::step_too_small);
    const LaneMask stuck = tile_.stuck & open_;
    for (LaneMask bits = successful; bits != 0; bits &= bits - 1) end_lane(__builtin_ctz(bits), Status::success);
    for (LaneMask bits = stuck; bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      const bool finite = tile_.error_squared[lane] <= std::numeric_limits<double>::max();
      if (fixed) ++lanes_[lane].rejected;
      end_lane(lane, finite && !fixed ? Status::step_too_small : Status::not_finite);
    }
    if (attempts_ >= context_.options->max_steps) {
      for (LaneMask bits = open_; bits != 0; bits &= bits - 1) end_lane(__builtin_ctz(bits), Status::too_many_steps);
    }
  }
}

// After keep_step() and advance().
template <class T>
Landing AdjointTile<T>::pass(LaneMask advanced, LaneMask reset) {
  const LaneMask exhausted = attempts_ >= context_.options->max_steps ? ~LaneMask{0} : 0;
  const auto strike = [this](LaneMask changed) { return saver_.strike(changed); };
  const Landing landing = pass_stops(context_.step, tile_, lanes_, advanced, exhausted, reset, strike);
  keep_resets(false);
  const LaneMask renewed = landing.renewed & ~stay_before_dead_ends(landing.renewed);
  know_behind(renewed);
  if (landing.renewed != 0) {
    steps_.back().renewed = renewed;
    for (int lane = 0; lane < kept_lanes(); ++lane) {  // others stand where they stood, those past the last one, too
      steps_.back().t_behind[lane] = ((renewed >> lane) & 1) != 0 ? tile_.t_stage[lane] : stands_at(lane);
    }
  }
  for (LaneMask bits = landing.struck; bits != 0; bits &= bits - 1) {
    const int lane = __builtin_ctz(bits);
    end_lane(lane, Status::terminated);
    event_ends_[lane] = {.step = steps_.size() - 1, .theta = 1, .by_impulse = true, .by_reset = false, .rate = {}};
  }
  return landing;
}

// A trajectory that a jump, an impulse or a reset puts where its right-hand side is no number fails there. On the way
// back, as in steps of others that are still to come, its lane stands where its last step ended, which its k_1, still
// no number, does not let it leave. Returns those lanes.
template <class T>
LaneMask AdjointTile<T>::stay_before_dead_ends(LaneMask renewed) {
  const std::size_t n = context_.components();
  LaneMask failing = 0;
  for (LaneMask bits = renewed; bits != 0; bits &= bits - 1) {
    const int lane = __builtin_ctz(bits);
    if (is_finite(tile_.stage(0), n, kTileLanes, lane)) continue;
    failing |= LaneMask{1} << lane;
    stands_at_[lane] = steps_.back().t_last[lane];
    const auto last = static_cast<std::size_t>(context_.stages()) - 2;
    const T* y1 = segment_[segment_count_ - 1].arguments.data() + last * n * kept_lanes_ + lane;
    keep_end_state(lane, tile_.y.data());
    for (std::size_t place = static_cast<std::size_t>(lane); place < n * kTileLanes; place += kTileLanes) {
      tile_.y[place] = *y1;
      y1 += kept_lanes_;
    }
  }
  dead_ends_ |= failing;
  return failing;
}

// The steps that all trajectories were found to take; a trajectory left behind stops at its end time, one that meets
// its event in the step where it does.
template <class T>
void AdjointTile<T>::run_common_steps(std::span<const AcceptedStep> steps, std::span<const TrajectoryRecord> ends) {
  const auto& kernels = context_.step.kernels;
  tile_.last = ~LaneMask{0};  // any step may end at a stop
  for (const AcceptedStep& step : steps) {
    for (LaneMask bits = open_; bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      const TrajectoryRecord& end = ends[static_cast<std::size_t>(lane)];
      if (end.status != Status::terminated && end.end_time == tile_.t[lane]) open_ &= ~(LaneMask{1} << lane);
    }
    if (open_ == 0) break;
    stop_if_cancelled();
    StageRecord<T>& record = next_record();
    record_into(&record);
    tile_.save_due = 0;
    for (int lane = 0; lane < kTileLanes; ++lane) {
      const bool moves = (open_ >> lane) & 1;
      tile_.h_try[lane] = moves ? step.h : 0;
      tile_.t_new[lane] = moves ? step.t_new : tile_.t[lane];
      tile_.t_last[lane] = moves ? detail::limit_at(tile_.stops[lane], step.t, step.t_new).before : tile_.t[lane];
      if (moves && (step.t_new - tile_.next_save[lane]) * step.h >= 0) tile_.save_due |= LaneMask{1} << lane;
    }
    kernels.attempt(tile_, context_.step.settings);
    const LaneMask moving = tile_.accepted = open_;
    const LaneMask terminated = saver_.save_step();
    keep_step(record, moving, recorder_->stages() + 1 > static_cast<std::size_t>(context_.stages()));
    for (LaneMask bits = terminated; bits != 0; bits &= bits - 1) keep_event_end(__builtin_ctz(bits));
    recorder_->point_at(nullptr);
    kernels.advance(tile_, context_.step.settings, moving & ~terminated);
    if (has_stops()) pass(moving & ~terminated);
  }
  const std::size_t n = context_.components();
  for (std::size_t lane = 0; lane < ends.size(); ++lane) {
    outcome_[lane] = ends[lane];
    if (ends[lane].status != Status::terminated && (((broken_starts_ | dead_ends_) >> lane) & 1) == 0) {
      keep_end_state(static_cast<int>(lane), tile_.y.data());
    }
    for (std::size_t i = lanes_[lane].saved * n; i < context_.save_points() * n; ++i) {
      lanes_[lane].state[i] = std::numeric_limits<T>::quiet_NaN();
    }
  }
  open_ = 0;
}

// Where the next step's stages go. A full segment starts anew from a checkpoint.
template <class T>
StageRecord<T>& AdjointTile<T>::next_record() {
  if (segment_count_ == plan_.segment_steps) {
    segment_first_ = steps_.size();
    segment_count_ = 0;
  }
  if (segment_count_ == 0 && (checkpoints_.empty() || checkpoints_.back().step != steps_.size())) add_checkpoint();
  if (segment_count_ == segment_.size()) {
    const std::size_t stages = total_stages() - 1;
    const std::size_t size = context_.components() * kept_lanes_;
    segment_.push_back(record_memory_.take<T>(solved_stages() * size, stages * size,
                                              plan_.keep_recorded ? stages * rhs_.record_bytes() : 0,
                                              plan_.segment_steps - segment_.size()));
  }
  return segment_[segment_count_];
}

// The stages of the attempt to come; of a linearly implicit method the second one's argument is the state itself, whose
// derivative is known.
template <class T>
void AdjointTile<T>::record_into(StageRecord<T>* record) {
  recorder_->point_at(record, directional_ ? 1 : 0);
  if (directional_ && record != nullptr)
    keep_rows(tile_.y.data(), context_.components(), kept_lanes_, record->arguments.data());
}

template <class T>
void AdjointTile<T>::add_checkpoint() {
  if (checkpoints_.size() >= plan_.most_checkpoints) {
    for (std::size_t i = 1; 2 * i < checkpoints_.size(); ++i) std::swap(checkpoints_[i], checkpoints_[2 * i]);
    checkpoints_.resize((checkpoints_.size() + 1) / 2);
  }
  const std::size_t size = context_.components() * kTileLanes;
  checkpoints_.push_back({steps_.size(), copy_of(tile_.y.data(), size), copy_of(tile_.k.data(), size)});
}

template <class T>
void AdjointTile<T>::keep_step(StageRecord<T>& record, LaneMask accepted, bool interpolated, LaneMask lost) {
  TileStep& step = steps_.add();
  std::copy_n(tile_.t, kept_lanes_, step.t);
  for (LaneMask bits = dead_ends_ & ~accepted; bits != 0; bits &= bits - 1) {
    const int lane = __builtin_ctz(bits);
    if (lane < kept_lanes()) step.t[lane] = stands_at_[lane];
  }
  std::copy_n(step.t, kept_lanes_, step.t_new);
  std::fill_n(step.h, kept_lanes_, 0.0);
  for (LaneMask bits = accepted; bits != 0; bits &= bits - 1) {
    const int lane = __builtin_ctz(bits);
    step.t_new[lane] = tile_.t_new[lane];
    step.h[lane] = tile_.h_try[lane];
    if (notes_steps_) note_long_step(lane, step);
  }
  if (has_stops()) {
    std::copy_n(step.t_new, kept_lanes_, step.t_last);
    for (LaneMask bits = accepted; bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      step.t_last[lane] = tile_.t_last[lane];
    }
  }
  step.renewed = step.reset = 0;
  step.accepted = accepted;
  step.interpolated = interpolated;
  keep_accepted(record, accepted, lost);
  ++segment_count_;
}

template <class T>
void AdjointTile<T>::note_long_step(int lane, const TileStep& step) {
  const auto keep = [&](LongStep<T>& to) {
    to.t = step.t[lane];
    to.h = step.h[lane];
    to.state.resize(context_.components());
    for (std::size_t c = 0; c < to.state.size(); ++c) to.state[c] = at(tile_.y.data(), lane, c);
  };
  LongStep<T>& longest = long_steps_[lane][0];
  if (std::fabs(step.h[lane]) > 1.01 * std::fabs(longest.h)) keep(longest);
  if (const std::size_t count = ++step_counts_[lane]; (count & (count - 1)) == 0) keep(long_steps_[lane][1]);
  if (!samples_steps_ || lane != 0 || !sample_.wants_next()) return;
  LongStep<T> one{.trajectory = longest.trajectory};
  keep(one);
  sample_.add(std::move(one));
}

// A fixed step asks nothing of the derivative at its end. Where that is no number the trajectory ends there, or fails
// in the next step, and nothing comes back that way; but zero times that reaches others' sums, and a user's code may
// throw there, which on the way back nobody holds up. Behind a stop such a state may have a derivative, and counts.
template <class T>
LaneMask AdjointTile<T>::without_derivative(LaneMask accepted) {
  if (!context_.step.settings.fixed || has_stops()) return 0;
  const T* const k = tile_.stage(static_cast<std::size_t>(context_.stages()) - 1);
  LaneMask found = 0;
  for (LaneMask bits = accepted; bits != 0; bits &= bits - 1) {
    const int lane = __builtin_ctz(bits);
    if (!is_finite(k, context_.components(), kTileLanes, lane)) found |= LaneMask{1} << lane;
  }
  return found;
}

// The stage there stands where the step began.
template <class T>
void AdjointTile<T>::forget_last_stages(StageRecord<T>& record, LaneMask lanes) {
  const std::size_t n = context_.components(), last = static_cast<std::size_t>(context_.stages()) - 2;
  for (LaneMask bits = lanes; bits != 0; bits &= bits - 1) {
    const int lane = __builtin_ctz(bits);
    T* argument = record.arguments.data() + last * n * kept_lanes_ + lane;
    for (std::size_t c = 0; c < n; ++c, argument += kept_lanes_) *argument = at(tile_.y.data(), lane, c);
  }
  record.usable = record.usable && lanes == 0;
}

// So does its lane from then on. Before advance(), which moves it from there to there.
template <class T>
void AdjointTile<T>::stay_before_last_states(LaneMask lanes) {
  for (LaneMask bits = lanes; bits != 0; bits &= bits - 1) {
    const auto lane = static_cast<std::size_t>(__builtin_ctz(bits));
    for (std::size_t place = lane; place < end_state_.size(); place += kTileLanes) tile_.y1[place] = tile_.y[place];
  }
}

// What other lanes tried and gave up must not reach the way back, where even zero times infinity counts.
template <class T>
void AdjointTile<T>::keep_accepted(StageRecord<T>& record, LaneMask accepted, LaneMask lost) {
  const std::size_t n = context_.components();
  record.usable = !record.recorded.empty();
  if (directional_) keep_rows(tile_.stage(1), solved_stages() * n, kept_lanes_, record.slopes.data());
  forget_last_stages(record, lost);
  const LaneMask left = ~accepted & (~LaneMask{0} >> (kTileLanes - tile_.lanes));
  if (accepted == ~LaneMask{0}) return;
  // The stages that only the interpolant needs are not seen by the error.
  const auto first = static_cast<std::size_t>(context_.stages()),
             more = std::max(first, recorder_->stages() + 1) - first;
  for (LaneMask bits = left; bits != 0 && record.usable; bits &= bits - 1) {
    const int lane = __builtin_ctz(bits);
    const auto finite = [&](const T* rows, std::size_t width) { return is_finite(rows, more * n, width, lane); };
    record.usable = tile_.error_squared[lane] <= std::numeric_limits<double>::max() &&
                    (more == 0 || (finite(record.arguments.data() + (first - 1) * n * kept_lanes_, kept_lanes_) &&
                                   finite(tile_.stage(first), kTileLanes)));
  }
  const auto merge = [&](std::span<T> rows, std::size_t count) {
    adjoint_.merge(rows.data(), count, kept_lanes_, tile_.y.data(), n, accepted, tile_.lanes);
  };
  merge(record.arguments, recorder_->stages() * n);
  merge(record.slopes, solved_stages() * n);
}

template <class T>
std::vector<AcceptedStep> AdjointTile<T>::steps_of(int lane) const {
  std::vector<AcceptedStep> steps;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const TileStep& step = steps_[i];
    if ((step.accepted >> lane) & 1) steps.push_back({step.t[lane], left_at(step, lane), step.h[lane]});
  }
  return steps;
}

// Makes the segment hold the steps up to `end`, computed again from the last checkpoint before it.
template <class T>
void AdjointTile<T>::restore(std::size_t end) {
  const auto after = std::find_if(checkpoints_.begin(), checkpoints_.end(),
                                  [end](const Checkpoint<T>& checkpoint) { return checkpoint.step >= end; });
  const Checkpoint<T>& from = *(after - 1);
  const std::size_t size = context_.components() * kTileLanes;
  std::copy_n(from.y.data(), size, tile_.y.data());
  std::copy_n(from.k_first.data(), size, tile_.stage(0));
  segment_first_ = end - std::min(end - from.step, plan_.segment_steps);
  for (std::size_t step = from.step; step < segment_first_; ++step) replay(step, nullptr);
  for (std::size_t step = segment_first_; step < end; ++step) replay(step, &segment_[step - segment_first_]);
  segment_count_ = end - segment_first_;
}

// Lanes that did not move in the step stay where they are: their step is zero.
template <class T>
void AdjointTile<T>::replay(std::size_t index, StageRecord<T>* record) {
  stop_if_cancelled();
  const TileStep& step = steps_[index];
  std::copy_n(step.t, kept_lanes_, tile_.t);
  std::copy_n(step.t_new, kept_lanes_, tile_.t_new);
  std::copy_n(step.h, kept_lanes_, tile_.h_try);
  std::copy_n(step.t_last, kept_lanes_, tile_.t_last);
  record_into(record);
  context_.step.kernels.attempt(tile_, context_.step.settings);
  const LaneMask lost = without_derivative(step.accepted);
  if (record != nullptr) {
    if (step.interpolated) context_.step.kernels.complete_interpolant(tile_, context_.step.settings);
    keep_accepted(*record, step.accepted, lost);
  }
  recorder_->point_at(nullptr);
  stay_before_last_states(lost);
  context_.step.kernels.advance(tile_, context_.step.settings, step.accepted);
  if (step.renewed == 0) return;
  std::copy_n(step.t_behind, kept_lanes_, tile_.t_stage);
  for (LaneMask bits = step.renewed & ~step.reset; bits != 0; bits &= bits - 1)
    give_impulses(tile_, __builtin_ctz(bits));
  if (step.reset != 0) put_behind(index, tile_.y.data());
  context_.step.kernels.renew(tile_, context_.step.settings, step.renewed);
}

template class AdjointTile<float>;
template class AdjointTile<double>;

}  // namespace lockstep::ode::cpu
