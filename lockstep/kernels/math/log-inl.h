// log, log2 and pow over a lane type. No include guard: see math_hwy-inl.h. Coefficients from derive/minimax.py.

// x = 2^k (1 + f) with 1 + f within [sqrt(1/2), sqrt(2)), f exact, for positive finite x, denormal ones included.
template <class L>
struct LogParts {
  typename L::V k, f;
};
template <class L, bool may_be_denormal = true>
LOCKSTEP_LANE_FN LogParts<L> log_parts(typename L::V x) {
  using T = typename L::T;
  using TI = typename L::TI;
  constexpr bool single = sizeof(T) == 4;
  constexpr int fraction = math::Format<T>::kFractionBits;
  [[maybe_unused]] constexpr T smallest_normal = single ? T(0x1p-126) : T(0x1p-1022);
  [[maybe_unused]] constexpr int lift = fraction + 1;
  constexpr TI sqrt_half = single ? TI(0x3f3504f3) : TI(0x3fe6a09e667f3bcd);
  constexpr TI mask = (TI(1) << fraction) - 1;
  constexpr int shift = single ? 128 : 1024;          // keeps the integer below positive
  constexpr T unit = single ? T(0x1p23) : T(0x1p52);  // an integer ored into its low bits is added to it
  constexpr TI unit_bits = single ? TI(0x4b000000) : TI(0x4330000000000000);

  typename L::V lifted = x, offset = L::set(unit + T(shift));
  if constexpr (may_be_denormal) {
    const auto denormal = L::lt(x, L::set(smallest_normal));
    lifted = L::select(denormal, L::mul(x, L::set(T(TI(1) << lift))), x);
    offset = L::select(denormal, L::set(unit + T(shift + lift)), offset);
  }
  const auto i = L::int_sub(L::bits(lifted), L::int_set(sqrt_half));
  const auto exponent = L::template shift_right_logical<fraction>(L::int_add(i, L::int_set(TI(shift) << fraction)));
  const auto k = L::sub(L::from_bits(L::int_or(exponent, L::int_set(unit_bits))), offset);
  const auto mantissa = L::from_bits(L::int_add(L::int_and(i, L::int_set(mask)), L::int_set(sqrt_half)));
  return {k, L::sub(mantissa, L::set(T(1)))};
}

// y, but log's own values where x is not positive and finite: -inf at 0, NaN below, x for infinity and NaN.
template <class L>
LOCKSTEP_LANE_FN typename L::V log_edges(typename L::V x, typename L::V y) {
  using F = math::Format<typename L::T>;
  const auto inside = L::both(L::lt(L::zero(), x), L::lt(x, L::set(F::kInfinity)));
  const auto below = L::select(L::lt(x, L::zero()), L::set(F::kNaN), x);
  return L::select(inside, y, L::select(L::eq(x, L::zero()), L::set(-F::kInfinity), below));
}

// (log(1 + f) - f + f^2/2) for float64, with s = f/(2 + f): log(1 + f) = 2 s + s R = f - (f^2/2 - s (f^2/2 + R)),
// R = s^2 q(s^2). Returns s (f^2/2 + R).
template <class L>
LOCKSTEP_LANE_FN typename L::V log1p_remainder(typename L::V f, typename L::V half_square) {
  const auto s = L::div(f, L::add(f, L::set(2.0)));
  const auto z = L::mul(s, s);
  const auto q = horner<L>(z, L::set(0x1.2f05085403762p-3), 0x1.39a1cd9dfd3eep-3, 0x1.74663dbdde55ap-3,
                           0x1.c71c521187529p-3, 0x1.24924941e355dp-2, 0x1.999999997ff0cp-2, 0x1.5555555555592p-1);
  return L::mul(s, L::fma(z, q, half_square));
}

// The natural logarithm.
template <class L>
LOCKSTEP_LANE_FN typename L::V log(typename L::V x) {
  using V = typename L::V;
  const auto [k, f] = log_parts<L>(x);
  V y;
  if constexpr (sizeof(typename L::T) == 4) {
    const V q = horner<L>(f, L::set(-0x1.37aadp-4f), 0x1.083986p-3f, -0x1.0f498p-3f, 0x1.2273e2p-3f, -0x1.54257ep-3f,
                          0x1.99a3e2p-3f, -0x1.000432p-2f, 0x1.55555p-2f, -0x1.fffff8p-2f);
    const V low = L::fma(L::mul(f, f), q, L::mul(k, L::set(-0x1.05c61p-29f)));
    y = L::fma(k, L::set(0x1.62e43p-1f), L::add(f, low));
  } else {
    const V half_square = L::mul(L::mul(L::set(0.5), f), f);
    const V low = L::fma(k, L::set(0x1.abc9e3b39803fp-56), log1p_remainder<L>(f, half_square));
    y = L::fma(k, L::set(0x1.62e42fefa39efp-1), L::sub(f, L::sub(half_square, low)));
  }
  return log_edges<L>(x, y);
}

// log2(1 + f) + k.
template <class L>
LOCKSTEP_LANE_FN typename L::V log2_of_parts(LogParts<L> parts) {
  using V = typename L::V;
  const auto [k, f] = parts;
  if constexpr (sizeof(typename L::T) == 4) {
    const V q = horner<L>(f, L::set(-0x1.c698ccp-4f), 0x1.7f72aap-3f, -0x1.879026p-3f, 0x1.a2b5fp-3f, -0x1.eaa98ap-3f,
                          0x1.277fep-2f, -0x1.715aeep-2f, 0x1.ec7092p-2f, -0x1.71547p-1f);
    const V low = L::fma(L::mul(f, f), q, L::mul(f, L::set(0x1.4ae0cp-26f)));
    return L::add(k, L::fma(f, L::set(0x1.715476p+0f), low));
  } else {
    // log(1 + f) = high + low, times 1/ln2 in two parts; k + product with the rounding of that sum given back.
    const V half_square = L::mul(L::mul(L::set(0.5), f), f);
    const V high = L::sub(f, half_square);
    const V low = L::add(L::sub(L::sub(f, high), half_square), log1p_remainder<L>(f, half_square));
    const V log2e = L::set(0x1.71547652b82fep+0);
    const V product = L::mul(high, log2e);
    const V rest = L::fma(low, log2e, L::fma(high, L::set(0x1.777d0ffda0d24p-56), L::fms(high, log2e, product)));
    const V sum = L::add(k, product);
    return L::add(sum, L::add(L::add(L::sub(k, sum), product), rest));
  }
}

// The binary logarithm; exact for powers of two.
template <class L>
LOCKSTEP_LANE_FN typename L::V log2(typename L::V x) {
  return log_edges<L>(x, log2_of_parts<L>(log_parts<L>(x)));
}

// The same for positive, finite x that is not denormal; anything else gives nonsense.
template <class L>
LOCKSTEP_LANE_FN typename L::V log2_of_normal(typename L::V x) {
  return log2_of_parts<L>(log_parts<L, false>(x));
}
