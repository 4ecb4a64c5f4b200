// How one trajectory ended and what it cost: plain data, for hosts and devices.
#pragma once

#include <cstdint>

namespace lockstep::ode {

// How a trajectory ended. The numbers are part of the file format.
enum class Status : std::uint8_t {
  success = 0,
  terminated = 1,      // by its event
  step_too_small = 2,  // the step, or the time between two resets, fell below the spacing of time itself
  not_finite = 3,      // the right-hand side or the state became NaN or infinite
  too_many_steps = 4,  // Options::max_steps reached
  outside_range = 5,   // left the net's training range (reserved for guards)
  cancelled = 6,       // stopped by the caller before its end
};
inline constexpr int kStatusCount = 7;

// What is known of one trajectory besides its saved states.
struct TrajectoryRecord {
  Status status = Status::cancelled;
  std::int32_t accepted = 0;
  std::int32_t rejected = 0;
  std::int32_t evaluations = 0;  // of the right-hand side
  double end_time = 0;           // where it stopped
};

}  // namespace lockstep::ode
