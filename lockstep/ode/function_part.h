// What a state function is made of, where the library knows: for engines that compile their own version of it.
#pragma once

#include <cstddef>
#include <string>
#include <variant>

#include "lockstep/kernels/mlp/mlp.h"

namespace lockstep::ode {

struct SystemPart {
  std::string name;  // a built-in system
};
struct NetPart {
  const Mlp* mlp;  // belongs to the function
  bool with_time;  // its inputs are state, parameters and, if so, time
};
// One component less a value: an event.
struct ThresholdPart {
  std::size_t component;
  double value;
};

struct FunctionPart {
  std::variant<SystemPart, NetPart, ThresholdPart> what;
  std::size_t parameters;  // of the trajectory's, how many this part takes, after those of the parts before it
};

}  // namespace lockstep::ode
