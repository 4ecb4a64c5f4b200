// What a state function is made of, where the library knows: for engines that compile their own version of it.
#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/kernels/mlp/mlp.h"

namespace lockstep::ode {

struct SystemPart {
  std::string name;  // a built-in system
};
// Bounds of the first components, or of them and parameters; the function's own, null for none. As an event: 1 within
// those of components and -1 outside.
struct RangePart {
  const std::vector<double>* minimum = nullptr;
  const std::vector<double>* maximum = nullptr;
};
struct NetPart {
  const Mlp* mlp;        // belongs to the function
  bool with_time;        // its inputs are state, parameters and, if so, time
  RangePart range = {};  // into which the first of its inputs are brought before
};
// One component less a value: an event.
struct ThresholdPart {
  std::size_t component;
  double value;
};

// The body of a function du = f(t, u, p), which may be what a reset makes of the state, or of an event, as CUDA C++:
// see ode/cuda_source.h. One that returns a number is called an event, though it be the new state of one component.
struct SourcePart {
  std::string name;
  const std::string* text;  // belongs to the function
  std::size_t components, parameters;
  bool is_event = false;
};

struct FunctionPart {
  std::variant<SystemPart, NetPart, ThresholdPart, RangePart, SourcePart> what;
  std::size_t parameters;  // of the trajectory's, how many this part takes, after those of the parts before it
};

// What one evaluation takes: about as many fused multiply-adds as would take the time.
struct EvaluationCost {
  double nets = 0;  // layers' products and their activations
  double rest = 0;
  double layers = 0, neurons = 0;  // of all stacks of layers

  EvaluationCost& operator+=(const EvaluationCost& other) {
    nets += other.nets;
    rest += other.rest;
    layers += other.layers;
    neurons += other.neurons;
    return *this;
  }
};

}  // namespace lockstep::ode
