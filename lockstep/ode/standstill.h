// What a solve may have lost while no status tells of it. Components that float32 holds still: what each step adds to
// them is less than half the spacing of float32's numbers there, and vanishes in the sum. And those that are small
// beside their own tolerance, whose errors no step minds.
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

// A component that is nowhere ten times its absolute tolerance, and not 0 throughout.
struct SmallComponent {
  std::size_t component = 0;
  double largest = 0;  // magnitude, over all trajectories at their starts, save points and ends
  double atol = 0;
};

// A component that was large once and ends below its absolute tolerance, and below what float32 resolves beside another
// component, by a linearly implicit method: an error may change its sign, which a step much longer than its decay does
// not undo.
struct FadedComponent {
  std::size_t component = 0;
  double end = 0;  // magnitude, the largest of such trajectories
  double atol = 0;
};

// Hands everything on to another sink, and keeps how some of the trajectories ended and how large components were.
class EndSample : public SolutionSink {
 public:
  // `inner`, `problem` and `options` must outlive this sink.
  EndSample(SolutionSink& inner, const Problem& problem, const Options& options);

  SolutionBlock acquire(std::size_t first, std::size_t count) override { return inner_.acquire(first, count); }
  void commit(const SolutionBlock& block) override;
  const std::atomic<std::uint32_t>* wishes() const override { return inner_.wishes(); }
  void hand_in(const SolutionBlock& block, std::span<const std::size_t> rows) override { inner_.hand_in(block, rows); }

  // After the solve: a component stands still where its rate, at the start and at the end of a trajectory, times a mean
  // step is lost in the sum, and times the span exceeds ten tolerances, or 64 spacings where steps are fixed. None in
  // float64, and where the right-hand side cannot be evaluated on this machine's CPU.
  std::vector<Standstill> standstills() const;
  // After the solve: none where steps are fixed, or where a mean step at a trajectory's first rate goes that far: it
  // may have been large between its save points.
  std::vector<SmallComponent> small_components() const;
  // After the solve, of trajectories that ended well; none in float64, and where steps are fixed.
  std::vector<FadedComponent> faded_components() const;

  struct End {
    std::size_t trajectory;
    TrajectoryRecord record;
    std::vector<double> state;  // [component]
  };
  // Of the trajectories that were looked at and ended well the one of the most attempts; null without any.
  const End* longest() const;
  const Problem& problem() const { return problem_; }
  const Options& options() const { return options_; }

 private:
  struct Small {
    std::size_t component;
    double largest;
  };

  template <class T>
  void look_at(const SolutionBlock& block);
  void look_at(std::span<Small> small, const auto* states, std::size_t count) const;
  double bound(std::size_t component) const;
  bool goes_far(std::size_t component) const;

  SolutionSink& inner_;
  const Problem& problem_;
  const Options& options_;
  std::size_t stride_;
  std::mutex mutex_;
  std::vector<End> ends_;
  std::vector<Small> small_;  // not known to be large yet
};

}  // namespace lockstep::ode
