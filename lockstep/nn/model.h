// What a trained net is: a small graph of named vectors, the numbers in it, and what is known about its ports.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/kernels/activation.h"
#include "lockstep/kernels/mlp/mlp.h"

namespace lockstep::nn {

// The operations a node may perform. Numbers are held as float64, which is exact for every smaller format.

struct Dense {  // W x + b
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  std::vector<double> weights;  // [output][input]
  std::vector<double> bias;     // [output]
};
struct Activate {  // the function on each element
  Activation activation;
};
struct Standardise {  // (x - shift) / scale, element by element: one subtraction, one division
  std::vector<double> shift;
  std::vector<double> scale;
};
struct Rescale {  // fma(x, scale, shift), element by element
  std::vector<double> scale;
  std::vector<double> shift;
};
using Operation = std::variant<Dense, Activate, Standardise, Rescale>;

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
};

// Plain host data: edit it freely, then validate().
struct Model {
  std::string name;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<Node> nodes;  // in the order of computing
  WeightType weight_type = WeightType::f64;
  Provenance provenance;
  std::map<std::string, std::string> metadata;  // whatever else the file said

  // A plain stack: ports "x" and "y", nodes "input_scaling", then "layers.0", "layers.0.activation" (identities are
  // left out), ..., "output_scaling". layer_names replaces "layers.N".
  static Model from_mlp(const Mlp& mlp, std::span<const std::string> layer_names = {});

  std::size_t parameter_count() const;  // weights and biases
  // Throws Error (model) naming the node or port when names clash or are missing, sizes do not fit together, a
  // number is not finite, a scale is zero, or a range is empty.
  void validate() const;
  // 32 hexadecimal digits over all that decides the outputs: operations, numbers, order of ports. Equal for models
  // that compute the same in the same way, whatever their names and files.
  std::string digest() const;
};

// The model as a stack of dense layers with scaling around it. Throws Error (unsupported) naming the first node that
// does not fit into one: branches, several ports, activations that follow no dense layer.
Mlp to_mlp(const Model& model);

}  // namespace lockstep::nn
