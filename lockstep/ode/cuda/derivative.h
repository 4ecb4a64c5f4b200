// Right-hand sides as one thread evaluates them: a built-in system or a small net known to the compiler, or any sum of
// systems and nets from a Program.
#pragma once

#include "lockstep/kernels/cuda/thread_net.h"
#include "lockstep/ode/cuda/program.h"
#include "lockstep/ode/systems/systems.h"

namespace lockstep::ode::cuda {

// Each has numbers_shared(launch), which of the weights a block's threads keep in shared memory (`count` from `first`),
// and is made from the launch and those weights.
struct SharedWeights {
  std::int64_t first = 0, count = 0;
};

template <class System, class T>
class SystemDerivative {
 public:
  static constexpr int kMostComponents = System::kComponents;
  static constexpr int kMostParameters = System::kParameters;
  static LOCKSTEP_HOST_DEVICE SharedWeights shared_weights(const Launch<T>&) { return {}; }
  LOCKSTEP_HOST_DEVICE SystemDerivative(const Launch<T>&, const T*) {}
  static LOCKSTEP_HOST_DEVICE constexpr int components() { return System::kComponents; }
  LOCKSTEP_HOST_DEVICE void evaluate(double, const T* u, const T* p, T* du) const {
    System::template evaluate<ScalarLane<T>>(u, p, du);
  }
};

// A net n - width - n with one hidden layer and no other inputs than the state.
template <int n, ActivationKind kind, class T>
class FoldedNetDerivative {
 public:
  static constexpr int kMostComponents = n;
  static constexpr int kMostParameters = 0;
  static LOCKSTEP_HOST_DEVICE SharedWeights shared_weights(const Launch<T>& launch) {
    return {launch.program.part[0].net.folded, launch.program.part[0].net.folded_numbers};
  }
  LOCKSTEP_HOST_DEVICE FoldedNetDerivative(const Launch<T>& launch, const T* shared)
      : net_(launch.program.part[0].net), image_(shared) {}
  static LOCKSTEP_HOST_DEVICE constexpr int components() { return n; }
  LOCKSTEP_HOST_DEVICE void evaluate(double, const T* u, const T*, T* du) const {
    lockstep::cuda::evaluate_folded<kind, T, n>(image_, net_, u, du);
  }

 private:
  const lockstep::cuda::NetImage& net_;
  const T* image_;
};

// Whatever fits: states to most_components, layers to most_width.
template <int most_components, int most_width, class T>
class ProgramDerivative {
 public:
  static constexpr int kMostComponents = most_components;
  static constexpr int kMostParameters = 0;
  static LOCKSTEP_HOST_DEVICE SharedWeights shared_weights(const Launch<T>&) { return {}; }
  LOCKSTEP_HOST_DEVICE ProgramDerivative(const Launch<T>& launch, const T*)
      : program_(launch.program), weights_(launch.weights) {}
  LOCKSTEP_HOST_DEVICE int components() const { return program_.components; }

  LOCKSTEP_HOST_DEVICE_CALL void evaluate(double t, const T* u, const T* p, T* du) const {
    evaluate_part(program_.part[0], t, u, p, du);
    T addend[most_components];
    for (int i = 1; i < program_.parts; ++i) {
      evaluate_part(program_.part[i], t, u, p, addend);
      for (int c = 0; c < program_.components; ++c) du[c] = ScalarLane<T>::add(du[c], addend[c]);
    }
  }

 private:
  LOCKSTEP_HOST_DEVICE_CALL void evaluate_part(const PartProgram& part, double t, const T* u, const T* p, T* du) const {
    p += part.first_parameter;
    if (part.system >= 0) {
      evaluate_system(systems::AllSystems(), part.system, u, p, du);
    } else {
      T x[most_width], scratch[most_width];
      int filled = 0;
      for (int c = 0; c < program_.components; ++c) x[filled++] = u[c];
      for (int i = 0; i < part.parameters; ++i) x[filled++] = p[i];
      if (part.with_time) x[filled++] = static_cast<T>(t);
      lockstep::cuda::evaluate_net(part.net, weights_, x, scratch, du);
    }
  }

  template <class... System>
  static LOCKSTEP_HOST_DEVICE void evaluate_system(systems::SystemList<System...>, int index, const T* u, const T* p,
                                                   T* du) {
    int i = 0;
    (evaluate_if<System>(index == i++, u, p, du), ...);
  }
  template <class System>
  static LOCKSTEP_HOST_DEVICE void evaluate_if(bool wanted, const T* u, const T* p, T* du) {
    if constexpr (System::kComponents <= most_components) {
      if (wanted) System::template evaluate<ScalarLane<T>>(u, p, du);
    }
  }

  const Program& program_;
  const T* weights_;
};

}  // namespace lockstep::ode::cuda
