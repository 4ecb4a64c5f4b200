// S(t): how far apart rounding alone may have driven two right solutions of one problem by time t.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/agreement/certificate.h"
#include "lockstep/agreement/ensemble.h"
#include "lockstep/agreement/scale.h"

namespace lockstep::agreement {

// Distances are compared as distributions over trajectories: half of all, nine in ten of all, and the tail, where a
// sample of 64 speaks for itself alone and is compared with the same trajectories' members.
inline constexpr std::size_t kLevels = 3;
inline constexpr std::size_t kMedian = 0;
inline constexpr std::size_t kMost = 1;
inline constexpr std::size_t kTail = 2;
// Of the distance. Where adaptive steps let a few trajectories take another decision, they are left to
// Spread::farthest: the tail is then the 95 % quantile.
inline constexpr std::array<double, kLevels> kDistanceQuantile{0.5, 0.9, 0.999};
inline constexpr double kAdaptiveTail = 0.95;
// Spreads below this part of the attractor's size are decisive: later, everything is far from everything. A mode that
// rounds factors leaves more from the first step on; ten times as much is still small beside the size.
inline constexpr double kDecisive = 1e-3;
inline constexpr double kDecisiveOfRoundedNets = 1e-2;
// Of the spread: a little higher, for it is known from few trajectories.
inline constexpr std::array<double, kLevels> kSpreadQuantile{0.5, 0.95, 1};

// The distance of two states is the largest over components of |b - a| / size.
struct Spread {
  // [time]: the quantiles kSpreadQuantile; infinity where a level is not known.
  std::vector<std::array<double, kLevels>> at;
  // [time]: no trajectory of a right solution is farther away than this; infinity where nothing is known.
  std::vector<double> farthest;
  // [time]: in octaves, of the members' distances and of their growth since the save point before (detail/suspects.h).
  // Empty where the spread is not that of members.
  std::vector<double> deviation, jump_deviation;
  // With adaptive steps: how far, as a multiple of rounding, a step leads that only one of two solvers accepts. Else 0.
  double another_step = 0;
  std::optional<double> growth_rate;  // of ln(median) per unit of time, where it grows by more than e^3
  double epsilon = 0;                 // 2^-52 or 2^-23: of the precision claimed
  // Of the certificate's members: other than f32, their nets are rounded as in that mode of tensor cores.
  MatrixPrecision matrix_precision = MatrixPrecision::f32;
  double decisive() const { return matrix_precision == MatrixPrecision::f32 ? kDecisive : kDecisiveOfRoundedNets; }
  std::vector<std::size_t> trajectories;  // the certified ones, ascending
  bool adaptive = false;                  // the steps answer to rounding
  std::string source;                     // in words, for the verdict
};

// From perturbed members against the unperturbed solution in `reference`. `claimed` is the coarser of the two
// precisions under comparison: spreads of a finer certificate are scaled up, tangent dynamics being linear.
// Every distance is at least the certificate's ulps of the largest magnitude that the component had by then: members
// that agree to the bit (where the flow contracts) do not oblige another summation order to do so. A step rounds its
// sum by up to eps |y| / 2, and what contracts by a factor q < 1 a step carries (eps / 2) sum of q^j |y(t - j h)|
// along: a multiple of eps max |y(s)|, s <= t, and not of |y(t)|, which may pass through zero.
Spread spread_of(const Certificate& certificate, const Ensemble& reference, const Scale& scale, Precision claimed);

// Without members: the median of 4 ulps growing as exp(lyapunov t). The higher quantiles are then unknown, because
// growth rates differ between trajectories.
Spread spread_by_exponent(double lyapunov, const Ensemble& reference, const Scale& scale, Precision claimed);

double epsilon_of(Precision precision);

// |t - start| of the first trajectory's save points: the time axis of all that follows. [time]
std::vector<double> elapsed_times(const Ensemble& ensemble);

}  // namespace lockstep::agreement
