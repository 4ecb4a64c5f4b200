// The operations of a graph over rows of lanes. No include guard: part of kernels-inl.h.

template <class T>
HWY_INLINE const T* rows_of(const Operand<T>& operand, const Tile<T>& tile) {
  return graph::rows_at(tile, operand.base, operand.row);
}

template <class T>
HWY_INLINE T* made_by(const Step<T>& step, const Tile<T>& tile) {
  return graph::rows_at(tile, step.out_base, step.out);
}

// out[i] = f(a[i], i) for every register of every row i.
template <class T, class F>
HWY_INLINE void each_register(const Step<T>& step, const Tile<T>& tile, F f) {
  const Register<T> d;
  const size_t lanes = hn::Lanes(d), used = tile.registers * lanes;
  const T* a = rows_of(step.a, tile);
  T* out = made_by(step, tile);
  for (size_t i = 0; i < step.width; ++i, a += tile.stride, out += tile.stride) {
    for (size_t lane = 0; lane < used; lane += lanes) hn::StoreU(f(hn::LoadU(d, a + lane), i), d, out + lane);
  }
}

template <class T, UnaryKind kKind>
void unary(const Step<T>& step, const Tile<T>& tile) {
  each_register(step, tile, [](auto x, size_t) { return unary_of<kKind, HwyLane<Register<T>>>(x); });
}

template <class T, BinaryKind kKind, int kConstants>  // 0: rows both, 1: the second holds constants, 2: the first
void binary(const Step<T>& step, const Tile<T>& tile) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  const size_t lanes = hn::Lanes(d), used = tile.registers * lanes;
  const T* a = kConstants == 2 ? step.a.constants : rows_of(step.a, tile);
  const T* b = kConstants == 1 ? step.b.constants : rows_of(step.b, tile);
  T* out = made_by(step, tile);
  const size_t a_step = kConstants == 2 ? step.a.step : step.a.step * tile.stride;
  const size_t b_step = kConstants == 1 ? step.b.step : step.b.step * tile.stride;
  for (size_t i = 0; i < step.width; ++i, a += a_step, b += b_step, out += tile.stride) {
    for (size_t lane = 0; lane < used; lane += lanes) {
      const auto x = kConstants == 2 ? L::set(*a) : hn::LoadU(d, a + lane);
      const auto y = kConstants == 1 ? L::set(*b) : hn::LoadU(d, b + lane);
      hn::StoreU(binary_of<kKind, L>(x, y), d, out + lane);
    }
  }
}

// Over the rows of a whole tile, which follow each other: no loop over lanes is left.
template <class T, BinaryKind kKind>
void whole_rows(const Step<T>& step, const Tile<T>& tile) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  const T* a = tile.bases[step.a.base] + step.a.row * kTileLanes;
  const T* b = tile.bases[step.b.base] + step.b.row * kTileLanes;
  T* out = tile.bases[step.out_base] + step.out * kTileLanes;
  for (size_t i = 0; i < step.width; ++i, a += kTileLanes, b += kTileLanes, out += kTileLanes) {
    for (size_t lane = 0; lane < kTileLanes; lane += hn::Lanes(d)) {
      hn::StoreU(binary_of<kKind, L>(hn::LoadU(d, a + lane), hn::LoadU(d, b + lane)), d, out + lane);
    }
  }
}

// Two of them on one row, each rounded, what lies between never stored.
template <class T, BinaryKind kFirst, BinaryKind kSecond, bool kRight>
void paired_rows(const Step<T>& step, const Tile<T>& tile) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  const T* a = tile.bases[step.a.base] + step.a.row * kTileLanes;
  const T* b = tile.bases[step.b.base] + step.b.row * kTileLanes;
  const T* c = tile.bases[step.c.base] + step.c.row * kTileLanes;
  T* out = tile.bases[step.out_base] + step.out * kTileLanes;
  for (size_t lane = 0; lane < kTileLanes; lane += hn::Lanes(d)) {
    const auto first = binary_of<kFirst, L>(hn::LoadU(d, a + lane), hn::LoadU(d, b + lane));
    const auto other = hn::LoadU(d, c + lane);
    hn::StoreU(kRight ? binary_of<kSecond, L>(other, first) : binary_of<kSecond, L>(first, other), d, out + lane);
  }
}

