// What derivatives of a solve do not see, and where they are wrong, for people.
#pragma once

#include <string>
#include <vector>

#include "lockstep/ode/options.h"
#include "lockstep/ode/state_function.h"
#include "lockstep/ode/unresolved_derivatives.h"

namespace lockstep::cli {

// Of a right-hand side that jumps where a state passes a value. `consequence` says what that means for the reader.
std::string state_jump_text(const std::string& consequence);
// Of a parameter that moves a jump. `who`, as "training", does not see it.
std::string moved_jump_text(const std::string& who, const std::string& parameter);

// Why derivatives are wrong ("them") of a solve with these options; `trajectory` is what people call theirs.
std::string unresolved_text(const ode::UnresolvedDerivatives& of, const std::string& trajectory,
                            const ode::Options& options);

// Notes on derivatives by initial states and parameters; `parameters` are the names of the right-hand side's.
std::vector<std::string> derivative_notes(const ode::StateFunction& rhs, const std::vector<std::string>& parameters);

// Why there are no standard errors, and what to do.
std::string unstable_text(const ode::Options& options);

}  // namespace lockstep::cli
