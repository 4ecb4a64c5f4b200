// What the state functions made of a user's code have in common: name, digest, and lowering for either precision.
#pragma once

#include <string>

#include "lockstep/core/error.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::ode::detail {

struct FunctionName {
  std::string kind;  // "function", "event"
  std::string name;
  std::string version;

  // Of kind, name, version and, where there is a net, its digest.
  std::string digest(const std::string& net_digest = {}) const;
};

// A user's code that takes only one of float and double.
Error wrong_precision(const std::string& name, const char* found, const char* expected);

}  // namespace lockstep::ode::detail
