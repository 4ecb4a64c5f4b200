// A lane type whose operations are written down: a template over lane types, called with it, becomes a LaneProgram of
// the same operations in the same order.
#pragma once

#include <cstddef>

#include "lockstep/kernels/generated/lane_program.h"

namespace lockstep {

// T is the number type of the lanes that the program will run on. Operations are appended to the program of the
// innermost Recording of this thread.
template <class Number>
struct ProgramLane {
  using T = Number;
  using V = LaneProgram::Value;

  class Recording {
   public:
    explicit Recording(LaneProgram& program) : outer_(current_) { current_ = this, program_ = &program; }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;
    ~Recording() { current_ = outer_; }
    // Whether all that was called is in the program; sines and cosines are not.
    bool is_whole() const { return whole_; }

   private:
    friend ProgramLane;
    Recording* outer_;
    LaneProgram* program_;
    bool whole_ = true;
  };

  static V set(T x) { return program().constant(static_cast<double>(x)); }
  static V zero() { return set(T(0)); }
  static V add(V a, V b) { return program().apply(LaneOp::add, a, b); }
  static V sub(V a, V b) { return program().apply(LaneOp::subtract, a, b); }
  static V mul(V a, V b) { return program().apply(LaneOp::multiply, a, b); }
  static V div(V a, V b) { return program().apply(LaneOp::divide, a, b); }
  static V neg(V a) { return program().apply(LaneOp::negate, a); }
  static V sqrt(V a) { return program().apply(LaneOp::square_root, a); }
  static V fma(V a, V b, V c) { return program().apply(LaneOp::fma, a, b, c); }
  static V nfma(V a, V b, V c) { return program().apply(LaneOp::nfma, a, b, c); }
  static V fms(V a, V b, V c) { return fma(a, b, neg(c)); }
  static V sin(V a) { return not_written(a); }
  static V cos(V a) { return not_written(a); }

 private:
  static LaneProgram& program() { return *current_->program_; }
  static V not_written(V a) {
    current_->whole_ = false;
    return a;
  }

  inline static thread_local Recording* current_ = nullptr;
};

}  // namespace lockstep
