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
// at row x. kInputs 0: the bias, sums[j][slot]. kBias: the bias as one more input, after the others.
template <class T>
using GradientBlock = void (*)(RecordedTiles<T> tiles, size_t z, size_t x, T* sums);

template <class T, int kOutputs, int kInputs, bool kBias>
void gradient_block(RecordedTiles<T> tiles, size_t z_row, size_t x_row, T* sums) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  using V = typename L::V;
  constexpr int kSums = kInputs + (kBias ? 1 : 0);
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
        // Rows are a few turns apart, and the compiler would keep what a later turn reads; with sixteen registers that
        // pushes sums out (0.85 of the time of 32-128-128-31's training without).
        if constexpr (HWY_TARGET == HWY_AVX2) asm("" : "+r"(z), "+r"(x));
        V bar[kOutputs];
#pragma GCC unroll 16
        for (int j = 0; j < kOutputs; ++j) {
          bar[j] = hn::LoadU(d, z + j * kTileLanes);
          if constexpr (kBias) sum[j][kInputs] = L::add(sum[j][kInputs], bar[j]);
          // What the block of outputs that comes next reads, or after the last one, the block of inputs.
          if constexpr (kOutputs == kGradientOutputs && kInputs == kGradientInputs) {
            if (part == 0) __builtin_prefetch(z + (j + kOutputs) * kTileLanes);
          }
        }
#pragma GCC unroll 16
        for (int k = 0; k < kInputs; ++k) {
          const V in = hn::LoadU(d, x + k * kTileLanes);
          if constexpr (kOutputs < kGradientOutputs && kInputs == kGradientInputs) {
            if (part == 0) __builtin_prefetch(x + (k + kInputs) * kTileLanes);
          }
#pragma GCC unroll 16
          for (int j = 0; j < kOutputs; ++j) sum[j][k] = L::fma(bar[j], in, sum[j][k]);
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

// The two halves of a[i] and b[i] added, slot to slot kDistance registers' lanes further, a's sums and b's side by
// side. kDistance counts lanes: half a register, then a quarter...
#if HWY_TARGET != HWY_SCALAR
template <int kDistance, class D, class V>
HWY_INLINE V add_halves(D d, V a, V b) {
  // Even groups of kDistance lanes from a, odd ones from b, and the other way round.
  V straight, crossed;
  if constexpr (kDistance * sizeof(hn::TFromD<D>) == 32) {
    straight = hn::ConcatUpperLower(d, b, a);
    crossed = hn::ConcatLowerUpper(d, b, a);
  } else if constexpr (kDistance * sizeof(hn::TFromD<D>) == 16) {
    if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) == 32) {
      straight = hn::ConcatUpperLower(d, b, a);
      crossed = hn::ConcatLowerUpper(d, b, a);
    } else {
      straight = hn::OddEvenBlocks(b, a);
      crossed = hn::SwapAdjacentBlocks(hn::OddEvenBlocks(a, b));
    }
  } else if constexpr (kDistance * sizeof(hn::TFromD<D>) == 8) {
    const hn::Repartition<double, D> wide;
    const auto a8 = hn::BitCast(wide, a), b8 = hn::BitCast(wide, b);
    straight = hn::BitCast(d, hn::OddEven(b8, a8));
    crossed = hn::BitCast(d, hn::Shuffle01(hn::OddEven(a8, b8)));
  } else {
    straight = hn::OddEven(b, a);
    crossed = hn::Shuffle2301(hn::OddEven(a, b));
  }
  return hn::Add(straight, crossed);
}

// v[0] becomes the slot sums of the kCount registers v, a power of two, in its first kCount lanes. kDistance is half of
// the slots left in each: while there are registers to pair, two take the place of one; then a register's own halves.
template <int kCount, int kDistance, class D, class V>
HWY_INLINE void add_register_slots(D d, V* v) {
  if constexpr (kDistance == 0) return;
  if constexpr (kCount > 1) {
#pragma GCC unroll 8
    for (int i = 0; i < kCount / 2; ++i) v[i] = add_halves<kDistance>(d, v[i], v[i + kCount / 2]);
    add_register_slots<kCount / 2, kDistance / 2>(d, v);
  } else if constexpr (kDistance > 0) {
    v[0] = add_halves<kDistance>(d, v[0], v[0]);
    add_register_slots<1, kDistance / 2>(d, v);
    v[0] = hn::ConcatEven(d, v[0], v[0]);  // both halves became the sum
  }
}

// totals[i] of the kCount sums, a power of two.
template <int kCount, class T>
HWY_INLINE void add_slots_of(const T* sums, T* totals) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  constexpr size_t kLanes = hn::MaxLanes(Register<T>()), kParts = kSlots<T> / kLanes;
  typename L::V sum[kCount];
#pragma GCC unroll 16
  for (size_t i = 0; i < kCount; ++i) {
    typename L::V part[kParts];
#pragma GCC unroll 4
    for (size_t p = 0; p < kParts; ++p) part[p] = hn::Load(d, sums + i * kSlots<T> + p * kLanes);
#pragma GCC unroll 2
    for (size_t half = kParts / 2; half > 0; half /= 2) {
#pragma GCC unroll 2
      for (size_t p = 0; p < half; ++p) part[p] = L::add(part[p], part[p + half]);
    }
    sum[i] = part[0];
  }
  add_register_slots<kCount, kLanes / 2>(d, sum);
  hn::Store(sum[0], d, totals);
}
#endif

