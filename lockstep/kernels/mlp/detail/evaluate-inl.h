// Whole evaluations: samples in strips of two registers of lanes, the last few by rows.
// No include guard: part of kernels-inl.h.

// x' = (x - shift) / scale over [component][lane]; in and out may be the same.
template <class T>
void scale_input(const Packed<T>& net, const T* in, size_t in_stride, T* out, size_t out_stride, int registers) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  for (size_t c = 0; c < net.inputs(); ++c) {
    const auto shift = L::set(net.input_shift[c]), scale = L::set(net.input_scale[c]);
    for (size_t lane = 0; lane < static_cast<size_t>(registers) * hn::Lanes(d); lane += hn::Lanes(d)) {
      const auto x = hn::LoadU(d, in + c * in_stride + lane);
      hn::StoreU(L::div(L::sub(x, shift), scale), d, out + c * out_stride + lane);
    }
  }
}

// y' = fma(y, scale, shift) in place.
template <class T>
void scale_output(const Packed<T>& net, T* out, size_t stride, int registers) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  for (size_t c = 0; c < net.outputs(); ++c, out += stride) {
    const auto scale = L::set(net.output_scale[c]), shift = L::set(net.output_shift[c]);
    for (size_t lane = 0; lane < static_cast<size_t>(registers) * hn::Lanes(d); lane += hn::Lanes(d)) {
      hn::StoreU(L::fma(hn::LoadU(d, out + lane), scale, shift), d, out + lane);
    }
  }
}

// The layers over one register of lanes.
template <class T>
void run_one_register(const Packed<T>& net, const T* in, size_t in_stride, T* out, size_t out_stride,
                      T* const halves[2]) {
  const size_t stride = 2 * hn::Lanes(Register<T>()), last = net.layers.size() - 1;
  for (size_t i = 0; i <= last; ++i) {
    const PackedLayer<T>& layer = net.layers[i];
    T* const values = halves[(i + 1) % 2];
    const ThinBlock<T> thin = i < last ? thin_block_of_one_register(layer, net.layers[i + 1]) : nullptr;
    if (thin != nullptr) ++i;
    T* const to = i == last ? out : halves[(i + 1) % 2];
    const size_t to_stride = i == last ? out_stride : stride;
    if (thin != nullptr) {
      const PackedLayer<T>& next = net.layers[i];
      thin(layer, {in, in_stride, values, stride, to, to_stride}, next.activation == ActivationKind::relu);
      const ActivationPass<T> activation = activation_pass<T>(next.activation);
      if (activation != nullptr) activation(to, next.outputs, to_stride, 1, next.alpha);
    } else {
      tile_layer(layer, in, in_stride, to, to_stride, 1);
    }
    in = to;
    in_stride = to_stride;
  }
}

// The whole net for one or two registers of lanes. `in` is only read and may lie in half 0 of the workspace; `out`
// may be half 0 or 1 or outside.
template <class T, class A>
void run_strip(const Packed<T>& net, const T* in, size_t in_stride, T* out, size_t out_stride, int registers,
               T* workspace, A& ahead) {
  const size_t stride = 2 * hn::Lanes(Register<T>());
  T* const halves[2] = {workspace, workspace + net.half()};
  if (!net.input_scale.empty()) {
    scale_input(net, in, in_stride, halves[0], stride, registers);
    in = halves[0];
    in_stride = stride;
  }
  if (registers == 2) {
    run_steps<1>(net, in, in_stride, out, out_stride, halves, 0, ahead);
  } else {
    run_one_register(net, in, in_stride, out, out_stride, halves);
  }
  if (!net.output_scale.empty()) scale_output(net, out, out_stride, registers);
}

// The whole net for a few samples, at most net.most_rows.
template <class T>
void run_rows(const Packed<T>& net, const MatrixView<const T>& in, const MatrixView<T>& out, size_t first, size_t rows,
              T* workspace) {
  const size_t lanes = hn::Lanes(Register<T>());
  const size_t stride = (net.widest + lanes - 1) / lanes * lanes;
  T* const halves[2] = {workspace, workspace + net.half()};
  const T* x = in.data + static_cast<ptrdiff_t>(first) * in.row_stride;
  ptrdiff_t x_stride = in.row_stride;
  const bool scaled = !net.input_scale.empty();
  if (scaled || in.column_stride != 1) {
    for (size_t row = 0; row < rows; ++row) {
      for (size_t c = 0; c < in.columns; ++c) {
        const T value = in(first + row, c);
        halves[0][row * stride + c] = scaled ? (value - net.input_shift[c]) / net.input_scale[c] : value;
      }
    }
    x = halves[0];
    x_stride = static_cast<ptrdiff_t>(stride);
  }
  T* to = nullptr;
  for (size_t i = 0; i < net.layers.size(); ++i) {
    to = halves[(i + 1) % 2];
    row_layer(net.layers[i], x, x_stride, to, stride, rows);
    x = to;
    x_stride = static_cast<ptrdiff_t>(stride);
  }
  for (size_t row = 0; row < rows; ++row) {
    for (size_t c = 0; c < out.columns; ++c) {
      const T y = to[row * stride + c];
      out(first + row, c) = net.output_scale.empty() ? y : std::fma(y, net.output_scale[c], net.output_shift[c]);
    }
  }
}

