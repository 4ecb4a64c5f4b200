// Dense layers over lanes: a block of outputs times one or two registers of lanes stays in registers while the inputs
// pass by. No include guard: part of kernels-inl.h.

// y[j][lane] = finish(bias[j] + sum over k of w[j][k] x[k][lane]) for kOutputs outputs and kRegisters registers of
// lanes; strides count numbers between components.
template <class T>
using TileBlock = void (*)(const T* HWY_RESTRICT x, size_t x_stride, size_t inputs, const T* HWY_RESTRICT w,
                           T* HWY_RESTRICT y, size_t y_stride);

// The block with `ahead(k)` run before the products of input k, and weights broadcast for each product where kEmbedded.
template <class T, int kOutputs, int kRegisters, bool kRelu, bool kEmbedded, class F>
HWY_INLINE void sum_products(const T* x, size_t x_stride, size_t inputs, const T* HWY_RESTRICT w, T* HWY_RESTRICT y,
                             size_t y_stride, F ahead) {
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
  const T* each[2] = {w, w};
  if constexpr (kEmbedded) asm("" : "+r"(each[1]));  // else the compiler would load once for both
    // Twice: the loop's own instructions cost the narrow blocks a tenth.
#pragma GCC unroll 2
  for (size_t k = 0; k < inputs; ++k, x += x_stride) {
    each[0] += kOutputs;
    each[1] += kOutputs;
    ahead(k);
    V in[kRegisters];
#pragma GCC unroll 2
    for (int r = 0; r < kRegisters; ++r) in[r] = hn::LoadU(d, x + r * lanes);
#pragma GCC unroll 16
    for (int j = 0; j < kOutputs; ++j) {
#pragma GCC unroll 2
      for (int r = 0; r < kRegisters; ++r) {
        sum[j][r] = L::fma(L::set(each[kEmbedded ? r : 0][j]), in[r], sum[j][r]);
      }
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

template <class T, int kOutputs, int kRegisters, bool kRelu>
void tile_block(const T* HWY_RESTRICT x, size_t x_stride, size_t inputs, const T* HWY_RESTRICT w, T* HWY_RESTRICT y,
                size_t y_stride) {
  sum_products<T, kOutputs, kRegisters, kRelu, false>(x, x_stride, inputs, w, y, y_stride, [](size_t) {});
}

template <class T, int kRegisters, bool kRelu, int... kIndex>
constexpr std::array<TileBlock<T>, sizeof...(kIndex)> tile_blocks(std::integer_sequence<int, kIndex...>) {
  return {tile_block<T, kIndex + 1, kRegisters, kRelu>...};
}

using TileSizes = std::make_integer_sequence<int, kTileOutputs>;

// [relu][registers - 1][outputs - 1]
template <class T>
inline constexpr std::array<TileBlock<T>, kTileOutputs> kTileBlocks[2][2] = {
    {tile_blocks<T, 1, false>(TileSizes()), tile_blocks<T, 2, false>(TileSizes())},
    {tile_blocks<T, 1, true>(TileSizes()), tile_blocks<T, 2, true>(TileSizes())}};

// tanh of a layer's rows is not taken after the layer but among the products of the next layer's first block, a few
// rows before those that multiply: the adders and shuffles of the one work beside the multipliers of the other. Weights
// then are operands in memory, since a broadcast into a register is a shuffle too (benchmarks/pipe_mix.cpp). On Zen 4
// 4-32-16-4 and 3-100-3 take 0.97 of the time of both one after the other, 10-133x5-8 0.98. In float64, whose tanh
// is longer, the sums leave it too few registers: 1.04.
template <class T>
inline constexpr bool kDefersTanh = HWY_TARGET == HWY_AVX3 && sizeof(T) == 4;
// Outputs beside which tanh has the registers it needs.
inline constexpr size_t kTanhOutputs = 8;
// Rows: as many as hide tanh's chain of dependent operations and the way through memory.
inline constexpr size_t kRowsAhead = 4;

// The first kRowsAhead rows of x hold tanh already, the others will.
template <class T>
using TanhBlock = void (*)(T* x, size_t x_stride, size_t inputs, const T* HWY_RESTRICT w, T* HWY_RESTRICT y,
                           size_t y_stride);

template <class T, int kOutputs>
void tanh_block(T* x, size_t x_stride, size_t inputs, const T* HWY_RESTRICT w, T* HWY_RESTRICT y, size_t y_stride) {
  const auto ahead = [=](size_t k) HWY_ATTR __attribute__((always_inline)) {
    if (k + kRowsAhead >= inputs) return;
    activate_groups<T, ActivationKind::tanh, 2>(x + (k + kRowsAhead) * x_stride, 0, 2, T(0));
  };
  sum_products<T, kOutputs, 2, false, true>(x, x_stride, inputs, w, y, y_stride, ahead);
}

template <class T, int... kIndex>
constexpr std::array<TanhBlock<T>, sizeof...(kIndex)> tanh_blocks(std::integer_sequence<int, kIndex...>) {
  if constexpr (kDefersTanh<T>) {
    return {tanh_block<T, kIndex + 1>...};
  } else {
    return {};
  }
}

// Whether a layer, over two registers, may leave its tanh to the next one, which must not be relu: that has no such
// block.
template <class T>
bool defers_tanh(const PackedLayer<T>& layer, const PackedLayer<T>& next) {
  return kDefersTanh<T> && layer.activation == ActivationKind::tanh && next.activation != ActivationKind::relu;
}

// One layer for one or two registers of lanes. x and y may not overlap.
template <class T, class A>
void tile_layer(const PackedLayer<T>& layer, const T* x, size_t x_stride, T* y, size_t y_stride, int registers,
                A* ahead) {
  const auto& blocks = kTileBlocks<T>[layer.activation == ActivationKind::relu][registers - 1];
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

// The same for two registers beside a layer that defers its tanh: `pending` is x, or null where x holds values;
// `defers` says whether y shall hold values in its first kRowsAhead rows only.
template <class T, class A>
void tile_layer_beside_tanh(const PackedLayer<T>& layer, const T* x, T* pending, size_t x_stride, T* y, size_t y_stride,
                            bool defers, A* ahead) {
  static_assert(kTileOutputs / 2 >= kRowsAhead || !kDefersTanh<T>, "a layer's first block holds the first rows");
  static constexpr auto kTanhBlocks = tanh_blocks<T>(TileSizes());
  const auto& blocks = kTileBlocks<T>[layer.activation == ActivationKind::relu][1];
  const ActivationPass<T> activation = activation_pass<T>(layer.activation);
  T* const first = y;
  const T* w = layer.tile_weights;
  for (size_t block = 0; block < layer.tile_blocks.blocks; ++block) {
    const size_t outputs = layer.tile_blocks[block];
    if (ahead != nullptr) ahead->fetch();
    if (block == 0 && pending != nullptr) {
      kTanhBlocks[outputs - 1](pending, x_stride, layer.inputs, w, y, y_stride);
    } else {
      blocks[outputs - 1](x, x_stride, layer.inputs, w, y, y_stride);
    }
    if (block == 0 && defers) activation(y, std::min(outputs, kRowsAhead), y_stride, 2, layer.alpha);
    w += (1 + layer.inputs) * outputs;
    y += outputs * y_stride;
  }
  if (!defers && activation != nullptr) activation(first, layer.outputs, y_stride, 2, layer.alpha);
}
