// The latency path of reverse mode: one sample, registers over neurons. No include guard: part of
// reverse_kernels-inl.h.

// Registers that hold an array of `count` padded to kSlots.
template <class T>
HWY_INLINE size_t sample_registers(size_t count) {
  return mlp::padded<T>(count) / hn::Lanes(Register<T>());
}

template <class T>
HWY_INLINE void scale_sample(const Packed<T>& packed, const T* y, T* out) {
  for (size_t c = 0; c < packed.outputs(); ++c) {
    out[c] = packed.output_scale.empty() ? y[c] : std::fma(y[c], packed.output_scale[c], packed.output_shift[c]);
  }
}

template <class T>
void evaluate_sample(const ReverseNet<T>& net, const T* in, T* out, T* record, T* workspace) {
  const auto& packed = net.packed;
  const auto inputs = static_cast<ptrdiff_t>(packed.inputs()), outputs = static_cast<ptrdiff_t>(packed.outputs());
  if (record == nullptr) {
    return packed.kernels->evaluate(packed, {in, 1, packed.inputs(), inputs, 1}, {out, 1, packed.outputs(), outputs, 1},
                                    workspace);
  }
  for (size_t c = 0; c < packed.inputs(); ++c) {
    record[c] = packed.input_scale.empty() ? in[c] : (in[c] - packed.input_shift[c]) / packed.input_scale[c];
  }
  std::fill(record + packed.inputs(), record + mlp::padded<T>(packed.inputs()), T(0));
#if HWY_TARGET != HWY_SCALAR
  if (const FusedForward<T> fused = fused_forward_of(net); fused != nullptr) {
    HWY_ALIGN T sums[hn::MaxLanes(Register<T>())];
    fused(net, record, sums);
    const size_t neurons = net.layers[0].forward.outputs;
    std::fill(record + net.layers[0].sample.y + neurons, record + net.layers[0].sample.y + mlp::padded<T>(neurons),
              T(0));
    return scale_sample(packed, sums, out);
  }
#endif
  for (const ReverseLayer<T>& layer : net.layers) {
    const Places& at = layer.sample;
    T* const y = at.y == Places::kNone ? workspace : record + at.y;
    T* const sums = at.z == Places::kNone ? y : record + at.z;
    row_layer(at.z == Places::kNone ? layer.forward : layer.linear, record + at.x, 0, sums, 0, 1);
    if (sums != y) {
      activate_pass<T>(layer.forward.activation)(sums, 0, y, 0, 1, sample_registers<T>(layer.forward.outputs),
                                                 layer.forward.alpha);
    }
    // Padding is zero in every record: the gradients run over it.
    std::fill(y + layer.forward.outputs, y + mlp::padded<T>(layer.forward.outputs), T(0));
    if (&layer == &net.layers.back()) scale_sample(packed, y, out);
  }
}

// to[k] = sum over j of w[j][k] bar[j], for a layer of few inputs: slots over j, added in halves.
template <class T>
void reverse_narrow(const ReverseLayer<T>& layer, const T* bars, T* to) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  const size_t stride = mlp::padded<T>(layer.forward.outputs);
  HWY_ALIGN T slots[kSlots<T>];
  for (size_t k = 0; k < layer.forward.inputs; ++k) {
    const T* const w = layer.columns + k * stride;
    for (size_t part = 0; part < kSlots<T>; part += hn::Lanes(d)) {
      auto sum = L::zero();
      for (size_t j = part; j < stride; j += kSlots<T>) sum = L::fma(hn::LoadU(d, w + j), hn::LoadU(d, bars + j), sum);
      hn::StoreU(sum, d, slots + part);
    }
    for (size_t half = kSlots<T> / 2; half > 0; half /= 2) {
      for (size_t s = 0; s < half; ++s) slots[s] += slots[s + half];
    }
    to[k] = slots[0];
  }
}

