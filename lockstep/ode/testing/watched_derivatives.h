// A right-hand side whose derivatives a test looks at on their way.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "lockstep/ode/detail/knots_of_inner.h"
#include "lockstep/ode/differentiable_tile.h"

namespace lockstep::ode::testing {

// As `inner`, with what `wrap` makes of its derivative in float64.
class WatchedDerivatives final : public detail::KnotsOfInner {
 public:
  using Tile = std::shared_ptr<DifferentiableTile<double>>;
  WatchedDerivatives(Rhs inner, std::function<Tile(Tile)> wrap)
      : KnotsOfInner(std::move(inner)), wrap_(std::move(wrap)) {}

  std::size_t components() const override { return inner_->components(); }
  std::size_t parameters() const override { return inner_->parameters(); }
  std::string description() const override { return "watched"; }
  std::string digest() const override { return inner_->digest(); }
  std::shared_ptr<const TileFunction<float>> lower_f32(CpuTarget target) const override {
    return inner_->lower_f32(target);
  }
  std::shared_ptr<const TileFunction<double>> lower_f64(CpuTarget target) const override {
    return inner_->lower_f64(target);
  }
  Tile differentiable_f64(CpuTarget target) const override { return wrap_(inner_->differentiable_f64(target)); }

 private:
  std::function<Tile(Tile)> wrap_;
};

}  // namespace lockstep::ode::testing
