#include "lockstep/kernels/cuda/device_graph_plan.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/precision.h"
#include "lockstep/kernels/cuda/device_memory.h"
#include "lockstep/kernels/cuda/evaluate_launch.h"
#include "lockstep/kernels/cuda/graph_image.h"
#include "lockstep/kernels/graph/detail/require_ports.h"

namespace lockstep::cuda {
namespace {

// Of the workspace of a net whose values do not fit in shared memory: more slots than this pays for serve nobody.
constexpr std::size_t kMostWorkspace = std::size_t{512} << 20;

[[noreturn]] void refuse_device_graph(std::string field, std::string found, std::string expected, const char* remedy) {
  throw Error(ErrorKind::invalid_argument, {std::move(field), std::move(found), std::move(expected), remedy});
}

template <class T>
void require_addresses(std::span<const MatrixView<const T>> in, const std::vector<graph::Port>& inputs) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i].data == nullptr) {
      refuse_device_graph("in \"" + inputs[i].name + "\".data", "a null pointer", "an address on the device",
                          "give every input");
    }
  }
}

}  // namespace

template <class T>
struct DeviceGraphPlan<T>::Lowered {
  Lowered(EvaluationRuntime& device_runtime, int index, int count)
      : runtime(device_runtime),
        device(index),
        multiprocessors(count),
        steps(runtime, device),
        numbers(runtime, device),
        indices(runtime, device),
        workspace(runtime, device),
        taken(runtime, device) {}

  static constexpr EvaluationMode kMode = sizeof(T) == 8 ? EvaluationMode::graph_f64 : EvaluationMode::graph_f32;

  struct Tile {
    int samples;
    std::size_t shared_bytes;
    std::int64_t most_blocks;  // that the device holds at once
  };

  void upload(const GraphImage<T>& image) {
    launch.steps = steps.upload(image.steps);
    launch.numbers = numbers.upload(image.numbers);
    launch.indices = indices.upload(image.indices);
    launch.step_count = static_cast<std::int32_t>(image.steps.size());
    launch.rows = image.rows;
    launch.input_ports = static_cast<std::int32_t>(image.inputs.size());
    launch.output_ports = static_cast<std::int32_t>(image.outputs.size());
    int port = 0;
    for (const auto* const side : {&image.inputs, &image.outputs}) {
      for (const GraphPortLayout& layout : *side) {
        launch.port[port].row = static_cast<std::int32_t>(layout.row);
        launch.port[port++].width = layout.width;
      }
    }
    bytes = image.numbers.size() * sizeof(T) + image.steps.size() * sizeof(GraphStep);
  }

  // How many blocks with so much shared memory the device holds; 0: none, `failure` may say why.
  std::int64_t blocks_of(int samples, std::size_t shared_bytes) {
    int blocks = 0;
    failure = runtime.prepare(device, kMode, samples, shared_bytes, blocks);
    return failure.empty() ? std::int64_t{blocks} * multiprocessors : 0;
  }

  void add_tiles(bool in_shared_memory) {
    for_each_graph_tile<T>([&]<int samples>() {
      const std::size_t values = in_shared_memory ? graph_tile_bytes<T>(launch.rows, samples) : 0;
      const std::int64_t blocks = blocks_of(samples, kGraphSharedHead + values);
      if (blocks < 1) return;
      // A large tile does not pay where it leaves room for one block only, and a smaller one for two: one computes
      // while the other waits.
      if (!tiles.empty() && tiles.back().most_blocks == multiprocessors && blocks > multiprocessors) {
        tiles.clear();
        sizes.clear();
      }
      sizes.push_back(samples);
      tiles.push_back({samples, kGraphSharedHead + values, blocks});
    });
  }

  void make_workspace() {
    const std::size_t slot = graph_tile_bytes<T>(launch.rows, sizes.front());
    std::int64_t most = 0;
    for (const Tile& tile : tiles) most = std::max(most, tile.most_blocks);
    const std::int64_t slots = std::clamp<std::int64_t>(static_cast<std::int64_t>(kMostWorkspace / slot), 1, most);
    launch.slots = static_cast<std::int32_t>(slots);
    launch.slot_numbers = static_cast<std::int64_t>(slot / sizeof(T));
    launch.workspace = workspace.allocate<T>(slot / sizeof(T) * static_cast<std::size_t>(slots));
    launch.taken = taken.upload(std::vector<unsigned>(static_cast<std::size_t>(slots), 0u));
    for (Tile& tile : tiles) tile.most_blocks = std::min(tile.most_blocks, slots);
    bytes += slot * static_cast<std::size_t>(slots);
  }

