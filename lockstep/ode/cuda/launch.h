// What a kernel is launched with: plain data, for hosts and devices. A right-hand side is a sum of built-in systems and
// nets, as plain data and one array of weights, or the kernel's own.
#pragma once

#include <cstdint>

#include "lockstep/kernels/cuda/net_image.h"
#include "lockstep/ode/cuda/ensemble.h"
#include "lockstep/ode/cuda/scheme.h"

namespace lockstep::ode::cuda {

inline constexpr int kMostParts = 4;

// In place of a built-in system: a net, or a term that the kernel was compiled with.
inline constexpr std::int32_t kNetPart = -1, kOwnTerm = -2;

struct PartProgram {
  std::int32_t system;           // its place in systems::AllSystems, kNetPart or kOwnTerm
  std::int32_t first_parameter;  // of the trajectory's, this part's first
  std::int32_t parameters;
  std::int32_t with_time;         // the net's last input is time
  std::int32_t bounded;           // how many of a net's inputs are brought within bounds first,
  std::int64_t minimum, maximum;  // which lie there in the weights
  lockstep::cuda::NetImage net;
};

// A net's input i between its bounds; NaN passes.
template <class T>
LOCKSTEP_HOST_DEVICE T bounded_input(const PartProgram& part, const T* weights, int i, T x) {
  if (i >= part.bounded) return x;
  const T low = weights[part.minimum + i], high = weights[part.maximum + i];
  const T value = x < low ? low : x;
  return value > high ? high : value;
}

struct Program {
  std::int32_t components, parameters, parts;
  PartProgram part[kMostParts];  // added up from the first to the last
};

// Everything a kernel needs: passed by value, so that it lies in constant memory.
template <class T>
struct Launch {
  Ensemble<T> ensemble;
  StepRules<T> rules;
  EventRule<T> event;
  MethodTable<T> method;
  Program program;
  const T* weights;             // the device's
  unsigned long long* counter;  // of trajectories taken so far; the device's, zero before the launch
};

}  // namespace lockstep::ode::cuda
