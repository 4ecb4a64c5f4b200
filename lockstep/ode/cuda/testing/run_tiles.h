// A kernel of block_advance.cuh in the simulator of blocks.
#pragma once

#include "lockstep/ode/cuda/block_advance.cuh"

namespace lockstep::ode::cuda {

// Trajectories in turn to two blocks, in an order of threads that the number of trajectories seeds.
template <class Tile, class Derivative = OutsideDerivative<64, typename Tile::T>, class Terms = BuiltInTerms>
void run_tiles_of(const void* arguments, std::size_t& trajectories) {
  const auto& launch = *static_cast<const BlockLaunch<typename Tile::T>*>(arguments);
  trajectories = static_cast<std::size_t>(launch.ensemble.count);
  const auto half = static_cast<unsigned long long>(launch.ensemble.count / 2);
  lockstep::cuda::testing::simulate({.blocks = 2,
                                     .threads = lockstep::cuda::kBlockThreads,
                                     .shared_bytes = block_advance_shared_bytes(launch),
                                     .seed = static_cast<unsigned>(trajectories)},
                                    [&](unsigned char* shared) {
                                      advance_tile<Tile, Derivative, Terms>(launch, shared, [&] {
                                        // The first block stops at half, so that the second has work, too.
                                        if (blockIdx.x == 0 &&
                                            __atomic_load_n(launch.counter, __ATOMIC_RELAXED) >= half)
                                          return launch.ensemble.count;
                                        return static_cast<std::int64_t>(atomicAdd(launch.counter, 1ull));
                                      });
                                    });
}

template <class T, class Derivative = OutsideDerivative<64, T>, class Terms = BuiltInTerms>
void run_tiles(const void* arguments, std::size_t& trajectories) {
  run_tiles_of<FmaTile<T>, Derivative, Terms>(arguments, trajectories);
}

}  // namespace lockstep::ode::cuda
