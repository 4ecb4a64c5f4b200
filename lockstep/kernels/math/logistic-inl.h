// The logistic sigmoid and the activations built on e^-x in a denominator: silu and gelu's tanh form.
// No include guard: see math_hwy-inl.h.

// 1/(1 + e^-y) = scale / denominator with both in the normal range however large e^-y is: past e^-y = 2^split both
// are taken down by a power of two. Denormal quotients thus come out of one division, rounded once.
template <class L>
struct LogisticParts {
  typename L::V scale, power, denominator;  // power = scale e^-y, denominator = scale + power
};

// For y within [-115, 80] (float32) or [-800, 700] (float64).
template <class L>
LOCKSTEP_LANE_FN LogisticParts<L> logistic_parts(typename L::V y) {
  using T = typename L::T;
  using TI = typename L::TI;
  using V = typename L::V;
  using F = math::Format<T>;
  constexpr int split = sizeof(T) == 4 ? 64 : 512;
  const V round = L::set(F::kRound);
  const V z = L::fma(y, L::set(T(-0x1.71547652b82fep+0)), round);  // e^-y = 2^n e^-r, n = z - round
  const V m = one_minus_exp_of_minus<L>(subtract_multiple_of_ln2<L>(y, L::sub(round, z)));
  // The exponent field of 2^-(max(n, split) - split), from the integers in the low bits of z.
  const auto limit = L::bits(L::max(z, L::set(F::kRound + T(split))));
  const auto down = L::int_sub(L::int_set(TI(F::kRoundBits + split + F::kBias)), limit);
  const V scale = L::from_bits(L::template shift_left<F::kFractionBits>(down));
  const V s = L::from_bits(L::template shift_left<F::kFractionBits>(L::int_add(L::bits(z), down)));
  const V power = L::nfma(m, s, s);
  return {scale, power, L::add(scale, power)};
}

// 1/(1 + e^-x).
template <class L>
LOCKSTEP_LANE_FN typename L::V sigmoid(typename L::V x) {
  using T = typename L::T;
  constexpr T low = sizeof(T) == 4 ? T(-110) : T(-755), high = sizeof(T) == 4 ? T(40) : T(80);
  const auto parts = logistic_parts<L>(L::max(L::min(x, L::set(high)), L::set(low)));
  return L::div(parts.scale, parts.denominator);
}

// x/(1 + e^-x); below `low` it rounds to -0.
template <class L>
LOCKSTEP_LANE_FN typename L::V silu(typename L::V x) {
  using T = typename L::T;
  constexpr T low = sizeof(T) == 4 ? T(-110) : T(-755), high = sizeof(T) == 4 ? T(40) : T(80);
  const auto numerator = L::max(x, L::set(low));
  const auto parts = logistic_parts<L>(L::min(numerator, L::set(high)));
  return L::div(L::mul(numerator, parts.scale), parts.denominator);
}

// x/(1 + e^-2u), u = sqrt(2/pi) (x + 0.044715 x^3): gelu in the tanh form of Hendrycks & Gimpel 2016. The rounding of
// u, multiplied by u, shows in the negative tail: a relative error that grows like u, an absolute one below 2^-24.
template <class L>
LOCKSTEP_LANE_FN typename L::V gelu_tanh(typename L::V x) {
  using T = typename L::T;
  using V = typename L::V;
  constexpr T low = sizeof(T) == 4 ? T(-11) : T(-22), high = sizeof(T) == 4 ? T(6) : T(9);
  const V numerator = L::max(x, L::set(low));
  const V c = L::min(numerator, L::set(high));
  const V w = L::fma(L::mul(c, c), L::set(T(0x1.2444f2a4d8b4bp-4)), L::set(T(0x1.9884533d43651p+0)));
  const auto parts = logistic_parts<L>(L::mul(c, w));
  return L::div(L::mul(numerator, parts.scale), parts.denominator);
}

