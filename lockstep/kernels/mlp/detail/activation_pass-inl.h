// Activations over a block that was just stored and still lies in L1. No include guard: part of kernels-inl.h.

using mlp::ActivationPass;

// Registers taken together, so that the chains of dependent operations of one fill the gaps of the others: as many as
// the constants and temporaries of tanh leave room for.
template <class T, ActivationKind kKind>
inline constexpr size_t kTogether = kKind != ActivationKind::tanh              ? 1
                                    : HWY_TARGET == HWY_AVX2 && sizeof(T) == 8 ? 2
                                                                               : 4;

// tanh of registers in place by groups of kCount, each of its steps for a whole group: operation by operation for all
// would need more registers than 16. Arguments are read again for the last step. For what is too few for tanh_fours().
template <size_t kCount>
HWY_INLINE size_t tanh_groups_in_steps(float* values, size_t first, size_t registers) {
  using D = Register<float>;
  using L = HwyLane<D>;
  const D d;
  const size_t lanes = hn::Lanes(d);
  for (; first + kCount <= registers; first += kCount) {
    float* const at = values + first * lanes;
    TanhStart<L> start[kCount];
    TanhTerms<L> terms[kCount];
    TanhParts<L> parts[kCount];
#pragma GCC unroll 4
    for (size_t i = 0; i < kCount; ++i) start[i] = tanh_start<L>(hn::LoadU(d, at + i * lanes));
#pragma GCC unroll 4
    for (size_t i = 0; i < kCount; ++i) terms[i] = tanh_terms<L>(start[i]);
#pragma GCC unroll 4
    for (size_t i = 0; i < kCount; ++i) parts[i] = tanh_parts<L>(terms[i]);
#pragma GCC unroll 4
    for (size_t i = 0; i < kCount; ++i) {
      parts[i].argument = hn::LoadU(d, at + i * lanes);
      hn::StoreU(tanh_end<L>(parts[i]), d, at + i * lanes);
    }
  }
  return first;
}

// Registers from `first` on, as many as whole groups of kCount cover; returns the first one left.
template <class T, ActivationKind kKind, size_t kCount>
HWY_INLINE size_t activate_groups(T* values, size_t first, size_t registers, T alpha) {
#if HWY_TARGET == HWY_AVX2
  if constexpr (kKind == ActivationKind::tanh && sizeof(T) == 4) {
    if constexpr (kCount != 4) return tanh_groups_in_steps<kCount>(values, first, registers);
    const size_t lanes = hn::Lanes(Register<T>()), groups = (registers - first) / 4;
    T* const from = values + first * lanes;
    tanh_fours(
        groups, [=](size_t group, size_t i) HWY_ATTR { return from + (4 * group + i) * lanes; }, [](size_t) {});
    return first + 4 * groups;
  }
#endif
  if constexpr (kTogether<T, kKind> >= kCount && kCount > 1) {
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
    size_t r = activate_groups<T, kKind, kTogether<T, kKind>>(values, 0, registers, alpha);
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
