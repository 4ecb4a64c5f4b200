#include "lockstep/kernels/cuda/device_plan.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/matrix_overlap.h"
#include "lockstep/core/precision.h"
#include "lockstep/kernels/cuda/component.h"
#include "lockstep/kernels/cuda/device_memory.h"
#include "lockstep/kernels/cuda/evaluate_launch.h"
#include "lockstep/kernels/cuda/tensor_launch.h"

namespace lockstep::cuda {
namespace {

EvaluationRuntime* replacement = nullptr;

void require(bool good, const char* field, std::size_t found, std::size_t expected, const char* remedy) {
  if (good) return;
  throw Error(ErrorKind::invalid_argument,
              {.field = field, .found = std::to_string(found), .expected = std::to_string(expected), .remedy = remedy});
}

}  // namespace

EvaluationRuntime* load_evaluation_runtime(std::string& missing) {
  if (replacement != nullptr) return replacement;
  missing = component().missing;
  if (!missing.empty()) return nullptr;
  const auto entry = reinterpret_cast<EvaluationEntry>(component_entry(kEvaluationEntry));
  EvaluationRuntime* const runtime = entry == nullptr ? nullptr : entry(kEvaluationVersion);
  if (runtime == nullptr) missing = "liblockstep_cuda.so is of another version of Lockstep";
  return runtime;
}

void replace_evaluation_runtime(EvaluationRuntime* other) { replacement = other; }

template <class T>
struct DevicePlan<T>::Lowered {
  Lowered(EvaluationRuntime& device_runtime, int index, MatrixPrecision precision)
      : runtime(device_runtime),
        device(index),
        matrices(precision),
        weights(runtime, device),
        resident(runtime, device) {}

  struct Tile {
    int samples;
    std::size_t shared_bytes;
    std::int64_t most_blocks;  // that the device holds at once
    TensorLayout layout;       // of modes of tensor cores
    EvaluationMode mode;
  };

  bool on_tensor_cores() const { return matrices != MatrixPrecision::f32; }
  EvaluationMode mode(const TensorLayout& layout) const {
    const bool shared = layout.weight_bytes > 0;
    switch (matrices) {
      case MatrixPrecision::tf32:
        return shared ? EvaluationMode::tf32_shared : EvaluationMode::tf32;
      case MatrixPrecision::bf16:
        return shared ? EvaluationMode::bf16_shared : EvaluationMode::bf16;
      case MatrixPrecision::fp16:
        return shared ? EvaluationMode::fp16_shared : EvaluationMode::fp16;
      default:
        return sizeof(T) == 8 ? EvaluationMode::f64 : EvaluationMode::f32;
    }
  }

  // How many blocks of so much shared memory a multiprocessor holds; 0: none, `failure` may say why.
  int blocks_of(int samples, std::size_t shared_bytes, const TensorLayout& layout) {
    int blocks = 0;
    failure = runtime.prepare(device, mode(layout), samples, shared_bytes, blocks);
    return failure.empty() ? blocks : 0;
  }
  void add_tile(int samples, std::size_t shared_bytes, int blocks, const TensorLayout& layout) {
    if (blocks < 1) return;  // more shared memory than this device has
    sizes.push_back(samples);
    tiles.push_back({samples, shared_bytes, std::int64_t{blocks} * multiprocessors, layout, mode(layout)});
  }
  void lower(const Mlp& mlp);
  template <class Format>
  void lower_for_tensor_cores(const Mlp& mlp);

