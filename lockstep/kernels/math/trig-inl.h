// sin and cos over a lane type. No include guard: see math_hwy-inl.h. Coefficients from derive/minimax.py.

// sin(r) for |r| <= 1.577, a little more than pi/2: r + r^3 q(r^2). The sign of zero is kept.
template <class L>
LOCKSTEP_LANE_FN typename L::V sin_of_reduced(typename L::V r) {
  using V = typename L::V;
  const V z = L::mul(r, r);
  V q;
  if constexpr (sizeof(typename L::T) == 4) {
    q = horner<L>(z, L::set(-0x1.b66a96p-26f), 0x1.72cfc2p-19f, -0x1.a023d2p-13f, 0x1.111136p-7f, -0x1.555556p-3f);
  } else {
    q = horner<L>(z, L::set(-0x1.fa37d829762eep-60), 0x1.8ad389d589f5bp-49, -0x1.ae4f0d575fe32p-41,
                  0x1.6123e7ed4e528p-33, -0x1.ae64551bd3678p-26, 0x1.71de3a530b2c8p-19, -0x1.a01a01a01579bp-13,
                  0x1.11111111110cep-7, -0x1.5555555555555p-3);
  }
  return L::copysign(L::fma(L::mul(z, r), q, r), r);
}

// x - n pi for n an integer or a half-integer, |n| <= 2^16 (float32) or 2^28 (float64). The first step is exact, as x
// and n times pi's leading part are multiples of the same small power of two and their difference is below 2. pi's
// parts are cut, not rounded, so that all are positive and x = -0 stays -0.
template <class L>
LOCKSTEP_LANE_FN typename L::V subtract_multiple_of_pi(typename L::V x, typename L::V n) {
  if constexpr (sizeof(typename L::T) == 4) {
    const auto r = L::nfma(n, L::set(0x1.4442dp-23f), L::nfma(n, L::set(0x1.921fb4p+1f), x));
    return L::nfma(n, L::set(0x1.846988p-47f), r);
  } else {
    const auto r = L::nfma(n, L::set(0x1.1a62633145c06p-53), L::nfma(n, L::set(0x1.921fb54442d18p+1), x));
    return L::nfma(n, L::set(0x1.c1cd129024e08p-106), r);
  }
}

// Past this size the multiple of pi is found lane by lane in integers (reduce_pi.h): slow, the same bits everywhere.
template <class T>
LOCKSTEP_LANE_FN constexpr T largest_quick_angle() {
  return sizeof(T) == 4 ? T(0x1p17) : T(0x1p29);
}

// sin r where sin r = (-1)^n sin(r), n's parity in z's lowest bit.
template <class L>
LOCKSTEP_LANE_FN typename L::V negate_if_odd(typename L::V r, typename L::V z) {
  constexpr int sign = sizeof(typename L::T) * 8 - 1;
  return L::from_bits(L::int_xor(L::bits(r), L::template shift_left<sign>(L::bits(z))));
}

// sin x, for every finite x; NaN for infinities.
template <class L>
LOCKSTEP_LANE_FN typename L::V sin(typename L::V x) {
  using T = typename L::T;
  using V = typename L::V;
  const V round = L::set(math::Format<T>::kRound);
  const V z = L::fma(x, L::set(T(0x1.45f306dc9c883p-2)), round);
  V r = negate_if_odd<L>(subtract_multiple_of_pi<L>(x, L::sub(z, round)), z);
  const auto huge = L::lt(L::set(largest_quick_angle<T>()), L::abs(x));
  if (L::any(huge)) r = L::select(huge, L::map(x, [](T v) { return math::reduce_huge_angle(v, 0); }), r);
  return sin_of_reduced<L>(r);
}

// cos x = sin(x + pi/2) = (-1)^m sin(x - (m - 1/2) pi), m the integer nearest to x/pi + 1/2.
template <class L>
LOCKSTEP_LANE_FN typename L::V cos(typename L::V x) {
  using T = typename L::T;
  using V = typename L::V;
  const V round = L::set(math::Format<T>::kRound);
  const V half = L::set(T(0.5));
  const V z = L::add(L::fma(x, L::set(T(0x1.45f306dc9c883p-2)), half), round);
  V r = negate_if_odd<L>(subtract_multiple_of_pi<L>(x, L::sub(L::sub(z, round), half)), z);
  const auto huge = L::lt(L::set(largest_quick_angle<T>()), L::abs(x));
  if (L::any(huge)) r = L::select(huge, L::map(x, [](T v) { return math::reduce_huge_angle(v, 1); }), r);
  return sin_of_reduced<L>(r);
}
