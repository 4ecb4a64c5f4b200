// exp, expm1 and exp2 over a lane type, and the pieces other functions make exponentials from.
// No include guard: see math_hwy-inl.h. Coefficients from derive/minimax.py.

// p 2^n, right over the whole range, results that are denormal included: the power is applied in two exact halves, so
// that only the last product can round. n = z - (kRound + 2 kBias) within [-2 kBias, 2 kBias]; |p| within [1/2, 2).
template <class L>
LOCKSTEP_LANE_FN typename L::V times_power_of_two(typename L::V p, typename L::V z, typename L::V n) {
  using F = math::Format<typename L::T>;
  if constexpr (L::kHasScale) {
    (void)z;
    return L::scale(p, n);  // rounds once, to the same bits
  } else {
    (void)n;
    const auto i = L::bits(z);
    const auto half = L::template shift_right_logical<1>(i);
    const auto first = L::from_bits(L::template shift_left<F::kFractionBits>(half));
    const auto second = L::from_bits(L::template shift_left<F::kFractionBits>(L::int_sub(i, half)));
    return L::mul(L::mul(p, first), second);
  }
}

// q of e^r = 1 + r + r^2 q(r), |r| <= ln2/2, at r or (sign = -1) at -r. Relative error of e^r 2^-28.2 and 2^-57.9
// before rounding.
template <class L, int sign = 1>
LOCKSTEP_LANE_FN typename L::V exp_polynomial(typename L::V r) {
  if constexpr (sizeof(typename L::T) == 4) {
    return horner<L, sign>(r, L::set(0x1.6a4f88p-10f), 0x1.123988p-7f, 0x1.5558aep-5f, 0x1.555492p-3f, 0x1.fffffcp-2f);
  } else {
    return horner<L, sign>(r, L::set(0x1.ada4682c1aac3p-26), 0x1.28ae056a5d0b1p-22, 0x1.71df0d0fc13f8p-19,
                           0x1.a01999587cebdp-16, 0x1.a01a0135c9a73p-13, 0x1.6c16c18478232p-10, 0x1.111111112576cp-7,
                           0x1.55555555506bdp-5, 0x1.5555555555504p-3, 0x1.000000000000ap-1);
  }
}

// e^r - 1 and 1 - e^-r for |r| <= ln2/2.
template <class L>
LOCKSTEP_LANE_FN typename L::V expm1_near_zero(typename L::V r) {
  return L::fma(L::mul(r, r), exp_polynomial<L>(r), r);
}
template <class L>
LOCKSTEP_LANE_FN typename L::V one_minus_exp_of_minus(typename L::V r) {
  return L::nfma(L::mul(r, r), exp_polynomial<L, -1>(r), r);
}

// 2^r for |r| <= 1/2: 1 + r q(r). Relative error 2^-28.3 and 2^-57.7 before rounding.
template <class L>
LOCKSTEP_LANE_FN typename L::V exp2_near_zero(typename L::V r) {
  typename L::V q;
  if constexpr (sizeof(typename L::T) == 4) {
    q = horner<L>(r, L::set(0x1.4178ccp-13f), 0x1.5f095ep-10f, 0x1.3b2dd4p-7f, 0x1.c6af7ap-5f, 0x1.ebfbdcp-3f,
                  0x1.62e43p-1f);
  } else {
    q = horner<L>(r, L::set(0x1.e8257787046b9p-32), 0x1.e61322cc041b9p-28, 0x1.b525ff8c1d601p-24, 0x1.62bfccf009cd3p-20,
                  0x1.ffcbfbfeece85p-17, 0x1.4309130c67f45p-13, 0x1.5d87fe78b2a3ep-10, 0x1.3b2ab6fba0fb9p-7,
                  0x1.c6b08d704a0d8p-5, 0x1.ebfbdff82c59dp-3, 0x1.62e42fefa39efp-1);
  }
  return L::fma(r, q, L::set(typename L::T(1)));
}

// x - n ln2 in two steps. The first is exact for the n nearest to x / ln2: x and n times ln2's leading part are
// multiples of an ulp of ln2/2, and so is their small difference.
template <class L>
LOCKSTEP_LANE_FN typename L::V subtract_multiple_of_ln2(typename L::V x, typename L::V n) {
  if constexpr (sizeof(typename L::T) == 4) {
    return L::fma(n, L::set(0x1.05c61p-29f), L::nfma(n, L::set(0x1.62e43p-1f), x));
  } else {
    return L::nfma(n, L::set(0x1.abc9e3b39803fp-56), L::nfma(n, L::set(0x1.62e42fefa39efp-1), x));
  }
}

