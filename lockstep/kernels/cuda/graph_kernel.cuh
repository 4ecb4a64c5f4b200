// The kernel that evaluates a graph for a batch in device memory: blocks take tiles of samples in turn and carry out
// the steps of the schedule on them one after another, each shared out among the block's threads.
//
// A tile's values are rows of samples, in shared memory where they fit. Where they do not, each block works in a slot
// of a workspace in global memory that no other block has meanwhile, of whatever launch: so one plan may be in flight
// on several streams.
#pragma once

#include <cstdint>
#include <utility>

#include "lockstep/kernels/cuda/evaluate_kernel.cuh"
#include "lockstep/kernels/cuda/graph_launch.h"
#include "lockstep/kernels/graph/detail/lane_operations.h"

namespace lockstep::cuda {

namespace on_numbers = math::on_numbers;

// Operations of a kind known at run time, the same for all threads of a launch. One copy of each for all places that
// call it.
template <class T>
LOCKSTEP_HOST_DEVICE_CALL T unary_any(int kind, T x) {
  using graph::UnaryKind;
  using L = ScalarLane<T>;
  switch (static_cast<UnaryKind>(kind)) {
    case UnaryKind::square_root:
      return on_numbers::unary_of<UnaryKind::square_root, L>(x);
    case UnaryKind::exp:
      return on_numbers::unary_of<UnaryKind::exp, L>(x);
    case UnaryKind::log:
      return on_numbers::unary_of<UnaryKind::log, L>(x);
    case UnaryKind::absolute:
      return on_numbers::unary_of<UnaryKind::absolute, L>(x);
    case UnaryKind::negate:
      return on_numbers::unary_of<UnaryKind::negate, L>(x);
    case UnaryKind::reciprocal:
      return on_numbers::unary_of<UnaryKind::reciprocal, L>(x);
    case UnaryKind::erf:
      return on_numbers::unary_of<UnaryKind::erf, L>(x);
    case UnaryKind::floor:
      return on_numbers::unary_of<UnaryKind::floor, L>(x);
    case UnaryKind::round:
      return on_numbers::unary_of<UnaryKind::round, L>(x);
    case UnaryKind::arctangent:
      return on_numbers::unary_of<UnaryKind::arctangent, L>(x);
    case UnaryKind::cosine:
      break;
  }
  return on_numbers::unary_of<UnaryKind::cosine, L>(x);
}

template <class T, int... kinds>
LOCKSTEP_HOST_DEVICE T binary_any(std::integer_sequence<int, kinds...>, int kind, T a, T b) {
  T result = a;
  (void)((kind == kinds &&
          (result = on_numbers::binary_of<static_cast<graph::BinaryKind>(kinds), ScalarLane<T>>(a, b), true)) ||
         ...);
  return result;
}
template <class T>
LOCKSTEP_HOST_DEVICE_CALL T binary_any(int kind, T a, T b) {
  constexpr auto count = static_cast<int>(graph::kBinaryKinds);
  return binary_any(std::make_integer_sequence<int, count>(), kind, a, b);
}

template <class T, int... kinds>
LOCKSTEP_HOST_DEVICE T chain_any(std::integer_sequence<int, kinds...>, int kind, T a, T b, T alpha) {
  T result = a;
  (void)((kind == kinds &&
          (result = on_numbers::chain_of<static_cast<ActivationKind>(kinds), ScalarLane<T>>(a, b, alpha), true)) ||
         ...);
  return result;
}
template <class T>
LOCKSTEP_HOST_DEVICE_CALL T chain_any(int kind, T a, T b, T alpha) {
  constexpr int count = static_cast<int>(ActivationKind::square) + 1;
  return chain_any(std::make_integer_sequence<int, count>(), kind, a, b, alpha);
}

// `counts` are those of a table: knots, with those of the padding, powers.
template <class T>
LOCKSTEP_HOST_DEVICE_CALL T interpolated_any(T x, const T* knots, T first, T last, const T* coefficients,
                                             const std::int32_t* counts) {
  using L = ScalarLane<T>;
  const auto at = on_numbers::among_knots<L>(x, knots, counts[1], first, last);
  return on_numbers::interpolated<L>(at, coefficients, counts[2], counts[0]);
}

// One tile, and the steps on it.
template <class T, int samples>
class GraphTile {
 public:
  using L = ScalarLane<T>;
  static constexpr int kPitch = tile_pitch<T>(samples);

  __device__ GraphTile(const GraphLaunch<T>& launch, T* values) : launch_(launch), values_(values) {}

  // Zeros for samples past the last.
  __device__ void load(const GraphPort<T>& port, std::int64_t first, int count) {
    if (port.row < 0) return;
    load_tile<samples>(SampleArray<const T>{port.data + first * port.sample_stride, port.sample_stride,
                                            port.feature_stride, port.width, count},
                       row(port.row));
  }

  __device__ void store(const GraphPort<T>& port, std::int64_t first, int count) {
    if (port.data == nullptr) return;
    store_tile<samples>(SampleArray<T>{port.data + first * port.sample_stride, port.sample_stride, port.feature_stride,
                                       port.width, count},
                        row(port.row));
  }

