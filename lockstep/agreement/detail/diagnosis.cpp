#include "lockstep/agreement/detail/diagnosis.h"

#include <algorithm>
#include <cmath>

namespace lockstep::agreement {
namespace {

// Distance of two states, infinite if not finite.
double distance(const double* x, const double* y, const Scale& scale) {
  double largest = 0;
  for (std::size_t c = 0; c < scale.components(); ++c) {
    const double d = std::abs(x[c] - y[c]) / scale.size[c];
    if (!std::isfinite(d)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, d);
  }
  return largest;
}

}  // namespace

std::vector<std::string> diagnose(const Ensemble& a, const Ensemble& b, const Evidence& evidence) {
  std::vector<std::string> found;
  const Difference& difference = evidence.difference;
  if (a.precision() == Precision::f64 && b.precision() == Precision::f64 &&
      difference.a_is_float32 != difference.b_is_float32) {
    const Ensemble& narrow = difference.a_is_float32 ? a : b;
    found.push_back("Every number of " + narrow.name() + " is a float32, though it claims float64.");
  }
  if (difference.first.empty() || !found.empty()) return found;
  const Departure& departure = difference.first.front();
  const std::size_t i = departure.trajectory;
  const std::size_t components = evidence.scale.components();
  const std::size_t k = departure.time;
  const std::vector<double> row_a = a.states(i, 1);
  const std::vector<double> row_b = b.states(i, 1);
  const double* there = row_b.data() + k * components;
  for (const std::ptrdiff_t shift : {1, -1}) {
    const std::ptrdiff_t other = static_cast<std::ptrdiff_t>(k) + shift;
    if (other < 0 || other >= static_cast<std::ptrdiff_t>(a.save_points())) continue;
    if (distance(there, row_a.data() + static_cast<std::size_t>(other) * components, evidence.scale) <=
        departure.allowed) {
      found.push_back(b.name() + " has at save point " + std::to_string(k) + " of trajectory " + std::to_string(i) +
                      " what " + a.name() + " has at save point " + std::to_string(other) + ".");
      return found;
    }
    const std::ptrdiff_t neighbour = static_cast<std::ptrdiff_t>(i) + shift;
    if (neighbour < 0 || neighbour >= static_cast<std::ptrdiff_t>(a.trajectories())) continue;
    const std::vector<double> row = a.states(static_cast<std::size_t>(neighbour), 1);
    if (distance(there, row.data() + k * components, evidence.scale) <= departure.allowed) {
      found.push_back("Trajectory " + std::to_string(i) + " of " + b.name() + " is trajectory " +
                      std::to_string(neighbour) + " of " + a.name() + ".");
      return found;
    }
  }
  return found;
}

}  // namespace lockstep::agreement
