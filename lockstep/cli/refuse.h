// What was given and cannot be used.
#pragma once

#include <string>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::cli {

// Throws Error (invalid_argument).
[[noreturn]] inline void refuse(std::string where, std::string found, std::string expected, std::string remedy = {}) {
  throw Error(ErrorKind::invalid_argument,
              {std::move(where), std::move(found), std::move(expected), std::move(remedy)});
}

}  // namespace lockstep::cli