  __device__ void run(const GraphStep& step) {
    const auto number = [&](int i) { return static_cast<T>(step.numbers[i]); };
    switch (step.code) {
      case GraphCode::dense:
        return dense(step);
      case GraphCode::activate:
        return each(step, [&](int, T x) { return activate_any(step.kind, x, number(0)); });
      case GraphCode::standardise: {
        const T *shift = launch_.numbers + step.first, *scale = launch_.numbers + step.second;
        return each(step, [&](int i, T x) { return L::div(L::sub(x, shift[i]), scale[i]); });
      }
      case GraphCode::rescale: {
        const T *scale = launch_.numbers + step.first, *shift = launch_.numbers + step.second;
        return each(step, [&](int i, T x) { return L::fma(x, scale[i], shift[i]); });
      }
      case GraphCode::fill:
      case GraphCode::copy:
        return each(step, [](int, T x) { return x; });
      case GraphCode::columns: {
        const std::int32_t* const from = launch_.indices + step.indices;
        return make(step, [&](int i, int sample) { return row(step.a.row)[from[i] * std::int64_t{kPitch} + sample]; });
      }
      case GraphCode::unary:
        return each(step, [&](int, T x) { return unary_any(step.kind, x); });
      case GraphCode::clip:
        return each(step, [&](int, T x) { return L::min(L::max(x, number(0)), number(1)); });
      case GraphCode::dead_zone:
        return each(step, [&](int, T x) { return on_numbers::dead_zone_of<L>(x, number(0), number(1), number(2)); });
      case GraphCode::interpolate: {
        const std::int32_t* const count = launch_.indices + step.indices;
        const T *knots = launch_.numbers + step.first, *coefficients = launch_.numbers + step.second;
        return make(step, [&](int i, int sample) {
          return interpolated_any(read(step.a, 0, sample), knots, number(0), number(1),
                                  coefficients + std::int64_t{i} * count[2] * count[0], count);
        });
      }
      case GraphCode::binary:
        return make(step, [&](int i, int sample) {
          return binary_any(step.kind, read(step.a, i, sample), read(step.b, i, sample));
        });
      case GraphCode::choose: {
        const std::int32_t* const mask = launch_.indices + step.indices;
        return make(step, [&](int i, int sample) { return read(mask[i] != 0 ? step.a : step.b, i, sample); });
      }
      case GraphCode::select:
        return make(step, [&](int i, int sample) {
          return read(L::eq(read(step.a, i, sample), L::zero()) ? step.c : step.b, i, sample);
        });
      case GraphCode::chain:
        return make(step, [&](int i, int sample) {
          return chain_any(step.kind, read(step.a, i, sample), read(step.b, i, sample), number(0));
        });
      case GraphCode::softmax:
      case GraphCode::reduce:
      case GraphCode::layer_normalise:
        return over_features(step);
    }
  }

 private:
  __device__ T* row(std::int64_t number) const { return values_ + number * kPitch; }

  __device__ T read(const GraphOperand& operand, int feature, int sample) const {
    const std::int64_t place = feature * operand.step;
    return operand.constants >= 0 ? launch_.numbers[operand.constants + place]
                                  : values_[(operand.row + place) * kPitch + sample];
  }

  // out[feature][sample] = value(feature, sample). What is written in place of an operand's element is read by the same
  // thread before.
  template <class Value>
  __device__ void make(const GraphStep& step, const Value& value) {
    T* const out = row(step.out);
    LOCKSTEP_ROLLED
    for (int i = static_cast<int>(threadIdx.x); i < step.width * samples; i += kBlockThreads)
      out[i / samples * std::int64_t{kPitch} + i % samples] = value(i / samples, i % samples);
  }
  template <class Function>
  __device__ void each(const GraphStep& step, const Function& function) {
    make(step, [&](int i, int sample) { return function(i, read(step.a, i, sample)); });
  }

  // A warp has eight outputs of all samples at a time, a thread eight outputs of one to four samples.
  __device__ void dense(const GraphStep& step) {
    constexpr int kEach = samples / 32;
    using Samples = Numbers<T, kEach>;
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const auto* const blocks = reinterpret_cast<const WeightBlock<T>*>(launch_.numbers + step.weights);
    const T alpha = static_cast<T>(step.numbers[0]);
    LOCKSTEP_ROLLED
    for (int first = warp * kNetBlock; first < step.width; first += kBlockThreads / 32 * kNetBlock) {
      const WeightBlock<T>* block = blocks + first / kNetBlock * (step.inputs + std::int64_t{1});
      const T* x = row(step.a.row) + lane * kEach;
      const WeightBlock<T> bias = *block++;
      T sum[kNetBlock][kEach];
      LOCKSTEP_UNROLL
      for (int j = 0; j < kNetBlock; ++j) {
        LOCKSTEP_UNROLL
        for (int s = 0; s < kEach; ++s) sum[j][s] = bias.of[j];
      }
      LOCKSTEP_UNROLL_BY_4
      for (int k = 0; k < step.inputs; ++k, x += kPitch) {
        const WeightBlock<T> w = *block++;
        const Samples value = *reinterpret_cast<const Samples*>(x);
        LOCKSTEP_UNROLL
        for (int j = 0; j < kNetBlock; ++j) {
          LOCKSTEP_UNROLL
          for (int s = 0; s < kEach; ++s) sum[j][s] = L::fma(w.of[j], value.of[s], sum[j][s]);
        }
      }
      T* const out = row(step.out + first) + lane * kEach;
      LOCKSTEP_UNROLL
      for (int j = 0; j < kNetBlock; ++j) {
        if (first + j >= step.width) break;
        Samples made;
        LOCKSTEP_UNROLL
        for (int s = 0; s < kEach; ++s)
          made.of[s] = step.kind == static_cast<int>(ActivationKind::identity)
                           ? sum[j][s]
                           : activate_any(step.kind, sum[j][s], alpha);
        *reinterpret_cast<Samples*>(out + j * kPitch) = made;
      }
    }
  }

