// A problem whose solution is known from outside, and what a correct solve may differ from it by.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/ode/solve.h"

namespace lockstep::validation {

inline ode::Options tight(const std::string& method, double tolerance) {
  return {.method = method, .rtol = tolerance, .atol = tolerance, .max_steps = 20'000'000, .precision = Precision::f64};
}

// [trajectory][saved times, then the end][component].
inline std::vector<double> all_states(const ode::Solution& solution) {
  std::vector<double> states;
  for (std::size_t i = 0; i < solution.trajectories(); ++i) {
    EXPECT_EQ(solution.record(i).status, ode::Status::success);
    for (std::size_t k = 0; k <= solution.save_points(); ++k) {
      for (std::size_t c = 0; c < solution.components(); ++c) {
        states.push_back(k < solution.save_points() ? solution.state(i, k, c) : solution.end_state(i, c));
      }
    }
  }
  return states;
}

inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

// How far an error may have grown: by how much a displacement of the initial states is magnified.
inline double growth(const ode::Problem& problem) {
  ode::Problem displaced = problem;
  constexpr double kDisplacement = 1e-7;
  for (std::size_t i = 0; i < displaced.initial_states.size(); ++i) {
    displaced.initial_states[i] += i % 2 == 0 ? kDisplacement : -kDisplacement;
  }
  const ode::Options options = tight("dop853", 1e-12);
  return largest_difference(all_states(ode::solve(problem, options)), all_states(ode::solve(displaced, options))) /
         kDisplacement;
}

// A problem and what all_states() of its solution should be.
class Reference {
 public:
  Reference(ode::Problem problem, std::vector<double> states)
      : problem_(std::move(problem)), states_(std::move(states)), growth_(std::max(1.0, growth(problem_))) {}

  // What a correct solve may differ from the truth by: in each step a local error, of which the RMS over n components
  // is at most the tolerance, and a few roundings of numbers of the state's size; all magnified by the growth.
  void expect_within_bound(const ode::Options& options) const {
    const ode::Solution solution = ode::solve(problem_, options);
    const double local = std::sqrt(double(solution.components())) * (options.atol + options.rtol * size());
    EXPECT_LT(largest_difference(all_states(solution), states_),
              growth_ * (steps_of(solution) * local + rounding_of(solution)))
        << options.method << " at " << options.rtol << ", " << to_string(options.precision);
  }

  // That bound is the worst case. The sharper claim: errors are proportional to the tolerance, so one 1e4 times tighter
  // must bring the solution closer by 1e4, less a factor for how unevenly steps fall and for errors that happen to
  // cancel at the time looked at; down to what rounding adds up to, which is all that a state at rest is left with.
  void expect_convergence(double unevenness = 10) const {
    for (const char* method : {"dop853", "tsit5", "dopri5"}) {
      const ode::Solution coarse = ode::solve(problem_, tight(method, 1e-8));
      const ode::Solution fine = ode::solve(problem_, tight(method, 1e-12));
      const double error = largest_difference(all_states(coarse), states_);
      EXPECT_LT(largest_difference(all_states(fine), states_),
                std::max(unevenness * 1e-4 * error, growth_ * rounding_of(fine)))
          << method;
      expect_within_bound(tight(method, 1e-12));
    }
  }

 private:
  double size() const {
    double largest = 0;
    for (const double u : states_) largest = std::max(largest, std::abs(u));
    return largest;
  }
  static double steps_of(const ode::Solution& solution) {
    double most = 0;
    for (const ode::TrajectoryRecord& record : solution.records()) most = std::max(most, double(record.accepted));
    return most;
  }
  // A few roundings of numbers of the state's size in each step.
  double rounding_of(const ode::Solution& solution) const {
    return steps_of(solution) * 4 * size() * (solution.precision() == Precision::f64 ? 0x1p-53 : 0x1p-24);
  }

  ode::Problem problem_;
  std::vector<double> states_;
  double growth_;
};

}  // namespace lockstep::validation
