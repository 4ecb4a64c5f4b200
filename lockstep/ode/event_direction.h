// Which passages of its function through zero an event counts, on the host and on devices.
#pragma once

namespace lockstep::ode {

enum class EventDirection { either, rising, falling };

}  // namespace lockstep::ode