// Whole strips of views one of which at least has adjacent samples in a column: that one's rows are copied while
// another strip is evaluated. Returns how many samples that were. 32-128-128-31 on views whose columns lie 256 KB apart
// takes 0.94 of the time on Zen 3 (examples/ocean_column).
template <class T>
HWY_NOINLINE size_t evaluate_strips_by_columns(const Packed<T>& net, const MatrixView<const T>& in,
                                               const MatrixView<T>& out, T* workspace) {
  const size_t strip = 2 * hn::Lanes(Register<T>()), strips = in.rows / strip;
  const auto stride = static_cast<ptrdiff_t>(strip);
  const bool copies_in = in.row_stride == 1, copies_out = out.row_stride == 1;
  T* const inputs[2] = {workspace + 2 * net.half(), workspace + 2 * net.half() + net.inputs() * strip};
  T* const results[2] = {inputs[1] + net.inputs() * strip, inputs[1] + (net.inputs() + net.outputs()) * strip};
  size_t blocks = 0;
  for (const PackedLayer<T>& layer : net.layers) blocks += layer.tile_blocks.blocks;
  const auto a_block = [blocks](size_t rows) { return (rows + blocks - 1) / blocks; };
  load_lanes(in, 0, strip, 2, inputs[0], strip);
  for (size_t i = 0; i < strips; ++i) {
    const size_t first = i * strip, next = i + 1 < strips ? strip : 0, here = i % 2, there = 1 - here;
    if (!copies_in && i > 0) load_lanes(in, first, strip, 2, inputs[here], strip);
    AheadByColumns ahead{
        {CacheLines(in, first + strip, copies_in ? 0 : next), CacheLines(out, first, copies_out ? 0 : strip)}};
    if (copies_in && next > 0) {
      ahead.in = Rows(in.data + first + strip, in.column_stride, inputs[there], stride, net.inputs(),
                      a_block(net.inputs()), false);
    }
    if (copies_out && i > 0) {
      ahead.out = Rows(static_cast<const T*>(results[there]), stride, out.data + first - strip, out.column_stride,
                       net.outputs(), a_block(net.outputs()), true);
    }
    run_strip(net, inputs[here], strip, results[here], strip, 2, workspace, ahead);
    ahead.in.finish();
    ahead.out.finish();
    if (!copies_out) store_lanes(results[here], strip, 2, out, first, strip);
  }
  if (copies_out) store_lanes(results[(strips - 1) % 2], strip, 2, out, (strips - 1) * strip, strip);
  return strips * strip;
}

// Whether that is worth while: the lines of few columns stay in the caches.
template <class T>
bool copies_columns(const Packed<T>& net, const MatrixView<const T>& in, const MatrixView<T>& out) {
  constexpr size_t kFew = 8;
  const bool wide = (in.row_stride == 1 && net.inputs() > kFew) || (out.row_stride == 1 && net.outputs() > kFew);
  return HWY_TARGET != HWY_SCALAR && wide && in.rows >= 4 * hn::Lanes(Register<T>());
}

// Whether samples lie one after another, and are so small that the processor brings them by itself: asking for them
// costs 2-20-5-1 a tenth of its time, in a million samples as in a thousand.
template <class T>
bool come_by_themselves(const MatrixView<const T>& in, const MatrixView<T>& out) {
  constexpr size_t kMostBytes = 1024;
  const size_t strip = 2 * hn::Lanes(Register<T>()) * (in.columns + out.columns);
  return is_gapless(in) && is_gapless(out) && strip * sizeof(T) <= kMostBytes;
}

// Samples from `first` on; `kFetch`: what comes next is brought closer.
template <class T, bool kFetch>
HWY_NOINLINE void evaluate_strips(const Packed<T>& net, const MatrixView<const T>& in, const MatrixView<T>& out,
                                  size_t first, T* workspace) {
  const size_t lanes = hn::Lanes(Register<T>());
  const size_t strip = 2 * lanes;
  // A strip's results replace its inputs in the workspace: after an odd number of layers they lie in half 1.
  T* const result = workspace + (net.layers.size() % 2) * net.half();
  while (first < in.rows) {
    const size_t left = in.rows - first;
    const int registers = left >= strip ? 2 : net.rest[left].registers;
    if (registers == 0) return run_rows(net, in, out, first, left, workspace);
    const size_t count = std::min(left, static_cast<size_t>(registers) * lanes);
    load_lanes(in, first, count, registers, workspace, strip);
    if constexpr (kFetch) {
      Ahead ahead{CacheLines(in, first + count, std::min(left - count, strip)), CacheLines(out, first, count)};
      run_strip(net, workspace, strip, result, strip, registers, workspace, ahead);
    } else {
      NothingAhead ahead;
      run_strip(net, workspace, strip, result, strip, registers, workspace, ahead);
    }
    store_lanes(result, strip, registers, out, first, count);
    first += count;
  }
}

