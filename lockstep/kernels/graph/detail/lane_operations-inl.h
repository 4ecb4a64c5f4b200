// The operations of a graph over one lane type L, for SIMD lanes and for single numbers alike. No include guard:
// included inside a namespace that knows L's elementary functions and the kinds of operation.h, with LOCKSTEP_LANE_FN
// defined; see kernels-inl.h and lane_operations.h.

template <UnaryKind kKind, class L>
LOCKSTEP_LANE_FN typename L::V unary_of(typename L::V x) {
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
  } else if constexpr (kKind == UnaryKind::cosine) {
    return cos<L>(x);
  } else if constexpr (kKind == UnaryKind::floor) {
    return L::floor(x);
  } else if constexpr (kKind == UnaryKind::round) {
    return L::round(x);
  } else {
    static_assert(kKind == UnaryKind::arctangent);
    return atan<L>(x);
  }
}

template <BinaryKind kKind, class L>
LOCKSTEP_LANE_FN typename L::V binary_of(typename L::V a, typename L::V b) {
  using T = typename L::T;
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
    return L::select(L::lt(a, b), L::set(T(1)), L::zero());
  } else if constexpr (kKind == BinaryKind::less_or_equal) {
    return L::select(L::le(a, b), L::set(T(1)), L::zero());
  } else if constexpr (kKind == BinaryKind::equal) {
    return L::select(L::eq(a, b), L::set(T(1)), L::zero());
  } else if constexpr (kKind == BinaryKind::modulo) {
    return modulo<L>(a, b);
  } else {
    static_assert(kKind == BinaryKind::power);
    return pow<L>(a, b);
  }
}

// a times the derivative; b as Chain says.
template <ActivationKind kKind, class L>
LOCKSTEP_LANE_FN typename L::V chain_of(typename L::V a, typename L::V b, typename L::V alpha) {
  using T = typename L::T;
  (void)b;
  (void)alpha;
  if constexpr (kKind == ActivationKind::identity) {
    return a;
  } else if constexpr (kKind == ActivationKind::relu) {
    return L::select(L::lt(L::zero(), b), a, L::zero());
  } else if constexpr (kKind == ActivationKind::tanh) {
    return L::mul(a, L::nfma(b, b, L::set(T(1))));
  } else if constexpr (kKind == ActivationKind::sigmoid) {
    return L::mul(a, L::nfma(b, b, b));
  } else {
    return L::mul(a, activate_derivative<kKind, L>(b, alpha));
  }
}

template <class L>
LOCKSTEP_LANE_FN typename L::V dead_zone_of(typename L::V x, typename L::V lower, typename L::V upper,
                                            typename L::V bias) {
  const auto inside = L::select(L::eq(x, x), L::zero(), x);
  return L::select(L::lt(upper, x), L::sub(x, bias), L::select(L::lt(x, lower), L::add(x, bias), inside));
}

// Where a number lies among the knots of an Interpolate.
template <class L>
struct AmongKnots {
  typename L::I knot;
  typename L::V distance;
};

// Among 2 `half` knots from each `at` on, of which the first is not above the number.
template <class L>
LOCKSTEP_LANE_FN AmongKnots<L> search_knots(typename L::V clamped, const typename L::T* knots, typename L::I at,
                                            size_t half) {
  using TI = typename L::TI;
  for (; half > 0; half /= 2) {
    const auto next = L::int_add(at, L::int_set(static_cast<TI>(half)));
    const auto reached = L::le(L::gather(knots, next), clamped);
    at = L::bits(L::select(reached, L::from_bits(next), L::from_bits(at)));
  }
  return {at, L::sub(clamped, L::gather(knots, at))};
}

// `knots` end in NaN, up to a power of two; first and last are those before that. The search in halves compares as
// many times for any number.
template <class L>
LOCKSTEP_LANE_FN AmongKnots<L> among_knots(typename L::V x, const typename L::T* knots, size_t padded,
                                           typename L::T first, typename L::T last) {
  const auto clamped = L::min(L::max(x, L::set(first)), L::set(last));
  return search_knots<L>(clamped, knots, L::int_set(0), padded / 2);
}

// `coefficients` are one feature's.
template <class L>
LOCKSTEP_LANE_FN typename L::V interpolated(const AmongKnots<L>& at, const typename L::T* coefficients, size_t powers,
                                            size_t knots) {
  auto y = L::gather(coefficients, at.knot);
  for (size_t power = 1; power < powers; ++power) {
    y = L::fma(y, at.distance, L::gather(coefficients + power * knots, at.knot));
  }
  return y;
}

