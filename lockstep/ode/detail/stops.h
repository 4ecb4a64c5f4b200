// The stops of a solve, in memory of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/ode/detail/stop_times.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/time_knot.h"

namespace lockstep::ode::detail {

class Stops {
 public:
  Stops() = default;
  // The times that the options and the right-hand side tell; of a common step size those of all trajectories.
  Stops(const Problem& problem, const Options& options);

  // Of all trajectories or none: a part of an ensemble solves to the bits of the whole.
  bool empty() const { return time_.empty(); }
  // Whether trajectories have times of their own, which parameters move.
  bool differ() const { return !first_.empty(); }
  // How many any `trajectories` on end have, at most; those that all share count once.
  std::size_t most(std::size_t trajectories) const;
  // Valid while this object lives and does not move.
  StopTimes times(std::size_t trajectory) const {
    const std::size_t first = differ() ? first_[trajectory] : 0;
    const std::size_t count = differ() ? first_[trajectory + 1] - first : time_.size();
    return {time_.data() + first, low_.data() + first, high_.data() + first, static_cast<std::int32_t>(count), fixed_};
  }

 private:
  void add(const Problem& problem, const Options& options, std::vector<TimeKnot> knots);
  // For a trajectory that has none where others have: with and without them it makes the same steps.
  void add_beyond_reach();

  std::vector<double> time_, low_, high_;
  std::vector<std::size_t> first_;  // [trajectory + 1] where they differ
  bool fixed_ = false;
};

}  // namespace lockstep::ode::detail
