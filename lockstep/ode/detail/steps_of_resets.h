// Which steps solves with resets take: what refusals of others say.
#pragma once

namespace lockstep::ode::detail {

inline constexpr const char* kStepsOfResets = "each trajectory's own adaptive steps, which end where it is reset";

}  // namespace lockstep::ode::detail