  EvaluationRuntime& runtime;
  int device, multiprocessors;
  DeviceMemory steps, numbers, indices, workspace, taken;
  GraphLaunch<T> launch{};
  std::vector<graph::Port> inputs, outputs;
  std::vector<int> sizes;  // samples of a tile, largest first
  std::vector<Tile> tiles;
  std::size_t bytes = 0;
  std::string summary, failure;
};

template <class T>
DeviceGraphPlan<T> DeviceGraphPlan<T>::compile(const graph::Graph& graph, int device) {
  const GraphImage<T> image = make_graph_image<T>(graph);
  int multiprocessors = 0;
  EvaluationRuntime& runtime = require_device(device, multiprocessors);
  auto lowered = std::make_shared<Lowered>(runtime, device, multiprocessors);
  lowered->inputs = graph.inputs;
  lowered->outputs = graph.outputs;
  lowered->summary = image.summary;
  lowered->upload(image);
  lowered->add_tiles(true);
  if (lowered->tiles.empty()) {
    lowered->add_tiles(false);
    if (lowered->tiles.empty())
      refuse_device(device, lowered->failure.empty() ? "no room for a block" : lowered->failure, "use the CPU");
    lowered->make_workspace();
  }
  return DeviceGraphPlan(std::move(lowered));
}

template <class T>
std::span<const graph::Port> DeviceGraphPlan<T>::inputs() const {
  return lowered_->inputs;
}
template <class T>
std::span<const graph::Port> DeviceGraphPlan<T>::outputs() const {
  return lowered_->outputs;
}
template <class T>
int DeviceGraphPlan<T>::device() const {
  return lowered_->device;
}

template <class T>
void DeviceGraphPlan<T>::enqueue(void* stream, std::span<const MatrixView<const T>> in,
                                 std::span<const MatrixView<T>> out) const {
  const Lowered& plan = *lowered_;
  const std::size_t rows = graph::require_shapes(plan.inputs, plan.outputs, in, out);
  if (rows == 0) return;
  require_addresses<T>(in, plan.inputs);
  GraphLaunch<T> launch = plan.launch;
  launch.samples = static_cast<std::int64_t>(rows);
  int port = 0;
  const auto give = [&](T* data, std::ptrdiff_t sample_stride, std::ptrdiff_t feature_stride) {
    launch.port[port].data = data;
    launch.port[port].sample_stride = sample_stride;
    launch.port[port++].feature_stride = feature_stride;
  };
  for (const auto& view : in) give(const_cast<T*>(view.data), view.row_stride, view.column_stride);
  for (const auto& view : out) give(view.data, view.row_stride, view.column_stride);
  const auto& tile = plan.tiles[choose_tile(plan.sizes, launch.samples, plan.multiprocessors)];
  const std::int64_t tiles = (launch.samples + tile.samples - 1) / tile.samples;
  const std::string failure =
      plan.runtime.enqueue(plan.device, stream, Lowered::kMode, tile.samples,
                           static_cast<unsigned>(std::min(tiles, tile.most_blocks)), tile.shared_bytes, &launch);
  if (!failure.empty()) refuse_device(plan.device, failure, "check that the stream belongs to this device");
}

template <class T>
std::string DeviceGraphPlan<T>::description() const {
  const Lowered& plan = *lowered_;
  std::string text = "cuda:" + std::to_string(plan.device) + " " + std::string(to_string(kPrecisionOf<T>)) +
                     " graph, " + plan.summary + ": a block of " + std::to_string(kBlockThreads) +
                     " threads a tile of ";
  for (std::size_t i = 0; i < plan.sizes.size(); ++i) text += (i == 0 ? "" : " or ") + std::to_string(plan.sizes[i]);
  text += " samples, " + std::to_string(plan.launch.rows) + " rows in ";
  text += plan.launch.workspace == nullptr ? "shared memory, " : "global memory, ";
  return text + std::to_string(plan.bytes) + " bytes on the device";
}

template class DeviceGraphPlan<float>;
template class DeviceGraphPlan<double>;

}  // namespace lockstep::cuda
