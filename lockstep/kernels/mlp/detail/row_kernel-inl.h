// Dense layers for a few samples: registers run over outputs, and several samples share each load of weights. Each
// output still adds its inputs in ascending order, so the bits are those of the tile kernel.
// No include guard: part of kernels-inl.h.

// y[row][output] for kRows samples and kRegisters registers of outputs, after relu where the activation is that.
// Strides count numbers between samples (x, y) and between inputs (w).
template <class T>
using RowBlock = void (*)(const T* HWY_RESTRICT x, ptrdiff_t x_stride, size_t inputs, const T* HWY_RESTRICT w,
                          size_t w_stride, T* HWY_RESTRICT y, size_t y_stride, ActivationKind activation);

// GCC repeats a load rather than keep a register where up to three uses follow; then loads, not sums, set the pace.
template <class V>
HWY_INLINE void hold(V& v) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  asm("" : "+v"(v.raw));
#else
  (void)v;
#endif
}

template <class T, int kRows, int kRegisters>
void row_block(const T* HWY_RESTRICT x, ptrdiff_t x_stride, size_t inputs, const T* HWY_RESTRICT w, size_t w_stride,
               T* HWY_RESTRICT y, size_t y_stride, ActivationKind activation) {
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
    w += w_stride;
    V weight[kRegisters];
#pragma GCC unroll 8
    for (int r = 0; r < kRegisters; ++r) {
      weight[r] = hn::LoadU(d, w + r * lanes);
      if constexpr (kRows > 1) hold(weight[r]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const V in = L::set(x[i * x_stride + static_cast<ptrdiff_t>(k)]);
#pragma GCC unroll 8
      for (int r = 0; r < kRegisters; ++r) sum[i][r] = L::fma(weight[r], in, sum[i][r]);
    }
  }
  if (activation == ActivationKind::relu) {
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (int r = 0; r < kRegisters; ++r) sum[i][r] = activate<ActivationKind::relu, L>(sum[i][r], L::zero());
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int r = 0; r < kRegisters; ++r) {
      hn::StoreU(sum[i][r], d, y + static_cast<size_t>(i) * y_stride + r * lanes);
    }
  }
}

template <class T, int kRows, int kRegisters>
constexpr RowBlock<T> row_block_or_null() {
  if constexpr (kRegisters <= kRowRegisters[kRows - 1]) {
    return row_block<T, kRows, kRegisters>;
  } else {
    return nullptr;
  }
}

template <class T, int... kIndex>
constexpr std::array<RowBlock<T>, sizeof...(kIndex)> row_blocks(std::integer_sequence<int, kIndex...>) {
  return {row_block_or_null<T, kIndex / kMostRowRegisters + 1, kIndex % kMostRowRegisters + 1>()...};
}

// One layer for `rows` samples. y has room for outputs padded to whole registers. x and y may not overlap.
template <class T>
void row_layer(const PackedLayer<T>& layer, const T* x, ptrdiff_t x_stride, T* y, size_t y_stride, size_t rows) {
  using Sizes = std::make_integer_sequence<int, kRowsAtOnce * kMostRowRegisters>;
  static constexpr auto kBlocks = row_blocks<T>(Sizes());
  const size_t lanes = hn::Lanes(Register<T>());
  const size_t registers = (layer.outputs + lanes - 1) / lanes;
  const mlp::Partition groups(rows, kRowsAtOnce), panels(registers, layer.row_panel);
  const T* w = layer.row_weights;
  T* to = y;
  for (size_t panel = 0; panel < panels.blocks; ++panel) {
    const size_t width = panels[panel] * lanes;
    const T* from = x;
    T* y_rows = to;
    for (size_t group = 0; group < groups.blocks; ++group) {
      const size_t count = groups[group];
      const mlp::Partition parts(panels[panel], static_cast<size_t>(kRowRegisters[count - 1]));
      size_t first = 0;
      for (size_t part = 0; part < parts.blocks; ++part) {
        kBlocks[(count - 1) * kMostRowRegisters + parts[part] - 1](from, x_stride, layer.inputs, w + first, width,
                                                                   y_rows + first, y_stride, layer.activation);
        first += parts[part] * lanes;
      }
      from += static_cast<ptrdiff_t>(count) * x_stride;
      y_rows += count * y_stride;
    }
    w += (1 + layer.inputs) * width;
    to += width;
  }
  if (const auto activation = activation_pass<T>(layer.activation); activation != nullptr) {
    activation(y, rows, y_stride, registers, layer.alpha);
  }
}
