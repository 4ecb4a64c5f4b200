// Where each trajectory's points stand in training data, whose trajectories may differ in length.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "lockstep/ode/fit.h"

namespace lockstep::ode::detail {

// Of data that are valid.
class DataRows {
 public:
  DataRows(const TrajectoryData& data, std::size_t components)
      : first_{0}, shares_times_(data.shares_times(components)) {
    for (std::size_t i = 0; i < data.trajectories; ++i) first_.push_back(first_.back() + data.points(i, components));
  }

  std::size_t trajectories() const { return first_.size() - 1; }
  std::size_t total() const { return first_.back(); }                             // points of all
  std::size_t first(std::size_t trajectory) const { return first_[trajectory]; }  // point of all
  std::size_t points(std::size_t trajectory) const { return first_[trajectory + 1] - first_[trajectory]; }
  const double* times(const TrajectoryData& data, std::size_t trajectory) const {
    return data.times.data() + (shares_times_ ? 0 : first(trajectory));
  }

 private:
  std::vector<std::size_t> first_;  // [trajectory], then the end
  bool shares_times_;
};

}  // namespace lockstep::ode::detail
