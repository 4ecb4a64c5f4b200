// The tile path of reverse mode: forward with a record, and cotangents back through the layers.
// No include guard: part of reverse_kernels-inl.h.

// Lanes computed: whole groups of slots, so that every instruction set leaves the same numbers in the records.
template <class T>
HWY_INLINE size_t computed_lanes(int lanes) {
  return mlp::padded<T>(static_cast<size_t>(lanes));
}

// f(first lane, registers) for strips of one or two registers.
template <class T, class F>
HWY_INLINE void for_strips(int wanted, F f) {
  const size_t lanes = hn::Lanes(Register<T>());
  const size_t end = computed_lanes<T>(wanted);
  for (size_t first = 0; first < end;) {
    const int registers = end - first >= 2 * lanes ? 2 : 1;
    f(first, registers);
    first += static_cast<size_t>(registers) * lanes;
  }
}

// f(tag, lane) for whole registers of `lanes` lanes, then for single ones: what small stores wrote a moment ago a whole
// register can load only once they have left the store queue, behind hundreds of others.
template <class T, class F>
HWY_INLINE void for_lanes(size_t lanes, F f) {
  const Register<T> d;
  size_t lane = 0;
  for (; lane + hn::Lanes(d) <= lanes; lane += hn::Lanes(d)) f(d, lane);
  for (; lane < lanes; ++lane) f(hn::CappedTag<T, 1>(), lane);
}

// tanh over adjacent registers just stored. Meanwhile what will be written over `next` is brought closer, a line for
// each register: records of many steps lie in the third-level cache, and stores to them would wait for it.
template <class T>
void tanh_ahead(T* values, size_t registers, const T* next) {
  constexpr ActivationKind kKind = ActivationKind::tanh;
  constexpr size_t kCount = kTogether<T, kKind>;
  const size_t lanes = hn::Lanes(Register<T>());
  size_t first = 0;
  for (; first + kCount <= registers; first += kCount) {
    for (size_t i = 0; i < kCount; ++i) __builtin_prefetch(next + (first + i) * lanes, 1, 3);
    activate_groups<T, kKind, kCount>(values, first, first + kCount, T(0));
  }
  apply_activation<T, kKind>(values + first * lanes, 1, 0, registers - first, T(0));
}

// The same over rows of two registers each, of which a tile's rows hold several.
template <class T>
void tanh_ahead_by_rows(T* values, size_t rows, const T* next) {
  const size_t lanes = hn::Lanes(Register<T>());
  // Inlined: GCC takes calls of what only prefetches for calls without effect.
  const auto fetch = [=](size_t row) __attribute__((always_inline)) {
    for (size_t lane = 0; lane < 2 * lanes; lane += kSlots<T>) __builtin_prefetch(next + row * kTileLanes + lane, 1, 3);
  };
  size_t row = 0;
#if HWY_TARGET == HWY_AVX2
  if constexpr (sizeof(T) == 4) {
    tanh_fours(
        rows / 2,
        [=](size_t group, size_t i) HWY_ATTR { return values + (2 * group + i / 2) * kTileLanes + i % 2 * lanes; },
        [=](size_t group) __attribute__((always_inline)) {
          fetch(2 * group);
          fetch(2 * group + 1);
        });
    row = rows / 2 * 2;
  }
#endif
  for (; row < rows; ++row) {
    fetch(row);
    activate_groups<T, ActivationKind::tanh, 2>(values + row * kTileLanes, 0, 2, T(0));
  }
}

template <class T>
void evaluate_recording(const ReverseNet<T>& net, const TileView<T>& tile, T* activations, T*) {
  constexpr size_t kRow = kTileLanes;
  const auto& packed = net.packed;
  const size_t wanted = static_cast<size_t>(tile.lanes), computed = computed_lanes<T>(tile.lanes);
  for (size_t c = 0; c < packed.inputs(); ++c) {
    const T* const from = tile.in + c * kRow;
    T* const to = activations + c * kRow;
    for_lanes<T>(wanted, [&](auto d, size_t lane) HWY_ATTR { hn::StoreU(hn::LoadU(d, from + lane), d, to + lane); });
    for (size_t lane = wanted; lane < computed; ++lane) to[lane] = T(0);
  }
  for_strips<T>(tile.lanes, [&](size_t first, int registers) {
    if (!packed.input_scale.empty()) {
      scale_input(packed, activations + first, kRow, activations + first, kRow, registers);
    }
    T* const record = activations + first;
    T* const out = tile.out + first;
    // The next step's record follows this one's.
    const size_t next_record = net.tile_activations * kRow;
    constexpr bool kByRows = HWY_TARGET == HWY_AVX2 && sizeof(T) == 4;
    const bool whole_rows = static_cast<size_t>(registers) * hn::Lanes(Register<T>()) == kRow;
    for (size_t l = 0; l < net.layers.size(); ++l) {
      const bool thin = registers == 2 && net.layers[l].forward.thin_weights != nullptr &&
                        net.layers[l].forward.activation == ActivationKind::tanh;
      const Places& begin = net.layers[l].tile;
      if (thin) ++l;
      const ReverseLayer<T>& layer = net.layers[l];
      const Places& at = layer.tile;
      const T* const x = record + begin.x * kRow;
      T* const y = at.y == Places::kNone ? out : record + at.y * kRow;
      T* const z = at.z == Places::kNone ? y : record + at.z * kRow;
      const bool ahead =
          !thin && layer.forward.activation == ActivationKind::tanh && y != out && (whole_rows || kByRows);
      const PackedLayer<T>& packed_layer = ahead || z != y ? layer.linear : layer.forward;
      if (thin) {
        T* const values = record + begin.y * kRow;
        thin_layers<T, true>(net.layers[l - 1].forward, packed_layer,
                             {x, kRow, values, kRow, z, kRow, values + next_record});
      } else {
        tile_layer(packed_layer, x, kRow, z, kRow, registers);
      }
      if constexpr (kByRows) {
        if (ahead) tanh_ahead_by_rows(y, layer.forward.outputs, y + next_record);
      } else {
        if (ahead) tanh_ahead(y, layer.forward.outputs * static_cast<size_t>(registers), y + next_record);
      }
      if (z != y) {
        activate_pass<T>(layer.forward.activation)(z, kRow, y, kRow, layer.forward.outputs,
                                                   static_cast<size_t>(registers), layer.forward.alpha);
      }
    }
    const size_t last = net.layers.back().tile.y;
    const size_t lanes = static_cast<size_t>(registers) * hn::Lanes(Register<T>());
    for (size_t c = 0; last != Places::kNone && c < packed.outputs(); ++c) {
      std::copy_n(record + (last + c) * kRow, lanes, out + c * kRow);
    }
    if (!packed.output_scale.empty()) scale_output(packed, out, kRow, registers);
  });
}

