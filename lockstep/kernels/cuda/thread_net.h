// A dense net evaluated by one thread for one sample, on the device or the host, with the bits of every other kernel:
// each output is the bias, then one fma an input, inputs ascending. Weights are read by all threads of a warp at once.
#pragma once

#include <utility>

#include "lockstep/kernels/cuda/net_image.h"
#include "lockstep/kernels/cuda/unroll.h"
#include "lockstep/kernels/math/math.h"

namespace lockstep::cuda {

// One copy for all places that call it: inlined everywhere, the larger bodies take the compiler minutes.
#ifdef __CUDACC__
#define LOCKSTEP_HOST_DEVICE_CALL __host__ __device__ __noinline__
#else
#define LOCKSTEP_HOST_DEVICE_CALL inline
#endif

// For math::tanh, whose denominators lie in [0.47, 1.63] in float32 and in [1, 2e16] in float64: its division without
// the general one's question whether operands are extreme, behind which a subroutine waits. Without that branch the
// compiler mixes the work on several numbers. Where the numerator is so small that its remainder would be lost, the
// denominator is 1.
template <class T>
struct TanhLane : ScalarLane<T> {
  using L = ScalarLane<T>;
  static LOCKSTEP_HOST_DEVICE T div(T a, T b) {
#ifdef __CUDA_ARCH__
    T guess;
    if constexpr (sizeof(T) == 4) {
      asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(guess) : "f"(b));  // off by 1 ulp at most (PTX ISA)
    } else {
      asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(guess) : "d"(b));  // 20 bits in, 20 bits out (PTX ISA)
    }
    return quotient(a, b, guess);
#else
    return a / b;
#endif
  }
  // float32: a / b from 1 / b to 1 ulp: one correction of the first quotient. No theorem says that it is rounded
  // correctly then (a quotient may lie 2^-25 ulp beside the middle of two numbers), but tanh asks for no more than
  // 1.09e9 quotients: each was tried with every such guess, and each gave the same tanh as the true quotient.
  // float64: from 1 / b to 2^-17. The reciprocal's error becomes its third power and is squared once more, so that it
  // is rounded correctly, and from that the quotient is (Markstein, IBM J. Res. Dev. 34, 1990, pp. 111-119).
  static LOCKSTEP_HOST_DEVICE T quotient(T a, T b, T guess) {
    if constexpr (sizeof(T) == 8) {
      const T error = L::nfma(b, guess, 1);
      guess = L::fma(guess, L::fma(error, error, error), guess);
      guess = L::fma(guess, L::nfma(b, guess, 1), guess);
    }
    const T q = L::mul(a, guess);
    return L::fma(guess, L::nfma(b, q, a), q);
  }
};

// activation(x) for a kind that is compiled in.
template <ActivationKind kind, class T>
LOCKSTEP_HOST_DEVICE T activate_unit(T x, T alpha) {
  if constexpr (kind == ActivationKind::tanh) {
    return math::tanh<TanhLane<T>>(x);
  } else {
    return math::activate<kind, ScalarLane<T>>(x, alpha);
  }
}

// activation(x) for a kind known at run time, the same for all threads of a launch.
template <class T, int... kinds>
LOCKSTEP_HOST_DEVICE T activate_any(std::integer_sequence<int, kinds...>, int kind, T x, T alpha) {
  T result = x;
  (void)((kind == kinds && (result = activate_unit<static_cast<ActivationKind>(kinds)>(x, alpha), true)) || ...);
  return result;
}
template <class T>
LOCKSTEP_HOST_DEVICE_CALL T activate_any(int kind, T x, T alpha) {
  constexpr int count = static_cast<int>(ActivationKind::square) + 1;
  return activate_any(std::make_integer_sequence<int, count>(), kind, x, alpha);
}

// Read at once: two or four loads of 16 bytes.
template <class T>
struct alignas(16) WeightBlock {
  T of[kNetBlock];
};

template <class T>
LOCKSTEP_HOST_DEVICE void evaluate_layer(const LayerImage& layer, const T* weights, const T* in, T* out) {
  using L = ScalarLane<T>;
  const auto* block = reinterpret_cast<const WeightBlock<T>*>(weights + layer.weights);
  const T alpha = static_cast<T>(layer.alpha);
  for (int first = 0; first < layer.outputs; first += kNetBlock) {
    WeightBlock<T> sum = *block++;
    for (int k = 0; k < layer.inputs; ++k) {
      const WeightBlock<T> w = *block++;
      const T x = in[k];
      for (int j = 0; j < kNetBlock; ++j) sum.of[j] = L::fma(w.of[j], x, sum.of[j]);
    }
    for (int j = 0; j < kNetBlock; ++j) {
      if (first + j < layer.outputs) out[first + j] = activate_any(layer.activation, sum.of[j], alpha);
    }
  }
}

// out[output] = net(x[input]). x and scratch hold net.widest numbers each and are overwritten.
template <class T>
LOCKSTEP_HOST_DEVICE void evaluate_net(const NetImage& net, const T* weights, T* x, T* scratch, T* out) {
  using L = ScalarLane<T>;
  if (net.input_scale >= 0) {
    for (int c = 0; c < net.inputs; ++c)
      x[c] = L::div(L::sub(x[c], weights[net.input_shift + c]), weights[net.input_scale + c]);
  }
  T* from = x;
  T* to = scratch;
  for (int i = 0; i < net.layers; ++i) {
    evaluate_layer(net.layer[i], weights, from, to);
    T* const next = from;
    from = to;
    to = next;
  }
  for (int c = 0; c < net.outputs; ++c) {
    out[c] =
        net.output_scale < 0 ? from[c] : L::fma(from[c], weights[net.output_scale + c], weights[net.output_shift + c]);
  }
}

