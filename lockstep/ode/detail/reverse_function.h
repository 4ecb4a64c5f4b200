// The transposed derivative of a user's code for one trajectory.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "lockstep/ode/detail/scalar_function.h"
#include "lockstep/ode/differentiable_tile.h"
#include "lockstep/ode/dual.h"

namespace lockstep::ode::detail {

// Column `lane` with a unit slope in row `seeded` (none if out of range).
template <std::size_t rows, class T>
std::array<Dual<T>, rows> seeded_column(const T* array, int lane, std::size_t seeded) {
  std::array<Dual<T>, rows> column;
  for (std::size_t row = 0; row < rows; ++row) {
    column[row] = Dual<T>(array[row * kTileLanes + static_cast<std::size_t>(lane)], row == seeded ? T(1) : T(0));
  }
  return column;
}

// J^T by one evaluation on dual numbers for each column of J.
struct ByDuals {
  template <class Body, class T>
  void reverse_lane(const Body& body, const ReverseTileView<T>& tile, int lane) const {
    constexpr std::size_t n = Body::kComponents, m = Body::kParameters;
    for (std::size_t direction = 0; direction < n + m; ++direction) {
      const auto u = seeded_column<n>(tile.in, lane, direction);
      const auto p = seeded_column<m>(tile.parameters, lane, direction - n);
      std::array<Dual<T>, n> du{};
      body.f(tile.t[lane], u, p, du);
      T* const bar =
          (direction < n ? tile.in_bar + direction * kTileLanes : tile.parameter_bar + (direction - n) * kTileLanes) +
          lane;
      T sum = *bar;
      for (std::size_t o = 0; o < n; ++o) {
        sum = std::fma(tile.out_bar[o * kTileLanes + static_cast<std::size_t>(lane)], du[o].slope, sum);
      }
      *bar = sum;
    }
  }
};

// The user's own transpose.
template <class Transpose>
struct ByHand {
  Transpose transpose;

  template <class Body, class T>
  void reverse_lane(const Body&, const ReverseTileView<T>& tile, int lane) const {
    constexpr std::size_t n = Body::kComponents, m = Body::kParameters;
    const auto u = load_column<n>(tile.in, lane);
    const auto p = load_column<m>(tile.parameters, lane);
    const auto du_bar = load_column<n>(tile.out_bar, lane);
    const LaneColumn<T> u_bar{tile.in_bar + lane};
    const LaneColumn<T> p_bar{m == 0 ? nullptr : tile.parameter_bar + lane};
    transpose(tile.t[lane], u, p, du_bar, u_bar, p_bar);
  }
};

template <class T, class Body, class Derivation>
class ReverseFunctionTile final : public DifferentiableTile<T> {
 public:
  ReverseFunctionTile(std::shared_ptr<const TileFunction<T>> forward, std::shared_ptr<const Body> body,
                      std::shared_ptr<const Derivation> derivation, CpuTarget target)
      : forward_(std::move(forward)), body_(std::move(body)), derivation_(std::move(derivation)), target_(target) {}

  void evaluate(const TileView<T>& tile, std::byte* workspace) const override { forward_->evaluate(tile, workspace); }
  std::size_t workspace_bytes() const override { return forward_->workspace_bytes(); }
  std::string description() const override { return forward_->description(); }
  void reverse(const ReverseTileView<T>& tile, std::byte*) const override {
    every_lane_on(target_, tile.lanes, [&tile, &body = *body_, &derivation = *derivation_](int lane) {
      derivation.reverse_lane(body, tile, lane);
    });
  }

 private:
  std::shared_ptr<const TileFunction<T>> forward_;
  std::shared_ptr<const Body> body_;
  std::shared_ptr<const Derivation> derivation_;
  CpuTarget target_;
};

template <class Body, class Derivation>
class DifferentiableFunction final : public ScalarFunction<Body> {
 public:
  DifferentiableFunction(FunctionName name, Body body, Derivation derivation)
      : ScalarFunction<Body>(std::move(name), std::move(body)),
        derivation_(std::make_shared<const Derivation>(std::move(derivation))) {}

  std::shared_ptr<DifferentiableTile<float>> differentiable_f32(CpuTarget target) const override {
    return make<float>(target);
  }
  std::shared_ptr<DifferentiableTile<double>> differentiable_f64(CpuTarget target) const override {
    return make<double>(target);
  }

 private:
  template <class T>
  std::shared_ptr<DifferentiableTile<T>> make(CpuTarget target) const {
    auto forward = lower<T>(static_cast<const StateFunction&>(*this), target);
    return std::make_shared<ReverseFunctionTile<T, Body, Derivation>>(std::move(forward), this->body_, derivation_,
                                                                      target);
  }

  std::shared_ptr<const Derivation> derivation_;
};

}  // namespace lockstep::ode::detail
