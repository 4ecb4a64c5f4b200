// Solves of ensembles whose arrays already lie on a GPU: queued on your own CUDA stream, nothing copied, nothing waited
// for. No header of CUDA is needed to include this one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/trajectory_record.h"

namespace lockstep::ode {

// An array on the device, in any layout: how far neighbours lie apart, in numbers. A stride of 0 shares one entry.
//   [trajectory][component]: {data, .trajectory = components, .component = 1}
//   [component][trajectory]: {data, .trajectory = 1, .component = trajectories}
template <class T>
struct DeviceArray {
  T* data = nullptr;
  std::int64_t trajectory = 0;
  std::int64_t component = 1;
  std::int64_t time = 0;  // of arrays with save points
};

// What one solve reads and writes; everything on the device. Inputs and outputs may not overlap, but that end_states
// may be initial_states with the same strides. Numbers of states and end_states have a place each. T is the state's
// number type, as in Options::precision.
template <class T>
struct DeviceEnsemble {
  std::int64_t trajectories = 0;
  DeviceArray<const T> initial_states;    // [trajectory][component]
  DeviceArray<const T> parameters;        // [trajectory][parameter]; no data where there are none
  DeviceArray<const double> start_times;  // [trajectory]
  DeviceArray<const double> end_times;    // [trajectory]; before the start time means backwards
  DeviceArray<const double> save_times;  // [trajectory][time], times one after another, in the direction of integration
  std::int32_t save_points = 0;          // within the span: nobody checks
  DeviceArray<T> states;                 // [trajectory][time][component]; NaN where a trajectory ended before
  DeviceArray<T> end_states;             // [trajectory][component]
  TrajectoryRecord* records = nullptr;   // [trajectory], or null: not wanted
};

namespace detail {
template <class T>
class DeviceSolverState;
}

// A right-hand side and options made ready on one device for one stream: the weights lie there, the kernels are loaded.
// After that enqueue() only queues: no allocation on the device, no wait, so that it can be captured in a CUDA graph,
// which may be launched for as long as the solver is there. In the engine cuda_gemm that graph cannot be a child of
// another (CUDA forbids it to those with conditional nodes).
template <class T>
class DeviceSolver {
 public:
  // `stream` is a cudaStream_t of that device (null: its default stream), not captured now; it must outlive the solver.
  // The device is options.device's, the first GPU where that says auto; shares are refused. T must be
  // options.precision's. The engine is the one that solve() takes; cuda_gemm takes memory for 16,384 trajectories at
  // once, or as many as fit. Uploads weights on the stream and waits for that. Throws Error (invalid_argument,
  // unsupported) as solve() does where there is no device, or no kernel for the problem; (unsupported) also for
  // cuda_gemm where the driver is older than CUDA 12.4: without graphs that repeat themselves it has to ask between
  // passes.
  DeviceSolver(Rhs rhs, const Options& options, void* stream, std::optional<TerminalEvent> event = std::nullopt);
  ~DeviceSolver();
  DeviceSolver(DeviceSolver&&) noexcept;
  DeviceSolver& operator=(DeviceSolver&&) noexcept;

  // Queues a solve on the stream and returns. The arrays must stay until it has run. The bits are solve()'s, but for
  // cuda_gemm's, which may depend on the number of trajectories: they move into fewer columns at other moments, and
  // cuBLASLt chooses by that number. It wants parameters of a component stride of 1. Trouble of a trajectory is in its
  // record; trouble of the device is an error of the stream, which cudaStreamSynchronize gives. Throws Error
  // (invalid_argument) naming the array that is missing or whose results share a place, (unsupported) where queueing
  // failed. One call at a time: two solves of one solver may not run at the same time on a device, which one stream
  // ensures.
  void enqueue(const DeviceEnsemble<T>& ensemble);

  std::string kernel() const;  // which runs it: a kernel of cuda_fused, or "cuda_gemm, " and how

 private:
  std::unique_ptr<detail::DeviceSolverState<T>> state_;
};

extern template class DeviceSolver<float>;
extern template class DeviceSolver<double>;

}  // namespace lockstep::ode