template <class T>
void reverse_tile(const ReverseNet<T>& net, const T* activations, const T* out_bar, T* in_bar, T* cotangents,
                  int wanted, T* workspace, const T* next_activations = nullptr, InBar in_bar_is = InBar::set) {
  constexpr size_t kRow = kTileLanes;
  const auto& packed = net.packed;
  const size_t computed = computed_lanes<T>(wanted);
  T* const last = cotangents + net.layers.back().tile.cotangent * kRow;
  for (size_t c = 0; c < packed.outputs(); ++c) {
    const T scale = packed.output_scale.empty() ? T(1) : packed.output_scale[c];
    const size_t lanes = static_cast<size_t>(wanted);
    const T* const from = out_bar + c * kRow;
    T* const to = last + c * kRow;
    for_lanes<T>(lanes, [&](auto d, size_t lane) HWY_ATTR {
      hn::StoreU(hn::Mul(hn::LoadU(d, from + lane), hn::Set(d, scale)), d, to + lane);
    });
    for (size_t lane = lanes; lane < computed; ++lane) to[lane] = T(0);
  }
  for_strips<T>(wanted, [&](size_t first, int registers) {
    const ReverseLayer<T>& end = net.layers.back();
    through_layer(end, end.tile, activations + first, kRow, last + first, end.forward.outputs,
                  static_cast<size_t>(registers));
    for (size_t l = net.layers.size(); l-- > 0;) {
      const ReverseLayer<T>& layer = net.layers[l];
      const T* const bars = cotangents + layer.tile.cotangent * kRow + first;
      if (l == 0) {
        if (in_bar == nullptr) return;
        back_layer<T>(ActivationKind::identity)(layer, bars, nullptr, workspace + first, registers, nullptr);
        return;
      }
      const ReverseLayer<T>& before = net.layers[l - 1];
      if (l == 1 && in_bar != nullptr && registers == 2 && goes_back_thin(before)) {
        const size_t row = before.tile.y * kRow + first;
        thin_layers_back<T>(before.forward, layer.forward,
                            {bars, activations + row, cotangents + before.tile.cotangent * kRow + first,
                             workspace + first, next_activations == nullptr ? nullptr : next_activations + row});
        return;
      }
      T* const to = cotangents + before.tile.cotangent * kRow + first;
      const T* const values = activations + before.tile.y * kRow + first;
      const T* const next = next_activations == nullptr ? nullptr : next_activations + before.tile.y * kRow + first;
      if (before.tile.z == Places::kNone) {
        back_layer<T>(before.forward.activation)(layer, bars, values, to, registers, next);
      } else {
        back_layer<T>(ActivationKind::identity)(layer, bars, values, to, registers, nullptr);
        through_layer(before, before.tile, activations + first, kRow, to, before.forward.outputs,
                      static_cast<size_t>(registers));
      }
    }
  });
  if (in_bar == nullptr) return;
  for (size_t c = 0; c < packed.inputs(); ++c) {
    const T scale = packed.input_scale.empty() ? T(1) : packed.input_scale[c];
    const T* const from = workspace + c * kRow;
    T* const to = in_bar + c * kRow;
    for_lanes<T>(static_cast<size_t>(wanted), [&](auto d, size_t lane) HWY_ATTR {
      auto bar = hn::Div(hn::LoadU(d, from + lane), hn::Set(d, scale));
      if (in_bar_is == InBar::add) bar = hn::Add(hn::LoadU(d, to + lane), bar);
      hn::StoreU(bar, d, to + lane);
    });
  }
}

template <class T>
void accumulate_tiles(const ReverseNet<T>& net, RecordedTiles<T> tiles, T* gradient) {
  for (size_t l = 0; l < net.layers.size(); ++l) {
    const ReverseLayer<T>& layer = net.layers[l];
    if (goes_back_thin(layer)) {
      thin_layers_gradient(layer, net.layers[++l], tiles, gradient);
    } else {
      layer_gradient(layer, tiles, layer.tile.cotangent, layer.tile.x, gradient + layer.parameters);
    }
  }
}
