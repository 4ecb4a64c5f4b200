// The kernel round block_advance.cuh: two blocks a multiprocessor, one computing while the other waits.
#pragma once

#include "lockstep/ode/cuda/block_advance.cuh"
#include "lockstep/ode/cuda/kernels.h"

namespace lockstep::ode::cuda {

// States as large as in the general kernel.
inline constexpr int kMostTileComponents = 64;

template <class Tile>
__global__ void __launch_bounds__(lockstep::cuda::kBlockThreads, 2)
    advance_tile_kernel(const __grid_constant__ BlockLaunch<typename Tile::T> launch) {
  extern __shared__ __align__(16) unsigned char tile_shared[];
  advance_tile<Tile, OutsideDerivative<kMostTileComponents, typename Tile::T>>(
      launch, tile_shared, [&] { return static_cast<std::int64_t>(atomicAdd(launch.counter, 1ull)); });
}

template <class Tile>
CompiledKernel describe_tile_kernel(std::string_view name) {
  using T = typename Tile::T;
  using lockstep::cuda::kBlockThreads;
  return {name, reinterpret_cast<const void*>(advance_tile_kernel<Tile>), kBlockThreads,
          [](const void* launch) { return block_advance_shared_bytes(*static_cast<const BlockLaunch<T>*>(launch)); },
          [](const void* launch) {
            return static_cast<const BlockLaunch<T>*>(launch)->ensemble.count * (kBlockThreads / kBlockTile<T>);
          }};
}

}  // namespace lockstep::ode::cuda
