// Resets on the way of a tile's derivatives. Where a function g crosses zero at t* the state u* = y(t*) becomes
// r(t*, u*, p), and the trajectory goes on with the rate f+ from there. With the rate u' before and g' = g_t + g_u u',
//   dt* = -(g_u dy + g_p dp) / g',   du* = dy + u' dt*,
// where dy is the change of the interpolant at fixed theta, and at the fixed time t*
//   dy+ = r_u du* + r_t dt* + r_p dp - f+ dt*,
// for a trajectory that sets out dt* later from the same state is behind by f+ dt* (the saltation matrix: Leine and
// Nijmeijer, Dynamics and Bifurcations of Non-Smooth Mechanical Systems, 2004, section 7.2). Resets that the first one
// strikes have the same dt*; those that impulses strike, or their functions' own leaps at a stop, have none.
#include <algorithm>
#include <utility>

#include "lockstep/core/equal_part.h"
#include "lockstep/ode/cpu/adjoint_tile.h"
#include "lockstep/ode/differentiable_event.h"

namespace lockstep::ode::cpu {
namespace {

// Of g where it has crossed.
struct CrossingSlopes {
  double rate;  // g', along the trajectory
  std::vector<double> by_state, by_parameter;
};

CrossingSlopes crossing_slopes(const Reset& reset, double t, std::span<const double> state,
                               std::span<const double> parameters, std::span<const double> rate) {
  CrossingSlopes slopes{0, std::vector<double>(state.size()), std::vector<double>(parameters.size())};
  const auto& function = dynamic_cast<const DifferentiableEvent&>(*reset.function);
  slopes.rate = function.slopes(t, state, parameters, slopes.by_state, slopes.by_parameter);
  for (std::size_t c = 0; c < state.size(); ++c) slopes.rate += slopes.by_state[c] * rate[c];
  return slopes;
}

const DifferentiableReset& new_state(const Reset& reset) {
  return dynamic_cast<const DifferentiableReset&>(*reset.state);
}

}  // namespace

template <class T>
LaneMask AdjointTile<T>::reset_lanes() {
  std::vector<std::vector<double>> rates(kTileLanes);
  const LaneMask moved = saver_.cut() & ~saver_.piled_up();
  for (LaneMask bits = moved; bits != 0; bits &= bits - 1) {
    const int lane = __builtin_ctz(bits);
    if (!saver_.leapt(lane)) rates[static_cast<std::size_t>(lane)] = rate_within(lane, saver_.event_theta(lane));
  }
  const LaneMask over = saver_.reset();
  keep_resets(true);
  for (std::size_t i = resets_.size(); i-- > 0 && resets_[i].step + 1 == steps_.size();)
    resets_[i].rate = std::move(rates[static_cast<std::size_t>(resets_[i].lane())]);
  for (LaneMask bits = over; bits != 0; bits &= bits - 1) {
    const int lane = __builtin_ctz(bits);
    end_lane(lane, Status::terminated);
    EventEnd& end = event_ends_[lane];
    end = {.step = steps_.size() - 1, .theta = saver_.event_theta(lane), .by_reset = true, .rate = {}};
    if (((steps_.back().reset >> lane) & 1) != 0) continue;
    end.by_reset = false;  // it was at its event before it was reset
    end.rate = std::move(rates[static_cast<std::size_t>(lane)]);
  }
  return over;
}

template <class T>
void AdjointTile<T>::keep_resets(bool within) {
  for (LaneMask done = 0; ResetChange & change : changes_) {
    const LaneMask bit = LaneMask{1} << change.lane;
    if ((done & bit) == 0) {
      done |= bit;
      steps_.back().reset |= bit;
      resets_.push_back({.step = steps_.size() - 1,
                         .within = within,
                         .leapt = within && saver_.leapt(change.lane),
                         .t = tile_.t[change.lane],
                         .seen = saver_.seen(change.lane),
                         .theta = within ? saver_.event_theta(change.lane) : 1});
    }
    const auto of_lane = [&](const ResetRecord<T>& record) {
      return record.step + 1 == steps_.size() && record.within == within &&
             (record.changes.empty() || record.lane() == change.lane);
    };
    std::find_if(resets_.rbegin(), resets_.rend(), of_lane)->changes.push_back(std::move(change));
  }
  changes_.clear();
}

template <class T>
void AdjointTile<T>::know_behind(LaneMask renewed) {
  const std::size_t n = context_.components();
  for (std::size_t i = resets_.size(); i-- > 0 && resets_[i].step + 1 == steps_.size();) {
    ResetRecord<T>& record = resets_[i];
    if (((renewed >> record.lane()) & 1) == 0) continue;
    for (std::size_t c = 0; c < n; ++c) {
      record.behind.push_back(at(tile_.y.data(), record.lane(), c));
      record.rate_behind.push_back(static_cast<double>(at(tile_.k.data(), record.lane(), c)));
    }
  }
}

template <class T>
std::span<const ResetRecord<T>> AdjointTile<T>::resets_of(std::size_t step) const {
  return equal_part(resets_, step, &ResetRecord<T>::step);
}

template <class T>
void AdjointTile<T>::put_behind(std::size_t step, T* rows) const {
  for (const ResetRecord<T>& record : resets_of(step)) {
    for (std::size_t c = 0; c < record.behind.size(); ++c)
      rows[c * kTileLanes + static_cast<std::size_t>(record.lane())] = record.behind[c];
  }
}

template <class T>
void AdjointTile<T>::push_forward(const ResetRecord<T>& record, const Directions& directions, std::span<double> columns,
                                  std::span<double> by_time) const {
  const std::size_t n = context_.components(), m = context_.parameters(), count = directions.count();
  std::vector<double> parameters(m);
  for (std::size_t i = 0; i < m; ++i)
    parameters[i] = static_cast<double>(at(tile_.parameters.data(), record.lane(), i));
  if (record.within && !record.leapt) {
    const ResetChange& first = record.changes.front();
    const CrossingSlopes slopes =
        crossing_slopes(context_.problem->resets[first.reset], record.seen, first.before, parameters, record.rate);
    for (std::size_t d = 0; d < count; ++d) {
      double change = directions.along(d, slopes.by_parameter);
      for (std::size_t c = 0; c < n; ++c) change += slopes.by_state[c] * columns[c * count + d];
      by_time[d] = -change / slopes.rate;
      for (std::size_t c = 0; c < n; ++c) columns[c * count + d] += record.rate[c] * by_time[d];
    }
  }
  std::vector<double> unit(n), by_state(n), by_parameter(m), behind(columns.size());
  for (const ResetChange& change : record.changes) {
    for (std::size_t o = 0; o < n; ++o) {
      std::ranges::fill(unit, 0.0);
      unit[o] = 1;
      const double along = new_state(context_.problem->resets[change.reset])
                               .transpose(record.seen, change.before, parameters, unit, by_state, by_parameter);
      for (std::size_t d = 0; d < count; ++d) {
        double sum = along * by_time[d] + directions.along(d, by_parameter);
        for (std::size_t c = 0; c < n; ++c) sum += by_state[c] * columns[c * count + d];
        behind[o * count + d] = sum;
      }
    }
    std::ranges::copy(behind, columns.begin());
  }
  for (std::size_t c = 0; c < record.rate_behind.size(); ++c) {
    for (std::size_t d = 0; d < count; ++d) columns[c * count + d] -= record.rate_behind[c] * by_time[d];
  }
}

template <class T>
void AdjointTile<T>::pull_back(const ResetRecord<T>& record, std::span<double> bar, double time_bar) {
  const std::size_t n = context_.components(), m = context_.parameters();
  const auto column = static_cast<std::size_t>(record.lane());
  std::vector<double> parameters(m), parameter_bar(m, 0.0), by_state(n), by_parameter(m);
  for (std::size_t i = 0; i < m; ++i)
    parameters[i] = static_cast<double>(at(tile_.parameters.data(), record.lane(), i));
  double along = time_bar;
  for (std::size_t c = 0; c < record.rate_behind.size(); ++c) along -= bar[c] * record.rate_behind[c];
  for (std::size_t i = record.changes.size(); i-- > 0;) {
    const ResetChange& change = record.changes[i];
    along += new_state(context_.problem->resets[change.reset])
                 .transpose(record.seen, change.before, parameters, bar, by_state, by_parameter);
    std::ranges::copy(by_state, bar.begin());
    for (std::size_t k = 0; k < m; ++k) parameter_bar[k] += by_parameter[k];
  }
  if (record.within && !record.leapt) {
    const ResetChange& first = record.changes.front();
    const CrossingSlopes slopes =
        crossing_slopes(context_.problem->resets[first.reset], record.seen, first.before, parameters, record.rate);
    for (std::size_t c = 0; c < n; ++c) along += bar[c] * record.rate[c];
    const double share = along / slopes.rate;
    for (std::size_t c = 0; c < n; ++c) bar[c] -= share * slopes.by_state[c];
    for (std::size_t k = 0; k < m; ++k) parameter_bar[k] -= share * slopes.by_parameter[k];
  }
  for (std::size_t k = 0; k < m; ++k) parameter_bar_[k * kTileLanes + column] += static_cast<T>(parameter_bar[k]);
}

template <class T>
const ResetRecord<T>* AdjointTile<T>::crossing_of(const TileStep& step, int lane) const {
  if (((step.reset >> lane) & 1) == 0) return nullptr;
  for (const ResetRecord<T>& record : resets_of(step.index)) {
    if (record.lane() == lane && record.within) return &record;
  }
  return nullptr;
}

template <class T>
bool AdjointTile<T>::reverse_reset_lane(std::size_t step, int lane) {
  const std::size_t n = context_.components(), column = static_cast<std::size_t>(lane);
  const auto pull = [&](const ResetRecord<T>& record) {
    std::vector<double> bar(n);
    for (std::size_t c = 0; c < n; ++c) bar[c] = static_cast<double>(at(bar_.y.data(), lane, c));
    // Nothing comes from a trajectory that no loss asks for, whose numbers may be none.
    if (std::ranges::all_of(bar, [](double x) { return x == 0; })) return;
    pull_back(record, bar, 0);
    for (std::size_t c = 0; c < n; ++c) bar_.y[c * kTileLanes + column] = static_cast<T>(bar[c]);
  };
  for (const ResetRecord<T>& record : resets_of(step)) {
    if (record.lane() == lane && !record.within) pull(record);
  }
  const ResetRecord<T>* const crossing = crossing_of(steps_[step], lane);
  if (crossing == nullptr) return false;
  if (crossing->t == steps_[step].t_new[lane]) scale_by_impulses(lane, crossing->t, bar_.y.data());
  pull(*crossing);
  for (std::size_t place = column; place < n * kTileLanes; place += kTileLanes)
    reset_bar_[place] = std::exchange(bar_.y[place], T(0));
  return true;
}

template <class T>
void AdjointTile<T>::reverse_resets(std::size_t step) {
  const std::size_t n = context_.components();
  std::fill_n(bar_.saved.data(), n * kTileLanes, T(0));
  std::fill_n(bar_.theta, kTileLanes, 0.0);
  for (const ResetRecord<T>& record : resets_of(step)) {
    if (!record.within) continue;
    if (!record.leapt) bar_.theta[record.lane()] = record.theta;
    for (std::size_t place = static_cast<std::size_t>(record.lane()); place < n * kTileLanes; place += kTileLanes)
      (record.leapt ? bar_.y1 : bar_.saved)[place] += reset_bar_[place];
  }
  adjoint_.interpolate(bar_, n, context_.tableau);
}

#define LOCKSTEP_INSTANTIATE(T)                                                                           \
  template LaneMask AdjointTile<T>::reset_lanes();                                                        \
  template void AdjointTile<T>::keep_resets(bool);                                                        \
  template void AdjointTile<T>::know_behind(LaneMask);                                                    \
  template std::span<const ResetRecord<T>> AdjointTile<T>::resets_of(std::size_t) const;                  \
  template void AdjointTile<T>::put_behind(std::size_t, T*) const;                                        \
  template void AdjointTile<T>::push_forward(const ResetRecord<T>&, const Directions&, std::span<double>, \
                                             std::span<double>) const;                                    \
  template void AdjointTile<T>::pull_back(const ResetRecord<T>&, std::span<double>, double);              \
  template const ResetRecord<T>* AdjointTile<T>::crossing_of(const TileStep&, int) const;                 \
  template bool AdjointTile<T>::reverse_reset_lane(std::size_t, int);                                     \
  template void AdjointTile<T>::reverse_resets(std::size_t);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(double)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::ode::cpu
