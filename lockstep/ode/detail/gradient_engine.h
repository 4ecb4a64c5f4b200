// Runs the tiles of an ensemble forward and back and adds up their gradients; one for each number type.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/ode/gradient.h"

namespace lockstep::ode::detail {

class GradientEngine {
 public:
  GradientEngine(Problem problem, Options options, Loss loss, GradientOptions gradient_options)
      : problem_(std::move(problem)),
        options_(std::move(options)),
        loss_(std::move(loss)),
        gradient_options_(std::move(gradient_options)) {}
  virtual ~GradientEngine() = default;

  virtual std::size_t weights() const = 0;
  virtual void set_weights(std::span<const double> weights) = 0;
  virtual const Gradients& evaluate(const RunControl& control) = 0;
  virtual std::vector<std::string> explain() const = 0;

  const Problem& problem() const { return problem_; }
  void set_initial_states(std::span<const double> states);

 protected:
  Problem problem_;
  Options options_;
  Loss loss_;
  GradientOptions gradient_options_;
};

// Of a validated problem, for the options' precision.
std::unique_ptr<GradientEngine> make_gradient_engine(Problem problem, Options options, Loss loss,
                                                     GradientOptions gradient_options);

}  // namespace lockstep::ode::detail