// The lanes of a register among the knots of an Interpolate, by the same comparisons. What all of them agree on takes
// one knot, which is read once: numbers in order, and the times of trajectories beside one another, mostly agree to the
// end.
template <class L>
struct LanesAmongKnots {
  AmongKnots<L> each;
  bool together;  // in one interval
  size_t knot;    // then its
};
template <class L>
LOCKSTEP_LANE_FN LanesAmongKnots<L> lanes_among_knots(typename L::V x, const typename L::T* knots, size_t padded,
                                                      typename L::T first, typename L::T last) {
  using TI = typename L::TI;
  const auto clamped = L::min(L::max(x, L::set(first)), L::set(last));
  size_t at = 0, half = padded / 2;
  for (; half > 0; half /= 2) {
    const auto reached = L::le(L::set(knots[at + half]), clamped);
    if (!L::any(reached)) continue;
    if (L::any(L::negate(reached))) break;
    at += half;
  }
  const auto from = L::int_set(static_cast<TI>(at));
  if (half > 0) return {search_knots<L>(clamped, knots, from, half), false, 0};
  return {{from, L::sub(clamped, L::set(knots[at]))}, true, at};
}
template <class L>
LOCKSTEP_LANE_FN typename L::V interpolated(const LanesAmongKnots<L>& at, const typename L::T* coefficients,
                                            size_t powers, size_t knots) {
  if (!at.together) return interpolated<L>(at.each, coefficients, powers, knots);
  auto y = L::set(coefficients[at.knot]);
  for (size_t power = 1; power < powers; ++power)
    y = L::fma(y, at.each.distance, L::set(coefficients[power * knots + at.knot]));
  return y;
}

// Over the features, ascending; load(i) is feature i.
template <ReduceKind kKind, class L, class Load>
LOCKSTEP_LANE_FN typename L::V reduce_of(size_t width, const Load& load) {
  using T = typename L::T;
  auto acc = load(0);
  for (size_t i = 1; i < width; ++i) {
    if constexpr (kKind == ReduceKind::minimum) {
      acc = binary_of<BinaryKind::minimum, L>(acc, load(i));
    } else if constexpr (kKind == ReduceKind::maximum) {
      acc = binary_of<BinaryKind::maximum, L>(acc, load(i));
    } else {
      acc = L::add(acc, load(i));
    }
  }
  if constexpr (kKind == ReduceKind::mean) acc = L::div(acc, L::set(static_cast<T>(width)));
  return acc;
}

// from(i) is feature i of what is read; put(i, v) and made(i) write and read what is made, which may lie in its place.
template <SoftmaxKind kKind, class L, class From, class Put, class Made>
LOCKSTEP_LANE_FN void softmax_of(size_t width, const From& from, const Put& put, const Made& made) {
  const auto most = reduce_of<ReduceKind::maximum, L>(width, from);
  auto sum = L::zero();
  for (size_t i = 0; i < width; ++i) {
    const auto less = L::sub(from(i), most);
    const auto e = exp<L>(less);
    sum = i == 0 ? e : L::add(sum, e);
    put(i, kKind == SoftmaxKind::plain ? e : less);
  }
  if constexpr (kKind == SoftmaxKind::logarithm) sum = log<L>(sum);
  for (size_t i = 0; i < width; ++i) put(i, kKind == SoftmaxKind::plain ? L::div(made(i), sum) : L::sub(made(i), sum));
}

// Sums of differences from the first feature, and then the mean of what that leaves: features near each other and far
// from 0, 300 +- 1, cost the differences no digit (they are exact, by Sterbenz) and the sums those of the spread alone;
// where the first feature is the odd one, what the sums lose to it is found again in the rest.
template <class L, class From, class Put, class Made>
LOCKSTEP_LANE_FN void layer_normalise_of(size_t width, typename L::T epsilon, const typename L::T* scale,
                                         const typename L::T* shift, const From& from, const Put& put,
                                         const Made& made) {
  using T = typename L::T;
  const auto count = L::set(static_cast<T>(width));
  const auto first = from(0);
  const auto mean = reduce_of<ReduceKind::mean, L>(width, [&](size_t i) { return L::sub(from(i), first); });
  auto rests = L::zero(), squares = L::zero();
  for (size_t i = 0; i < width; ++i) {
    const auto difference = L::sub(L::sub(from(i), first), mean);
    rests = L::add(rests, difference);
    squares = L::fma(difference, difference, squares);
    put(i, difference);
  }
  const auto rest = L::div(rests, count);
  const auto r = L::div(L::set(T(1)), L::sqrt(L::add(L::div(squares, count), L::set(epsilon))));
  for (size_t i = 0; i < width; ++i) {
    put(i, L::fma(L::mul(L::sub(made(i), rest), r), L::set(scale[i]), L::set(shift[i])));
  }
}
