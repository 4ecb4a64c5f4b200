// The operations of a graph over one sample, whose features lie one after another: registers run over features, and
// only sums go number by number. Bits as in tile_operations-inl.h. No include guard: part of kernels-inl.h.

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
struct SingleOperand {
  const T* numbers;
  size_t step;
  HWY_ALIGN T same[hn::MaxLanes(Register<T>())];

  SingleOperand(const Operand<T>& operand, const Tile<T>& tile)
      : numbers(operand.constants != nullptr ? operand.constants : rows_of(operand, tile)), step(operand.step) {
    if (step == 1) return;
    hn::Store(hn::Set(Register<T>(), *numbers), Register<T>(), same);
    numbers = same;
  }
  SingleOperand(const SingleOperand&) = delete;  // `numbers` may point into it
  HWY_INLINE auto at(const Part<T>& part) const { return part.load(numbers, step * part.first); }
};

// out = f(part), part after part.
template <class T, class F>
HWY_INLINE void each_part(T* out, size_t width, F f) {
  for (size_t i = 0; i < width; i += hn::Lanes(Register<T>())) {
    const Part<T> part(i, width);
    part.store(f(part), out);
  }
}

template <class T, UnaryKind kKind>
void single_unary(const Step<T>& step, const Tile<T>& tile) {
  const SingleOperand<T> a(step.a, tile);
  each_part(made_by(step, tile), step.width,
            [&](const Part<T>& part) HWY_ATTR { return unary_of<kKind, HwyLane<Register<T>>>(a.at(part)); });
}

template <class T, BinaryKind kKind>
void single_binary(const Step<T>& step, const Tile<T>& tile) {
  const SingleOperand<T> a(step.a, tile), b(step.b, tile);
  each_part(made_by(step, tile), step.width, [&](const Part<T>& part) HWY_ATTR {
    return binary_of<kKind, HwyLane<Register<T>>>(a.at(part), b.at(part));
  });
}

template <class T>
void single_standardise(const Step<T>& step, const Tile<T>& tile) {
  using L = HwyLane<Register<T>>;
  const SingleOperand<T> a(step.a, tile);
  each_part(made_by(step, tile), step.width, [&](const Part<T>& part) HWY_ATTR {
    return L::div(L::sub(a.at(part), part.load(step.first)), part.load(step.second));
  });
}

template <class T>
void single_rescale(const Step<T>& step, const Tile<T>& tile) {
  using L = HwyLane<Register<T>>;
  const SingleOperand<T> a(step.a, tile);
  each_part(made_by(step, tile), step.width, [&](const Part<T>& part) HWY_ATTR {
    return L::fma(a.at(part), part.load(step.first), part.load(step.second));
  });
}

template <class T>
void single_clip(const Step<T>& step, const Tile<T>& tile) {
  using L = HwyLane<Register<T>>;
  const auto low = L::set(step.numbers[0]), high = L::set(step.numbers[1]);
  const SingleOperand<T> a(step.a, tile);
  each_part(made_by(step, tile), step.width,
            [&](const Part<T>& part) HWY_ATTR { return L::min(L::max(a.at(part), low), high); });
}

template <class T>
void single_dead_zone(const Step<T>& step, const Tile<T>& tile) {
  using L = HwyLane<Register<T>>;
  const auto lower = L::set(step.numbers[0]), upper = L::set(step.numbers[1]), bias = L::set(step.numbers[2]);
  const SingleOperand<T> a(step.a, tile);
  each_part(made_by(step, tile), step.width,
            [&](const Part<T>& part) HWY_ATTR { return dead_zone_of<L>(a.at(part), lower, upper, bias); });
}

template <class T>
void single_select(const Step<T>& step, const Tile<T>& tile) {
  using L = HwyLane<Register<T>>;
  const SingleOperand<T> a(step.a, tile), b(step.b, tile), c(step.c, tile);
  each_part(made_by(step, tile), step.width, [&](const Part<T>& part) HWY_ATTR {
    return L::select(L::eq(a.at(part), L::zero()), c.at(part), b.at(part));
  });
}

template <class T>
void single_choose(const Step<T>& step, const Tile<T>& tile) {
  const T *a = rows_of(step.a, tile), *b = rows_of(step.b, tile);
  T* out = made_by(step, tile);
  for (size_t i = 0; i < step.width; ++i) out[i] = step.indices[i] != 0 ? a[i * step.a.step] : b[i * step.b.step];
}

template <class T>
void single_columns(const Step<T>& step, const Tile<T>& tile) {
  const T* a = rows_of(step.a, tile);
  T* out = made_by(step, tile);
  for (size_t i = 0; i < step.width; ++i) out[i] = a[step.indices[i]];
}

template <class T>  // rows, or constants
void single_copy(const Step<T>& step, const Tile<T>& tile) {
  std::copy_n(SingleOperand<T>(step.a, tile).numbers, step.width, made_by(step, tile));
}

