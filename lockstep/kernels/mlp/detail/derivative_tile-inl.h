// Jacobian products of a batch, tile by tile. No include guard: part of reverse_kernels-inl.h.

// Samples `first` on of a view as one tile, lanes past count as zeros; and back.
template <class T>
void load_tile(const MatrixView<const T>& view, size_t first, size_t count, T* to) {
  for_strips<T>(static_cast<int>(count), [&](size_t lane, int registers) {
    const size_t held = static_cast<size_t>(registers) * hn::Lanes(Register<T>());
    const size_t here = std::min(held, count - std::min(count, lane));
    load_lanes(view, first + lane, here, registers, to + lane, size_t{kTileLanes});
  });
}
template <class T>
void store_tile(const T* from, const MatrixView<T>& view, size_t first, size_t count) {
  for_strips<T>(static_cast<int>(count), [&](size_t lane, int registers) {
    const size_t held = static_cast<size_t>(registers) * hn::Lanes(Register<T>());
    const size_t here = std::min(held, count - std::min(count, lane));
    store_lanes(from + lane, size_t{kTileLanes}, registers, view, first + lane, here);
  });
}

// Numbers of a tile with the given rows.
constexpr size_t tile_numbers(size_t rows) { return rows * kTileLanes; }

// Tangents through the layers of one tile whose evaluation was recorded. `tangent` is the net without biases,
// activations and scaling. dot [input][.] is overwritten; the result lies in the returned one of dot and other.
template <class T>
T* forward_tile(const ReverseNet<T>& net, const Packed<T>& tangent, const T* activations, T* dot, T* other,
                size_t count) {
  constexpr size_t kRow = kTileLanes;
  const auto& packed = net.packed;
  T* from = dot;
  T* to = other;
  for_strips<T>(static_cast<int>(count), [&](size_t first, int registers) {
    const Register<T> d;
    using L = HwyLane<Register<T>>;
    const size_t lanes = static_cast<size_t>(registers) * hn::Lanes(d);
    const auto scale_rows = [&](T* rows, const AlignedBuffer<T>& scales, auto operation) {
      for (size_t c = 0; c < scales.size(); ++c) {
        for (size_t lane = first; lane < first + lanes; lane += hn::Lanes(d)) {
          T* const at = rows + c * kRow + lane;
          hn::StoreU(operation(hn::LoadU(d, at), L::set(scales[c])), d, at);
        }
      }
    };
    scale_rows(dot, packed.input_scale, [](auto v, auto scale) { return L::div(v, scale); });
    from = dot;
    to = other;
    for (size_t l = 0; l < net.layers.size(); ++l) {
      const ReverseLayer<T>& layer = net.layers[l];
      tile_layer(tangent.layers[l], from + first, kRow, to + first, kRow, registers);
      through_layer(layer, layer.tile, activations + first, kRow, to + first, layer.forward.outputs,
                    static_cast<size_t>(registers));
      std::swap(from, to);
    }
    scale_rows(from, packed.output_scale, [](auto v, auto scale) { return L::mul(v, scale); });
  });
  return from;
}

// The workspace of jvp and vjp: [record of activations][record of cotangents][values][two vectors][scratch].
template <class T>
struct DerivativeSpace {
  T* activations;
  T* cotangents;
  T* out;
  T* first;
  T* second;
  T* scratch;

  DerivativeSpace(const ReverseNet<T>& net, T* workspace)
      : activations(workspace),
        cotangents(activations + tile_numbers(net.tile_activations)),
        out(cotangents + tile_numbers(net.tile_cotangents)),
        first(out + tile_numbers(net.packed.outputs())),
        second(first + tile_numbers(net.packed.widest)),
        scratch(second + tile_numbers(net.packed.widest)) {}
};

// Records the evaluation of `count` samples from `first` on.
template <class T>
void record_samples(const ReverseNet<T>& net, const MatrixView<const T>& in, size_t first, size_t count,
                    const DerivativeSpace<T>& space) {
  load_tile(in, first, count, space.activations);
  evaluate_recording<T>(net, {nullptr, space.activations, nullptr, space.out, static_cast<int>(count)},
                        space.activations, space.scratch);
}

// So few samples leave most lanes of a tile idle: they are taken with registers over neurons, which have the same bits.
inline constexpr size_t kFewSamples = 3;

// The records of a few samples lie where those of a tile would, one after the other.
template <class T>
struct FewSamples {
  const ReverseNet<T>& net;
  const DerivativeSpace<T>& space;
  size_t count;

  static bool suits(const ReverseNet<T>& net, size_t count) {
    return count <= kFewSamples && count * net.sample_activations <= tile_numbers(net.tile_activations) &&
           count * net.sample_cotangents <= tile_numbers(net.tile_cotangents) &&
           count * stride_of(net) <= tile_numbers(net.packed.widest);
  }
  // Of vectors between layers, in numbers.
  static size_t stride_of(const ReverseNet<T>& net) { return mlp::padded<T>(net.packed.widest); }
  size_t stride() const { return stride_of(net); }
  const T* record(size_t sample) const { return space.activations + sample * net.sample_activations; }

