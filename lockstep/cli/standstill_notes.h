// What a solve lost that no status tells of, for people.
#pragma once

#include <string>
#include <vector>

#include "lockstep/ode/standstill.h"

namespace lockstep::cli {

// A note for each component that float32 held still, one of those that are small beside their tolerance, one of those
// that ended so, and one where float32 is why steps were many (it solves a trajectory again in float64); `names` are
// the components'.
std::vector<std::string> standstill_notes(const ode::EndSample& ends, const std::vector<std::string>& names);
// Takes out the last of them where `reason`, why trajectories ran out of steps, says the same.
void drop_what_is_told(const std::string& reason, std::vector<std::string>& notes);

}  // namespace lockstep::cli
