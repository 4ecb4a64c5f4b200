// The parts an exported header is put together from. `$`, `@` and `~` as in c_lane.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/kernels/graph/graph.h"
#include "lockstep/kernels/mlp/mlp.h"
#include "lockstep/nn/export.h"

namespace lockstep::nn::detail {

// One dense layer as both languages see it.
struct HeaderLayer {
  std::size_t inputs = 0, outputs = 0;
  std::size_t block = 0;         // outputs that lie together in the weights: 4, 8 or 16
  std::size_t first_weight = 0;  // where its weights begin
  std::string function;          // its activation's name in the text, empty for none
  // Of graphs, where derivatives multiply by one layer's weights again and again: the layer whose weights it reads,
  // with its biases or from zero, and the one whose functions it calls; itself, or an earlier one.
  std::size_t weights_of = 0, functions_of = 0;
  bool starts_at_zero = false;
  std::size_t calls = 0;  // of its functions, by all steps
  std::size_t padded() const { return (outputs + block - 1) / block * block; }
};

// A port of a net that is no plain stack.
struct HeaderPort {
  std::string parameter;  // the functions' name for it: "in_state", or "in" where it is the only one
  std::string port;       // as the model calls it
  std::size_t width = 0;
  std::size_t row = 0;    // of the values, where it is loaded or stored
  bool is_needed = true;  // input ports that nothing reads are not loaded
};
// One function's call: of a layer, or of a node by its number in the graph.
struct HeaderStep {
  std::size_t layer = kNoLayer;
  std::size_t node = 0;
  std::size_t function_of = 0;     // the node whose function it calls: itself, or an earlier one that does the same
  std::size_t calls = 0;           // of its own function, by all steps
  std::vector<std::size_t> reads;  // rows
  std::size_t makes = 0;           // row
  static constexpr std::size_t kNoLayer = ~std::size_t(0);
};
struct HeaderGraph {
  graph::Graph graph;
  std::vector<HeaderPort> inputs, outputs;
  std::vector<HeaderStep> steps;
  std::size_t rows = 0;     // that hold values, a number a sample each
  bool has_angles = false;  // sine or cosine
};

struct HeaderPlan {
  Mlp mlp;  // scaling filled where one of its two vectors is given; of a graph, its layers alone
  HeaderOptions options;
  std::vector<HeaderLayer> layers;
  std::size_t widest = 0;                                     // numbers a layer reads or writes, whole blocks counted
  std::vector<std::pair<std::string, Activation>> functions;  // distinct activations and their names
  std::optional<HeaderGraph> graph;                           // of nets that are no plain stack
  std::size_t weight_count = 0;                               // of all layers, padding counted

  bool has_float() const { return options.numbers == HeaderNumbers::float_and_double; }

  // Appends `layer`, with its place among the weights and its activation's name, which is new or known.
  void add_layer(const DenseLayer& layer);
  std::string function_name(const Activation& activation);  // empty for identity
};

// How a function of CUDA that has so many callers is declared. One of a few is a part of each: a Jacobian's, with some
// thirty, took nvcc minutes as parts.
constexpr const char* cuda_call(std::size_t calls) { return calls > 2 ? "@SHARED_CALL" : "@CALL"; }

// Replaces every {KEY} of the text by its value.
using TextValues = std::map<std::string, std::string>;
std::string fill(std::string_view text, const TextValues& values);
// Every `mark` becomes `by`.
std::string replaced(std::string_view text, char mark, std::string_view by);

// "{1.0f, 2.0f, ...}", over several lines. T is float or double.
template <class T>
std::string initialiser(const std::vector<double>& numbers);

// Elementary operations on T: products, bits, and so on; `~` is left in.
template <class T>
std::string functions_text(const HeaderPlan& plan);
// Angles far from 0, for sine; after the operations.
std::string reduce_angle_text(const HeaderPlan& plan);
// The activations named in plan.functions; `~` is left in.
template <class T>
std::string activations_text(const HeaderPlan& plan);
// The scaling of inputs and outputs; `~` is left in.
template <class T>
std::string scalings_text(const HeaderPlan& plan);

// The functions of a layer: of one sample and of a tile in C, `~` left in; of a thread and of a group in CUDA.
template <class T>
std::string c_layer_text(const HeaderPlan& plan, std::size_t layer);
std::string cuda_layer_text(const HeaderPlan& plan, std::size_t layer);
// What T may be of CUDA's functions, for people and as a line of each function.
inline std::string_view types_text(const HeaderPlan& plan) { return plan.has_float() ? "float or double" : "double"; }
inline std::string_view required_type_text(const HeaderPlan& plan) {
  return plan.has_float() ? "" : "  static_assert(sizeof(T) == sizeof(double), \"this header is for double alone\");\n";
}
// What CUDA's layers call, and the groups of a warp and a block.
std::string_view cuda_blocks_text();
std::string_view cuda_groups_text();

// The evaluating functions, of the precisions that the header has.
std::string c_evaluation_text(const HeaderPlan& plan);
std::string cuda_evaluation_text(const HeaderPlan& plan);

// `$check`, which evaluates a sample alone, for which the numbers are known, and samples together. The numbers are of
// all ports, one after another; what is not finite is 0 there. `out32` is empty of headers without float.
std::string check_text(const HeaderPlan& plan, const std::vector<double>& in, const std::vector<double>& out32,
                       const std::vector<double>& out64);

}  // namespace lockstep::nn::detail
