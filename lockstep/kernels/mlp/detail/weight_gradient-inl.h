// Weight gradients of a chunk of tiles: a block of weights stays in registers, a register of slots each, while the
// tiles pass by. No include guard: part of reverse_kernels-inl.h.

// Most outputs and inputs of a block: its sums and one operand fill the registers, the other comes from memory.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
inline constexpr int kGradientOutputs = 4, kGradientInputs = 6;
#elif HWY_TARGET == HWY_AVX2
inline constexpr int kGradientOutputs = 3, kGradientInputs = 4;
#else
inline constexpr int kGradientOutputs = 1, kGradientInputs = 4;
#endif
// Sums a block may hold, bias included, rounded up to whole registers for the sum over slots.
inline constexpr size_t kGradientSums =
    (kGradientOutputs * kGradientInputs + HWY_MAX_BYTES / 4 - 1) / (HWY_MAX_BYTES / 4) * (HWY_MAX_BYTES / 4);

template <class T>
using RecordedTiles = std::span<const RecordedTile<T>>;

// sums[j * kInputs + k][slot] over the tiles, for outputs j of the cotangents at row z and inputs k of the activations
// at row x. kInputs 0: the bias, sums[j][slot].
template <class T>
using GradientBlock = void (*)(RecordedTiles<T> tiles, size_t z, size_t x, T* sums);

template <class T, int kOutputs, int kInputs>
void gradient_block(RecordedTiles<T> tiles, size_t z_row, size_t x_row, T* sums) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  using V = typename L::V;
  constexpr int kSums = kInputs == 0 ? 1 : kInputs;
  const size_t lanes = hn::Lanes(d);
  for (size_t part = 0; part < kSlots<T>; part += lanes) {
    V sum[kOutputs][kSums];
#pragma GCC unroll 16
    for (int j = 0; j < kOutputs; ++j) {
#pragma GCC unroll 16
      for (int k = 0; k < kSums; ++k) sum[j][k] = L::zero();
    }
    for (const RecordedTile<T>& tile : tiles) {
      const T* z = tile.cotangents + z_row * kTileLanes + part;
      const T* x = tile.activations + x_row * kTileLanes + part;
      for (int lane = 0; lane < tile.lanes; lane += kSlots<T>, z += kSlots<T>, x += kSlots<T>) {
        V bar[kOutputs];
#pragma GCC unroll 16
        for (int j = 0; j < kOutputs; ++j) bar[j] = hn::LoadU(d, z + j * kTileLanes);
        if constexpr (kInputs == 0) {
#pragma GCC unroll 16
          for (int j = 0; j < kOutputs; ++j) sum[j][0] = L::add(sum[j][0], bar[j]);
        } else {
#pragma GCC unroll 16
          for (int k = 0; k < kInputs; ++k) {
            const V in = hn::LoadU(d, x + k * kTileLanes);
#pragma GCC unroll 16
            for (int j = 0; j < kOutputs; ++j) sum[j][k] = L::fma(bar[j], in, sum[j][k]);
          }
        }
      }
    }
#pragma GCC unroll 16
    for (int j = 0; j < kOutputs; ++j) {
#pragma GCC unroll 16
      for (int k = 0; k < kSums; ++k) hn::StoreU(sum[j][k], d, sums + (j * kSums + k) * kSlots<T> + part);
    }
  }
}

// totals[i] = sums[i][slot] added in halves: i to i + half. Both have room for whole registers.
template <class T>
void add_slots(const T* sums, size_t count, T* totals) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  const size_t lanes = hn::Lanes(d);
  HWY_ALIGN T turned[kSlots<T> * hn::MaxLanes(Register<T>())];
  for (size_t first = 0; first < count; first += lanes) {
    rows_to_lanes(sums + first * kSlots<T>, kSlots<T>, kSlots<T>, turned, lanes);
    typename L::V part[kSlots<T>];
#pragma GCC unroll 16
    for (size_t s = 0; s < kSlots<T>; ++s) part[s] = hn::LoadU(d, turned + s * lanes);
#pragma GCC unroll 4
    for (size_t half = kSlots<T> / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
      for (size_t s = 0; s < half; ++s) part[s] = L::add(part[s], part[s + half]);
    }
    hn::StoreU(part[0], d, totals + first);
  }
}

template <class T, int... kIndex>
constexpr std::array<GradientBlock<T>, sizeof...(kIndex)> gradient_blocks(std::integer_sequence<int, kIndex...>) {
  return {gradient_block<T, kIndex / (kGradientInputs + 1) + 1, kIndex % (kGradientInputs + 1)>...};
}

// One layer's gradient += its sums over the tiles, whose cotangents begin at row z, inputs at row x.
template <class T>
void layer_gradient(const ReverseLayer<T>& layer, RecordedTiles<T> tiles, size_t z, size_t x, T* gradient) {
  static constexpr auto kBlocks =
      gradient_blocks<T>(std::make_integer_sequence<int, kGradientOutputs*(kGradientInputs + 1)>());
  const size_t inputs = layer.forward.inputs, outputs = layer.forward.outputs;
  HWY_ALIGN T sums[kGradientSums * kSlots<T>];
  HWY_ALIGN T totals[kGradientSums];
  const mlp::Partition rows(outputs, kGradientOutputs), columns(inputs, kGradientInputs);
  size_t j = 0;
  for (size_t row = 0; row < rows.blocks; ++row) {
    const size_t height = rows[row];
    const auto* const blocks = &kBlocks[(height - 1) * (kGradientInputs + 1)];
    T* const w = gradient + j * inputs;
    size_t k = 0;
    for (size_t column = 0; column < columns.blocks; ++column) {
      const size_t width = columns[column];
      blocks[width](tiles, z + j, x + k, sums);
      add_slots(sums, height * width, totals);
      for (size_t a = 0; a < height; ++a) {
        for (size_t b = 0; b < width; ++b) w[a * inputs + k + b] += totals[a * width + b];
      }
      k += width;
    }
    blocks[0](tiles, z + j, 0, sums);
    add_slots(sums, height, totals);
    for (size_t a = 0; a < height; ++a) gradient[outputs * inputs + j + a] += totals[a];
    j += height;
  }
}

template <class T>
void accumulate_tiles(const ReverseNet<T>& net, RecordedTiles<T> tiles, T* gradient) {
  for (const ReverseLayer<T>& layer : net.layers)
    layer_gradient(layer, tiles, layer.tile.cotangent, layer.tile.x, gradient + layer.parameters);
}
