// Jacobian products of a batch, tile by tile. No include guard: part of reverse_kernels-inl.h.

// Samples `first` on of a view as one tile, lanes past count as zeros; and back.
template <class T>
HWY_NOINLINE void load_tile(const MatrixView<const T>& view, size_t first, size_t count, T* to) {
  for_strips<T>(static_cast<int>(count), [&](size_t lane, int registers) {
    const size_t held = static_cast<size_t>(registers) * hn::Lanes(Register<T>());
    const size_t here = std::min(held, count - std::min(count, lane));
    load_lanes(view, first + lane, here, registers, to + lane, size_t{kTileLanes});
  });
}
template <class T>
HWY_NOINLINE void store_tile(const T* from, const MatrixView<T>& view, size_t first, size_t count) {
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
  // How many of the samples that are left to take so next: 0 where a tile is better. Products with several vectors cost
  // them about one and a half times what they cost a lane of a tile, idle ones included: as they share their sample's
  // record, one sample has enough of them.
  static size_t next(const ReverseNet<T>& net, size_t left, size_t vectors) {
    if (suits(net, left)) return left;
    const bool idle = left < kTileLanes && 3 * left <= 2 * computed_lanes<T>(static_cast<int>(left));
    return vectors > kFewSamples && idle && suits(net, 1) ? 1 : 0;
  }
  // Of vectors between layers, in numbers.
  static size_t stride_of(const ReverseNet<T>& net) { return mlp::padded<T>(net.packed.widest); }
  size_t stride() const { return stride_of(net); }
  const T* record(size_t sample) const { return space.activations + sample * net.sample_activations; }

  HWY_NOINLINE void evaluate(const MatrixView<const T>& in, size_t first) const {
    for (size_t s = 0; s < count; ++s) {
      const T* const sample = in.data + static_cast<ptrdiff_t>(first + s) * in.row_stride;
      mlp::copy<T>({sample, 1, 1, in.columns, 0, 0, in.column_stride}, {space.second, 1, 1, in.columns});
      T* const out = space.out + s * net.packed.outputs();
      evaluate_sample(net, space.second, out, space.activations + s * net.sample_activations, space.scratch);
    }
  }
  // When everything is read: it may lie in the same place.
  void leave(const MatrixView<T>& out, size_t first) const {
    if (out.data == nullptr) return;
    mlp::copy<T>({space.out, 1, count, out.columns}, batch_of(out, first, 1, 0));
  }
  // The samples' rows of a view, of several vectors that begin `step` numbers apart.
  template <class U>
  MatrixBatchView<U> batch_of(const MatrixView<U>& view, size_t first, size_t some, ptrdiff_t step) const {
    return {view.data + static_cast<ptrdiff_t>(first) * view.row_stride,
            some,
            count,
            view.columns,
            step,
            view.row_stride,
            view.column_stride};
  }
  // The same of what lies between layers.
  template <class U>
  MatrixBatchView<U> batch_of(U* rows, size_t some, size_t columns) const {
    const auto apart = static_cast<ptrdiff_t>(stride());
    return {rows, some, count, columns, static_cast<ptrdiff_t>(count) * apart, apart, 1};
  }
  // Of the vectors, so many at once: rows [vector][sample][.], as many as there is room for.
  size_t at_once() const { return tile_numbers(net.packed.widest) / (stride() * count); }
  // Rows of a layer's sums become products with its activation's derivative.
  HWY_NOINLINE void through(const ReverseLayer<T>& layer, size_t some, T* rows) const {
    const size_t outputs = layer.forward.outputs;
    for (size_t v = 0; v < some; ++v) {
      for (size_t s = 0; s < count; ++s, rows += stride()) {
        through_layer(layer, layer.sample, record(s), 1, rows, 1, sample_registers<T>(outputs));
        std::fill(rows + outputs, rows + mlp::padded<T>(outputs), T(0));
      }
    }
  }

  void scale(T* rows, size_t some, const AlignedBuffer<T>& by, mlp::Scaled scaled) const {
    if (!by.empty()) mlp::scale_rows(rows, some * count, stride(), by, scaled);
  }

  // Of `some` vectors whose rows lie in space.first; where the result lies then.
  T* jvp(const Packed<T>& tangent, size_t some) const {
    T *from = space.first, *to = space.second;
    scale(from, some, net.packed.input_scale, mlp::Scaled::divided);
    for (size_t l = 0; l < net.layers.size(); ++l) {
      row_layer(tangent.layers[l], from, static_cast<ptrdiff_t>(stride()), to, stride(), some * count);
      through(net.layers[l], some, to);
      std::swap(from, to);
    }
    scale(from, some, net.packed.output_scale, mlp::Scaled::multiplied);
    return from;
  }

  T* vjp(size_t some) const {
    T *from = space.first, *to = space.second;
    scale(from, some, net.packed.output_scale, mlp::Scaled::multiplied);
    for (size_t l = net.layers.size(); l-- > 0;) {
      through(net.layers[l], some, from);
      row_layer(net.layers[l].back, from, static_cast<ptrdiff_t>(stride()), to, stride(), some * count);
      std::swap(from, to);
    }
    scale(from, some, net.packed.input_scale, mlp::Scaled::divided);
    return from;
  }

  // The samples' products with all vectors, by multiply(how many of them), as above.
  template <class Multiply>
  void products(const MatrixView<const T>& in, MatrixView<const T> vector, const MatrixView<T>& out,
                MatrixView<T> result, const Vectors& vectors, size_t first, const Multiply& multiply) const {
    evaluate(in, first);
    for (size_t left = vectors.count, some; left > 0; left -= some) {
      some = left == 1 ? 1 : std::min(left, at_once());
      mlp::copy<T>(batch_of(vector, first, some, vectors.step), batch_of(space.first, some, vector.columns));
      const T* const made = multiply(some);
      mlp::copy<T>(batch_of(made, some, result.columns), batch_of(result, first, some, vectors.result_step));
      vector.data += static_cast<ptrdiff_t>(some) * vectors.step;
      result.data += static_cast<ptrdiff_t>(some) * vectors.result_step;
    }
    leave(out, first);
  }
};

