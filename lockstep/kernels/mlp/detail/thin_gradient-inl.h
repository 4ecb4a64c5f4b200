// Weight gradients of the two layers that a thin block takes at once, in one pass over the neurons between them: a
// block of neurons holds its sums of both layers in registers while the tiles pass by. Bits as layer after layer.
// No include guard: part of reverse_kernels-inl.h.

// Rows of the records where the layers' numbers begin.
struct ThinGradientRows {
  size_t x, neuron_bars, values, bars;
};
// sums[neuron][input, then the bias, then outputs][slot] over the tiles, for neurons from `first` on.
template <class T>
using ThinGradientBlock = void (*)(RecordedTiles<T> tiles, const ThinGradientRows& rows, size_t first, T* sums);

#if HWY_TARGET == HWY_AVX3
// What the layers share is in registers while all neurons of the block take it: the empty asm keeps the compiler from
// reading it anew for each, since a load beside two products a cycle costs half a product.
template <class T, int kInputs, int kOutputs, int kNeurons>
void thin_gradient_block(RecordedTiles<T> tiles, const ThinGradientRows& rows, size_t first, T* sums) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  using V = typename L::V;
  constexpr int kSums = kInputs + 1 + kOutputs;
  V sum[kNeurons][kSums];
#pragma GCC unroll 4
  for (int j = 0; j < kNeurons; ++j) {
#pragma GCC unroll 16
    for (int s = 0; s < kSums; ++s) sum[j][s] = L::zero();
  }
  for (const RecordedTile<T>& tile : tiles) {
    const T* z = tile.cotangents + (rows.neuron_bars + first) * kTileLanes;
    const T* y = tile.activations + (rows.values + first) * kTileLanes;
    const T* x = tile.activations + rows.x * kTileLanes;
    const T* out = tile.cotangents + rows.bars * kTileLanes;
    const T* later =
        (tile.later != nullptr ? tile.later : tile.activations) + rows.values * kTileLanes + first * kSlots<T>;
#pragma GCC unroll 4
    for (int j = 0; j < kNeurons; ++j) __builtin_prefetch(later + j * kSlots<T>, 0, 2);
    for (int lane = 0; lane < tile.lanes; lane += kSlots<T>) {
      V each[kNeurons];
#pragma GCC unroll 4
      for (int j = 0; j < kNeurons; ++j) {
        each[j] = hn::LoadU(d, z + j * kTileLanes + lane);
        sum[j][kInputs] = L::add(sum[j][kInputs], each[j]);
      }
#pragma GCC unroll 4
      for (int i = 0; i < kInputs; ++i) {
        V in = hn::LoadU(d, x + i * kTileLanes + lane);
        asm("" : "+v"(in.raw));
#pragma GCC unroll 4
        for (int j = 0; j < kNeurons; ++j) sum[j][i] = L::fma(each[j], in, sum[j][i]);
      }
#pragma GCC unroll 4
      for (int j = 0; j < kNeurons; ++j) each[j] = hn::LoadU(d, y + j * kTileLanes + lane);
#pragma GCC unroll 4
      for (int o = 0; o < kOutputs; ++o) {
        V bar = hn::LoadU(d, out + o * kTileLanes + lane);
        asm("" : "+v"(bar.raw));
#pragma GCC unroll 4
        for (int j = 0; j < kNeurons; ++j) {
          V& total = sum[j][kInputs + 1 + o];
          total = L::fma(bar, each[j], total);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < kNeurons; ++j) {
#pragma GCC unroll 16
    for (int s = 0; s < kSums; ++s) hn::StoreU(sum[j][s], d, sums + (j * kSums + s) * kSlots<T>);
  }
}

#endif
// Neurons whose sums fill the registers, beside a number of each and one of the other layer's.
constexpr int thin_gradient_neurons(size_t inputs, size_t outputs) { return inputs + 1 + outputs <= 6 ? 4 : 3; }

// kMost neurons at most.
template <class T, int kMost, size_t... kIndex>
constexpr std::array<ThinGradientBlock<T>, sizeof...(kIndex)> thin_gradient_blocks(std::index_sequence<kIndex...>) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (kDefersTanh<T>) {
    return {thin_gradient_block<T, kIndex / kThinOutputsOfTanh + 1, kIndex % kThinOutputsOfTanh + 1,
                                std::min(kMost, thin_gradient_neurons(kIndex / kThinOutputsOfTanh + 1,
                                                                      kIndex % kThinOutputsOfTanh + 1))>...};
  } else {
    return {};
  }
#else
  return {};
#endif
}

// Both layers' gradients += their sums over the tiles, for layers of which goes_back_thin holds.
template <class T>
void thin_layers_gradient(const ReverseLayer<T>& layer, const ReverseLayer<T>& next, RecordedTiles<T> tiles,
                          T* gradient) {
  using Sizes = std::make_index_sequence<kThinInputs * kThinOutputsOfTanh>;
  static constexpr auto kBlocks = thin_gradient_blocks<T, 4>(Sizes()), kRests = thin_gradient_blocks<T, 1>(Sizes());
  const size_t inputs = layer.forward.inputs, neurons = layer.forward.outputs, outputs = next.forward.outputs;
  const size_t index = (inputs - 1) * kThinOutputsOfTanh + outputs - 1, sums_each = inputs + 1 + outputs;
  const auto most = static_cast<size_t>(thin_gradient_neurons(inputs, outputs));
  const ThinGradientRows rows{layer.tile.x, layer.tile.cotangent, layer.tile.y, next.tile.cotangent};
  HWY_ALIGN T sums[kGradientSums * kSlots<T>];
  HWY_ALIGN T totals[kGradientSums];
  T* const w = gradient + layer.parameters;
  T* const bias = w + inputs * neurons;
  T* const next_w = gradient + next.parameters;
  for (size_t j = 0; j < neurons;) {
    const size_t count = neurons - j >= most ? most : 1;
    (count == most ? kBlocks : kRests)[index](tiles, rows, j, sums);
    add_slots(sums, count * sums_each, totals);
    for (const T* total = totals; total < totals + count * sums_each; ++j) {
      for (size_t i = 0; i < inputs; ++i) w[j * inputs + i] += *total++;
      bias[j] += *total++;
      for (size_t o = 0; o < outputs; ++o) next_w[o * neurons + j] += *total++;
    }
  }
  bias_gradient<T>(outputs, tiles, rows.bars, next_w + outputs * neurons);
}
