// Loops over the elementary functions for one lane type. No include guard: included where the bodies are.

template <Elementary function, class L>
LOCKSTEP_LANE_FN typename L::V call_elementary(typename L::V x) {
  using T = typename L::T;
  if constexpr (function == Elementary::exp) return exp<L>(x);
  if constexpr (function == Elementary::expm1) return expm1<L>(x);
  if constexpr (function == Elementary::exp2) return exp2<L>(x);
  if constexpr (function == Elementary::log) return log<L>(x);
  if constexpr (function == Elementary::log2) return log2<L>(x);
  if constexpr (function == Elementary::tanh) return tanh<L>(x);
  if constexpr (function == Elementary::sigmoid) return sigmoid<L>(x);
  if constexpr (function == Elementary::softplus) return softplus<L>(x);
  if constexpr (function == Elementary::erf) return erf<L>(x);
  if constexpr (function == Elementary::sin) return sin<L>(x);
  if constexpr (function == Elementary::cos) return cos<L>(x);
  if constexpr (function == Elementary::atan) return atan<L>(x);
  if constexpr (function == Elementary::small_pow) return pow<L>(x, L::set(T(kSmallExponent)));
  if constexpr (function == Elementary::large_pow) return pow<L>(x, L::set(T(kLargeExponent)));
  if constexpr (function == Elementary::base_pow) return pow<L>(L::set(T(kBase)), x);
  if constexpr (function == Elementary::floor) return L::floor(x);
  if constexpr (function == Elementary::round) return L::round(x);
  if constexpr (function == Elementary::modulo) return modulo<L>(x, L::set(T(kBase)));
}

template <class F>
auto with_elementary(Elementary function, F&& f) {
  using E = Elementary;
  switch (function) {
    case E::exp:
      return f(std::integral_constant<E, E::exp>{});
    case E::expm1:
      return f(std::integral_constant<E, E::expm1>{});
    case E::exp2:
      return f(std::integral_constant<E, E::exp2>{});
    case E::log:
      return f(std::integral_constant<E, E::log>{});
    case E::log2:
      return f(std::integral_constant<E, E::log2>{});
    case E::tanh:
      return f(std::integral_constant<E, E::tanh>{});
    case E::sigmoid:
      return f(std::integral_constant<E, E::sigmoid>{});
    case E::softplus:
      return f(std::integral_constant<E, E::softplus>{});
    case E::erf:
      return f(std::integral_constant<E, E::erf>{});
    case E::sin:
      return f(std::integral_constant<E, E::sin>{});
    case E::cos:
      return f(std::integral_constant<E, E::cos>{});
    case E::atan:
      return f(std::integral_constant<E, E::atan>{});
    case E::small_pow:
      return f(std::integral_constant<E, E::small_pow>{});
    case E::large_pow:
      return f(std::integral_constant<E, E::large_pow>{});
    case E::base_pow:
      return f(std::integral_constant<E, E::base_pow>{});
    case E::floor:
      return f(std::integral_constant<E, E::floor>{});
    case E::round:
      return f(std::integral_constant<E, E::round>{});
    case E::modulo:
      break;
  }
  return f(std::integral_constant<E, E::modulo>{});
}

// S stores and loads: S::load(p), S::store(v, p), S::kLanes numbers at a time.
template <Elementary function, class L, class S>
void elementary_loop(const typename L::T* x, typename L::T* y, size_t n, double) {
  for (size_t i = 0; i < n; i += S::lanes()) S::store(call_elementary<function, L>(S::load(x + i)), y + i);
}
template <ActivationKind kind, class L, class S>
void activation_loop(const typename L::T* x, typename L::T* y, size_t n, double alpha) {
  const auto a = L::set(typename L::T(alpha));
  for (size_t i = 0; i < n; i += S::lanes()) S::store(activate<kind, L>(S::load(x + i), a), y + i);
}
template <ActivationKind kind, class L, class S>
void derivative_loop(const typename L::T* x, typename L::T* y, size_t n, double alpha) {
  const auto a = L::set(typename L::T(alpha));
  for (size_t i = 0; i < n; i += S::lanes()) S::store(activate_derivative<kind, L>(S::load(x + i), a), y + i);
}

template <class T>
using Loop = void (*)(const T*, T*, size_t, double);

template <class L, class S>
Loop<typename L::T> loop_of(const Entry& entry) {
  using Result = Loop<typename L::T>;
  if (entry.kind == Entry::Kind::elementary) {
    return with_elementary(entry.elementary, [](auto f) -> Result { return elementary_loop<f(), L, S>; });
  }
  if (entry.kind == Entry::Kind::activation) {
    return with_activation_kind(entry.activation.kind, [](auto k) -> Result { return activation_loop<k(), L, S>; });
  }
  return with_activation_kind(entry.activation.kind, [](auto k) -> Result { return derivative_loop<k(), L, S>; });
}
