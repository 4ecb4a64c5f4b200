// What one thread of a kernel does: takes trajectory after trajectory and advances each through its span.
#pragma once

#include "lockstep/ode/cuda/derivative.h"
#include "lockstep/ode/cuda/trajectory.h"

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

}  // namespace lockstep::ode::cuda
