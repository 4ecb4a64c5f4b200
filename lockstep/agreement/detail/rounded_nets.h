// What a mode of tensor cores may do to a right-hand side, as perturbed members of a certificate show it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "lockstep/core/matrix_precision.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::agreement {

// The one that rounds more; of two that round alike the first.
constexpr MatrixPrecision coarser(MatrixPrecision a, MatrixPrecision b) {
  return factor_roundoff(b) > factor_roundoff(a) ? b : a;
}

// "bfloat16", for people.
std::string name_of(MatrixPrecision mode);

// The right-hand side with each weight w of its nets drawn from w (1 - 2u) to w (1 + 2u), u = factor_roundoff(mode):
// both factors of a product are rounded by up to u. A port that rounds weights and inputs has errors of this kind and
// 0.7 of their size: each product off by (1 + d)(1 + d') - 1, d and d' within u. Biases, scalings and built-in systems
// stay, as the mode leaves them. Throws Error (unsupported) where it is not made of built-in systems and plain nets
// alone, which no such mode runs either.
ode::Rhs with_moved_weights(const ode::Rhs& rhs, MatrixPrecision mode, std::uint64_t seed, std::size_t member);

}  // namespace lockstep::agreement
