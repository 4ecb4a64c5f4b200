#include "lockstep/agreement/verdict.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "lockstep/agreement/detail/diagnosis.h"
#include "lockstep/agreement/detail/judge_suspects.h"
#include "lockstep/agreement/detail/reasons.h"
#include "lockstep/agreement/detail/rounded_nets.h"
#include "lockstep/agreement/detail/text.h"
#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"

namespace lockstep::agreement {
namespace {

constexpr std::size_t kMostReasons = 5;
constexpr double kNoBound = std::numeric_limits<double>::infinity();

SpreadTier judge_spread(const Evidence& evidence) {
  SpreadTier tier;
  const auto& at = evidence.difference.at;
  for (std::size_t k = 0; k < at.size(); ++k) {
    if (at[k].compared == 0) continue;
    const auto& spread = evidence.spread.at[k];
    if (spread[kMedian] < evidence.spread.decisive() && evidence.times[k] > 0) {
      ++tier.decisive_times;
      tier.decisive_until = std::max(tier.decisive_until, evidence.times[k]);
    }
    for (std::size_t level = 0; level < kLevels; ++level) {
      if (!(spread[level] < evidence.spread.decisive())) continue;
      const double distance = at[k].quantile[level];
      const double ratio = distance == 0 ? 0 : spread[level] > 0 ? distance / spread[level] : kNoBound;
      if (ratio > tier.worst_ratio) {
        tier.worst_ratio = ratio;
        tier.worst_level = level;
        tier.worst_time = k;
      }
    }
  }
  tier.outlier = first_outlier(evidence, {});
  return tier;
}

DivergenceTier judge_divergence(const Evidence& evidence) {
  DivergenceTier tier;
  tier.observed = evidence.difference.median_divergence(evidence.times);
  if (!evidence.spread.growth_rate) return tier;
  const double rounding = evidence.spread.epsilon * evidence.scale.typical_magnitude();
  tier.predicted = std::log(kDiverged / rounding) / *evidence.spread.growth_rate;
  tier.limit = (1 - kAllowedEarliness) * tier.predicted;
  return tier;
}

Verdict undecided(Verdict verdict, const std::string& why, const std::string& remedy) {
  verdict.outcome = Outcome::undecided;
  verdict.sentence = "No verdict: " + why + ".";
  if (!remedy.empty()) verdict.reasons.push_back(remedy);
  return verdict;
}

// The first field that forbids a verdict, in words.
std::string forbidding_text(const std::vector<FieldDifference>& fields) {
  const FieldDifference& first = fields.front();
  const bool several = first.field.ends_with('s') && first.field != "rhs";
  return first.field + (several ? " differ, " : " differs, ") + first.a + " and " + first.b;
}

Verdict not_comparable(const Ensemble& a, const Ensemble& b, Verdict verdict) {
  const std::string why = a.name() + " and " + b.name() +
                          " are not solutions of one problem by one method: " + forbidding_text(verdict.fields);
  return undecided(std::move(verdict), why, "Compare solutions of one problem, by one method, at the same times.");
}

Verdict not_by_one_method(const Ensemble& a, const Ensemble& b, Verdict verdict) {
  verdict.reasons.push_back(distance_reason(*verdict.evidence));
  const std::string finite = finite_reason(a, b, verdict.evidence->difference);
  if (!finite.empty()) verdict.reasons.push_back(finite);
  const std::string why = a.name() + " and " + b.name() + " are of one problem, but not solved alike (" +
                          forbidding_text(verdict.fields) + "), so that rounding is no measure of their distance";
  return undecided(std::move(verdict), why,
                   "For a verdict solve both by one method, with the same step control and tolerances.");
}

void conclude(const Ensemble& a, const Ensemble& b, Verdict& verdict) {
  const Evidence& evidence = *verdict.evidence;
  const SpreadTier& spread = evidence.spread_tier;
  const Statistics& statistics = evidence.difference.statistics;
  const bool statistics_pass = !statistics.asked() || statistics.agree();
  const bool agree = spread.passed() && evidence.divergence_tier.passed() && statistics_pass;
  verdict.outcome = agree ? Outcome::agree : Outcome::disagree;
  if (agree) {
    verdict.sentence = b.name() + " agrees with " + a.name() + ": they differ by no more than " +
                       rounding_text(evidence) + " explains" +
                       (spread.not_examined.empty() ? "." : " (the farthest trajectories were not examined singly).");
  } else if (spread.worst_ratio > kAllowedRatio) {
    verdict.sentence = b.name() + " does not agree with " + a.name() + ": " +
                       at_moment(evidence.times[spread.worst_time], evidence.is_time) + " they differ by " +
                       number(spread.worst_ratio) + " times what " + rounding_text(evidence) + " explains.";
  } else if (spread.outlier) {
    verdict.sentence = b.name() + " does not agree with " + a.name() + ": trajectory " +
                       std::to_string(spread.outlier->trajectory) + " goes where " + rounding_text(evidence) +
                       " cannot have taken it.";
  } else if (!evidence.divergence_tier.passed()) {
    verdict.sentence = b.name() + " does not agree with " + a.name() + ": their trajectories part too early.";
  } else {
    verdict.sentence = b.name() + " does not agree with " + a.name() + ": their attractors differ.";
  }
  if (!agree) {
    verdict.reasons.push_back(distance_reason(evidence));
    for (std::string& hint : diagnose(a, b, evidence)) verdict.reasons.push_back(std::move(hint));
  }
  verdict.reasons.push_back(spread_reason(evidence));
  if (spread.outlier) verdict.reasons.push_back(outlier_reason(evidence));
  if (!spread.by_accepted_steps.empty()) verdict.reasons.push_back(accepted_steps_reason(spread));
  if (agree && !spread.not_examined.empty()) verdict.reasons.push_back(not_examined_reason(spread));
  if (evidence.divergence_tier.asked()) {
    verdict.reasons.push_back(divergence_reason(evidence));
  }
  if (statistics.asked()) verdict.reasons.push_back(statistics_reason(statistics));
  const std::string finite = finite_reason(a, b, evidence.difference);
  if (!finite.empty()) {
    if (verdict.reasons.size() >= kMostReasons) verdict.reasons.resize(kMostReasons - 1);
    verdict.reasons.push_back(finite);
  }
  if (verdict.reasons.size() > kMostReasons) verdict.reasons.resize(kMostReasons);
}

// They differ by more than rounding, but perhaps by no more than another method or tolerance would.
Verdict not_stated(const SilentSolver& solver, Verdict verdict) {
  const std::string name = solver.silent->name();
  verdict.outcome = Outcome::undecided;
  verdict.sentence = "No verdict: " + name + " does not state how it was solved (" + solver.missing +
                     "), and the two differ by more than rounding explains.";
  verdict.reasons.insert(verdict.reasons.begin() + 1,  // after how far apart they are
                         "State " + solver.missing + " as attributes of " + name + ": if they are those of " +
                             solver.other->name() +
                             ", such a difference is a disagreement; if not, a method's own error.");
  verdict.reasons.resize(std::min(verdict.reasons.size(), kMostReasons));
  return verdict;
}

bool has_adaptive_steps(const Ensemble& of) {
  const auto fields = of.provenance();
  return std::ranges::any_of(fields, [](const auto& each) { return each.first == "rtol" && !each.second.empty(); });
}

// Why nothing can be said of any save point.
Verdict no_decisive_time(const Ensemble& a, const Ensemble& b, Verdict verdict) {
  const Evidence& evidence = *verdict.evidence;
  const std::string finite = finite_reason(a, b, evidence.difference);
  if (evidence.difference.left_out > 0) verdict.reasons.push_back(finite);
  bool saved = false, compared = false, spread = false;
  for (std::size_t k = 0; k < evidence.times.size(); ++k) {
    if (!(evidence.times[k] > 0)) continue;
    saved = true;
    compared = compared || evidence.difference.at[k].compared > 0;
    spread = spread || std::isfinite(evidence.spread.at[k][kMedian]);
  }
  if (!saved) return undecided(std::move(verdict), "nothing is saved after the start", "Save later times.");
  if (!compared) return undecided(std::move(verdict), "no state after the start is finite in either solution", {});
  if (!spread) {
    return undecided(std::move(verdict),
                     "the trajectories that are to tell how far rounding goes have no finite states after the start (" +
                         verdict.evidence->spread.source + ")",
                     "Finish their solution, or solve it again with --certificate.");
  }
  return undecided(std::move(verdict),
                   "rounding alone drives trajectories apart before the first save point, and attractors that agree "
                   "prove nothing",
                   "Save earlier times, while trajectories are still close.");
}

// Two of one version of ours, of one precision, from CPUs: the same bits on any of them. "0.4.0", else empty.
std::string version_of_both(const Ensemble& a, const Ensemble& b) {
  const auto fact = [](const Ensemble& of, std::string_view name) {
    for (const auto& [field, value] : of.provenance()) {
      if (field == name) return value;
    }
    return std::string();
  };
  const bool cpus = fact(a, "engine") == "cpu" && fact(b, "engine") == "cpu" && a.precision() == b.precision();
  const std::string version = fact(a, "version");
  return cpus && version == fact(b, "version") ? version : std::string();
}

// Agreement of a part is none of the whole.
Verdict judge_completeness(const Ensemble& a, const Ensemble& b, Verdict verdict) {
  const std::size_t left_out = verdict.evidence->difference.left_out;
  if (left_out == 0 || verdict.outcome != Outcome::agree) return verdict;
  verdict.outcome = Outcome::undecided;
  const bool same_bits = verdict.evidence->difference.different == 0 && a.precision() == b.precision();
  verdict.sentence = "No verdict on the whole: the " + std::to_string(a.trajectories() - left_out) + " of " +
                     trajectories_text(a.trajectories()) + " that " + a.name() + " and " + b.name() +
                     " have both finished agree" + (same_bits ? ", to the bit." : ".");
  return verdict;
}

// In all that both have finished.
Verdict of_same_bits(const Ensemble& a, const Ensemble& b, Verdict verdict) {
  const Difference& same = verdict.evidence->difference;
  const std::string finite = finite_reason(a, b, same);
  if (!finite.empty()) verdict.reasons.push_back(finite);
  if (same.statuses + same.ends.different > 0) {
    return undecided(std::move(verdict),
                     "the same bits in all saved states, but " +
                         trajectories_text(same.statuses + same.ends.different) +
                         " ended in another way, at another time or in another state, which no rounding explains",
                     "Look at how the two find where a trajectory ends: its event, its last time.");
  }
  verdict.same_bits = same.left_out == 0;
  verdict.outcome = Outcome::agree;
  verdict.sentence = b.name() + " agrees with " + a.name() + ": the same bits in all states.";
  return judge_completeness(a, b, std::move(verdict));
}

// What became of a reference's own numbers since they were solved: where they are not what its problem gives, nothing
// can be said to agree with them.
Verdict judge_reference(const Ensemble& a, Verdict verdict) {
  const SpreadTier& tier = verdict.evidence->spread_tier;
  if (!tier.damaged && !tier.other_bits) return verdict;
  const std::string reason = reference_reason(a, *verdict.evidence);
  verdict.reasons.insert(verdict.reasons.begin() + (verdict.reasons.empty() ? 0 : 1), reason);
  verdict.reasons.resize(std::min(verdict.reasons.size(), kMostReasons));
  if (!tier.damaged || verdict.outcome != Outcome::agree) return verdict;
  verdict.outcome = Outcome::undecided;
  verdict.sentence = "No verdict: trajectory " + std::to_string(tier.damaged->trajectory) + " of " + a.name() +
                     " is not what its own problem gives, so that nothing can be judged by it.";
  return verdict;
}

// Rounding of another mode's products than those in question tells nothing about these.
// Nor do members of a finer precision show how adaptive steps answer to the rounding of the one claimed.
std::optional<Certificate> usable_certificate(const Ensemble& of, MatrixPrecision mode, Precision claimed) {
  std::optional<Certificate> certificate = of.certificate();
  if (!certificate || certificate->members == 0 || certificate->samples() == 0) return std::nullopt;
  if (certificate->save_points != of.save_points() || certificate->components != of.components() ||
      certificate->trajectories.back() >= of.trajectories() ||
      factor_roundoff(certificate->matrix_precision) != factor_roundoff(mode)) {
    return std::nullopt;
  }
  if (certificate->precision != claimed && has_adaptive_steps(of)) return std::nullopt;
  return certificate;
}

// a's members against a; where only b brought members, those against b.
std::optional<Spread> find_spread(const Ensemble& a, const Ensemble& b, const Settings& settings, const Scale& scale,
                                  Precision claimed) {
  if (settings.certificate) {
    const Ensemble& of = settings.certificate_of == Settings::Of::a ? a : b;
    Spread spread = spread_of(*settings.certificate, of, scale, claimed);
    spread.source += ", computed anew from the problem in " + of.name();
    return spread;
  }
  const MatrixPrecision mode = matrix_precision_of(a, b);
  for (const Ensemble* of : {&a, &b}) {
    if (const auto certificate = usable_certificate(*of, mode, claimed)) {
      Spread spread = spread_of(*certificate, *of, scale, claimed);
      spread.source += ", stored in " + of->name();
      return spread;
    }
  }
  if (settings.lyapunov && mode == MatrixPrecision::f32)
    return spread_by_exponent(*settings.lyapunov, a, scale, claimed);
  return std::nullopt;
}

}  // namespace

int exit_code(Outcome outcome) { return outcome == Outcome::agree ? 0 : outcome == Outcome::disagree ? 1 : 2; }

MatrixPrecision matrix_precision_of(const Ensemble& a, const Ensemble& b) {
  MatrixPrecision mode = MatrixPrecision::f32;
  for (const Ensemble* of : {&a, &b}) {
    for (const auto& [name, value] : of->provenance()) {
      if (name == "matrix_precision") mode = coarser(mode, parse_matrix_precision(value).value_or(mode));
    }
  }
  return mode;
}

Precision coarser_precision(const Ensemble& a, const Ensemble& b) {
  return a.precision() == Precision::f32 || b.precision() == Precision::f32 ? Precision::f32 : Precision::f64;
}

bool has_certificate(const Ensemble& a, const Ensemble& b) {
  const MatrixPrecision mode = matrix_precision_of(a, b);
  const Precision claimed = coarser_precision(a, b);
  return usable_certificate(a, mode, claimed) || usable_certificate(b, mode, claimed);
}

bool brings_certificate(const Ensemble& a, const Ensemble& b) {
  if (a.precision() != b.precision() && (has_adaptive_steps(a) || has_adaptive_steps(b))) return false;
  return has_certificate(a, b);
}

namespace {

Verdict judge_states(const Ensemble& a, const Ensemble& b, const Settings& settings, const RunControl& control) {
  Verdict verdict;
  verdict.fields = compare_fields(a, b);
  const bool forbidden = !verdict.fields.empty() && verdict.fields.front().forbids;
  if (forbidden && !same_problem(verdict.fields)) return not_comparable(a, b, std::move(verdict));
  if (a.trajectories() == 0 || a.save_points() == 0 || a.components() == 0) {
    return undecided(std::move(verdict), "there is nothing to compare", {});
  }
  // The coarser of what the two claim to be: a float32 file need not agree with a float64 file to 16 digits.
  const Precision claimed = coarser_precision(a, b);
  Evidence evidence;
  evidence.times = elapsed_times(a);
  evidence.is_time = !a.own_times() && evidence.times == a.times(0);
  evidence.scale = measure_scale(a);
  std::optional<Spread> spread;  // rounding is no measure of what another method, step or tolerance does
  if (!forbidden) spread = find_spread(a, b, settings, evidence.scale, claimed);
  const bool have_spread = spread.has_value();
  if (!have_spread) {
    spread.emplace();
    spread->at.assign(a.save_points(), {kNoBound, kNoBound, kNoBound});
    spread->farthest.assign(a.save_points(), kNoBound);
    spread->epsilon = epsilon_of(claimed);
  }
  evidence.spread = std::move(*spread);
  evidence.difference = measure_difference(a, b, evidence.scale, evidence.spread, control);
  evidence.spread_tier = judge_spread(evidence);
  if (have_spread) judge_alone(a, b, settings, claimed, evidence);
  evidence.divergence_tier = judge_divergence(evidence);
  const Difference& difference = evidence.difference;
  const bool nothing_left = difference.left_out == a.trajectories();
  verdict.evidence = std::move(evidence);
  if (nothing_left) return undecided(std::move(verdict), "no trajectory is finished in both solutions", {});
  if (forbidden) return not_by_one_method(a, b, std::move(verdict));
  if (verdict.evidence->difference.different == 0 && a.precision() == b.precision())
    return of_same_bits(a, b, std::move(verdict));
  if (!have_spread) {
    verdict.reasons.push_back(distance_reason(*verdict.evidence));
    if (verdict.evidence->difference.left_out > 0)
      verdict.reasons.push_back(finite_reason(a, b, verdict.evidence->difference));
    return undecided(std::move(verdict),
                     "the solutions differ in their bits, and nothing says how much of that is rounding",
                     "Solve again with --certificate, or state the system's largest Lyapunov exponent with "
                     "--lyapunov.");
  }
  if (verdict.evidence->spread_tier.decisive_times == 0 && !verdict.evidence->spread_tier.outlier &&
      verdict.evidence->spread_tier.worst_ratio <= kAllowedRatio) {
    return no_decisive_time(a, b, std::move(verdict));
  }
  conclude(a, b, verdict);
  if (const std::string version = version_of_both(a, b); !version.empty() && verdict.outcome == Outcome::agree &&
                                                         verdict.evidence->difference.different > 0 &&
                                                         verdict.reasons.size() < kMostReasons) {
    verdict.reasons.push_back("Both state version " + version +
                              ", which gives the same bits on every CPU: one of them was made by another build, or is "
                              "damaged.");
  }
  verdict = judge_completeness(a, b, judge_reference(a, std::move(verdict)));
  if (const auto solver = silent_on_solver(a, b); solver && verdict.outcome == Outcome::disagree)
    return not_stated(*solver, std::move(verdict));
  return verdict;
}

}  // namespace

Verdict judge(const Ensemble& a, const Ensemble& b, const Settings& settings, const RunControl& control) {
  const StandardArithmetic arithmetic;
  Verdict verdict = judge_states(a, b, settings, control);
  judge_events(a, b, control, verdict);
  return verdict;
}

}  // namespace lockstep::agreement
