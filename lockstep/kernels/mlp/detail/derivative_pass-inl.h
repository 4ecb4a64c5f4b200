// Activations from recorded sums, and cotangents through activations. No include guard: part of reverse_kernels-inl.h.

// f over `registers` registers of each of `rows` rows of three arrays with strides of their own.
template <class T>
using Pass = void (*)(const T* from, size_t from_stride, T* to, size_t to_stride, size_t rows, size_t registers,
                      T alpha);

template <class T, class F>
HWY_INLINE void for_registers(const T* from, size_t from_stride, T* to, size_t to_stride, size_t rows, size_t registers,
                              F f) {
  const Register<T> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t row = 0; row < rows; ++row, from += from_stride, to += to_stride) {
    for (size_t r = 0; r < registers; ++r) {
      hn::StoreU(f(hn::LoadU(d, from + r * lanes), hn::LoadU(d, to + r * lanes)), d, to + r * lanes);
    }
  }
}

// to = activation(from)
template <class T, ActivationKind kKind>
void activate_from(const T* from, size_t from_stride, T* to, size_t to_stride, size_t rows, size_t registers, T alpha) {
  using L = HwyLane<Register<T>>;
  const auto slope = L::set(alpha);
  for_registers(from, from_stride, to, to_stride, rows, registers,
                [slope](auto z, auto) { return activate<kKind, L>(z, slope); });
}

template <class T>
Pass<T> activate_pass(ActivationKind kind) {
  return with_activation_kind(kind, [](auto constant) -> Pass<T> { return activate_from<T, constant()>; });
}

// bar times the derivative: from the activation's value where derivative_from_value, else from its argument.
template <class L, ActivationKind kKind>
HWY_INLINE typename L::V times_derivative(typename L::V bar, typename L::V recorded, typename L::V alpha) {
  if constexpr (kKind == ActivationKind::identity) {
    return bar;
  } else if constexpr (kKind == ActivationKind::relu) {  // its value is positive where its argument is
    return L::select(L::lt(L::zero(), recorded), bar, L::zero());
  } else if constexpr (kKind == ActivationKind::tanh) {
    return L::mul(bar, L::nfma(recorded, recorded, L::set(1)));
  } else if constexpr (kKind == ActivationKind::sigmoid) {
    return L::mul(bar, L::nfma(recorded, recorded, recorded));
  } else {
    return L::mul(bar, activate_derivative<kKind, L>(recorded, alpha));
  }
}

// to *= derivative at what was recorded in `from`
template <class T, ActivationKind kKind>
void through_activation(const T* from, size_t from_stride, T* to, size_t to_stride, size_t rows, size_t registers,
                        T alpha) {
  using L = HwyLane<Register<T>>;
  const auto slope = L::set(alpha);
  for_registers(from, from_stride, to, to_stride, rows, registers,
                [slope](auto recorded, auto bar) { return times_derivative<L, kKind>(bar, recorded, slope); });
}

// Null for identity.
template <class T>
Pass<T> derivative_pass(ActivationKind kind) {
  return with_activation_kind(kind, [](auto constant) -> Pass<T> {
    if constexpr (constant() == ActivationKind::identity) {
      return nullptr;
    } else {
      return through_activation<T, constant()>;
    }
  });
}

// Cotangents of a layer's values become those of its sums; `row` is the width of a row in the record.
template <class T>
void through_layer(const ReverseLayer<T>& layer, const Places& places, const T* activations, size_t row, T* bars,
                   size_t rows, size_t registers) {
  const Pass<T> pass = derivative_pass<T>(layer.forward.activation);
  if (pass == nullptr) return;
  const size_t from = places.z != Places::kNone ? places.z : places.y;
  pass(activations + from * row, row, bars, row, rows, registers, layer.forward.alpha);
}
