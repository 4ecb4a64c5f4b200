// One sample through a net of one hidden layer, few inputs and few outputs, as right-hand sides of differential
// equations are: what dominates there is the output's chain of dependent additions, which runs while later neurons are
// still being activated. Bits as the general path's. No include guard: part of reverse_kernels-inl.h.

#if HWY_TARGET != HWY_SCALAR
inline constexpr size_t kFusedInputs = 4;  // most inputs

template <class T>
bool is_fused(const ReverseNet<T>& net) {
  // Neither layer's row weights lie in panels then, nor the last one's transpose: row_panel() sees to it.
  return net.layers.size() == 2 && net.packed.inputs() <= kFusedInputs &&
         net.packed.outputs() <= hn::MaxLanes(Register<T>()) && net.layers[1].forward.inputs > mlp::kNarrow &&
         net.layers[1].forward.activation == ActivationKind::identity;
}

// From the scaled inputs at the record's start to the sums of the last layer, a register of outputs.
template <class T>
using FusedForward = void (*)(const ReverseNet<T>& net, T* record, T* sums);

// The chain runs in registers of at most kOutputs numbers: processors that take a wide register in two halves would
// otherwise hold it up.
template <class T, size_t kOutputs, ActivationKind kKind>
void fused_forward(const ReverseNet<T>& net, T* record, T* sums) {
  const hn::CappedTag<T, kOutputs> narrow;
  using N = HwyLane<hn::CappedTag<T, kOutputs>>;
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  using Pair = LaneGroup<Register<T>, 2>;
  using V = typename L::V;
  constexpr size_t kLanes = hn::MaxLanes(Register<T>());
  const ReverseLayer<T>& hidden = net.layers[0];
  const size_t inputs = hidden.forward.inputs, neurons = hidden.forward.outputs;
  const size_t width = (neurons + kLanes - 1) / kLanes * kLanes;
  const T* const w = hidden.row_weights;
  const T* chain_w = net.layers[1].row_weights;
  T* const y = record + hidden.sample.y;
  const V alpha = L::set(hidden.forward.alpha);
  V x[kFusedInputs];
#pragma GCC unroll 4
  for (size_t k = 0; k < kFusedInputs; ++k) x[k] = L::set(record[std::min(k, inputs - 1)]);
  typename N::V total = hn::LoadU(narrow, chain_w);
  for (size_t first = 0; first < width; first += 2 * kLanes) {
    const bool both = first + kLanes < width;
    const size_t second = both ? first + kLanes : first;
    typename Pair::V pair;
    pair.each[0] = hn::LoadU(d, w + first);
    pair.each[1] = hn::LoadU(d, w + second);
#pragma GCC unroll 4
    for (size_t k = 0; k < kFusedInputs; ++k) {
      if (k >= inputs) break;
      pair.each[0] = L::fma(hn::LoadU(d, w + (1 + k) * width + first), x[k], pair.each[0]);
      pair.each[1] = L::fma(hn::LoadU(d, w + (1 + k) * width + second), x[k], pair.each[1]);
    }
    if (hidden.sample.z != Places::kNone) {
      hn::StoreU(pair.each[0], d, record + hidden.sample.z + first);
      hn::StoreU(pair.each[1], d, record + hidden.sample.z + second);
    }
    if constexpr (kKind == ActivationKind::tanh) {
      pair = activate<kKind, Pair>(pair, Pair::set(T(0)));
    } else {
      pair.each[0] = activate<kKind, L>(pair.each[0], alpha);
      pair.each[1] = activate<kKind, L>(pair.each[1], alpha);
    }
    hn::StoreU(pair.each[0], d, y + first);
    hn::StoreU(pair.each[1], d, y + second);
    const T* const link = y + first;
    if (first + 2 * kLanes <= neurons) {
#pragma GCC unroll 32
      for (size_t k = 0; k < 2 * kLanes; ++k) {
        total = N::fma(hn::LoadU(narrow, chain_w + (1 + k) * kLanes), N::set(link[k]), total);
      }
    } else {
      for (size_t k = 0; k < neurons - first; ++k) {
        total = N::fma(hn::LoadU(narrow, chain_w + (1 + k) * kLanes), N::set(link[k]), total);
      }
    }
    chain_w += 2 * kLanes * kLanes;
  }
  hn::StoreU(total, narrow, sums);
}

template <class T, ActivationKind kKind>
FusedForward<T> fused_forward_for(size_t outputs) {
  return outputs <= 4 ? fused_forward<T, 4, kKind> : fused_forward<T, hn::MaxLanes(Register<T>()), kKind>;
}

