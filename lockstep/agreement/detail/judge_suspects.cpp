#include "lockstep/agreement/detail/judge_suspects.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "lockstep/agreement/detail/own_members.h"
#include "lockstep/core/error.h"

namespace lockstep::agreement {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// One trajectory's distances at a save point, in units of the solution's size: over components finite in both.
double distance_of(const double* x, const double* y, const Scale& scale) {
  double distance = 0;
  for (std::size_t c = 0; c < scale.components(); ++c) {
    const double one = std::abs(y[c] - x[c]) / scale.size[c];
    if (one > distance && std::isfinite(one)) distance = one;
  }
  return distance;
}

// The members of one of the certificate's trajectories.
Certificate alone(const Certificate& all, std::size_t sample, std::vector<double> base) {
  Certificate own = all;
  own.trajectories = {all.trajectories[sample]};
  own.states.clear();
  const std::size_t row = own.save_points * own.components;
  for (std::size_t m = 0; m < own.members; ++m) {
    own.states.insert(own.states.end(), all.states_of(m, sample), all.states_of(m, sample) + row);
  }
  if (!all.base.empty()) {
    const auto begin = all.base.begin() + static_cast<std::ptrdiff_t>(sample * row);
    base.assign(begin, begin + static_cast<std::ptrdiff_t>(row));
  }
  own.base = std::move(base);
  return own;
}

// One trajectory of both solutions, against members of its own.
struct Suspect {
  std::size_t trajectory;
  Certificate own;
  std::vector<double> a, b;  // [time][component]
};

// Looks at all times when the members are still close together. Where a's is not what a's problem gives (members `of`
// a), its distance from b's says nothing of b.
std::optional<Departure> judge_suspect(const Suspect& suspect, const Spread& spread, const Evidence& evidence,
                                       Settings::Of of, std::size_t trajectories, double& worst_share,
                                       SpreadTier& tier) {
  const Certificate& own = suspect.own;
  std::optional<Departure> outlier, damaged;
  double share_here = worst_share, ratio_here = 0, allowed_here = 0;
  for (std::size_t k = 0; k < own.save_points; ++k) {
    const double members = spread.at[k][kTail];
    if (!(members < spread.decisive())) continue;
    const std::size_t at = k * own.components;
    const double* const base = own.base.data() + at;
    std::vector<double> of_members;
    for (std::size_t m = 0; m < own.members; ++m)
      of_members.push_back(distance_of(own.states_of(m, 0) + at, base, evidence.scale));
    const double allowed = std::max(allowed_alone(witnesses(of_members), trajectories), evidence.spread.another_step);
    const auto ratio_of = [&](double distance) {
      return members > 0 ? distance / members : distance > 0 ? kUnbounded : 0;
    };
    const double off = distance_of(base, suspect.a.data() + at, evidence.scale);
    if (of == Settings::Of::a && ratio_of(off) > allowed && !damaged)
      damaged = Departure{suspect.trajectory, k, off, allowed * members};
    const double distance = distance_of(suspect.a.data() + at, suspect.b.data() + at, evidence.scale);
    const double ratio = ratio_of(distance);
    if (ratio == 0 || std::isinf(allowed) || ratio / allowed <= share_here) continue;
    share_here = ratio / allowed, ratio_here = ratio, allowed_here = allowed;
    if (ratio > allowed) outlier = Departure{suspect.trajectory, k, distance, allowed * members};
  }
  if (damaged) {
    if (!tier.damaged) tier.damaged = damaged;
    return std::nullopt;
  }
  if (share_here > worst_share)
    worst_share = share_here, tier.worst_alone = ratio_here, tier.allowed_alone = allowed_here;
  return outlier;
}

}  // namespace

std::optional<Departure> first_outlier(const Evidence& evidence, const std::vector<std::size_t>& cleared) {
  const auto& at = evidence.difference.at;
  for (std::size_t k = 0; k < at.size(); ++k) {
    const double farthest = evidence.spread.farthest[k];
    if (at[k].compared == 0 || !(at[k].largest > farthest)) continue;
    if (std::isfinite(at[k].largest) && std::ranges::binary_search(cleared, at[k].largest_trajectory)) continue;
    return Departure{at[k].largest_trajectory, k, at[k].largest, farthest};
  }
  return evidence.difference.one_sided;
}

void judge_alone(const Ensemble& a, const Ensemble& b, const Settings& settings, Precision claimed,
                 Evidence& evidence) {
  const std::vector<std::size_t>& suspects = evidence.difference.suspects;
  SpreadTier& tier = evidence.spread_tier;
  if (suspects.empty()) return;
  if (!settings.examine) {
    tier.not_examined = settings.not_examined;
    return;
  }
  std::optional<Settings::Examined> found;
  try {
    found = settings.examine(suspects);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::cancelled) throw;
    tier.not_examined = Error(error.kind(), {error.field(), error.found(), error.expected(), {}}).what();
    return;
  }
  const Certificate& members = found->members;
  if (members.trajectories != suspects || members.save_points != a.save_points()) {
    tier.not_examined = "members of other trajectories or times came back";
    return;
  }
  if (found->of == Settings::Of::a) tier.other_bits = members.other_bits;
  double worst_share = 0;
  std::optional<Departure> outlier;
  for (std::size_t s = 0; s < suspects.size(); ++s) {
    const std::size_t i = suspects[s];
    Suspect suspect{i, {}, a.states(i, 1), b.states(i, 1)};
    suspect.own = alone(members, s, suspect.a);
    const Spread spread = spread_of(suspect.own, a, evidence.scale, claimed);
    ++tier.examined;
    const auto one = judge_suspect(suspect, spread, evidence, found->of, a.trajectories(), worst_share, tier);
    if (one) outlier = one;
  }
  // Their own growth is better known than what the ensemble's allows any: near a saddle a trajectory's may be beyond
  // it.
  tier.outlier = outlier ? outlier : first_outlier(evidence, suspects);
}

}  // namespace lockstep::agreement
