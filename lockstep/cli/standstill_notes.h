// What a solve lost that no status tells of, for people.
#pragma once

#include <string>
#include <vector>

#include "lockstep/ode/standstill.h"

namespace lockstep::cli {

// A note for each component that float32 held still, and one of those that are small beside their tolerance; `names`
// are the components'.
std::vector<std::string> standstill_notes(const ode::EndSample& ends, const std::vector<std::string>& names);

}  // namespace lockstep::cli