// Pairs of strips from `first` on, of a net with room for two (Packed::pairs_strips). Returns the first sample left.
template <class T>
HWY_NOINLINE size_t evaluate_pairs(const Packed<T>& net, const MatrixView<const T>& in, const MatrixView<T>& out,
                                   size_t first, T* workspace) {
  const size_t strip = 2 * hn::Lanes(Register<T>()), apart = 2 * net.half();
  T* const halves[2] = {workspace, workspace + net.half()};
  T* const result = halves[net.layers.size() % 2];
  NothingAhead ahead;
  for (; in.rows - first >= 2 * strip; first += 2 * strip) {
    for (size_t s = 0; s < 2; ++s) {
      T* const x = workspace + s * apart;
      load_lanes(in, first + s * strip, strip, 2, x, strip);
      if (!net.input_scale.empty()) scale_input(net, x, strip, x, strip, 2);
    }
    run_steps<2>(net, workspace, strip, result, strip, halves, apart, ahead);
    for (size_t s = 0; s < 2; ++s) {
      T* const y = result + s * apart;
      if (!net.output_scale.empty()) scale_output(net, y, strip, 2);
      store_lanes(y, strip, 2, out, first + s * strip, strip);
    }
  }
  return first;
}

// Strips side by side, of a net that is far (Packed::is_far), while there is more than one. Returns the first sample
// left.
template <class T>
HWY_NOINLINE size_t evaluate_far(const Packed<T>& net, const MatrixView<const T>& in, const MatrixView<T>& out,
                                 T* workspace) {
  const size_t strip = 2 * hn::Lanes(Register<T>()), apart = 2 * net.half();
  T* const halves[2] = {workspace, workspace + net.half()};
  size_t first = 0;
  while (in.rows - first > strip) {
    // The last strip may be filled in part, where samples would not go by rows.
    const size_t left = in.rows - first, rest = left % strip;
    const size_t full = left / strip, all = full + (rest > 0 && net.rest[rest].registers > 0 ? 1 : 0);
    const size_t strips = std::min(all, Packed<T>::kFarStrips);
    if (strips < 2) break;
    const auto samples = [&](size_t s) { return std::min(strip, left - s * strip); };
    for (size_t s = 0; s < strips; ++s) {
      T* const x = workspace + s * apart;
      load_lanes(in, first + s * strip, samples(s), 2, x, strip);
      if (!net.input_scale.empty()) scale_input(net, x, strip, x, strip, 2);
    }
    for (size_t i = 0; i < net.layers.size(); ++i)
      far_layer(net.layers[i], halves[i % 2], halves[(i + 1) % 2], strips, apart);
    for (size_t s = 0; s < strips; ++s) {
      T* const y = halves[net.layers.size() % 2] + s * apart;
      if (!net.output_scale.empty()) scale_output(net, y, strip, 2);
      store_lanes(y, strip, 2, out, first + s * strip, samples(s));
    }
    first += std::min(left, strips * strip);
  }
  return first;
}

template <class T>
void evaluate_samples(const Packed<T>& net, MatrixView<const T> in, MatrixView<T> out, T* workspace) {
  size_t first = 0;
  if (net.is_far) {
    first = evaluate_far(net, in, out, workspace);
  } else if (copies_columns(net, in, out)) {
    first = evaluate_strips_by_columns(net, in, out, workspace);
  }
  if (come_by_themselves(in, out)) {
    if (net.pairs_strips()) first = evaluate_pairs(net, in, out, first, workspace);
    evaluate_strips<T, false>(net, in, out, first, workspace);
  } else {
    evaluate_strips<T, true>(net, in, out, first, workspace);
  }
}

template <class T>
void evaluate_lanes(const Packed<T>& net, const TileView<T>& tile, T* workspace) {
  const size_t lanes = hn::Lanes(Register<T>());
  const size_t wanted = static_cast<size_t>(tile.lanes);
  for (size_t first = 0; first < wanted;) {
    const size_t left = wanted - first;
    const int registers = left >= 2 * lanes ? 2 : net.rest[left].registers;
    if (registers == 0) {
      const auto stride = static_cast<ptrdiff_t>(kTileLanes);
      return run_rows<T>(net, {tile.in, wanted, net.inputs(), 1, stride}, {tile.out, wanted, net.outputs(), 1, stride},
                         first, left, workspace);
    }
    NothingAhead ahead;
    run_strip(net, tile.in + first, kTileLanes, tile.out + first, kTileLanes, registers, workspace, ahead);
    first += static_cast<size_t>(registers) * lanes;
  }
}
