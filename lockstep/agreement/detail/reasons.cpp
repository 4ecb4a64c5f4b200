#include "lockstep/agreement/detail/reasons.h"

#include <algorithm>
#include <cmath>

#include "lockstep/agreement/detail/rounded_nets.h"
#include "lockstep/agreement/detail/text.h"

namespace lockstep::agreement {
namespace {

const char* level_text(std::size_t level) {
  constexpr const char* kTexts[] = {"the median trajectory", "one trajectory in ten", "the certified trajectories"};
  return kTexts[level];
}

}  // namespace

std::string rounding_text(const Evidence& evidence) {
  const MatrixPrecision mode = evidence.spread.matrix_precision;
  return mode == MatrixPrecision::f32 ? "rounding" : name_of(mode) + "'s rounding";
}

std::string spread_reason(const Evidence& evidence) {
  const SpreadTier& tier = evidence.spread_tier;
  std::string text = "While " + rounding_text(evidence) + " alone explains less than " +
                     number(100 * evidence.spread.decisive()) + " % of the solution's size (until " +
                     moment_text(tier.decisive_until, evidence.is_time) + "), ";
  if (tier.worst_ratio <= kAllowedRatio) {
    return text + "the difference is at most " + number(tier.worst_ratio) +
           " times the ensemble's own spread, where 10 is allowed; the spread is that of " + evidence.spread.source +
           ".";
  }
  return text + "the difference of " + level_text(tier.worst_level) + " reaches " + number(tier.worst_ratio) +
         " times the ensemble's own spread (" + at_moment(evidence.times[tier.worst_time], evidence.is_time) +
         "), where 10 is allowed; the spread is that of " + evidence.spread.source + ".";
}

std::string outlier_reason(const Evidence& evidence) {
  const Departure& outlier = *evidence.spread_tier.outlier;
  return "Trajectory " + std::to_string(outlier.trajectory) + " is " +
         (std::isinf(outlier.distance) ? "finite in one solution and not in the other"
                                       : number(outlier.distance) + " of the solution's size away") +
         " " + at_moment(evidence.times[outlier.time], evidence.is_time) +
         (std::isinf(outlier.allowed)
              ? ", and both say that it came to the same end"
              : ", where " + rounding_text(evidence) + " takes no trajectory farther than " + number(outlier.allowed)) +
         (evidence.spread_tier.worst_alone > evidence.spread_tier.allowed_alone
              ? " (" + number(evidence.spread_tier.allowed_alone) + " times its own perturbed members)."
              : ".");
}

std::string accepted_steps_reason(const SpreadTier& tier) {
  const std::vector<std::size_t>& all = tier.by_accepted_steps;
  const bool one = all.size() == 1;
  return (one ? "Trajectory " + std::to_string(all.front()) + " is"
              : trajectories_text(all.size()) + " (the first " + std::to_string(all.front()) + ") are") +
         " farther out than perturbed members: " + (one ? "it goes" : "each goes") +
         " as a step leads that the step control accepts by accident, in one solution and not in the other.";
}

std::string reference_reason(const Ensemble& a, const Evidence& evidence) {
  const SpreadTier& tier = evidence.spread_tier;
  if (tier.damaged) {
    const Departure& damaged = *tier.damaged;
    return "Solved again, the problem in " + a.name() + " gives other numbers for its trajectory " +
           std::to_string(damaged.trajectory) + ": " + number(damaged.distance) + " of the solution's size away " +
           at_moment(evidence.times[damaged.time], evidence.is_time) + ", where " + rounding_text(evidence) +
           " takes it no farther than " + number(damaged.allowed) +
           ". The file is damaged, or was changed since it was solved.";
  }
  return "Solved again, the problem in " + a.name() + " gives other bits than the file holds (trajectory " +
         std::to_string(*tier.other_bits) +
         "), though none that rounding does not explain while it is small: another build or version made it, or it is "
         "damaged where trajectories have parted.";
}

std::string not_examined_reason(const SpreadTier& tier) {
  return "The trajectories that lie farthest out were not solved again (" + tier.not_examined +
         "): a mistake in a single trajectory is found only where it goes farther than any trajectory of the ensemble "
         "could.";
}

std::string divergence_reason(const Evidence& evidence) {
  const DivergenceTier& tier = evidence.divergence_tier;
  const double growth_rate = *evidence.spread.growth_rate;
  const std::string prediction = "Divergence is predicted for " + moment_text(tier.predicted, evidence.is_time) +
                                 " (growth rate " + number(growth_rate) + ")";
  if (std::isinf(tier.observed)) return prediction + " and does not come within the record.";
  return prediction + " and comes " + at_moment(tier.observed, evidence.is_time) +
         (tier.passed() ? ", not before " : ", earlier than the ") + number(tier.limit) +
         (tier.passed() ? "." : " that 30 % leave.");
}

std::string statistics_reason(const Statistics& statistics) {
  double z = 0;
  double wasserstein = 0;
  for (const ComponentStatistics& c : statistics.components) {
    z = std::max({z, std::abs(c.mean_z), std::abs(c.variance_z)});
    wasserstein = std::max(wasserstein, c.wasserstein_z);
  }
  return std::string("After the trajectories have parted, the statistics of the attractor ") +
         (statistics.agree() ? "agree" : "differ") + ": means and mean squares within " + number(z) +
         " standard errors (" + number(statistics.z_limit) + " allowed), distributions within " + number(wasserstein) +
         " standard deviations of chance (" + number(statistics.wasserstein_limit) + " allowed).";
}

std::string finite_reason(const Ensemble& a, const Ensemble& b, const Difference& difference) {
  std::size_t one_finite = 0;
  for (const TimeDifference& at : difference.at) one_finite = std::max(one_finite, at.one_finite);
  std::string text;
  const auto add = [&](std::size_t count, const char* what) {
    if (count > 0) text += (text.empty() ? "" : "; ") + trajectories_text(count) + what;
  };
  const std::string unfinished =
      " left out, not finished in " + (difference.unfinished_b == 0   ? a.name()
                                       : difference.unfinished_a == 0 ? b.name()
                                                                      : "one solution or both");
  add(difference.left_out, unfinished.c_str());
  const std::string where = " with NaN or infinite numbers (" + std::to_string(difference.not_finite_a) + " in " +
                            a.name() + ", " + std::to_string(difference.not_finite_b) + " in " + b.name() + ")";
  add(difference.not_finite, where.c_str());
  add(one_finite, " finite at a time in one solution only");
  add(difference.statuses, " ended with another status");
  if (!text.empty()) text += ".";
  const EndDifference& ends = difference.ends;
  if (ends.by_event > 0) {
    text +=
        (text.empty() ? "" : " ") + std::string("An event ended ") + trajectories_text(ends.by_event) + " elsewhere";
    if (ends.time > 0) {
      text +=
          ", by " + number(ends.time) + " of time at most (trajectory " + std::to_string(ends.time_trajectory) + ")";
    }
    if (ends.distance > 0) {
      text += ", by " + number(ends.distance) + " of the solution's size at most (trajectory " +
              std::to_string(ends.distance_trajectory) + ")";
    }
    text += "; how much of that rounding explains is not judged.";
  }
  return text;
}

std::string distance_reason(const Evidence& evidence) {
  const Difference& difference = evidence.difference;
  if (difference.different == 0) return "All their states are the same, to the bit.";
  double typical = 0;
  std::size_t typical_time = 0;
  double farthest = 0;
  std::size_t farthest_time = 0;
  for (std::size_t k = 0; k < difference.at.size(); ++k) {
    const TimeDifference& at = difference.at[k];
    if (at.compared == 0) continue;
    if (at.quantile[kMedian] > typical) typical = at.quantile[kMedian], typical_time = k;
    if (at.largest > farthest) farthest = at.largest, farthest_time = k;
  }
  const std::string trajectory = "trajectory " + std::to_string(difference.at[farthest_time].largest_trajectory) +
                                 (evidence.is_time ? " " : ", ") +
                                 at_moment(evidence.times[farthest_time], evidence.is_time);
  if (std::isinf(farthest)) return "They are farthest apart in " + trajectory + ", where one of them is not finite.";
  return "In units of the solution's size, the median trajectory comes to be " + number(typical) + " away (" +
         at_moment(evidence.times[typical_time], evidence.is_time) + ") and the farthest " + number(farthest) + " (" +
         trajectory + ").";
}

}  // namespace lockstep::agreement