// The same of a tile, by multiply(), which finds the vector in space.first and returns where the result lies.
template <class T, class Multiply>
void tile_products(const ReverseNet<T>& net, const DerivativeSpace<T>& space, const MatrixView<const T>& in,
                   MatrixView<const T> vector, const MatrixView<T>& out, MatrixView<T> result, const Vectors& vectors,
                   size_t first, size_t count, const Multiply& multiply) {
  record_samples(net, in, first, count, space);
  for (size_t i = 0; i < vectors.count; ++i) {
    load_tile(vector, first, count, space.first);
    store_tile<T>(multiply(), result, first, count);
    vector.data += vectors.step;
    result.data += vectors.result_step;
  }
  if (out.data != nullptr) store_tile(space.out, out, first, count);
}

template <class T>
void jvp(const ReverseNet<T>& net, const Packed<T>& tangent, MatrixView<const T> in, MatrixView<const T> in_dot,
         MatrixView<T> out, MatrixView<T> out_dot, const Vectors& vectors, T* workspace) {
  const DerivativeSpace<T> space(net, workspace);
  for (size_t first = 0, count; first < in.rows; first += count) {
    count = FewSamples<T>::next(net, in.rows - first, vectors.count);
    if (count > 0) {
      const FewSamples<T> few{net, space, count};
      few.products(in, in_dot, out, out_dot, vectors, first, [&](size_t some) { return few.jvp(tangent, some); });
      continue;
    }
    count = std::min<size_t>(kTileLanes, in.rows - first);
    tile_products(net, space, in, in_dot, out, out_dot, vectors, first, count,
                  [&] { return forward_tile(net, tangent, space.activations, space.first, space.second, count); });
  }
}

template <class T>
void vjp(const ReverseNet<T>& net, MatrixView<const T> in, MatrixView<const T> out_bar, MatrixView<T> out,
         MatrixView<T> in_bar, const Vectors& vectors, T* workspace) {
  const DerivativeSpace<T> space(net, workspace);
  for (size_t first = 0, count; first < in.rows; first += count) {
    count = FewSamples<T>::next(net, in.rows - first, vectors.count);
    if (count > 0) {
      const FewSamples<T> few{net, space, count};
      few.products(in, out_bar, out, in_bar, vectors, first, [&](size_t some) { return few.vjp(some); });
      continue;
    }
    count = std::min<size_t>(kTileLanes, in.rows - first);
    tile_products(net, space, in, out_bar, out, in_bar, vectors, first, count, [&] {
      reverse_tile(net, space.activations, space.first, space.second, space.cotangents, static_cast<int>(count),
                   space.scratch);
      return space.second;
    });
  }
}
