// Weight gradients of a tile of few samples: a register of neighbouring weights, not of slots, whose sums need no
// adding up across lanes. Every weight's sum is that of weight_gradient-inl.h, in the same order: slots that no sample
// has are zeros there, which change no sum. No include guard: part of reverse_kernels-inl.h.

#if HWY_TARGET != HWY_SCALAR
// leaf(i) of kTaken slots added in halves, slot s to s + half. Of what is left of it when kHalf slots remain: slot
// kSlot.
template <class L, int kTaken, int kSlot = 0, int kHalf = 1, class Leaf>
HWY_INLINE auto sum_in_halves(const Leaf& leaf) {
  if constexpr (kHalf == kTaken) {
    return leaf(std::integral_constant<int, kSlot>());
  } else {
    return L::add(sum_in_halves<L, kTaken, kSlot, 2 * kHalf>(leaf),
                  sum_in_halves<L, kTaken, kSlot + kHalf, 2 * kHalf>(leaf));
  }
}

// gradient [input] += the sums over kTaken kTurns samples of one output's cotangents, bars [sample], times the inputs.
template <class T, int kTaken, int kTurns>
HWY_INLINE void few_samples_row(const T* bars, const T* x, size_t stride, size_t inputs, T* gradient) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  const size_t lanes = hn::Lanes(d);
  typename L::V bar[kTaken * kTurns];
#pragma GCC unroll 32
  for (int s = 0; s < kTaken * kTurns; ++s) bar[s] = L::set(bars[s]);
  for (size_t k = 0; k < inputs; k += lanes) {
    const auto total = sum_in_halves<L, kTaken>([&](auto slot) HWY_ATTR {
      const T* const own = x + static_cast<size_t>(slot()) * stride + k;
      auto sum = L::mul(bar[slot()], hn::Load(d, own));
#pragma GCC unroll 4
      for (int turn = 1; turn < kTurns; ++turn) {
        const int apart = turn * static_cast<int>(kSlots<T>);
        sum = L::fma(bar[slot() + apart], hn::Load(d, own + static_cast<size_t>(apart) * stride), sum);
      }
      return sum;
    });
    T* const to = gradient + k;
    if (k + lanes <= inputs) {
      hn::StoreU(L::add(hn::LoadU(d, to), total), d, to);
    } else {
      HWY_ALIGN T rest[hn::MaxLanes(Register<T>())];
      hn::Store(total, d, rest);
      for (size_t i = 0; i < inputs - k; ++i) to[i] += rest[i];
    }
  }
}

// One layer's weights' gradient += its sums over kTaken kTurns samples. bars [output][kTileLanes], x [sample][stride].
template <class T, int kTaken, int kTurns>
void few_samples_weights(const ReverseLayer<T>& layer, const T* bars, const T* x, size_t stride, T* gradient) {
  static_assert(kTurns == 1 || kTaken == static_cast<int>(kSlots<T>));
  const size_t inputs = layer.forward.inputs;
  // So many inputs that those of all samples stay in the first-level cache while the outputs pass by.
  const size_t block = 8 * hn::Lanes(Register<T>());
  for (size_t first = 0; first < inputs; first += block, x += block) {
    const size_t width = std::min(block, inputs - first);
    for (size_t j = 0; j < layer.forward.outputs; ++j) {
      few_samples_row<T, kTaken, kTurns>(bars + j * kTileLanes, x, stride, width, gradient + j * inputs + first);
    }
  }
}
#endif

// Whether that is the way for a tile of so many samples: not where a register would hold little.
template <class T>
bool takes_few(const ReverseLayer<T>& layer, size_t samples) {
#if HWY_TARGET == HWY_SCALAR
  (void)layer, (void)samples;
  return false;
#else
  return samples <= mlp::kFewSamples<T> && layer.forward.inputs >= std::max(kQuad<T>, hn::Lanes(Register<T>()) / 2);
#endif
}

// One layer's gradient += that of one tile. Its cotangents begin at row z of `tile`, its inputs at row x; `room` is for
// kFewSamples<T> rows of few_samples_stride(inputs).
template <class T>
void few_samples_gradient(const ReverseLayer<T>& layer, size_t samples, const RecordedTile<T>& tile, size_t z, size_t x,
                          T* room, T* gradient) {
#if HWY_TARGET != HWY_SCALAR
  const size_t stride = mlp::few_samples_stride<T>(layer.forward.inputs), lanes = hn::Lanes(Register<T>());
  const T* const bars = tile.cotangents + z * kTileLanes;
  const T* const rows = tile.activations + x * kTileLanes;
  for (size_t lane = 0; lane < samples; lane += lanes)
    lanes_to_rows(rows + lane, kTileLanes, layer.forward.inputs, room + lane * stride, static_cast<ptrdiff_t>(stride));
  bias_gradient<T>(layer.forward.outputs, {&tile, 1}, z, gradient + layer.forward.outputs * layer.forward.inputs);
  if (samples <= 8) return few_samples_weights<T, 8, 1>(layer, bars, room, stride, gradient);
  constexpr int kAll = static_cast<int>(kSlots<T>);
  if (samples <= 16) return few_samples_weights<T, kAll, 16 / kAll>(layer, bars, room, stride, gradient);
  if constexpr (mlp::kFewSamples<T> == 32)
    return few_samples_weights<T, kAll, 32 / kAll>(layer, bars, room, stride, gradient);
#else
  (void)layer, (void)samples, (void)tile, (void)z, (void)x, (void)room, (void)gradient;
#endif
}
