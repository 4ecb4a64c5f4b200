#include "lockstep/nn/detail/onnx_graph.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <variant>

#include "lockstep/core/error.h"
#include "lockstep/nn/detail/onnx_node.h"
#include "lockstep/nn/detail/onnx_steps.h"
#include "lockstep/nn/detail/onnx_tensor.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {
namespace {

constexpr std::int64_t kOldestOpset = 7;   // before it, broadcasting was an attribute
constexpr std::int64_t kNewestOpset = 25;  // of ONNX 1.20; a later one may mean something else

const std::map<std::string_view, ActivationKind>& plain_activations() {
  using Kind = ActivationKind;
  static const std::map<std::string_view, Kind> kinds{{"Relu", Kind::relu},         {"Tanh", Kind::tanh},
                                                      {"Sigmoid", Kind::sigmoid},   {"Softplus", Kind::softplus},
                                                      {"Softsign", Kind::softsign}, {"HardSwish", Kind::hard_swish},
                                                      {"Mish", Kind::mish},         {"Sin", Kind::sin}};
  return kinds;
}

class GraphReader {
 public:
  GraphReader(const onnx::ModelProto& model, const std::filesystem::path& path)
      : graph_(model.graph()), path_(path), builder_(result_) {
    read_opset(model);
  }

  StepGraph read() {
    for (const auto& tensor : graph_.initializer()) {
      values_[tensor.name()] = read_tensor(tensor, field("initializer \"" + tensor.name() + '"'), path_);
    }
    if (graph_.sparse_initializer_size() > 0) {
      unsupported("sparse initialisers", "dense ones", "export the weights as plain tensors");
    }
    read_input();
    for (const auto& node : graph_.node()) read_node(node);
    if (graph_.output_size() != 1) {
      std::string names;
      for (const auto& output : graph_.output()) names += (names.empty() ? "" : ", ") + output.name();
      unsupported(std::to_string(graph_.output_size()) + " outputs: " + names, "one output",
                  "export the net without what follows its last layer");
    }
    result_.output_name = graph_.output(0).name();
    const Value& output = known(result_.output_name, field("output \"" + result_.output_name + '"'));
    const auto* step = std::get_if<std::size_t>(&output);
    if (!step) unsupported("an output that does not depend on the input", "a net", "check the export");
    result_.output = *step;
    return std::move(result_);
  }

 private:
  using Value = std::variant<OnnxTensor, std::size_t>;  // a constant, or a step
  using Node = onnx::NodeProto;

  std::string field(const std::string& what) const { return path_.string() + ": " + what; }

  std::string where(const Node& node) const {
    const std::string name = node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
    return "node \"" + name + "\" (" + node.op_type() + ", opset " + std::to_string(result_.opset) + ")";
  }

  [[noreturn]] void unsupported(std::string found, std::string expected, std::string remedy) const {
    throw Error(ErrorKind::unsupported, {path_.string(), std::move(found), std::move(expected), std::move(remedy)});
  }
  [[noreturn]] void unsupported(const Node& node, std::string found, std::string expected = "a plain stack of layers",
                                std::string remedy = {}) const {
    throw Error(ErrorKind::unsupported, {field(where(node)), std::move(found), std::move(expected), std::move(remedy)});
  }

  void read_opset(const onnx::ModelProto& model) {
    for (const auto& import : model.opset_import()) {
      if (import.domain().empty() || import.domain() == "ai.onnx") result_.opset = import.version();
    }
    if (result_.opset < kOldestOpset || result_.opset > kNewestOpset) {
      unsupported("opset " + std::to_string(result_.opset),
                  "opset " + std::to_string(kOldestOpset) + " to " + std::to_string(kNewestOpset),
                  "export with opset_version=17, or convert the file with onnx.version_converter");
    }
  }

