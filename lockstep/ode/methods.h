// The list of methods. Adding one: a file under ode/methods that defines its Tableau, and a line in methods.cpp.
#pragma once

#include <string_view>
#include <vector>

#include "lockstep/ode/tableau.h"

namespace lockstep::ode {

// Throws Error (invalid_argument) with the nearest known name.
const Tableau& method(std::string_view name);

// In order of increasing order: "euler", "midpoint", "heun", "rk4", "bs3", "dopri5", "tsit5", "vern7", "dop853",
// "vern9"; then those made for decay, "rkc8", "rkc20", and the linearly implicit one, "rodas5p".
std::vector<std::string_view> method_names();
// Those that GPUs and derivatives of solves take: all but the last one.
std::vector<std::string_view> explicit_method_names();

}  // namespace lockstep::ode
