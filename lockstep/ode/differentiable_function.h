// Your own code as a right-hand side with a derivative: by dual numbers, or with a transpose written by hand.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "lockstep/ode/detail/reverse_function.h"
#include "lockstep/ode/detail/reverse_function_with_net.h"

namespace lockstep::ode {

// As function(), for an f that also takes arrays of Dual<T> (dual.h) for u, p and du: it is called once more for each
// component and parameter to form the Jacobian, which suits a few of them. Write arithmetic as usual, and elementary
// functions unqualified after a using-declaration, so that those of dual.h are found:
//
//   auto pendulum = ode::differentiable_function<2, 1>("pendulum", [](auto t, const auto& u, const auto& p, auto& du) {
//     using lockstep::math::sin;
//     du[0] = u[1];
//     du[1] = -p[0] * sin(u[0]);
//   });
//
// The derivative by time is not taken: step sizes and times are constants of the record. Nor are second derivatives,
// which derivatives of solves by linearly implicit methods would need.
template <std::size_t components, std::size_t parameters = 0, class F>
Rhs differentiable_function(std::string name, F f, std::string version = {}) {
  using Body = detail::Derivative<components, parameters, F>;
  return std::make_shared<detail::DifferentiableFunction<Body, detail::ByDuals>>(
      detail::FunctionName{"function", std::move(name), std::move(version)}, Body{std::move(f)}, detail::ByDuals{});
}

// As function(), with the transposed derivative given: transpose(t, u, p, du_bar, u_bar, p_bar) adds
//   u_bar[c] += sum_o du_bar[o] d du[o] / d u[c]   and   p_bar[i] += sum_o du_bar[o] d du[o] / d p[i].
template <std::size_t components, std::size_t parameters = 0, class F, class Transpose>
Rhs function_with_transpose(std::string name, F f, Transpose transpose, std::string version = {}) {
  using Body = detail::Derivative<components, parameters, F>;
  using ByHand = detail::ByHand<Transpose>;
  return std::make_shared<detail::DifferentiableFunction<Body, ByHand>>(
      detail::FunctionName{"function", std::move(name), std::move(version)}, Body{std::move(f)},
      ByHand{std::move(transpose)});
}

// As function_with_net(), for an f that also takes dual numbers: f(t, u, p, net, du). The net's weights are trainable.
template <std::size_t components, std::size_t parameters = 0, class F>
Rhs differentiable_function_with_net(std::string name, Mlp mlp, F f, std::string version = {}) {
  using Body = detail::NetDerivative<components, parameters, detail::NoPreparation, F>;
  return std::make_shared<detail::DifferentiableFunctionWithNet<Body>>(
      detail::FunctionName{"function_with_net", std::move(name), std::move(version)}, std::move(mlp),
      Body{{}, std::move(f)});
}

// The same where prepare(t, u, p, in), on dual numbers too, sets the net's inputs.
template <std::size_t components, std::size_t parameters = 0, class Prepare, class F>
requires(!std::convertible_to<F, std::string>) Rhs
    differentiable_function_with_net(std::string name, Mlp mlp, Prepare prepare, F f, std::string version = {}) {
  using Body = detail::NetDerivative<components, parameters, Prepare, F>;
  return std::make_shared<detail::DifferentiableFunctionWithNet<Body>>(
      detail::FunctionName{"function_with_net", std::move(name), std::move(version)}, std::move(mlp),
      Body{std::move(prepare), std::move(f)});
}

}  // namespace lockstep::ode
