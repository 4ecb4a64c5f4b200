// A problem's own functions, as the CPU's scalar code evaluates them, in the place of the texts that a kernel would be
// compiled from: the host then runs the kernel's source for any problem, without a compiler. What the texts say is
// compared elsewhere (ode/cuda/*_test.cpp).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/kernels/tile.h"
#include "lockstep/ode/cuda/derivative.h"
#include "lockstep/ode/cuda/reset_trajectory.h"
#include "lockstep/ode/cuda/testing/host_runtime.h"
#include "lockstep/ode/problem.h"

namespace lockstep::ode::cuda {

// Of one trajectory: lane 0 of a tile.
template <class T>
class ScalarFunction {
 public:
  explicit ScalarFunction(const StateFunction& function)
      : function_(lower<T>(function, CpuTarget::scalar)),
        in_(function.components() * kTileLanes),
        parameters_(function.parameters() * kTileLanes),
        out_(function.outputs() * kTileLanes),
        time_(kTileLanes),
        workspace_(function_->workspace_bytes()) {}

  void evaluate(double t, const T* u, const T* p, T* out) {
    time_[0] = t;
    for (std::size_t at = 0; at < in_.size(); at += kTileLanes) in_[at] = u[at / kTileLanes];
    for (std::size_t at = 0; at < parameters_.size(); at += kTileLanes) parameters_[at] = p[at / kTileLanes];
    function_->evaluate({time_.data(), in_.data(), parameters_.data(), out_.data(), 1}, workspace_.data());
    for (std::size_t at = 0; at < out_.size(); at += kTileLanes) out[at / kTileLanes] = out_[at];
  }
  T value(double t, const T* u, const T* p) {
    T result;
    evaluate(t, u, p, &result);
    return result;
  }

 private:
  std::shared_ptr<const TileFunction<T>> function_;
  AlignedBuffer<T> in_, parameters_, out_;
  AlignedBuffer<double> time_;
  AlignedBuffer<std::byte> workspace_;
};

// Of the problem that the kernel runs for while this lives; one at a time.
template <class T>
class FunctionsInKernel {
 public:
  explicit FunctionsInKernel(const Problem& problem) : rhs_(*problem.rhs) {
    if (problem.event) event_.emplace(*problem.event->function);
    for (const Reset& reset : problem.resets)
      resets_.push_back({ScalarFunction<T>(*reset.function), ScalarFunction<T>(*reset.state), reset.direction});
    now_ = this;
  }
  ~FunctionsInKernel() { now_ = nullptr; }
  FunctionsInKernel(const FunctionsInKernel&) = delete;
  FunctionsInKernel& operator=(const FunctionsInKernel&) = delete;

  class Derivative {
   public:
    static constexpr int kMostComponents = cuda::kMostComponents;
    static constexpr int kMostParameters = 0;
    static constexpr int kMostGathered = 64;
    static SharedWeights shared_weights(const Launch<T>&) { return {}; }
    Derivative(const Launch<T>& launch, const T*) : components_(launch.program.components) {}
    int components() const { return components_; }
    void evaluate(double t, const T* u, const T* p, T* du) const { now_->rhs_.evaluate(t, u, p, du); }

   private:
    int components_;
  };
  struct Event {
    static T value(double t, const T* u, const T* p) { return now_->event_->value(t, u, p); }
  };
  template <int count>
  struct Resets {
    static constexpr int kCount = count;
    static EventDirection direction(int which) { return at(which).direction; }
    template <class>
    static T value(int which, double t, const T* u, const T* p) {
      return at(which).function.value(t, u, p);
    }
    template <class>
    static void state(int which, double t, const T* u, const T* p, T* next) {
      at(which).state.evaluate(t, u, p, next);
    }
    static auto& at(int which) { return now_->resets_[static_cast<std::size_t>(which)]; }
  };

  // The kernel round them; an event that does not come as text is the launch's.
  void run(HostDevice& device, const void* launch, bool event_is_text) const {
    if (event_is_text) {
      run_with_resets<WithEvent<Derivative, Event, T>>(device, launch);
    } else {
      run_with_resets<Derivative>(device, launch);
    }
  }

 private:
  struct ResettingFunctions {
    ScalarFunction<T> function, state;
    EventDirection direction;
  };

  template <class Derived>
  void run_with_resets(HostDevice& device, const void* launch) const {
    switch (resets_.size()) {
      case 0:
        return run_as<Derived>(device, launch);
      case 1:
        return run_as<WithResets<Derived, Resets<1>>>(device, launch);
      case 2:
        return run_as<WithResets<Derived, Resets<2>>>(device, launch);
      default:
        return run_as<WithResets<Derived, Resets<3>>>(device, launch);
    }
  }
  template <class Derived>
  static void run_as(HostDevice& device, const void* launch) {
    run_body<KernelBody<T, TableScheme<T>, Derived>>(device, "text", launch);
  }

  static inline FunctionsInKernel* now_ = nullptr;
  ScalarFunction<T> rhs_;
  std::optional<ScalarFunction<T>> event_;
  std::vector<ResettingFunctions> resets_;
};

}  // namespace lockstep::ode::cuda
