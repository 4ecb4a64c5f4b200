// The operations of a graph over rows of lanes. No include guard: part of kernels-inl.h.

template <class T>
HWY_INLINE const T* rows_of(const Operand<T>& operand, const Tile<T>& tile) {
  return tile.values + operand.row * tile.stride;
}

// out[i] = f(a[i], i) for every register of every row i.
template <class T, class F>
HWY_INLINE void each_register(const Step<T>& step, const Tile<T>& tile, F f) {
  const Register<T> d;
  const size_t lanes = hn::Lanes(d), used = tile.registers * lanes;
  const T* a = rows_of(step.a, tile);
  T* out = tile.values + step.out * tile.stride;
  for (size_t i = 0; i < step.width; ++i, a += tile.stride, out += tile.stride) {
    for (size_t lane = 0; lane < used; lane += lanes) hn::StoreU(f(hn::LoadU(d, a + lane), i), d, out + lane);
  }
}

template <UnaryKind kKind, class L>
HWY_INLINE typename L::V unary_of(typename L::V x) {
  using T = typename L::T;
  if constexpr (kKind == UnaryKind::square_root) {
    return L::sqrt(x);
  } else if constexpr (kKind == UnaryKind::exp) {
    return exp<L>(x);
  } else if constexpr (kKind == UnaryKind::log) {
    return log<L>(x);
  } else if constexpr (kKind == UnaryKind::absolute) {
    return L::abs(x);
  } else if constexpr (kKind == UnaryKind::negate) {
    return L::neg(x);
  } else if constexpr (kKind == UnaryKind::reciprocal) {
    return L::div(L::set(T(1)), x);
  } else if constexpr (kKind == UnaryKind::erf) {
    return erf<L>(x);
  } else {
    static_assert(kKind == UnaryKind::cosine);
    return cos<L>(x);
  }
}

template <class T, UnaryKind kKind>
void unary(const Step<T>& step, const Tile<T>& tile) {
  each_register(step, tile, [](auto x, size_t) { return unary_of<kKind, HwyLane<Register<T>>>(x); });
}

template <BinaryKind kKind, class L>
HWY_INLINE typename L::V binary_of(typename L::V a, typename L::V b) {
  if constexpr (kKind == BinaryKind::add) {
    return L::add(a, b);
  } else if constexpr (kKind == BinaryKind::subtract) {
    return L::sub(a, b);
  } else if constexpr (kKind == BinaryKind::multiply) {
    return L::mul(a, b);
  } else if constexpr (kKind == BinaryKind::divide) {
    return L::div(a, b);
  } else if constexpr (kKind == BinaryKind::minimum) {
    return L::select(L::eq(b, b), L::min(a, b), b);  // min keeps a NaN in a
  } else if constexpr (kKind == BinaryKind::maximum) {
    return L::select(L::eq(b, b), L::max(a, b), b);
  } else if constexpr (kKind == BinaryKind::less) {
    return L::select(L::lt(a, b), L::set(1), L::zero());
  } else if constexpr (kKind == BinaryKind::less_or_equal) {
    return L::select(L::le(a, b), L::set(1), L::zero());
  } else if constexpr (kKind == BinaryKind::equal) {
    return L::select(L::eq(a, b), L::set(1), L::zero());
  } else {
    static_assert(kKind == BinaryKind::power);
    return pow<L>(a, b);
  }
}

template <class T, BinaryKind kKind, int kConstants>  // 0: rows both, 1: the second holds constants, 2: the first
void binary(const Step<T>& step, const Tile<T>& tile) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  const size_t lanes = hn::Lanes(d), used = tile.registers * lanes;
  const T* a = kConstants == 2 ? step.a.constants : rows_of(step.a, tile);
  const T* b = kConstants == 1 ? step.b.constants : rows_of(step.b, tile);
  T* out = tile.values + step.out * tile.stride;
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
  each_register(step, tile, [&](auto x, size_t) {
    const auto inside = L::select(L::eq(x, x), L::zero(), x);
    return L::select(L::lt(upper, x), L::sub(x, bias), L::select(L::lt(x, lower), L::add(x, bias), inside));
  });
}

template <class T>
void activate_rows(const Step<T>& step, const Tile<T>& tile) {
  T* const out = tile.values + step.out * tile.stride;
  if (step.a.row != step.out) each_register(step, tile, [](auto x, size_t) { return x; });
  step.activation(out, step.width, tile.stride, tile.registers, step.numbers[0]);
}

// a times the derivative; b as Chain says.
template <ActivationKind kKind, class L>
HWY_INLINE typename L::V chain_of(typename L::V a, typename L::V b, typename L::V alpha) {
  if constexpr (kKind == ActivationKind::identity) {
    return a;
  } else if constexpr (kKind == ActivationKind::relu) {
    return L::select(L::lt(L::zero(), b), a, L::zero());
  } else if constexpr (kKind == ActivationKind::tanh) {
    return L::mul(a, L::nfma(b, b, L::set(1)));
  } else if constexpr (kKind == ActivationKind::sigmoid) {
    return L::mul(a, L::nfma(b, b, b));
  } else {
    return L::mul(a, activate_derivative<kKind, L>(b, alpha));
  }
}

