// A batch of samples cut into chunks, and chunks into the groups whose sums are added in a tree.
#pragma once

#include <algorithm>
#include <cstddef>

#include "lockstep/core/parallel.h"
#include "lockstep/kernels/mlp/detail/reverse_packed.h"

namespace lockstep::mlp {

inline constexpr std::size_t kMostGroups = 64;

template <class T>
struct RegressionBatch {
  const T* inputs;  // of TiledSamples
  const T* targets;
  std::size_t samples;
  std::size_t chunk_tiles;
  const T* factors = nullptr;  // or none

  std::size_t tiles() const { return (samples + kTileLanes - 1) / kTileLanes; }
  std::size_t chunks() const { return (tiles() + chunk_tiles - 1) / chunk_tiles; }
  std::size_t groups() const { return std::min(chunks(), kMostGroups); }
};

// The loss of a group, without the batch's scale; sum, if not null, becomes its gradient.
template <class T>
double sum_group(const ReverseNet<T>& net, const RegressionCost<T>& cost, const RegressionBatch<T>& batch,
                 std::size_t group, T* sum, T* workspace) {
  const std::size_t x_tile = net.packed.inputs() * kTileLanes, y_tile = net.packed.outputs() * kTileLanes;
  if (sum != nullptr) std::fill_n(sum, net.parameters, T(0));
  double loss = 0;
  const std::size_t tiles = batch.tiles(), chunks = batch.chunks(), groups = batch.groups();
  const std::size_t end = (group + 1) * chunks / groups;
  for (std::size_t chunk = group * chunks / groups; chunk < end; ++chunk) {
    const std::size_t first = chunk * batch.chunk_tiles;
    const std::size_t count = std::min(batch.chunk_tiles, tiles - first);
    loss += net.kernels->regression(net, cost,
                                    {batch.inputs + first * x_tile, batch.targets + first * y_tile, count,
                                     std::min(count * kTileLanes, batch.samples - first * kTileLanes),
                                     batch.factors == nullptr ? nullptr : batch.factors + first * y_tile},
                                    sum, workspace);
  }
  return loss;
}

// Begins to bring closer what another thread used last, to be read or written: a small net's numbers come all at once,
// not one wait a cache line. Of many the first: the others' waits hardly count.
enum class Use { read, write };
inline constexpr std::size_t kMostBrought = 512;
template <Use kUse, class T>
void bring(const T* numbers, std::size_t count) {
  for (std::size_t i = 0; i < std::min(count, kMostBrought); i += kSlots<T>) {
    if constexpr (kUse == Use::write) {
      bring_to_write(numbers + i);
    } else {
      __builtin_prefetch(numbers + i);
    }
  }
}

// Bytes between threads' memory: nearer, two threads on Zen 4 took 1.6 times as long as this far apart, presumably
// since one's prefetches fetched what the other was writing.
inline constexpr std::size_t kApart = 65536;

}  // namespace lockstep::mlp
