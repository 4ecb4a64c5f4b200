// Right-hand sides with built-in systems, as one thread evaluates them: one system known to the compiler, or any sum of
// systems and nets from a Program.
#pragma once

#include "lockstep/ode/cuda/derivative.h"
#include "lockstep/ode/cuda/linear_system.h"
#include "lockstep/ode/numerics.h"
#include "lockstep/ode/systems/systems.h"

namespace lockstep::ode::cuda {

template <class System, class T>
class SystemDerivative {
 public:
  static constexpr int kMostComponents = System::kComponents;
  static constexpr int kMostParameters = System::kParameters;
  static constexpr int kMostGathered = 0;
  static LOCKSTEP_HOST_DEVICE SharedWeights shared_weights(const Launch<T>&) { return {}; }
  LOCKSTEP_HOST_DEVICE SystemDerivative(const Launch<T>&, const T*) {}
  static LOCKSTEP_HOST_DEVICE constexpr int components() { return System::kComponents; }
  LOCKSTEP_HOST_DEVICE void evaluate(double t, const T* u, const T* p, T* du) const {
    systems::evaluate_at<System, ScalarLane<T>>(static_cast<T>(t), u, p, du);
  }

  // Column by column, with the bits of the CPU's (reverse_system.cpp, row by row): there each entry is a sum with those
  // beside it in its column, times zero, so that one of these that is no finite number makes it NaN.
  using Matrix = WholeMatrix<System::kComponents>;
  LOCKSTEP_HOST_DEVICE void jacobian(double t, const T* u, const T* p, T* by_state, T* by_time) const {
    constexpr int n = System::kComponents, m = System::kParameters;
    using L = ScalarLane<T>;
    using Dual = systems::DualLane<L>;
    const auto along = [&](int direction, T* entries, int stride) {
      typename Dual::V x[n], q[m > 0 ? m : 1], slopes[n];
      for (int c = 0; c < n; ++c) x[c] = {u[c], c == direction ? T(1) : T(0)};
      for (int i = 0; i < m; ++i) q[i] = {p[i], T(0)};
      const typename Dual::V time = {systems::kDependsOnTime<System> ? static_cast<T>(t) : T(0),
                                     direction == n ? T(1) : T(0)};
      systems::evaluate_at<System, Dual>(time, x, q, slopes);
      T check = 0;
      for (int c = 0; c < n; ++c) check = scalar::add_finite_check<L>(check, slopes[c].slope);
      for (int c = 0; c < n; ++c) entries[c * stride] = L::add(check, slopes[c].slope);
    };
    for (int direction = 0; direction < n; ++direction) along(direction, by_state + direction, n);
    for (int c = 0; c < n; ++c) by_time[c] = 0;
    if constexpr (systems::kDependsOnTime<System>) along(n, by_time, 1);
  }
};

// Whatever fits: states to most_components, layers to most_width; with 0, no nets.
template <int most_components, int most_width, class T, class Terms = BuiltInTerms>
class ProgramDerivative {
 public:
  static constexpr int kMostComponents = most_components;
  static constexpr int kMostParameters = 0;
  static constexpr int kMostGathered = 64;
  static LOCKSTEP_HOST_DEVICE SharedWeights shared_weights(const Launch<T>&) { return {}; }
  LOCKSTEP_HOST_DEVICE ProgramDerivative(const Launch<T>& launch, const T*)
      : program_(launch.program), weights_(launch.weights) {}
  LOCKSTEP_HOST_DEVICE int components() const { return program_.components; }

  LOCKSTEP_HOST_DEVICE_CALL void evaluate(double t, const T* u, const T* p, T* du) const {
    evaluate_part(0, t, u, p, du);
    T addend[most_components];
    for (int i = 1; i < program_.parts; ++i) {
      evaluate_part(i, t, u, p, addend);
      for (int c = 0; c < program_.components; ++c) du[c] = ScalarLane<T>::add(du[c], addend[c]);
    }
  }

 private:
  LOCKSTEP_HOST_DEVICE_CALL void evaluate_part(int index, double t, const T* u, const T* p, T* du) const {
    const PartProgram& part = program_.part[index];
    p += part.first_parameter;
    if constexpr (Terms::kOwn) {
      if (part.system == kOwnTerm) return Terms::evaluate(index, t, u, p, du);
    } else {
      if (part.system >= 0) return evaluate_system(systems::AllSystems(), part.system, static_cast<T>(t), u, p, du);
    }
    if constexpr (most_width > 0) {
      T x[most_width], scratch[most_width];
      int filled = 0;
      const auto put = [&](T input) {
        x[filled] = bounded_input(part, weights_, filled, input);
        ++filled;
      };
      for (int c = 0; c < program_.components; ++c) put(u[c]);
      for (int i = 0; i < part.parameters; ++i) put(p[i]);
      if (part.with_time) put(static_cast<T>(t));
      lockstep::cuda::evaluate_net(part.net, weights_, x, scratch, du);
    }
  }

 public:
  // A built-in system by its place in the list.
  template <class... System>
  static LOCKSTEP_HOST_DEVICE void evaluate_system(systems::SystemList<System...>, int index, T t, const T* u,
                                                   const T* p, T* du) {
    int i = 0;
    (evaluate_if<System>(index == i++, t, u, p, du), ...);
  }

 private:
  template <class System>
  static LOCKSTEP_HOST_DEVICE void evaluate_if(bool wanted, T t, const T* u, const T* p, T* du) {
    if constexpr (System::kComponents <= most_components) {
      if (wanted) systems::evaluate_at<System, ScalarLane<T>>(t, u, p, du);
    }
  }

  const Program& program_;
  const T* weights_;
};

}  // namespace lockstep::ode::cuda
