// Numbers as matrix products take them: the state's own type, or rounded to a format of tensor cores.
#pragma once

#include <cstdint>

#include "lockstep/core/matrix_precision.h"
#include "lockstep/kernels/cuda/tensor_number.h"

namespace lockstep::ode::cuda {

// x as number `index` of a matrix: 16 bits each with bf16 and fp16, else T. Modes other than f32 are for float32 alone.
template <class T>
LOCKSTEP_HOST_DEVICE void store_factor(void* matrix, std::int64_t index, T x, MatrixPrecision mode) {
  if constexpr (sizeof(T) == 4) {
    using lockstep::cuda::Bf16, lockstep::cuda::Fp16, lockstep::cuda::Tf32;
    switch (mode) {
      case MatrixPrecision::bf16:
        static_cast<std::uint16_t*>(matrix)[index] = Bf16::round(x);
        return;
      case MatrixPrecision::fp16:
        static_cast<std::uint16_t*>(matrix)[index] = Fp16::round(x);
        return;
      case MatrixPrecision::tf32:  // to nearest: what a product does to the rest of the bits is its own affair
        static_cast<float*>(matrix)[index] = Tf32::widen(Tf32::round(x));
        return;
      case MatrixPrecision::f32:
        break;
    }
  }
  static_cast<T*>(matrix)[index] = x;
}

// Four of them side by side, the first a multiple of four: one store.
template <class T>
struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) FourNumbers {
  T of[4];
};
template <class T>
LOCKSTEP_HOST_DEVICE void store_four_factors(void* matrix, std::int64_t index, const FourNumbers<T>& x,
                                             MatrixPrecision mode) {
  if (sizeof(T) == 4 && (mode == MatrixPrecision::bf16 || mode == MatrixPrecision::fp16)) {
    FourNumbers<std::uint16_t> rounded;
    for (int j = 0; j < 4; ++j) store_factor(rounded.of, j, x.of[j], mode);
    *reinterpret_cast<FourNumbers<std::uint16_t>*>(static_cast<std::uint16_t*>(matrix) + index) = rounded;
    return;
  }
  FourNumbers<T> rounded;
  for (int j = 0; j < 4; ++j) store_factor(rounded.of, j, x.of[j], mode);
  *reinterpret_cast<FourNumbers<T>*>(static_cast<T*>(matrix) + index) = rounded;
}

template <class T>
LOCKSTEP_HOST_DEVICE T load_factor(const void* matrix, std::int64_t index, MatrixPrecision mode) {
  if constexpr (sizeof(T) == 4) {
    using lockstep::cuda::Bf16, lockstep::cuda::Fp16;
    if (mode == MatrixPrecision::bf16) return Bf16::widen(static_cast<const std::uint16_t*>(matrix)[index]);
    if (mode == MatrixPrecision::fp16) return Fp16::widen(static_cast<const std::uint16_t*>(matrix)[index]);
  }
  return static_cast<const T*>(matrix)[index];
}

}  // namespace lockstep::ode::cuda
