// A right-hand side as the device's kernels read it: a sum of built-in systems and nets, as plain data and one array of
// weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/kernels/cuda/net_image.h"
#include "lockstep/ode/cuda/ensemble.h"
#include "lockstep/ode/cuda/scheme.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"

namespace lockstep::ode::cuda {

inline constexpr int kMostParts = 4;

struct PartProgram {
  std::int32_t system;           // its place in systems::AllSystems, or -1: a net
  std::int32_t first_parameter;  // of the trajectory's, this part's first
  std::int32_t parameters;
  std::int32_t with_time;  // the net's last input is time
  lockstep::cuda::NetImage net;
};

struct Program {
  std::int32_t components, parameters, parts;
  PartProgram part[kMostParts];  // added up from the first to the last
};

// Everything a kernel needs: passed by value, so that it lies in constant memory.
template <class T>
struct Launch {
  Ensemble<T> ensemble;
  StepRules<T> rules;
  Threshold<T> event;
  MethodTable<T> method;
  Program program;
  const T* weights;             // the device's
  unsigned long long* counter;  // of trajectories taken so far; the device's, zero before the launch
};

// A problem and options in that form, the ensemble left out, and the kernel to run it.
template <class T>
struct Lowered {
  Launch<T> launch{};
  std::vector<T> weights;
  std::string kernel;  // a name of kernel_list.h
};

// Why a problem cannot run in these kernels, for people, with what to do; nullopt when it can.
struct Obstacle {
  std::string field, found, expected, remedy;
};
std::optional<Obstacle> obstacle(const Problem& problem, const Options& options);

// Throws Error (unsupported) where there is an obstacle, (model) for weights that do not fit in T.
template <class T>
Lowered<T> lower_problem(const Problem& problem, const Options& options);

extern template Lowered<float> lower_problem<float>(const Problem&, const Options&);
extern template Lowered<double> lower_problem<double>(const Problem&, const Options&);

}  // namespace lockstep::ode::cuda
