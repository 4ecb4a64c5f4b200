// A tile function that is arithmetic on lanes, and calls, as a program that an integrator may make a part of its own
// code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "lockstep/core/precision.h"
#include "lockstep/kernels/generated/lane_code.h"
#include "lockstep/ode/cpu/kept_steps.h"
#include "lockstep/ode/detail/graph_inputs.h"

namespace lockstep::ode::detail {

template <class T>
class ArithmeticTile {
 public:
  // Rows of input i, which are `source(i)`'s, in array kFirstInput + i; those of the output in array kOutput. Null
  // where there is more to it.
  virtual const LaneProgram* arithmetic() const = 0;
  virtual GraphSource source(std::size_t input) const = 0;
  static constexpr std::uint8_t kOutput = 1, kFirstInput = 2;
  // Code of arithmetic() for one lane, whose rows have one number each; made when first asked for, null where there can
  // be none. Any thread may ask.
  std::shared_ptr<const LaneCode> one_lane(CpuTarget target) const {
    std::call_once(one_lane_once_, [&] {
      if (arithmetic() != nullptr) one_lane_ = LaneCode::compile_one_lane(*arithmetic(), kPrecisionOf<T>, target);
    });
    return one_lane_;
  }
  // Code that integrators made of it.
  cpu::KeptSteps<T>& kept_steps() const { return kept_steps_; }

 protected:
  ~ArithmeticTile() = default;

 private:
  mutable std::once_flag one_lane_once_;
  mutable std::shared_ptr<const LaneCode> one_lane_;
  mutable cpu::KeptSteps<T> kept_steps_;
};

}  // namespace lockstep::ode::detail