// totals[i] = sums[i][slot] added in halves: slot s to s + half. Both have room for whole registers.
template <class T>
void add_slots(const T* sums, size_t count, T* totals) {
#if HWY_TARGET == HWY_SCALAR
  for (size_t i = 0; i < count; ++i, sums += kSlots<T>) {
    T slots[kSlots<T>];
    std::copy_n(sums, kSlots<T>, slots);
    for (size_t half = kSlots<T> / 2; half > 0; half /= 2) {
      for (size_t s = 0; s < half; ++s) slots[s] += slots[s + half];
    }
    totals[i] = slots[0];
  }
#else
  constexpr size_t kLanes = hn::MaxLanes(Register<T>());
  for (; count >= kLanes; count -= kLanes, sums += kLanes * kSlots<T>, totals += kLanes) {
    add_slots_of<kLanes>(sums, totals);
  }
  if (count > kLanes / 2) return add_slots_of<kLanes>(sums, totals);
  if (count > 4) return add_slots_of<std::min<size_t>(kLanes, 8)>(sums, totals);
  if (count > 2) return add_slots_of<std::min<size_t>(kLanes, 4)>(sums, totals);
  if (count > 0) return add_slots_of<std::min<size_t>(kLanes, 2)>(sums, totals);
#endif
}

// to[row * stride + i] += from[row * from_stride + i] for i below kWidth, whose loop the compiler unrolls.
template <class T, size_t kWidth>
HWY_INLINE void add_rows(const T* HWY_RESTRICT from, size_t from_stride, size_t rows, T* HWY_RESTRICT to,
                         size_t stride) {
  for (size_t row = 0; row < rows; ++row, from += from_stride, to += stride) {
#pragma GCC unroll 8
    for (size_t i = 0; i < kWidth; ++i) to[i] += from[i];
  }
}

template <class T>
HWY_INLINE void add_rows(const T* from, size_t from_stride, size_t rows, size_t width, T* to, size_t stride) {
  static_assert(kGradientInputs <= 6);
  switch (width) {
    case 1:
      return add_rows<T, 1>(from, from_stride, rows, to, stride);
    case 2:
      return add_rows<T, 2>(from, from_stride, rows, to, stride);
    case 3:
      return add_rows<T, 3>(from, from_stride, rows, to, stride);
    case 4:
      return add_rows<T, 4>(from, from_stride, rows, to, stride);
    case 5:
      return add_rows<T, 5>(from, from_stride, rows, to, stride);
    default:
      return add_rows<T, 6>(from, from_stride, rows, to, stride);
  }
}

// [outputs - 1][inputs - 1] without the bias, [outputs - 1][inputs] with it: kGradientInputs of each.
template <class T, bool kBias, int... kIndex>
constexpr std::array<GradientBlock<T>, sizeof...(kIndex)> gradient_blocks(std::integer_sequence<int, kIndex...>) {
  return {gradient_block<T, kIndex / kGradientInputs + 1, kIndex % kGradientInputs + (kBias ? 0 : 1), kBias>...};
}

// bias[output] += its sums over the tiles, whose cotangents begin at row z.
template <class T>
void bias_gradient(size_t outputs, RecordedTiles<T> tiles, size_t z, T* bias) {
  using Sizes = std::make_integer_sequence<int, kGradientOutputs * kGradientInputs>;
  static constexpr auto kBlocks = gradient_blocks<T, true>(Sizes());
  HWY_ALIGN T sums[kGradientSums * kSlots<T>];
  HWY_ALIGN T totals[kGradientSums];
  const mlp::Partition rows(outputs, kGradientOutputs);
  for (size_t row = 0, j = 0; row < rows.blocks; j += rows[row++]) {
    const size_t height = rows[row];
    kBlocks[(height - 1) * kGradientInputs](tiles, z + j, 0, sums);
    add_slots(sums, height, totals);
    for (size_t a = 0; a < height; ++a) bias[j + a] += totals[a];
  }
}

// One layer's gradient += its sums over the tiles, whose cotangents begin at row z, inputs at row x.
template <class T>
void layer_gradient(const ReverseLayer<T>& layer, RecordedTiles<T> tiles, size_t z, size_t x, T* gradient) {
  using Sizes = std::make_integer_sequence<int, kGradientOutputs * kGradientInputs>;
  static constexpr auto kBlocks = gradient_blocks<T, false>(Sizes()), kWithBias = gradient_blocks<T, true>(Sizes());
  const size_t inputs = layer.forward.inputs, outputs = layer.forward.outputs;
  T* const bias = gradient + outputs * inputs;
  HWY_ALIGN T sums[kGradientSums * kSlots<T>];
  HWY_ALIGN T totals[kGradientSums];
  const mlp::Partition rows(outputs, kGradientOutputs), columns(inputs, kGradientInputs);
  // Inputs stay in the first-level cache while the cotangents of all outputs pass by.
  for (size_t column = 0, k = 0; column < columns.blocks; k += columns[column++]) {
    const size_t width = columns[column];
    // The bias rides with the last block of inputs, where registers are left for its sums.
    const bool with_bias = column + 1 == columns.blocks && width < kGradientInputs;
    const size_t sums_each = width + (with_bias ? 1 : 0);
    const auto& blocks = with_bias ? kWithBias : kBlocks;
    for (size_t row = 0, j = 0; row < rows.blocks; j += rows[row++]) {
      const size_t height = rows[row];
      blocks[(height - 1) * kGradientInputs + sums_each - 1](tiles, z + j, x + k, sums);
      add_slots(sums, height * sums_each, totals);
      T* const w = gradient + j * inputs + k;
      add_rows(totals, sums_each, height, width, w, inputs);
      if (with_bias) add_rows<T, 1>(totals + width, sums_each, height, bias + j, 1);
    }
    if (with_bias) return;
  }
  bias_gradient<T>(outputs, tiles, z, bias);
}
