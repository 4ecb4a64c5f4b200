// For functions that are made of another one and jump and bend where that does.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "lockstep/ode/state_function.h"

namespace lockstep::ode::detail {

// All that a StateFunction tells of its jumps and bends, as `inner_` tells it.
class KnotsOfInner : public StateFunction {
 public:
  explicit KnotsOfInner(Rhs inner) : inner_(std::move(inner)) {}

  std::vector<TimeKnot> time_knots(const TimeSpan& span, std::span<const double> parameters) const override {
    return inner_->time_knots(span, parameters);
  }
  bool has_many_knots() const override { return inner_->has_many_knots(); }
  KnotBounds knot_bounds(std::span<const double> parameters) const override { return inner_->knot_bounds(parameters); }
  bool moves_knots() const override { return inner_->moves_knots(); }
  bool repeats_knots() const override { return inner_->repeats_knots(); }
  bool hides_knots() const override { return inner_->hides_knots(); }
  bool hides_knots_of_states() const override { return inner_->hides_knots_of_states(); }
  bool jumps_at_states() const override { return inner_->jumps_at_states(); }

 protected:
  Rhs inner_;
};

}  // namespace lockstep::ode::detail
