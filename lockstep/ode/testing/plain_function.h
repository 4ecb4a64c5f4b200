// A state function from a plain loop over lanes, for tests of the engines.
#pragma once

#include <utility>

#include "lockstep/ode/state_function.h"

namespace lockstep::ode::testing {

// F is called as f(t, u, p, out) for each lane, with u(c), p(i) and out(o) as accessors of one lane's numbers.
template <class F>
class PlainFunction : public StateFunction {
 public:
  PlainFunction(std::size_t components, std::size_t parameters, std::size_t outputs, F f)
      : components_(components), parameters_(parameters), outputs_(outputs), f_(std::move(f)) {}
  std::size_t components() const override { return components_; }
  std::size_t parameters() const override { return parameters_; }
  std::size_t outputs() const override { return outputs_; }
  std::string description() const override { return "a test's function"; }
  std::string digest() const override { return "test"; }
  std::shared_ptr<const TileFunction<float>> lower_f32(CpuTarget) const override {
    return std::make_shared<Tile<float>>(f_);
  }
  std::shared_ptr<const TileFunction<double>> lower_f64(CpuTarget) const override {
    return std::make_shared<Tile<double>>(f_);
  }

 private:
  template <class T>
  class Tile : public TileFunction<T> {
   public:
    explicit Tile(F f) : f_(std::move(f)) {}
    void evaluate(const TileView<T>& tile, std::byte*) const override {
      for (int lane = 0; lane < tile.lanes; ++lane) {
        const auto in = [&](std::size_t c) { return tile.in[c * kTileLanes + static_cast<std::size_t>(lane)]; };
        const auto p = [&](std::size_t i) { return tile.parameters[i * kTileLanes + static_cast<std::size_t>(lane)]; };
        const auto out = [&](std::size_t o) -> T& { return tile.out[o * kTileLanes + static_cast<std::size_t>(lane)]; };
        f_(tile.t[lane], in, p, out);
      }
    }

   private:
    F f_;
  };
  std::size_t components_, parameters_, outputs_;
  F f_;
};

template <class F>
Rhs plain_function(std::size_t components, std::size_t parameters, F f) {
  return std::make_shared<PlainFunction<F>>(components, parameters, components, std::move(f));
}
template <class F>
Rhs plain_event(std::size_t components, std::size_t parameters, F f) {
  return std::make_shared<PlainFunction<F>>(components, parameters, 1, std::move(f));
}

}  // namespace lockstep::ode::testing