  // A thread a sample.
  __device__ void over_features(const GraphStep& step) {
    using graph::ReduceKind;
    using graph::SoftmaxKind;
    const int sample = static_cast<int>(threadIdx.x);
    if (sample >= samples) return;
    const T* const a = row(step.a.row) + sample;
    T* const out = row(step.out) + sample;
    const auto width = static_cast<std::size_t>(step.width);
    const auto from = [&](std::size_t i) { return a[i * kPitch]; };
    const auto made = [&](std::size_t i) { return out[i * kPitch]; };
    const auto put = [&](std::size_t i, T x) { out[i * kPitch] = x; };
    if (step.code == GraphCode::layer_normalise) {
      return on_numbers::layer_normalise_of<L>(width, static_cast<T>(step.numbers[0]), launch_.numbers + step.first,
                                               launch_.numbers + step.second, from, put, made);
    }
    if (step.code == GraphCode::softmax) {
      if (step.kind == static_cast<int>(SoftmaxKind::plain))
        return on_numbers::softmax_of<SoftmaxKind::plain, L>(width, from, put, made);
      return on_numbers::softmax_of<SoftmaxKind::logarithm, L>(width, from, put, made);
    }
    switch (static_cast<ReduceKind>(step.kind)) {
      case ReduceKind::sum:
        return put(0, on_numbers::reduce_of<ReduceKind::sum, L>(width, from));
      case ReduceKind::mean:
        return put(0, on_numbers::reduce_of<ReduceKind::mean, L>(width, from));
      case ReduceKind::minimum:
        return put(0, on_numbers::reduce_of<ReduceKind::minimum, L>(width, from));
      case ReduceKind::maximum:
        return put(0, on_numbers::reduce_of<ReduceKind::maximum, L>(width, from));
    }
  }

  const GraphLaunch<T>& launch_;
  T* values_;
};

// A slot of the workspace that no other block has. There is always one soon: a block that has one is running, and
// waits for nobody.
template <class T>
__device__ int take_slot(const GraphLaunch<T>& launch, unsigned char* shared) {
  int* const mine = reinterpret_cast<int*>(shared);
  if (threadIdx.x == 0) {
    int slot = static_cast<int>(blockIdx.x) % launch.slots;
    while (atomicCAS(launch.taken + slot, 0u, 1u) != 0u) slot = slot + 1 == launch.slots ? 0 : slot + 1;
    __threadfence();
    *mine = slot;
  }
  __syncthreads();
  return *mine;
}
// After a barrier: nobody works there any more.
template <class T>
__device__ void give_back_slot(const GraphLaunch<T>& launch, int slot) {
  if (threadIdx.x != 0) return;
  __threadfence();
  atomicExch(launch.taken + slot, 0u);
}

// One block's work: tiles block, block + blocks, ... `shared`: the head, and the values unless there is a workspace.
template <class T, int samples>
__device__ void evaluate_graph_tiles(const GraphLaunch<T>& launch, unsigned char* shared) {
  const bool in_slot = launch.workspace != nullptr;
  const int slot = in_slot ? take_slot(launch, shared) : 0;
  T* const values =
      in_slot ? launch.workspace + slot * launch.slot_numbers : reinterpret_cast<T*>(shared + kGraphSharedHead);
  GraphTile<T, samples> tile(launch, values);
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * samples;
  LOCKSTEP_ROLLED
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * samples; first < launch.samples; first += stride) {
    const int count = static_cast<int>(launch.samples - first < samples ? launch.samples - first : samples);
    LOCKSTEP_ROLLED
    for (int i = 0; i < launch.input_ports; ++i) tile.load(launch.port[i], first, count);
    __syncthreads();
    LOCKSTEP_ROLLED
    for (int i = 0; i < launch.step_count; ++i) {
      tile.run(launch.steps[i]);
      __syncthreads();
    }
    LOCKSTEP_ROLLED
    for (int i = 0; i < launch.output_ports; ++i) tile.store(launch.port[launch.input_ports + i], first, count);
    __syncthreads();  // nobody writes the next inputs while another still reads
  }
  if (in_slot) give_back_slot(launch, slot);
}

}  // namespace lockstep::cuda
