// Names of equations that nothing reads: a slip of the pen, as a rule.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/nn/equations.h"

namespace lockstep::nn {

// Parameters, then definitions, of `system` that neither its equations and definitions nor `others`, texts of events or
// resets, say, name, in its order. All texts must be expressions. Throws ExpressionError where one is not made of an
// expression's words.
std::vector<std::string> unread_names(const Equations& system, std::span<const Equation> others);

}  // namespace lockstep::nn
