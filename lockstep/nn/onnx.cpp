#include "lockstep/nn/onnx.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "lockstep/core/error.h"
#include "lockstep/core/hash.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/nn/detail/input_scaling.h"
#include "lockstep/nn/detail/onnx_graph.h"
#include "lockstep/nn/detail/onnx_kept.h"
#include "lockstep/nn/detail/read_bytes.h"
#include "lockstep/nn/detail/refuse.h"
#include "lockstep/nn/detail/stack_ports.h"

namespace lockstep::nn {
namespace {

using detail::refuse;
using detail::Step;
using detail::StepGraph;
using detail::StepKind;

// x * factor + term, one of each a feature; empty vectors are ones and zeros.
struct Affine {
  std::vector<double> factor, term;
  std::vector<std::string> places;

  bool empty() const { return places.empty(); }
  void append(const Step& step, std::size_t width) {
    if (step.constant.size() != 1 && step.constant.size() != width) {
      refuse(step.where, std::to_string(step.constant.size()) + " constants",
             "1 or " + std::to_string(width) + ", the width of what it reads");
    }
    if (factor.empty()) {
      factor.assign(width, 1.0);
      term.assign(width, 0.0);
    }
    for (std::size_t i = 0; i < width; ++i) {
      const double c = step.constant[step.constant.size() == 1 ? 0 : i];
      switch (step.kind) {
        case StepKind::add:
          term[i] += c;
          break;
        case StepKind::multiply:
          factor[i] *= c;
          term[i] *= c;
          break;
        default:
          factor[i] /= c;
          term[i] /= c;
          break;
      }
    }
    places.push_back(step.where);
  }
};

// The steps from the input to the output where they are a chain; nothing where branches, ports or operations say no.
std::optional<std::vector<const Step*>> chain_of(const StepGraph& graph) {
  if (graph.inputs.size() != 1 || graph.outputs.size() != 1) return {};
  std::vector<const Step*> chain;
  std::size_t i = graph.outputs[0].step;
  for (; graph.steps[i].kind != StepKind::input; i = graph.steps[i].from[0]) {
    if (!detail::may_stand_in_stack(graph.steps[i])) return {};
    chain.push_back(&graph.steps[i]);
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

std::size_t input_width(const StepGraph& graph, const std::vector<const Step*>& chain) {
  for (const Step* step : chain) {
    if (step->kind == StepKind::dense) return step->dense.inputs;
    if (step->constant.size() > 1) return step->constant.size();
  }
  return graph.steps[graph.inputs[0].step].width;
}

class StackBuilder {
 public:
  StackBuilder(std::size_t width, std::vector<std::string>& notes) : width_(width), notes_(notes) {}

  // Nothing where the chain is no stack: no layer, an activation that follows none.
  std::optional<Mlp> build(const std::vector<const Step*>& chain) {
    for (const Step* step : chain) {
      if (!append(*step)) return {};
    }
    if (mlp_.layers.empty()) return {};
    if (!affine_.empty()) mlp_.output_scaling = {affine_.factor, affine_.term};
    return std::move(mlp_);
  }

 private:
  bool append(const Step& step) {
    if (step.kind == StepKind::dense) {
      append_dense(step);
      return true;
    }
    if (step.kind == StepKind::activation) return append_activation(step);
    if (width_ == 1 && !fits(step)) return false;  // one feature becomes many
    if (mlp_.layers.empty() && keeps_input_scaling(step)) return true;
    if (step.kind == StepKind::add && affine_.empty() && bias_open_ && fits(step)) {
      for (std::size_t j = 0; j < width_; ++j) {  // steps before the layer may have left a term there
        double& bias = mlp_.layers.back().bias[j];
        bias = bias == 0 ? at(step, j) : bias + at(step, j);
      }
      mlp_.layers.back().has_bias = true;
      bias_open_ = false;
      return true;
    }
    affine_.append(step, width_);
    return true;
  }

  bool fits(const Step& step) const { return step.constant.size() == 1 || step.constant.size() == width_; }
  static double at(const Step& step, std::size_t i) { return step.constant[step.constant.size() == 1 ? 0 : i]; }

  // First an Add or Sub, then a Div: (x - shift) / scale as it stands.
  bool keeps_input_scaling(const Step& step) {
    InputScaling& scaling = mlp_.input_scaling;
    if (!affine_.empty() || !fits(step) || !scaling.scale.empty()) return false;
    if (step.kind == StepKind::add && scaling.shift.empty()) {
      for (std::size_t i = 0; i < width_; ++i) scaling.shift.push_back(-at(step, i));
      return true;
    }
    if (step.kind == StepKind::divide) {
      for (std::size_t i = 0; i < width_; ++i) scaling.scale.push_back(at(step, i));
      return true;
    }
    return false;
  }

  // f x + t before the first layer is (x - shift) / scale there too.
  void move_to_input_scaling(DenseLayer& layer) {
    InputScaling& scaling = mlp_.input_scaling;
    if (!scaling.shift.empty()) return;
    std::vector<double> scale;
    for (std::size_t k = 0; k < width_; ++k)
      scale.push_back((scaling.scale.empty() ? 1 : scaling.scale[k]) / affine_.factor[k]);
    auto made = detail::as_input_scaling(std::move(scale), affine_.term, layer.weights, layer.bias);
    if (!made) return;
    scaling = std::move(*made);
    note("into the scaling of the inputs");
  }

  void append_dense(const Step& step) {
    DenseLayer layer{step.dense.inputs, step.dense.outputs, step.dense.weights, step.dense.bias, {}, step.has_bias};
    if (layer.inputs != width_) {
      refuse(step.where, std::to_string(layer.inputs) + " inputs",
             std::to_string(width_) + ", the width of what it reads");
    }
    if (mlp_.layers.empty() && !affine_.empty()) move_to_input_scaling(layer);
    if (!affine_.empty()) {  // W (f x + t) + b
      for (std::size_t j = 0; j < layer.outputs; ++j) {
        for (std::size_t k = 0; k < layer.inputs; ++k) {
          double& weight = layer.weights[j * layer.inputs + k];
          layer.bias[j] += weight * affine_.term[k];
          weight *= affine_.factor[k];
        }
      }
      note("into the weights of " + step.where);
    }
    width_ = layer.outputs;
    bias_open_ = !step.has_bias;
    mlp_.layers.push_back(std::move(layer));
    last_dense_ = step.where;
  }

  bool append_activation(const Step& step) {
    if (mlp_.layers.empty() || mlp_.layers.back().activation.kind != ActivationKind::identity) return false;
    DenseLayer& layer = mlp_.layers.back();
    if (!affine_.empty()) {  // f (W x + b) + t
      for (std::size_t j = 0; j < layer.outputs; ++j) {
        for (std::size_t k = 0; k < layer.inputs; ++k) layer.weights[j * layer.inputs + k] *= affine_.factor[j];
        layer.bias[j] = layer.bias[j] * affine_.factor[j] + affine_.term[j];
      }
      note("into the weights of " + last_dense_);
    }
    layer.activation = step.activation;
    bias_open_ = false;
    return true;
  }

  void note(const std::string& what) {
    // BatchNormalization is two steps from one place.
    const auto last = std::unique(affine_.places.begin(), affine_.places.end());
    for (auto place = affine_.places.begin(); place != last; ++place) notes_.push_back(*place + " went " + what);
    affine_ = {};
  }

  std::size_t width_;
  std::vector<std::string>& notes_;
  Mlp mlp_;
  Affine affine_;           // steps not yet placed
  bool bias_open_ = false;  // the last layer came without a bias, and nothing followed it yet
  std::string last_dense_;
};

std::optional<Mlp> stack_of(const StepGraph& graph, const std::filesystem::path& path,
                            std::vector<std::string>& notes) {
  const auto chain = chain_of(graph);
  if (!chain) return {};
  const std::size_t width = input_width(graph, *chain), declared = graph.steps[graph.inputs[0].step].width;
  if (declared != 0 && width > 0 && declared != width && declared != 1) {
    refuse(path.string() + ": input \"" + graph.inputs[0].name + '"', std::to_string(declared) + " features",
           std::to_string(width) + ", what the first layer reads");
  }
  return StackBuilder(declared == 1 ? declared : width, notes).build(*chain);
}

onnx::ModelProto parse(std::span<const std::byte> bytes, const std::string& source) {
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    refuse(source, std::to_string(bytes.size()) + " bytes", "at most 2 GiB, the limit of protobuf");
  }
  onnx::ModelProto model;
  if (!model.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())) || !model.has_graph()) {
    refuse(source, "bytes that are no ONNX model, or a truncated one", "an ONNX file", "export or copy it again");
  }
  return model;
}

// What the file's operators make, and what reading changed beside copying numbers.
Model model_from_steps(const onnx::ModelProto& file, const std::filesystem::path& path, UnreadableOutputs unreadable) {
  const StepGraph graph = detail::read_steps(file, path, unreadable);
  std::vector<std::string> notes;
  Model model;
  if (auto stack = stack_of(graph, path, notes)) {
    model = Model::from_mlp(*stack);
    const std::string& input = graph.inputs[0].name;  // which may be no node's: these have names of ours
    const bool free = std::ranges::none_of(model.nodes, [&](const Node& node) { return node.name == input; });
    detail::name_ports(model, free ? input : "", graph.outputs[0].name);
  } else {
    notes.clear();
    model = detail::model_of(graph);
  }
  model.name = file.graph().name();
  model.weight_type = graph.weight_type;
  model.provenance.format = "ONNX, opset " + std::to_string(graph.opset);
  const std::string prefix = path.string() + ": ";
  for (std::string& note : notes) {
    for (std::size_t at = note.find(prefix); at != std::string::npos; at = note.find(prefix, at)) {
      note.erase(at, prefix.size());
    }
  }
  model.provenance.notes = std::move(notes);
  model.provenance.left_out = graph.left_out;
  return model;
}

}  // namespace

Model read_onnx(const std::filesystem::path& path, UnreadableOutputs unreadable) {
  return read_onnx(detail::read_bytes(path), path, unreadable);
}

Model read_onnx(std::span<const std::byte> bytes, const std::filesystem::path& path, UnreadableOutputs unreadable) {
  const StandardReading arithmetic;
  const onnx::ModelProto file = parse(bytes, path.string());
  Model model;
  if (auto written = detail::as_written(file, path)) {
    model = std::move(*written);
    model.provenance.format = "ONNX, opset " + std::to_string(detail::kWrittenOpset);
  } else {
    model = model_from_steps(file, path, unreadable);
  }
  model.provenance.source = path.string();
  model.provenance.digest = content_digest(bytes);
  model.provenance.producer = file.producer_name();
  if (!file.producer_version().empty()) model.provenance.producer += " " + file.producer_version();
  detail::take_from_metadata(file, model);
  model.validate();
  return model;
}

}  // namespace lockstep::nn