  // The one graph input that is no initialiser (older files list those too).
  void read_input() {
    const onnx::ValueInfoProto* input = nullptr;
    for (const auto& candidate : graph_.input()) {
      if (values_.contains(candidate.name())) continue;
      if (input) {
        unsupported("inputs \"" + input->name() + "\" and \"" + candidate.name() + '"', "one input [batch, features]",
                    "export a net that takes its features as one tensor");
      }
      input = &candidate;
    }
    if (!input) refuse(path_.string(), "no input", "one input [batch, features]");
    const auto& type = input->type().tensor_type();
    if (type.has_shape()) {
      if (type.shape().dim_size() != 2) {
        unsupported("input \"" + input->name() + "\" of rank " + std::to_string(type.shape().dim_size()),
                    "rank 2, [batch, features]", "export with an example input of that shape");
      }
      const auto& last = type.shape().dim(1);
      if (last.has_dim_value() && last.dim_value() > 0)
        result_.input_width = static_cast<std::size_t>(last.dim_value());
    }
    result_.input_name = input->name();
    values_[input->name()] =
        builder_.append({StepKind::input, field("input \"" + input->name() + '"'), {}, {}, {}, false, {}});
  }

  const Value& known(const std::string& name, const std::string& who) const {
    const auto found = values_.find(name);
    if (found == values_.end()) {
      refuse(who, "the value \"" + name + "\", which nothing before it makes", "a graph in the order of computing");
    }
    return found->second;
  }

  // Operand i, or null where it is left out.
  const Value* operand(const Node& node, int i) const {
    if (i >= node.input_size() || node.input(i).empty()) return nullptr;
    return &known(node.input(i), field(where(node)));
  }
  const Value& required(const Node& node, int i) const {
    const Value* value = operand(node, i);
    if (!value) refuse(field(where(node)), "no operand " + std::to_string(i), "one");
    return *value;
  }
  const OnnxTensor* constant(const Node& node, int i) const {
    const Value* value = operand(node, i);
    return value ? std::get_if<OnnxTensor>(value) : nullptr;
  }
  std::size_t data(const Node& node, int i) const {
    const auto* step = std::get_if<std::size_t>(&required(node, i));
    if (!step) unsupported(node, "a constant as operand " + std::to_string(i));
    return *step;
  }
  const OnnxTensor& constant_operand(const Node& node, int i) const {
    const auto* tensor = std::get_if<OnnxTensor>(&required(node, i));
    if (!tensor) unsupported(node, "an operand " + std::to_string(i) + " that depends on the input", "a constant");
    return *tensor;
  }

  // A constant that acts on features alone: one number, or one for each: shapes [], [n], [1, n].
  std::vector<double> per_feature(const Node& node, const OnnxTensor& tensor) const {
    for (std::size_t i = 0; i + 1 < tensor.shape.size(); ++i) {
      if (tensor.shape[i] != 1) unsupported(node, "a constant that differs along the batch", "one for each feature");
    }
    if (tensor.values.empty()) refuse(field(where(node)), "an empty constant", "one number, or one for each feature");
    return tensor.values;
  }

  void read_node(const Node& node) {
    const bool scaler = node.domain() == "ai.onnx.ml" && node.op_type() == "Scaler";
    if (!node.domain().empty() && node.domain() != "ai.onnx" && !scaler) {
      unsupported(node, "an operator of the domain \"" + node.domain() + '"', "operators of ONNX itself",
                  "export without custom functions (PyTorch: dynamo=False)");
    }
    if (node.output_size() < 1) refuse(field(where(node)), "no output", "one");
    Value value = result_of(node);
    for (int i = 0; i < node.output_size(); ++i) {
      if (!node.output(i).empty() && values_.contains(node.output(i))) {
        refuse(field(where(node)), "the value \"" + node.output(i) + "\" made a second time", "names that differ");
      }
    }
    values_[node.output(0)] = std::move(value);
  }

  Value result_of(const Node& node) {
    const std::string& op = node.op_type();
    if (op == "Constant") return read_constant(node, field(where(node)), path_);
    if (op == "Gemm") return gemm(node);
    if (op == "MatMul") return matmul(node);
    if (op == "Add" || op == "Sub" || op == "Mul" || op == "Div") return arithmetic(node);
    if (op == "Scaler") return scaler(node);
    if (op == "BatchNormalization") return batch_normalization(node);
    if (op == "Transpose" || op == "Sqrt" || op == "Neg" || op == "Reciprocal") {
      return apply_to_constant(node, constant_operand(node, 0), field(where(node)));
    }
    if (op == "Identity" || op == "Dropout" || op == "Cast" || op == "Flatten" || op == "Reshape" || op == "Squeeze" ||
        op == "Unsqueeze") {
      return unchanged(node);
    }
    return activation(node);
  }

