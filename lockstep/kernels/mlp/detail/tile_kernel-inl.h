// Dense layers over lanes: a block of outputs times one or two registers of lanes stays in registers while the inputs
// pass by. No include guard: part of kernels-inl.h.

// kGoesOn: y holds what other inputs made, where w has the weights of the last of them, or the bias.
template <class T, int kOutputs, int kRegisters, bool kRelu, bool kGoesOn = false>
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
    for (int r = 0; r < kRegisters; ++r) {
      if constexpr (kGoesOn) {
        sum[j][r] = hn::LoadU(d, y + static_cast<size_t>(j) * y_stride + static_cast<size_t>(r) * lanes);
      } else {
        sum[j][r] = L::set(w[j]);
      }
    }
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
#pragma GCC unroll 2
      for (int r = 0; r < kRegisters; ++r) sum[j][r] = L::fma(L::set(w[j]), in[r], sum[j][r]);
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
// tanh is a long chain of dependent operations, and what waits in it fills the places where a processor looks for work.
// So it is cut in three steps, and a turn takes each for another register of numbers: 4-32-16-4 takes 0.97 of the time
// that it takes with all steps of a row in one turn (Zen 5).
template <class T>
inline constexpr bool kDefersTanh = HWY_TARGET == HWY_AVX3 && sizeof(T) == 4;
// Outputs beside which tanh has the registers it needs.
inline constexpr size_t kTanhOutputs = 8;
// Rows: as many as hide tanh's chain of dependent operations and the way through memory.
inline constexpr size_t kRowsAhead = 4;

template <class T, int kOutputs>
void tanh_block(const T* x, size_t x_stride, size_t inputs, const T* HWY_RESTRICT w, T* HWY_RESTRICT y, size_t y_stride,
                T* rows, size_t rows_stride, size_t count, size_t lead) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  using V = typename L::V;
  const size_t lanes = hn::Lanes(d);
  V sum[kOutputs][2];
#pragma GCC unroll 16
  for (int j = 0; j < kOutputs; ++j) sum[j][0] = sum[j][1] = L::set(w[j]);
  TanhStart<L> start;
  TanhParts<L> parts;
  const auto begin = [&](const T* at) HWY_ATTR __attribute__((always_inline)) {
    start = tanh_start<L>(hn::LoadU(d, at));
  };
  const auto go_on = [&]() HWY_ATTR __attribute__((always_inline)) { parts = tanh_parts<L>(tanh_terms<L>(start)); };
  const auto finish = [&](T * at) HWY_ATTR __attribute__((always_inline)) {
    parts.argument = hn::LoadU(d, at);
    hn::StoreU(tanh_end<L>(parts), d, at);
  };
  // Weights are operands in memory: the second register's must not be seen to be the first one's, or they are loaded
  // once for both.
  const T* each[2] = {w, w};
  asm("" : "+r"(each[1]));
  const auto products = [&](size_t r) HWY_ATTR __attribute__((always_inline)) {
    each[r] += kOutputs;
    const V in = hn::LoadU(d, x + r * lanes);
#pragma GCC unroll 16
    for (int j = 0; j < kOutputs; ++j) sum[j][r] = L::fma(L::set(each[r][j]), in, sum[j][r]);
  };
  begin(rows);
  go_on();
  begin(rows + lanes);
  for (; lead > 0; --lead, --count, rows += rows_stride) {
    asm volatile("");
    finish(rows);
    go_on();
    begin(rows + rows_stride);
    asm volatile("");
    finish(rows + lanes);
    go_on();
    begin(rows + rows_stride + lanes);
    asm volatile("");
  }
  size_t k = 0;
  for (; k + 1 < count; ++k, x += x_stride, rows += rows_stride) {
    asm volatile("");
    finish(rows);
    go_on();
    begin(rows + rows_stride);
    products(0);
    asm volatile("");
    finish(rows + lanes);
    go_on();
    begin(rows + rows_stride + lanes);
    products(1);
    asm volatile("");
  }
  finish(rows);
  go_on();
  finish(rows + lanes);
  // Here a weight is loaded once for both: 18 loads beside 16 products would take longer than these.
