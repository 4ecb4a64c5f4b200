// Every elementary function, activation and derivative by name, on any instruction set: for tests, the exhaustive check
// and benchmarks. Not part of the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/kernels/activation.h"
#include "lockstep/kernels/cpu_target.h"

namespace lockstep::math {

// Functions of one number that are not activations; powers and remainders have one number fixed.
enum class Elementary {
  exp,
  expm1,
  exp2,
  log,
  log2,
  tanh,
  sigmoid,
  softplus,
  erf,
  sin,
  cos,
  atan,
  small_pow,  // x^(-9/64), as step size control needs
  large_pow,  // x^33.75
  base_pow,   // 1.125^x
  floor,
  round,
  modulo,  // by 1.125
};
inline constexpr double kSmallExponent = -9.0 / 64, kLargeExponent = 33.75, kBase = 1.125;  // exact in float32

struct Entry {
  enum class Kind { elementary, activation, derivative };
  std::string name;
  Kind kind = Kind::elementary;
  Elementary elementary{};
  Activation activation{};
  // The error bound: at most `ulps`, or at most `absolute` 2^-p times max(1, |x|), p = 24 or 53, whichever is larger.
  double ulps = 2.5;
  double absolute = 0;
};

const std::vector<Entry>& function_table();

// y[i] = entry(x[i]) on one instruction set, n any number.
template <class T>
void evaluate(const Entry& entry, CpuTarget target, const T* x, T* y, std::size_t n);

// The same through the scalar templates of math.h.
template <class T>
void evaluate_scalar(const Entry& entry, const T* x, T* y, std::size_t n);

// error[i] = |y[i] - truth[i]| in ulp of float32 at the truth, counted as ulp_error (reference.h) does.
struct ErrorSummary {
  double largest = 0;
  uint64_t over_one = 0;  // how many are above one ulp
};
ErrorSummary float_errors(CpuTarget target, const float* y, const double* truth, double* error, std::size_t n);

extern template void evaluate(const Entry&, CpuTarget, const float*, float*, std::size_t);
extern template void evaluate(const Entry&, CpuTarget, const double*, double*, std::size_t);
extern template void evaluate_scalar(const Entry&, const float*, float*, std::size_t);
extern template void evaluate_scalar(const Entry&, const double*, double*, std::size_t);

}  // namespace lockstep::math
