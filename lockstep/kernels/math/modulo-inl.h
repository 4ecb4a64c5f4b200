// The remainder of a division whose quotient is rounded down, over a lane type. No include guard: see math_hwy-inl.h.

// x - y floor(x/y): of the sign of y, or 0 with that sign; at most |y|. NaN for y = 0, infinite x and NaN; of infinite
// y x itself where it has the sign of y or is 0, else y.
//
// With signs taken so that y > 0, let q = floor(fl(x/y)). Below 2^p (p = 24 or 53) whole numbers are representable and
// rounding is monotone, so that q is floor(x/y), or one more where x/y was rounded up to a whole number. r = x - q y is
// a multiple of the last place of y where x >= y, and no larger than y: it has p bits at most, and the fused
// multiply-add gives it exactly; so is r + y exact, which takes back the one too many. For -y < x < 0, where q = -1, x
// + y is rounded once, to y itself for the smallest x, as in Python. For q of 2^p and more the numbers beside x are
// farther away than y: what is made then is the remainder, or 0 where q is more than one off.
template <class L>
LOCKSTEP_LANE_FN typename L::V modulo(typename L::V x, typename L::V y) {
  using V = typename L::V;
  const V zero = L::zero(), size = L::abs(y);
  const auto negative = L::lt(y, zero);
  const V along = L::select(negative, L::neg(x), x);
  const V q = L::floor(L::div(along, size));
  V r = L::nfma(q, size, along);
  r = L::select(L::eq(q, zero), along, r);  // 0 times infinity
  r = L::select(L::lt(size, r), zero, r);
  r = L::select(L::lt(r, zero), L::add(r, size), r);
  r = L::select(L::le(r, zero), zero, r);  // no -0 either
  return L::select(negative, L::neg(r), r);
}
