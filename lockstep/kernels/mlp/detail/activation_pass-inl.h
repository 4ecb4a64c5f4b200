// Activations over a block that was just stored and still lies in L1. No include guard: part of kernels-inl.h.

using mlp::ActivationPass;

// Registers taken together, so that the chains of dependent operations of one fill the gaps of the others: as many as
// the constants and temporaries of tanh leave room for. Measured on Zen 4, they take 0.93 (AVX2) to 0.94 (AVX-512) of
// the time of one at a time.
template <ActivationKind kKind>
inline constexpr size_t kTogether = kKind != ActivationKind::tanh ? 1
                                    : HWY_TARGET == HWY_AVX2      ? 2
                                                                  : 4;

// Registers from `first` on, as many as whole groups of kCount cover; returns the first one left.
template <class T, ActivationKind kKind, size_t kCount>
HWY_INLINE size_t activate_groups(T* values, size_t first, size_t registers, T alpha) {
  if constexpr (kTogether<kKind> >= kCount && kCount > 1) {
    using Group = LaneGroup<Register<T>, kCount>;
    const Register<T> d;
    const size_t lanes = hn::Lanes(d);
    for (; first + kCount <= registers; first += kCount) {
      typename Group::V group;
      for (size_t i = 0; i < kCount; ++i) group.each[i] = hn::LoadU(d, values + (first + i) * lanes);
      group = activate<kKind, Group>(group, Group::set(alpha));
      for (size_t i = 0; i < kCount; ++i) hn::StoreU(group.each[i], d, values + (first + i) * lanes);
    }
  }
  return first;
}

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
    size_t r = activate_groups<T, kKind, kTogether<kKind>>(values, 0, registers, alpha);
    r = activate_groups<T, kKind, 2>(values, r, registers, alpha);
    for (; r < registers; ++r) {
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
