// Derivatives of the activations in logistic-inl.h and of gelu. No include guard: see math_hwy-inl.h.
// Those that change sign are accurate to a few ulp of the larger of their terms, not of the result.

// t/(1 + t)^2 with t = e^-|x|.
template <class L>
LOCKSTEP_LANE_FN typename L::V sigmoid_derivative(typename L::V x) {
  using V = typename L::V;
  const V t = exp<L>(L::neg(L::abs(x)));
  const V r = L::div(L::set(typename L::T(1)), L::add(t, L::set(typename L::T(1))));
  return L::mul(L::mul(t, r), r);
}

// d/dx of x s(v), s = 1/(1 + e^-v): s (1 + x slope (1 - s)), slope = dv/dx; 1 - s = e^-v / (1 + e^-v).
// x and v are in the range of logistic_parts.
template <class L>
LOCKSTEP_LANE_FN typename L::V gated_derivative(typename L::V x, typename L::V v, typename L::V slope) {
  const auto one = L::set(typename L::T(1));
  const auto parts = logistic_parts<L>(v);
  const auto r = L::div(one, parts.denominator);
  const auto complement = L::mul(parts.power, r);
  return L::mul(L::mul(parts.scale, r), L::fma(L::mul(x, slope), complement, one));
}

template <class L>
LOCKSTEP_LANE_FN typename L::V silu_derivative(typename L::V x) {
  using T = typename L::T;
  constexpr T low = sizeof(T) == 4 ? T(-110) : T(-755), high = sizeof(T) == 4 ? T(80) : T(700);
  const auto clamped = L::max(L::min(x, L::set(high)), L::set(low));
  return gated_derivative<L>(clamped, clamped, L::set(T(1)));
}

template <class L>
LOCKSTEP_LANE_FN typename L::V gelu_tanh_derivative(typename L::V x) {
  using T = typename L::T;
  using V = typename L::V;
  constexpr T low = sizeof(T) == 4 ? T(-11) : T(-22), high = sizeof(T) == 4 ? T(9) : T(20);
  const V c = L::max(L::min(x, L::set(high)), L::set(low));
  const V square = L::mul(c, c);
  const V linear = L::set(T(0x1.9884533d43651p+0));
  const V w = L::fma(square, L::set(T(0x1.2444f2a4d8b4bp-4)), linear);
  const V slope = L::fma(square, L::set(T(3 * 0x1.2444f2a4d8b4bp-4)), linear);
  return gated_derivative<L>(c, L::mul(c, w), slope);
}

// With e = e^x and N = e (e + 2): N/(N + 2) + 4 x e (1 + e)/(N + 2)^2.
template <class L>
LOCKSTEP_LANE_FN typename L::V mish_derivative(typename L::V x) {
  using T = typename L::T;
  using V = typename L::V;
  const V one = L::set(T(1)), two = L::set(T(2));
  const V c = L::max(L::min(x, L::set(sizeof(T) == 4 ? T(20) : T(40))), L::set(T(-760)));
  const V e = exp<L>(c);
  const V n = L::mul(e, L::add(e, two));
  const V r = L::div(one, L::add(n, two));
  const V weight = L::mul(L::mul(L::mul(L::set(T(4)), e), L::add(one, e)), L::mul(r, r));
  return L::fma(c, weight, L::mul(n, r));
}

// Phi(x) + x phi(x), phi the normal density: on the left e^(-x^2/2) (g/(|x| + 4) - |x|/sqrt(2 pi)), and on the right
// one minus the same.
template <class L>
LOCKSTEP_LANE_FN typename L::V gelu_derivative(typename L::V x) {
  using T = typename L::T;
  using V = typename L::V;
  const V limit = L::set(sizeof(T) == 4 ? T(14.8) : T(39.2));
  const V a = L::abs(L::max(L::min(x, limit), L::neg(limit)));
  const auto tail = normal_tail<L>(a);
  const V mills = L::mul(tail.r, tail.g);
  const V p = L::nfma(a, L::set(T(0x1.9884533d43651p-2)), L::fma(mills, tail.r_error, mills));
  const V left = times_power_of_two<L>(L::fma(p, L::add(tail.s, tail.e), p), tail.z, tail.n);
  return L::select(L::lt(x, L::zero()), left, L::sub(L::set(T(1)), left));
}
