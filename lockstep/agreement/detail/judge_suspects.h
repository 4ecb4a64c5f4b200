// Single trajectories that lie farthest out, judged by members of their own.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "lockstep/agreement/verdict.h"

namespace lockstep::agreement {

// The first trajectory beyond what the ensemble's members allow any, but for those that `cleared` (ascending) names; or
// one that no distance is known of.
std::optional<Departure> first_outlier(const Evidence& evidence, const std::vector<std::size_t>& cleared);

// Suspects against members of their own, into the evidence's spread tier: which of them goes where rounding cannot have
// taken it, or is in a not what a's own problem gives.
void judge_alone(const Ensemble& a, const Ensemble& b, const Settings& settings, Precision claimed, Evidence& evidence);

}  // namespace lockstep::agreement
