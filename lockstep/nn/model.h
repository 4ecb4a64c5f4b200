// What a trained net is: a small graph of named vectors, the numbers in it, and what is known about its ports.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/kernels/graph/graph.h"
#include "lockstep/kernels/mlp/mlp.h"

namespace lockstep::nn {

// What a node may compute: see the header for each. Numbers are held as float64, exact for every smaller format.
using graph::Activate;
using graph::Binary;
using graph::BinaryKind;
using graph::Chain;
using graph::Choose;
using graph::Clip;
using graph::Columns;
using graph::Concatenate;
using graph::Constant;
using graph::DeadZone;
using graph::Dense;
using graph::Interpolate;
using graph::LayerNormalise;
using graph::Operation;
using graph::Reduce;
using graph::ReduceKind;
using graph::Rescale;
using graph::Select;
using graph::Softmax;
using graph::SoftmaxKind;
using graph::Standardise;
using graph::Unary;
using graph::UnaryKind;

// Makes one value, known by the node's name, from values made before it.
struct Node {
  std::string name;
  Operation operation;
  std::vector<std::string> inputs;  // names of input ports or earlier nodes
};

// One component of a port, as the people who trained the net spoke of it.
struct Feature {
  std::string name;  // may be empty
  std::string unit;  // may be empty
  // The range the training data covered: outside it the net's answer means nothing.
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
};

struct Port {
  std::string name;
  std::string value;  // output ports: the input port or node it shows; input ports: not read
  std::vector<Feature> features;
};

// A call of a net by the equations that a model was made of, and what that net was trained on.
struct GuardedCall {
  std::string net;   // what the equations call it: "drag"; "closure.drag" of a net that is equations itself
  std::string name;  // the call's own nodes are called "NAME.layers.0": "drag", "drag#2" of its second call
  // The net's input ports. `value` is what the call reads, an input port or a node; features are named after the
  // arguments, "v^2", and have the units and ranges of the net's.
  std::vector<Port> inputs;
};

// How the numbers were stored where they came from.
enum class WeightType { f16, bf16, f32, f64 };
std::string to_string(WeightType type);

struct Provenance {
  std::string source;    // file name as given
  std::string format;    // "safetensors", "lockstep HDF5"
  std::string digest;    // of the source file's bytes: content_digest()
  std::string producer;  // the program that trained or wrote it
  std::string licence;
  std::string attribution;
  std::vector<std::string> notes;  // what reading changed beside copying numbers; not stored
  // Outputs of the file that the model has not, and why: `output "label": int64, and node ...`; not stored.
  std::vector<std::string> left_out;
};

// Plain host data: edit it freely, then validate().
struct Model {
  std::string name;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<Node> nodes;         // in the order of computing
  std::vector<GuardedCall> calls;  // of nets with training ranges, where the model was made of equations
  WeightType weight_type = WeightType::f64;
  Provenance provenance;
  std::map<std::string, std::string> metadata;  // whatever else the file said

  // A plain stack: ports "x" and "y", nodes "input_scaling", then "layers.0", "layers.0.activation" (identities are
  // left out), ..., "output_scaling". layer_names replaces "layers.N".
  static Model from_mlp(const Mlp& mlp, std::span<const std::string> layer_names = {});

  // Weights and biases, as many as graph::gather_weights() gives: those of a layer that stands several times each time,
  // and the zeros of a layer without a bias. SharedWeights says how many of them a training moves.
  std::size_t weight_count() const;
  // These, and scales and shifts of layer normalisations.
  std::size_t parameter_count() const;
  // Throws Error (model) naming the node or port when names clash or are missing, sizes do not fit together, a
  // number is not finite, a scale is zero, or a range is empty; likewise the call.
  void validate() const;
  // 32 hexadecimal digits over all that decides the outputs: operations, numbers, order of ports. Equal for models
  // that compute the same in the same way, whatever their names and files.
  std::string digest() const;
};

// The model with numbers for names, as the kernels and ode::net() take it. Throws Error (model) when it is invalid.
graph::Graph to_graph(const Model& model);

// Is the model a plain stack, which to_mlp() takes?
bool is_stack(const Model& model);
// That stack, or nothing: both in one, where each copies all numbers.
std::optional<Mlp> as_stack(const Model& model);

// The model as a stack of dense layers with scaling around it. Throws Error (unsupported) naming the first node that
// does not fit into one: branches, several ports, activations that follow no dense layer.
Mlp to_mlp(const Model& model);

}  // namespace lockstep::nn
