// The way back of a tile: the transpose of every recorded step, as docs/adjoint.md derives it.
#include <algorithm>
#include <vector>

#include "lockstep/ode/cpu/adjoint_tile.h"

namespace lockstep::ode::cpu {
namespace {

using D = ScalarLane<double>;

// rows [row][lane], of which the first `lanes` lanes count.
bool any_nonzero(const auto* rows, std::size_t count, int lanes) {
  for (std::size_t row = 0; row < count; ++row, rows += kTileLanes) {
    for (int lane = 0; lane < lanes; ++lane) {
      if (rows[lane] != 0) return true;  // NaN too
    }
  }
  return false;
}

}  // namespace

template <class T>
void AdjointTile<T>::backward(std::span<const T> states_bar, T* gradient) {
  const std::size_t n = context_.components(), size = n * kTileLanes;
  for (int lane = 0; lane < kTileLanes; ++lane) {
    for (std::size_t c = 0; c < n; ++c) {
      const std::size_t place = c * kTileLanes + static_cast<std::size_t>(lane);
      bar_.y[place] = outcome_[lane].status == Status::success || ends_by_impulse(lane) ? end_bar_[place] : T(0);
    }
    if (!ends_by_impulse(lane)) continue;
    reverse_reset_lane(event_ends_[lane].step, lane);
    scale_by_impulses(lane, outcome_[lane].end_time, bar_.y.data());
  }
  std::fill_n(bar_.k_first.data(), size, T(0));
  for (int lane = 0; lane < kTileLanes; ++lane) saved_[lane] = lanes_[lane].saved;
  pending_.clear();
  pending_directional_.clear();
  scratch_records_used_ = 0;
  make_cotangents();
  for (std::size_t step = steps_.size(); step-- > 0;) {
    stop_if_cancelled();
    if (step < segment_first_) restore(step + 1);
    const std::size_t at = step - segment_first_;
    reverse_step(steps_[step], segment_[at], at == 0 ? nullptr : &segment_[at - 1], states_bar);
    if (step % kSumSteps == 0) flush(gradient, at);
  }
  // k_1 = f(t0, u0), where impulses lie between it and save points at the start.
  const bool has_impulses = !context_.problem->impulses.empty();
  if (has_impulses) reverse_first(gradient);
  for (int lane = 0; lane < kTileLanes; ++lane) {
    if (has_impulses) scale_by_impulses(lane, tile_.t_start[lane], bar_.y.data());
    for (std::size_t save = 0; save < saved_[lane]; ++save) {
      const T* bar = states_bar.data() + (static_cast<std::size_t>(lane) * context_.save_points() + save) * n;
      for (std::size_t c = 0; c < n; ++c) bar_.y[c * kTileLanes + static_cast<std::size_t>(lane)] += bar[c];
    }
  }
  if (!has_impulses) reverse_first(gradient);
}

template <class T>
void AdjointTile<T>::reverse_first(T* gradient) {
  if (!any_nonzero(bar_.k_first.data(), context_.components(), bar_.lanes)) return;
  reverse_evaluation(t_first_, initial_.data(), nullptr, nullptr, bar_.k_first.data(), bar_.y.data());
  flush(gradient, 0);
}

// The transpose of an impulse's linear part, and that part itself.
template <class T>
void AdjointTile<T>::scale_by_impulses(int lane, double t, T* rows) const {
  if (t == lanes_[lane].t_end) return;
  detail::for_changes(tile_.stops[lane], t, [&](const detail::StateChange& change) {
    rows[static_cast<std::size_t>(change.component) * kTileLanes + static_cast<std::size_t>(lane)] *=
        static_cast<T>(change.factor);
  });
}

template <class T>
void AdjointTile<T>::reverse_step(const TileStep& step, StageRecord<T>& record, const StageRecord<T>* before,
                                  std::span<const T> states_bar) {
  const std::size_t n = context_.components(), size = n * kTileLanes;
  const Tableau& tableau = *context_.tableau.source;
  if (step.renewed != 0) reverse_renewal(step, record);
  for (int lane = 0; lane < kept_lanes(); ++lane) bar_.h[lane] = static_cast<T>(step.h[lane]);
  adjoint_.begin(bar_, n, tableau.stages, static_cast<int>(total_stages()), step.accepted);
  const auto index = step.index;
  if (event_ != nullptr) reverse_events(index);
  if (step.reset != 0) reverse_resets(index);
  reverse_saves(step, states_bar);
  if (directional_) linearise(step, record);
  const auto last = static_cast<std::size_t>(tableau.stages) - 1;
  alignas(64) double t_stage[kTileLanes];
  for (std::size_t i = step.interpolated ? total_stages() - 1 : last; i > 0; --i) {
    // Y_s = y1 has a cotangent of its own already; the others' begin at zero.
    if (i == last) std::swap(bar_.stage_argument, bar_.y1);
    const double* t = t_stage;
    if (i == last || (has_stops() && tableau.c[i] == 1)) {
      t = spread_times(step.t_last);
    } else {
      adjoint_.stage_times(step.t, step.h, tableau.c[i], t_stage, bar_.lanes);
    }
    const T* k_bar = bar_.k.data() + i * size;
    if (any_nonzero(k_bar, n, bar_.lanes)) {
      if (is_solved(i)) reverse_solution(i, record);
      if (directional_ && i == 1) continue;  // its right-hand side is k_1
      const std::byte* recorded = record.usable ? record.recorded.data() + (i - 1) * rhs_.record_bytes() : nullptr;
      const std::byte* next = nullptr;
      if (i > 1 && recorded != nullptr) next = recorded - rhs_.record_bytes();
      if (i == 1 && before != nullptr && before->usable)
        next = before->recorded.data() + (last - 1) * rhs_.record_bytes();
      reverse_evaluation(t, spread(record.arguments.data() + (i - 1) * n * kept_lanes_), recorded, next, k_bar,
                         bar_.stage_argument.data());
    }
    adjoint_.stage(bar_, n, context_.tableau.rows[i]);
  }
  adjoint_.end(bar_, n, step.accepted);
}

// Behind a jump the next step's k_1 = f(t_behind, y), where it is k_s elsewhere; y is y1 behind the impulses there.
template <class T>
void AdjointTile<T>::reverse_renewal(const TileStep& step, const StageRecord<T>& record) {
  const std::size_t n = context_.components(), size = n * kTileLanes;
  const auto last = static_cast<std::size_t>(context_.stages()) - 1;
  std::fill_n(bar_.saved.data(), size, T(0));
  for (LaneMask bits = step.renewed; bits != 0; bits &= bits - 1) {
    for (std::size_t at = static_cast<std::size_t>(__builtin_ctz(bits)); at < size; at += kTileLanes) {
      std::swap(bar_.saved[at], bar_.k_first[at]);
    }
  }
  const T* argument = spread(record.arguments.data() + (last - 1) * n * kept_lanes_);
  if (changes_at_once()) argument = behind_changes(step, argument);
  reverse_evaluation(spread_times(step.t_behind), argument, nullptr, nullptr, bar_.saved.data(), bar_.y.data());
  if (!changes_at_once()) return;
  const auto index = step.index;
  for (LaneMask bits = step.renewed; bits != 0; bits &= bits - 1) {
    const int lane = __builtin_ctz(bits);
    const bool reset = (step.reset >> lane) & 1;
    if (reset && reverse_reset_lane(index, lane)) continue;
    scale_by_impulses(lane, step.t_new[lane], bar_.y.data());
  }
}

// The states with which the next step begins, from those at the step's end; both [component][lane]. Until the next
// call.
template <class T>
const T* AdjointTile<T>::behind_changes(const TileStep& step, const T* y1) {
  const std::size_t size = context_.components() * kTileLanes;
  if (behind_.empty()) behind_ = AlignedBuffer<T>(size);
  std::copy_n(y1, size, behind_.data());
  for (LaneMask bits = step.renewed & ~step.reset; bits != 0; bits &= bits - 1) {
    const int lane = __builtin_ctz(bits);
    give_impulses(tile_.stops[lane], step.t_new[lane], lane, behind_.data());
  }
  if (step.reset != 0) put_behind(step.index, behind_.data());
  return behind_.data();
}

template <class T>
auto AdjointTile<T>::event_slopes(int lane) const -> EventSlopes {
  const std::size_t n = context_.components(), m = context_.parameters();
  std::vector<double> state(n), parameters(m);
  for (std::size_t c = 0; c < n; ++c) state[c] = static_cast<double>(at(end_state_.data(), lane, c));
  for (std::size_t i = 0; i < m; ++i) parameters[i] = static_cast<double>(at(tile_.parameters.data(), lane, i));
  EventSlopes slopes{0, std::vector<double>(n), std::vector<double>(m)};
  slopes.rate = event_->slopes(outcome_[lane].end_time, state, parameters, slopes.by_state, slopes.by_parameter);
  for (std::size_t c = 0; c < n; ++c) slopes.rate += slopes.by_state[c] * event_ends_[lane].rate[c];
  return slopes;
}

// An event strikes at the root t* of g(t, y(t), p) on the interpolant y. With u* = y(t*), its rate u' and
// g' = g_t + g_u u', the implicit function theorem gives at fixed steps
//   dt* = -(g_u dy + g_p dp) / g',   du* = dy + u' dt*,
// where dy is the change of the interpolant at fixed theta. Hence with s = (u*_bar u' + t*_bar) / g':
//   y_bar = u*_bar - s g_u,   p_bar -= s g_p.
// y_bar then goes back as that of a save point.
template <class T>
void AdjointTile<T>::set_end_bar(int lane, std::span<const double> state_bar, double time_bar) {
  const std::size_t n = context_.components(), m = context_.parameters(), column = static_cast<std::size_t>(lane);
  std::vector<double> bar(state_bar.begin(), state_bar.end());
  const EventEnd& end = event_ends_[lane];
  if (outcome_[lane].status == Status::terminated && end.by_reset) {
    for (const ResetRecord<T>& record : resets_of(end.step)) {
      if (record.lane() == lane) pull_back(record, bar, time_bar);
    }
  } else if (outcome_[lane].status == Status::terminated && event_ != nullptr && !ends_by_impulse(lane) && !end.leapt) {
    const EventSlopes slopes = event_slopes(lane);
    double along = time_bar;
    for (std::size_t c = 0; c < n; ++c) along += bar[c] * event_ends_[lane].rate[c];
    if (along != 0) {
      const double share = along / slopes.rate;
      for (std::size_t c = 0; c < n; ++c) bar[c] -= share * slopes.by_state[c];
      for (std::size_t i = 0; i < m; ++i) {
        parameter_bar_[i * kTileLanes + column] = static_cast<T>(-share * slopes.by_parameter[i]);
      }
    }
  }
  for (std::size_t c = 0; c < n; ++c) end_bar_[c * kTileLanes + column] = static_cast<T>(bar[c]);
}

template <class T>
void AdjointTile<T>::reverse_events(std::size_t step) {
  const std::size_t n = context_.components();
  LaneMask struck = 0;
  for (int lane = 0; lane < kTileLanes; ++lane) {
    if (outcome_[lane].status != Status::terminated || ends_by_impulse(lane)) continue;
    if (event_ends_[lane].step == step) struck |= LaneMask{1} << lane;
  }
  if (struck == 0) return;
  for (int lane = 0; lane < kTileLanes; ++lane) {
    const bool ends = (struck >> lane) & 1, leapt = ends && event_ends_[lane].leapt;
    const bool within = ends && !leapt;
    bar_.theta[lane] = within ? event_ends_[lane].theta : 0;
    for (std::size_t c = 0; c < n; ++c) {
      const std::size_t place = c * kTileLanes + static_cast<std::size_t>(lane);
      bar_.saved[place] = within ? end_bar_[place] : T(0);
      if (leapt) bar_.y1[place] += end_bar_[place];
    }
  }
  adjoint_.interpolate(bar_, n, context_.tableau);
}

// Save points in (t, t_new], one of each lane at a time.
template <class T>
void AdjointTile<T>::reverse_saves(const TileStep& step, std::span<const T> states_bar) {
  const std::size_t n = context_.components();
  while (true) {
    LaneMask inside = 0, due = 0;
    std::fill_n(bar_.saved.data(), n * kTileLanes, T(0));
    std::fill_n(bar_.theta, kTileLanes, 0.0);
    for (LaneMask bits = step.accepted; bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      const auto column = static_cast<std::size_t>(lane);
      if (saved_[lane] == 0) continue;
      const double time = lanes_[lane].save_times[saved_[lane] - 1];
      if (!((time - step.t[lane]) * step.h[lane] > 0)) continue;
      --saved_[lane];
      due |= LaneMask{1} << lane;
      const double theta = scalar::step_fraction<D>(time, step.t[lane], step.t_new[lane], step.h[lane]);
      const T* bar = states_bar.data() + (column * context_.save_points() + saved_[lane]) * n;
      T* const to = theta == 1 ? bar_.y1.data() : bar_.saved.data();
      for (std::size_t c = 0; c < n; ++c) to[c * kTileLanes + column] += bar[c];
      if (theta == 1) continue;
      bar_.theta[lane] = theta;
      inside |= LaneMask{1} << lane;
    }
    if (inside != 0) adjoint_.interpolate(bar_, n, context_.tableau);
    if (due == 0) return;
  }
}

template <class T>
void AdjointTile<T>::reverse_evaluation(const double* t, const T* argument, const std::byte* recorded,
                                        const std::byte* next, const T* out_bar, T* in_bar) {
  const bool has_parameters = context_.parameters() != 0;
  const T* parameters = has_parameters ? tile_.parameters.data() : nullptr;
  std::byte* const cotangents = cotangents_.data() + pending_.size() * rhs_.cotangent_bytes();
  if (recorded == nullptr) {
    std::byte* record = nullptr;
    if (rhs_.record_bytes() != 0) {
      if (scratch_records_used_ == scratch_records_.size()) scratch_records_.emplace_back(rhs_.record_bytes());
      record = scratch_records_[scratch_records_used_++].data();
      rhs_.evaluate_recording({t, argument, parameters, tile_.scratch.data(), bar_.lanes}, record, workspace_.data());
    }
    recorded = record;
  }
  rhs_.reverse({.t = t,
                .in = argument,
                .parameters = parameters,
                .out_bar = out_bar,
                .in_bar = in_bar,
                .parameter_bar = has_parameters ? parameter_bar_.data() : nullptr,
                .record = recorded,
                .cotangents = cotangents,
                .next_record = next,
                .lanes = bar_.lanes},
               workspace_.data());
  pending_.push_back({.record = recorded, .cotangents = cotangents, .lanes = bar_.lanes});
}

// The evaluations of kSumSteps steps are summed at a time. Segments are whole numbers of them, so that they are the
// same ones however much memory there was for records.
template <class T>
void AdjointTile<T>::flush(T* gradient, std::size_t first) {
  if (gradient != nullptr) {
    // What is read next comes closer meanwhile: the records of as many evaluations before these.
    std::size_t count = 0;
    for (std::size_t at = first; at-- > 0 && count < pending_.size();) {
      const StageRecord<T>& record = segment_[at];
      if (!record.usable) break;
      for (std::size_t i = total_stages() - 1; i-- > 0 && count < pending_.size();) {
        pending_[count++].later = record.recorded.data() + i * rhs_.record_bytes();
      }
    }
    rhs_.accumulate(pending_, gradient);
    if (directional_) directional_->accumulate(pending_directional_, gradient);
  }
  pending_.clear();
  pending_directional_.clear();
  scratch_records_used_ = 0;
}

// Where trajectories go one by one, or derivatives are carried forward, no tile goes back.
template <class T>
void AdjointTile<T>::make_cotangents() {
  if (cotangents_.empty())
    cotangents_ = AlignedBuffer<std::byte>(kSumSteps * (total_stages() + 1) * rhs_.cotangent_bytes());
  if (directional_ && directional_cotangents_.empty()) {
    directional_cotangents_ = AlignedBuffer<std::byte>(kSumSteps * solved_stages() * directional_->cotangent_bytes());
  }
}

template void AdjointTile<float>::backward(std::span<const float>, float*);
template void AdjointTile<float>::reverse_first(float*);
template void AdjointTile<float>::scale_by_impulses(int, double, float*) const;
template const float* AdjointTile<float>::behind_changes(const TileStep&, const float*);
template void AdjointTile<float>::reverse_step(const TileStep&, StageRecord<float>&, const StageRecord<float>*,
                                               std::span<const float>);
template void AdjointTile<float>::reverse_renewal(const TileStep&, const StageRecord<float>&);
template void AdjointTile<float>::set_end_bar(int, std::span<const double>, double);
template AdjointTile<float>::EventSlopes AdjointTile<float>::event_slopes(int) const;
template void AdjointTile<float>::reverse_events(std::size_t);
template void AdjointTile<float>::reverse_saves(const TileStep&, std::span<const float>);
template void AdjointTile<float>::reverse_evaluation(const double*, const float*, const std::byte*, const std::byte*,
                                                     const float*, float*);
template void AdjointTile<float>::flush(float*, std::size_t);
template void AdjointTile<float>::make_cotangents();
template void AdjointTile<double>::backward(std::span<const double>, double*);
template void AdjointTile<double>::reverse_first(double*);
template void AdjointTile<double>::scale_by_impulses(int, double, double*) const;
template const double* AdjointTile<double>::behind_changes(const TileStep&, const double*);
template void AdjointTile<double>::reverse_step(const TileStep&, StageRecord<double>&, const StageRecord<double>*,
                                                std::span<const double>);
template void AdjointTile<double>::reverse_renewal(const TileStep&, const StageRecord<double>&);
template void AdjointTile<double>::set_end_bar(int, std::span<const double>, double);
template AdjointTile<double>::EventSlopes AdjointTile<double>::event_slopes(int) const;
template void AdjointTile<double>::reverse_events(std::size_t);
template void AdjointTile<double>::reverse_saves(const TileStep&, std::span<const double>);
template void AdjointTile<double>::reverse_evaluation(const double*, const double*, const std::byte*, const std::byte*,
                                                      const double*, double*);
template void AdjointTile<double>::flush(double*, std::size_t);
template void AdjointTile<double>::make_cotangents();

}  // namespace lockstep::ode::cpu
