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
  switch (kind) {
    case ActivationKind::identity:
    case ActivationKind::relu:
      return nullptr;
#define LOCKSTEP_CASE(name)  \
  case ActivationKind::name: \
    return apply_activation<T, ActivationKind::name>;
      LOCKSTEP_CASE(leaky_relu)
      LOCKSTEP_CASE(softsign)
      LOCKSTEP_CASE(sigmoid)
      LOCKSTEP_CASE(tanh)
      LOCKSTEP_CASE(square)
#undef LOCKSTEP_CASE
    default:
      return nullptr;
  }
}

template <class T>
bool has_activation(ActivationKind kind) {
  return kind == ActivationKind::identity || kind == ActivationKind::relu || activation_pass<T>(kind) != nullptr;
}
