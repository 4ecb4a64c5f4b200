// x^y over a lane type, by log2 carried to about twice the format's precision. No include guard: see math_hwy-inl.h.

// An unevaluated sum, |low| at most half an ulp of high.
template <class L>
struct Pair {
  // GCC compiles an implicit constructor for the file's instruction set, and cannot inline NEON's there.
  LOCKSTEP_LANE_FN Pair() {}
  LOCKSTEP_LANE_FN Pair(typename L::V a, typename L::V b) : high(a), low(b) {}
  typename L::V high, low;
};

// a + b exactly, for |a| >= |b| or a = 0 (Dekker 1971).
template <class L>
LOCKSTEP_LANE_FN Pair<L> exact_sum(typename L::V a, typename L::V b) {
  const auto high = L::add(a, b);
  return {high, L::sub(b, L::sub(high, a))};
}

// (a.high + a.low)(b.high + b.low), the product of the low parts left out.
template <class L>
LOCKSTEP_LANE_FN Pair<L> product(Pair<L> a, Pair<L> b) {
  const auto high = L::mul(a.high, b.high);
  const auto rest = L::fms(a.high, b.high, high);
  return {high, L::fma(a.low, b.high, L::fma(a.high, b.low, rest))};
}

// log2(x) for positive finite x, to a relative error of about 2^-34 (float32) or 2^-65 (float64).
// log2(1 + f) = C (s + s^3/3 + s^5/5 + ...), s = f/(2 + f), C = 2/ln2; the first two terms are pairs.
template <class L>
LOCKSTEP_LANE_FN Pair<L> log2_pair(typename L::V x) {
  using T = typename L::T;
  using V = typename L::V;
  const auto [k, f] = log_parts<L>(x);
  const V two = L::set(T(2));
  const V d = L::add(two, f);
  const V d_low = L::sub(f, L::sub(d, two));
  Pair<L> s;
  s.high = L::div(f, d);
  s.low = L::div(L::nfma(s.high, d_low, L::nfma(s.high, d, f)), d);
  const Pair<L> z = product<L>(s, s);
  Pair<L> first, third;  // C, C/3
  V fifth;               // C (1/5 + z/7 + ...)
  if constexpr (sizeof(T) == 4) {
    first = {L::set(0x1.715476p+1f), L::set(0x1.4ae0cp-25f)};
    third = {L::set(0x1.ec709ep-1f), L::set(-0x1.e2fe02p-28f)};
    fifth = horner<L>(z.high, L::set(0x1.59ee6p-2f), 0x1.a5bbf8p-2f, 0x1.27770ep-1f);
  } else {
    first = {L::set(0x1.71547652b82fep+1), L::set(0x1.777d0ffda0d24p-55)};
    third = {L::set(0x1.ec709dc3a03fdp-1), L::set(0x1.d27f05548af0cp-55)};
    fifth =
        horner<L>(z.high, L::set(0x1.61f3858dc06dp-3), 0x1.58fc7f1ea1d3cp-3, 0x1.8a09bb5993794p-3, 0x1.c68ee94a7212fp-3,
                  0x1.0c9a853b16927p-2, 0x1.484b13d6acb3fp-2, 0x1.a61762a7aedep-2, 0x1.2776c50ef9bfcp-1);
  }
  const Pair<L> factor = exact_sum<L>(third.high, L::fma(z.high, fifth, third.low));
  const Pair<L> cubic = product<L>(product<L>(s, z), factor);
  const Pair<L> linear = product<L>(s, first);
  const Pair<L> a = exact_sum<L>(k, linear.high);
  const Pair<L> b = exact_sum<L>(a.high, cubic.high);
  return exact_sum<L>(b.high, L::add(b.low, L::add(a.low, L::add(linear.low, cubic.low))));
}

// Whether a number without fractional part, of either sign; infinities count.
template <class L>
LOCKSTEP_LANE_FN typename L::M is_integer(typename L::V x) {
  using T = typename L::T;
  const auto unit = L::set(sizeof(T) == 4 ? T(0x1p23) : T(0x1p52));  // from here on every number is an integer
  const auto magnitude = L::abs(x);
  return L::either(L::le(unit, magnitude), L::eq(L::sub(L::add(magnitude, unit), unit), magnitude));
}

// x^y with the special values of C's pow: x^0 = 1 and 1^y = 1 even for NaN; NaN for negative x and fractional y.
template <class L>
LOCKSTEP_LANE_FN typename L::V pow(typename L::V x, typename L::V y) {
  using T = typename L::T;
  using V = typename L::V;
  using F = math::Format<T>;
  constexpr bool single = sizeof(T) == 4;
  const V one = L::set(T(1)), zero = L::zero(), infinity = L::set(F::kInfinity);
  const V magnitude = L::abs(x);
  const Pair<L> logarithm = log2_pair<L>(magnitude);
  const auto regular = L::both(L::lt(zero, magnitude), L::lt(magnitude, infinity));
  const V high = L::select(regular, logarithm.high, L::select(L::eq(magnitude, zero), L::neg(infinity), magnitude));
  const V low = L::select(regular, logarithm.low, zero);

  // |log2 x| > 2^-25 (2^-54) unless x = 1, so that no |y| above 2^40 (2^70) gives anything but 0, 1 or infinity.
  const V bound = L::set(single ? T(0x1p40) : T(0x1p70));
  const V exponent = L::max(L::min(y, bound), L::neg(bound));
  const V w = L::mul(exponent, high);
  const V range = L::set(single ? T(160) : T(1100));
  const V w_low = L::select(L::lt(L::abs(w), range), L::fma(exponent, low, L::fms(exponent, high, w)), zero);
  const V w_high = L::max(L::min(w, range), L::neg(range));
  const V round = L::set(F::kRound + T(2 * F::kBias));
  const V z = L::add(w_high, round);
  const V n = L::sub(z, round);
  const V power = times_power_of_two<L>(exp2_near_zero<L>(L::add(L::sub(w_high, n), w_low)), z, n);

  const auto integer = is_integer<L>(y);
  const auto odd = L::both(integer, L::negate(is_integer<L>(L::mul(y, L::set(T(0.5))))));
  const V with_sign = L::select(odd, L::copysign(power, x), power);
  const auto undefined = L::both(L::both(L::lt(x, zero), L::lt(magnitude, infinity)), L::negate(integer));
  const V result = L::select(undefined, L::set(F::kNaN), with_sign);
  return L::select(L::either(L::eq(y, zero), L::eq(x, one)), one, result);
}
