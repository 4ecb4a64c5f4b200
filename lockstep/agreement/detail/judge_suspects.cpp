#include "lockstep/agreement/detail/judge_suspects.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "lockstep/agreement/detail/accepted_steps.h"
#include "lockstep/agreement/detail/own_members.h"
#include "lockstep/core/error.h"

namespace lockstep::agreement {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

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

struct Judgement {
  std::optional<Departure> outlier, damaged;
  double ratio = 0,
         allowed = 0;  // of its distance to the farthest of its members, where it comes nearest to what it may
  double share() const { return ratio > 0 ? ratio / allowed : 0; }
};

// Looks at all times when the members are still close together.
Judgement judge_suspect(const Suspect& suspect, const Spread& spread, const Evidence& evidence, Settings::Of of,
                        std::size_t trajectories) {
  const Certificate& own = suspect.own;
  Judgement result;
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
    if (of == Settings::Of::a && ratio_of(off) > allowed && !result.damaged)
      result.damaged = Departure{suspect.trajectory, k, off, allowed * members};
    const double distance = distance_of(suspect.a.data() + at, suspect.b.data() + at, evidence.scale);
    const double ratio = ratio_of(distance);
    if (ratio == 0 || std::isinf(allowed) || ratio / allowed <= result.share()) continue;
    result.ratio = ratio, result.allowed = allowed;
    if (ratio > allowed) result.outlier = Departure{suspect.trajectory, k, distance, allowed * members};
  }
  return result;
}

// Whether these states of the suspect are such as accepted steps lead to, though not those of its members.
bool has_accepted_steps(const Suspect& suspect, const std::vector<double>& states, const Settings& settings,
                        const Evidence& evidence, std::size_t trajectories) {
  if (!settings.solved_by) return false;
  try {
    const Settings::OwnProblem own = settings.solved_by(suspect.trajectory);
    return is_by_accepted_steps(own.problem, own.options, states, evidence.scale, evidence.spread, trajectories,
                                own.control);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::cancelled) throw;
    return false;
  }
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
    const Judgement one = judge_suspect(suspect, spread, evidence, found->of, a.trajectories());
    const auto explained = [&](const std::vector<double>& states) {
      return has_accepted_steps(suspect, states, settings, evidence, a.trajectories());
    };
    // Nothing is asked where the verdict stands without an answer.
    const bool open = !outlier && tier.worst_ratio <= kAllowedRatio;
    // Where a's is not what a's problem gives (members of a), its distance from b's says nothing of b.
    if (one.damaged && !tier.damaged && !explained(suspect.a)) tier.damaged = one.damaged;
    if (tier.damaged && tier.damaged->trajectory == i) continue;
    if (one.share() <= worst_share) continue;
    if (one.outlier && open && explained(suspect.b)) {
      tier.by_accepted_steps.push_back(i);
      continue;
    }
    worst_share = one.share(), tier.worst_alone = one.ratio, tier.allowed_alone = one.allowed;
    if (one.outlier) outlier = one.outlier;
  }
  // Their own growth is better known than what the ensemble's allows any: near a saddle a trajectory's may be beyond
  // it.
  tier.outlier = outlier ? outlier : first_outlier(evidence, suspects);
}

}  // namespace lockstep::agreement
