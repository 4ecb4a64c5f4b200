// What one launch reads and writes: plain data, the same for the device's kernels and for the loop that stands in for
// them on the host.
#pragma once

#include <cstdint>

#include "lockstep/ode/solution.h"

namespace lockstep::ode::cuda {

// A batch of trajectories. Every pointer is the device's; T is the state's number type. Strides are in numbers, 0 where
// all trajectories share one entry.
template <class T>
struct Ensemble {
  std::int64_t count;
  const T* initial_states;  // [trajectory][component]
  const T* parameters;      // [trajectory][parameter]
  std::int64_t parameter_stride;
  const double* start_times;  // [trajectory]
  std::int64_t start_stride;
  const double* end_times;  // [trajectory]
  std::int64_t end_stride;
  const double* save_times;  // [trajectory][time]
  std::int64_t save_stride;
  std::int32_t save_points;
  T* states;                  // [trajectory][time][component]
  T* end_states;              // [trajectory][component]
  TrajectoryRecord* records;  // [trajectory]
};

// The rules of step control, as in Options.
template <class T>
struct StepRules {
  T rtol, atol;
  double rtol_f64, atol_f64;
  double max_step;      // infinity without one
  double initial_step;  // 0: chosen
  double dt;            // of fixed steps
  bool fixed;
  std::int64_t max_steps;
  float beta1, beta2;
};

// A terminal event: a component minus a threshold crosses zero. component < 0: none.
template <class T>
struct Threshold {
  std::int32_t component;
  bool rising, falling;  // directions that count
  T value;
};

}  // namespace lockstep::ode::cuda