  void evaluate(const MatrixView<const T>& in, size_t first) const {
    for (size_t s = 0; s < count; ++s) {
      for (size_t c = 0; c < net.packed.inputs(); ++c) space.second[c] = in(first + s, c);
      T* const out = space.out + s * net.packed.outputs();
      evaluate_sample(net, space.second, out, space.activations + s * net.sample_activations, space.scratch);
    }
  }
  // When everything is read: it may lie in the same place.
  void leave(const MatrixView<T>& out, size_t first) const {
    for (size_t s = 0; out.data != nullptr && s < count; ++s) {
      for (size_t c = 0; c < out.columns; ++c) out(first + s, c) = space.out[s * out.columns + c];
    }
  }
  // rows [sample][.] of a layer's sums become products with its activation's derivative.
  void through(const ReverseLayer<T>& layer, T* rows) const {
    const size_t outputs = layer.forward.outputs;
    for (size_t s = 0; s < count; ++s, rows += stride()) {
      through_layer(layer, layer.sample, record(s), 1, rows, 1, sample_registers<T>(outputs));
      std::fill(rows + outputs, rows + mlp::padded<T>(outputs), T(0));
    }
  }

  // As scaled(column, number) does it.
  auto by_input_scale() const {
    return [&by = net.packed.input_scale](size_t c, T x) { return by.empty() ? x : x / by[c]; };
  }
  auto by_output_scale() const {
    return [&by = net.packed.output_scale](size_t c, T x) { return by.empty() ? x : x * by[c]; };
  }
  // rows [sample][.] of what a view holds from sample `first` on, and back.
  template <class Scaled>
  void read(const MatrixView<const T>& view, size_t first, const Scaled& scaled, T* rows) const {
    for (size_t s = 0; s < count; ++s) {
      for (size_t c = 0; c < view.columns; ++c) rows[s * stride() + c] = scaled(c, view(first + s, c));
    }
  }
  template <class Scaled>
  void write(const T* rows, const Scaled& scaled, const MatrixView<T>& view, size_t first) const {
    for (size_t s = 0; s < count; ++s) {
      for (size_t c = 0; c < view.columns; ++c) view(first + s, c) = scaled(c, rows[s * stride() + c]);
    }
  }

  void jvp(const Packed<T>& tangent, const MatrixView<const T>& in_dot, const MatrixView<T>& out_dot,
           size_t first) const {
    T *from = space.first, *to = space.second;
    read(in_dot, first, by_input_scale(), from);
    for (size_t l = 0; l < net.layers.size(); ++l) {
      row_layer(tangent.layers[l], from, static_cast<ptrdiff_t>(stride()), to, stride(), count);
      through(net.layers[l], to);
      std::swap(from, to);
    }
    write(from, by_output_scale(), out_dot, first);
  }

  void vjp(const MatrixView<const T>& out_bar, const MatrixView<T>& in_bar, size_t first) const {
    T *from = space.first, *to = space.second;
    read(out_bar, first, by_output_scale(), from);
    for (size_t l = net.layers.size(); l-- > 0;) {
      through(net.layers[l], from);
      row_layer(net.layers[l].back, from, static_cast<ptrdiff_t>(stride()), to, stride(), count);
      std::swap(from, to);
    }
    write(from, by_input_scale(), in_bar, first);
  }
};

template <class T>
void jvp(const ReverseNet<T>& net, const Packed<T>& tangent, MatrixView<const T> in, MatrixView<const T> in_dot,
         MatrixView<T> out, MatrixView<T> out_dot, T* workspace) {
  const DerivativeSpace<T> space(net, workspace);
  for (size_t first = 0; first < in.rows; first += kTileLanes) {
    const size_t count = std::min<size_t>(kTileLanes, in.rows - first);
    if (FewSamples<T>::suits(net, count)) {
      const FewSamples<T> few{net, space, count};
      few.evaluate(in, first);
      few.jvp(tangent, in_dot, out_dot, first);
      return few.leave(out, first);
    }
    record_samples(net, in, first, count, space);
    load_tile(in_dot, first, count, space.first);
    const T* const dot = forward_tile(net, tangent, space.activations, space.first, space.second, count);
    if (out.data != nullptr) store_tile(space.out, out, first, count);
    store_tile(dot, out_dot, first, count);
  }
}

template <class T>
void vjp(const ReverseNet<T>& net, MatrixView<const T> in, MatrixView<const T> out_bar, MatrixView<T> out,
         MatrixView<T> in_bar, T* workspace) {
  const DerivativeSpace<T> space(net, workspace);
  for (size_t first = 0; first < in.rows; first += kTileLanes) {
    const size_t count = std::min<size_t>(kTileLanes, in.rows - first);
    if (FewSamples<T>::suits(net, count)) {
      const FewSamples<T> few{net, space, count};
      few.evaluate(in, first);
      few.vjp(out_bar, in_bar, first);
      return few.leave(out, first);
    }
    record_samples(net, in, first, count, space);
    load_tile(out_bar, first, count, space.first);
    reverse_tile(net, space.activations, space.first, space.second, space.cotangents, static_cast<int>(count),
                 space.scratch);
    if (out.data != nullptr) store_tile(space.out, out, first, count);
    store_tile(space.second, in_bar, first, count);
  }
}
