// Two layers at once, where the first has few inputs and the second few outputs: inputs and the second layer's sums
// stay in registers while each neuron between them is summed, activated and multiplied into the sums. Bits as layer
// after layer. No include guard: part of kernels-inl.h.

// Most inputs of the first layer, outputs of the second. tanh needs registers of its own: with 8 outputs in
// the block, 4-32-16-4 takes 1.12 of the time.
inline constexpr size_t kThinInputs = 4, kThinOutputsOfRelu = std::min(8, kTileOutputs), kThinOutputsOfTanh = 4;

// A strip's numbers in registers: the inputs, and the sums of the next layer. Of samples that fill one register of two,
// that one.
template <class T, int kInputs, int kOutputs, int kRegisters = 2>
struct ThinStrip {
  using L = HwyLane<Register<T>>;
  using V = typename L::V;
  V in[kInputs][kRegisters];
  V sum[kOutputs][kRegisters];
  const T* w;  // the next neuron to be finished: bias, weights of inputs, weights to outputs
  static constexpr size_t kStep = 1 + kInputs + kOutputs;

  HWY_INLINE ThinStrip(const T* x, size_t x_stride, const T* weights) : w(weights + kOutputs) {
    const Register<T> d;
    const size_t lanes = hn::Lanes(d);
#pragma GCC unroll 2
    for (size_t r = 0; r < kRegisters; ++r) {
#pragma GCC unroll 4
      for (int i = 0; i < kInputs; ++i) in[i][r] = hn::LoadU(d, x + static_cast<size_t>(i) * x_stride + r * lanes);
#pragma GCC unroll 8
      for (int o = 0; o < kOutputs; ++o) sum[o][r] = L::set(weights[o]);
    }
  }

  // The weights of the neuron `ahead` of the next one. Hidden from the compiler, so that products broadcast them by
  // themselves: to keep broadcasts for both registers would push other numbers out.
  HWY_INLINE const T* weights(size_t ahead) const {
    const T* at = w + ahead * kStep;
    asm("" : "+r"(at));
    return at;
  }
  HWY_INLINE V neuron(size_t r, size_t ahead) const {
    const T* const at = weights(ahead);
    V total = L::set(at[0]);
#pragma GCC unroll 4
    for (int i = 0; i < kInputs; ++i) total = L::fma(L::set(at[1 + i]), in[i][r], total);
    return total;
  }
  HWY_INLINE void add(size_t r, size_t ahead, V value) {
    const T* const at = weights(ahead) + 1 + kInputs;
#pragma GCC unroll 8
    for (int o = 0; o < kOutputs; ++o) sum[o][r] = L::fma(L::set(at[o]), value, sum[o][r]);
  }
  // The next neuron in both registers, a weight at a time: where products do not read it from memory, each takes a
  // register.
  HWY_INLINE void next_neuron(V (&total)[2]) const {
    const V bias = L::set(w[0]);
#pragma GCC unroll 4
    for (int i = 0; i < kInputs; ++i) {
      const V weight = L::set(w[1 + i]);
#pragma GCC unroll 2
      for (size_t r = 0; r < 2; ++r) total[r] = L::fma(weight, in[i][r], i == 0 ? bias : total[r]);
    }
  }
  HWY_INLINE void add_next(const V (&value)[2]) {
#pragma GCC unroll 8
    for (int o = 0; o < kOutputs; ++o) {
      const V weight = L::set(w[1 + kInputs + o]);
#pragma GCC unroll 2
      for (size_t r = 0; r < 2; ++r) sum[o][r] = L::fma(weight, value[r], sum[o][r]);
      asm volatile("");  // or the compiler reads further weights first, and has no registers left for sums
    }
  }
  HWY_INLINE void store(T* y, size_t y_stride, bool relu) const {
    const Register<T> d;
    const V least = L::set(relu ? T(0) : -std::numeric_limits<T>::infinity());
#pragma GCC unroll 8
    for (int o = 0; o < kOutputs; ++o, y += y_stride) {
#pragma GCC unroll 2
      for (size_t r = 0; r < kRegisters; ++r) hn::StoreU(L::max(sum[o][r], least), d, y + r * hn::Lanes(d));
    }
  }
};

