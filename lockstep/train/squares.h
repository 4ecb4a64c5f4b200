// What is known of a loss that is a sum of squares, beyond its value and gradient: its residuals as linear functions.
#pragma once

#include <functional>
#include <vector>

namespace lockstep::train {

// By such a model, with J the residuals' derivatives and D the lengths of J's columns: d that makes
// |J d - r|^2 + damping |D d|^2 least, r the residuals' negatives (Nocedal & Wright, "Numerical Optimization", 2nd ed.,
// eq. 10.37).
struct SquaresStep {
  std::vector<double> step;  // [parameter]
  double fall = 0;           // what |J d - r|^2 is less than |r|^2, as a share of that
};

struct SquaresModel {
  double freedom = 0;  // residuals less the unknowns that they determine, above 0
  // damping >= 0; 0 is the Gauss-Newton step.
  std::function<SquaresStep(double damping)> step;
};

}  // namespace lockstep::train