// Null where the general path has to do.
template <class T>
FusedForward<T> fused_forward_of(const ReverseNet<T>& net) {
  if (!is_fused(net)) return nullptr;
  const size_t outputs = net.packed.outputs();
  switch (net.layers[0].forward.activation) {
    case ActivationKind::tanh:
      return fused_forward_for<T, ActivationKind::tanh>(outputs);
    case ActivationKind::relu:
      return fused_forward_for<T, ActivationKind::relu>(outputs);
    case ActivationKind::sigmoid:
      return fused_forward_for<T, ActivationKind::sigmoid>(outputs);
    case ActivationKind::softplus:
      return fused_forward_for<T, ActivationKind::softplus>(outputs);
    case ActivationKind::silu:
      return fused_forward_for<T, ActivationKind::silu>(outputs);
    default:
      return nullptr;
  }
}

// The slots of one register added in halves.
template <class D>
HWY_INLINE hn::TFromD<D> add_one_register(D d, hn::Vec<D> v) {
  using T = hn::TFromD<D>;
  if constexpr (hn::MaxLanes(D()) * sizeof(T) > 16) {
    const hn::Half<D> half;
    return add_one_register(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else if constexpr (sizeof(T) == 4) {
    v = hn::Add(v, hn::Shuffle1032(v));
    return hn::GetLane(hn::Add(v, hn::Shuffle2301(v)));
  } else {
    (void)d;
    return hn::GetLane(hn::Add(v, hn::Shuffle01(v)));
  }
}

// From the cotangents of the last layer's sums to those of the hidden sums, in `cotangents`, and of the scaled inputs.
template <class T>
using FusedReverse = void (*)(const ReverseNet<T>& net, const T* record, T* cotangents, T* in_bar);

template <class T, size_t kInputs, ActivationKind kKind>
void fused_reverse(const ReverseNet<T>& net, const T* record, T* cotangents, T* in_bar) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  using V = typename L::V;
  constexpr size_t kLanes = hn::MaxLanes(Register<T>()), kParts = kSlots<T> / kLanes;
  const ReverseLayer<T>&hidden = net.layers[0], &last = net.layers[1];
  const size_t neurons = hidden.forward.outputs, outputs = last.forward.outputs;
  const size_t width = (neurons + kLanes - 1) / kLanes * kLanes, stride = mlp::padded<T>(neurons);
  const T* const out_bars = cotangents + last.sample.cotangent;
  const T* const values = record + hidden.sample.y;
  T* const bars = cotangents + hidden.sample.cotangent;
  V sum[kInputs][kParts];
#pragma GCC unroll 4
  for (size_t k = 0; k < kInputs; ++k) {
#pragma GCC unroll 4
    for (size_t p = 0; p < kParts; ++p) sum[k][p] = L::zero();
  }
  for (size_t group = 0; group < stride; group += kSlots<T>) {
#pragma GCC unroll 4
    for (size_t p = 0; p < kParts; ++p) {
      const size_t i = group + p * kLanes;
      V bar = L::zero();
      if (i < width) {
        const T* w = last.back_row_weights + i;
        for (size_t j = 0; j < outputs; ++j) {
          w += width;
          bar = L::fma(hn::LoadU(d, w), L::set(out_bars[j]), bar);
        }
        bar = times_derivative<L, kKind>(bar, hn::LoadU(d, values + i), L::zero());
      }
      hn::StoreU(bar, d, bars + i);
#pragma GCC unroll 4
      for (size_t k = 0; k < kInputs; ++k)
        sum[k][p] = L::fma(hn::LoadU(d, hidden.columns + k * stride + i), bar, sum[k][p]);
    }
  }
#pragma GCC unroll 4
  for (size_t k = 0; k < kInputs; ++k) {
#pragma GCC unroll 4
    for (size_t half = kParts / 2; half > 0; half /= 2) {
      for (size_t p = 0; p < half; ++p) sum[k][p] = L::add(sum[k][p], sum[k][p + half]);
    }
    in_bar[k] = add_one_register(d, sum[k][0]);
  }
}

template <class T, ActivationKind kKind>
FusedReverse<T> fused_reverse_for(size_t inputs) {
  return inputs == 1   ? fused_reverse<T, 1, kKind>
         : inputs == 2 ? fused_reverse<T, 2, kKind>
         : inputs == 3 ? fused_reverse<T, 3, kKind>
                       : fused_reverse<T, 4, kKind>;
}

template <class T>
FusedReverse<T> fused_reverse_of(const ReverseNet<T>& net) {
  if (!is_fused(net)) return nullptr;
  switch (net.layers[0].forward.activation) {
    case ActivationKind::tanh:
      return fused_reverse_for<T, ActivationKind::tanh>(net.packed.inputs());
    case ActivationKind::relu:
      return fused_reverse_for<T, ActivationKind::relu>(net.packed.inputs());
    case ActivationKind::sigmoid:
      return fused_reverse_for<T, ActivationKind::sigmoid>(net.packed.inputs());
    default:
      return nullptr;
  }
}
#endif  // HWY_SCALAR
