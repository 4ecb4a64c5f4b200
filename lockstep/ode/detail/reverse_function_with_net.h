// The transposed derivative of a user's code that sees a net's outputs, and of the net.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "lockstep/kernels/mlp/parameters.h"
#include "lockstep/ode/detail/function_with_net.h"
#include "lockstep/ode/detail/reverse_function.h"
#include "lockstep/ode/detail/reverse_net.h"

namespace lockstep::ode::detail {

// Column `lane` read as dual numbers, with a unit slope in row `seeded`.
template <class T>
struct SeededColumn {
  const T* first;
  std::size_t seeded;
  Dual<T> operator[](std::size_t row) const { return Dual<T>(first[row * kTileLanes], row == seeded ? T(1) : T(0)); }
};

// body(lane) for the first `lanes` lanes; where it throws, lanes are tried one by one and failed(lane) is called for
// those that do.
template <class Body, class Failed>
void guarded_lanes(CpuTarget target, int lanes, const Body& body, const Failed& failed) {
  try {
    every_lane_on(target, lanes, body);
  } catch (...) {
    for (int lane = 0; lane < lanes; ++lane) {
      try {
        body(lane);
      } catch (...) {
        failed(lane);
      }
    }
  }
}

template <class T, class Body>
class ReverseFunctionWithNetTile final : public DifferentiableTile<T> {
 public:
  static constexpr std::size_t n = Body::kComponents, m = Body::kParameters;

  ReverseFunctionWithNetTile(std::shared_ptr<const Body> body, const Mlp& mlp, CpuTarget target)
      : body_(std::move(body)),
        net_(reverse_net<T>(mlp, mlp.inputs(), 0, false, target)),
        inputs_(mlp.inputs()),
        outputs_(mlp.outputs()),
        target_(target) {}

  void evaluate(const TileView<T>& tile, std::byte* workspace) const override { run(tile, nullptr, workspace); }
  void evaluate_recording(const TileView<T>& tile, std::byte* record, std::byte* workspace) const override {
    run(tile, record, workspace);
  }
  std::string description() const override {
    return net_->description() + ", then one function call a trajectory" + compiled_for(target_);
  }
  std::size_t workspace_bytes() const override { return values_bytes() + net_->workspace_bytes(); }
  // The net's outputs and inputs, then what it records itself.
  std::size_t record_bytes() const override { return values_bytes() + net_->record_bytes(); }
  std::size_t cotangent_bytes() const override { return net_->cotangent_bytes(); }
  std::size_t reverse_workspace_bytes() const override {
    return values_bytes() + inputs_ * kTileLanes * sizeof(Dual<T>) + net_->reverse_workspace_bytes();
  }

  void reverse(const ReverseTileView<T>& tile, std::byte* workspace) const override {
    const T* const outputs = reinterpret_cast<const T*>(tile.record);
    T* const output_bar = reinterpret_cast<T*>(workspace);
    T* const input_bar = output_bar + outputs_ * kTileLanes;
    auto* const prepared = reinterpret_cast<Dual<T>*>(workspace + values_bytes());
    std::byte* const rest = workspace + reverse_workspace_bytes() - net_->reverse_workspace_bytes();
    every_lane_on(target_, tile.lanes, [&](int lane) { reverse_lane(tile, outputs, output_bar, lane); });
    std::fill_n(input_bar, inputs_ * kTileLanes, T(0));
    net_->reverse({.t = tile.t,
                   .in = nullptr,
                   .parameters = nullptr,
                   .out_bar = output_bar,
                   .in_bar = Body::kPrepares ? input_bar : tile.in_bar,
                   .parameter_bar = nullptr,
                   .record = tile.record + values_bytes(),
                   .cotangents = tile.cotangents,
                   .lanes = tile.lanes},
                  rest);
    if constexpr (Body::kPrepares) {
      every_lane_on(target_, tile.lanes, [&](int lane) { reverse_preparation(tile, input_bar, prepared, lane); });
    }
  }

  std::size_t weights() const override { return net_->weights(); }
  void set_weights(std::span<const T> weights) override { net_->set_weights(weights); }
  void accumulate(std::span<const RecordedEvaluation> evaluations, T* gradient) const override {
    std::vector<RecordedEvaluation> theirs(evaluations.begin(), evaluations.end());
    for (RecordedEvaluation& evaluation : theirs) evaluation.record += values_bytes();
    net_->accumulate(theirs, gradient);
  }

 private:
  std::size_t values_bytes() const { return (outputs_ + inputs_) * kTileLanes * sizeof(T); }

