// Which instruction an operation on lanes is, by precision and instruction set.
#pragma once

#include <cstdint>

#include "lockstep/kernels/generated/detail/x86_encoder.h"
#include "lockstep/kernels/generated/lane_program.h"

namespace lockstep::generated {

// The forms of a fused multiply-add overwrite different sources: 231 adds to the sum, 213 and 132 put it in a factor's
// place; the digits say which of the three are multiplied, and which is added.
enum class FmaForm : std::uint8_t { k132 = 0x98, k213 = 0xA8, k231 = 0xB8 };

// Comparisons by their immediate; those of ordered numbers are false where either is NaN.
enum class Predicate : std::uint8_t {
  equal = 0x00,
  unordered = 0x03,
  not_equal = 0x04,
  less = 0x11,
  less_or_equal = 0x12
};

struct X86Opcodes {
  bool f64, wide, single;

  Opcode load() const { return number(0x10); }
  Opcode store() const { return number(0x11); }
  Opcode copy() const { return packed(0x28); }
  Opcode bit_and() const { return packed(0x54); }
  Opcode bit_xor() const { return packed(0x57); }
  Opcode compare() const { return number(0xC2); }
  Opcode broadcast() const { return {2, 1, evex_w(), static_cast<std::uint8_t>(f64 ? 0x19 : 0x18)}; }
  // By the mask register k1; by the signs of a vector register.
  Opcode blend() const {
    return wide ? Opcode{2, 1, evex_w(), 0x65} : Opcode{3, 1, 0, static_cast<std::uint8_t>(f64 ? 0x4B : 0x4A)};
  }
  // VROUNDPS, VRNDSCALEPS and their like; the immediate of floor() and round() says how, without an exception for what
  // is inexact.
  Opcode to_whole() const {
    return {3, 1, evex_w(), static_cast<std::uint8_t>((f64 ? 0x09 : 0x08) + (single ? 2 : 0))};
  }
  static int rounding(LaneOp op) { return op == LaneOp::floor ? 0x9 : 0x8; }
  Opcode fma(FmaForm form, LaneOp op) const {
    const int negated = op == LaneOp::nfma ? 4 : 0, of_one = single ? 1 : 0;
    return {2, 1, static_cast<std::uint8_t>(f64), static_cast<std::uint8_t>(static_cast<int>(form) + negated + of_one)};
  }
  Opcode arithmetic(LaneOp op) const {
    switch (op) {
      case LaneOp::add:
        return number(0x58);
      case LaneOp::subtract:
        return number(0x5C);
      case LaneOp::multiply:
        return number(0x59);
      case LaneOp::divide:
        return number(0x5E);
      case LaneOp::minimum:
        return number(0x5D);
      case LaneOp::maximum:
        return number(0x5F);
      default:
        return number(0x51);  // square_root
    }
  }
  static Predicate predicate(LaneOp op) {
    return op == LaneOp::less            ? Predicate::less
           : op == LaneOp::less_or_equal ? Predicate::less_or_equal
                                         : Predicate::equal;
  }

 private:
  std::uint8_t evex_w() const { return wide && f64 ? 1 : 0; }
  // Of all lanes, or of one alone.
  Opcode number(std::uint8_t code) const {
    return single ? Opcode{1, static_cast<std::uint8_t>(f64 ? 3 : 2), 0, code} : packed(code);
  }
  Opcode packed(std::uint8_t code) const { return {1, static_cast<std::uint8_t>(f64), evex_w(), code}; }
};

}  // namespace lockstep::generated
