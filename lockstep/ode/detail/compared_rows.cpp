#include "lockstep/ode/detail/compared_rows.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/ode/detail/fit_data.h"
#include "lockstep/ode/detail/least_squares.h"
#include "lockstep/ode/detail/start_solver.h"
#include "lockstep/ode/detail/weight_columns.h"
#include "lockstep/ode/huber.h"

namespace lockstep::ode::detail {

double smallest_effect(const Options& options) {
  return options.control == StepControl::fixed ? 1e-10 : std::max(1e-10, options.rtol);
}

ComparedRows::ComparedRows(Rhs rhs, std::span<const TrainedParameter> trained, std::span<const double> let_go,
                           const TrajectoryData& data, Options options, const UncertaintyOptions& uncertainty,
                           const RunControl& control)
    : rhs_(std::move(rhs)),
      let_go_(let_go),
      trained_(trained),
      data_(data),
      options_(std::move(options)),
      starts_(uncertainty.initial_states),
      given_(uncertainty.starts),
      resets_(uncertainty.resets),
      components_(rhs_->components()),
      free_(starts_.empty() ? 0 : components_),
      weights_(uncertainty.component_weights),
      control_(control) {
  if (uncertainty.huber_threshold)
    thresholds_ = huber_thresholds(data_, components_, weights_, *uncertainty.huber_threshold);
  if (!given_) return;
  by_parameter_of_starts_ = starts_by_parameter(*given_, data_);
  if (starts_.empty()) given_states_ = start_states(*given_, {}, data_);
}

void ComparedRows::each(const std::function<void(std::size_t trajectory, Rows rows)>& take,
                        const std::function<void()>& after_some) {
  const std::size_t tile =
      32 * sizeof(double) * data_.points(components_) * components_ * (free_ + let_go_.size() + trained_.size());
  const std::size_t together = 32 * std::clamp<std::size_t>((std::size_t{1} << 28) / tile, 1, 32);
  std::vector<std::uint32_t> some;
  for (std::size_t i = 0; i < data_.trajectories; ++i) {
    some.push_back(static_cast<std::uint32_t>(i));
    const bool same = i + 1 < data_.trajectories && length(i + 1) == length(i);
    if (some.size() < together && same) continue;
    solve(some, take);
    after_some();
    some.clear();
  }
}

void ComparedRows::solve(const std::vector<std::uint32_t>& some,
                         const std::function<void(std::size_t trajectory, Rows rows)>& take) {
  const TrajectoryData data = chosen(data_, components_, rhs_->parameters(), some);
  FitOptions fit;
  fit.solve = options_;
  fit.resets = resets_;
  Problem problem = make_task(rhs_, data, fit, {}, length(some.front()) - 1).problem;
  const std::span<const double> begins = free_ != 0 ? starts_ : given_states_;
  if (!begins.empty()) {
    const auto first = begins.subspan(some.front() * components_, some.size() * components_);
    problem.initial_states.assign(first.begin(), first.end());
  }
  const DirectionalDerivatives found = solve_along(problem, directions(some), options_, control_);
  if (found.unresolved && !unresolved_) {
    unresolved_ = found.unresolved;
    unresolved_->trajectory += some.front();
  }
  const DataRows rows(data, components_);
  by_weights_.assign(found.states.size() * let_go_.size(), 0.0);
  if (!let_go_.empty() && !failed_) {
    auto columns = weight_columns(problem, let_go_, options_, control_);
    failed_ = !columns.has_value();
    if (columns) by_weights_ = *std::move(columns);
  }
  for (std::size_t i = 0; i < some.size(); ++i) {
    if (found.records[i].status == Status::success) {
      take(some.front() + i, rows_of(data, rows, problem, found, i, some.front() + i));
    } else {
      ++unsolved_;
    }
  }
}

// Of starts that are free, then of trained parameters, which move given starts too.
Directions ComparedRows::directions(const std::vector<std::uint32_t>& some) const {
  Directions of;
  of.parameters.assign(free_, Directions::kNoParameter);
  for (const TrainedParameter& each : trained_) of.parameters.push_back(each.parameter);
  if (free_ == 0 && !given_) return of;
  const std::size_t n = components_, m = rhs_->parameters(), count = of.count();
  of.initial_states.assign(some.size() * n * count, 0.0);
  for (std::size_t i = 0; i < some.size(); ++i) {
    for (std::size_t c = 0; c < n; ++c) {
      double* const changes = of.initial_states.data() + (i * n + c) * count;
      const std::size_t start = (some[i] * n + c) * m;
      if (!is_given(c)) {
        if (free_ != 0) changes[c] = 1;
        continue;
      }
      for (std::size_t j = 0; j < trained_.size(); ++j) {
        changes[free_ + j] = by_parameter_of_starts_[start + trained_[j].parameter];
      }
    }
  }
  return of;
}

Rows ComparedRows::rows_of(const TrajectoryData& data, const DataRows& rows, const Problem& problem,
                           const DirectionalDerivatives& found, std::size_t trajectory, std::size_t of_all) {
  const std::size_t n = components_, m = rhs_->parameters(), first_trained = free_ + let_go_.size();
  // By parameters, of the start of component c.
  const auto by_parameters = [&](std::size_t c) { return by_parameter_of_starts_.data() + (of_all * n + c) * m; };
  MeasuredRows measured{{first_trained + trained_.size() + 1}, free_, {}};
  std::vector<double> row(measured.rows.columns);
  const double* const states = data.states.data() + rows.first(trajectory) * n;
  const auto push = [&](std::size_t at, double state) {
    const std::size_t of_data = rows.first(trajectory) * n + at;
    const double threshold = measurement_threshold(data, thresholds_, of_data, at % n);
    const double residual = states[at] - state;
    row.back() = std::clamp(residual, -threshold, threshold);
    if (row.back() != residual) ++beyond_;
    const double root = std::sqrt(measurement_weight(data, weights_, of_data, at % n));
    for (const double number : row) measured.rows.numbers.push_back(root * number);
    measured.components.push_back(at % n);
    measured.roundings.push_back(root * smallest_effect(options_) * std::fabs(state));
  };
  for (std::size_t c = 0; c < n; ++c) {
    if (std::isnan(states[c]) || (free_ == 0 && !is_given(c))) continue;
    std::fill(row.begin(), row.end(), 0.0);
    if (!is_given(c)) row[c] = 1;
    for (std::size_t j = 0; j < trained_.size() && is_given(c); ++j) {
      row[first_trained + j] = by_parameters(c)[trained_[j].parameter];
    }
    push(c, problem.initial_states[trajectory * n + c]);
  }
  for (std::size_t point = 1; point < rows.points(trajectory); ++point) {
    for (std::size_t c = 0; c < n; ++c) {
      const std::size_t at = (trajectory * (rows.points(trajectory) - 1) + point - 1) * n + c;
      if (std::isnan(states[point * n + c])) continue;
      const double* const by = found.by_direction.data() + at * (free_ + trained_.size());
      std::copy_n(by, free_, row.begin());
      std::copy_n(by_weights_.data() + at * let_go_.size(), let_go_.size(), row.data() + free_);
      std::copy_n(by + free_, trained_.size(), row.data() + first_trained);
      push(point * n + c, found.states[at]);
    }
  }
  take_out_known_states(measured);
  return std::move(measured.rows);
}

}  // namespace lockstep::ode::detail
