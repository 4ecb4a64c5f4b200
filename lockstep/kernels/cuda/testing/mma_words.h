// Tensor-core instructions for the simulator of blocks: what mma_words.cuh says of them, with one rounding to nearest
// an addition. Where the hardware's sums differ, and by how much, is said there.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "lockstep/kernels/cuda/testing/cuda_words.h"

namespace lockstep::cuda::testing {

// What the lanes of a warp show each other; a block has at most 32 warps.
struct WarpRegisters {
  std::uint32_t a[32][4], b[32][2];
  const void* row[32];
};
inline WarpRegisters warp_registers[32];

inline WarpRegisters& my_warp() { return warp_registers[threadIdx.x / 32]; }

// Number k of a row that is shared out among four lanes' registers: `left` of the first half, `right` of the second.
template <class Format>
float number_of(std::uint32_t left, std::uint32_t right, int k) {
  constexpr int half = Format::kTile / 2;
  const std::uint32_t bits = k < half ? left : right;
  if constexpr (sizeof(typename Format::Stored) == 4) {
    return Format::widen(bits);
  } else {
    return Format::widen(static_cast<typename Format::Stored>(k % 2 == 0 ? bits : bits >> 16));
  }
}
// The lane, of four, that holds number k.
template <class Format>
int holder(int k) {
  return k % (Format::kTile / 2) * static_cast<int>(sizeof(typename Format::Stored)) / 4;
}

template <class Format>
LOCKSTEP_UNSEEN void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  WarpRegisters& warp = my_warp();
  const unsigned lane = lane_index();
  for (int i = 0; i < 4; ++i) warp.a[lane][i] = a[i];
  for (int i = 0; i < 2; ++i) warp.b[lane][i] = b[i];
  meet_lanes("a matrix product");
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
    for (int k = 0; k < Format::kTile; ++k) {
      const auto with = static_cast<unsigned>(holder<Format>(k));
      const auto& from_a = warp.a[4 * (row % 8) + with];
      const auto& from_b = warp.b[4 * column + with];
      const float x = number_of<Format>(from_a[row / 8], from_a[2 + row / 8], k);
      c[i] = std::fma(x, number_of<Format>(from_b[0], from_b[1], k), c[i]);
    }
  }
  meet_lanes("a matrix product");  // nobody shows the next before all have looked
}

LOCKSTEP_UNSEEN inline void show_row(const void* row) { my_warp().row[lane_index()] = row; }
LOCKSTEP_UNSEEN inline const void* row_of(unsigned lane) { return my_warp().row[lane]; }

// Lane 8 i + r gives the address of row r of the i-th matrix of 8 x 16 bytes; each lane receives 4 bytes of each.
inline void load_rows(std::uint32_t (&a)[4], const void* shared) {
  if (reinterpret_cast<std::uintptr_t>(shared) % 16 != 0) throw KernelFault("ldmatrix: an address not aligned to 16");
  if (on_shared_access != nullptr) on_shared_access(shared, 16);
  const unsigned lane = lane_index();
  show_row(shared);
  meet_lanes("ldmatrix");
  for (unsigned i = 0; i < 4; ++i)
    std::memcpy(&a[i], static_cast<const unsigned char*>(row_of(8 * i + lane / 4)) + 4 * (lane % 4), 4);
  meet_lanes("ldmatrix");
}

}  // namespace lockstep::cuda::testing
