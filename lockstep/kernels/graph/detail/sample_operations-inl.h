// The operations of a graph over a few samples, the features of each one after another: registers run over features,
// and sums go number by number, several samples' side by side. Bits as in tile_operations-inl.h. No include guard: part
// of kernels-inl.h.

#if HWY_TARGET != HWY_SCALAR
// The features of one register, from the first on: fewer than it holds at the end.
template <class T>
struct Part {
  size_t first, count;
#if HWY_ARCH_X86
  hn::Mask<Register<T>> mask;
#endif

  Part(size_t begin, size_t width)
      : first(begin),
        count(std::min(hn::Lanes(Register<T>()), width - begin))
#if HWY_ARCH_X86
        ,
        mask(hn::FirstN(Register<T>(), count))
#endif
  {
  }

  // No number beyond the part is touched.
  HWY_INLINE hn::Vec<Register<T>> load(const T* numbers, size_t from) const {
    const Register<T> d;
#if HWY_ARCH_X86
    return hn::MaskedLoad(mask, d, numbers + from);
#else
    if (count == hn::Lanes(d)) return hn::LoadU(d, numbers + from);
    HWY_ALIGN T part[hn::MaxLanes(Register<T>())] = {};
    std::copy_n(numbers + from, count, part);
    return hn::Load(d, part);
#endif
  }
  HWY_INLINE hn::Vec<Register<T>> load(const T* numbers) const { return load(numbers, first); }
  HWY_INLINE void store(hn::Vec<Register<T>> v, T* numbers) const {
    const Register<T> d;
#if HWY_ARCH_X86
    hn::BlendedStore(v, mask, d, numbers + first);
#else
    if (count == hn::Lanes(d)) return hn::StoreU(v, d, numbers + first);
    HWY_ALIGN T part[hn::MaxLanes(Register<T>())];
    hn::Store(v, d, part);
    std::copy_n(part, count, numbers + first);
#endif
  }
};

// What is read: features, or one that meets them all, which is copied to a register of its own: no second loop for it.
template <class T>
struct SampleOperand {
  const T* numbers;
  const T* of_sample;  // the one that begin() was called for
  size_t step;
  size_t between;  // samples; none of constants
  HWY_ALIGN T same[hn::MaxLanes(Register<T>())];

  SampleOperand(const Operand<T>& operand, const Tile<T>& tile)
      : numbers(operand.constants != nullptr ? operand.constants : rows_of(operand, tile)),
        step(operand.step),
        between(operand.constants != nullptr ? 0 : tile.between_samples) {}
  SampleOperand(const SampleOperand&) = delete;  // `of_sample` may point into it
  HWY_INLINE void begin(size_t sample) {
    of_sample = numbers + sample * between;
    if (step == 1) return;
    hn::Store(hn::Set(Register<T>(), *of_sample), Register<T>(), same);
    of_sample = same;
  }
  HWY_INLINE auto at(const Part<T>& part) const { return part.load(of_sample, step * part.first); }
};

// out = f(part), sample after sample, part after part; the operands are told which sample it is.
template <class T, class F, class... Operands>
HWY_INLINE void each_part(const Step<T>& step, const Tile<T>& tile, F f, Operands&... operands) {
  T* out = made_by(step, tile);
  for (size_t sample = 0; sample < tile.samples; ++sample, out += tile.between_samples) {
    (operands.begin(sample), ...);
    for (size_t i = 0; i < step.width; i += hn::Lanes(Register<T>())) {
      const Part<T> part(i, step.width);
      part.store(f(part), out);
    }
  }
}

template <class T, UnaryKind kKind>
void sample_unary(const Step<T>& step, const Tile<T>& tile) {
  SampleOperand<T> a(step.a, tile);
  each_part(
      step, tile, [&](const Part<T>& part) HWY_ATTR { return unary_of<kKind, HwyLane<Register<T>>>(a.at(part)); }, a);
}

template <class T, BinaryKind kKind>
void sample_binary(const Step<T>& step, const Tile<T>& tile) {
  SampleOperand<T> a(step.a, tile), b(step.b, tile);
  each_part(
      step, tile,
      [&](const Part<T>& part) HWY_ATTR { return binary_of<kKind, HwyLane<Register<T>>>(a.at(part), b.at(part)); }, a,
      b);
}