// x tanh(log(1 + e^x)) = x N/(N + 2) with N = e (e + 2), e = e^x. Far below 0 e is kept up by a power of two that is
// taken away at the end, where the result may be denormal.
template <class L>
LOCKSTEP_LANE_FN typename L::V mish(typename L::V x) {
  using T = typename L::T;
  using TI = typename L::TI;
  using V = typename L::V;
  using F = math::Format<T>;
  constexpr T low = sizeof(T) == 4 ? T(-110) : T(-755), high = sizeof(T) == 4 ? T(20) : T(40);
  constexpr int split = sizeof(T) == 4 ? -64 : -512;
  const V factor = L::max(L::min(x, L::set(high)), L::set(low));
  const auto e = exp_parts<L>(factor, F::kBias);
  const V limited = L::max(e.z, L::set(F::kRound + T(split + F::kBias)));
  const V s = L::from_bits(L::template shift_left<F::kFractionBits>(L::bits(limited)));
  const auto down = L::int_add(L::int_sub(L::bits(e.z), L::bits(limited)), L::int_set(TI(F::kBias)));
  const V power = L::fma(e.m, s, s);
  const V power_low = L::fma(e.m, s, L::sub(s, power));
  const V two = L::set(T(2));
  // N + n_low = e (e + 2), and the quotient of x N and N + 2 with the roundings of all its parts given back.
  const V twice = L::add(power, power);
  const V n = L::fma(power, power, twice);
  const V n_low = L::fma(power_low, L::add(twice, two), L::fma(power, power, L::sub(twice, n)));
  const V denominator = L::add(n, two);
  const V denominator_low = L::sub(n, L::sub(denominator, two));
  const V reciprocal = L::div(L::set(T(1)), denominator);
  const V numerator = L::mul(factor, n);
  const V quotient = L::mul(numerator, reciprocal);
  V residual = L::add(L::nfma(quotient, denominator, numerator), L::fms(factor, n, numerator));
  residual = L::fma(L::sub(factor, quotient), n_low, L::nfma(quotient, denominator_low, residual));
  const V value = L::fma(residual, reciprocal, quotient);
  const V scaled = L::mul(value, L::from_bits(L::template shift_left<F::kFractionBits>(down)));
  return L::select(L::lt(L::set(high), x), x, scaled);
}

// log(1 + e^x) = max(x, 0) + log(1 + u), u = e^-|x|; log(1 + u) = u + u^2 q(u) on [0, 1].
template <class L>
LOCKSTEP_LANE_FN typename L::V softplus(typename L::V x) {
  using T = typename L::T;
  using V = typename L::V;
  const V u = exp<L>(L::neg(L::abs(x)));
  V q;
  if constexpr (sizeof(T) == 4) {
    q = horner<L>(u, L::set(-0x1.b1631cp-9f), 0x1.4a24e2p-6f, -0x1.d78c72p-5f, 0x1.b50c08p-4f, -0x1.3a59b6p-3f,
                  0x1.935118p-3f, -0x1.ff249ep-3f, 0x1.554dd4p-2f, -0x1.ffffd2p-2f);
  } else {
    q = horner<L>(u, L::set(0x1.a8fe3beb658a8p-16), -0x1.31f3bc5a98297p-12, 0x1.a2562f9ba76d4p-10, -0x1.6b4a5e4f8b18p-8,
                  0x1.c57b25335ec35p-7, -0x1.b62fd7046a4b5p-6, 0x1.5a87c7eeb88efp-5, -0x1.d710370b79474p-5,
                  0x1.202d9918561b9p-4, -0x1.4b01f59f27e42p-4, 0x1.712de5fe63e67p-4, -0x1.98d2921280591p-4,
                  0x1.c6f6a735a3374p-4, -0x1.fffa8ba51b83ep-4, 0x1.2491fed746809p-3, -0x1.55554fbe2fffep-3,
                  0x1.99999951f83fp-3, -0x1.fffffffdd49p-3, 0x1.555555555105p-2, -0x1.fffffffffff9fp-2);
  }
  return L::add(L::max(x, L::zero()), L::fma(L::mul(u, u), q, u));
}
