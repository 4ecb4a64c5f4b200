// A user's code for one trajectory that sees a net's outputs: the net runs on the whole tile first.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "lockstep/kernels/mlp/mlp.h"
#include "lockstep/kernels/mlp/plan.h"
#include "lockstep/ode/detail/guarded_tile.h"
#include "lockstep/ode/detail/lane_loop.h"
#include "lockstep/ode/detail/named_function.h"
#include "lockstep/ode/detail/scalar_function.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::ode::detail {

struct NoPreparation {};  // the net's inputs are the state

// Of the layers' shapes, activations and numbers, and the scalings.
std::string digest(const Mlp& mlp);
// Throws Error (model) when the net is not sound, (invalid_argument) when it has not `inputs` inputs.
void require_net(const std::string& name, const Mlp& mlp, std::size_t inputs);
// "3-100-3".
std::string shape(const Mlp& mlp);

// prepare(t, u, p, in) and f(t, u, p, net, du).
template <std::size_t n, std::size_t parameter_count, class Prepare, class F>
struct NetDerivative {
  static constexpr std::size_t kComponents = n;
  static constexpr std::size_t kParameters = parameter_count;
  static constexpr bool kPrepares = !std::is_same_v<Prepare, NoPreparation>;
  template <class T>
  static constexpr bool kTakes =
      std::is_invocable_v<const F&, double, const ColumnOf<n, T>&, const ColumnOf<parameter_count, T>&,
                          const LaneColumn<const T>&, FilledColumnOf<n, T>&>;
  Prepare prepare;
  F f;

  template <class T>
  void prepare_lane(const TileView<T>& tile, T* inputs, int lane) const {
    const auto u = load_column<n>(tile.in, lane);
    const auto p = load_column<parameter_count>(tile.parameters, lane);
    const LaneColumn<T> in{inputs + lane};
    prepare(tile.t[lane], u, p, in);
  }

  template <class T>
  void evaluate_lane(const TileView<T>& tile, const T* outputs, int lane) const {
    const auto u = load_column<n>(tile.in, lane);
    const auto p = load_column<parameter_count>(tile.parameters, lane);
    const LaneColumn<const T> net{outputs + lane};
    fill_column<n>(tile.out + lane, [&](auto& du) { f(tile.t[lane], u, p, net, du); });
  }
};

template <class T, class Body>
class NetTile final : public GuardedTile<T> {
 public:
  NetTile(std::shared_ptr<const Body> body, Plan<T> plan, CpuTarget target)
      : GuardedTile<T>(Body::kComponents, Body::kParameters, Body::kComponents),
        body_(std::move(body)),
        plan_(std::move(plan)),
        target_(target) {}

  std::string description() const override {
    return plan_.description() + ", then one function call a trajectory" + compiled_for(target_);
  }

 protected:
  void evaluate_whole(const TileView<T>& tile, std::byte* workspace) const override {
    T* const outputs = reinterpret_cast<T*>(workspace);
    T* const inputs = outputs + plan_.outputs() * kTileLanes;
    std::byte* const rest = reinterpret_cast<std::byte*>(inputs + prepared_inputs() * kTileLanes);
    if constexpr (Body::kPrepares) {
      every_lane_on(target_, AllLanes(),
                    [&tile, inputs, &body = *body_](int lane) { body.template prepare_lane<T>(tile, inputs, lane); });
      plan_.evaluate_tile({tile.t, inputs, nullptr, outputs, kTileLanes}, rest);
    } else {
      plan_.evaluate_tile({tile.t, tile.in, nullptr, outputs, kTileLanes}, rest);
    }
    every_lane_on(target_, AllLanes(),
                  [&tile, outputs, &body = *body_](int lane) { body.template evaluate_lane<T>(tile, outputs, lane); });
  }
  std::size_t whole_workspace_bytes() const override {
    return (plan_.outputs() + prepared_inputs()) * kTileLanes * sizeof(T) + plan_.workspace_bytes();
  }

 private:
  std::size_t prepared_inputs() const { return Body::kPrepares ? plan_.inputs() : 0; }

  std::shared_ptr<const Body> body_;
  Plan<T> plan_;
  CpuTarget target_;
};

template <class Body>
class FunctionWithNet : public StateFunction {
 public:
  FunctionWithNet(FunctionName name, Mlp mlp, Body body)
      : name_(std::move(name)), mlp_(std::move(mlp)), body_(std::make_shared<const Body>(std::move(body))) {
    require_net(name_.name, mlp_, Body::kPrepares ? mlp_.inputs() : Body::kComponents);
  }

  std::size_t components() const override { return Body::kComponents; }
  std::size_t parameters() const override { return Body::kParameters; }
  std::string description() const override { return "function " + name_.name + " with net " + shape(mlp_); }
  std::string digest() const override { return name_.digest(detail::digest(mlp_)); }
  std::shared_ptr<const TileFunction<float>> lower_f32(CpuTarget target) const override { return lower<float>(target); }
  std::shared_ptr<const TileFunction<double>> lower_f64(CpuTarget target) const override {
    return lower<double>(target);
  }

 private:
  template <class T>
  std::shared_ptr<const TileFunction<T>> lower(CpuTarget target) const {
    static_assert(Body::template kTakes<float> || Body::template kTakes<double>,
                  "call it as f(t, u, p, net, du); take u, p, net as const auto& and du as auto&");
    if constexpr (Body::template kTakes<T>) {
      return std::make_shared<NetTile<T, Body>>(body_, Plan<T>::compile(mlp_, target), target);
    } else {
      throw wrong_precision(name_.name, sizeof(T) == 4 ? "float32" : "float64", sizeof(T) == 4 ? "double" : "float");
    }
  }

  FunctionName name_;

 protected:
  Mlp mlp_;
  std::shared_ptr<const Body> body_;
};

}  // namespace lockstep::ode::detail
