#include "lockstep/ode/solve.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/thread_count.h"
#include "lockstep/ode/cpu/engine.h"
#include "lockstep/ode/cuda/engine.h"
#include "lockstep/ode/cuda/gemm/gemm_engine.h"
#include "lockstep/ode/cuda/load.h"
#include "lockstep/ode/detail/device_plan.h"

namespace lockstep::ode {
namespace {

template <class T>
Summary advance(const Problem& problem, const Options& options, const cpu::EnginePlan& plan, SolutionSink& sink,
                const RunControl& control) {
  if (options.control == StepControl::common) {
    return cpu::advance_together<T>(problem, options, plan, sink, control);
  }
  return cpu::advance_each<T>(problem, options, plan, sink, control);
}

// A part of the ensemble's blocks, handed on as the whole's.
class PartSink : public SolutionSink {
 public:
  PartSink(SolutionSink& whole, std::size_t first) : whole_(whole), first_(first) {}
  SolutionBlock acquire(std::size_t first, std::size_t count) override {
    SolutionBlock block = whole_.acquire(first_ + first, count);
    block.first = first;
    return block;
  }
  void commit(const SolutionBlock& block) override {
    SolutionBlock moved = block;
    moved.first += first_;
    whole_.commit(moved);
  }
  const std::atomic<std::uint32_t>* wishes() const override { return whole_.wishes(); }
  void hand_in(const SolutionBlock& block, std::span<const std::size_t> rows) override {
    SolutionBlock moved = block;
    moved.first += first_;
    whole_.hand_in(moved, rows);
  }

 private:
  SolutionSink& whole_;
  std::size_t first_;
};

template <class T>
Summary advance_part(const Problem& problem, const Options& options, const detail::DevicePart& part, SolutionSink& sink,
                     const RunControl& control, int devices) {
  if (part.kind == DeviceShare::Kind::cpu)
    return advance<T>(problem, options, cpu::plan(problem, options), sink, control);
  cuda::DeviceTarget target;
  target.runtime = cuda::load_runtime().runtime;
  target.device = part.device;
  target.memory_budget = cuda::memory_budget(devices);
  if (part.engine == EngineChoice::cuda_gemm) {
    const cuda::GemmTarget gemm{target.runtime, cuda::load_gemm_runtime(), part.device, target.memory_budget};
    return cuda::advance_gemm<T>(problem, options, gemm, sink, control);
  }
  return cuda::advance<T>(problem, options, target, sink, control);
}

// Each part on a thread of its own; what one throws stops the others.
template <class T>
Summary advance_parts(const Problem& problem, const Options& options, const std::vector<detail::DevicePart>& parts,
                      SolutionSink& sink, const RunControl& control) {
  const auto on_device = [](const detail::DevicePart& part) { return part.kind == DeviceShare::Kind::cuda; };
  const auto devices = static_cast<int>(std::count_if(parts.begin(), parts.end(), on_device));
  if (parts.size() == 1) return advance_part<T>(problem, options, parts[0], sink, control, devices);
  CancelToken stop;
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<std::size_t> done(parts.size());
  Summary sum;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto work = [&, i] {
      const StandardArithmetic arithmetic;
      RunControl own;
      own.cancel = &stop;
      own.progress = [&, i](std::size_t part_done, std::size_t) {
        const std::lock_guard lock(mutex);
        if (control.cancelled()) stop.request();
        done[i] = part_done;
        std::size_t all = 0;
        for (const std::size_t count : done) all += count;
        if (control.progress) control.progress(all, problem.trajectories());
      };
      try {
        PartSink part_sink(sink, parts[i].first);
        const Problem part = problem.part(parts[i].first, parts[i].count);
        const Summary summary = advance_part<T>(part, options, parts[i], part_sink, own, devices);
        const std::lock_guard lock(mutex);
        sum.add(summary);
        if (!summary.kernel.empty()) sum.kernel += (sum.kernel.empty() ? "" : "; ") + summary.kernel;
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        stop.request();
      }
    };
    try {
      threads.push_back(start_thread(work, "one for each device"));
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      stop.request();
    }
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  return sum;
}

}  // namespace

cpu::EnginePlan cpu::plan(const Problem& problem, const Options& options) {
  const std::size_t tiles = std::max<std::size_t>(1, (problem.trajectories() + kTileLanes - 1) / kTileLanes);
  const CpuTarget target = options.cpu_target.value_or(best_cpu_target());
  if (tiles == 1) return {target, 1};  // to ask the system for threads takes as long as some steps
  const int wanted = chosen_threads(options.threads, "options.threads");
  return {target, static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(wanted), tiles))};
}

void Summary::add(const TrajectoryRecord& record) {
  ++count_of[static_cast<std::size_t>(record.status)];
  accepted += record.accepted;
  rejected += record.rejected;
  evaluations += record.evaluations;
}

void Summary::add(const Summary& part) {
  for (std::size_t i = 0; i < count_of.size(); ++i) count_of[i] += part.count_of[i];
  accepted += part.accepted;
  rejected += part.rejected;
  evaluations += part.evaluations;
}

Summary solve(const Problem& problem, const Options& options, SolutionSink& sink, const RunControl& control) {
  const StandardArithmetic arithmetic;
  const auto begin = std::chrono::steady_clock::now();
  validate(problem, options);
  const cpu::EnginePlan plan = cpu::plan(problem, options);
  const detail::DevicePlan devices = detail::plan_devices(problem, options);
  Summary summary = options.precision == Precision::f32
                        ? advance_parts<float>(problem, options, devices.parts, sink, control)
                        : advance_parts<double>(problem, options, devices.parts, sink, control);
  summary.engine = devices.engine;
  summary.device = devices.device;
  summary.reason = devices.reason;
  summary.cpu_target = to_string(plan.target);
  summary.threads = plan.threads;
  summary.cancelled = control.cancelled();
  // Trajectories that no thread had taken up when the solve was stopped.
  std::size_t seen = 0;
  for (const std::size_t count : summary.count_of) seen += count;
  summary.count_of[static_cast<std::size_t>(Status::cancelled)] += problem.trajectories() - seen;
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return summary;
}

Solution solve(const Problem& problem, const Options& options, const RunControl& control) {
  const StandardArithmetic arithmetic;
  validate(problem, options);
  Solution solution(options.precision, problem.trajectories(), problem.rhs->components(), problem.save_times,
                    problem.save_times_per_trajectory);
  if (problem.keep_events) solution.keep_events();
  MemorySink sink(solution);
  solve(problem, options, sink, control);
  return solution;
}

void require_devices(const Problem& problem, const Options& options) {
  const bool takes_a_gpu =
      options.matrix_precision != MatrixPrecision::f32 || options.engine != EngineChoice::automatic;
  if (!options.device.is_automatic() || takes_a_gpu) detail::plan_devices(problem, options);
}

}  // namespace lockstep::ode
