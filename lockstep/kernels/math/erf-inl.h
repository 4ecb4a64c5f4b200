// The error function and the normal distribution over a lane type. No include guard: see math_hwy-inl.h.
// Coefficients from derive/minimax.py.

// The upper tail of the normal distribution, 1 - Phi(x) = e^(-x^2/2) g/(x + 4), in parts for each use to put together
// as accurately as it needs:
//   1/(x + 4) = r (1 + r_error);  e^(-x^2/2) = 2^n (1 + s + e), e << s, the rounding of x^2 included;
//   g + g_low = (x + 4) times Mills' ratio, a polynomial in y = (x - 4)/(x + 4), relative error 2^-25.707 and 2^-54.9
//   before rounding.
// For x within [0, 14.8] (float32) or [0, 39.2] (float64).
template <class L>
struct NormalTail {
  typename L::V r, r_error, g, g_low, s, e, z, n;
};
template <class L>
LOCKSTEP_LANE_FN NormalTail<L> normal_tail(typename L::V x) {
  using T = typename L::T;
  using V = typename L::V;
  const V minus_half = L::set(T(-0.5)), one = L::set(T(1)), four = L::set(T(4));
  // The rounding of x + 4 is exact: no bit of 4 lies below those of the sum.
  const V d = L::add(x, four);
  const V d_low = L::sub(x, L::sub(d, four));
  const V r = L::div(one, d);
  const V r_error = L::nfma(r, d_low, L::nfma(r, d, one));
  const V x_less_4 = L::sub(x, four);
  const V y = L::fma(x_less_4, r, L::mul(L::mul(x_less_4, r), r_error));
  V q2, c1, c0;
  if constexpr (sizeof(T) == 4) {
    q2 = horner<L>(y, L::set(-0x1.1353dep-13f), 0x1.8c1b3ep-13f, 0x1.9e589ep-10f, -0x1.cd2aecp-9f, -0x1.edb7bep-8f,
                   0x1.eed716p-5f, -0x1.7dff06p-3f, 0x1.8c6d8ep-2f);
    c1 = L::set(-0x1.373e3cp-1f);
    c0 = L::set(0x1.82b4bcp-1f);
  } else {
    q2 = horner<L>(y, L::set(-0x1.5170b53174b22p-30), -0x1.4b504589b0919p-32, 0x1.fef1443e32e78p-27,
                   0x1.129255e0bcc16p-26, -0x1.4e8993fbb3fd6p-24, -0x1.502c3d7696dcp-23, 0x1.1ca5baffef76cp-22,
                   0x1.1250405f83c17p-20, -0x1.5015c2397c3ecp-21, -0x1.8d4a3b1bb0231p-18, 0x1.80112ced780b9p-21,
                   0x1.26d07a8054abcp-15, -0x1.0015a95bb1b71p-19, -0x1.e4a4237d4dd98p-13, 0x1.17a4a9ddadb65p-13,
                   0x1.ab825fba1e834p-10, -0x1.c81719d124fd2p-9, -0x1.ee2761046b95cp-8, 0x1.eec4cc3e4c89bp-5,
                   -0x1.7dff2bff683b9p-3, 0x1.8c6dbf2cfc291p-2);
    c1 = L::set(-0x1.373e3a893c28ap-1);
    c0 = L::set(0x1.82b4bb8c94dcep-1);
  }
  // The last two steps of Horner's rule with their roundings.
  const V q = L::fma(q2, y, c1);
  const V g = L::fma(q, y, c0);
  const V g_low = L::fma(y, L::fma(q2, y, L::sub(c1, q)), L::fma(q, y, L::sub(c0, g)));

  const V square = L::mul(x, x);
  const V square_low = L::fms(x, x, square);
  const V a = L::mul(minus_half, square);
  const V round = L::set(math::Format<T>::kRound + T(2 * math::Format<T>::kBias));
  const V z = L::fma(a, L::set(T(0x1.71547652b82fep+0)), round);
  const V n = L::sub(z, round);
  const V s = L::fma(minus_half, square_low, subtract_multiple_of_ln2<L>(a, n));
  const V e = L::mul(L::mul(s, s), exp_polynomial<L>(s));
  return {r, r_error, g, g_low, s, e, z, n};
}

// erf x: x + x q(x^2) up to 1, 1 - 2 (1 - Phi(sqrt2 |x|)) above.
template <class L>
LOCKSTEP_LANE_FN typename L::V erf(typename L::V x) {
  using T = typename L::T;
  using V = typename L::V;
  const V one = L::set(T(1));
  const V magnitude = L::abs(x);
  const V z = L::mul(x, x);
  V q;
  if constexpr (sizeof(T) == 4) {
    q = horner<L>(z, L::set(0x1.477f5ap-14f), -0x1.a354e4p-11f, 0x1.53f27p-8f, -0x1.b7f71ep-6f, 0x1.ce2ce6p-4f,
                  -0x1.81273ep-2f, 0x1.06eba8p-3f);
  } else {
    q = horner<L>(z, L::set(0x1.363745731ec19p-33), -0x1.c04c157fcf558p-30, 0x1.1257d87d579c5p-26,
                  -0x1.636852f44dd19p-23, 0x1.ba63f71a23614p-20, -0x1.f4dc8523435bp-17, 0x1.f9a3b36f8d946p-14,
                  -0x1.c02db8fe014c8p-11, 0x1.565bcd2b3b388p-8, -0x1.b82ce3134d8e6p-6, 0x1.ce2f21a045785p-4,
                  -0x1.812746b037a24p-2, 0x1.06eba8214db69p-3);
  }
  constexpr T end = sizeof(T) == 4 ? T(4) : T(6);  // erf is 1 to the last bit from here
  const V scaled = L::mul(L::min(magnitude, L::set(end)), L::set(T(0x1.6a09e667f3bcdp+0)));
  const auto tail = normal_tail<L>(scaled);
  const V p = L::mul(L::mul(L::set(T(2)), tail.r), tail.g);
  const V complement =
      times_power_of_two<L>(L::fma(p, L::add(tail.s, L::add(tail.e, tail.r_error)), p), tail.z, tail.n);
  const V far = L::copysign(L::sub(one, complement), x);
  return L::select(L::lt(magnitude, one), L::fma(x, q, x), far);
}

// x Phi(x): gelu. Below `low` it rounds to -0.
template <class L>
LOCKSTEP_LANE_FN typename L::V gelu(typename L::V x) {
  using T = typename L::T;
  using V = typename L::V;
  constexpr T low = sizeof(T) == 4 ? T(-14.8) : T(-39.2);
  const V factor = L::max(x, L::set(low));
  const V clamped = L::min(factor, L::set(-low));
  const auto tail = normal_tail<L>(L::abs(clamped));
  // clamped (1 - Phi(|clamped|)), with the roundings of the products given back
  const V p = L::mul(clamped, tail.r);
  const V p_low = L::fms(clamped, tail.r, p);
  const V t = L::mul(p, tail.g);
  const V t_low = L::fma(p, tail.g_low, L::fma(p_low, tail.g, L::fms(p, tail.g, t)));
  const V rest = L::fma(t, tail.s, L::fma(t, L::add(tail.e, tail.r_error), t_low));
  const V beyond = times_power_of_two<L>(L::add(t, rest), tail.z, tail.n);
  return L::select(L::lt(x, L::zero()), beyond, L::sub(x, beyond));
}
