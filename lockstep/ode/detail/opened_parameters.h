// Trained parameters that resets read. How a solve varies with them goes through times and states of resets, as how it
// varies with a trajectory's own parameters does: so it is solved with them among these, and they are taken out again.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lockstep/ode/gradient.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/trained_parameters.h"

namespace lockstep::ode::detail {

// What train_parameters() makes of a function.
class WithTrained {
 public:
  virtual ~WithTrained() = default;
  virtual const Rhs& untrained() const = 0;
  virtual const std::vector<TrainedParameter>& trained() const = 0;
};

// The function that train_parameters() was given, or this one where it is none of its.
Rhs untrained(const Rhs& function);

// [row][parameter], of `given` [row][parameter that is not trained] and the values of those that are: one row where
// none is given.
std::vector<double> with_values(std::span<const double> given, std::size_t parameters,
                                std::span<const TrainedParameter> trained, std::span<const double> values);

class OpenedParameters {
 public:
  // Nothing where no reset of the problem reads trained parameters. Throws Error (invalid_argument) where the
  // right-hand side does not train the same ones.
  static std::optional<OpenedParameters> of(const Problem& problem);

  // The same problem with them among its parameters, at their starts. Keeps the others.
  Problem opened(Problem problem);
  // Problem::parameters of that where training has come to x [trained parameter], in the arithmetic of the solve.
  std::vector<double> parameters(std::span<const double> x, Precision precision) const;
  // Derivatives of the problem before it was opened: those by x behind those by other weights.
  void close(Gradients& gradients, std::span<const double> x, Precision precision) const;

  std::size_t count() const { return trained_.size(); }
  std::vector<double> starts() const;  // x at first

 private:
  OpenedParameters(Rhs untrained, std::vector<TrainedParameter> trained)
      : untrained_(std::move(untrained)), trained_(std::move(trained)) {}

  Rhs untrained_;
  std::vector<TrainedParameter> trained_;
  std::vector<double> given_;  // Problem::parameters before it was opened
};

}  // namespace lockstep::ode::detail
