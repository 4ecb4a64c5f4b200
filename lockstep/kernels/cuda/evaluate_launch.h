// What the evaluation kernel is given, and the tile sizes it is compiled in.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/kernels/cuda/block_net.h"

namespace lockstep::cuda {

// Pointers are the device's; strides count numbers. Passed by value, so that it lies in constant memory.
template <class T>
struct EvaluateLaunch {
  BlockNet net;
  const T* chunks;    // of BlockWeights
  const T* resident;  // of BlockWeights
  std::int32_t resident_numbers;
  std::int64_t samples;
  const T* in;  // [sample][input]
  std::int64_t in_row_stride, in_column_stride;
  T* out;  // [sample][output]
  std::int64_t out_row_stride, out_column_stride;
};

// visitor.template operator()<samples of a tile, most width>() for every size that is compiled, largest first.
template <class T, class Visitor>
void for_each_tile_size(const Visitor& visitor) {
  if constexpr (sizeof(T) == 4) {
    visitor.template operator()<128, 128>();
    visitor.template operator()<64, 256>();
    visitor.template operator()<32, 256>();
  } else {
    visitor.template operator()<64, 128>();
    visitor.template operator()<32, 256>();
  }
}

// Samples of the tiles that hold the net, largest first.
template <class T>
std::vector<int> tile_sizes(const BlockNet& net) {
  std::vector<int> sizes;
  for_each_tile_size<T>([&]<int samples, int widest>() {
    if (net.widest <= widest) sizes.push_back(samples);
  });
  return sizes;
}

// Which of the sizes a batch should take: the largest that keeps every multiprocessor busy, else the smallest.
inline std::size_t choose_tile(std::span<const int> sizes, std::int64_t samples, int multiprocessors) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if ((samples + sizes[i] - 1) / sizes[i] >= multiprocessors) return i;
  }
  return sizes.size() - 1;
}

template <class T>
std::size_t evaluate_shared_bytes(const EvaluateLaunch<T>& launch, int tile_samples) {
  return block_shared_bytes<T>(tile_samples, launch.net.widest, static_cast<std::size_t>(launch.resident_numbers));
}

}  // namespace lockstep::cuda
