// Starts that are functions of parameters, and their derivatives: one step of Euler's method, of length 1 and from 0.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/ode/fit.h"
#include "lockstep/ode/sensitivity.h"

namespace lockstep::ode::detail {

// u = 0 + 1 g(p) is g to the bit, and derivatives of the solve by weights and parameters are those of g.
class StartSolver {
 public:
  StartSolver(const GivenStarts& starts, const TrajectoryData& data);
  ~StartSolver();
  StartSolver(StartSolver&&) noexcept;
  StartSolver& operator=(StartSolver&&) noexcept;

  // [trajectory][component] at these weights of the right-hand side; valid until the next call. Throws
  // StartsNotFinite where one that is given is not.
  std::span<const double> evaluate(std::span<const double> weights);
  // The derivative by the right-hand side's weights of what has these slopes by starts, [trajectory][component]: of the
  // last ones, `own()` of them.
  std::span<const double> slopes(std::span<const double> weights, std::span<const double> by_start);
  std::size_t own() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;  // stays where it is: the solver's loss refers to it
};

// [trajectory][component][parameter]: of starts whose parameters are all the data's.
std::vector<double> starts_by_parameter(const GivenStarts& starts, const TrajectoryData& data);

}  // namespace lockstep::ode::detail