template <class T>
void standardise(const Step<T>& step, const Tile<T>& tile) {
  using L = HwyLane<Register<T>>;
  each_register(step, tile,
                [&](auto x, size_t i) { return L::div(L::sub(x, L::set(step.first[i])), L::set(step.second[i])); });
}

template <class T>
void rescale(const Step<T>& step, const Tile<T>& tile) {
  using L = HwyLane<Register<T>>;
  each_register(step, tile, [&](auto x, size_t i) { return L::fma(x, L::set(step.first[i]), L::set(step.second[i])); });
}

template <class T>
void clip(const Step<T>& step, const Tile<T>& tile) {
  using L = HwyLane<Register<T>>;
  const auto low = L::set(step.numbers[0]), high = L::set(step.numbers[1]);
  each_register(step, tile, [&](auto x, size_t) { return L::min(L::max(x, low), high); });
}

template <class T>
void dead_zone(const Step<T>& step, const Tile<T>& tile) {
  using L = HwyLane<Register<T>>;
  const auto lower = L::set(step.numbers[0]), upper = L::set(step.numbers[1]), bias = L::set(step.numbers[2]);
  each_register(step, tile, [&](auto x, size_t) { return dead_zone_of<L>(x, lower, upper, bias); });
}

template <class T>
void interpolate(const Step<T>& step, const Tile<T>& tile) {
  using L = HwyLane<Register<T>>;
  const Register<T> d;
  const size_t lanes = hn::Lanes(d), knots = step.indices[0], padded = step.indices[1], powers = step.indices[2];
  const T* a = rows_of(step.a, tile);
  for (size_t lane = 0; lane < tile.registers * lanes; lane += lanes) {
    const auto at = lanes_among_knots<L>(hn::LoadU(d, a + lane), step.first, padded, step.numbers[0], step.numbers[1]);
    T* out = made_by(step, tile) + lane;
    for (size_t i = 0; i < step.width; ++i, out += tile.stride) {
      hn::StoreU(interpolated<L>(at, step.second + i * powers * knots, powers, knots), d, out);
    }
  }
}

template <class T>
void copy(const Step<T>& step, const Tile<T>& tile) {
  each_register(step, tile, [](auto x, size_t) { return x; });
}

template <class T>
void activate_rows(const Step<T>& step, const Tile<T>& tile) {
  T* const out = made_by(step, tile);
  if (rows_of(step.a, tile) != out) copy(step, tile);
  step.activation(out, step.width, tile.stride, tile.registers, step.numbers[0]);
}

template <class T, ActivationKind kKind>
void chain(const Step<T>& step, const Tile<T>& tile) {
  using L = HwyLane<Register<T>>;
  const Register<T> d;
  const size_t lanes = hn::Lanes(d), used = tile.registers * lanes;
  const auto alpha = L::set(step.numbers[0]);
  const T *a = rows_of(step.a, tile), *b = rows_of(step.b, tile);
  T* out = made_by(step, tile);
  for (size_t i = 0; i < step.width; ++i, a += tile.stride, b += tile.stride, out += tile.stride) {
    for (size_t lane = 0; lane < used; lane += lanes) {
      hn::StoreU(chain_of<kKind, L>(hn::LoadU(d, a + lane), hn::LoadU(d, b + lane), alpha), d, out + lane);
    }
  }
}

template <class T>
void fill(const Step<T>& step, const Tile<T>& tile) {
  const Register<T> d;
  T* out = made_by(step, tile);
  for (size_t i = 0; i < step.width; ++i, out += tile.stride) {
    const auto x = hn::Set(d, step.a.constants[i]);
    for (size_t lane = 0; lane < tile.registers * hn::Lanes(d); lane += hn::Lanes(d)) hn::StoreU(x, d, out + lane);
  }
}

