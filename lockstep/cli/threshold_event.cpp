#include "lockstep/cli/threshold_event.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>

#include "lockstep/cli/text.h"
#include "lockstep/ode/differentiable_event.h"

namespace lockstep::cli {
namespace {

template <class T>
class ThresholdTile : public ode::TileFunction<T> {
 public:
  ThresholdTile(std::size_t component, double value) : component_(component), value_(static_cast<T>(value)) {}
  void evaluate(const TileView<T>& tile, std::byte*) const override {
    const T* row = tile.in + component_ * kTileLanes;
    for (int lane = 0; lane < kTileLanes; ++lane) tile.out[lane] = row[lane] - value_;
  }

 private:
  std::size_t component_;
  T value_;
};

class Threshold : public ode::StateFunction, public ode::DifferentiableEvent {
 public:
  Threshold(const ode::Rhs& rhs, std::size_t component, double value)
      : components_(rhs->components()), parameters_(rhs->parameters()), component_(component), value_(value) {}

  std::size_t components() const override { return components_; }
  std::size_t parameters() const override { return parameters_; }
  std::size_t outputs() const override { return 1; }
  std::string description() const override {
    return "component " + std::to_string(component_) + " - " + number_text(value_);
  }
  std::string digest() const override { return "threshold " + description(); }
  std::vector<ode::FunctionPart> parts() const override {
    return {{ode::ThresholdPart{component_, value_}, parameters_}};
  }
  std::shared_ptr<const ode::TileFunction<float>> lower_f32(CpuTarget) const override {
    return std::make_shared<ThresholdTile<float>>(component_, value_);
  }
  std::shared_ptr<const ode::TileFunction<double>> lower_f64(CpuTarget) const override {
    return std::make_shared<ThresholdTile<double>>(component_, value_);
  }

  double slopes(double, std::span<const double>, std::span<const double>, std::span<double> by_state,
                std::span<double> by_parameter) const override {
    std::ranges::fill(by_state, 0.0);
    std::ranges::fill(by_parameter, 0.0);
    by_state[component_] = 1;
    return 0;
  }

 private:
  std::size_t components_;
  std::size_t parameters_;
  std::size_t component_;
  double value_;
};

}  // namespace

ode::Rhs threshold(const ode::Rhs& rhs, std::size_t component, double value) {
  return std::make_shared<Threshold>(rhs, component, value);
}

}  // namespace lockstep::cli
