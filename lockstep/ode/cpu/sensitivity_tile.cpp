// Derivatives of a tile's states along changes of initial states and parameters, carried forward through the recorded
// steps.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "lockstep/ode/cpu/adjoint_tile.h"
#include "lockstep/ode/cpu/direction_lanes.h"

namespace lockstep::ode::cpu {
namespace {

template <class T>
bool all_zero(const T* lanes, std::size_t count) {
  return std::all_of(lanes, lanes + count, [](T x) { return x == 0; });
}

}  // namespace

// With y' the derivative of y along each direction of (u0, p): Y_i' = y' + h sum_j a_ij k_j', k_i' = J_u(Y_i) Y_i' +
// J_p p'.
template <class T>
void AdjointTile<T>::sensitivities(const Directions& directions, std::size_t first, std::span<T> out,
                                   std::span<double> ends) {
  const std::size_t n = context_.components(), m = context_.parameters(), columns = directions.count();
  const std::size_t rows = n * columns;
  make_cotangents();
  // All arithmetic is that of lanes, so that it does not matter for the bits in which of them a number lies.
  // Right-hand sides that take rows of Jacobians may be users' own, which read all lanes.
  const DirectionLanes layout(lanes_taken_, columns, rhs_.pushes_forward() ? columns : kTileLanes);
  const int used = static_cast<int>(layout.used());
  const std::size_t width = layout.width(), side_by_side = layout.side_by_side(), groups = layout.groups();
  const std::size_t packed_rows = n * groups, size = packed_rows * kTileLanes;
  std::vector<std::size_t> place(rows);  // [component][direction], of the first lane
  for (std::size_t row = 0; row < rows; ++row) place[row] = layout.place(row / columns, row % columns);
  const Tableau& tableau = *context_.tableau.source;
  const auto last = static_cast<std::size_t>(tableau.stages) - 1;
  AlignedBuffer<T> y(size), y1(size), argument(size), k(total_stages() * size);
  alignas(64) T scale[kTileLanes], h_of[kTileLanes] = {};
  AlignedBuffer<T> unit(n * kTileLanes), row_bar(n * kTileLanes);
  AlignedBuffer<std::byte> recording(rhs_.record_bytes());
  std::fill(out.begin(), out.end(), std::numeric_limits<T>::quiet_NaN());
  std::fill(ends.begin(), ends.end(), std::numeric_limits<double>::quiet_NaN());
  const auto write = [&](std::size_t lane, std::size_t save, const auto& value) {
    T* const to = out.data() + (lane * context_.save_points() + save) * rows;
    for (std::size_t row = 0; row < rows; ++row) to[row] = value(place[row] + lane);
  };

  // Where the end time is a constant.
  const auto write_end = [&](std::size_t lane, const auto& value) {
    double* const to = ends.data() + lane * (1 + n) * columns;
    std::fill_n(to, columns, 0.0);
    for (std::size_t row = 0; row < rows; ++row) to[columns + row] = static_cast<double>(value(place[row] + lane));
  };
  const auto pass_impulses = [&](std::size_t lane, double t, T* of) {
    if (t == lanes_[lane].t_end) return;
    detail::for_changes(tile_.stops[lane], t, [&](const detail::StateChange& change) {
      const std::size_t* const row = place.data() + static_cast<std::size_t>(change.component) * columns;
      for (std::size_t d = 0; d < columns; ++d) of[row[d] + lane] *= static_cast<T>(change.factor);
    });
  };

  // y' within a step, steps being constants, at the theta for which weigh() was asked last.
  std::vector<T> weights(context_.tableau.interpolant_stages.size());
  const auto weigh = [&](double theta, double h) {
    adjoint_.interpolant_weights(context_.tableau, theta, h, weights.data());
  };
  const auto inside = [&](std::size_t at) {
    T value = y[at];
    for (std::size_t i = 0; i < weights.size(); ++i)
      value += weights[i] * k[context_.tableau.interpolant_stages[i] * size + at];
    return value;
  };
  // As set_end_bar() derives it: dt* = -(g_u dy + g_p dp) / g', du* = dy + u' dt*, for each column.
  const auto write_event = [&](std::size_t lane, const auto& value) {
    const EventSlopes slopes = event_slopes(static_cast<int>(lane));
    double* const to = ends.data() + lane * (1 + n) * columns;
    for (std::size_t d = 0; d < columns; ++d) {
      double change = directions.along(d, slopes.by_parameter);
      for (std::size_t c = 0; c < n; ++c) {
        to[(1 + c) * columns + d] = static_cast<double>(value(place[c * columns + d] + lane));
        change += slopes.by_state[c] * to[(1 + c) * columns + d];
      }
      to[d] = -change / slopes.rate;
      for (std::size_t c = 0; c < n; ++c) to[(1 + c) * columns + d] += event_ends_[lane].rate[c] * to[d];
    }
  };

  // What right-hand sides read stands beside each direction.
  const bool repeats = side_by_side > 1;
  AlignedBuffer<T> states(repeats ? n * kTileLanes : 0), all_parameters(repeats ? m * kTileLanes : 0);
  alignas(64) double times[kTileLanes];
  if (repeats) layout.repeat(tile_.parameters.data(), m, all_parameters.data());
  const T* const parameters = m == 0 ? nullptr : repeats ? all_parameters.data() : tile_.parameters.data();
  const auto beside_each = [&]<class Number>(const Number* rows, std::size_t count, Number* to) -> const Number* {
    if (!repeats) return rows;
    layout.repeat(rows, count, to);
    return to;
  };

  // k' = J_u argument' + J_p p', as many directions at a time as stand side by side.
  AlignedBuffer<std::byte> forward_workspace(rhs_.forward_workspace_bytes());
  AlignedBuffer<T> parameter_dot(rhs_.pushes_forward() ? groups * m * kTileLanes : 0);  // [group][parameter][lane]
  for (std::size_t d = 0; d < columns && !parameter_dot.empty(); ++d) {
    if (const std::size_t moved = directions.parameters[d]; moved != Directions::kNoParameter)
      std::fill_n(parameter_dot.data() + (layout.group(d) * m + moved) * kTileLanes + layout.offset(d), width, T(1));
  }
  const auto push_stage = [&](const double* t, const T* at, T* k_dot) {
    const auto push = [&](std::size_t group, const T* in_dot, T* out_dot) {
      const T* const moved = m == 0 ? nullptr : parameter_dot.data() + group * m * kTileLanes;
      rhs_.forward({t, at, parameters, in_dot, moved, out_dot, used}, forward_workspace.data());
    };
    if (groups == 1) return push(0, argument.data(), k_dot);
    for (std::size_t group = 0; group < groups; ++group) {
      for (std::size_t c = 0; c < n; ++c) {
        std::copy_n(argument.data() + (c * groups + group) * kTileLanes, kTileLanes, unit.data() + c * kTileLanes);
      }
      push(group, unit.data(), row_bar.data());
      for (std::size_t c = 0; c < n; ++c) {
        std::copy_n(row_bar.data() + c * kTileLanes, kTileLanes, k_dot + (c * groups + group) * kTileLanes);
      }
    }
  };
  // out += J_u of + J_p p', a row of J from the transpose of each unit vector, as many at a time as stand side by side.
  const int lanes_read = repeats ? static_cast<int>(std::min(n, side_by_side) * width) : tile_.lanes;
  const auto add_derivative = [&](const DifferentiableTile<T>& function, ReverseTileView<T> tile, const T* of, T* out) {
    tile.parameters = parameters;
    tile.lanes = lanes_read;
    tile.out_bar = unit.data();
    tile.in_bar = row_bar.data();
    tile.parameter_bar = m == 0 ? nullptr : parameter_bar_.data();
    std::fill_n(unit.data(), n * kTileLanes, T(0));
    for (std::size_t o = 0; o < n; ++o) {
      const std::size_t from = o % side_by_side * width;
      if (from == 0) {
        for (std::size_t before = o - std::min(o, side_by_side); before < o; ++before)
          std::fill_n(unit.data() + before * kTileLanes, kTileLanes, T(0));
        for (std::size_t beside = o; beside < std::min(n, o + side_by_side); ++beside)
          std::fill_n(unit.data() + beside * kTileLanes + (beside - o) * width, width, T(1));
        std::fill_n(row_bar.data(), n * kTileLanes, T(0));
        std::fill_n(parameter_bar_.data(), m * kTileLanes, T(0));
        function.reverse(tile, workspace_.data());
      }
      T* const to = out + o * groups * kTileLanes;
      for (std::size_t d = 0; d < columns; ++d) {
        const std::size_t moved = directions.parameters[d];
        if (moved == Directions::kNoParameter) continue;
        T* const change = to + layout.place(0, d);
        for (std::size_t lane = 0; lane < width; ++lane)
          change[lane] += parameter_bar_[moved * kTileLanes + from + lane];
      }
      for (std::size_t c = 0; c < n; ++c) {
        const T* jacobian = row_bar.data() + c * kTileLanes;
        if (all_zero(jacobian + from, width)) continue;
        if (repeats) {
          std::copy_n(jacobian + from, width, scale);
          layout.repeat(scale, 1, scale);
          jacobian = scale;
        }
        adjoint_.add_scaled(jacobian, groups, of + c * groups * kTileLanes, to, used);
      }
    }
  };
  // `recorded` where it was left by an evaluation there of lanes as they stand.
  const auto stage = [&](const double* t_of, const T* at_of, T* k_dot, const std::byte* recorded = nullptr) {
    const double* const t = beside_each(t_of, 1, times);
    const T* const at = beside_each(at_of, n, states.data());
    if (rhs_.pushes_forward()) return push_stage(t, at, k_dot);
    if (recorded == nullptr && rhs_.record_bytes() != 0) {
      rhs_.evaluate_recording({t, at, parameters, tile_.scratch.data(), lanes_read}, recording.data(),
                              workspace_.data());
      recorded = recording.data();
    }
    std::fill_n(k_dot, size, T(0));
    add_derivative(rhs_, {.t = t, .in = at, .record = recorded, .cotangents = cotangents_.data()}, argument.data(),
                   k_dot);
  };
  // Of stages that are solved for, W k_i' = f_i' + sum_j g_ij k_j' + h (J k_i + d_i f_t)', the last at fixed k_i. k_dot
  // holds f_i', then k_i'.
  AlignedBuffer<T> along(directional_ ? size : 0), column(directional_ ? n * kTileLanes : 0);
  AlignedBuffer<T> all_directions(directional_ && repeats ? direction_numbers() : 0);
  const auto solve = [&](std::size_t i, const StageRecord<T>& record, T* k_dot) {
    std::fill_n(along.data(), size, T(0));
    const T* const in = beside_each(direction_of(i, record), 2 * n + 1, all_directions.data());
    add_derivative(*directional_,
                   {.t = beside_each(t_linear_, 1, times), .in = in, .cotangents = directional_cotangents_.data()},
                   y.data(), along.data());
    for (T& change : along.span()) change = change * 0 == 0 ? change : 0;  // as infinite entries of J counted
    adjoint_.add_scaled(h_of, packed_rows, along.data(), k_dot, used);
    for (const auto& term : context_.tableau.couplings[i].terms) {
      std::fill_n(scale, kTileLanes, term.weight);
      adjoint_.add_scaled(scale, packed_rows, k.data() + term.stage * size, k_dot, used);
    }
    for (std::size_t group = 0; group < groups; ++group) {
      const auto row = [&](std::size_t c) { return k_dot + (c * groups + group) * kTileLanes; };
      for (std::size_t c = 0; c < n; ++c) std::copy_n(row(c), kTileLanes, column.data() + c * kTileLanes);
      adjoint_.solve(*linear_, column.data(), kTileLanes);
      for (std::size_t c = 0; c < n; ++c) std::copy_n(column.data() + c * kTileLanes, kTileLanes, row(c));
    }
  };

  const bool shares_starts = directions.initial_states.size() == rows;
  for (std::size_t lane = 0; lane < lanes_taken_ && !directions.initial_states.empty(); ++lane) {
    const std::size_t begin = shares_starts ? 0 : (first + lane) * rows;
    for (std::size_t row = 0; row < rows; ++row) {
      y[place[row] + lane] = static_cast<T>(directions.initial_states[begin + row]);
    }
  }
  for (std::size_t lane = 0; lane < lanes_taken_; ++lane) {
    const LaneRecord<T>& record_of = lanes_[lane];
    saved_[lane] = 0;
    while (saved_[lane] < record_of.saved && record_of.save_times[saved_[lane]] == tile_.t_start[lane]) {
      write(lane, saved_[lane]++, [&](std::size_t at) { return y[at]; });
    }
    pass_impulses(lane, tile_.t_start[lane], y.data());
  }
  std::copy_n(y.data(), size, argument.data());
  if (!starts_nowhere()) stage(t_first_, initial_.data(), k.data());

  // Across what happens to a lane's state at once in a step: resets where it crosses a threshold within, impulses at
  // the end, resets that those strike. `of` holds y' at the step's end, then y' behind; by_time [column] that of the
  // time.
  std::vector<double> carried(rows), by_time(columns);
  const auto cross = [&](std::size_t index, std::size_t lane, T* of) {
    const TileStep& step = steps_[index];
    std::ranges::fill(by_time, 0.0);
    const auto pass = [&](const ResetRecord<T>& record, const auto& before) {
      for (std::size_t row = 0; row < rows; ++row) carried[row] = static_cast<double>(before(place[row] + lane));
      push_forward(record, directions, carried, by_time);
      for (std::size_t row = 0; row < rows; ++row) of[place[row] + lane] = static_cast<T>(carried[row]);
    };
    if (const ResetRecord<T>* const crossing = crossing_of(step, static_cast<int>(lane))) {
      if (crossing->leapt) {
        pass(*crossing, [&](std::size_t at) { return of[at]; });
      } else {
        weigh(crossing->theta, step.h[lane]);
        pass(*crossing, inside);
      }
      if (crossing->t != step.t_new[lane]) return;
    }
    pass_impulses(lane, step.t_new[lane], of);
    for (const ResetRecord<T>& record : resets_of(index)) {
      if (record.lane() == static_cast<int>(lane) && !record.within)
        pass(record, [&](std::size_t at) { return of[at]; });
    }
  };

  // The largest value of each derivative, and the largest local error in a step to such a one, and in which that was.
  const bool estimates = !directional_ && !context_.tableau.error.terms.empty();
  AlignedBuffer<T> error(estimates ? size : 0), largest_error(error.size()), largest(error.size());
  std::vector<std::uint32_t> error_steps(error.size());
  for (std::size_t at = 0; at < largest.size(); ++at) largest[at] = std::fabs(y[at]);
  const auto note_errors = [&](std::size_t index) {
    const LaneMask accepted = layout.repeat(steps_[index].accepted);
    adjoint_.stage_sum(h_of, packed_rows, context_.tableau.error, k.data(), nullptr, error.data(), used);
    for (std::size_t row = 0; row < packed_rows; ++row) {
      const std::size_t in_group = std::min(side_by_side, columns - row % groups * side_by_side) * width;
      for (std::size_t lane = 0; lane < in_group; ++lane) {
        const std::size_t at = row * kTileLanes + lane;
        // What does not grow does no harm; lanes that stay where they are may be anything.
        if (std::fabs(y1[at]) <= largest[at] || ((accepted >> lane) & 1) == 0) continue;
        const bool overflows = !std::isfinite(y1[at]) || !std::isfinite(error[at]);
        if (overflows && !(std::isfinite(y[at]) && std::isfinite(k[at]))) continue;
        if (!overflows) largest[at] = std::fabs(y1[at]);
        const T off = overflows ? std::numeric_limits<T>::infinity() : std::fabs(error[at]);
        if (off <= largest_error[at]) continue;
        largest_error[at] = off;
        error_steps[at] = static_cast<std::uint32_t>(index);
      }
    }
  };

  AlignedBuffer<T> renewed, behind;  // k' and y' behind jumps
  alignas(64) double t_stage[kTileLanes] = {};
  for (std::size_t index = 0; index < steps_.size(); ++index) {
    stop_if_cancelled();
    if (index < segment_first_ || index >= segment_end()) restore(std::min(steps_.size(), index + plan_.segment_steps));
    const TileStep& step = steps_[index];
    const StageRecord<T>& stages = segment_[index - segment_first_];
    for (std::size_t lane = 0; lane < kept_lanes_; ++lane) h_of[lane] = static_cast<T>(step.h[lane]);
    if (directional_) {
      std::copy_n(h_of, kTileLanes, bar_.h);
      linearise(step, stages);
      if (repeats) layout.repeat(linear_->matrix, linear_->rows(), linear_->matrix);
    }
    if (repeats) layout.repeat(h_of, 1, h_of);
    for (std::size_t i = 1; i < (step.interpolated ? total_stages() : last + 1); ++i) {
      adjoint_.stage_sum(h_of, packed_rows, context_.tableau.rows[i], k.data(), y.data(), argument.data(), used);
      if (i == last) std::copy_n(argument.data(), size, y1.data());
      adjoint_.stage_times(step.t, step.h, tableau.c[i], t_stage, static_cast<int>(width));
      const bool at_end = i == last || (has_stops() && tableau.c[i] == 1);
      T* const k_dot = k.data() + i * size;
      if (directional_ && i == 1) {
        std::copy_n(k.data(), size, k_dot);
      } else {
        const bool is_recorded = stages.usable && !repeats;
        stage(at_end ? step.t_last : t_stage, spread(stages.arguments.data() + (i - 1) * n * kept_lanes_), k_dot,
              is_recorded ? stages.recorded.data() + (i - 1) * rhs_.record_bytes() : nullptr);
      }
      if (is_solved(i)) solve(i, stages, k_dot);
    }
    if (estimates) note_errors(index);
    if (step.renewed != 0) {
      std::copy_n(y1.data(), size, argument.data());
      for (LaneMask bits = step.renewed; bits != 0; bits &= bits - 1) {
        const auto lane = static_cast<std::size_t>(__builtin_ctz(bits));
        cross(index, lane, argument.data());
      }
      if (renewed.empty()) renewed = AlignedBuffer<T>(size), behind = AlignedBuffer<T>(size);
      std::copy_n(argument.data(), size, behind.data());
      const T* const y_new = spread(stages.arguments.data() + (last - 1) * n * kept_lanes_);
      stage(step.t_behind, changes_at_once() ? behind_changes(step, y_new) : y_new, renewed.data());
    }
    for (LaneMask bits = step.accepted; bits != 0; bits &= bits - 1) {
      const auto lane = static_cast<std::size_t>(__builtin_ctz(bits));
      const double h = step.h[lane], until = left_at(step, static_cast<int>(lane));
      for (; saved_[lane] < lanes_[lane].saved; ++saved_[lane]) {
        const double time = lanes_[lane].save_times[saved_[lane]];
        if ((until - time) * h < 0) break;
        const double theta = scalar::step_fraction<ScalarLane<double>>(time, step.t[lane], step.t_new[lane], h);
        if (theta == 1) {
          write(lane, saved_[lane], [&](std::size_t at) { return y1[at]; });
        } else {
          weigh(theta, h);
          write(lane, saved_[lane], inside);
        }
      }
      const bool ends_here = outcome_[lane].status == Status::terminated && event_ends_[lane].step == index;
      if (ends_here && ends_by_impulse(static_cast<int>(lane))) {
        cross(index, lane, y1.data());
        write_end(lane, [&](std::size_t at) { return y1[at]; });
      } else if (ends_here && event_ends_[lane].by_reset) {
        cross(index, lane, y1.data());
        write_end(lane, [&](std::size_t at) { return y1[at]; });
        std::ranges::copy(by_time, ends.begin() + static_cast<std::ptrdiff_t>(lane * (1 + n) * columns));
      } else if (ends_here && event_ends_[lane].leapt) {
        write_end(lane, [&](std::size_t at) { return y1[at]; });
      } else if (ends_here) {
        weigh(event_ends_[lane].theta, h);
        write_event(lane, inside);
      }
    }
    const auto go_on_with = [&](LaneMask lanes, const T* y_next,
                                const T* k_next) {  // y = y_next, k_1 = k_next in these
      adjoint_.merge(y.data(), packed_rows, kTileLanes, y_next, packed_rows, ~layout.repeat(lanes), used);
      adjoint_.merge(k.data(), packed_rows, kTileLanes, k_next, packed_rows, ~layout.repeat(lanes), used);
    };
    const LaneMask anew = step.accepted & step.renewed;
    go_on_with(step.accepted & ~anew, y1.data(), k.data() + last * size);
    if (anew == 0) continue;
    go_on_with(anew, behind.data(), renewed.data());
    for (LaneMask bits = anew; bits != 0 && estimates; bits &= bits - 1) {
      for (const std::size_t row : place) {
        const std::size_t at = row + static_cast<std::size_t>(__builtin_ctz(bits));
        largest[at] = std::max(largest[at], std::fabs(y[at]));
      }
    }
  }
  for (std::size_t lane = 0; lane < lanes_taken_; ++lane) {
    if (outcome_[lane].status == Status::success) write_end(lane, [&](std::size_t at) { return y[at]; });
  }

  // What is nothing but the roundings of others is as large as its error.
  constexpr double kRoundings = 1024 * static_cast<double>(std::numeric_limits<T>::epsilon());
  for (std::size_t lane = 0; lane < lanes_taken_; ++lane) {
    LocalError& found = local_errors_[lane] = {};
    for (std::size_t d = 0; estimates && d < columns; ++d) {
      const auto at = [&](std::size_t c) { return place[c * columns + d] + lane; };
      double of_direction = 0;
      for (std::size_t c = 0; c < n; ++c) of_direction = std::max(of_direction, static_cast<double>(largest[at(c)]));
      for (std::size_t c = 0; c < n; ++c) {
        const auto value = static_cast<double>(largest[at(c)]), off = static_cast<double>(largest_error[at(c)]);
        if (value <= kRoundings * of_direction) continue;
        if (!(off > found.error * value)) continue;
        const TileStep& step = steps_[error_steps[at(c)]];
        found = {off / value, step.t[lane], step.h[lane]};
      }
    }
  }
}

template void AdjointTile<float>::sensitivities(const Directions&, std::size_t, std::span<float>, std::span<double>);
template void AdjointTile<double>::sensitivities(const Directions&, std::size_t, std::span<double>, std::span<double>);

}  // namespace lockstep::ode::cpu