template <class T, int kInputs, int kOutputs>
void thin_relu(const PackedLayer<T>& layer, const ThinRows<T>& rows, bool relu) {
  using L = HwyLane<Register<T>>;
  ThinStrip<T, kInputs, kOutputs> strip(rows.x, rows.x_stride, layer.thin_weights);
  for (size_t left = layer.outputs; left > 0; --left, strip.w += strip.kStep) {
    if constexpr (HWY_TARGET == HWY_AVX2) {
      typename L::V value[2];
      strip.next_neuron(value);
#pragma GCC unroll 2
      for (auto& each : value) each = activate<ActivationKind::relu, L>(each, L::zero());
      strip.add_next(value);
    } else {
#pragma GCC unroll 2
      for (size_t r = 0; r < 2; ++r) strip.add(r, 0, activate<ActivationKind::relu, L>(strip.neuron(r, 0), L::zero()));
    }
  }
  strip.store(rows.y, rows.y_stride, relu);
}

// tanh is a long chain of dependent operations, and what waits in it fills the places where a processor looks for work.
// So it is cut in three steps, and a turn of the loop takes each step for another neuron: the last one for neuron k,
// the one before for k + 1, the first for k + 2, the sums of k + 3. One register after the other: the empty asm keeps
// the compiler from mixing them. On an Intel Xeon 3-100-3 takes 0.90 of the time of tanh from memory to memory beside
// the next layer's products; with all steps of a neuron in one turn, no less than that. Where there is one register,
// the next neuron takes the place of the other.
template <class T, int kInputs, int kOutputs, int kRegisters, bool kPrefetch>
void thin_tanh(const PackedLayer<T>& layer, const ThinRows<T>& rows, bool relu) {
  using L = HwyLane<Register<T>>;
  const Register<T> d;
  const size_t lanes = hn::Lanes(d);
  constexpr size_t kNeurons = 3 - kRegisters;  // of a turn
  ThinStrip<T, kInputs, kOutputs, kRegisters> strip(rows.x, rows.x_stride, layer.thin_weights);
  T* values = rows.values;
  const T* next = rows.next_values;
  typename L::V sums[2];
  TanhStart<L> start[2];
  TanhParts<L> parts[2];
  // What place p takes in the turn `turns` ahead.
  const auto register_at = [](size_t p) { return kRegisters == 2 ? p : 0; };
  const auto neuron_at = [](size_t p, size_t turns) { return kRegisters == 2 ? turns : 2 * turns + p; };
  const auto begin = [&](size_t p, size_t turns) HWY_ATTR __attribute__((always_inline)) {
    sums[p] = strip.neuron(register_at(p), neuron_at(p, turns));
  };
  const auto finish = [&](size_t p, size_t turns) HWY_ATTR __attribute__((always_inline)) {
    const auto value = tanh_end<L>(parts[p]);
    const size_t r = register_at(p), ahead = neuron_at(p, turns);
    strip.add(r, ahead, value);
    hn::StoreU(value, d, values + ahead * rows.values_stride + r * lanes);
    if constexpr (kPrefetch) __builtin_prefetch(next + ahead * rows.values_stride + r * lanes, 1, 3);
  };
#define LOCKSTEP_BOTH _Pragma("GCC unroll 2") for (size_t p = 0; p < 2; ++p)
  LOCKSTEP_BOTH {
    begin(p, 0);
    start[p] = tanh_start<L>(sums[p]);
    begin(p, 1);
    parts[p] = tanh_parts<L>(tanh_terms<L>(start[p]));
    start[p] = tanh_start<L>(sums[p]);
    begin(p, 2);
  }
  for (size_t left = layer.outputs / kNeurons - 3; left > 0; --left) {
    LOCKSTEP_BOTH {
      asm volatile("");
      finish(p, 0);
      parts[p] = tanh_parts<L>(tanh_terms<L>(start[p]));
      start[p] = tanh_start<L>(sums[p]);
      begin(p, 3);
      asm volatile("");
    }
    strip.w += kNeurons * strip.kStep;
    values += kNeurons * rows.values_stride;
    if constexpr (kPrefetch) next += kNeurons * rows.values_stride;
  }
#pragma GCC unroll 3
  for (size_t turn = 0; turn < 3; ++turn) {
    LOCKSTEP_BOTH {
      finish(p, turn);
      if (turn < 2) parts[p] = tanh_parts<L>(tanh_terms<L>(start[p]));
      if (turn < 1) start[p] = tanh_start<L>(sums[p]);
    }
  }
  if (kNeurons == 2 && layer.outputs % 2 != 0) {
    begin(0, 3);
    parts[0] = tanh_parts<L>(tanh_terms<L>(tanh_start<L>(sums[0])));
    finish(0, 3);
  }
#undef LOCKSTEP_BOTH
  strip.store(rows.y, rows.y_stride, relu);
}

