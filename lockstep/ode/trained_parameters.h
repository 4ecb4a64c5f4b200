// Parameters of a right-hand side that training finds, beside the weights of nets or alone: rate constants from data.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/ode/problem.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::ode {

// What training changes is a number x of about 1, whatever the parameter's size, so that one learning rate serves them
// all.
enum class ParameterLaw {
  linear,    // scale x
  positive,  // start exp(x), which keeps its sign: of quantities known to their order of magnitude
  bounded,   // between min and max, or on one side of one of them: see value(); x = 0 is the start
};

struct TrainedParameter {
  std::size_t parameter = 0;  // its place among those of the right-hand side
  double start = 0;
  ParameterLaw law = ParameterLaw::linear;
  std::optional<double> scale = {};  // of the linear law; none: |start|, or 1 where that is 0
  // Of the bounded law, at least one of them; the start lies between them.
  std::optional<double> min = {}, max = {};
  std::string unit = {};  // for people; empty where it is not known

  bool operator==(const TrainedParameter&) const = default;
  // Throws Error (invalid_argument), its fields beginning with `where`.
  void validate(const std::string& where) const;
  double first() const;  // x at the start
  // In the arithmetic of the training, T float or double.
  template <class T>
  T value(T x) const;
  template <class T>
  T slope(T x) const;  // of the value by x
};

// The same right-hand side with these for weights, one x each behind those it has; its parameters are the others, in
// their order. Derivatives need those of `rhs`. Throws Error (invalid_argument).
Rhs train_parameters(Rhs rhs, std::vector<TrainedParameter> parameters);
// Resets beside that right-hand side, whose functions read the same parameters: gradients (gradient.h) by the x of the
// right-hand side go through them too. Solves take them at their starts; solve_with_sensitivities() takes resets
// without, and these parameters among the trajectories'.
std::vector<Reset> train_parameters(std::vector<Reset> resets, const std::vector<TrainedParameter>& parameters);

// Whether a parameter moves a time at which the right-hand side jumps, which derivatives by it then do not see.
bool moves_a_jump(const StateFunction& rhs, std::size_t parameter);

extern template float TrainedParameter::value(float) const;
extern template double TrainedParameter::value(double) const;
extern template float TrainedParameter::slope(float) const;
extern template double TrainedParameter::slope(double) const;

}  // namespace lockstep::ode
