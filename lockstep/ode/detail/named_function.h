// What the state functions made of a user's code have in common: name, digest, and lowering for either precision.
#pragma once

#include <string>

#include "lockstep/core/error.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::ode::detail {

struct FunctionName {
  std::string kind;  // "function", "event"
  std::string name;
  std::string version;

  // Of kind, name, version and, where there is a net, its digest.
  std::string digest(const std::string& net_digest = {}) const;
};

// How a user's code was compiled, for descriptions: ", compiled for avx512", and where the file that asks was compiled
// without optimisation, as a CMake project without a build type is, that as well: such code takes some fifty times as
// long. In each file its own, as the flags are.
static inline std::string compiled_for(CpuTarget target) {
#if defined(__GNUC__) && !defined(__OPTIMIZE__)
  constexpr const char* kFlags = " without optimisation, which -O2 (CMAKE_BUILD_TYPE=Release) turns on";
#else
  constexpr const char* kFlags = "";
#endif
  return ", compiled for " + std::string(to_string(target)) + kFlags;
}

// A user's code that takes only one of float and double.
Error wrong_precision(const std::string& name, const char* found, const char* expected);

}  // namespace lockstep::ode::detail
