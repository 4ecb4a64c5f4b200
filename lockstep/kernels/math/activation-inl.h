// Activations over a lane type. No include guard: reach it through math_hwy-inl.h (SIMD) or math.h (scalar).

template <ActivationKind>
inline constexpr bool kActivationUnknown = false;

// activation(x) for one kind fixed at compile time; alpha is read by leaky_relu, elu and celu only.
template <ActivationKind kind, class L>
LOCKSTEP_LANE_FN typename L::V activate(typename L::V x, typename L::V alpha) {
  using T = typename L::T;
  (void)alpha;
  if constexpr (kind == ActivationKind::identity) {
    return x;
  } else if constexpr (kind == ActivationKind::relu) {
    return L::max(x, L::zero());
  } else if constexpr (kind == ActivationKind::leaky_relu) {
    return L::select(L::lt(x, L::zero()), L::mul(alpha, x), x);
  } else if constexpr (kind == ActivationKind::tanh) {
    return tanh<L>(x);
  } else if constexpr (kind == ActivationKind::sigmoid) {
    return sigmoid<L>(x);
  } else if constexpr (kind == ActivationKind::softsign) {
    return L::div(x, L::add(L::abs(x), L::set(T(1))));
  } else if constexpr (kind == ActivationKind::square) {
    return L::mul(x, x);
  } else {
    static_assert(kActivationUnknown<kind>, "this activation is not implemented yet");
  }
}
