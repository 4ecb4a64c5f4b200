// Your own right-hand side on a GPU: its body as text, compiled when a solve needs it.
#pragma once

#include <cstddef>
#include <string>

#include "lockstep/ode/state_function.h"

namespace lockstep::ode {

// A function that a GPU can run, too: `text` is the body that sets du[0 .. components) from t (a double), u and p, as
// in ode::function, and must compute what `function` computes. To be sure of that, keep the body in a file of its own
// and include it in both:
//
//   auto rhs = ode::with_cuda_source(
//       ode::function<3, 3>("lorenz", [](auto t, const auto& u, const auto& p, auto& du) {
//   #include "lorenz_body.inc"
//       }),
//       lorenz_text);  // the same file, read or embedded
//
// u, p and du are arrays of float or double, whichever the solve's precision is. The text may use arithmetic, local
// variables, loops, std::fma, std::sqrt, std::abs and the functions of lockstep::math (exp, log, tanh, sin, ...); there
// are no other headers. It is compiled without contraction, so that the bits are those of the CPU; a function of CUDA's
// own, such as tanhf, would change them. Compiling takes a second or two, once: the result stays in the user's cache
// (see docs/cuda.md), and needs NVIDIA's libnvrtc. On the CPU nothing changes.
//
// It may be one of a sum's parts (ode::sum): your own physics, given as text, plus a net. Or what a Reset makes of the
// state, to which the text then sets du.
Rhs with_cuda_source(Rhs function, std::string name, std::string text);

// The same for the function of a TerminalEvent or a Reset (ode::event_function): the text returns the event's value
// from t, u and p. Any right-hand side that a GPU runs may have such an event.
Rhs with_cuda_event_source(Rhs function, std::string name, std::string text);

// The same for a GPU alone: a solve on the CPU throws Error (unsupported).
Rhs cuda_source(std::string name, std::string text, std::size_t components, std::size_t parameters = 0);

}  // namespace lockstep::ode
