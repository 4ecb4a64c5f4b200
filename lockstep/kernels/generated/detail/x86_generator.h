// From a LaneProgram to x86 machine code: which register holds a value when, and the instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/core/precision.h"
#include "lockstep/kernels/generated/detail/x86_encoder.h"
#include "lockstep/kernels/generated/lane_program.h"

namespace lockstep::generated {

struct GeneratedCode {
  std::vector<std::uint8_t> pool;  // of constants, from and to a multiple of 64 bytes
  std::vector<std::uint8_t> code;  // stands right behind the pool
  std::size_t frame;               // bytes of the stack it takes
};

// The code is a function (T* const* bases, size_t steps, size_t repeats) of the System V convention.
GeneratedCode generate_x86(const LaneProgram& program, Precision precision, X86Registers registers);

}  // namespace lockstep::generated