template <class T, ActivationKind kKind>
void chain(const Step<T>& step, const Tile<T>& tile) {
  using L = HwyLane<Register<T>>;
  const Register<T> d;
  const size_t lanes = hn::Lanes(d), used = tile.registers * lanes;
  const auto alpha = L::set(step.numbers[0]);
  const T *a = rows_of(step.a, tile), *b = rows_of(step.b, tile);
  T* out = tile.values + step.out * tile.stride;
  for (size_t i = 0; i < step.width; ++i, a += tile.stride, b += tile.stride, out += tile.stride) {
    for (size_t lane = 0; lane < used; lane += lanes) {
      hn::StoreU(chain_of<kKind, L>(hn::LoadU(d, a + lane), hn::LoadU(d, b + lane), alpha), d, out + lane);
    }
  }
}

template <class T>
void fill(const Step<T>& step, const Tile<T>& tile) {
  const Register<T> d;
  T* out = tile.values + step.out * tile.stride;
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
  T* out = tile.values + step.out * tile.stride;
  for (size_t i = 0; i < step.width; ++i, out += tile.stride) copy_row(a + step.indices[i] * tile.stride, out, used);
}

template <class T>
void choose(const Step<T>& step, const Tile<T>& tile) {
  const size_t used = tile.registers * hn::Lanes(Register<T>());
  const T *a = rows_of(step.a, tile), *b = rows_of(step.b, tile);
  T* out = tile.values + step.out * tile.stride;
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
  T* out = tile.values + step.out * tile.stride;
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

// Over the features of one register of lanes, ascending.
template <ReduceKind kKind, class T>
HWY_INLINE hn::Vec<Register<T>> reduced(const T* x, size_t width, size_t stride) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  auto acc = hn::LoadU(d, x);
  for (size_t i = 1; i < width; ++i) {
    const auto next = hn::LoadU(d, x + i * stride);
    if constexpr (kKind == ReduceKind::minimum) {
      acc = binary_of<BinaryKind::minimum, L>(acc, next);
    } else if constexpr (kKind == ReduceKind::maximum) {
      acc = binary_of<BinaryKind::maximum, L>(acc, next);
    } else {
      acc = L::add(acc, next);
    }
  }
  if constexpr (kKind == ReduceKind::mean) acc = L::div(acc, L::set(static_cast<T>(width)));
  return acc;
}

template <class T, ReduceKind kKind>
void reduce(const Step<T>& step, const Tile<T>& tile) {
  const Register<T> d;
  const size_t lanes = hn::Lanes(d);
  T* const out = tile.values + step.out * tile.stride;
  for (size_t lane = 0; lane < tile.registers * lanes; lane += lanes) {
    hn::StoreU(reduced<kKind>(rows_of(step.a, tile) + lane, step.width, tile.stride), d, out + lane);
  }
}

template <class T, SoftmaxKind kKind>
void softmax(const Step<T>& step, const Tile<T>& tile) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  const size_t lanes = hn::Lanes(d);
  for (size_t lane = 0; lane < tile.registers * lanes; lane += lanes) {
    const T* const x = rows_of(step.a, tile) + lane;
    T* const y = tile.values + step.out * tile.stride + lane;
    const auto most = reduced<ReduceKind::maximum>(x, step.width, tile.stride);
    auto sum = L::zero();
    for (size_t i = 0; i < step.width; ++i) {
      const auto less = L::sub(hn::LoadU(d, x + i * tile.stride), most);
      const auto e = exp<L>(less);
      sum = i == 0 ? e : L::add(sum, e);
      hn::StoreU(kKind == SoftmaxKind::plain ? e : less, d, y + i * tile.stride);
    }
    if constexpr (kKind == SoftmaxKind::logarithm) sum = log<L>(sum);
    for (size_t i = 0; i < step.width; ++i) {
      const auto e = hn::LoadU(d, y + i * tile.stride);
      hn::StoreU(kKind == SoftmaxKind::plain ? L::div(e, sum) : L::sub(e, sum), d, y + i * tile.stride);
    }
  }
}

template <class T>
void layer_normalise(const Step<T>& step, const Tile<T>& tile) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  const size_t lanes = hn::Lanes(d);
  for (size_t lane = 0; lane < tile.registers * lanes; lane += lanes) {
    const T* const x = rows_of(step.a, tile) + lane;
    T* const y = tile.values + step.out * tile.stride + lane;
    const auto mean = reduced<ReduceKind::mean>(x, step.width, tile.stride);
    auto sum = L::zero();
    for (size_t i = 0; i < step.width; ++i) {
      const auto difference = L::sub(hn::LoadU(d, x + i * tile.stride), mean);
      sum = L::fma(difference, difference, sum);
      hn::StoreU(difference, d, y + i * tile.stride);
    }
    const auto variance = L::div(sum, L::set(static_cast<T>(step.width)));
    const auto r = L::div(L::set(T(1)), L::sqrt(L::add(variance, L::set(step.numbers[0]))));
    for (size_t i = 0; i < step.width; ++i) {
      const auto scaled = L::mul(hn::LoadU(d, y + i * tile.stride), r);
      hn::StoreU(L::fma(scaled, L::set(step.first[i]), L::set(step.second[i])), d, y + i * tile.stride);
    }
  }
}
