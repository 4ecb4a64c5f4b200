// How far a port may take a single trajectory, judged by perturbed members of that trajectory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <vector>

#include "lockstep/agreement/scale.h"

namespace lockstep::agreement {

// Of two states, in units of the solution's size: over components finite in both.
inline double distance_of(const double* x, const double* y, const Scale& scale) {
  double distance = 0;
  for (std::size_t c = 0; c < scale.components(); ++c) {
    const double one = std::abs(y[c] - x[c]) / scale.size[c];
    if (one > distance && std::isfinite(one)) distance = one;
  }
  return distance;
}

// How many of the members' distances tell something: those that differ from each other and from zero. Members are
// solved by one arithmetic, so that two which a contracting flow brings to the same numbers stay together for ever, and
// are one witness from then on; one that meets the unperturbed solution is none. Mirrored ones, +v and -v, are one too.
inline std::size_t witnesses(std::vector<double> distances) {
  std::erase(distances, 0.0);
  std::ranges::sort(distances);
  return static_cast<std::size_t>(std::unique(distances.begin(), distances.end()) - distances.begin());
}

// The ratio of a trajectory's distance to the farthest of its own members that no right port reaches. Differences grown
// from rounding are sums of many small errors: normal, with n members of one variance. As P(max |g_m| < x) is at most
// (x sqrt(2/pi))^n, the ratio exceeds r with probability (2/pi)^(n/2) E|g|^n / r^n at most. The bound is three times
// (a port that rounds three times as much) the r at which that is what eight members and 100/3 give, 1.1e-11; in
// ensembles of more than 10,000 so much less as there are more. More than eight members make it no smaller than eight.
inline double allowed_alone(std::size_t witnesses, std::size_t trajectories) {
  constexpr double kLeast = 100, kRougher = 3, kMany = 10'000;
  if (witnesses == 0) return std::numeric_limits<double>::infinity();
  const auto factor = [](double n) {  // (2/pi)^(n/2) E|g|^n, with E|g|^n = 2^(n/2) Gamma((n+1)/2) / sqrt(pi)
    return std::pow(4 / std::numbers::pi, n / 2) * std::tgamma((n + 1) / 2) * std::numbers::inv_sqrtpi;
  };
  const double probability =
      factor(8) / std::pow(kLeast / kRougher, 8.0) / std::max(1.0, static_cast<double>(trajectories) / kMany);
  const double n = static_cast<double>(std::min<std::size_t>(witnesses, 8));
  return kRougher * std::pow(factor(n) / probability, 1 / n);
}

}  // namespace lockstep::agreement
