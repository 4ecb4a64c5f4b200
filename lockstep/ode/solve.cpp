#include "lockstep/ode/solve.h"

#include <algorithm>
#include <chrono>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel.h"
#include "lockstep/ode/cpu/engine.h"

namespace lockstep::ode {
namespace {

// Writes into a Solution; blocks are its own memory, so there is nothing to do when one is finished.
class MemorySink : public SolutionSink {
 public:
  explicit MemorySink(Solution& solution) : solution_(solution) {}
  SolutionBlock acquire(std::size_t first, std::size_t count) override { return solution_.block(first, count); }
  void commit(const SolutionBlock&) override {}

 private:
  Solution& solution_;
};

template <class T>
Summary advance(const Problem& problem, const Options& options, const cpu::EnginePlan& plan, SolutionSink& sink,
                const RunControl& control) {
  if (options.control == StepControl::common) {
    return cpu::advance_together<T>(problem, options, plan, sink, control);
  }
  return cpu::advance_each<T>(problem, options, plan, sink, control);
}

}  // namespace

cpu::EnginePlan cpu::plan(const Problem& problem, const Options& options) {
  const std::size_t tiles = std::max<std::size_t>(1, (problem.trajectories() + kTileLanes - 1) / kTileLanes);
  const int wanted = options.threads == 0 ? available_threads() : options.threads;
  return {options.cpu_target.value_or(best_cpu_target()),
          static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(wanted), tiles))};
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
  const auto begin = std::chrono::steady_clock::now();
  options.validate();
  problem.validate();
  const cpu::EnginePlan plan = cpu::plan(problem, options);
  Summary summary = options.precision == Precision::f32 ? advance<float>(problem, options, plan, sink, control)
                                                        : advance<double>(problem, options, plan, sink, control);
  summary.engine = "cpu";
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
  options.validate();
  problem.validate();
  Solution solution(options.precision, problem.trajectories(), problem.rhs->components(), problem.save_times,
                    problem.save_times_per_trajectory);
  MemorySink sink(solution);
  solve(problem, options, sink, control);
  return solution;
}

}  // namespace lockstep::ode
