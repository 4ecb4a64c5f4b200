// The arithmetic of a net's matrix products on a GPU: full precision, or a mode of tensor cores that is asked for by
// name.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace lockstep {

// Factors are rounded to the mode's format before they are multiplied; sums are float32. A mode's results have no bits
// that are the same everywhere and are held to an error certificate (`lockstep validate`).
enum class MatrixPrecision {
  f32,   // the state's own precision, float32 or float64, without any rounding of factors: what CPUs do
  tf32,  // 8 bits of exponent, 10 of mantissa
  bf16,  // 8 and 7
  fp16,  // 5 and 10: factors beyond 65,504 overflow
};

inline constexpr std::array<std::string_view, 4> kMatrixPrecisionNames{"f32", "tf32", "bf16", "fp16"};

constexpr std::string_view to_string(MatrixPrecision precision) {
  return kMatrixPrecisionNames[static_cast<std::size_t>(precision)];
}

// The largest relative error of rounding a factor of a product to the mode's format; 0 where factors are not rounded.
constexpr double factor_roundoff(MatrixPrecision precision) {
  switch (precision) {
    case MatrixPrecision::f32:
      return 0;
    case MatrixPrecision::bf16:
      return 0x1p-8;
    case MatrixPrecision::tf32:
    case MatrixPrecision::fp16:
      return 0x1p-11;
  }
  return 0;
}

constexpr std::optional<MatrixPrecision> parse_matrix_precision(std::string_view name) {
  for (std::size_t i = 0; i < kMatrixPrecisionNames.size(); ++i) {
    if (kMatrixPrecisionNames[i] == name) return static_cast<MatrixPrecision>(i);
  }
  return std::nullopt;
}

}  // namespace lockstep
