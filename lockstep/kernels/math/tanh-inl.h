// tanh over a lane type. No include guard: see math_hwy-inl.h.

// tanh |x| = h / (h + 1) with h = (e^2|x| - 1)/2 = s g + (s - 1)/2, s = 2^n, g = (e^2r - 1)/2 = r + r^2 q(r).
// Taken on |x| because h > 0 damps the relative error of h + 1. For h < 1/2 one correction w <- h - h w takes out the
// rounding of h + 1. n comes from adding 1.5 2^23 + bias: the sum's low bits then hold n + bias. Relative error of g
// 2^-26.1 and 2^-55.6 before rounding; one constant for ln2/2 is enough in float32.
template <class L>
LOCKSTEP_LANE_FN typename L::V tanh(typename L::V v) {
  using T = typename L::T;
  using V = typename L::V;
  V h;
  if constexpr (sizeof(T) == 4) {
    const V x = L::min(L::abs(v), L::set(9.02f));
    const V magic = L::set(0x1.8000fep23f);
    const V z = L::fma(x, L::set(0x1.715476p+1f), magic);
    const V r = L::fma(L::sub(z, magic), L::set(-0x1.62e430p-2f), x);
    const V q = horner<L>(r, L::set(0x1.6c67fcp-5f), 0x1.122416p-3f, 0x1.5555aap-2f, 0x1.5554b6p-1f, 1.0f);
    const V g = L::fma(L::mul(r, r), q, r);
    const V s = L::from_bits(L::template shift_left<23>(L::bits(z)));
    h = L::fma(s, g, L::fma(s, L::set(0.5f), L::set(-0.5f)));
  } else {
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
    h = L::fma(s, g, L::fma(s, L::set(0.5), L::set(-0.5)));
  }
  const V w = L::div(h, L::add(h, L::set(T(1))));
  return L::copysign_to_abs(L::select(L::lt(h, L::set(T(0.5))), L::nfma(h, w, h), w), v);
}