template <class T>
HWY_INLINE void copy_row(const T* from, T* to, size_t numbers) {
  const Register<T> d;
  for (size_t lane = 0; lane < numbers; lane += hn::Lanes(d)) hn::StoreU(hn::LoadU(d, from + lane), d, to + lane);
}

template <class T>
void columns(const Step<T>& step, const Tile<T>& tile) {
  const size_t used = tile.registers * hn::Lanes(Register<T>());
  const T* a = rows_of(step.a, tile);
  T* out = made_by(step, tile);
  for (size_t i = 0; i < step.width; ++i, out += tile.stride) copy_row(a + step.indices[i] * tile.stride, out, used);
}

template <class T>
void choose(const Step<T>& step, const Tile<T>& tile) {
  const size_t used = tile.registers * hn::Lanes(Register<T>());
  const T *a = rows_of(step.a, tile), *b = rows_of(step.b, tile);
  T* out = made_by(step, tile);
  for (size_t i = 0; i < step.width; ++i, out += tile.stride) {
    copy_row(step.indices[i] != 0 ? a + i * step.a.step * tile.stride : b + i * step.b.step * tile.stride, out, used);
  }
}

template <class T>
void select(const Step<T>& step, const Tile<T>& tile) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  const size_t lanes = hn::Lanes(d);
  const T *a = rows_of(step.a, tile), *b = rows_of(step.b, tile), *c = rows_of(step.c, tile);
  T* out = made_by(step, tile);
  for (size_t i = 0; i < step.width; ++i, out += tile.stride) {
    for (size_t lane = 0; lane < tile.registers * lanes; lane += lanes) {
      const auto no = L::eq(hn::LoadU(d, a + lane), L::zero());
      hn::StoreU(L::select(no, hn::LoadU(d, c + lane), hn::LoadU(d, b + lane)), d, out + lane);
    }
    a += step.a.step * tile.stride;
    b += step.b.step * tile.stride;
    c += step.c.step * tile.stride;
  }
}

// The features of one register of lanes: of what a step reads from `lane` on, and of what it makes.
template <class T>
struct Column {
  const T* from;
  T* to;
  size_t stride;
  Column(const Step<T>& step, const Tile<T>& tile, size_t lane)
      : from(rows_of(step.a, tile) + lane), to(made_by(step, tile) + lane), stride(tile.stride) {}
};

template <class T, ReduceKind kKind>
void reduce(const Step<T>& step, const Tile<T>& tile) {
  const Register<T> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t lane = 0; lane < tile.registers * lanes; lane += lanes) {
    const Column<T> c(step, tile, lane);
    const auto from = [&](size_t i) { return hn::LoadU(d, c.from + i * c.stride); };
    hn::StoreU(reduce_of<kKind, HwyLane<Register<T>>>(step.width, from), d, c.to);
  }
}

template <class T, SoftmaxKind kKind>
void softmax(const Step<T>& step, const Tile<T>& tile) {
  const Register<T> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t lane = 0; lane < tile.registers * lanes; lane += lanes) {
    const Column<T> c(step, tile, lane);
    const auto from = [&](size_t i) { return hn::LoadU(d, c.from + i * c.stride); };
    const auto made = [&](size_t i) { return hn::LoadU(d, c.to + i * c.stride); };
    const auto put = [&](size_t i, auto x) { hn::StoreU(x, d, c.to + i * c.stride); };
    softmax_of<kKind, HwyLane<Register<T>>>(step.width, from, put, made);
  }
}

template <class T>
void layer_normalise(const Step<T>& step, const Tile<T>& tile) {
  const Register<T> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t lane = 0; lane < tile.registers * lanes; lane += lanes) {
    const Column<T> c(step, tile, lane);
    const auto from = [&](size_t i) { return hn::LoadU(d, c.from + i * c.stride); };
    const auto made = [&](size_t i) { return hn::LoadU(d, c.to + i * c.stride); };
    const auto put = [&](size_t i, auto x) { hn::StoreU(x, d, c.to + i * c.stride); };
    layer_normalise_of<HwyLane<Register<T>>>(step.width, step.numbers[0], step.first, step.second, from, put, made);
  }
}
