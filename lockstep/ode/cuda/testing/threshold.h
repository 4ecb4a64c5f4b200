// The event that a component reaches a value, as kernels of their own know it; and the text that says the same.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/ode/cuda_source.h"
#include "lockstep/ode/function.h"
#include "lockstep/ode/state_function.h"
#include "lockstep/ode/testing/plain_function.h"

namespace lockstep::ode::cuda {

// u[component] - value; says so to engines that ask.
inline Rhs threshold(std::size_t components, std::size_t parameters, std::size_t component, double value) {
  class Known : public StateFunction {
   public:
    Known(Rhs rhs, ThresholdPart part) : rhs_(std::move(rhs)), part_(part) {}
    std::size_t components() const override { return rhs_->components(); }
    std::size_t parameters() const override { return rhs_->parameters(); }
    std::size_t outputs() const override { return 1; }
    std::string description() const override { return "threshold"; }
    std::string digest() const override { return "threshold"; }
    std::shared_ptr<const TileFunction<float>> lower_f32(CpuTarget t) const override { return rhs_->lower_f32(t); }
    std::shared_ptr<const TileFunction<double>> lower_f64(CpuTarget t) const override { return rhs_->lower_f64(t); }
    std::vector<FunctionPart> parts() const override { return {{part_, parameters()}}; }

   private:
    Rhs rhs_;
    ThresholdPart part_;
  };
  return std::make_shared<Known>(
      lockstep::ode::testing::plain_event(components, parameters,
                                          [component, value](double, auto u, auto, auto out) {
                                            using T = std::decay_t<decltype(u(0))>;
                                            out(0) = u(component) - T(value);
                                          }),
      ThresholdPart{component, value});
}

// u[0] - 0.5, over three components, as text and as a kernel compiled from it has it.
inline TerminalEvent half_as_text() {
  const auto value = [](auto, const auto& u, const auto&) { return u[0] - 0.5; };
  return {with_cuda_event_source(event_function<3>("half", value), "half", "return u[0] - 0.5f;")};
}
struct AboveHalf {
  template <class T>
  static T value(double, const T* u, const T*) {
    return u[0] - T(0.5);
  }
};
// The terms of a sum that has none.
struct NoTerms {
  static constexpr bool kOwn = true;
  template <class T>
  static void evaluate(int, double, const T*, const T*, T* du) {
    du[0] = du[1] = du[2] = 0;
  }
};

}  // namespace lockstep::ode::cuda
