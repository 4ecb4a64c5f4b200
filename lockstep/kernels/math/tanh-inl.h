// tanh over a lane type. No include guard: see math_hwy-inl.h.

// float32: |x| = c + d with c the point that a table holds for the interval of |x|, and
//   tanh(c + d) = T + (1 - T^2) d / (1 + d (T + d q(d^2))),  T = tanh c,  d coth d = 1 + d^2 q(d^2).
// The points are chosen such that T is a float32 to a thousandth of its ulp (derive/tanh_table.py), so that only
// the last addition and the quotient's own error count. Intervals, by the leading bits of |x| + 3: a quarter wide up to
// 1, a half up to 5, then 1. In the first, c = T = 0, so that small x come back as they are; in the last, T is the
// number before 1 and 1 - T^2 3.5 % too large, so that the result reaches 1 where |x| is cut off.
//
// In four steps, so that steps of different numbers may alternate.
template <class L>
struct TanhStart {
  typename L::V argument, magnitude;
  typename L::I interval;
};
template <class L>
LOCKSTEP_LANE_FN TanhStart<L> tanh_start(typename L::V v) {
  const auto x = L::min(L::abs(v), L::set(8.9999f));
  return {v, x, L::template shift_right_logical<20>(L::bits(L::add(x, L::set(3.0f))))};
}

// Entry i: intervals 0 to 11, of |x| + 3 in [3, 8), at i = 4 to 15, the rest from 0 on.
struct TanhTable {
  float entry[16];
};
LOCKSTEP_LANE_FN constexpr TanhTable tanh_points() {
  return {{0x1.5fe8bep+2f, 0x1.9de532p+2f, 0x1.e434ep+2f, 0x1.154246p+3f, 0.0f, 0x1.80169p-2f, 0x1.400dfap-1f,
           0x1.c0129cp-1f, 0x1.3fed1ep+0f, 0x1.bff09ap+0f, 0x1.1ff226p+1f, 0x1.5ff05ep+1f, 0x1.9feb98p+1f,
           0x1.e01726p+1f, 0x1.100976p+2f, 0x1.2ffe1ep+2f}};
}
LOCKSTEP_LANE_FN constexpr TanhTable tanh_of_points() {
  return {{0x1.fffb9cp-1f, 0x1.ffff5ep-1f, 0x1.ffffeep-1f, 0x1.fffffep-1f, 0.0f, 0x1.6f08e8p-2f, 0x1.1bfe2cp-1f,
           0x1.686fb4p-1f, 0x1.b247a4p-1f, 0x1.e1f878p-1f, 0x1.f4bd6ep-1f, 0x1.fbd406p-1f, 0x1.fe75fcp-1f,
           0x1.ff6f4cp-1f, 0x1.ffcabcp-1f, 0x1.ffec6p-1f}};
}

template <class L>
struct TanhTerms {
  typename L::V argument, point, distance, slope;  // T, d, 1 - T^2
};

// 1 - T^2 without a table, the same bits: each entry but the smallest is that rounded once.
template <class L>
LOCKSTEP_LANE_FN typename L::V tanh_slope(typename L::V t) {
  return L::max(L::nfma(t, t, L::set(1.0f)), L::set(0x1.08f5c2p-23f));
}

template <class L>
LOCKSTEP_LANE_FN TanhTerms<L> tanh_terms(TanhStart<L> start) {
  alignas(64) static constexpr TanhTable kPoint = tanh_points();
  alignas(64) static constexpr TanhTable kTanh = tanh_of_points();
  const auto i = start.interval;
  const auto t = L::lookup16(kTanh.entry, i);
  const auto d = L::sub(start.magnitude, L::lookup16(kPoint.entry, i));
  if constexpr (L::kLooksUpInOne) {
    alignas(64) static constexpr float kSlope[16] = {
        0x1.18feccp-14f, 0x1.43ffccp-17f, 0x1.1ffffap-20f, 0x1.08f5c2p-23f, 1.0f,           0x1.be38aep-1f,
        0x1.627a08p-1f,  0x1.0242d2p-1f,  0x1.1f4904p-2f,  0x1.d2617p-4f,   0x1.645bf2p-5f, 0x1.09e80ap-6f,
        0x1.896c64p-8f,  0x1.213f1ap-9f,  0x1.aa09d6p-11f, 0x1.39f9fcp-12f};
    return {start.argument, t, d, L::lookup16(kSlope, i)};
  } else {
    return {start.argument, t, d, tanh_slope<L>(t)};
  }
}