#pragma GCC unroll 2
  for (; k < inputs; ++k, x += x_stride) {
    each[0] += kOutputs;
    const V in[2] = {hn::LoadU(d, x), hn::LoadU(d, x + lanes)};
#pragma GCC unroll 16
    for (int j = 0; j < kOutputs; ++j) {
      const V weight = L::set(each[0][j]);
      sum[j][0] = L::fma(weight, in[0], sum[j][0]);
      sum[j][1] = L::fma(weight, in[1], sum[j][1]);
    }
  }
#pragma GCC unroll 16
  for (int j = 0; j < kOutputs; ++j, y += y_stride) {
    hn::StoreU(sum[j][0], d, y);
    hn::StoreU(sum[j][1], d, y + lanes);
  }
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

// Activations wait for as many sums as stay in the first-level cache beside the inputs and weights: each call of a pass
// loads its constants anew.
inline constexpr size_t kMostRawBytes = 16384;

// One layer for one or two registers of lanes. x and y may not overlap.
template <class T>
void tile_layer(const PackedLayer<T>& layer, const T* x, size_t x_stride, T* y, size_t y_stride, int registers) {
  const auto& blocks = kTileBlocks<T>[layer.activation == ActivationKind::relu][registers - 1];
  const ActivationPass<T> activation = activation_pass<T>(layer.activation);
  T* raw = y;  // the first row without its activation
  const T* w = layer.tile_weights;
  for (size_t block = 0; block < layer.tile_blocks.blocks; ++block) {
    const size_t outputs = layer.tile_blocks[block];
    blocks[outputs - 1](x, x_stride, layer.inputs, w, y, y_stride);
    w += (1 + layer.inputs) * outputs;
    y += outputs * y_stride;
    if (activation == nullptr) continue;
    const auto rows = static_cast<size_t>(y - raw) / y_stride;
    if (block + 1 < layer.tile_blocks.blocks && rows * y_stride * sizeof(T) < kMostRawBytes) continue;
    activation(raw, rows, y_stride, static_cast<size_t>(registers), layer.alpha);
    raw = y;
  }
}

// Turns by which tanh of `count` rows, the first of them row `first` of a block's inputs, goes before their products.
inline size_t tanh_lead(size_t first, size_t count) {
  return std::min(first < kRowsAhead ? kRowsAhead - first : 0, count - 1);
}

// The same for two registers beside a layer that leaves tanh to the next one: `pending` is x, holding sums, or null
// where x holds values; `defers` says whether y shall hold sums.
template <class T>
void tile_layer_beside_tanh(const PackedLayer<T>& layer, const T* x, T* pending, size_t x_stride, T* y, size_t y_stride,
                            bool defers) {
  static constexpr auto kTanhBlocks = tanh_blocks<T>(TileSizes());
  const auto& blocks = kTileBlocks<T>[layer.activation == ActivationKind::relu][1];
  const ActivationPass<T> activation = activation_pass<T>(layer.activation);
  T* const first = y;
  const T* w = layer.tile_weights;
  for (size_t block = 0; block < layer.tile_blocks.blocks; ++block) {
    const size_t outputs = layer.tile_blocks[block];
    if (block == 0 && pending != nullptr) {
      kTanhBlocks[outputs - 1](x, x_stride, layer.inputs, w, y, y_stride, pending, x_stride, layer.inputs,
                               tanh_lead(0, layer.inputs));
    } else {
      blocks[outputs - 1](x, x_stride, layer.inputs, w, y, y_stride);
    }
    w += (1 + layer.inputs) * outputs;
    y += outputs * y_stride;
  }
  if (!defers && activation != nullptr) activation(first, layer.outputs, y_stride, 2, layer.alpha);
}