// e^x = 2^n (1 + m), n = z - (kRound + offset), |m| < 0.42.
template <class L>
struct ExpParts {
  typename L::V m, z, n;
};
template <class L>
LOCKSTEP_LANE_FN ExpParts<L> exp_parts(typename L::V x, int offset) {
  using T = typename L::T;
  const auto round = L::set(math::Format<T>::kRound + T(offset));
  const auto z = L::fma(x, L::set(T(0x1.71547652b82fep+0)), round);
  const auto n = L::sub(z, round);
  return {expm1_near_zero<L>(subtract_multiple_of_ln2<L>(x, n)), z, n};
}

// e^x. Overflows to infinity and underflows through the denormal range as the exact result does.
template <class L>
LOCKSTEP_LANE_FN typename L::V exp(typename L::V x) {
  using T = typename L::T;
  constexpr T low = sizeof(T) == 4 ? T(-104) : T(-746), high = sizeof(T) == 4 ? T(89) : T(710);
  const auto e = exp_parts<L>(L::max(L::min(x, L::set(high)), L::set(low)), 2 * math::Format<T>::kBias);
  return times_power_of_two<L>(L::add(L::set(T(1)), e.m), e.z, e.n);
}

// e^x for x within [-87, 88] (float32) or [-708, 709] (float64), where 2^n needs no halving.
template <class L>
LOCKSTEP_LANE_FN typename L::V exp_in_normal_range(typename L::V x) {
  using F = math::Format<typename L::T>;
  const auto e = exp_parts<L>(x, F::kBias);
  const auto s = L::from_bits(L::template shift_left<F::kFractionBits>(L::bits(e.z)));
  return L::fma(e.m, s, s);
}

// e^x - 1 for x <= 0: s m + (s - 1), s = 2^n. For n = 0 that is m, whose relative error is small however small x is.
template <class L>
LOCKSTEP_LANE_FN typename L::V expm1_of_negative(typename L::V x) {
  using T = typename L::T;
  using F = math::Format<T>;
  const auto e = exp_parts<L>(L::max(x, L::set(T(-40))), F::kBias);
  const auto s = L::from_bits(L::template shift_left<F::kFractionBits>(L::bits(e.z)));
  return L::fma(s, e.m, L::sub(s, L::set(T(1))));
}

// e^x - 1. Past n = 0 with half the power, doubled at the end, so that the largest results do not overflow early.
template <class L>
LOCKSTEP_LANE_FN typename L::V expm1(typename L::V x) {
  using T = typename L::T;
  using F = math::Format<T>;
  constexpr T high = sizeof(T) == 4 ? T(89) : T(710);
  const auto e = exp_parts<L>(L::max(L::min(x, L::set(high)), L::set(T(-40))), F::kBias - 1);
  const auto s = L::from_bits(L::template shift_left<F::kFractionBits>(L::bits(e.z)));
  const auto half = L::fma(s, e.m, L::sub(s, L::set(T(0.5))));
  // The sign, which m has anyway, is for x = -0.
  return L::select(L::eq(e.n, L::zero()), L::copysign(e.m, x), L::add(half, half));
}

// 2^x; exact for integers.
template <class L>
LOCKSTEP_LANE_FN typename L::V exp2(typename L::V x) {
  using T = typename L::T;
  using F = math::Format<T>;
  constexpr T low = sizeof(T) == 4 ? T(-151) : T(-1076), high = sizeof(T) == 4 ? T(129) : T(1025);
  const auto clamped = L::max(L::min(x, L::set(high)), L::set(low));
  const auto round = L::set(F::kRound + T(2 * F::kBias));
  const auto z = L::add(clamped, round);
  const auto n = L::sub(z, round);
  return times_power_of_two<L>(exp2_near_zero<L>(L::sub(clamped, n)), z, n);
}

// The same bits for x within [-126, 127] (float32) or [-1022, 1023] (float64); anything else gives nonsense.
template <class L>
LOCKSTEP_LANE_FN typename L::V exp2_in_normal_range(typename L::V x) {
  using F = math::Format<typename L::T>;
  const auto round = L::set(F::kRound + typename L::T(F::kBias));
  const auto z = L::add(x, round);
  const auto power = L::from_bits(L::template shift_left<F::kFractionBits>(L::bits(z)));
  return L::mul(exp2_near_zero<L>(L::sub(x, L::sub(z, round))), power);
}