template <class T>
void sample_standardise(const Step<T>& step, const Tile<T>& tile) {
  using L = HwyLane<Register<T>>;
  SampleOperand<T> a(step.a, tile);
  each_part(
      step, tile,
      [&](const Part<T>& part)
          HWY_ATTR { return L::div(L::sub(a.at(part), part.load(step.first)), part.load(step.second)); },
      a);
}

template <class T>
void sample_rescale(const Step<T>& step, const Tile<T>& tile) {
  using L = HwyLane<Register<T>>;
  SampleOperand<T> a(step.a, tile);
  each_part(
      step, tile,
      [&](const Part<T>& part) HWY_ATTR { return L::fma(a.at(part), part.load(step.first), part.load(step.second)); },
      a);
}

template <class T>
void sample_clip(const Step<T>& step, const Tile<T>& tile) {
  using L = HwyLane<Register<T>>;
  const auto low = L::set(step.numbers[0]), high = L::set(step.numbers[1]);
  SampleOperand<T> a(step.a, tile);
  each_part(
      step, tile, [&](const Part<T>& part) HWY_ATTR { return L::min(L::max(a.at(part), low), high); }, a);
}

template <class T>
void sample_dead_zone(const Step<T>& step, const Tile<T>& tile) {
  using L = HwyLane<Register<T>>;
  const auto lower = L::set(step.numbers[0]), upper = L::set(step.numbers[1]), bias = L::set(step.numbers[2]);
  SampleOperand<T> a(step.a, tile);
  each_part(
      step, tile, [&](const Part<T>& part) HWY_ATTR { return dead_zone_of<L>(a.at(part), lower, upper, bias); }, a);
}

template <class T>
void sample_select(const Step<T>& step, const Tile<T>& tile) {
  using L = HwyLane<Register<T>>;
  SampleOperand<T> a(step.a, tile), b(step.b, tile), c(step.c, tile);
  each_part(
      step, tile,
      [&](const Part<T>& part) HWY_ATTR { return L::select(L::eq(a.at(part), L::zero()), c.at(part), b.at(part)); }, a,
      b, c);
}

// f(numbers read by a and b, number made) of each sample.
template <class T, class F>
HWY_INLINE void each_sample(const Step<T>& step, const Tile<T>& tile, F f) {
  const T *a = rows_of(step.a, tile), *b = rows_of(step.b, tile);
  T* out = made_by(step, tile);
  for (size_t sample = 0; sample < tile.samples; ++sample) {
    const size_t at = sample * tile.between_samples;
    f(a + at, b + at, out + at);
  }
}

template <class T>
void sample_choose(const Step<T>& step, const Tile<T>& tile) {
  each_sample(step, tile, [&](const T* a, const T* b, T* out) {
    for (size_t i = 0; i < step.width; ++i) out[i] = step.indices[i] != 0 ? a[i * step.a.step] : b[i * step.b.step];
  });
}

template <class T>
void sample_columns(const Step<T>& step, const Tile<T>& tile) {
  each_sample(step, tile, [&](const T* a, const T*, T* out) {
    for (size_t i = 0; i < step.width; ++i) out[i] = a[step.indices[i]];
  });
}

template <class T>  // rows, or constants
void sample_copy(const Step<T>& step, const Tile<T>& tile) {
  each_sample(step, tile, [&](const T* a, const T*, T* out) {
    std::copy_n(step.a.constants != nullptr ? step.a.constants : a, step.width, out);
  });
}

// Passes take whole registers: the last features go through some of their own.
template <class T>
void sample_activate(const Step<T>& step, const Tile<T>& tile) {
  const size_t lanes = hn::Lanes(Register<T>()), whole = step.width / lanes, rest = step.width % lanes;
  T* const out = made_by(step, tile);
  if (rows_of(step.a, tile) != out) sample_copy(step, tile);
  if (whole > 0) step.activation(out, tile.samples, tile.between_samples, whole, step.numbers[0]);
  if (rest == 0) return;
  HWY_ALIGN T last[mlp::kMostLanes * hn::MaxLanes(Register<T>())] = {};
  T* const from = out + whole * lanes;
  for (size_t sample = 0; sample < tile.samples; ++sample) {
    std::copy_n(from + sample * tile.between_samples, rest, last + sample * lanes);
  }
  step.activation(last, tile.samples, lanes, 1, step.numbers[0]);
  for (size_t sample = 0; sample < tile.samples; ++sample) {
    std::copy_n(last + sample * lanes, rest, from + sample * tile.between_samples);
  }
}

