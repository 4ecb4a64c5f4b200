#include "lockstep/nn/device_net_plan.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/kernels/cuda/block_net.h"
#include "lockstep/kernels/cuda/device_graph_plan.h"
#include "lockstep/kernels/cuda/device_plan.h"

namespace lockstep::nn {
namespace {

// What DevicePlan takes, for a model that is a stack.
bool fits_a_block(const Mlp& mlp) {
  const auto narrow = [](const DenseLayer& layer) {
    return std::max(layer.inputs, layer.outputs) <= cuda::kMostBlockWidth;
  };
  return mlp.layers.size() <= cuda::kMostLayers && std::all_of(mlp.layers.begin(), mlp.layers.end(), narrow);
}

void require_one(const char* field, std::size_t found, std::size_t expected) {
  if (found == expected) return;
  throw Error(ErrorKind::invalid_argument, {field, std::to_string(found), std::to_string(expected),
                                            "give one view for each port, in the order of the plan's ports"});
}

}  // namespace

template <class T>
struct DeviceNetPlan<T>::Lowered {
  std::optional<cuda::DevicePlan<T>> stack;  // one of the two
  std::optional<cuda::DeviceGraphPlan<T>> graph;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
};

template <class T>
DeviceNetPlan<T> DeviceNetPlan<T>::compile(const Model& model, int device, MatrixPrecision matrices) {
  const StandardArithmetic arithmetic;
  auto lowered = std::make_shared<Lowered>();
  const graph::Graph graph = to_graph(model);
  std::optional<Mlp> mlp;
  if (is_stack(model)) mlp = to_mlp(model);
  if (mlp && fits_a_block(*mlp)) {
    lowered->stack = cuda::DevicePlan<T>::compile(*mlp, device, matrices);
  } else if (matrices != MatrixPrecision::f32) {
    throw Error(
        ErrorKind::unsupported,
        {"matrices", std::string(to_string(matrices)) + " for " + (mlp ? "a wide or deep" : "no plain") + " stack",
         "f32, but for plain stacks up to " + std::to_string(cuda::kMostBlockWidth) + " wide",
         "leave matrices at f32"});
  } else {
    lowered->graph = cuda::DeviceGraphPlan<T>::compile(graph, device);
  }
  for (const nn::Port& port : model.inputs) lowered->inputs.push_back({port.name, port.features.size()});
  for (const nn::Port& port : model.outputs) lowered->outputs.push_back({port.name, port.features.size()});
  return DeviceNetPlan(std::move(lowered));
}

template <class T>
std::span<const typename DeviceNetPlan<T>::Port> DeviceNetPlan<T>::inputs() const {
  return lowered_->inputs;
}

template <class T>
std::span<const typename DeviceNetPlan<T>::Port> DeviceNetPlan<T>::outputs() const {
  return lowered_->outputs;
}

template <class T>
int DeviceNetPlan<T>::device() const {
  return lowered_->stack ? lowered_->stack->device() : lowered_->graph->device();
}

template <class T>
void DeviceNetPlan<T>::enqueue(void* stream, std::span<const MatrixView<const T>> in,
                               std::span<const MatrixView<T>> out) const {
  if (!lowered_->stack) return lowered_->graph->enqueue(stream, in, out);
  require_one("in views", in.size(), 1);
  require_one("out views", out.size(), 1);
  lowered_->stack->enqueue(stream, in[0], out[0]);
}

template <class T>
void DeviceNetPlan<T>::enqueue(void* stream, MatrixView<const T> in, MatrixView<T> out) const {
  enqueue(stream, std::span(&in, 1), std::span(&out, 1));
}

template <class T>
std::string DeviceNetPlan<T>::description() const {
  return lowered_->stack ? lowered_->stack->description() : lowered_->graph->description();
}

template class DeviceNetPlan<float>;
template class DeviceNetPlan<double>;

}  // namespace lockstep::nn
