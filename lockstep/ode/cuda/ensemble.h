// What one launch reads and writes: plain data, the same for the device's kernels and for the loop that stands in for
// them on the host.
#pragma once

#include <cstdint>

#include "lockstep/ode/detail/stop_times.h"
#include "lockstep/ode/trajectory_record.h"

namespace lockstep::ode::cuda {

// How far apart neighbours lie in an array of a state for each trajectory (and time), in numbers.
struct StateStrides {
  std::int64_t trajectory = 0, time = 0, component = 1;
};

// A batch of trajectories. Every pointer is the device's; T is the state's number type. Strides are in numbers, 0 where
// all trajectories share one entry.
template <class T>
struct Ensemble {
  std::int64_t count;
  const T* initial_states;
  StateStrides initial_strides;
  const T* parameters;
  std::int64_t parameter_stride;     // from one trajectory to the next
  std::int64_t parameter_component;  // from one parameter to the next
  std::int32_t gathered_parameters;  // how many there are, where that is not 1
  const double* start_times;         // [trajectory]
  std::int64_t start_stride;
  const double* end_times;  // [trajectory]
  std::int64_t end_stride;
  const double* save_times;  // [trajectory][time]
  std::int64_t save_stride;
  std::int32_t save_points;
  T* states;
  StateStrides state_strides;
  T* end_states;
  StateStrides end_strides;
  TrajectoryRecord* records;  // [trajectory]; null: not wanted
  // Where steps end whatever their error: a count of 0 of none, else each trajectory's are those from its entry of
  // first_stop to the next one.
  detail::StopTimes stops{};
  const std::int64_t* first_stop = nullptr;  // [trajectory + 1]
  std::int64_t stop_stride = 0;
};

inline constexpr int kMostComponents = 64;  // of a state, in any kernel

// The rules of step control, as in Options.
template <class T>
struct StepRules {
  T rtol, atol[kMostComponents];  // [component]
  double rtol_f64, atol_f64[kMostComponents];
  double max_step;      // infinity without one
  double initial_step;  // 0: chosen
  double dt;            // of fixed steps
  bool fixed;
  std::int64_t max_steps;
  float beta1, beta2;
};

// A terminal event: a function of the state crosses zero in a direction that counts. The function is a component less a
// value; or 1 while the first components lie within bounds and -1 outside; or one that is compiled into the kernel.
template <class T>
struct EventRule {
  std::int32_t component;  // -1: not the first kind
  std::int32_t bounded;    // components that have bounds; 0: not the second kind
  bool rising, falling;
  T value;
  T minimum[kMostComponents], maximum[kMostComponents];
};

}  // namespace lockstep::ode::cuda
