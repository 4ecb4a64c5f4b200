// A net whose hidden units jump at times that a trajectory's own parameter moves, and that tells so.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/ode/cuda/testing/uneven_ensemble.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::ode::cuda {

// net(u, p, t) with tanh(1e9 (t - p jump)): one parameter, near 1.
class MovedJumps final : public StateFunction {
 public:
  MovedJumps(std::size_t components, std::size_t width) {
    Mlp mlp = mlp::random_mlp({components + 2, width, components}, {ActivationKind::tanh}, 23);
    DenseLayer& hidden = mlp.layers[0];
    for (std::size_t unit = 0; unit < width; ++unit) {
      double* const weights = &hidden.weights[unit * (components + 2)];
      weights[components] = -1e9 * kJumps[unit % 4];
      weights[components + 1] = 1e9;
    }
    net_ = net(std::move(mlp), {"net", true});
  }

  std::size_t components() const override { return net_->components(); }
  std::size_t parameters() const override { return net_->parameters(); }
  std::string description() const override { return net_->description(); }
  std::string digest() const override { return net_->digest(); }
  std::vector<FunctionPart> parts() const override { return net_->parts(); }
  std::shared_ptr<const TileFunction<float>> lower_f32(CpuTarget target) const override {
    return net_->lower_f32(target);
  }
  std::shared_ptr<const TileFunction<double>> lower_f64(CpuTarget target) const override {
    return net_->lower_f64(target);
  }

  bool moves_knots() const override { return true; }
  std::vector<TimeKnot> time_knots(const TimeSpan&, std::span<const double> p) const override {
    std::vector<TimeKnot> knots;
    if (p.empty()) return knots;
    for (const double jump : kJumps) knots.push_back({p[0] * jump, true, 0});
    if (p[0] > 1.05) knots.pop_back();  // not all have as many
    if (p[0] == 1) knots.clear();       // or any
    return knots;
  }

 private:
  Rhs net_;
};

inline Rhs moved_jumps(std::size_t components, std::size_t width) {
  return std::make_shared<MovedJumps>(components, width);
}

}  // namespace lockstep::ode::cuda
