// Whole ensembles by DeviceGemm, their arrays in a stream's memory: for tests on the host.
#pragma once

#include <functional>

#include "lockstep/ode/cuda/batch_arrays.h"
#include "lockstep/ode/cuda/gemm/device_gemm.h"

namespace lockstep::ode::cuda {

// `around` is called with what queues the solve, and may do so more than once.
template <class T>
Solution solve_queued_as(const Problem& problem, const Options& options, const GemmTarget& target, void* stream,
                         const std::function<void(const std::function<void()>&)>& around) {
  Solution solution(options.precision, problem.trajectories(), problem.rhs->components(), problem.save_times,
                    problem.save_times_per_trajectory);
  MemorySink sink(solution);
  Fault fault;
  const auto own = target.runtime->borrow_stream(target.device, stream, fault);
  const detail::Stops stops_of_the_solver;
  BatchArrays<T> arrays(problem, stops_of_the_solver);
  arrays.allocate(*own, problem.trajectories());
  const Ensemble<T> ensemble = arrays.upload(*own, 0, problem.trajectories());
  DeviceGemm<T> gemm(problem, options, target, stream);
  around([&] { gemm.enqueue(ensemble); });
  arrays.download(*own);
  own->wait();
  Summary summary;
  arrays.deliver(sink, summary);
  return solution;
}

inline Solution solve_queued(
    const Problem& problem, const Options& options, const GemmTarget& target, void* stream = nullptr,
    const std::function<void(const std::function<void()>&)>& around = [](const auto& enqueue) { enqueue(); }) {
  return options.precision == Precision::f32 ? solve_queued_as<float>(problem, options, target, stream, around)
                                             : solve_queued_as<double>(problem, options, target, stream, around);
}

}  // namespace lockstep::ode::cuda
