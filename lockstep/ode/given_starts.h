// Where trajectories start, as a function of parameters: starts that are known, or that training finds with parameters.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::ode {

struct TrajectoryData;

// Of components that the data's first points do not say, or not exactly: "N - I0" of the parameters N and I0.
struct GivenStarts {
  // Its du/dt at t = 0 and u = 0 is the start. Components and parameters are those of the right-hand side beside it;
  // where parameters of that are trained the same ones are trained here, and its weights are these alone.
  Rhs values;
  std::vector<std::size_t> components;  // those that start so, ascending

  bool has(std::size_t component) const;
  // Throws Error (invalid_argument).
  void validate(const StateFunction& rhs) const;
};

// A start that is no finite number at the weights in question; others may give one.
class StartsNotFinite : public Error {
 public:
  StartsNotFinite(std::size_t component, const std::string& trajectories);

  std::size_t component() const noexcept { return component_; }

 private:
  std::size_t component_;
};

// [trajectory][component]: the data's first points, and what `starts` gives of them at these weights of the right-hand
// side, of which the last are its own. Throws StartsNotFinite.
std::vector<double> start_states(const GivenStarts& starts, std::span<const double> weights,
                                 const TrajectoryData& data);

}  // namespace lockstep::ode