  void run(TileView<T> tile, std::byte* record, std::byte* workspace) const {
    std::byte* const values = record == nullptr ? workspace : record;
    T* const outputs = reinterpret_cast<T*>(values);
    T* const inputs = outputs + outputs_ * kTileLanes;
    std::byte* const rest = workspace + values_bytes();
    const auto spoil = [&](T* rows, std::size_t count, int lane) {
      for (std::size_t row = 0; row < count; ++row) {
        rows[row * kTileLanes + static_cast<std::size_t>(lane)] = std::numeric_limits<T>::quiet_NaN();
      }
    };
    TileView<T> net{tile.t, tile.in, nullptr, outputs, tile.lanes};
    if constexpr (Body::kPrepares) {
      guarded_lanes(
          target_, tile.lanes, [&](int lane) { body_->template prepare_lane<T>(tile, inputs, lane); },
          [&](int lane) { spoil(inputs, inputs_, lane); });
      net.in = inputs;
    }
    if (record == nullptr) {
      net_->evaluate(net, rest);
    } else {
      net_->evaluate_recording(net, record + values_bytes(), rest);
    }
    guarded_lanes(
        target_, tile.lanes, [&](int lane) { body_->template evaluate_lane<T>(tile, outputs, lane); },
        [&](int lane) { spoil(tile.out, n, lane); });
  }

  // Columns of the derivative by state, parameters and the net's outputs.
  void reverse_lane(const ReverseTileView<T>& tile, const T* outputs, T* output_bar, int lane) const {
    const std::size_t directions = n + m + outputs_;
    for (std::size_t direction = 0; direction < directions; ++direction) {
      const SeededColumn<T> u{tile.in + lane, direction};
      const SeededColumn<T> p{m == 0 ? nullptr : tile.parameters + lane, direction - n};
      const SeededColumn<T> net{outputs + lane, direction - n - m};
      std::array<Dual<T>, n> du{};
      body_->f(tile.t[lane], u, p, net, du);
      T sum = 0;
      for (std::size_t o = 0; o < n; ++o) {
        sum = std::fma(tile.out_bar[o * kTileLanes + static_cast<std::size_t>(lane)], du[o].slope, sum);
      }
      const auto at = [lane](T* rows, std::size_t row) -> T& {
        return rows[row * kTileLanes + static_cast<std::size_t>(lane)];
      };
      if (direction < n) {
        at(tile.in_bar, direction) += sum;
      } else if (direction < n + m) {
        at(tile.parameter_bar, direction - n) += sum;
      } else {
        at(output_bar, direction - n - m) = sum;
      }
    }
  }

  void reverse_preparation(const ReverseTileView<T>& tile, const T* input_bar, Dual<T>* prepared, int lane) const {
    for (std::size_t direction = 0; direction < n + m; ++direction) {
      const SeededColumn<T> u{tile.in + lane, direction};
      const SeededColumn<T> p{m == 0 ? nullptr : tile.parameters + lane, direction - n};
      const LaneColumn<Dual<T>> in{prepared + lane};
      body_->prepare(tile.t[lane], u, p, in);
      T sum = 0;
      for (std::size_t i = 0; i < inputs_; ++i) {
        const std::size_t at = i * kTileLanes + static_cast<std::size_t>(lane);
        sum = std::fma(input_bar[at], prepared[at].slope, sum);
      }
      T* const bar =
          direction < n ? tile.in_bar + direction * kTileLanes : tile.parameter_bar + (direction - n) * kTileLanes;
      bar[lane] += sum;
    }
  }

  std::shared_ptr<const Body> body_;
  std::shared_ptr<DifferentiableTile<T>> net_;
  std::size_t inputs_;
  std::size_t outputs_;
  CpuTarget target_;
};

template <class Body>
class DifferentiableFunctionWithNet final : public FunctionWithNet<Body> {
 public:
  using FunctionWithNet<Body>::FunctionWithNet;

  std::vector<double> weights() const override { return gather_parameters<double>(this->mlp_); }
  std::shared_ptr<DifferentiableTile<float>> differentiable_f32(CpuTarget target) const override {
    return std::make_shared<ReverseFunctionWithNetTile<float, Body>>(this->body_, this->mlp_, target);
  }
  std::shared_ptr<DifferentiableTile<double>> differentiable_f64(CpuTarget target) const override {
    return std::make_shared<ReverseFunctionWithNetTile<double, Body>>(this->body_, this->mlp_, target);
  }
};

}  // namespace lockstep::ode::detail
