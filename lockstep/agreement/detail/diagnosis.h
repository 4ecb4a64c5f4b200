// What may have gone wrong where two solutions disagree: mistakes that leave a mark one can look for.
#pragma once

#include <string>
#include <vector>

#include "lockstep/agreement/verdict.h"

namespace lockstep::agreement {

// Sentences for the reasons; none when no known mark is found.
std::vector<std::string> diagnose(const Ensemble& a, const Ensemble& b, const Evidence& evidence);

}  // namespace lockstep::agreement
