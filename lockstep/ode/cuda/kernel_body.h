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

// What takes the trajectories of such a derivative on; reset_trajectory.h has another.
template <class T, class Scheme, class Derivative>
struct TrajectoryFor {
  using Type = Trajectory<T, Scheme, Derivative>;
};

// What a thread is told instead of a trajectory: that there is none for now, or that there will be none any more.
inline constexpr std::int64_t kNoneNow = -1, kNoneAnyMore = -2;

// Threads a block, and how many blocks a multiprocessor should hold: the register budget.
template <class Number, class TheScheme, class TheDerivative, int threads = 128, int blocks = 1>
struct KernelBody {
  using T = Number;
  using Scheme = TheScheme;
  using Derivative = TheDerivative;
  static constexpr int kThreads = threads;
  static constexpr int kBlocks = blocks;

  // One thread's work. take(busy) gives a thread that is not busy the next trajectory that nobody has taken, or
  // kNoneNow or kNoneAnyMore. It is asked before every step, of busy threads too, so that those of a warp may agree.
  template <class Take>
  static LOCKSTEP_HOST_DEVICE void run(const Launch<T>& launch, const T* shared, Take take) {
    const Scheme scheme = make_scheme(static_cast<Scheme*>(nullptr), launch);
    const Derivative derivative(launch, shared);
    typename TrajectoryFor<T, Scheme, Derivative>::Type trajectory(launch.ensemble, launch.rules, launch.event, scheme,
                                                                   derivative);
    bool busy = false;
    for (;;) {
      const std::int64_t next = take(busy);
      if (next == kNoneAnyMore) return;
      if (next != kNoneNow) busy = trajectory.begin(next);
      if (busy) busy = trajectory.step();
    }
  }
};

}  // namespace lockstep::ode::cuda
