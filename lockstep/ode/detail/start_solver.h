// Starts that are functions of parameters, and their derivatives: one step of Euler's method, of length 1 and from 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/ode/fit.h"
#include "lockstep/ode/sensitivity.h"

namespace lockstep::ode::detail {

// u = 0 + 1 g(p) is g to the bit, and derivatives of the solve by weights and parameters are those of g. Trajectories
// that share their parameters start alike: one step then stands for all of them.
class StartSolver {
 public:
  StartSolver(const GivenStarts& starts, const TrajectoryData& data);
  ~StartSolver();
  StartSolver(StartSolver&&) noexcept;
  StartSolver& operator=(StartSolver&&) noexcept;

  // At these weights of the right-hand side. Throws StartsNotFinite where one that is given is not finite.
  void evaluate(std::span<const double> weights);
  // Of the last evaluation.
  double start(std::size_t trajectory, std::size_t component) const;
  // The derivative by the right-hand side's weights, of the last `own()` of them, of what has these slopes by starts,
  // [place][component]: of `trajectories`, of all of them where there are none. Slopes by what is one start for all
  // are added in a tree that their number alone decides.
  std::span<const double> slopes(std::span<const double> weights, std::span<const double> by_start,
                                 std::span<const std::uint32_t> trajectories = {});
  std::size_t own() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;  // stays where it is: the solver's loss refers to it
};

// [trajectory][component][parameter]: of starts whose parameters are all the data's.
std::vector<double> starts_by_parameter(const GivenStarts& starts, const TrajectoryData& data);

}  // namespace lockstep::ode::detail
