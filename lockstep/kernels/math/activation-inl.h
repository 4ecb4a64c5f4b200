// Activations and their derivatives over a lane type.
// No include guard: reach it through math_hwy-inl.h (SIMD) or math.h (scalar).

// activation(x) for one kind fixed at compile time; alpha is read by leaky_relu, elu and celu only.
template <ActivationKind kind, class L>
LOCKSTEP_LANE_FN typename L::V activate(typename L::V x, typename L::V alpha) {
  using T = typename L::T;
  using V = typename L::V;
  using Kind = ActivationKind;
  (void)alpha;
  [[maybe_unused]] const V zero = L::zero();
  [[maybe_unused]] const auto negative = L::lt(x, zero);
  if constexpr (kind == Kind::identity) {
    return x;
  } else if constexpr (kind == Kind::relu) {
    return L::max(x, zero);
  } else if constexpr (kind == Kind::leaky_relu) {
    return L::select(negative, L::mul(alpha, x), x);
  } else if constexpr (kind == Kind::elu) {
    return L::select(negative, L::mul(alpha, expm1_of_negative<L>(x)), x);
  } else if constexpr (kind == Kind::selu) {
    const V scale = L::set(T(math::kSeluScale));
    return L::select(negative, L::mul(L::set(T(math::kSeluScaleAlpha)), expm1_of_negative<L>(x)), L::mul(scale, x));
  } else if constexpr (kind == Kind::celu) {
    return L::select(negative, L::mul(alpha, expm1_of_negative<L>(L::div(x, alpha))), x);
  } else if constexpr (kind == Kind::gelu) {
    return gelu<L>(x);
  } else if constexpr (kind == Kind::gelu_tanh) {
    return gelu_tanh<L>(x);
  } else if constexpr (kind == Kind::silu) {
    return silu<L>(x);
  } else if constexpr (kind == Kind::mish) {
    return mish<L>(x);
  } else if constexpr (kind == Kind::softplus) {
    return softplus<L>(x);
  } else if constexpr (kind == Kind::softsign) {  // clamped where |x| + 1 = |x|, so that infinity gives 1
    const V limit = L::set(T(0x1p60));
    const V clamped = L::max(L::min(x, limit), L::neg(limit));
    return L::div(clamped, L::add(L::abs(clamped), L::set(T(1))));
  } else if constexpr (kind == Kind::sigmoid) {
    return sigmoid<L>(x);
  } else if constexpr (kind == Kind::hard_sigmoid) {
    const V six = L::set(T(6));
    return L::mul(L::max(L::min(L::add(x, L::set(T(3))), six), zero), L::set(T(1) / T(6)));
  } else if constexpr (kind == Kind::hard_swish) {
    // x ramp / 6, the product's rounding given back before the division, a product with 1/6 in two parts
    const V three = L::set(T(3)), sixth = L::set(T(1) / T(6));
    const V factor = L::max(x, L::neg(three));
    const V ramp = L::add(factor, three);
    const V product = L::mul(factor, ramp);
    const V product_low = L::fms(factor, ramp, product);
    const V low = L::fma(product, L::set(T(math::kSixthLow<T>)), L::mul(product_low, sixth));
    return L::select(L::lt(x, three), L::fma(product, sixth, low), x);
  } else if constexpr (kind == Kind::tanh) {
    return tanh<L>(x);
  } else if constexpr (kind == Kind::sin) {
    return sin<L>(x);
  } else {
    static_assert(kind == Kind::square);
    return L::mul(x, x);
  }
}

// d activation / dx. At a kink: the value from the left for relu, hard_sigmoid at -3 and hard_swish at -3, from the
// right elsewhere. NaN stays NaN (identity, whose derivative is 1 everywhere, excepted).
template <ActivationKind kind, class L>
LOCKSTEP_LANE_FN typename L::V activate_derivative(typename L::V x, typename L::V alpha) {
  using T = typename L::T;
  using V = typename L::V;
  using Kind = ActivationKind;
  (void)alpha;
  [[maybe_unused]] const V zero = L::zero(), one = L::set(T(1));
  [[maybe_unused]] const auto negative = L::lt(x, zero);
  [[maybe_unused]] const auto keep_nan = [x](V value) { return L::select(L::eq(x, x), value, x); };
  if constexpr (kind == Kind::identity) {
    return one;
  } else if constexpr (kind == Kind::relu) {
    return keep_nan(L::select(L::lt(zero, x), one, zero));
  } else if constexpr (kind == Kind::leaky_relu) {
    return keep_nan(L::select(negative, alpha, one));
  } else if constexpr (kind == Kind::elu) {
    return keep_nan(L::select(negative, L::mul(alpha, exp<L>(x)), one));
  } else if constexpr (kind == Kind::selu) {
    const V left = L::mul(L::set(T(math::kSeluScaleAlpha)), exp<L>(x));
    return keep_nan(L::select(negative, left, L::set(T(math::kSeluScale))));
  } else if constexpr (kind == Kind::celu) {
    return keep_nan(L::select(negative, exp<L>(L::div(x, alpha)), one));
  } else if constexpr (kind == Kind::gelu) {
    return gelu_derivative<L>(x);
  } else if constexpr (kind == Kind::gelu_tanh) {
    return gelu_tanh_derivative<L>(x);
  } else if constexpr (kind == Kind::silu) {
    return silu_derivative<L>(x);
  } else if constexpr (kind == Kind::mish) {
    return mish_derivative<L>(x);
  } else if constexpr (kind == Kind::softplus) {
    return sigmoid<L>(x);
  } else if constexpr (kind == Kind::softsign) {
    const V r = L::div(one, L::add(L::abs(x), one));
    return L::mul(r, r);
  } else if constexpr (kind == Kind::sigmoid) {
    return sigmoid_derivative<L>(x);
  } else if constexpr (kind == Kind::hard_sigmoid) {
    return keep_nan(L::select(L::lt(L::abs(x), L::set(T(3))), L::set(T(1) / T(6)), zero));
  } else if constexpr (kind == Kind::hard_swish) {
    const V middle = L::fma(x, L::set(T(1) / T(3)), L::set(T(0.5)));
    const V right = L::select(L::lt(x, L::set(T(3))), middle, one);
    return keep_nan(L::select(L::le(x, L::set(T(-3))), zero, right));
  } else if constexpr (kind == Kind::tanh) {  // 1 - tanh^2 x = 4 sigmoid'(2x)
    return L::mul(L::set(T(4)), sigmoid_derivative<L>(L::add(x, x)));
  } else if constexpr (kind == Kind::sin) {
    return cos<L>(x);
  } else {
    static_assert(kind == Kind::square);
    return L::add(x, x);
  }
}
