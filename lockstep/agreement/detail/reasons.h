// What a verdict rests on, a sentence each.
#pragma once

#include <string>

#include "lockstep/agreement/verdict.h"

namespace lockstep::agreement {

std::string rounding_text(const Evidence& evidence);  // what explains a difference: "rounding", "tf32's rounding"

std::string spread_reason(const Evidence& evidence);
std::string outlier_reason(const Evidence& evidence);  // of a tier that has one
// Of a tier in which a is not what its problem gives.
std::string reference_reason(const Ensemble& a, const Evidence& evidence);
std::string accepted_steps_reason(const SpreadTier& tier);
std::string not_examined_reason(const SpreadTier& tier);
std::string divergence_reason(const Evidence& evidence);  // of a tier that was asked
std::string statistics_reason(const Statistics& statistics);

// What is counted, not hidden: trajectories left out, not finite, ended otherwise. Empty where there is nothing.
std::string finite_reason(const Ensemble& a, const Ensemble& b, const Difference& difference);

// How far apart they are in units of the solution's size, whatever rounding explains of that.
std::string distance_reason(const Evidence& evidence);

}  // namespace lockstep::agreement
