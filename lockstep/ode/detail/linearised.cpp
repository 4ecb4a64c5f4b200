#include "lockstep/ode/detail/linearised.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace lockstep::ode::detail {
namespace {

// The largest part of it 1, relative to the parameter's value.
std::vector<double> change_along(const SingularValues& found, std::size_t direction, std::span<const double> effects,
                                 std::span<const double> values) {
  std::vector<double> change(effects.size());
  double largest = 0;
  for (std::size_t i = 0; i < change.size(); ++i) {
    const double size = values[i] == 0 ? 1 : std::abs(values[i]);
    change[i] = found.right.at(i, direction) / effects[i];
    if (std::abs(change[i] / size) > std::abs(largest)) largest = change[i] / size;
  }
  for (double& each : change) each /= largest;
  return change;
}

}  // namespace

Linearised linearise(const Rows& all, std::span<const double> effects, std::span<const std::size_t> kept,
                     std::span<const double> values, double smallest) {
  constexpr double kMostOfNullSpace = 1e-3;
  const std::size_t count = kept.size();
  Rows rows{count + 1};
  for (std::size_t i = 0; i < all.count(); ++i) {
    for (const std::size_t column : kept) rows.numbers.push_back(all.at(i, column));
    rows.numbers.push_back(all.at(i, all.columns - 1));
  }
  reduce(rows);
  // In units of each parameter's own effect: where what is free takes up all of it, nothing is left.
  Rows triangle{count, std::vector<double>(count * count)};
  std::vector<double> effect(count), residual(count), value(count);
  for (std::size_t j = 0; j < count; ++j) {
    effect[j] = effects[kept[j]] == 0 ? 1 : effects[kept[j]];
    value[j] = values[kept[j]];
  }
  for (std::size_t i = 0; i < std::min(count, rows.count()); ++i) {
    residual[i] = rows.at(i, count);
    for (std::size_t j = 0; j < count; ++j) triangle.at(i, j) = rows.at(i, j) / effect[j];
  }
  const SingularValues found = singular_values(std::move(triangle));
  Linearised result;
  while (result.rank < count && found.values[result.rank] > smallest * std::max(1.0, found.values[0])) ++result.rank;
  for (std::size_t k = result.rank; k < count; ++k) {
    result.undetermined.push_back(change_along(found, k, effect, value));
  }
  const double noise = result.rank == 0 ? 0 : smallest * std::max(1.0, found.values[0]) / found.values[result.rank - 1];
  std::vector<bool> determined(count);
  for (std::size_t i = 0; i < count; ++i) {
    double square = 0;
    for (std::size_t k = result.rank; k < count; ++k) square += found.right.at(i, k) * found.right.at(i, k);
    determined[i] = std::sqrt(square) <= std::min(noise, kMostOfNullSpace);
  }

  std::vector<double> step(count), covariance(count * count);
  for (std::size_t k = 0; k < result.rank; ++k) {
    const double square = found.values[k] * found.values[k];
    double projection = 0;
    for (std::size_t i = 0; i < count; ++i) projection += found.left.at(i, k) * residual[i];
    for (std::size_t i = 0; i < count; ++i) {
      step[i] += found.right.at(i, k) * projection / square;
      for (std::size_t j = 0; j < count; ++j) {
        covariance[i * count + j] += found.right.at(i, k) * found.right.at(j, k) / square;
      }
    }
  }
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i = 0; i < count; ++i) {
    const double in_effects = std::sqrt(covariance[i * count + i]);
    result.errors.push_back(determined[i] ? in_effects / effect[i] : nothing);
    result.step.push_back(determined[i] ? step[i] / effect[i] : nothing);
    for (std::size_t j = 0; j < count; ++j) {
      const double both = in_effects * std::sqrt(covariance[j * count + j]);
      const double correlation = i == j ? 1 : covariance[i * count + j] / both;
      result.correlations.push_back(determined[i] && determined[j] ? correlation : nothing);
    }
  }
  return result;
}

}  // namespace lockstep::ode::detail
