// Do two solutions visit the same places equally often? Asked where their trajectories have parted: necessary for
// agreement, never sufficient, for a wrong equation may well have nearly the right attractor.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lockstep/agreement/scale.h"
#include "lockstep/agreement/spread.h"

namespace lockstep::agreement {

struct ComponentStatistics {
  double mean_z = 0;             // of the difference of time means, paired by trajectory
  double variance_z = 0;         // of the difference of time-mean squares about the mean
  double wasserstein = 0;        // distance of the two distributions, in units of the component's size
  double wasserstein_z = 0;      // in standard deviations of what swapping files trajectory by trajectory gives
  std::vector<double> values_a;  // of a sample of trajectories and times, in units of the size, ascending
  std::vector<double> values_b;
};

struct Statistics {
  std::size_t first_time = 0;  // save points from here on
  std::size_t times = 0;       // 0: trajectories did not part within the record: nothing to ask
  std::size_t trajectories = 0;
  double z_limit = 0;  // for any of the z-scores: one false alarm in a million comparisons
  // The distance of two random halves is the integral of a Gaussian process's absolute value, at worst that of a single
  // normal variable: mean 0.80, deviation 0.60. Eight deviations above its mean then come once in 10^8.
  double wasserstein_limit = 8;
  std::vector<ComponentStatistics> components;

  bool asked() const { return times > 0 && trajectories >= kLeastTrajectories; }
  bool agree() const;
  // z-scores of fewer means are not normal.
  static constexpr std::size_t kLeastTrajectories = 50;
};

class StatisticsCollector {
 public:
  StatisticsCollector(std::size_t trajectories, const Scale& scale, const Spread& spread);

  // Rows of one trajectory, [time][component], of float or double.
  template <class T>
  void add(std::size_t trajectory, std::span<const T> a, std::span<const T> b);
  Statistics finish() &&;

 private:
  struct Moments {
    double sum = 0;
    double squares = 0;
  };
  const Scale& scale_;
  std::size_t points_;
  double rounding_;  // 4 ulp of a typical state, in units of its size
  Statistics result_;
  std::size_t stride_ = 1;  // of trajectories sampled for distributions
  std::size_t time_stride_ = 1;
  std::vector<Moments> means_;                 // [component] of b's time mean less a's
  std::vector<Moments> variances_;             // [component]
  std::vector<std::vector<double>> sample_a_;  // [component][sampled trajectory][time]
  std::vector<std::vector<double>> sample_b_;
  std::size_t sampled_times_ = 0;
};

}  // namespace lockstep::agreement
