// Polynomials over a lane type, by Horner's rule: one fma a coefficient, in an order that is part of the contract.
// No include guard: see math_hwy-inl.h.

// c[0] + x (c[1] + x (...)), coefficients given from the highest degree down.
template <class L>
LOCKSTEP_LANE_FN typename L::V horner(typename L::V x, typename L::V sum) {
  (void)x;
  return sum;
}
template <class L, class... Lower>
LOCKSTEP_LANE_FN typename L::V horner(typename L::V x, typename L::V sum, typename L::T next, Lower... lower) {
  return horner<L>(x, L::fma(sum, x, L::set(next)), lower...);
}
