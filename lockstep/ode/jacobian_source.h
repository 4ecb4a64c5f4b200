// The Jacobian of a right-hand side as text, for engines that compile their own version of it.
#pragma once

#include <string>

#include "lockstep/ode/linear_layout.h"

namespace lockstep::ode {

// The body of a function as CUDA C++, beside SourcePart's: it sets by_state [entry of the layout] and by_time
// [component], every one of them, from t, u and p, with the bits of jacobian_f32() or jacobian_f64().
struct JacobianSource {
  std::string text;
  LinearLayout layout;
};

}  // namespace lockstep::ode
