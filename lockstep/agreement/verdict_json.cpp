#include <cmath>
#include <nlohmann/json.hpp>

#include "lockstep/agreement/report.h"

namespace lockstep::agreement {
namespace {

using nlohmann::json;

json number_or_null(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json evidence_json(const Evidence& evidence) {
  const SpreadTier& spread = evidence.spread_tier;
  const DivergenceTier& divergence = evidence.divergence_tier;
  const Difference& difference = evidence.difference;
  const Statistics& statistics = difference.statistics;
  json result;
  result["different_numbers"] = difference.different;
  result["different_trajectories"] = difference.trajectories;
  result["left_out_trajectories"] = difference.left_out;
  result["not_finite_trajectories"] = difference.not_finite;
  result["not_finite_trajectories_a"] = difference.not_finite_a;
  result["not_finite_trajectories_b"] = difference.not_finite_b;
  result["other_status_trajectories"] = difference.statuses;
  if (difference.ends.different > 0) {
    const EndDifference& ends = difference.ends;
    result["ends"] = {{"different_trajectories", ends.different},
                      {"by_event", ends.by_event},
                      {"largest_time", number_or_null(ends.time)},
                      {"largest_distance", number_or_null(ends.distance)}};
  }
  result["spread"] = {{"passed", spread.passed()},
                      {"source", evidence.spread.source},
                      {"epsilon", evidence.spread.epsilon},
                      {"decisive_times", spread.decisive_times},
                      {"decisive_until", spread.decisive_until},
                      {"largest_ratio", number_or_null(spread.worst_ratio)},
                      {"allowed_ratio", kAllowedRatio}};
  if (spread.examined > 0) {
    result["spread"]["examined"] = {{"trajectories", spread.examined},
                                    {"largest_ratio", number_or_null(spread.worst_alone)},
                                    {"allowed_ratio", spread.allowed_alone}};
  }
  if (!spread.by_accepted_steps.empty()) result["spread"]["by_accepted_steps"] = spread.by_accepted_steps;
  if (spread.other_bits) result["spread"]["reference_has_other_bits"] = *spread.other_bits;
  if (spread.damaged) {
    result["spread"]["reference_damaged"] = {{"trajectory", spread.damaged->trajectory},
                                             {"time", evidence.times[spread.damaged->time]},
                                             {"distance", number_or_null(spread.damaged->distance)},
                                             {"allowed", spread.damaged->allowed}};
  }
  if (!spread.not_examined.empty()) result["spread"]["not_examined"] = spread.not_examined;
  if (spread.outlier) {
    result["spread"]["outlier"] = {{"trajectory", spread.outlier->trajectory},
                                   {"time", evidence.times[spread.outlier->time]},
                                   {"distance", number_or_null(spread.outlier->distance)},
                                   {"allowed", spread.outlier->allowed}};
  }
  result["divergence"] = {{"asked", divergence.asked()},
                          {"passed", divergence.passed()},
                          {"predicted", number_or_null(divergence.predicted)},
                          {"limit", number_or_null(divergence.limit)},
                          {"observed", number_or_null(divergence.observed)}};
  if (evidence.spread.growth_rate) result["divergence"]["growth_rate"] = *evidence.spread.growth_rate;
  result["statistics"] = {{"asked", statistics.asked()}};
  if (statistics.asked()) {
    result["statistics"]["passed"] = statistics.agree();
    result["statistics"]["z_limit"] = statistics.z_limit;
    result["statistics"]["wasserstein_z_limit"] = statistics.wasserstein_limit;
    for (const ComponentStatistics& c : statistics.components) {
      result["statistics"]["components"].push_back({{"mean_z", number_or_null(c.mean_z)},
                                                    {"mean_square_z", number_or_null(c.variance_z)},
                                                    {"wasserstein", number_or_null(c.wasserstein)},
                                                    {"wasserstein_z", number_or_null(c.wasserstein_z)}});
    }
  }
  json over_time;
  for (std::size_t k = 0; k < evidence.times.size(); ++k) {
    over_time["time"].push_back(evidence.times[k]);
    over_time["median_distance"].push_back(number_or_null(difference.at[k].quantile[kMedian]));
    over_time["largest_distance"].push_back(number_or_null(difference.at[k].largest));
    over_time["median_spread"].push_back(number_or_null(evidence.spread.at[k][kMedian]));
  }
  result["over_time"] = std::move(over_time);
  return result;
}

}  // namespace

std::string verdict_json(const Ensemble& a, const Ensemble& b, const Verdict& verdict) {
  return verdict_json(a.name(), b.name(), verdict);
}

std::string verdict_json(const std::string& a, const std::string& b, const Verdict& verdict) {
  constexpr const char* kWords[] = {"agree", "disagree", "undecided"};
  json result;
  result["a"] = a;
  result["b"] = b;
  result["outcome"] = kWords[static_cast<int>(verdict.outcome)];
  result["exit_code"] = exit_code(verdict.outcome);
  result["same_bits"] = verdict.same_bits;
  result["sentence"] = verdict.sentence;
  result["reasons"] = verdict.reasons;
  result["differences"] = json::array();
  for (const FieldDifference& field : verdict.fields) {
    result["differences"].push_back(
        {{"field", field.field}, {"a", field.a}, {"b", field.b}, {"forbids", field.forbids}});
  }
  if (verdict.events) {
    result["events"] = {{"a", verdict.events->events_a},
                        {"b", verdict.events->events_b},
                        {"different_trajectories", verdict.events->trajectories},
                        {"with_other_resets", verdict.events->other_resets},
                        {"largest_time", verdict.events->largest_time}};
  }
  if (verdict.evidence) result["evidence"] = evidence_json(*verdict.evidence);
  // Names may hold any bytes; JSON holds UTF-8.
  return result.dump(2, ' ', false, json::error_handler_t::replace);
}

}  // namespace lockstep::agreement