template <class L>
struct TanhParts {
  typename L::V argument, point, rest;
};
template <class L>
LOCKSTEP_LANE_FN TanhParts<L> tanh_parts(TanhTerms<L> terms) {
  const auto t = terms.point, d = terms.distance;
  const auto q = L::fma(L::mul(d, d), L::set(-0x1.69195cp-6f), L::set(0x1.55546ap-2f));
  const auto denominator = L::fma(L::fma(d, q, t), d, L::set(1.0f));
  return {terms.argument, t, L::div(L::mul(terms.slope, d), denominator)};
}

template <class L>
LOCKSTEP_LANE_FN typename L::V tanh_end(TanhParts<L> parts) {
  return L::copysign_to_abs(L::add(parts.point, parts.rest), parts.argument);
}

template <class L>
LOCKSTEP_LANE_FN typename L::V tanh_float32(typename L::V v) {
  return tanh_end<L>(tanh_parts<L>(tanh_terms<L>(tanh_start<L>(v))));
}

// float64: tanh |x| = h / (h + 1) with h = (e^2|x| - 1)/2 = s g + (s - 1)/2, s = 2^n, g = (e^2r - 1)/2 = r + r^2 q(r).
// Taken on |x| because h > 0 damps the relative error of h + 1. For h < 1/2 one correction w <- h - h w takes out the
// rounding of h + 1. n comes from adding 1.5 2^52 + bias: the sum's low bits then hold n + bias. Relative error of g
// 2^-55.6 before rounding.
template <class L>
LOCKSTEP_LANE_FN typename L::V tanh_float64(typename L::V v) {
  using V = typename L::V;
  const V x = L::min(L::abs(v), L::set(19.1));
  const V magic = L::set(0x1.8p52 + 1023);
  const V z = L::fma(x, L::set(0x1.71547652b82fep+1), magic);
  const V n = L::sub(z, magic);
  const V r = L::nfma(n, L::set(0x1.62e42fefa39efp-2), x);  // exact
  const V q = horner<L>(r, L::set(0x1.aeaa89da4d0a4p-16), 0x1.28a20e408a2e8p-13, 0x1.71de5eccb7441p-11,
                        0x1.a019a72a9f02ep-9, 0x1.a01a01886cf78p-7, 0x1.6c16c17f00af5p-5, 0x1.11111111152dfp-3,
                        0x1.55555555521a9p-2, 0x1.555555555554ap-1, 0x1.0000000000005p+0);
  // The rest of n ln2/2 joins the smaller term, so that r is not rounded.
  const V g = L::add(r, L::fma(L::mul(r, r), q, L::mul(n, L::set(-0x1.abc9e3b39803fp-57))));
  const V s = L::from_bits(L::template shift_left<52>(L::bits(z)));
  const V h = L::fma(s, g, L::fma(s, L::set(0.5), L::set(-0.5)));
  const V w = L::div(h, L::add(h, L::set(1.0)));
  return L::copysign_to_abs(L::select(L::lt(h, L::set(0.5)), L::nfma(h, w, h), w), v);
}

template <class L>
LOCKSTEP_LANE_FN typename L::V tanh(typename L::V x) {
  if constexpr (sizeof(typename L::T) == 4) {
    return tanh_float32<L>(x);
  } else {
    return tanh_float64<L>(x);
  }
}
