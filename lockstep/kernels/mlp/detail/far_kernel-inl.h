// Layers whose weights come from memory (Packed::is_far): several strips side by side, a panel of a block's
// weights at a time, which all of them multiply while it lies in the first-level cache. No include guard: part of
// kernels-inl.h.

// Inputs of a panel: a strip's and the weights of a block stay in the first-level cache, as do the sums.
inline constexpr size_t kPanelInputs = 256;
// Of the smaller of two sizes of blocks.
inline constexpr int kFarOutputs = kTileOutputs > 1 ? kTileOutputs - 1 : 1;

// y[j][lane] += sum over k of w[k][j] x[k][lane] for some outputs and two registers of lanes, in the order of inputs.
template <class T, int kOutputs>
void tile_part(const T* HWY_RESTRICT x, size_t x_stride, size_t inputs, const T* HWY_RESTRICT w, T* HWY_RESTRICT y,
               size_t y_stride) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  using V = typename L::V;
  const size_t lanes = hn::Lanes(d);
  V sum[kOutputs][2];
#pragma GCC unroll 16
  for (int j = 0; j < kOutputs; ++j) {
    sum[j][0] = hn::LoadU(d, y + static_cast<size_t>(j) * y_stride);
    sum[j][1] = hn::LoadU(d, y + static_cast<size_t>(j) * y_stride + lanes);
  }
  for (size_t k = 0; k < inputs; ++k, x += x_stride, w += kOutputs) {
    const V in[2] = {hn::LoadU(d, x), hn::LoadU(d, x + lanes)};
#pragma GCC unroll 16
    for (int j = 0; j < kOutputs; ++j) {
      const V weight = L::set(w[j]);
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
// Rows of two registers.
template <class T, class F>
HWY_INLINE void for_pairs(T* y, size_t rows, F f) {
  const Register<T> d;
  for (T* const end = y + rows * 2 * hn::Lanes(d); y < end; y += hn::Lanes(d)) f(d, y);
}

// One layer for so many strips, whose x and y lie `apart` numbers from strip to strip and do not overlap; rows of two
// registers.
template <class T>
void far_layer(const PackedLayer<T>& layer, const T* x, T* y, size_t strips, size_t apart) {
  using L = HwyLane<Register<T>>;
  const size_t row = 2 * hn::Lanes(Register<T>());
  // Blocks of wide layers are as large as they get, or one smaller.
  if (layer.tile_blocks[0] < kFarOutputs || layer.tile_blocks[layer.tile_blocks.blocks - 1] < kFarOutputs) {
    for (size_t s = 0; s < strips; ++s) tile_layer(layer, x + s * apart, row, y + s * apart, row, 2);
    return;
  }
  const ActivationPass<T> activation = activation_pass<T>(layer.activation);
  for (size_t k = 0; k < layer.inputs; k += kPanelInputs) {
    const size_t count = std::min(kPanelInputs, layer.inputs - k);
    const bool begins = k == 0, ends = k + count == layer.inputs;
    const T* w = layer.tile_weights;
    size_t first = 0;
    for (size_t block = 0; block < layer.tile_blocks.blocks; ++block) {
      const size_t outputs = layer.tile_blocks[block];
      for (size_t s = 0; s < strips; ++s) {
        T* const to = y + s * apart + first * row;
        if (begins) {
          for (size_t j = 0; j < outputs; ++j)
            for_pairs(to + j * row, 1, [&](auto d, T* at) HWY_ATTR { hn::StoreU(hn::Set(d, w[j]), d, at); });
        }
        const TileBlock<T> part = outputs == kTileOutputs ? tile_part<T, kTileOutputs> : tile_part<T, kFarOutputs>;
        part(x + s * apart + k * row, row, count, w + (1 + k) * outputs, to, row);
        if (!ends) continue;
        if (layer.activation == ActivationKind::relu) {
          for_pairs(to, outputs, [](auto d, T* at) HWY_ATTR {
            hn::StoreU(activate<ActivationKind::relu, L>(hn::LoadU(d, at), L::zero()), d, at);
          });
        } else if (activation != nullptr) {
          activation(to, outputs, row, 2, layer.alpha);
        }
      }
      w += (1 + layer.inputs) * outputs;
      first += outputs;
    }
  }
}