// Passes take whole registers: the last features go through one of their own.
template <class T>
void single_activate(const Step<T>& step, const Tile<T>& tile) {
  const size_t lanes = hn::Lanes(Register<T>()), whole = step.width / lanes, rest = step.width % lanes;
  T* const out = made_by(step, tile);
  if (rows_of(step.a, tile) != out) single_copy(step, tile);
  if (whole > 0) step.activation(out, 1, 0, whole, step.numbers[0]);
  if (rest == 0) return;
  HWY_ALIGN T last[hn::MaxLanes(Register<T>())] = {};
  std::copy_n(out + whole * lanes, rest, last);
  step.activation(last, 1, 0, 1, step.numbers[0]);
  std::copy_n(last, rest, out + whole * lanes);
}

template <class T>
using One = hn::CappedTag<T, 1>;

template <class T, ReduceKind kKind>
HWY_INLINE T reduced(const T* numbers, size_t width) {
  const auto from = [&](size_t i) HWY_ATTR { return hn::LoadU(One<T>(), numbers + i); };
  return hn::GetLane(reduce_of<kKind, HwyLane<One<T>>>(width, from));
}

template <class T, ReduceKind kKind>
void single_reduce(const Step<T>& step, const Tile<T>& tile) {
  *made_by(step, tile) = reduced<T, kKind>(rows_of(step.a, tile), step.width);
}

template <class T>
void single_softmax(const Step<T>& step, const Tile<T>& tile) {
  using L = HwyLane<Register<T>>;
  const SingleOperand<T> a(step.a, tile);
  T* const out = made_by(step, tile);
  const auto most = L::set(reduced<T, ReduceKind::maximum>(a.numbers, step.width));
  each_part(out, step.width, [&](const Part<T>& part) HWY_ATTR { return exp<L>(L::sub(a.at(part), most)); });
  const auto sum = L::set(reduced<T, ReduceKind::sum>(out, step.width));
  each_part(out, step.width, [&](const Part<T>& part) HWY_ATTR { return L::div(part.load(out), sum); });
}

template <class T>
void single_layer_normalise(const Step<T>& step, const Tile<T>& tile) {
  using L = HwyLane<Register<T>>;
  using S = HwyLane<One<T>>;
  const One<T> one;
  const SingleOperand<T> a(step.a, tile);
  T* const out = made_by(step, tile);
  const auto mean = L::set(reduced<T, ReduceKind::mean>(a.numbers, step.width));
  each_part(out, step.width, [&](const Part<T>& part) HWY_ATTR { return L::sub(a.at(part), mean); });
  auto sum = S::zero();
  for (size_t i = 0; i < step.width; ++i) {
    const auto difference = hn::LoadU(one, out + i);
    sum = S::fma(difference, difference, sum);
  }
  const auto variance = S::div(sum, S::set(static_cast<T>(step.width)));
  const auto r = L::set(hn::GetLane(S::div(S::set(T(1)), S::sqrt(S::add(variance, S::set(step.numbers[0]))))));
  each_part(out, step.width, [&](const Part<T>& part) HWY_ATTR {
    const auto scaled = L::mul(part.load(out), r);
    return L::fma(scaled, part.load(step.first), part.load(step.second));
  });
}

template <class T>
constexpr graph::SingleKernels<T> single_kernels() {
  using U = UnaryKind;
  using B = BinaryKind;
  return {.unary = {single_unary<T, U::square_root>, single_unary<T, U::exp>, single_unary<T, U::log>,
                    single_unary<T, U::absolute>, single_unary<T, U::negate>, single_unary<T, U::reciprocal>,
                    single_unary<T, U::erf>, single_unary<T, U::cosine>},
          .binary = {single_binary<T, B::add>, single_binary<T, B::subtract>, single_binary<T, B::multiply>,
                     single_binary<T, B::divide>, single_binary<T, B::minimum>, single_binary<T, B::maximum>, nullptr,
                     single_binary<T, B::less>, single_binary<T, B::less_or_equal>, single_binary<T, B::equal>},
          .softmax = {single_softmax<T>, nullptr},
          .reduce = {single_reduce<T, ReduceKind::sum>, single_reduce<T, ReduceKind::mean>,
                     single_reduce<T, ReduceKind::minimum>, single_reduce<T, ReduceKind::maximum>},
          .standardise = single_standardise<T>,
          .rescale = single_rescale<T>,
          .clip = single_clip<T>,
          .dead_zone = single_dead_zone<T>,
          .layer_normalise = single_layer_normalise<T>,
          .choose = single_choose<T>,
          .select = single_select<T>,
          .columns = single_columns<T>,
          .copy = single_copy<T>,
          .activate = single_activate<T>};
}
#else
template <class T>
constexpr graph::SingleKernels<T> single_kernels() {
  return {};
}
#endif  // HWY_SCALAR
