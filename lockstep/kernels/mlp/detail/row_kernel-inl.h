// Dense layers for a few samples: registers run over outputs, and several samples share each load of weights. Each
// output still adds its inputs in ascending order, so the bits are those of the tile kernel.
// No include guard: part of kernels-inl.h.

// y[row][output] for kRows samples and kRegisters registers of outputs; strides count numbers between samples.
template <class T>
using RowBlock = void (*)(const T* HWY_RESTRICT x, ptrdiff_t x_stride, size_t inputs, const T* HWY_RESTRICT w,
                          T* HWY_RESTRICT y, size_t y_stride);

template <class T, int kRows, int kRegisters, bool kRelu>
void row_block(const T* HWY_RESTRICT x, ptrdiff_t x_stride, size_t inputs, const T* HWY_RESTRICT w, T* HWY_RESTRICT y,
               size_t y_stride) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  using V = typename L::V;
  const size_t lanes = hn::Lanes(d);
  V sum[kRows][kRegisters];
#pragma GCC unroll 8
  for (int r = 0; r < kRegisters; ++r) {
    const V bias = hn::LoadU(d, w + r * lanes);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) sum[i][r] = bias;
  }
  for (size_t k = 0; k < inputs; ++k) {
    w += kRegisters * lanes;
    V in[kRows];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) in[i] = L::set(x[i * x_stride + static_cast<ptrdiff_t>(k)]);
#pragma GCC unroll 8
    for (int r = 0; r < kRegisters; ++r) {
      const V weight = hn::LoadU(d, w + r * lanes);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) sum[i][r] = L::fma(weight, in[i], sum[i][r]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int r = 0; r < kRegisters; ++r) {
      V value = sum[i][r];
      if constexpr (kRelu) value = activate<ActivationKind::relu, L>(value, L::zero());
      hn::StoreU(value, d, y + static_cast<size_t>(i) * y_stride + r * lanes);
    }
  }
}

template <class T, int kRows, bool kRelu, int... kIndex>
constexpr std::array<RowBlock<T>, sizeof...(kIndex)> row_blocks(std::integer_sequence<int, kIndex...>) {
  return {row_block<T, kRows, kIndex + 1, kRelu>...};
}

// One layer for `rows` samples. y has room for outputs padded to whole registers. x and y may not overlap.
template <class T>
void row_layer(const PackedLayer<T>& layer, const T* x, ptrdiff_t x_stride, T* y, size_t y_stride, size_t rows) {
  using Sizes = std::make_integer_sequence<int, kRowRegisters>;
  static constexpr std::array<RowBlock<T>, kRowRegisters> kBlocks[2][3] = {
      {row_blocks<T, 1, false>(Sizes()), row_blocks<T, 2, false>(Sizes()), row_blocks<T, 3, false>(Sizes())},
      {row_blocks<T, 1, true>(Sizes()), row_blocks<T, 2, true>(Sizes()), row_blocks<T, 3, true>(Sizes())}};
  const auto& blocks = kBlocks[layer.activation == ActivationKind::relu];
  const ActivationPass<T> activation = activation_pass<T>(layer.activation);
  const T* w = layer.row_weights;
  const size_t lanes = hn::Lanes(Register<T>());
  for (size_t block = 0; block < layer.row_blocks.blocks; ++block) {
    const size_t registers = layer.row_blocks[block];
    for (size_t row = 0; row < rows; row += 3) {
      const size_t count = std::min<size_t>(3, rows - row);
      blocks[count - 1][registers - 1](x + static_cast<ptrdiff_t>(row) * x_stride, x_stride, layer.inputs, w,
                                       y + row * y_stride, y_stride);
    }
    if (activation != nullptr) activation(y, rows, y_stride, registers, layer.alpha);
    w += (1 + layer.inputs) * registers * lanes;
    y += registers * lanes;
  }
}
