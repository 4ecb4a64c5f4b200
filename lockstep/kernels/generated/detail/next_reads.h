// When the values of a LaneProgram are read: what decides which of them keep a register.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "lockstep/kernels/generated/lane_program.h"

namespace lockstep::generated {

inline constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();

// By number of instruction; one past the last stands for what is carried from one repetition to the next. Instructions
// that make what nothing reads do not count.
struct NextReads {
  std::vector<std::uint32_t> first;                // [value]
  std::vector<std::array<std::uint32_t, 3>> next;  // [instruction][operand]: after this one, of the same value
};

inline NextReads next_reads(const LaneProgram& program) {
  const auto& instructions = program.instructions();
  NextReads reads;
  reads.first.assign(instructions.size(), kNever);
  reads.next.resize(instructions.size());
  for (const auto& carried : program.carried()) {
    reads.first[carried.made] = static_cast<std::uint32_t>(instructions.size());
  }
  for (std::size_t i = instructions.size(); i-- > 0;) {
    const LaneInstruction& instruction = instructions[i];
    if (instruction.op != LaneOp::store && reads.first[i] == kNever) continue;
    const auto count = static_cast<std::size_t>(operands_of(instruction.op));
    for (std::size_t k = 0; k < count; ++k) reads.next[i][k] = reads.first[instruction.read[k]];
    for (std::size_t k = 0; k < count; ++k) reads.first[instruction.read[k]] = static_cast<std::uint32_t>(i);
  }
  return reads;
}

}  // namespace lockstep::generated
