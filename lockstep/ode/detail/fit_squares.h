// A fit of parameters and starts as linear least squares about where it is: the steps of Gauss-Newton and of Levenberg
// and Marquardt.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lockstep/core/run_control.h"
#include "lockstep/ode/detail/compared_rows.h"
#include "lockstep/ode/detail/least_squares.h"

namespace lockstep::ode::detail {

// A trajectory's start moves its own residuals alone, the parameters all of them: rows of each trajectory are reduced
// to a triangle once, and of these, for each damping, what stands for its start is eliminated before the rest.
class FitSquares {
 public:
  // Solves the rows, which are used up. `slopes` [trained parameter]: of the values by what is stepped; `units`
  // [component]: what starts are stepped in, none where there are none. `smallest`: what of a column's effect counts
  // as none; steps are damped by its square at least, so that what the data do not determine stays where it is.
  FitSquares(ComparedRows& compared, std::span<const double> slopes, std::span<const double> units, double smallest);

  double sum() const { return sum_; }  // of squares
  double freedom() const { return numbers_ - unknowns_; }

  struct Step {
    std::vector<double> parameters;  // [trained parameter]
    std::vector<double> starts;      // [trajectory][component], where there are any
    double fall = 0;                 // of the sum by the linear model, as a share of it
  };
  Step step(double damping) const;

 private:
  std::size_t starts_, trained_;
  double smallest_, sum_ = 0, numbers_ = 0, unknowns_ = 0;
  std::vector<Rows> triangles_;        // [trajectory], [by start..., by parameter..., residual]
  std::vector<double> start_lengths_;  // [trajectory][component], of columns; 1 where that is 0
  std::vector<double> lengths_;        // [trained parameter], likewise
};

}  // namespace lockstep::ode::detail
