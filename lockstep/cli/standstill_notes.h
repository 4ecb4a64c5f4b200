// What a solve in float32 lost, for people.
#pragma once

#include <string>
#include <vector>

#include "lockstep/ode/standstill.h"

namespace lockstep::cli {

// A note for each component that float32 held still; `names` are the components'.
std::vector<std::string> standstill_notes(const ode::EndSample& ends, const ode::Options& options,
                                          const std::vector<std::string>& names);

}  // namespace lockstep::cli