// A net n - width - n with a linear end needs no array of hidden values: each unit's activation goes into the outputs
// as soon as it is known. Units ascend, so that an output sees the same sequence of fma as in evaluate_layer.
template <class T, int n>
struct alignas(16) FoldedHead {
  T bias[n], input_shift[n], input_scale[n], output_scale[n], output_shift[n];
};
// Four units at a time, what they have of a kind side by side: one load of 16 bytes, or two.
inline constexpr int kFoldedUnits = 4;
template <class T, int n>
struct alignas(16) FoldedUnits {
  T bias[kFoldedUnits], in[n][kFoldedUnits], out[n][kFoldedUnits];
};
// A head's size in numbers of T, for n known at run time.
template <class T>
LOCKSTEP_HOST_DEVICE constexpr std::int64_t folded_head_numbers(int n) {
  constexpr int step = 16 / sizeof(T);
  return (5 * n + step - 1) / step * step;
}

// tanh's table, before the head of a net in float32 whose hidden units are tanh: on a device in shared memory like the
// rest, where it lies first and is aligned to its size. T and the point of an interval (math/tanh-inl.h) are one load
// of 8 bytes, and all entries together fill each bank once: whatever a warp's lanes want, none waits for another. 1 -
// T^2 is computed, for a third load would cost more than two instructions of arithmetic.
struct TanhEntry {
  float tanh, point;
};
struct TanhTable16 {
  TanhEntry entry[16];
};
template <class T>
LOCKSTEP_HOST_DEVICE constexpr std::int64_t folded_table_numbers(ActivationKind hidden) {
  return sizeof(T) == 4 && hidden == ActivationKind::tanh ? sizeof(TanhTable16) / sizeof(T) : 0;
}
LOCKSTEP_HOST_DEVICE TanhEntry entry_of(const TanhTable16& table, std::int32_t interval) {
#ifdef __CUDA_ARCH__
  // Of a table aligned to its size an entry's address is an or, one instruction together with the mask.
  const auto address =
      static_cast<unsigned>(__cvta_generic_to_shared(&table)) | (static_cast<unsigned>(interval) & 15u) * 8u;
  TanhEntry found;
  asm("ld.shared.v2.f32 {%0,%1}, [%2];" : "=f"(found.tanh), "=f"(found.point) : "r"(address));
  return found;
#else
  return table.entry[interval & 15];
#endif
}
LOCKSTEP_HOST_DEVICE float tanh_by_table(const TanhTable16& table, float x) {
  using L = TanhLane<float>;
  const auto start = math::tanh_start<L>(x);
  const TanhEntry entry = entry_of(table, start.interval);
  return math::tanh_end<L>(
      math::tanh_parts<L>({x, entry.tanh, L::sub(start.magnitude, entry.point), math::tanh_slope<L>(entry.tanh)}));
}
template <ActivationKind kind, class T>
LOCKSTEP_HOST_DEVICE T activate_folded(const T* image, T x, T alpha) {
  if constexpr (folded_table_numbers<T>(kind) > 0) {
    return tanh_by_table(*reinterpret_cast<const TanhTable16*>(image), x);
  } else {
    return activate_unit<kind>(x, alpha);
  }
}

template <ActivationKind kind, class T, int n>
LOCKSTEP_HOST_DEVICE void evaluate_folded(const T* image, const NetImage& net, const T* u, T* out) {
  using L = ScalarLane<T>;
  using Units = FoldedUnits<T, n>;
  static_assert(sizeof(FoldedHead<T, n>) == sizeof(T) * folded_head_numbers<T>(n));
  const T* const numbers = image + folded_table_numbers<T>(kind);
  const auto& head = *reinterpret_cast<const FoldedHead<T, n>*>(numbers);
  T x[n], sum[n];
  for (int c = 0; c < n; ++c) {
    x[c] = net.input_scale >= 0 ? L::div(L::sub(u[c], head.input_shift[c]), head.input_scale[c]) : u[c];
    sum[c] = head.bias[c];
  }
  const T alpha = static_cast<T>(net.layer[0].alpha);
  const auto add_unit = [&](const Units& w, int j) {
    T hidden = w.bias[j];
    for (int c = 0; c < n; ++c) hidden = L::fma(w.in[c][j], x[c], hidden);
    const T h = activate_folded<kind>(image, hidden, alpha);
    for (int c = 0; c < n; ++c) sum[c] = L::fma(w.out[c][j], h, sum[c]);
  };
  const int count = net.layer[0].outputs;
  const auto* units = reinterpret_cast<const Units*>(numbers + folded_head_numbers<T>(n));
  const auto* const whole = units + count / kFoldedUnits;
  LOCKSTEP_ROLLED
  for (; units != whole; ++units) {
    const Units w = *units;
    for (int j = 0; j < kFoldedUnits; ++j) add_unit(w, j);
  }
  LOCKSTEP_ROLLED
  for (int j = 0; j < count % kFoldedUnits; ++j) add_unit(*units, j);
  for (int c = 0; c < n; ++c)
    out[c] = net.output_scale >= 0 ? L::fma(sum[c], head.output_scale[c], head.output_shift[c]) : sum[c];
}

}  // namespace lockstep::cuda
