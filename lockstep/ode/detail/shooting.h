// Multiple shooting with free states: what segments start from is found together with the weights.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/ode/fit.h"

namespace lockstep::ode::detail {

// With s_k the state that segment k starts from, u_k its solution, d the data, w the weights of data (the
// component's, over sigma^2 where there is one), v those of gaps (the component's, times the mean of 1 / sigma^2
// over its measurements; of a component without any such that its unit counts as the others' do on average) and c the
// phase's continuity, a trajectory adds
//   w (s_0 - d_0)^2 + sum over k of [ sum over its points of w (u_k - d)^2 + c v (u_k(t_{k+1}) - s_{k+1})^2 ],
// every number measured counted once, those missing not at all, and the loss is the mean over trajectories. With
// thresholds w h(u - d) of SquaredError is in the place of w (u - d)^2, and the gaps stay squared. Its
// derivative by s_k is that of u_k's solve by its initial state, less the slope of the gap before it.
class Shooting {
 public:
  // `starts` [trajectory][point][component]: the data, without gaps. `units` [component]: what changes of them are
  // measured in. `thresholds`: as make_task() takes them.
  Shooting(const Rhs& rhs, const TrajectoryData& data, std::span<const double> starts, std::span<const double> units,
           const FitOptions& options, const FitPhase& phase, std::span<const double> thresholds = {});
  ~Shooting();
  Shooting(Shooting&&) noexcept;
  Shooting& operator=(Shooting&&) noexcept;

  // states [trajectory][point][component], read at the starts of segments; by_state, of the same shape, is set: zeros
  // elsewhere. The loss and its derivatives by weights, and how each segment ended.
  struct Result {
    double loss;
    const Gradients& gradients;
  };
  Result evaluate(std::span<const double> weights, std::span<const double> states, std::span<double> by_state,
                  const RunControl& control = {});
  std::vector<std::string> explain() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;  // stays where it is: the solver's loss refers to it
};

}  // namespace lockstep::ode::detail
