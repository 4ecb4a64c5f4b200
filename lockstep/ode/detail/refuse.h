// Small words of those that refuse what they are given.
#pragma once

#include <cstddef>
#include <string>

#include "lockstep/core/error.h"

namespace lockstep::ode::detail {

[[noreturn]] inline void refuse(const std::string& field, const std::string& found, const std::string& expected,
                                const std::string& remedy = {}) {
  throw Error(ErrorKind::invalid_argument, {.field = field, .found = found, .expected = expected, .remedy = remedy});
}

inline std::string count_of(std::size_t count) { return std::to_string(count) + " numbers"; }

}  // namespace lockstep::ode::detail