// totals[i][sample] = of(width, feature by feature)[i]; as many samples side by side as keep the adders busy, the last
// one again where there are fewer. `of` is told the lanes L and how to load a feature into them.
template <class T, size_t kCount, size_t kTotals, class Of>
HWY_INLINE void side_by_side(const T* numbers, const Tile<T>& tile, size_t first, const std::array<T*, kTotals>& totals,
                             const Of& of) {
  using Group = LaneGroup<hn::CappedTag<T, 1>, kCount>;
  const T* from[kCount];
  for (size_t i = 0; i < kCount; ++i) {
    from[i] = numbers + std::min(first + i, tile.samples - 1) * tile.between_samples;
  }
  const auto load = [&](size_t feature) HWY_ATTR {
    typename Group::V v;
    _Pragma("GCC unroll 8") for (size_t i = 0; i < kCount; ++i) {
      v.each[i] = hn::LoadU(hn::CappedTag<T, 1>(), from[i] + feature);
    }
    return v;
  };
  const std::array<typename Group::V, kTotals> made = of(Group(), load);
  for (size_t k = 0; k < kTotals; ++k) {
    for (size_t i = 0; i < kCount && first + i < tile.samples; ++i) totals[k][first + i] = hn::GetLane(made[k].each[i]);
  }
}

template <class T, size_t kTotals, class Of>
HWY_INLINE void each_total(const T* numbers, const Tile<T>& tile, const std::array<T*, kTotals>& totals, const Of& of) {
  for (size_t first = 0; first < tile.samples; first += 8) {
    const size_t left = tile.samples - first;
    if (left == 1) {
      side_by_side<T, 1>(numbers, tile, first, totals, of);
    } else if (left <= 4) {
      side_by_side<T, 4>(numbers, tile, first, totals, of);
    } else {
      side_by_side<T, 8>(numbers, tile, first, totals, of);
    }
  }
}

template <class T, ReduceKind kKind>
HWY_NOINLINE void totals_of(const T* numbers, size_t width, const Tile<T>& tile, T* totals) {
  each_total(numbers, tile, std::array{totals}, [&](auto lanes, const auto& load) HWY_ATTR {
    return std::array{reduce_of<kKind, decltype(lanes)>(width, load)};
  });
}

template <class T, ReduceKind kKind>
void sample_reduce(const Step<T>& step, const Tile<T>& tile) {
  T totals[mlp::kMostLanes];
  totals_of<T, kKind>(rows_of(step.a, tile), step.width, tile, totals);
  for (size_t sample = 0; sample < tile.samples; ++sample) {
    made_by(step, tile)[sample * tile.between_samples] = totals[sample];
  }
}

// One number for each sample, that meets all its features.
template <class T>
struct Total {
  const T* totals;
  hn::Vec<Register<T>> now;
  explicit HWY_INLINE Total(const T* of) : totals(of), now(hn::Zero(Register<T>())) {}
  HWY_INLINE void begin(size_t sample) { now = hn::Set(Register<T>(), totals[sample]); }
};

// What the step has made so far.
template <class T>
HWY_INLINE Operand<T> made_operand(const Step<T>& step) {
  return {nullptr, step.out, 1, step.out_base};
}

template <class T>
void sample_softmax(const Step<T>& step, const Tile<T>& tile) {
  using L = HwyLane<Register<T>>;
  SampleOperand<T> a(step.a, tile), made(made_operand(step), tile);
  T totals[mlp::kMostLanes];
  Total<T> total(totals);
  totals_of<T, ReduceKind::maximum>(a.numbers, step.width, tile, totals);
  each_part(
      step, tile, [&](const Part<T>& part) HWY_ATTR { return exp<L>(L::sub(a.at(part), total.now)); }, a, total);
  totals_of<T, ReduceKind::sum>(made.numbers, step.width, tile, totals);
  each_part(
      step, tile, [&](const Part<T>& part) HWY_ATTR { return L::div(made.at(part), total.now); }, made, total);
}

