// The stops of a solve, in memory of its own.
#pragma once

#include <vector>

#include "lockstep/ode/detail/stop_times.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"

namespace lockstep::ode::detail {

class Stops {
 public:
  Stops() = default;
  // The times that the options and the right-hand side tell.
  Stops(const Problem& problem, const Options& options);

  bool empty() const { return time_.empty(); }
  // Valid while this object lives and does not move.
  StopTimes times() const {
    return {time_.data(), low_.data(), high_.data(), static_cast<std::int32_t>(time_.size()), fixed_};
  }

 private:
  std::vector<double> time_, low_, high_;
  bool fixed_ = false;
};

}  // namespace lockstep::ode::detail
