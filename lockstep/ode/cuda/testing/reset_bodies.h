// Resets in both their forms, as the CPU engine runs them and as a kernel compiled from their texts would, each from
// one body.
#pragma once

#include <string>

#include "lockstep/ode/cuda/reset_trajectory.h"
#include "lockstep/ode/cuda_source.h"
#include "lockstep/ode/function.h"
#include "lockstep/ode/problem.h"

namespace lockstep::ode::cuda {

// A struct of that name whose set() has the body of a right-hand side or a new state, and whose text is that body.
#define LOCKSTEP_SETS(Name, ...)                                                                         \
  struct Name {                                                                                          \
    static constexpr const char* kText = #__VA_ARGS__;                                                   \
    template <class U, class P, class Du>                                                                \
    static void set([[maybe_unused]] double t, [[maybe_unused]] const U& u, [[maybe_unused]] const P& p, \
                    [[maybe_unused]] Du& du) {                                                           \
      __VA_ARGS__                                                                                        \
    }                                                                                                    \
    template <class T>                                                                                   \
    static void evaluate(double t, const T* u, const T* p, T* du) {                                      \
      set(t, u, p, du);                                                                                  \
    }                                                                                                    \
  }
// The same of a function of one number.
#define LOCKSTEP_RETURNS(Name, ...)                                                                        \
  struct Name {                                                                                            \
    static constexpr const char* kText = #__VA_ARGS__;                                                     \
    template <class U, class P>                                                                            \
    static auto get([[maybe_unused]] double t, [[maybe_unused]] const U& u, [[maybe_unused]] const P& p) { \
      __VA_ARGS__                                                                                          \
    }                                                                                                      \
    template <class T>                                                                                     \
    static T value(double t, const T* u, const T* p) {                                                     \
      return static_cast<T>(get(t, u, p));                                                                 \
    }                                                                                                      \
  }

template <class Body, std::size_t components, std::size_t parameters>
Rhs rhs_of(const char* name) {
  return with_cuda_source(function<components, parameters>(
                              name, [](double t, const auto& u, const auto& p, auto& du) { Body::set(t, u, p, du); }),
                          name, Body::kText);
}
template <class Body, std::size_t components, std::size_t parameters>
Rhs event_of(const char* name) {
  return with_cuda_event_source(event_function<components, parameters>(
                                    name, [](double t, const auto& u, const auto& p) { return Body::get(t, u, p); }),
                                name, Body::kText);
}

// A reset as a kernel holds it.
template <class Function, class State, EventDirection direction>
struct ResetInKernel {
  static constexpr EventDirection kDirection = direction;
  template <class T>
  static T value(double t, const T* u, const T* p) {
    return Function::value(t, u, p);
  }
  template <class T>
  static void state(double t, const T* u, const T* p, T* next) {
    State::evaluate(t, u, p, next);
  }
  template <std::size_t components, std::size_t parameters>
  static Reset reset() {
    return {event_of<Function, components, parameters>("strikes"), rhs_of<State, components, parameters>("becomes"),
            direction};
  }
};
// What a component's threshold is made into.
template <int component, int quarters>
struct Reaches {
  template <class T>
  static T value(double, const T* u, const T*) {
    return u[component] - T(quarters) / 4;
  }
};

}  // namespace lockstep::ode::cuda