// tanh leaves AVX2 no registers for the sums: 1.04 to 1.2 of the time of layer after layer. relu of 2-20-5-1 takes 0.87
// there (Zen 4).
template <class T>
inline constexpr bool kThinRelu = HWY_TARGET == HWY_AVX3 || (HWY_TARGET == HWY_AVX2 && sizeof(T) == 4);

template <class T, int kRegisters, bool kPrefetch, size_t... kIndex>
constexpr std::array<ThinBlock<T>, sizeof...(kIndex)> thin_tanh_blocks(std::index_sequence<kIndex...>) {
  if constexpr (kDefersTanh<T>) {
    return {thin_tanh<T, kIndex / kThinOutputsOfTanh + 1, kIndex % kThinOutputsOfTanh + 1, kRegisters, kPrefetch>...};
  } else {
    return {};
  }
}
template <class T, size_t... kIndex>
constexpr std::array<ThinBlock<T>, sizeof...(kIndex)> thin_relu_blocks(std::index_sequence<kIndex...>) {
  if constexpr (kThinRelu<T>) {
    return {thin_relu<T, kIndex / kThinOutputsOfRelu + 1, kIndex % kThinOutputsOfRelu + 1>...};
  } else {
    return {};
  }
}

// Whether a layer goes together with the next one, which then needs thin_weights.
template <class T>
bool is_thin(const PackedLayer<T>& layer, const PackedLayer<T>& next) {
  if (layer.inputs > kThinInputs || next.tile_blocks.blocks > 1) return false;
  if (layer.activation == ActivationKind::relu) return kThinRelu<T> && next.outputs <= kThinOutputsOfRelu;
  return defers_tanh(layer, next) && next.outputs <= kThinOutputsOfTanh && layer.outputs >= 4;
}

// Of two layers for which is_thin holds.
template <class T, bool kPrefetch>
ThinBlock<T> thin_block(const PackedLayer<T>& layer, const PackedLayer<T>& next) {
  static constexpr auto kTanh =
      thin_tanh_blocks<T, 2, kPrefetch>(std::make_index_sequence<kThinInputs * kThinOutputsOfTanh>());
  static constexpr auto kRelu = thin_relu_blocks<T>(std::make_index_sequence<kThinInputs * kThinOutputsOfRelu>());
  if (layer.activation == ActivationKind::relu)
    return kRelu[(layer.inputs - 1) * kThinOutputsOfRelu + next.outputs - 1];
  return kTanh[(layer.inputs - 1) * kThinOutputsOfTanh + next.outputs - 1];
}

// The same over one register, or null where layer after layer serves as well.
template <class T>
ThinBlock<T> thin_block_of_one_register(const PackedLayer<T>& layer, const PackedLayer<T>& next) {
  static constexpr auto kTanh =
      thin_tanh_blocks<T, 1, false>(std::make_index_sequence<kThinInputs * kThinOutputsOfTanh>());
  constexpr size_t kFewestOutputs = 8;  // four turns of two neurons
  if (layer.thin_weights == nullptr || layer.activation != ActivationKind::tanh || layer.outputs < kFewestOutputs)
    return nullptr;
  return kTanh[(layer.inputs - 1) * kThinOutputsOfTanh + next.outputs - 1];
}

template <class T, bool kPrefetch = false>
void thin_layers(const PackedLayer<T>& layer, const PackedLayer<T>& next, const ThinRows<T>& rows) {
  thin_block<T, kPrefetch>(layer, next)(layer, rows, next.activation == ActivationKind::relu);
  const ActivationPass<T> activation = activation_pass<T>(next.activation);
  if (activation != nullptr) activation(rows.y, next.outputs, rows.y_stride, 2, next.alpha);
}
