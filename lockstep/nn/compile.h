// From a model to something that evaluates it.
#pragma once

#include <type_traits>

#include "lockstep/kernels/mlp/plan.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/net_derivatives.h"

namespace lockstep::nn {
namespace detail {
// to_mlp(), its refusal naming what takes every net.
Mlp stack_to_compile(const Model& model);
}  // namespace detail

// A plain stack lowered for one precision (T is float or double) and instruction set; weights are rounded to T. Of
// other nets, and of any, NetPlan makes a plan. Throws Error (model) when the model is invalid, (unsupported) naming
// the node when it is no plain stack, or the target when that is not available here.
template <class T>
Plan<T> compile(const Model& model, CpuTarget target = best_cpu_target()) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "T is float or double");
  return Plan<T>::compile(detail::stack_to_compile(model), target);
}

// Any model for products with the Jacobian by the inputs, and with its transpose.
template <class T>
NetDerivatives<T> compile_derivatives(const Model& model, CpuTarget target = best_cpu_target()) {
  return NetDerivatives<T>::compile(model, target);
}

}  // namespace lockstep::nn
