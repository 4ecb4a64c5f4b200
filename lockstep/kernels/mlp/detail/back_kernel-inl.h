// Cotangents from a layer's sums to the values it read, times the derivative of the activation that made those values:
// written over them. No include guard: part of reverse_kernels-inl.h.

// to[k][lane] = times_derivative(sum over j of w[j][k] bar[j][lane], value[k][lane]) for kInputs inputs of the layer;
// rows of lanes are kTileLanes apart, rows of w, the weights as the parameters hold them, w_stride. `to` may be
// `value`.
template <class T>
using BackBlock = void (*)(const T* HWY_RESTRICT bar, size_t outputs, const T* HWY_RESTRICT w, size_t w_stride,
                           const T* value, T* to);

template <class T, int kInputs, int kRegisters, ActivationKind kKind>
void back_block(const T* HWY_RESTRICT bar, size_t outputs, const T* HWY_RESTRICT w, size_t w_stride, const T* value,
                T* to) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  using V = typename L::V;
  const size_t lanes = hn::Lanes(d);
  V sum[kInputs][kRegisters];
#pragma GCC unroll 16
  for (int k = 0; k < kInputs; ++k) {
#pragma GCC unroll 2
    for (int r = 0; r < kRegisters; ++r) sum[k][r] = L::zero();
  }
  for (size_t j = 0; j < outputs; ++j, bar += kTileLanes, w += w_stride) {
    V in[kRegisters];
#pragma GCC unroll 2
    for (int r = 0; r < kRegisters; ++r) in[r] = hn::LoadU(d, bar + r * lanes);
#pragma GCC unroll 16
    for (int k = 0; k < kInputs; ++k) {
      const V weight = L::set(w[k]);
#pragma GCC unroll 2
      for (int r = 0; r < kRegisters; ++r) sum[k][r] = L::fma(weight, in[r], sum[k][r]);
    }
  }
#pragma GCC unroll 16
  for (int k = 0; k < kInputs; ++k) {
#pragma GCC unroll 2
    for (int r = 0; r < kRegisters; ++r) {
      V bar_of_value = sum[k][r];
      if constexpr (kKind != ActivationKind::identity) {
        bar_of_value =
            times_derivative<L, kKind>(bar_of_value, hn::LoadU(d, value + k * kTileLanes + r * lanes), L::zero());
      }
      hn::StoreU(bar_of_value, d, to + k * kTileLanes + r * lanes);
    }
  }
}

template <class T, int kRegisters, ActivationKind kKind, int... kIndex>
constexpr std::array<BackBlock<T>, sizeof...(kIndex)> back_blocks(std::integer_sequence<int, kIndex...>) {
  return {back_block<T, kIndex + 1, kRegisters, kKind>...};
}

// bar [output][.] overlaps neither value nor `to` [input][.]. `next`, where it is not null, is what `value` will be for
// the next tile: it is brought closer meanwhile, a few lines a block.
template <class T>
using BackLayer = void (*)(const ReverseLayer<T>& layer, const T* bar, const T* value, T* to, int registers,
                           const T* next);

template <class T, ActivationKind kKind>
void run_back_layer(const ReverseLayer<T>& layer, const T* bar, const T* value, T* to, int registers, const T* next) {
  using Sizes = std::make_integer_sequence<int, kTileOutputs>;
  static constexpr std::array<BackBlock<T>, kTileOutputs> kBlocks[2] = {back_blocks<T, 1, kKind>(Sizes()),
                                                                        back_blocks<T, 2, kKind>(Sizes())};
  const auto& blocks = kBlocks[registers - 1];
  const size_t inputs = layer.forward.inputs;
  size_t first = 0;
  for (size_t block = 0; block < layer.back_blocks.blocks; ++block) {
    const size_t size = layer.back_blocks[block];
    if (next != nullptr) {
      const size_t lanes = static_cast<size_t>(registers) * hn::Lanes(Register<T>());
      for (size_t k = 0; k < size; ++k, next += kTileLanes) {
        for (size_t lane = 0; lane < lanes; lane += kSlots<T>) __builtin_prefetch(next + lane, 0, 2);
      }
    }
    blocks[size - 1](bar, layer.forward.outputs, layer.weights + first, inputs, value + first * kTileLanes,
                     to + first * kTileLanes);
    first += size;
  }
}

// For kinds whose derivative comes from the value; identity for those that need a pass of their own afterwards.
template <class T>
BackLayer<T> back_layer(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::relu:
      return run_back_layer<T, ActivationKind::relu>;
    case ActivationKind::tanh:
      return run_back_layer<T, ActivationKind::tanh>;
    case ActivationKind::sigmoid:
      return run_back_layer<T, ActivationKind::sigmoid>;
    default:
      return run_back_layer<T, ActivationKind::identity>;
  }
}
