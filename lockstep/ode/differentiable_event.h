// Functions of events and resets that can be differentiated: what derivatives of the time at which one strikes, and of
// the state behind it, ask of them.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "lockstep/ode/detail/scalar_function.h"
#include "lockstep/ode/dual.h"

namespace lockstep::ode {

// Beside StateFunction, on functions that a TerminalEvent or a Reset may take where derivatives are wanted.
class DifferentiableEvent {
 public:
  virtual ~DifferentiableEvent() = default;
  // The derivatives of g(t, u, p): by_state [component] and by_parameter [parameter] are set, that by time returned.
  virtual double slopes(double t, std::span<const double> u, std::span<const double> p, std::span<double> by_state,
                        std::span<double> by_parameter) const = 0;
};

// The same on functions that may be a Reset::state.
class DifferentiableReset {
 public:
  virtual ~DifferentiableReset() = default;
  // Of sum over o of bar[o] r_o(t, u, p), bar [component]; the others as for an event.
  virtual double transpose(double t, std::span<const double> u, std::span<const double> p, std::span<const double> bar,
                           std::span<double> by_state, std::span<double> by_parameter) const = 0;
};

namespace detail {

// Arguments with the derivative by one of state, parameters and time, in this order.
template <std::size_t components, std::size_t parameter_count>
struct SeededArguments {
  Dual<double> time;
  std::array<Dual<double>, components> state;
  std::array<Dual<double>, parameter_count> parameters;
};
template <std::size_t components, std::size_t parameter_count>
SeededArguments<components, parameter_count> seed(double t, std::span<const double> u, std::span<const double> p,
                                                  std::size_t seeded) {
  SeededArguments<components, parameter_count> arguments;
  arguments.time = {t, components + parameter_count == seeded ? 1.0 : 0.0};
  for (std::size_t c = 0; c < components; ++c) arguments.state[c] = {u[c], c == seeded ? 1.0 : 0.0};
  for (std::size_t i = 0; i < parameter_count; ++i)
    arguments.parameters[i] = {p[i], components + i == seeded ? 1.0 : 0.0};
  return arguments;
}

template <std::size_t components, std::size_t parameter_count, class F>
class DifferentiableEventFunction final : public ScalarFunction<Event<components, parameter_count, F>>,
                                          public DifferentiableEvent {
 public:
  using ScalarFunction<Event<components, parameter_count, F>>::ScalarFunction;

  double slopes(double t, std::span<const double> u, std::span<const double> p, std::span<double> by_state,
                std::span<double> by_parameter) const override {
    for (std::size_t c = 0; c < components; ++c) by_state[c] = slope(t, u, p, c);
    for (std::size_t i = 0; i < parameter_count; ++i) by_parameter[i] = slope(t, u, p, components + i);
    return slope(t, u, p, components + parameter_count);
  }

 private:
  double slope(double t, std::span<const double> u, std::span<const double> p, std::size_t seeded) const {
    const auto [time, state, parameters] = seed<components, parameter_count>(t, u, p, seeded);
    return Dual<double>(this->body_->f(time, state, parameters)).slope;
  }
};

template <std::size_t components, std::size_t parameter_count, class F>
class DifferentiableResetFunction final : public ScalarFunction<Derivative<components, parameter_count, F>>,
                                          public DifferentiableReset {
 public:
  using ScalarFunction<Derivative<components, parameter_count, F>>::ScalarFunction;

  double transpose(double t, std::span<const double> u, std::span<const double> p, std::span<const double> bar,
                   std::span<double> by_state, std::span<double> by_parameter) const override {
    for (std::size_t c = 0; c < components; ++c) by_state[c] = slope(t, u, p, bar, c);
    for (std::size_t i = 0; i < parameter_count; ++i) by_parameter[i] = slope(t, u, p, bar, components + i);
    return slope(t, u, p, bar, components + parameter_count);
  }

 private:
  double slope(double t, std::span<const double> u, std::span<const double> p, std::span<const double> bar,
               std::size_t seeded) const {
    const auto [time, state, parameters] = seed<components, parameter_count>(t, u, p, seeded);
    std::array<Dual<double>, components> next;
    this->body_->f(time, state, parameters, next);
    double sum = 0;
    for (std::size_t c = 0; c < components; ++c) sum += bar[c] * next[c].slope;
    return sum;
  }
};

}  // namespace detail

// As function<components, parameters>() for a Reset::state, whose f(t, u, p, next) also takes Dual<double> for t and
// the elements of u, p and next.
template <std::size_t components, std::size_t parameters = 0, class F>
Rhs differentiable_reset_function(std::string name, F f, std::string version = {}) {
  return std::make_shared<detail::DifferentiableResetFunction<components, parameters, F>>(
      detail::FunctionName{"function", std::move(name), std::move(version)},
      detail::Derivative<components, parameters, F>{std::move(f)});
}

// As event_function(), for an f that also takes Dual<double> (dual.h) for t and the elements of u and p.
template <std::size_t components, std::size_t parameters = 0, class F>
Rhs differentiable_event_function(std::string name, F f, std::string version = {}) {
  return std::make_shared<detail::DifferentiableEventFunction<components, parameters, F>>(
      detail::FunctionName{"event", std::move(name), std::move(version)},
      detail::Event<components, parameters, F>{std::move(f)});
}

}  // namespace lockstep::ode
