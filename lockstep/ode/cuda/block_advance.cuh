// Whole solves by blocks of threads, for right-hand sides with wide nets: a tile of trajectories a block, each with a
// thread of its own for its steps, and all threads for the nets.
#pragma once

#include "lockstep/kernels/cuda/block_net.cuh"
#include "lockstep/ode/cuda/block_launch.h"
#include "lockstep/ode/cuda/block_trajectory.h"
#include "lockstep/ode/cuda/program_derivative.h"

namespace lockstep::ode::cuda {

// A tile's nets in float32 or float64, with the bits of every other kernel.
template <class Number>
class FmaTile {
 public:
  using T = Number;
  static constexpr int kSamples = kBlockTile<T>;

  __device__ FmaTile(const BlockLaunch<T>& launch, unsigned char* shared)
      : values_(reinterpret_cast<T*>(shared) + lockstep::cuda::kChunkStages * lockstep::cuda::kChunkNumbers<T>),
        resident_(values_ + launch.widest * kPitch),
        stream_(launch.weights + launch.first_chunk, launch.chunks, reinterpret_cast<T*>(shared)) {
    const T* const global = launch.weights + launch.first_chunk +
                            static_cast<std::int64_t>(launch.chunks) * lockstep::cuda::kChunkNumbers<T>;
    for (int i = static_cast<int>(threadIdx.x); i < launch.resident_numbers; i += lockstep::cuda::kBlockThreads)
      resident_[i] = global[i];
  }

  __device__ const T* resident() const { return resident_; }
  __device__ void begin(int) {}
  // An input of this thread's trajectory, features ascending; all of them, before end_inputs().
  __device__ void put(int feature, T x) { values_[feature * kPitch + static_cast<int>(threadIdx.x)] = x; }
  __device__ void end_inputs(const lockstep::cuda::BlockNet&) {}
  // All threads of the block.
  __device__ void evaluate(const lockstep::cuda::BlockNet& net) {
    lockstep::cuda::evaluate_block_net<T, kSamples, lockstep::cuda::kMostBlockWidth>(net, resident_, values_, stream_);
  }
  // An output of this thread's trajectory, not yet scaled.
  __device__ T output(int c) const { return values_[c * kPitch + static_cast<int>(threadIdx.x)]; }
  __device__ void close() { stream_.close(); }

 private:
  static constexpr int kPitch = lockstep::cuda::tile_pitch<T>(kSamples);
  T* values_;
  T* resident_;
  lockstep::cuda::WeightStream<T> stream_;
};

// One part of the sum for this thread's trajectory: its inputs into the tile, the block's evaluation, its outputs out
// of it. All threads of the block call it; `mine` is null where a thread has no trajectory.
template <class Tile, class T, class Mine>
__device__ void evaluate_net_part(const BlockLaunch<T>& launch, int part_index, Tile& tile, const Mine* mine,
                                  const T* u, T* sum) {
  using L = ScalarLane<T>;
  const PartProgram& part = launch.program.part[part_index];
  const lockstep::cuda::BlockNet& net = launch.nets[part_index];
  const T* const resident = tile.resident();
  tile.begin(part_index);
  if (mine != nullptr) {
    int filled = 0;
    const auto put = [&](T x) {
      x = bounded_input(part, launch.weights, filled, x);
      if (net.input_scale >= 0)
        x = L::div(L::sub(x, resident[net.input_shift + filled]), resident[net.input_scale + filled]);
      tile.put(filled++, x);
    };
    LOCKSTEP_ROLLED
    for (int c = 0; c < launch.program.components; ++c) put(u[c]);
    LOCKSTEP_ROLLED
    for (int i = 0; i < part.parameters; ++i) put(mine->parameters()[part.first_parameter + i]);
    if (part.with_time) put(static_cast<T>(mine->time()));
    tile.end_inputs(net);
  }
  tile.evaluate(net);
  if (mine == nullptr) return;
  LOCKSTEP_ROLLED
  for (int c = 0; c < launch.program.components; ++c) {
    T y = tile.output(c);
    if (net.output_scale >= 0) y = L::fma(y, resident[net.output_scale + c], resident[net.output_shift + c]);
    sum[c] = part_index == 0 ? y : L::add(sum[c], y);
  }
}

// One block's work. `take` gives the next trajectory nobody has taken. `shared`: block_advance_shared_bytes(). Tile is
// an FmaTile or a TensorTile. Terms and the derivative's event: see derivative.h.
template <class Tile, class Derivative, class Terms = BuiltInTerms, class Take>
__device__ void advance_tile(const BlockLaunch<typename Tile::T>& launch, unsigned char* shared, const Take& take) {
  using T = typename Tile::T;
  Tile tile(launch, shared);

  const TableScheme<T> scheme(launch.method);
  constexpr int most_components = Derivative::kMostComponents;
  const Derivative derivative(launch.program.components);
  BlockTrajectory<T, Derivative> trajectory(launch.ensemble, launch.rules, launch.event, scheme, derivative);
  if (threadIdx.x < Tile::kSamples) trajectory.start(take);
  // The first count is the barrier after the resident numbers, too.
  while (__syncthreads_or(trajectory.busy())) {
    const bool mine = trajectory.busy();
    T u[most_components];
    T* const sum = trajectory.derivatives();
    if (mine) {
      LOCKSTEP_ROLLED
      for (int c = 0; c < launch.program.components; ++c) u[c] = trajectory.argument(c);
    }
    LOCKSTEP_ROLLED
    for (int i = 0; i < launch.program.parts; ++i) {
      const PartProgram& part = launch.program.part[i];
      if (part.system == kNetPart) {
        evaluate_net_part(launch, i, tile, mine ? &trajectory : nullptr, u, sum);
      } else if (mine) {
        T addend[most_components];
        const T* const p = trajectory.parameters() + part.first_parameter;
        T* const du = i == 0 ? sum : addend;
        if constexpr (Terms::kOwn) {
          Terms::evaluate(i, trajectory.time(), u, p, du);
        } else {
          ProgramDerivative<most_components, 0, T>::evaluate_system(systems::AllSystems(), part.system,
                                                                    static_cast<T>(trajectory.time()), u, p, du);
        }
        LOCKSTEP_ROLLED
        for (int c = 0; i > 0 && c < launch.program.components; ++c) sum[c] = ScalarLane<T>::add(sum[c], addend[c]);
      }
    }
    if (mine) trajectory.resume(take);
  }
  tile.close();
}

}  // namespace lockstep::ode::cuda
