// Your own code as a right-hand side or an event, written for one trajectory and run on tiles of them.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "lockstep/kernels/mlp/mlp.h"
#include "lockstep/ode/detail/function_with_net.h"
#include "lockstep/ode/detail/scalar_function.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::ode {

// du/dt = f(t, u, p): calls f(t, u, p, du), which sets du[0 .. components). t is a double; u[0 .. components),
// p[0 .. parameters) and du are indexed like arrays of float or double, whichever the solve's precision is, so take
// them as `const auto&` and `auto&`:
//
//   auto lorenz = ode::function<3, 3>("lorenz", [](auto t, const auto& u, const auto& p, auto& du) {
//     du[0] = p[0] * (u[1] - u[0]);
//     du[1] = u[0] * (p[1] - u[2]) - u[1];
//     du[2] = u[0] * u[1] - p[2] * u[2];
//   });
//
// The call is compiled for each instruction set and vectorised over 32 trajectories where its body allows: arithmetic,
// std::fma, comparisons and ?:, std::sqrt and std::abs (with -fno-math-errno -fno-trapping-math), loops of fixed
// length. A product and a sum are never fused behind your back; write std::fma where you want one rounding. For the
// same bits on every machine take elementary functions from lockstep/kernels/math/math.h rather than from <cmath>; exp
// and tanh are vectorised too, sin and cos (whose large arguments branch) are not.
//
// f is copied, shared by all threads and called as const. A trajectory for which it throws gets NaN and ends as
// Status::not_finite; its neighbours keep their bits. A solution file's provenance identifies the mathematics by
// `name` and `version`: change one of them when f changes, constants it captures included. If f accepts only double,
// a float32 solve throws Error (unsupported).
template <std::size_t components, std::size_t parameters = 0, class F>
Rhs function(std::string name, F f, std::string version = {}) {
  using Function = detail::ScalarFunction<detail::Derivative<components, parameters, F>>;
  return std::make_shared<Function>(detail::FunctionName{"function", std::move(name), std::move(version)},
                                    detail::Derivative<components, parameters, F>{std::move(f)});
}

// The function of a TerminalEvent: returns f(t, u, p), one number, whose sign change is the event.
template <std::size_t components, std::size_t parameters = 0, class F>
Rhs event_function(std::string name, F f, std::string version = {}) {
  using Function = detail::ScalarFunction<detail::Event<components, parameters, F>>;
  return std::make_shared<Function>(detail::FunctionName{"event", std::move(name), std::move(version)},
                                    detail::Event<components, parameters, F>{std::move(f)});
}

// Physics with a learned part: the net is evaluated at u (mlp.inputs() == components) for the whole tile, then
// f(t, u, p, net, du) sees its outputs as net[0 .. mlp.outputs()).
template <std::size_t components, std::size_t parameters = 0, class F>
Rhs function_with_net(std::string name, Mlp mlp, F f, std::string version = {}) {
  using Body = detail::NetDerivative<components, parameters, detail::NoPreparation, F>;
  return std::make_shared<detail::FunctionWithNet<Body>>(
      detail::FunctionName{"function_with_net", std::move(name), std::move(version)}, std::move(mlp),
      Body{{}, std::move(f)});
}

// The same where the net's inputs are not the state itself: prepare(t, u, p, in) sets in[0 .. mlp.inputs()).
template <std::size_t components, std::size_t parameters = 0, class Prepare, class F>
requires(!std::convertible_to<F, std::string>) Rhs
    function_with_net(std::string name, Mlp mlp, Prepare prepare, F f, std::string version = {}) {
  using Body = detail::NetDerivative<components, parameters, Prepare, F>;
  return std::make_shared<detail::FunctionWithNet<Body>>(
      detail::FunctionName{"function_with_net", std::move(name), std::move(version)}, std::move(mlp),
      Body{std::move(prepare), std::move(f)});
}

// For those who write their own loop over the tile: f(tile) with a TileView<float> or a TileView<double> (take it as
// `const auto&`) fills tile.out[component][lane] of all 32 lanes. It is compiled once, for the flags of your file. The
// rules of TileFunction::evaluate hold: lanes may not influence each other.
template <class F>
Rhs tile_function(std::size_t components, std::size_t parameters, std::string name, F f, std::string version = {}) {
  return std::make_shared<detail::UserTileFunction<F>>(
      detail::FunctionName{"tile_function", std::move(name), std::move(version)}, components, parameters, std::move(f));
}

}  // namespace lockstep::ode
