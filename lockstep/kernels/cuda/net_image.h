// A dense net laid out for threads of a GPU that each evaluate one sample: plain data and one array of weights.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/kernels/mlp/mlp.h"

namespace lockstep::cuda {

inline constexpr int kMostLayers = 16;
inline constexpr int kNetBlock = 8;  // outputs that a thread accumulates together

// Offsets count numbers from the start of the weights.
struct LayerImage {
  std::int32_t inputs, outputs, activation;  // an ActivationKind
  double alpha;
  // Blocks of kNetBlock outputs, each the bias, then for every input its weights: [1 + input][kNetBlock], zeros where
  // the last block has fewer outputs.
  std::int64_t weights;
};

struct NetImage {
  std::int32_t inputs, outputs, layers, widest;
  std::int64_t input_shift, input_scale, output_scale, output_shift;  // -1: none
  LayerImage layer[kMostLayers];
  // A net with one hidden layer and a linear end, unit by unit (see thread_net.h); -1 for any other.
  std::int64_t folded;
  std::int64_t folded_numbers;
};

// Appends the net's numbers, rounded to T, to `weights`, each array at a multiple of 16 bytes. Throws Error (model)
// when a number does not fit in T, (unsupported) for more than kMostLayers layers.
template <class T>
NetImage make_net_image(const Mlp& mlp, std::vector<T>& weights);

extern template NetImage make_net_image<float>(const Mlp&, std::vector<float>&);
extern template NetImage make_net_image<double>(const Mlp&, std::vector<double>&);

}  // namespace lockstep::cuda