  // y = alpha x B + beta C, or with B transposed.
  std::size_t gemm(const Node& node) {
    if (integer(node, "transA", 0) != 0) unsupported(node, "transA = 1", "0: the batch in front");
    const OnnxTensor& b = constant_operand(node, 1);
    Step step = dense(node, b, integer(node, "transB", 0) != 0);
    const double alpha = number(node, "alpha", 1), beta = number(node, "beta", 1);
    if (alpha != 1) {
      for (double& weight : step.dense.weights) weight *= alpha;
    }
    if (operand(node, 2)) {
      const std::vector<double> c = per_feature(node, constant_operand(node, 2));
      if (c.size() != 1 && c.size() != step.dense.outputs) {
        refuse(field(where(node)), std::to_string(c.size()) + " numbers in C", std::to_string(step.dense.outputs));
      }
      for (std::size_t j = 0; j < step.dense.outputs; ++j) step.dense.bias[j] = beta * c[c.size() == 1 ? 0 : j];
      step.has_bias = true;
    }
    return builder_.append(std::move(step));
  }

  std::size_t matmul(const Node& node) { return builder_.append(dense(node, constant_operand(node, 1), false)); }

  Step dense(const Node& node, const OnnxTensor& b, bool outputs_first) {
    if (b.shape.size() != 2 || b.values.empty()) {
      unsupported(node, "weights of rank " + std::to_string(b.shape.size()), "a matrix");
    }
    Step step{StepKind::dense, field(where(node)), {data(node, 0)}, {}, {}, false, {}};
    const auto rows = static_cast<std::size_t>(b.shape[0]), columns = static_cast<std::size_t>(b.shape[1]);
    step.dense.inputs = outputs_first ? columns : rows;
    step.dense.outputs = outputs_first ? rows : columns;
    step.dense.weights.resize(rows * columns);
    step.dense.bias.assign(step.dense.outputs, 0.0);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) {
        step.dense.weights[outputs_first ? r * columns + c : c * rows + r] = b.values[r * columns + c];
      }
    }
    result_.weight_type = std::max(result_.weight_type, b.type);
    return step;
  }

  Value arithmetic(const Node& node) {
    const OnnxTensor *a = constant(node, 0), *b = constant(node, 1);
    if (a && b) return combine_constants(node, *a, *b, field(where(node)));
    const std::string& op = node.op_type();
    const std::string place = field(where(node));
    if (!a && !b) {
      if (op == "Mul") return builder_.product(data(node, 0), data(node, 1), place);
      if (op == "Add") return builder_.sum(data(node, 0), data(node, 1), place);
      unsupported(node, "two branches that depend on the input");
    }
    const std::size_t x = data(node, a ? 1 : 0);
    std::vector<double> c = per_feature(node, a ? *a : *b);
    const auto negated = [](std::vector<double> numbers) {
      for (double& number : numbers) number = -number;
      return numbers;
    };
    if (op == "Add") return builder_.with_constant(x, StepKind::add, std::move(c), place);
    if (op == "Mul") return builder_.with_constant(x, StepKind::multiply, std::move(c), place);
    if (op == "Sub") {
      if (b) return builder_.with_constant(x, StepKind::add, negated(std::move(c)), place);
      return builder_.with_constant(builder_.with_constant(x, StepKind::multiply, {-1}, place), StepKind::add,
                                    std::move(c), place);
    }
    if (a) unsupported(node, "a division by what depends on the input");
    if (std::any_of(c.begin(), c.end(), [](double number) { return number == 0; })) {
      refuse(place, "a division by 0", "numbers other than 0");
    }
    return builder_.with_constant(x, StepKind::divide, std::move(c), place);
  }

  // scikit-learn's: (x - offset) * scale, the numbers in attributes.
  std::size_t scaler(const Node& node) {
    const auto numbers = [&](const char* name) {
      std::vector<double> values;
      if (const auto* found = attribute(node, name)) values.assign(found->floats().begin(), found->floats().end());
      for (const double value : values) {
        if (!std::isfinite(value)) refuse(field(where(node)) + "." + name, "nan or infinity", "finite numbers");
      }
      return values;
    };
    std::size_t x = data(node, 0);
    std::vector<double> offset = numbers("offset"), scale = numbers("scale");
    for (double& value : offset) value = -value;
    if (!offset.empty()) x = builder_.with_constant(x, StepKind::add, std::move(offset), field(where(node)));
    if (!scale.empty()) x = builder_.with_constant(x, StepKind::multiply, std::move(scale), field(where(node)));
    return x;
  }

  // (x - mean) / sqrt(variance + epsilon) * scale + shift, as one factor and one term.
  std::size_t batch_normalization(const Node& node) {
    if (integer(node, "training_mode", 0) != 0) unsupported(node, "training_mode = 1", "0: export for inference");
    std::size_t x = data(node, 0);
    const auto& scale = constant_operand(node, 1).values;
    const auto& shift = constant_operand(node, 2).values;
    const auto& mean = constant_operand(node, 3).values;
    const auto& variance = constant_operand(node, 4).values;
    if (shift.size() != scale.size() || mean.size() != scale.size() || variance.size() != scale.size() ||
        scale.empty()) {
      refuse(field(where(node)), "scale, shift, mean and variance of different lengths",
             "one number a feature in each");
    }
    const double epsilon = number(node, "epsilon", 1e-5);
    std::vector<double> factor(scale.size()), term(scale.size());
    for (std::size_t i = 0; i < scale.size(); ++i) {
      factor[i] = scale[i] / std::sqrt(variance[i] + epsilon);
      term[i] = shift[i] - mean[i] * factor[i];
      if (!std::isfinite(term[i])) refuse(field(where(node)), "a variance that is not positive", "one above 0");
    }
    x = builder_.with_constant(x, StepKind::multiply, std::move(factor), field(where(node)));
    return builder_.with_constant(x, StepKind::add, std::move(term), field(where(node)));
  }

  Value unchanged(const Node& node) {
    const std::string& op = node.op_type();
    if (const OnnxTensor* tensor = constant(node, 0)) {
      OnnxTensor result = *tensor;
      const bool vector = op == "Reshape" || op == "Squeeze" || op == "Unsqueeze" || op == "Flatten";
      const bool matrix = std::count_if(result.shape.begin(), result.shape.end(), [](auto n) { return n > 1; }) > 1;
      if (vector && matrix) unsupported(node, "a weight matrix of another shape", "matrices as they are used");
      if (vector) result.shape = {static_cast<std::int64_t>(result.values.size())};
      return result;
    }
    const std::size_t x = data(node, 0);
    if (op == "Cast") {
      const std::int64_t to = integer(node, "to", 0);
      if (to != onnx::TensorProto::FLOAT && to != onnx::TensorProto::DOUBLE) {
        unsupported(node, "a rounding to ONNX type " + std::to_string(to), "float32 or float64");
      }
    } else if (op == "Dropout") {
      const OnnxTensor* training = constant(node, 2);
      if (training && training->is_scalar() && training->values[0] != 0) unsupported(node, "dropout in training mode");
    } else if (op == "Flatten") {
      const std::int64_t axis = integer(node, "axis", 1);
      if (axis != 1 && axis != -1) unsupported(node, "axis = " + std::to_string(axis), "axis = 1: the batch kept");
    } else if (op == "Reshape") {
      const OnnxTensor& shape = constant_operand(node, 1);
      const bool keeps = shape.values.size() == 2 && shape.values[0] <= 0 &&
                         (shape.values[0] != shape.values[1] || shape.values[0] == 0);
      if (!keeps) unsupported(node, "a shape that does not keep the batch", "[-1, features]");
    } else if (op == "Squeeze" || op == "Unsqueeze") {
      unsupported(node, "another rank than [batch, features]");
    }
    return x;
  }

  std::size_t activation(const Node& node) {
    const std::string& op = node.op_type();
    const std::string place = field(where(node));
    const auto plain = plain_activations().find(op);
    const auto make = [&](ActivationKind kind, double alpha = 0) {
      return builder_.activation(data(node, 0), {kind, alpha}, place);
    };
    if (plain != plain_activations().end()) return make(plain->second);
    if (op == "LeakyRelu") return make(ActivationKind::leaky_relu, number(node, "alpha", 0.01));
    if (op == "Elu") return make(ActivationKind::elu, number(node, "alpha", 1));
    if (op == "Celu") return make(ActivationKind::celu, number(node, "alpha", 1));
    if (op == "Erf") return builder_.piece(data(node, 0), StepKind::erf, place);
    if (op == "PRelu") {
      const OnnxTensor& slope = constant_operand(node, 1);
      if (!slope.is_scalar()) unsupported(node, "a slope for each feature", "one slope");
      return make(ActivationKind::leaky_relu, slope.values[0]);
    }
    if (op == "Selu") {
      check_value(node, "alpha", number(node, "alpha", 1.6732632423543772), 1.6732632423543772);
      check_value(node, "gamma", number(node, "gamma", 1.0507009873554805), 1.0507009873554805);
      return make(ActivationKind::selu);
    }
    if (op == "HardSigmoid") {
      check_value(node, "alpha", number(node, "alpha", 0.2), 1.0 / 6);
      check_value(node, "beta", number(node, "beta", 0.5), 0.5);
      return make(ActivationKind::hard_sigmoid);
    }
    if (op == "Gelu") {
      const auto* form = attribute(node, "approximate");
      return make(form && form->s() == "tanh" ? ActivationKind::gelu_tanh : ActivationKind::gelu);
    }
    if (op == "Swish") {
      check_value(node, "alpha", number(node, "alpha", 1), 1);
      return make(ActivationKind::silu);
    }
    if (op == "Pow") {
      const OnnxTensor& exponent = constant_operand(node, 1);
      if (exponent.is_scalar() && exponent.values[0] == 2) return make(ActivationKind::square);
      if (exponent.is_scalar() && exponent.values[0] == 3) return builder_.piece(data(node, 0), StepKind::cube, place);
      unsupported(node, "a power other than 2 and 3");
    }
    if (op == "Max" && node.input_size() == 2) {
      const OnnxTensor* bound = constant(node, 0) ? constant(node, 0) : constant(node, 1);
      if (bound && bound->is_scalar() && bound->values[0] == 0) {
        return builder_.activation(data(node, bound == constant(node, 0) ? 1 : 0), {ActivationKind::relu}, place);
      }
    }
    if (op == "Clip" && clips_to_relu(node)) return make(ActivationKind::relu);
    unsupported(node, "an operator that is not supported here", "layers, constants and activations",
                "the plain stack inside can be saved as safetensors (docs/model_format.md)");
  }

  // From opset 11 the bounds are operands.
  bool clips_to_relu(const Node& node) const {
    const OnnxTensor *low = constant(node, 1), *high = constant(node, 2);
    if (low) return low->is_scalar() && low->values[0] == 0 && !high;
    return attribute(node, "min") && attribute(node, "min")->f() == 0 && !attribute(node, "max");
  }

  void check_value(const Node& node, const char* name, double found, double expected) const {
    if (std::fabs(found - expected) > 1e-6) {
      unsupported(node, std::string(name) + " = " + std::to_string(found), std::to_string(expected));
    }
  }

  const onnx::GraphProto& graph_;
  const std::filesystem::path& path_;
  StepGraph result_;
  StepBuilder builder_;
  std::map<std::string, Value> values_;
};

}  // namespace

StepGraph read_steps(const onnx::ModelProto& model, const std::filesystem::path& path) {
  return GraphReader(model, path).read();
}

}  // namespace lockstep::nn::detail
