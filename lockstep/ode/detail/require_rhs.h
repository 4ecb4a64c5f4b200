// What functions that take a right-hand side ask of it.
#pragma once

#include <string>

#include "lockstep/core/error.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::ode::detail {

inline void require_rhs(const char* field, const Rhs& rhs) {
  if (rhs && rhs->outputs() == rhs->components()) return;
  throw Error(ErrorKind::invalid_argument,
              {.field = field,
               .found = rhs ? rhs->description() + " with " + std::to_string(rhs->outputs()) + " outputs for " +
                                  std::to_string(rhs->components()) + " components"
                            : std::string("none"),
               .expected = "a right-hand side"});
}

}  // namespace lockstep::ode::detail
