// Dense layers over lanes: a block of outputs times one or two registers of lanes stays in registers while the inputs
// pass by. No include guard: part of kernels-inl.h.

// y[j][lane] = finish(bias[j] + sum over k of w[j][k] x[k][lane]) for kOutputs outputs and kRegisters registers of
// lanes; strides count numbers between components.
template <class T>
using TileBlock = void (*)(const T* HWY_RESTRICT x, size_t x_stride, size_t inputs, const T* HWY_RESTRICT w,
                           T* HWY_RESTRICT y, size_t y_stride);

template <class T, int kOutputs, int kRegisters, bool kRelu>
void tile_block(const T* HWY_RESTRICT x, size_t x_stride, size_t inputs, const T* HWY_RESTRICT w, T* HWY_RESTRICT y,
                size_t y_stride) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  using V = typename L::V;
  const size_t lanes = hn::Lanes(d);
  V sum[kOutputs][kRegisters];
#pragma GCC unroll 16
  for (int j = 0; j < kOutputs; ++j) {
#pragma GCC unroll 2
    for (int r = 0; r < kRegisters; ++r) sum[j][r] = L::set(w[j]);
  }
  // Twice: the loop's own instructions cost the narrow blocks a tenth.
#pragma GCC unroll 2
  for (size_t k = 0; k < inputs; ++k, x += x_stride) {
    w += kOutputs;
    V in[kRegisters];
#pragma GCC unroll 2
    for (int r = 0; r < kRegisters; ++r) in[r] = hn::LoadU(d, x + r * lanes);
#pragma GCC unroll 16
    for (int j = 0; j < kOutputs; ++j) {
      const V weight = L::set(w[j]);
#pragma GCC unroll 2
      for (int r = 0; r < kRegisters; ++r) sum[j][r] = L::fma(weight, in[r], sum[j][r]);
    }
  }
#pragma GCC unroll 16
  for (int j = 0; j < kOutputs; ++j, y += y_stride) {
#pragma GCC unroll 2
    for (int r = 0; r < kRegisters; ++r) {
      V value = sum[j][r];
      if constexpr (kRelu) value = activate<ActivationKind::relu, L>(value, L::zero());
      hn::StoreU(value, d, y + r * lanes);
    }
  }
}

template <class T, int kRegisters, bool kRelu, int... kIndex>
constexpr std::array<TileBlock<T>, sizeof...(kIndex)> tile_blocks(std::integer_sequence<int, kIndex...>) {
  return {tile_block<T, kIndex + 1, kRegisters, kRelu>...};
}

// One layer for one or two registers of lanes. x and y may not overlap.
template <class T>
void tile_layer(const PackedLayer<T>& layer, const T* x, size_t x_stride, T* y, size_t y_stride, int registers,
                Ahead* ahead) {
  using Sizes = std::make_integer_sequence<int, kTileOutputs>;
  static constexpr std::array<TileBlock<T>, kTileOutputs> kBlocks[2][2] = {
      {tile_blocks<T, 1, false>(Sizes()), tile_blocks<T, 2, false>(Sizes())},
      {tile_blocks<T, 1, true>(Sizes()), tile_blocks<T, 2, true>(Sizes())}};
  const auto& blocks = kBlocks[layer.activation == ActivationKind::relu][registers - 1];
  const ActivationPass<T> activation = activation_pass<T>(layer.activation);
  // Activations wait for as many sums as stay in the first-level cache beside the inputs and weights: each call of a
  // pass loads its constants anew.
  constexpr size_t kMostBytes = 16384;
  T* raw = y;  // the first row without its activation
  const T* w = layer.tile_weights;
  for (size_t block = 0; block < layer.tile_blocks.blocks; ++block) {
    const size_t outputs = layer.tile_blocks[block];
    if (ahead != nullptr) ahead->fetch();
    blocks[outputs - 1](x, x_stride, layer.inputs, w, y, y_stride);
    w += (1 + layer.inputs) * outputs;
    y += outputs * y_stride;
    if (activation == nullptr) continue;
    const auto rows = static_cast<size_t>(y - raw) / y_stride;
    if (block + 1 < layer.tile_blocks.blocks && rows * y_stride * sizeof(T) < kMostBytes) continue;
    activation(raw, rows, y_stride, static_cast<size_t>(registers), layer.alpha);
    raw = y;
  }
}
