#include "lockstep/ode/fit_errors.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/ode/detail/data_rows.h"
#include "lockstep/ode/detail/fit_data.h"
#include "lockstep/ode/gradient.h"

namespace lockstep::ode {

std::vector<double> fitted_states(const Rhs& rhs, std::span<const double> weights, const TrajectoryData& data,
                                  const Options& options, std::span<const double> initial_states,
                                  const std::vector<Reset>& resets, const RunControl& control,
                                  std::optional<UnresolvedDerivatives>* unresolved) {
  const StandardArithmetic arithmetic;
  data.validate(*rhs, initial_states.empty() ? FirstPoints::complete : FirstPoints::may_miss);
  const std::size_t n = rhs->components(), width = data.points(n) - 1;
  const detail::DataRows rows(data, n);
  FitOptions fit;
  fit.solve = options;
  fit.resets = resets;
  Problem problem = detail::make_task(rhs, data, fit, {}, width).problem;
  if (!initial_states.empty()) problem.initial_states.assign(initial_states.begin(), initial_states.end());
  std::vector<double> states(rows.total() * n, std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < data.trajectories; ++i) {
    std::copy_n(problem.initial_states.begin() + static_cast<std::ptrdiff_t>(i * n), n,
                states.begin() + static_cast<std::ptrdiff_t>(rows.first(i) * n));
  }
  // Rows of a solve have no first point, and room for the longest trajectory.
  const auto keep = [&](std::size_t trajectory, std::span<const double> solved, std::span<double>) {
    std::copy_n(solved.begin(), (rows.points(trajectory) - 1) * n,
                states.begin() + static_cast<std::ptrdiff_t>((rows.first(trajectory) + 1) * n));
    return 0.0;
  };
  GradientSolver solver(std::move(problem), options, TrajectoryLoss(keep), {.check_steps = unresolved != nullptr});
  const Gradients& found = solver.evaluate_loss(weights, control);
  if (unresolved != nullptr) *unresolved = found.unresolved;
  return states;
}

namespace {

constexpr std::size_t kMostOutliers = 5;  // named

// Adds what thresholds make of the errors.
void add_outliers(const TrajectoryData& data, std::span<const double> states, std::span<const double> thresholds,
                  FitErrors& errors) {
  const std::size_t n = thresholds.size();
  const detail::DataRows rows(data, n);
  std::vector<double> squares(n);
  std::vector<detail::Moments> within(n);
  std::vector<std::size_t> counts(n);
  for (std::size_t trajectory = 0; trajectory < data.trajectories; ++trajectory) {
    for (std::size_t point = 0; point < rows.points(trajectory); ++point) {
      for (std::size_t c = 0; c < n; ++c) {
        const std::size_t row = rows.first(trajectory) + point, at = row * n + c;
        const double error = std::fabs(states[at] - data.states[at]);
        if (!std::isfinite(error) || (point == 0 && error == 0)) continue;
        ++errors.compared;
        const double size = error / detail::measurement_threshold(data, thresholds, at, c);
        if (size > 1) {
          ++errors.beyond;
          errors.outliers.push_back({row, c, size});
        } else if (point > 0) {
          squares[c] += error * error;
          within[c].add(data.states[at]);
          ++counts[c];
        }
      }
    }
  }
  for (std::size_t c = 0; c < n; ++c) {
    const double spread = within[c].varies() ? within[c].deviation() : 0;
    errors.components[c].within = {std::sqrt(squares[c] / static_cast<double>(counts[c])), spread, counts[c]};
  }
  std::ranges::stable_sort(errors.outliers, std::ranges::greater(), &FitErrors::Outlier::size);
  errors.outliers.resize(std::min(errors.outliers.size(), kMostOutliers));
}

}  // namespace

FitErrors fit_errors(const TrajectoryData& data, std::span<const double> states, std::span<const double> spreads,
                     std::span<const double> thresholds) {
  const StandardArithmetic arithmetic;
  const std::size_t n = spreads.size();
  const detail::DataRows rows(data, n);
  train::ErrorSums sums(n);
  FitErrors result;
  const std::vector<double> nothing(n, std::numeric_limits<double>::quiet_NaN());
  for (std::size_t trajectory = 0; trajectory < data.trajectories; ++trajectory) {
    double squares = 0;
    std::size_t count = 0;
    bool reached = true;
    for (std::size_t point = 0; point < rows.points(trajectory); ++point) {
      const std::size_t at = (rows.first(trajectory) + point) * n;
      const std::span<const double> found = states.subspan(at, n), of{data.states.data() + at, n};
      const std::span<const double> sigma =
          data.sigma.empty() ? std::span<const double>() : std::span(data.sigma).subspan(at, n);
      sums.add(point == 0 ? std::span<const double>(nothing) : found, of, sigma);
      for (std::size_t c = 0; c < n && point > 0; ++c) {
        reached = reached && std::isfinite(found[c]);
        const double error = (found[c] - of[c]) / spreads[c];
        if (!std::isfinite(error)) continue;
        squares += error * error;
        ++count;
      }
    }
    result.trajectories.push_back(reached ? std::sqrt(squares / static_cast<double>(std::max<std::size_t>(count, 1)))
                                          : std::numeric_limits<double>::infinity());
  }
  result.components = sums.errors(spreads);
  if (!thresholds.empty()) add_outliers(data, states, thresholds, result);
  return result;
}

}  // namespace lockstep::ode
