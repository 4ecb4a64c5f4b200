// Resets that are compiled into a kernel: Problem::resets as text (kernel_source.h).
#pragma once

#include "lockstep/kernels/lane/scalar_lane.h"
#include "lockstep/ode/event_direction.h"

namespace lockstep::ode::cuda {

// By their numbers. A Reset has value(t, u, p), of its function; state(t, u, p, next), what the state becomes; and
// kDirection.
template <class... Reset>
struct ResetList {
  static constexpr int kCount = sizeof...(Reset);

  static LOCKSTEP_HOST_DEVICE EventDirection direction(int which) {
    EventDirection found{};
    int i = 0;
    ((which == i++ ? void(found = Reset::kDirection) : void()), ...);
    return found;
  }
  template <class T>
  static LOCKSTEP_HOST_DEVICE T value(int which, double t, const T* u, const T* p) {
    T found = 0;
    int i = 0;
    ((which == i++ ? void(found = Reset::value(t, u, p)) : void()), ...);
    return found;
  }
  template <class T>
  static LOCKSTEP_HOST_DEVICE void state(int which, double t, const T* u, const T* p, T* next) {
    int i = 0;
    ((which == i++ ? Reset::state(t, u, p, next) : void()), ...);
  }
};

// A derivative with a ResetList, and with an event of its own or without.
template <class Derivative, class TheResets>
class WithResets : public Derivative {
 public:
  using Derivative::Derivative;
  using Resets = TheResets;
};

}  // namespace lockstep::ode::cuda
