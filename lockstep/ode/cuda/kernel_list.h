// The kernels that are compiled: common shapes ahead of time, and two that run whatever fits. Adding one: a line in
// KernelList; which of them runs a problem is decided in program.cpp.
#pragma once

#include <string_view>

#include "lockstep/ode/cuda/derivative.h"
#include "lockstep/ode/cuda/trajectory.h"
#include "lockstep/ode/methods/dop853.h"
#include "lockstep/ode/methods/rk4.h"
#include "lockstep/ode/methods/tsit5.h"

namespace lockstep::ode::cuda {

template <class Number>
LOCKSTEP_HOST_DEVICE TableScheme<Number> make_scheme(TableScheme<Number>*, const Launch<Number>& launch) {
  return TableScheme<Number>(launch.method);
}
template <class Method, class Number>
LOCKSTEP_HOST_DEVICE CompiledScheme<Method> make_scheme(CompiledScheme<Method>*, const Launch<Number>&) {
  return {};
}

// Threads a block, and how many blocks a multiprocessor should hold: the register budget.
template <class Number, class TheScheme, class TheDerivative, int threads = 128, int blocks = 1>
struct KernelBody {
  using T = Number;
  using Scheme = TheScheme;
  using Derivative = TheDerivative;
  static constexpr int kThreads = threads;
  static constexpr int kBlocks = blocks;

  // One thread's work. `take` gives the next trajectory nobody has taken, or one past the last. Trajectories are taken
  // between steps, so that the threads of a warp meet again after every step.
  template <class Take>
  static LOCKSTEP_HOST_DEVICE void run(const Launch<T>& launch, const T* shared, const Take& take) {
    const Scheme scheme = make_scheme(static_cast<Scheme*>(nullptr), launch);
    const Derivative derivative(launch, shared);
    Trajectory<T, Scheme, Derivative> trajectory(launch.ensemble, launch.rules, launch.event, scheme, derivative);
    bool busy = false;
    for (;;) {
      if (!busy) {
        const std::int64_t next = take();
        if (next >= launch.ensemble.count) return;
        busy = trajectory.begin(next);
      }
      if (busy) busy = trajectory.step();
    }
  }
};

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
  visit(KernelBody<T, CompiledScheme<Tsit5>, SystemDerivative<Lorenz, T>>(), "lorenz_tsit5_f32", "lorenz_tsit5_f64");
  visit(KernelBody<T, CompiledScheme<Dop853>, SystemDerivative<Lorenz, T>>(), "lorenz_dop853_f32", "lorenz_dop853_f64");
  visit(KernelBody<T, CompiledScheme<Tsit5>, FoldedNetDerivative<2, ActivationKind::tanh, T>>(), "net2_tanh_tsit5_f32",
        "net2_tanh_tsit5_f64");
  visit(KernelBody<T, CompiledScheme<Tsit5>, FoldedNetDerivative<3, ActivationKind::tanh, T>>(), "net3_tanh_tsit5_f32",
        "net3_tanh_tsit5_f64");
  visit(KernelBody<T, Table, ProgramDerivative<8, 128, T>>(), "general_small_f32", "general_small_f64");
  visit(KernelBody<T, Table, ProgramDerivative<64, 512, T>>(), "general_f32", "general_f64");
}

}  // namespace lockstep::ode::cuda
