// What tensor cores do, each PTX instruction behind one function (compute capability 8.0 and later). A host compiler
// gets the same from testing/mma_words.h, for the simulator of blocks.
//
// All threads of a warp call them together. With g = lane / 4 and t = lane % 4, registers hold (PTX ISA, "Matrix
// fragments for mma.m16n8k8 / m16n8k16"), for a tile of kTile inputs, which is a row of 32 bytes in every format:
//   a[i]: of row g + 8 (i % 2), the 4 bytes t of the row's left (i < 2) or right half: one TF32 or two 16-bit numbers
//   b[i]: of column g, the 4 bytes t of the left (i = 0) or right half
//   c[i]: of row g + 8 (i / 2), column 2 t + i % 2
//
// c += a b. Products are exact. To what and in which order a tile's sum is rounded NVIDIA does not say. Fasi, Higham,
// Mikaitis & Pranesh, "Numerical behavior of NVIDIA tensor cores" (PeerJ Computer Science 7:e330, 2021), found by trial
// on V100, T4 and A100: a few products at once (p = 4; on A100 8 in 16-bit formats, 4 in TF32) and c are aligned to the
// largest, cut off no earlier than at float32's last bit of it, added, and cut off to float32: towards zero, where IEEE
// rounds to nearest. Each of n / p such sums is then off by at most (p + 2) 2^-23 of the sum of magnitudes: together
// less than n 2^-22 of it. Here, on a CPU, it is one addition after another, inputs ascending, rounded to nearest: less
// than n 2^-24. Of later processors: Khattak & Mikaitis,
// "Accurate models of NVIDIA tensor cores" (arXiv:2512.07004, 2025).
#pragma once

#include "lockstep/kernels/cuda/device_words.cuh"
#include "lockstep/kernels/cuda/tensor_number.h"

#ifndef __CUDACC__
#include "lockstep/kernels/cuda/testing/mma_words.h"
#endif

namespace lockstep::cuda {

// One lane's part of a 16 x kTile matrix.
struct RowFragment {
  std::uint32_t of[4];
};
// One lane's part of two kTile x 8 matrices, neighbours: 16 bytes, as the weights are packed.
struct alignas(16) ColumnFragments {
  std::uint32_t of[4];
};

#ifdef __CUDACC__

__device__ __forceinline__ void multiply_add(Tf32, float (&c)[4], const RowFragment& a, std::uint32_t b0,
                                             std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.of[0]), "r"(a.of[1]), "r"(a.of[2]), "r"(a.of[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void multiply_add(Bf16, float (&c)[4], const RowFragment& a, std::uint32_t b0,
                                             std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.of[0]), "r"(a.of[1]), "r"(a.of[2]), "r"(a.of[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void multiply_add(Fp16, float (&c)[4], const RowFragment& a, std::uint32_t b0,
                                             std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.of[0]), "r"(a.of[1]), "r"(a.of[2]), "r"(a.of[3]), "r"(b0), "r"(b1));
}

// A fragment of rows in shared memory: lanes 0 to 7 give the addresses of the left 16 bytes of rows 0 to 7, lanes 8 to
// 15 of rows 8 to 15, lanes 16 to 31 those of the right 16 bytes. Aligned to 16 bytes.
__device__ __forceinline__ void load_rows(RowFragment& a, const void* shared) {
  const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(a.of[0]), "=r"(a.of[1]), "=r"(a.of[2]), "=r"(a.of[3])
               : "r"(from)
               : "memory");
}

// Numbers in the format: one, or two of 16 bits with the first in the lower half.
__device__ __forceinline__ std::uint32_t to_format(Tf32, float x) {
  std::uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return bits;
}
__device__ __forceinline__ std::uint32_t to_format(Bf16, float x, float y) {
  std::uint32_t bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(y), "f"(x));
  return bits;
}
__device__ __forceinline__ std::uint32_t to_format(Fp16, float x, float y) {
  std::uint32_t bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(y), "f"(x));
  return bits;
}
// As these, of what relu makes of x and y: zero in place of what is negative; NaN stays.
__device__ __forceinline__ std::uint32_t relu_to_format(Bf16, float x, float y) {
  std::uint32_t bits;
  asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(y), "f"(x));
  return bits;
}
__device__ __forceinline__ std::uint32_t relu_to_format(Fp16, float x, float y) {
  std::uint32_t bits;
  asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(y), "f"(x));
  return bits;
}

#else

template <class Format>
void multiply_add(Format, float (&c)[4], const RowFragment& a, std::uint32_t b0, std::uint32_t b1) {
  const std::uint32_t b[2] = {b0, b1};
  testing::multiply_add<Format>(c, a.of, b);
}
inline void load_rows(RowFragment& a, const void* shared) { testing::load_rows(a.of, shared); }
inline std::uint32_t to_format(Tf32, float x) { return Tf32::round(x); }
template <class Format>
std::uint32_t to_format(Format, float x, float y) {
  return Format::round(x) | std::uint32_t{Format::round(y)} << 16;
}
template <class Format>
std::uint32_t relu_to_format(Format, float x, float y) {
  return to_format(Format(), x <= 0 ? 0.0f : x, y <= 0 ? 0.0f : y);
}

#endif

}  // namespace lockstep::cuda