template <class T>
void sample_layer_normalise(const Step<T>& step, const Tile<T>& tile) {
  using L = HwyLane<Register<T>>;
  SampleOperand<T> a(step.a, tile), made(made_operand(step), tile);
  T totals[mlp::kMostLanes], rests[mlp::kMostLanes];
  Total<T> total(totals), rest(rests);
  for (size_t sample = 0; sample < tile.samples; ++sample) totals[sample] = a.numbers[sample * tile.between_samples];
  each_part(
      step, tile, [&](const Part<T>& part) HWY_ATTR { return L::sub(a.at(part), total.now); }, a, total);
  totals_of<T, ReduceKind::mean>(made.numbers, step.width, tile, totals);
  each_part(
      step, tile, [&](const Part<T>& part) HWY_ATTR { return L::sub(made.at(part), total.now); }, made, total);
  each_total(made.numbers, tile, std::array{totals, rests}, [&](auto lanes, const auto& difference) HWY_ATTR {
    using S = decltype(lanes);
    auto squares = S::zero(), sum = S::zero();
    for (size_t i = 0; i < step.width; ++i) {
      const auto d = difference(i);
      sum = S::add(sum, d);
      squares = S::fma(d, d, squares);
    }
    return std::array{squares, sum};
  });
  for (size_t first = 0; first < tile.samples; first += hn::Lanes(Register<T>())) {
    const Part<T> part(first, tile.samples);
    const auto count = L::set(static_cast<T>(step.width));
    const auto variance = L::div(part.load(totals), count);
    part.store(L::div(L::set(T(1)), L::sqrt(L::add(variance, L::set(step.numbers[0])))), totals);
    part.store(L::div(part.load(rests), count), rests);
  }
  each_part(
      step, tile,
      [&](const Part<T>& part) HWY_ATTR {
        const auto difference = L::sub(made.at(part), rest.now);
        return L::fma(L::mul(difference, total.now), part.load(step.first), part.load(step.second));
      },
      made, total, rest);
}

template <class T>
constexpr graph::SampleKernels<T> sample_kernels() {
  using U = UnaryKind;
  using B = BinaryKind;
  return {.unary = {sample_unary<T, U::square_root>, sample_unary<T, U::exp>, sample_unary<T, U::log>,
                    sample_unary<T, U::absolute>, sample_unary<T, U::negate>, sample_unary<T, U::reciprocal>,
                    sample_unary<T, U::erf>, sample_unary<T, U::cosine>, sample_unary<T, U::floor>,
                    sample_unary<T, U::round>, sample_unary<T, U::arctangent>},
          .binary = {sample_binary<T, B::add>, sample_binary<T, B::subtract>, sample_binary<T, B::multiply>,
                     sample_binary<T, B::divide>, sample_binary<T, B::minimum>, sample_binary<T, B::maximum>, nullptr,
                     sample_binary<T, B::less>, sample_binary<T, B::less_or_equal>, sample_binary<T, B::equal>,
                     sample_binary<T, B::modulo>},
          .softmax = {sample_softmax<T>, nullptr},
          .reduce = {sample_reduce<T, ReduceKind::sum>, sample_reduce<T, ReduceKind::mean>,
                     sample_reduce<T, ReduceKind::minimum>, sample_reduce<T, ReduceKind::maximum>},
          .standardise = sample_standardise<T>,
          .rescale = sample_rescale<T>,
          .clip = sample_clip<T>,
          .dead_zone = sample_dead_zone<T>,
          .layer_normalise = sample_layer_normalise<T>,
          .choose = sample_choose<T>,
          .select = sample_select<T>,
          .columns = sample_columns<T>,
          .copy = sample_copy<T>,
          .activate = sample_activate<T>};
}
#else
template <class T>
constexpr graph::SampleKernels<T> sample_kernels() {
  return {};
}
#endif  // HWY_SCALAR
