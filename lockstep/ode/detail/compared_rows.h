// What least squares are made of: the residuals of a fit at its weights, with their derivatives by what is unknown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/core/run_control.h"
#include "lockstep/ode/detail/data_rows.h"
#include "lockstep/ode/detail/known_states.h"
#include "lockstep/ode/parameter_uncertainty.h"
#include "lockstep/ode/sensitivity.h"
#include "lockstep/ode/unresolved_derivatives.h"

namespace lockstep::ode::detail {

// What counts as no effect, relative to the one that it is a part of.
double smallest_effect(const Options& options);

// Rows [by start..., by weight of nets that are let go..., by trained parameter..., residual], in units of each
// measurement's sigma; a residual is the measurement less the state. Starts are a trajectory's components where
// UncertaintyOptions has initial states, else none; those that are given have zeros.
class ComparedRows {
 public:
  // `rhs` without the parameters trained, whose values `data.parameters` hold. `let_go`: weights of nets that are
  // unknowns. Refers to all of them.
  ComparedRows(Rhs rhs, std::span<const TrainedParameter> trained, std::span<const double> let_go,
               const TrajectoryData& data, Options options, const UncertaintyOptions& uncertainty,
               const RunControl& control);

  // Hands over the rows of each trajectory that was solved to its end, without those of known states, in the data's
  // order; `after_some` follows those that were solved together: some tiles of equally long ones, whose derivatives
  // take at most 256 MB where one tile's do. Throws Error (unsupported), as solve_along(), and (cancelled).
  void each(const std::function<void(std::size_t trajectory, Rows rows)>& take,
            const std::function<void()>& after_some);

  std::size_t starts() const { return free_; }  // columns of them
  std::size_t components() const { return components_; }
  // Of what was handed over.
  std::size_t beyond() const { return beyond_; }  // numbers beyond the threshold of Huber's loss
  bool failed() const { return failed_; }         // some solve with other weights of nets: their columns say nothing
  std::size_t unsolved() const { return unsolved_; }  // trajectories that did not reach their end
  const std::optional<UnresolvedDerivatives>& unresolved() const { return unresolved_; }

 private:
  std::size_t length(std::size_t trajectory) const { return data_.points(trajectory, components_); }
  bool is_given(std::size_t component) const { return given_ && given_->has(component); }
  void solve(const std::vector<std::uint32_t>& some,
             const std::function<void(std::size_t trajectory, Rows rows)>& take);
  Directions directions(const std::vector<std::uint32_t>& some) const;
  Rows rows_of(const TrajectoryData& data, const DataRows& rows, const Problem& problem,
               const DirectionalDerivatives& found, std::size_t trajectory, std::size_t of_all);

  Rhs rhs_;
  std::span<const double> let_go_;
  std::span<const TrainedParameter> trained_;
  const TrajectoryData& data_;
  Options options_;
  std::span<const double> starts_;
  const std::optional<GivenStarts>& given_;
  const std::vector<Reset>& resets_;
  std::vector<double> by_parameter_of_starts_;  // [trajectory][component][parameter]
  std::vector<double> given_states_;            // [trajectory][component], where nothing is free
  std::vector<double> by_weights_;              // weight_columns() of some trajectories
  std::size_t components_, free_;
  std::span<const double> weights_;  // [component], or none
  std::vector<double> thresholds_;   // likewise, of residuals
  const RunControl& control_;
  std::size_t beyond_ = 0, unsolved_ = 0;
  bool failed_ = false;
  std::optional<UnresolvedDerivatives> unresolved_;
};

}  // namespace lockstep::ode::detail