  EvaluationRuntime& runtime;
  int device;
  MatrixPrecision matrices;
  int multiprocessors = 0;
  DeviceMemory weights, resident;
  EvaluateLaunch<T> launch{};
  const void* fragments = nullptr;  // of TensorLaunch
  std::vector<int> sizes;           // samples of a tile, largest first
  std::vector<Tile> tiles;
  std::size_t bytes = 0;
  std::string failure;
};

template <class T>
void DevicePlan<T>::Lowered::lower(const Mlp& mlp) {
  BlockWeights<T> packed;
  launch.net = packed.add(mlp);
  launch.chunks = weights.upload(packed.chunks);
  launch.resident = resident.upload(packed.resident);
  launch.resident_numbers = static_cast<std::int32_t>(packed.resident.size());
  bytes = (packed.chunks.size() + packed.resident.size()) * sizeof(T);
  for (const int size : tile_sizes<T>(launch.net)) {
    const std::size_t shared = evaluate_shared_bytes(launch, size);
    add_tile(size, shared, blocks_of(size, shared, {}), {});
  }
}

template <class T>
template <class Format>
void DevicePlan<T>::Lowered::lower_for_tensor_cores(const Mlp& mlp) {
  if constexpr (sizeof(T) == 4) {
    TensorWeights<Format> packed;
    launch.net = packed.add(mlp);
    fragments = weights.upload(packed.words);
    launch.resident = resident.upload(packed.resident);
    launch.resident_numbers = static_cast<std::int32_t>(packed.resident.size());
    bytes = packed.words.size() * sizeof(std::uint32_t) + packed.resident.size() * sizeof(float);
    const bool by_warps = fits_warps<Format>(launch.net);
    for (const int size : by_warps ? std::span<const int>(&kWarpTile, 1) : std::span(kTensorTiles)) {
      TensorLayout layout = tensor_layout<Format>(&launch.net, 1, size, packed.resident.size());
      const int apart = blocks_of(size, layout.shared_bytes(), layout);
      // A multiprocessor wants two blocks, one computing while the other waits, more than it wants the weights in
      // shared memory: the cache has them, too.
      layout.weight_bytes = static_cast<std::int32_t>(packed.words.size() * sizeof(std::uint32_t));
      int blocks = blocks_of(size, layout.shared_bytes(), layout);
      if (blocks < std::min(apart, 2)) {
        layout.weight_bytes = 0;
        blocks = apart;
      }
      // Nor does a large tile pay where it leaves room for one block only, and a smaller one for two.
      if (blocks > 1 && !tiles.empty() && tiles.back().most_blocks == multiprocessors) {
        tiles.clear();
        sizes.clear();
      }
      add_tile(size, layout.shared_bytes(), blocks, layout);
    }
  }
}

template <class T>
DevicePlan<T> DevicePlan<T>::compile(const Mlp& mlp, int device, MatrixPrecision matrices) {
  mlp.validate();
  if (sizeof(T) == 8 && matrices != MatrixPrecision::f32) {
    throw Error(ErrorKind::invalid_argument, {.field = "matrices",
                                              .found = std::string(to_string(matrices)) + " with float64",
                                              .expected = "f32 with float64",
                                              .remedy = "compile a DevicePlan<float>, or leave matrices at f32"});
  }
  int multiprocessors = 0;
  EvaluationRuntime& runtime = require_device(device, multiprocessors);
  auto lowered = std::make_shared<Lowered>(runtime, device, matrices);
  lowered->multiprocessors = multiprocessors;
  switch (matrices) {
    case MatrixPrecision::f32:
      lowered->lower(mlp);
      break;
    case MatrixPrecision::tf32:
      lowered->template lower_for_tensor_cores<Tf32>(mlp);
      break;
    case MatrixPrecision::bf16:
      lowered->template lower_for_tensor_cores<Bf16>(mlp);
      break;
    case MatrixPrecision::fp16:
      lowered->template lower_for_tensor_cores<Fp16>(mlp);
      break;
  }
  if (lowered->tiles.empty())
    refuse_device(device, lowered->failure.empty() ? "too little shared memory" : lowered->failure, "use the CPU");
  return DevicePlan(std::move(lowered));
}

template <class T>
std::size_t DevicePlan<T>::inputs() const {
  return static_cast<std::size_t>(lowered_->launch.net.inputs);
}
template <class T>
std::size_t DevicePlan<T>::outputs() const {
  return static_cast<std::size_t>(lowered_->launch.net.outputs);
}
template <class T>
int DevicePlan<T>::device() const {
  return lowered_->device;
}

template <class T>
MatrixPrecision DevicePlan<T>::matrices() const {
  return lowered_->matrices;
}

template <class T>
void DevicePlan<T>::enqueue(void* stream, MatrixView<const T> in, MatrixView<T> out) const {
  require(in.columns == inputs(), "in.columns", in.columns, inputs(), "give one column an input of the net");
  require(out.columns == outputs(), "out.columns", out.columns, outputs(), "give one column an output of the net");
  require(in.rows == out.rows, "out.rows", out.rows, in.rows, "give as many rows as in has");
  if (in.rows == 0) return;
  if (!has_own_places(out)) refuse_shared_places("out", places_of(out));
  if (!may_write_beside(out, in)) refuse_overlap("out", places_of(out), "in", places_of(in));
  EvaluateLaunch<T> launch = lowered_->launch;
  launch.samples = static_cast<std::int64_t>(in.rows);
  launch.in = in.data;
  launch.in_row_stride = in.row_stride;
  launch.in_column_stride = in.column_stride;
  launch.out = out.data;
  launch.out_row_stride = out.row_stride;
  launch.out_column_stride = out.column_stride;
  const auto& tile = lowered_->tiles[choose_tile(lowered_->sizes, launch.samples, lowered_->multiprocessors)];
  const std::int64_t tiles = (launch.samples + tile.samples - 1) / tile.samples;
  const auto queue = [&](const void* arguments) {
    return lowered_->runtime.enqueue(lowered_->device, stream, tile.mode, tile.samples,
                                     static_cast<unsigned>(std::min(tiles, tile.most_blocks)), tile.shared_bytes,
                                     arguments);
  };
  std::string failure;
  if (!lowered_->on_tensor_cores()) failure = queue(&launch);
  if constexpr (sizeof(T) == 4) {
    const TensorLaunch on_tensor_cores{launch, tile.layout, lowered_->fragments};
    if (lowered_->on_tensor_cores()) failure = queue(&on_tensor_cores);
  }
  if (!failure.empty()) refuse_device(lowered_->device, failure, "check that the stream belongs to this device");
}

template <class T>
std::string DevicePlan<T>::description() const {
  std::string text = "cuda:" + std::to_string(lowered_->device) + " " + std::string(to_string(kPrecisionOf<T>)) +
                     (lowered_->on_tensor_cores() ? " by " + std::string(to_string(matrices())) : "") + " mlp " +
                     std::to_string(inputs());
  for (int i = 0; i < lowered_->launch.net.layers; ++i)
    text += "-" + std::to_string(lowered_->launch.net.layer[i].outputs);
  const bool by_warps = lowered_->sizes.front() <= kMostWarpSamples;
  text += by_warps ? ": a warp a tile of " : ": a block of " + std::to_string(kBlockThreads) + " threads a tile of ";
  for (std::size_t i = 0; i < lowered_->sizes.size(); ++i)
    text += (i == 0 ? "" : " or ") + std::to_string(lowered_->sizes[i]);
  return text + " samples, " + std::to_string(lowered_->bytes) + " bytes packed";
}

template class DevicePlan<float>;
template class DevicePlan<double>;

}  // namespace lockstep::cuda
