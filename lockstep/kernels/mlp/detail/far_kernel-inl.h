// Layers whose weights come from memory (Packed::is_far): several strips side by side, a panel of a block's
// weights at a time, which all of them multiply while it lies in the first-level cache. No include guard: part of
// kernels-inl.h.

// Inputs of a panel: a strip's and the weights of a block stay in the first-level cache, as do the sums.
inline constexpr size_t kPanelInputs = 256;
// Of the smaller of two sizes of blocks.
inline constexpr int kFarOutputs = kTileOutputs - 1;

// One layer for so many strips, whose x and y lie `apart` numbers from strip to strip and do not overlap; rows of two
// registers.
template <class T>
void far_layer(const PackedLayer<T>& layer, const T* x, T* y, size_t strips, size_t apart) {
  static constexpr TileBlock<T> kGoingOn[2] = {tile_block<T, kFarOutputs, 2, false, true>,
                                               tile_block<T, kTileOutputs, 2, false, true>};
  const size_t row = 2 * hn::Lanes(Register<T>());
  // Blocks of wide layers are as large as they get, or one smaller.
  if (layer.tile_blocks[layer.tile_blocks.blocks - 1] < kFarOutputs || layer.tile_blocks[0] < kFarOutputs) {
    for (size_t s = 0; s < strips; ++s) tile_layer(layer, x + s * apart, row, y + s * apart, row, 2);
    return;
  }
  const ActivationPass<T> activation = layer.activation == ActivationKind::relu
                                           ? apply_activation<T, ActivationKind::relu>
                                           : activation_pass<T>(layer.activation);
  for (size_t k = 0; k < layer.inputs; k += kPanelInputs) {
    const size_t count = std::min(kPanelInputs, layer.inputs - k);
    const bool ends = k + count == layer.inputs;
    const T* w = layer.tile_weights;
    size_t first = 0;
    for (size_t block = 0; block < layer.tile_blocks.blocks; ++block) {
      const size_t outputs = layer.tile_blocks[block];
      const TileBlock<T> products = k == 0 ? kTileBlocks<T>[false][1][outputs - 1] : kGoingOn[outputs - kFarOutputs];
      for (size_t s = 0; s < strips; ++s) {
        T* const to = y + s * apart + first * row;
        products(x + s * apart + k * row, row, count, w + k * outputs, to, row);
        if (ends && activation != nullptr) activation(to, outputs, row, 2, layer.alpha);
      }
      w += (1 + layer.inputs) * outputs;
      first += outputs;
    }
  }
}
