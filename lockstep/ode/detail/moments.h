// Mean and spread of numbers that come one after the other.
#pragma once

#include <cmath>
#include <cstddef>

namespace lockstep::ode::detail {

// Mean and standard deviation by Welford's recurrence.
class Moments {
 public:
  void add(double x) {
    ++count_;
    const double before = x - mean_;
    mean_ += before / static_cast<double>(count_);
    squares_ += before * (x - mean_);
  }
  bool empty() const { return count_ == 0; }
  double mean() const { return mean_; }
  bool varies() const { return squares_ > 0; }
  // Of numbers that vary their deviation; else what they are, or 1 for 0.
  double size() const {
    if (squares_ > 0) return deviation();
    return mean_ == 0 ? 1 : std::fabs(mean_);
  }
  // 1 where nothing varies.
  double deviation() const { return squares_ > 0 ? std::sqrt(squares_ / static_cast<double>(count_)) : 1; }

 private:
  std::size_t count_ = 0;
  double mean_ = 0, squares_ = 0;
};

}  // namespace lockstep::ode::detail
