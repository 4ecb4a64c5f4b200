// The kernels that are compiled: common shapes ahead of time, and two that run whatever fits. Adding one: a line in
// KernelList; which of them runs a problem is decided in program.cpp.
#pragma once

#include <string_view>

#include "lockstep/ode/cuda/kernel_body.h"
#include "lockstep/ode/cuda/program_derivative.h"
#include "lockstep/ode/methods/dop853.h"
#include "lockstep/ode/methods/rk4.h"
#include "lockstep/ode/methods/tsit5.h"

namespace lockstep::ode::cuda {

// visitor.template operator()<KernelBody<...>>(name) for every kernel of a number type.
template <class T, class Visitor>
void for_each_kernel(const Visitor& visitor) {
  constexpr bool f32 = sizeof(T) == 4;
  using Table = TableScheme<T>;
  using ode::systems::Lorenz;
  const auto visit = [&]<class Body>(Body, std::string_view f32_name, std::string_view f64_name) {
    visitor.template operator()<Body>(f32 ? f32_name : f64_name);
  };
  visit(KernelBody<T, CompiledScheme<Rk4>, SystemDerivative<Lorenz, T>>(), "lorenz_rk4_f32", "lorenz_rk4_f64");
  constexpr int blocks = f32 ? 1 : 4;  // 128 registers rather than 136: a fourth block fits
  visit(KernelBody<T, CompiledScheme<Tsit5>, SystemDerivative<Lorenz, T>, 128, blocks>(), "lorenz_tsit5_f32",
        "lorenz_tsit5_f64");
  visit(KernelBody<T, CompiledScheme<Dop853>, SystemDerivative<Lorenz, T>>(), "lorenz_dop853_f32", "lorenz_dop853_f64");
  visit(KernelBody<T, CompiledScheme<Tsit5>, FoldedNetDerivative<2, ActivationKind::tanh, T>>(), "net2_tanh_tsit5_f32",
        "net2_tanh_tsit5_f64");
  constexpr int net_blocks = f32 ? 4 : 3;  // 168 registers rather than 176 (compute capability 10.0)
  visit(KernelBody<T, CompiledScheme<Tsit5>, FoldedNetDerivative<3, ActivationKind::tanh, T>, 128, net_blocks>(),
        "net3_tanh_tsit5_f32", "net3_tanh_tsit5_f64");
  visit(KernelBody<T, Table, ProgramDerivative<8, 128, T>>(), "general_small_f32", "general_small_f64");
  visit(KernelBody<T, Table, ProgramDerivative<64, 512, T>>(), "general_f32", "general_f64");
}

}  // namespace lockstep::ode::cuda
