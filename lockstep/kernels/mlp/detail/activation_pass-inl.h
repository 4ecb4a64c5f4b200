// Activations over a block that was just stored and still lies in L1. No include guard: part of kernels-inl.h.

// Applies to `registers` registers of each of `rows` rows, `stride` numbers apart.
template <class T>
using ActivationPass = void (*)(T* values, size_t rows, size_t stride, size_t registers, T alpha);

template <class T, ActivationKind kKind>
void apply_activation(T* values, size_t rows, size_t stride, size_t registers, T alpha) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  const size_t lanes = hn::Lanes(d);
  const typename L::V slope = L::set(alpha);
  if (stride == registers * lanes) {
    registers *= rows;
    rows = 1;
  }
  for (size_t row = 0; row < rows; ++row, values += stride) {
    for (size_t r = 0; r < registers; ++r) {
      hn::StoreU(activate<kKind, L>(hn::LoadU(d, values + r * lanes), slope), d, values + r * lanes);
    }
  }
}

// Null for identity, and for relu, which the blocks apply themselves.
template <class T>
ActivationPass<T> activation_pass(ActivationKind kind) {
  return with_activation_kind(kind, [](auto constant) -> ActivationPass<T> {
    constexpr ActivationKind kKind = constant();
    if constexpr (kKind == ActivationKind::identity || kKind == ActivationKind::relu) {
      return nullptr;
    } else {
      return apply_activation<T, kKind>;
    }
  });
}
