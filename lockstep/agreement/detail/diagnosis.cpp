#include "lockstep/agreement/detail/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <optional>

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

// What is claimed must fit so many times better than what should be there. Trajectories that are alike anyway (they
// start at one state, or come to one) fit each other about as well as themselves.
constexpr double kClearlyBetter = 100;
constexpr std::ptrdiff_t kNeighbours = 8;     // on either side, where a second likeness makes a claim ambiguous
constexpr std::ptrdiff_t kShiftedPoints = 4;  // save points that must be shifted alike

// One trajectory in both solutions.
struct Rows {
  const Evidence& evidence;
  std::vector<double> a, b;  // [time][component]

  const Scale& scale() const { return evidence.scale; }
  std::ptrdiff_t points() const { return std::ssize(evidence.times); }
  const double* of_a(std::size_t k) const { return a.data() + k * scale().components(); }
  const double* of_b(std::size_t k) const { return b.data() + k * scale().components(); }
  // How far two solutions of one trajectory may be apart, as in difference.cpp.
  double allowed(std::size_t k) const { return std::min(10 * evidence.spread.at[k][kTail], kDiverged); }
  // Whether b's state k may be `state` but for rounding, and whether that is no likeness of trajectories or times.
  bool is(std::size_t k, const double* state) const { return distance(of_b(k), state, scale()) <= allowed(k); }
  bool is_clearly(std::size_t k, const double* state) const {
    return is(k, state) && kClearlyBetter * distance(of_b(k), state, scale()) < distance(of_b(k), of_a(k), scale());
  }
};

// By how many save points b is ahead of a from the departure on, at each of the next few.
std::optional<std::ptrdiff_t> shift_of(const Rows& rows, const Departure& departure) {
  const auto first = static_cast<std::ptrdiff_t>(departure.time);
  for (const std::ptrdiff_t shift : {1, -1}) {
    const std::ptrdiff_t end = std::min({first + kShiftedPoints, rows.points(), rows.points() - shift});
    bool shifted = first + shift >= 0 && first < end;
    for (std::ptrdiff_t k = first; shifted && k < end; ++k) {
      shifted = rows.is_clearly(static_cast<std::size_t>(k), rows.of_a(static_cast<std::size_t>(k + shift)));
    }
    if (shifted) return shift;
  }
  return std::nullopt;
}

// The neighbour in a that b's trajectory is, from the start to the departure, where no other nearby is like it.
std::optional<std::size_t> trajectory_of(const Ensemble& a, const Rows& rows, const Departure& departure) {
  const auto i = static_cast<std::ptrdiff_t>(departure.trajectory);
  const std::ptrdiff_t first = std::max<std::ptrdiff_t>(i - kNeighbours, 0);
  const std::ptrdiff_t end = std::min(i + kNeighbours + 1, static_cast<std::ptrdiff_t>(a.trajectories()));
  const std::vector<double> nearby = a.states(static_cast<std::size_t>(first), static_cast<std::size_t>(end - first));
  std::optional<std::size_t> found;
  for (std::ptrdiff_t other = first; other < end; ++other) {
    const double* states = nearby.data() + static_cast<std::size_t>(other - first) * rows.a.size();
    const auto at = [&](std::size_t k) { return states + k * rows.scale().components(); };
    if (other == i || !rows.is(departure.time, at(departure.time))) continue;
    bool is = !found && rows.is_clearly(departure.time, at(departure.time));
    for (std::size_t k = 0; is && k < departure.time; ++k) is = rows.is(k, at(k));
    if (!is) return std::nullopt;
    found = static_cast<std::size_t>(other);
  }
  return found;
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
  if (!std::isfinite(departure.distance)) return found;
  const std::size_t i = departure.trajectory;
  const Rows rows{evidence, a.states(i, 1), b.states(i, 1)};
  if (const auto shift = shift_of(rows, departure)) {
    found.push_back(b.name() + " has at save point " + std::to_string(departure.time) + " of trajectory " +
                    std::to_string(i) + " what " + a.name() + " has at save point " +
                    std::to_string(static_cast<std::ptrdiff_t>(departure.time) + *shift) + ".");
  } else if (const auto other = trajectory_of(a, rows, departure)) {
    found.push_back("Trajectory " + std::to_string(i) + " of " + b.name() + " is trajectory " + std::to_string(*other) +
                    " of " + a.name() + ".");
  }
  return found;
}

}  // namespace lockstep::agreement
