// Cotangents back through the two layers that a thin block takes at once: each neuron between them gets its own from
// the second layer's outputs, held in registers, and adds it to the inputs' sums there. Bits as layer after layer.
// No include guard: part of reverse_kernels-inl.h.

// Two registers of lanes; rows are kTileLanes numbers apart.
template <class T>
struct ThinBackRows {
  const T* bars;                   // [output] of the second layer's sums
  const T* values;                 // [neuron]
  T* neuron_bars;                  // [neuron], of the sums before the activation
  T* input_bars;                   // [input] of the first layer
  const T* next_values = nullptr;  // what `values` will be for the next tile: brought closer where it is not null
};
template <class T>
using ThinBackBlock = void (*)(const PackedLayer<T>& layer, const ThinBackRows<T>& rows);

template <class T, ActivationKind kKind, int kInputs, int kOutputs>
void thin_back(const PackedLayer<T>& layer, const ThinBackRows<T>& rows) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  using V = typename L::V;
  constexpr size_t kStep = 1 + kInputs + kOutputs;
  const size_t lanes = hn::Lanes(d);
  V out[kOutputs][2], in[kInputs][2];
#pragma GCC unroll 2
  for (size_t r = 0; r < 2; ++r) {
#pragma GCC unroll 8
    for (int o = 0; o < kOutputs; ++o)
      out[o][r] = hn::LoadU(d, rows.bars + static_cast<size_t>(o) * kTileLanes + r * lanes);
#pragma GCC unroll 4
    for (int i = 0; i < kInputs; ++i) in[i][r] = L::zero();
  }
  const T* w = layer.thin_weights + kOutputs;  // a neuron's bias, weights of inputs, weights to outputs
  const T* values = rows.values;
  const T* next = (rows.next_values != nullptr ? rows.next_values : rows.values) + layer.outputs * lanes;
  T* to = rows.neuron_bars;
#pragma GCC unroll 2
  for (size_t left = layer.outputs; left > 0; --left) {
    // One line of the two: the processor fetches what lies beside it, and twice as many would wait for one another.
    __builtin_prefetch(next, 0, 2);
    V bar[2];
#pragma GCC unroll 2
    for (size_t r = 0; r < 2; ++r) bar[r] = L::zero();
#pragma GCC unroll 8
    for (int o = 0; o < kOutputs; ++o) {
      const V weight = L::set(w[1 + kInputs + o]);
#pragma GCC unroll 2
      for (size_t r = 0; r < 2; ++r) bar[r] = L::fma(weight, out[o][r], bar[r]);
    }
#pragma GCC unroll 2
    for (size_t r = 0; r < 2; ++r) {
      bar[r] = times_derivative<L, kKind>(bar[r], hn::LoadU(d, values + r * lanes), L::zero());
      hn::StoreU(bar[r], d, to + r * lanes);
    }
#pragma GCC unroll 4
    for (int i = 0; i < kInputs; ++i) {
      const V weight = L::set(w[1 + i]);
#pragma GCC unroll 2
      for (size_t r = 0; r < 2; ++r) in[i][r] = L::fma(weight, bar[r], in[i][r]);
    }
    w += kStep;
    values += kTileLanes;
    next += lanes;
    to += kTileLanes;
  }
#pragma GCC unroll 4
  for (int i = 0; i < kInputs; ++i) {
#pragma GCC unroll 2
    for (size_t r = 0; r < 2; ++r)
      hn::StoreU(in[i][r], d, rows.input_bars + static_cast<size_t>(i) * kTileLanes + r * lanes);
  }
}

template <class T, size_t... kIndex>
constexpr std::array<ThinBackBlock<T>, sizeof...(kIndex)> thin_back_blocks(std::index_sequence<kIndex...>) {
  if constexpr (kDefersTanh<T>) {
    return {thin_back<T, ActivationKind::tanh, kIndex / kThinOutputsOfTanh + 1, kIndex % kThinOutputsOfTanh + 1>...};
  } else {
    return {};
  }
}

// Whether a layer goes back, and has its gradient, together with the next one.
template <class T>
bool goes_back_thin(const ReverseLayer<T>& layer) {
  return layer.forward.thin_weights != nullptr && layer.forward.activation == ActivationKind::tanh;
}

// A layer for which goes_back_thin holds and the next one.
template <class T>
void thin_layers_back(const PackedLayer<T>& layer, const PackedLayer<T>& next, const ThinBackRows<T>& rows) {
  static constexpr auto kBlocks = thin_back_blocks<T>(std::make_index_sequence<kThinInputs * kThinOutputsOfTanh>());
  kBlocks[(layer.inputs - 1) * kThinOutputsOfTanh + next.outputs - 1](layer, rows);
}
