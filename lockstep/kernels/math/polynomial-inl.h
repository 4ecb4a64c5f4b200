// Polynomials over a lane type, by Horner's rule: one fma a coefficient, in an order that is part of the contract.
// No include guard: see math_hwy-inl.h.

// c[0] + x (c[1] + x (...)), coefficients given from the highest degree down. With sign = -1, the same at -x.
template <class L, int sign = 1>
LOCKSTEP_LANE_FN typename L::V horner(typename L::V, typename L::V sum) {
  return sum;
}
template <class L, int sign = 1, class... Lower>
LOCKSTEP_LANE_FN typename L::V horner(typename L::V x, typename L::V sum, typename L::T next, Lower... lower) {
  const auto term = L::set(next);
  return horner<L, sign>(x, sign > 0 ? L::fma(sum, x, term) : L::nfma(sum, x, term), lower...);
}
