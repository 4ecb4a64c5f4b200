// A tile function that is arithmetic on lanes, and calls, as a program that an integrator may make a part of its own
// code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lockstep/kernels/generated/lane_program.h"
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
  // Code that integrators made of it.
  cpu::KeptSteps<T>& kept_steps() const { return kept_steps_; }

 protected:
  ~ArithmeticTile() = default;

 private:
  mutable cpu::KeptSteps<T> kept_steps_;
};

}  // namespace lockstep::ode::detail
