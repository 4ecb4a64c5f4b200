// The stops of a solve, in memory of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/ode/detail/stop_sides.h"
#include "lockstep/ode/detail/stop_times.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/time_knot.h"

namespace lockstep::ode::detail {

class Stops {
 public:
  Stops() = default;
  // The times that the options, the right-hand side and impulses tell; of a common step size those of all trajectories.
  Stops(const Problem& problem, const Options& options);

  // Of all trajectories or none: a part of an ensemble solves to the bits of the whole.
  bool empty() const { return time_.empty(); }
  // Whether trajectories have times of their own: parameters move them, or impulses are theirs.
  bool differ() const { return !first_.empty(); }
  // How many any `trajectories` on end have, at most; those that all share count once.
  std::size_t most(std::size_t trajectories) const;
  // The same of changes of states.
  std::size_t most_changes(std::size_t trajectories) const;
  // Valid while this object lives and does not move.
  StopTimes times(std::size_t trajectory) const {
    const std::size_t first = differ() ? first_[trajectory] : 0;
    const std::size_t count = differ() ? first_[trajectory + 1] - first : time_.size();
    StopTimes times{time_.data() + first, low_.data() + first, high_.data() + first, static_cast<std::int32_t>(count),
                    fixed_};
    if (!changes_.empty()) {
      times.first_change = first_change_.data() + first;
      times.changes = changes_.data();
    }
    return times;
  }
  // Whether the function jumps at a trajectory's stop, or may, and not only bends.
  bool jumps(std::size_t trajectory, std::int32_t stop) const {
    return jumps_[(differ() ? first_[trajectory] : 0) + static_cast<std::size_t>(stop)];
  }

 private:
  // Those of a trajectory, or of all, whose knots those with one of these sets of parameters are. `moves`: whether
  // parameters move some of the knots.
  struct Added {
    TimeSpan span;
    std::span<const std::span<const double>> parameters;
    std::span<const Impulse> impulses;
    bool moves;
  };
  void add(const Problem& problem, const Options& options, const Added& added);
  void add_near(const Problem& problem, const Options& options, const Added& added);  // where there are many
  std::vector<TimeKnot> repeated_knots(const Problem& problem, const Options& options, const Added& added,
                                       const KnotBounds& bounds) const;
  void add_knots(const Problem& problem, const Options& options, const std::vector<TimeKnot>& knots,
                 const Added& added);
  // Those from `first` on, but for changes of states.
  void drop_beyond(const TimeSpan& span, std::size_t first);
  void add_time(double time, double side, bool jumps);
  void join_last();  // with the one before it
  // For a trajectory that has none where others have: with and without them it makes the same steps.
  void add_beyond_reach();
  void end_changes();  // once all are added

  std::vector<double> time_, low_, high_;
  std::vector<bool> jumps_;
  std::vector<std::size_t> first_;          // [trajectory + 1] where they differ
  std::vector<std::int64_t> first_change_;  // [time + 1] where there are changes
  std::vector<StateChange> changes_;        // by time
  StopSides sides_;
  bool fixed_ = false;
};

}  // namespace lockstep::ode::detail
