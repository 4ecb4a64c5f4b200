// Right-hand sides known to the compiler, as one thread evaluates them: a small net, a user's code.
#pragma once

#include "lockstep/kernels/cuda/thread_net.h"
#include "lockstep/ode/cuda/launch.h"

namespace lockstep::ode::cuda {

// Each has numbers_shared(launch), which of the weights a block's threads keep in shared memory (`count` from `first`),
// and is made from the launch and those weights.
struct SharedWeights {
  std::int64_t first = 0, count = 0;
};

// A net n - width - n with one hidden layer and no other inputs than the state.
template <int n, ActivationKind kind, class T>
class FoldedNetDerivative {
 public:
  static constexpr int kMostComponents = n;
  static constexpr int kMostParameters = 0;
  static constexpr int kMostGathered = 0;
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

// The Matrix of a function that has one.
template <class Function>
struct MatrixOf {};
template <class Function>
requires requires { typename Function::Matrix; }
struct MatrixOf<Function> {
  using Matrix = typename Function::Matrix;
};
// Function::evaluate(t, u, p, du) for numbers of T: code that came as text (kernel_source.h). Where that has a Matrix,
// Function::jacobian(t, u, p, by_state, by_time) too.
template <class Function, int components_, int parameters_, class T>
class SourceDerivative : public MatrixOf<Function> {
 public:
  static constexpr int kMostComponents = components_;
  static constexpr int kMostParameters = parameters_ <= 16 ? parameters_ : 0;  // more stay where they are
  static constexpr int kMostGathered = parameters_ <= 16 ? 0 : parameters_;
  static LOCKSTEP_HOST_DEVICE SharedWeights shared_weights(const Launch<T>&) { return {}; }
  LOCKSTEP_HOST_DEVICE SourceDerivative(const Launch<T>&, const T*) {}
  static LOCKSTEP_HOST_DEVICE constexpr int components() { return components_; }
  LOCKSTEP_HOST_DEVICE void evaluate(double t, const T* u, const T* p, T* du) const { Function::evaluate(t, u, p, du); }
  LOCKSTEP_HOST_DEVICE void jacobian(double t, const T* u, const T* p, T* by_state, T* by_time) const {
    Function::jacobian(t, u, p, by_state, by_time);
  }
};

// A derivative with an event that is compiled in, too: Event::value(t, u, p).
template <class Derivative, class Event, class T>
class WithEvent : public Derivative {
 public:
  using Derivative::Derivative;
  LOCKSTEP_HOST_DEVICE T event_value(double t, const T* u, const T* p) const { return Event::value(t, u, p); }
};

// What sums consist of beside nets where nothing else is compiled in: built-in systems. Terms that are have kOwn, and
// evaluate(part, t, u, p, du) for the parts of the program that are kOwnTerm.
struct BuiltInTerms {
  static constexpr bool kOwn = false;
};

}  // namespace lockstep::ode::cuda
