// A state function as the reference solve calls it.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/kernels/tile.h"
#include "lockstep/ode/jacobian_tile.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::ode::detail {

// A state function of one trajectory: lane 0 of a tile.
template <class T>
class ReferenceFunction {
 public:
  ReferenceFunction(const StateFunction& function, const double* parameters)
      : function_(lower<T>(function, CpuTarget::scalar)),
        in_(function.components() * kTileLanes),
        out_(function.outputs() * kTileLanes),
        parameters_(function.parameters() * kTileLanes),
        workspace_(function_->workspace_bytes()) {
    for (std::size_t i = 0; i < function.parameters(); ++i) parameters_[i * kTileLanes] = static_cast<T>(parameters[i]);
  }
  std::vector<T> operator()(double t, const std::vector<T>& u) {
    for (std::size_t c = 0; c < u.size(); ++c) in_[c * kTileLanes] = u[c];
    time_[0] = t;
    function_->evaluate({time_.data(), in_.data(), parameters_.data(), out_.data(), 1}, workspace_.data());
    std::vector<T> out(out_.size() / kTileLanes);
    for (std::size_t c = 0; c < out.size(); ++c) out[c] = out_[c * kTileLanes];
    return out;
  }

 private:
  std::shared_ptr<const TileFunction<T>> function_;
  AlignedBuffer<T> in_, out_, parameters_;
  AlignedBuffer<std::byte> workspace_;
  AlignedBuffer<double> time_{kTileLanes};
};

// The Jacobian of a right-hand side, likewise.
template <class T>
class ReferenceJacobian {
 public:
  ReferenceJacobian(const StateFunction& function, const double* parameters)
      : jacobian_(lower_jacobian<T>(function, CpuTarget::scalar)),
        in_(function.components() * kTileLanes),
        parameters_(function.parameters() * kTileLanes),
        by_state_(jacobian_->layout().entries() * kTileLanes),
        by_time_(function.components() * kTileLanes),
        workspace_(jacobian_->workspace_bytes()) {
    for (std::size_t i = 0; i < function.parameters(); ++i) parameters_[i * kTileLanes] = static_cast<T>(parameters[i]);
  }
  struct Value {
    std::vector<std::vector<T>> by_state;  // [component][of component]
    std::vector<T> by_time;                // [component]
  };
  Value operator()(double t, const std::vector<T>& u) {
    const std::size_t n = u.size();
    for (std::size_t c = 0; c < n; ++c) in_[c * kTileLanes] = u[c];
    time_[0] = t;
    jacobian_->evaluate({time_.data(), in_.data(), parameters_.data(), nullptr, 1}, by_state_.data(), by_time_.data(),
                        workspace_.data());
    Value value{std::vector(n, std::vector<T>(n)), {}};
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = layout().columns_begin(i); j < layout().columns_end(i); ++j)
        value.by_state[layout().order()[i]][layout().order()[j]] = by_state_[layout().at(i, j) * kTileLanes];
      value.by_time.push_back(by_time_[i * kTileLanes]);
    }
    return value;
  }
  const LinearLayout& layout() const { return jacobian_->layout(); }

 private:
  std::shared_ptr<const JacobianTile<T>> jacobian_;
  AlignedBuffer<T> in_, parameters_, by_state_, by_time_;
  AlignedBuffer<std::byte> workspace_;
  AlignedBuffer<double> time_{kTileLanes};
};

}  // namespace lockstep::ode::detail
