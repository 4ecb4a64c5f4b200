// Components that float32 holds still: what each step adds to them is less than half the spacing of float32's numbers
// there, and is lost in the sum, while no status tells of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/solution.h"

namespace lockstep::ode {

// Of one component, the example that lost most.
struct Standstill {
  std::size_t component = 0;
  double state = 0;    // where it stands
  double rate = 0;     // its derivative by time there
  double step = 0;     // a mean step of that trajectory
  double spacing = 0;  // of float32 there
  double lost = 0;     // rate times span
};

// Hands everything on to another sink, and keeps how some of the trajectories ended.
class EndSample : public SolutionSink {
 public:
  // `inner` and `problem` must outlive this sink.
  EndSample(SolutionSink& inner, const Problem& problem, Precision precision);

  SolutionBlock acquire(std::size_t first, std::size_t count) override { return inner_.acquire(first, count); }
  void commit(const SolutionBlock& block) override;
  const std::atomic<std::uint32_t>* wishes() const override { return inner_.wishes(); }
  void hand_in(const SolutionBlock& block, std::span<const std::size_t> rows) override { inner_.hand_in(block, rows); }

  // After the solve: a component stands still where its rate, at the start and at the end of a trajectory, times a mean
  // step is lost in the sum, and times the span exceeds ten tolerances, or 64 spacings where steps are fixed. None in
  // float64, and where the right-hand side cannot be evaluated on this machine's CPU.
  std::vector<Standstill> standstills(const Options& options) const;

 private:
  struct End {
    std::size_t trajectory;
    TrajectoryRecord record;
    std::vector<float> state;  // [component]
  };

  SolutionSink& inner_;
  const Problem& problem_;
  Precision precision_;
  std::size_t stride_;
  std::mutex mutex_;
  std::vector<End> ends_;
};

}  // namespace lockstep::ode
