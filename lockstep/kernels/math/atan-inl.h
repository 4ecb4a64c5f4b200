// atan over a lane type. No include guard: see math_hwy-inl.h. Coefficients from derive/minimax.py.

// atan|x| = atan a for |x| <= 1 and pi/2 - atan a above, a = min(|x|, 1) / max(|x|, 1), which is |x| itself or 1/|x|.
// atan a = a + a^3 q(a^2), relative error 2^-28.5 and 2^-57.6 before rounding. What pi/2 leaves joins the smaller term.
template <class L>
LOCKSTEP_LANE_FN typename L::V atan(typename L::V x) {
  using T = typename L::T;
  using V = typename L::V;
  constexpr bool single = sizeof(T) == 4;
  const V magnitude = L::abs(x), one = L::set(T(1));
  const auto above = L::lt(one, magnitude);
  const V a = L::div(L::min(magnitude, one), L::max(magnitude, one));
  const V z = L::mul(a, a);
  V q;
  if constexpr (single) {
    q = horner<L>(z, L::set(-0x1.d45e18p-10f), 0x1.64a574p-7f, -0x1.fde5e6p-6f, 0x1.da55f2p-5f, -0x1.58137ap-4f,
                  0x1.c08efep-4f, -0x1.2420b2p-3f, 0x1.9991e6p-3f, -0x1.55553ep-2f);
  } else {
    q = horner<L>(z, L::set(0x1.bbe661787c4fbp-17), -0x1.3f31dbe54da1dp-13, 0x1.b3f5c18f7246bp-11,
                  -0x1.7a36193f5e897p-9, 0x1.d7b5cf0431cf8p-8, -0x1.c78d7ace4ede4p-7, 0x1.683b93576e28dp-6,
                  -0x1.e9f9157ac5a6p-6, 0x1.2c2e0fdc227d9p-5, -0x1.59a3da05e9aa8p-5, 0x1.82dac9adaa013p-5,
                  -0x1.ae5e6eb7ab966p-5, 0x1.e1bba587fac48p-5, -0x1.110e51142b079p-4, 0x1.3b136697e9567p-4,
                  -0x1.745d11ae44ebp-4, 0x1.c71c717fcce6ep-4, -0x1.249249237f4dep-3, 0x1.99999999955b2p-3,
                  -0x1.5555555555526p-2);
  }
  constexpr T half_pi = single ? T(0x1.921fb6p+0f) : T(0x1.921fb54442d18p+0);
  constexpr T half_pi_low = single ? T(-0x1.777a5cp-25f) : T(0x1.1a62633145c07p-54);
  const V rest = L::fma(L::mul(a, z), q, L::select(above, L::set(-half_pi_low), L::zero()));
  const V near = L::add(a, rest);
  return L::copysign_to_abs(L::select(above, L::sub(L::set(half_pi), near), near), x);
}