template <class T>
void reverse_sample(const ReverseNet<T>& net, const T* record, const T* out_bar, T* in_bar, T* cotangents,
                    T* workspace) {
  const auto& packed = net.packed;
  T* const last = cotangents + net.layers.back().sample.cotangent;
  for (size_t c = 0; c < packed.outputs(); ++c) {
    last[c] = packed.output_scale.empty() ? out_bar[c] : out_bar[c] * packed.output_scale[c];
  }
  std::fill(last + packed.outputs(), last + mlp::padded<T>(packed.outputs()), T(0));
  const auto leave = [&](const T* x_bar) {
    for (size_t c = 0; in_bar != nullptr && c < packed.inputs(); ++c) {
      in_bar[c] = packed.input_scale.empty() ? x_bar[c] : x_bar[c] / packed.input_scale[c];
    }
  };
#if HWY_TARGET != HWY_SCALAR
  if (const FusedReverse<T> fused = fused_reverse_of(net); fused != nullptr) {
    fused(net, record, cotangents, workspace);
    return leave(workspace);
  }
#endif
  for (size_t l = net.layers.size(); l-- > 0;) {
    const ReverseLayer<T>& layer = net.layers[l];
    const size_t inputs = layer.forward.inputs, outputs = layer.forward.outputs;
    T* const bars = cotangents + layer.sample.cotangent;
    through_layer(layer, layer.sample, record, 1, bars, 1, sample_registers<T>(outputs));
    std::fill(bars + outputs, bars + mlp::padded<T>(outputs), T(0));
    if (l == 0 && in_bar == nullptr) return;
    T* const to = l > 0 ? cotangents + net.layers[l - 1].sample.cotangent : workspace;
    if (layer.narrow()) {
      reverse_narrow(layer, bars, to);
    } else {
      row_layer(layer.back, bars, 0, to, 0, 1);
    }
    std::fill(to + inputs, to + mlp::padded<T>(inputs), T(0));
  }
  leave(workspace);
}

// sum[i][.] = fma(outer[i], inner[.], sum[i][.]) over the samples for kRows rows i and kRegisters registers of inner's
// components.
template <class T, int kRows, int kRegisters, class Outer, class Inner>
HWY_INLINE void outer_block(size_t samples, Outer outer, Inner inner, T* sum, size_t stride) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  const size_t lanes = hn::Lanes(d);
  typename L::V total[kRows][kRegisters];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int r = 0; r < kRegisters; ++r) total[i][r] = hn::LoadU(d, sum + i * stride + r * lanes);
  }
  for (size_t s = 0; s < samples; ++s) {
    const T* const from = inner(s);
    const T* const factor = outer(s);
    typename L::V in[kRegisters];
#pragma GCC unroll 4
    for (int r = 0; r < kRegisters; ++r) in[r] = hn::LoadU(d, from + r * lanes);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const auto weight = L::set(factor[i]);
#pragma GCC unroll 4
      for (int r = 0; r < kRegisters; ++r) total[i][r] = L::fma(weight, in[r], total[i][r]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int r = 0; r < kRegisters; ++r) hn::StoreU(total[i][r], d, sum + i * stride + r * lanes);
  }
}

template <class T, int kRows, class Outer, class Inner>
HWY_INLINE void outer_rows(size_t samples, size_t columns, Outer outer, Inner inner, T* sum) {
  const size_t lanes = hn::Lanes(Register<T>());
  const auto from = [&](size_t j) { return [&, j](size_t s) { return inner(s) + j; }; };
  size_t j = 0;
  for (; j + 2 * lanes <= columns; j += 2 * lanes) outer_block<T, kRows, 2>(samples, outer, from(j), sum + j, columns);
  for (; j < columns; j += lanes) outer_block<T, kRows, 1>(samples, outer, from(j), sum + j, columns);
}

// All rows; `columns` are whole kSlots.
template <class T, class Outer, class Inner>
void outer_products(size_t samples, size_t rows, size_t columns, Outer outer, Inner inner, T* sum) {
  const auto from = [&](size_t i) { return [&, i](size_t s) { return outer(s) + i; }; };
  size_t i = 0;
  for (; i + 4 <= rows; i += 4) outer_rows<T, 4>(samples, columns, from(i), inner, sum + i * columns);
  if (rows - i == 3) outer_rows<T, 3>(samples, columns, from(i), inner, sum + i * columns);
  if (rows - i == 2) outer_rows<T, 2>(samples, columns, from(i), inner, sum + i * columns);
  if (rows - i == 1) outer_rows<T, 1>(samples, columns, from(i), inner, sum + i * columns);
}

template <class T>
void accumulate_samples(const ReverseNet<T>& net, std::span<const RecordedSample<T>> samples, T* sum) {
  static constexpr T kOne[1] = {T(1)};
  const auto one = [](size_t) { return kOne; };
  for (const ReverseLayer<T>& layer : net.layers) {
    const size_t inputs = layer.forward.inputs, outputs = layer.forward.outputs;
    const auto x = [&](size_t s) { return samples[s].activations + layer.sample.x; };
    const auto bar = [&](size_t s) { return samples[s].cotangents + layer.sample.cotangent; };
    const size_t width = mlp::padded<T>(outputs);
    T* const to = sum + layer.sum;
    if (layer.sum_by_input()) {
      outer_rows<T, 1>(samples.size(), width, one, bar, to);
      outer_products<T>(samples.size(), inputs, width, x, bar, to + width);
    } else {
      const size_t stride = mlp::padded<T>(inputs);
      outer_products<T>(samples.size(), outputs, stride, bar, x, to);
      outer_rows<T, 1>(samples.size(), width, one, bar, to + outputs * stride);
    }
  }
}
