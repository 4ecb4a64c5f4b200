// A state function as the reference solve calls it.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/kernels/tile.h"
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

}  // namespace lockstep::ode::detail
