// The frame of reading: opset, ports, operands, and which function reads which operator.
#include "lockstep/nn/detail/onnx_graph.h"
#include "lockstep/core/text.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/nn/detail/onnx_node.h"
#include "lockstep/nn/detail/onnx_reader.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {
namespace {

constexpr std::int64_t kOldestOpset = 7;   // before it, broadcasting was an attribute
constexpr std::int64_t kNewestOpset = 28;  // of ONNX 1.23; a later one may mean something else

// Of outputs that are no floating point numbers, what they are: "int64", "string"; else empty. Truth values are read as
// 0 and 1.
std::string label_type(const onnx::ValueInfoProto& output) {
  using Tensor = onnx::TensorProto;
  if (output.type().has_sequence_type() || output.type().has_map_type()) return "a list for each sample";
  const int type = output.type().tensor_type().elem_type();
  static const std::set<int> labels{Tensor::INT8,   Tensor::INT16,  Tensor::INT32,  Tensor::INT64, Tensor::UINT8,
                                    Tensor::UINT16, Tensor::UINT32, Tensor::UINT64, Tensor::STRING};
  return labels.contains(type) ? type_name(type) : "";
}

}  // namespace

GraphReader::GraphReader(const onnx::ModelProto& model, const std::filesystem::path& path)
    : graph_(model.graph()), path_(path), builder_(result_) {
  read_opset(model);
}

StepGraph GraphReader::read(UnreadableOutputs unreadable) {
  const std::set<std::string_view> needed = needed_values();
  read_initialisers(needed);
  read_inputs();
  for (const auto& node : graph_.node()) {
    if (std::ranges::none_of(node.output(), [&](const auto& name) { return needed.contains(name); })) continue;
    try {
      read_node(node);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unsupported) throw;
      for (const std::string& name : node.output()) unreadable_.emplace(name, error);
    }
  }
  if (graph_.output_size() == 0) refuse(path_.string(), "no output", "at least one");
  std::vector<std::pair<const onnx::ValueInfoProto*, Error>> others;
  for (const auto& output : graph_.output()) {
    try {
      result_.outputs.push_back({output.name(), read_output(output)});
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unsupported) throw;
      others.emplace_back(&output, error);
    }
  }
  if (result_.outputs.empty()) throw others.front().second;
  for (const auto& [output, error] : others) leave_out(*output, error, unreadable);
  return std::move(result_);
}

// An output that cannot be read while another can.
void GraphReader::leave_out(const onnx::ValueInfoProto& output, const Error& error, UnreadableOutputs unreadable) {
  const std::string label = label_type(output), name = '"' + output.name() + '"';
  if (label.empty() && unreadable == UnreadableOutputs::refuse) {
    throw Error(error.kind(), {error.field(), error.found(), error.expected(),
                               error.remedy() + (error.remedy().empty() ? "" : "; or ") + "do without output " + name +
                                   ": `lockstep import` leaves it out"});
  }
  std::string why = error.field() + ": " + error.found();
  if (const std::string file = field(""); why.starts_with(file)) why.erase(0, file.size());
  result_.left_out.push_back("output " + name + (label.empty() ? "" : " (" + label + ")") + ": " + why);
  require_text(result_.left_out.back());  // operators have names too
}

void GraphReader::read_initialisers(const std::set<std::string_view>& needed) {
  for (const auto& tensor : graph_.initializer()) {
    if (!needed.contains(tensor.name())) continue;
    const std::string here = field("initializer \"" + tensor.name() + '"');
    if (tensor.data_type() == onnx::TensorProto::STRING) {  // the names of a classifier's classes
      unreadable_.emplace(tensor.name(),
                          Error(ErrorKind::unsupported, {here, "numbers of type string", "numbers", ""}));
      continue;
    }
    OnnxTensor read = read_tensor(tensor, here, path_);
    if (const auto at = read.first_nan()) not_numbers_[tensor.name()] = here + "[" + std::to_string(*at) + "]";
    values_[tensor.name()] = std::move(read);
  }
  if (graph_.sparse_initializer_size() > 0) {
    unsupported("sparse initialisers", "dense ones", "export the weights as plain tensors");
  }
}

std::size_t GraphReader::read_output(const onnx::ValueInfoProto& output) const {
  const Value& value = known(output.name(), field("output \"" + output.name() + '"'));
  const auto* data = std::get_if<Data>(&value);
  if (!data) {
    unsupported("an output \"" + output.name() + "\" that does not depend on the input", "a net", "check the export");
  }
  if (data->rank > 2) {
    unsupported("an output \"" + output.name() + "\" of more than two dimensions, " + text_of(dimensions_of({}, value)),
                "[batch, features]", "reshape it in the net (x.flatten(1))");
  }
  if (data->turned) {
    unsupported("an output \"" + output.name() + "\" [features, batch]", "[batch, features]",
                "transpose it in the net");
  }
  return data->step;
}

// The names that the outputs depend on: what else a file holds, left over by an exporter, need not be understood.
std::set<std::string_view> GraphReader::needed_values() const {
  std::set<std::string_view> needed;
  for (const auto& output : graph_.output()) needed.insert(output.name());
  for (auto node = graph_.node().rbegin(); node != graph_.node().rend(); ++node) {
    if (std::ranges::none_of(node->output(), [&](const auto& name) { return needed.contains(name); })) continue;
    for (const auto& name : node->input()) {
      if (!name.empty()) needed.insert(name);
    }
  }
  return needed;
}

std::string GraphReader::where(const Node& node) const {
  const std::string name = node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
  const auto other = opsets_.find(node.domain());
  const std::string opset = other == opsets_.end() ? "opset " + std::to_string(result_.opset)
                                                   : other->first + " opset " + std::to_string(other->second);
  return "node \"" + name + "\" (" + node.op_type() + ", " + opset + ")";
}

void GraphReader::unsupported(std::string found, std::string expected, std::string remedy) const {
  throw Error(ErrorKind::unsupported, {path_.string(), std::move(found), std::move(expected), std::move(remedy)});
}

void GraphReader::unsupported(const Node& node, std::string found, std::string expected, std::string remedy) const {
  if (remedy.empty()) remedy = kWriteAnother;
  throw Error(ErrorKind::unsupported, {place(node), std::move(found), std::move(expected), std::move(remedy)});
}

void GraphReader::read_opset(const onnx::ModelProto& model) {
  for (const auto& import : model.opset_import()) {
    if (import.domain().empty() || import.domain() == "ai.onnx") {
      result_.opset = import.version();
    } else {
      opsets_[import.domain()] = import.version();
    }
  }
  if (result_.opset < kOldestOpset || result_.opset > kNewestOpset) {
    unsupported("opset " + std::to_string(result_.opset),
                "opset " + std::to_string(kOldestOpset) + " to " + std::to_string(kNewestOpset),
                "export with opset_version=17, or convert the file with onnx.version_converter");
  }
}

// Where the file leaves a width open, the first layer that reads the input says it.
std::size_t GraphReader::width_from_first_layer(const std::string& input) const {
  for (const auto& node : graph_.node()) {
    if ((node.op_type() != "Gemm" && node.op_type() != "MatMul") || node.input_size() < 2 || node.input(0) != input) {
      continue;
    }
    const auto weights = values_.find(node.input(1));
    const auto* tensor = weights == values_.end() ? nullptr : std::get_if<OnnxTensor>(&weights->second);
    if (tensor && tensor->shape.size() == 2) {
      return static_cast<std::size_t>(tensor->shape[integer(node, "transB", 0) != 0 ? 1 : 0]);
    }
  }
  return 0;
}

// Names become those of ports and nodes, which other formats and languages read.
void GraphReader::require_text(const std::string& name) const {
  if (!is_utf8(name))
    refuse(path_.string(), "a name that is not UTF-8", "an undamaged file", "export or copy it again");
}

// The graph inputs that are no initialisers (older files list those too).
void GraphReader::read_inputs() {
  std::set<std::string_view> initialisers;
  for (const auto& tensor : graph_.initializer()) initialisers.insert(tensor.name());
  for (const auto& input : graph_.input()) {
    if (initialisers.contains(input.name())) continue;
    require_text(input.name());
    std::size_t width = 0;
    const auto& type = input.type().tensor_type();
    if (type.has_shape()) {
      if (type.shape().dim_size() != 2) {
        unsupported("input \"" + input.name() + "\" of rank " + std::to_string(type.shape().dim_size()),
                    "rank 2, [batch, features]", "export with an example input of that shape");
      }
      const auto &first = type.shape().dim(0), &last = type.shape().dim(1);
      if (first.has_dim_value() && first.dim_value() > 0) fixed_batch_ = first.dim_value();
      if (last.has_dim_value() && last.dim_value() > 0) width = static_cast<std::size_t>(last.dim_value());
      if (width > kMostFeatures) {
        refuse(field("input \"" + input.name() + '"'), std::to_string(width) + " features", "at most 2^20");
      }
    }
    if (width == 0) width = width_from_first_layer(input.name());
    Step step{.kind = StepKind::input, .where = field("input \"" + input.name() + '"'), .width = width};
    result_.inputs.push_back({input.name(), builder_.append(std::move(step))});
    values_[input.name()] = Data{result_.inputs.back().step};
  }
  if (result_.inputs.empty()) refuse(path_.string(), "no input", "an input [batch, features]");
}

const GraphReader::Value& GraphReader::known(const std::string& name, const std::string& who) const {
  if (const auto unread = unreadable_.find(name); unread != unreadable_.end()) throw unread->second;
  const auto found = values_.find(name);
  if (const auto made = not_offered_.find(name); made != not_offered_.end()) {
    throw Error(ErrorKind::unsupported, {who, '"' + name + "\", " + made->second + ", which is not offered",
                                         "outputs before it", kWriteAnother});
  }
  if (found == values_.end()) {
    refuse(who, "the value \"" + name + "\", which nothing before it makes", "a graph in the order of computing");
  }
  return found->second;
}

const GraphReader::Value* GraphReader::operand(const Node& node, int i) const {
  if (i >= node.input_size() || node.input(i).empty()) return nullptr;
  return &known(node.input(i), place(node));
}

const GraphReader::Value& GraphReader::required(const Node& node, int i) const {
  const Value* value = operand(node, i);
  if (!value) refuse(place(node), "no operand " + std::to_string(i), "one");
  return *value;
}

const OnnxTensor* GraphReader::constant(const Node& node, int i) const {
  const Value* value = operand(node, i);
  return value ? std::get_if<OnnxTensor>(value) : nullptr;
}

const OnnxTensor& GraphReader::constant_operand(const Node& node, int i) const {
  const auto* tensor = std::get_if<OnnxTensor>(&required(node, i));
  if (!tensor) {
    unsupported(node, "an operand " + std::to_string(i) + " that depends on the input", "a constant",
                node.op_type() == "MatMul" || node.op_type() == "Gemm"
                    ? "write a product of two such values as Mul and ReduceSum over the features"
                    : "");
  }
  return *tensor;
}

GraphReader::Data GraphReader::data(const Node& node, int i) const {
  const Data found = data_maybe_turned(node, i);
  if (found.turned) unsupported(node, "batch and features exchanged", "[batch, features]");
  return found;
}

GraphReader::Data GraphReader::data_maybe_turned(const Node& node, int i) const {
  const auto* found = std::get_if<Data>(&required(node, i));
  if (!found) {
    unsupported(node, "a constant as operand " + std::to_string(i), "a value that depends on the input",
                "simplify the file first, with onnxsim or onnxruntime's offline optimisation");
  }
  if (found->rank > 2) unsupported(node, "a value of more than two dimensions", "[batch, features]");
  return *found;
}

GraphReader::Data GraphReader::data_or_numbers(const Node& node, int i, int rank) {
  if (const OnnxTensor* tensor = constant(node, i))
    return {builder_.constant(per_feature(node, *tensor, rank), place(node))};
  return data(node, i);
}

std::vector<double> GraphReader::per_feature(const Node& node, const OnnxTensor& tensor, int rank) const {
  if (tensor.values.empty()) refuse(place(node), "an empty constant", "one number, or one for each feature");
  if (tensor.holds_batch) unsupported(node, "the size of the batch as a number", "arithmetic on features");
  bool across = tensor.shape.size() > static_cast<std::size_t>(rank) || (rank == 1 && !tensor.is_scalar());
  for (std::size_t i = 0; i + 1 < tensor.shape.size(); ++i) across = across || tensor.shape[i] != 1;
  if (across) {
    unsupported(node, "a constant that differs along the batch", "one for each feature");
  }
  return tensor.values;
}

double GraphReader::single_number(const Node& node, const OnnxTensor& tensor) const {
  if (!tensor.is_scalar() || tensor.holds_batch) {
    unsupported(node, std::to_string(tensor.values.size()) + " numbers", "a single one");
  }
  return tensor.values[0];
}

std::optional<std::vector<std::int64_t>> GraphReader::whole_numbers(const Node& node, const char* name, int i) const {
  if (const auto* found = attribute(node, name)) {
    return std::vector<std::int64_t>(found->ints().begin(), found->ints().end());
  }
  if (i < 0 || operand(node, i) == nullptr) return {};
  const OnnxTensor& tensor = constant_operand(node, i);
  std::vector<std::int64_t> numbers;
  for (const double value : tensor.values) {
    // INT64_MAX and its like stand for "to the end"; as float64 they are beyond what a cast may take.
    constexpr double kEnd = 4611686018427387904.0;  // 2^62
    numbers.push_back(value >= kEnd ? INT64_MAX : value <= -kEnd ? INT64_MIN : static_cast<std::int64_t>(value));
  }
  return numbers;
}

std::size_t GraphReader::width(const Node& node, const Data& x) const {
  const std::size_t width = builder_.width(x.step);
  if (width == 0) {
    unsupported(node, "an input whose number of features the file leaves open",
                "[batch, features] with a number for the features", "export with an example input of that shape");
  }
  return width;
}

void GraphReader::check_value(const Node& node, const char* name, double found, double expected) const {
  if (std::fabs(found - expected) > 1e-6) {
    unsupported(node, std::string(name) + " = " + number_text(found), number_text(expected));
  }
}

void GraphReader::read_node(const Node& node) {
  if (!node.domain().empty() && node.domain() != "ai.onnx" && node.domain() != "ai.onnx.ml") {
    unsupported(node, "an operator of the domain \"" + node.domain() + '"', "operators of ONNX itself",
                "export without custom functions (PyTorch: dynamo=False)");
  }
  require_text(node.name());
  for (const std::string& output : node.output()) require_text(output);
  if (node.output_size() < 1) refuse(place(node), "no output", "one");
  require_numbers(node);
  Values results = results_of(node);
  for (const Value& value : results) {
    if (const auto* tensor = std::get_if<OnnxTensor>(&value)) builder_.count(tensor->values.size(), place(node));
  }
  const bool truths = makes_truths(node);
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty() || unreadable_.contains(node.output(i))) continue;
    if (truths) truths_.insert(node.output(i));
    if (values_.contains(node.output(i))) {
      refuse(place(node), "the value \"" + node.output(i) + "\" made a second time", "names that differ");
    }
    // Further outputs (a dropout's mask, a batch normalisation's statistics) are not there for others to read.
    if (static_cast<std::size_t>(i) < results.size()) {
      keep_nan(node, node.output(i), results[static_cast<std::size_t>(i)]);
      values_[node.output(i)] = std::move(results[static_cast<std::size_t>(i)]);
    } else {
      not_offered_[node.output(i)] = "output " + std::to_string(i) + " of " + where(node);
    }
  }
}

// NaN may stand where nothing takes it, as JAX's variance has it: where(n > 0, variance, nan). What chooses or lays out
// constants may meet it, all else refuses it.
void GraphReader::require_numbers(const Node& node) const {
  static const std::set<std::string_view> may_meet{"Where",   "Identity", "Cast",      "CastLike", "Expand",
                                                   "Reshape", "Squeeze",  "Unsqueeze", "Tile"};
  const bool may = may_meet.contains(node.op_type()), where = node.op_type() == "Where";
  for (int i = 0; i < node.input_size() && !not_numbers_.empty(); ++i) {
    if (may && where == (i > 0)) continue;  // not its condition, nor a shape
    const auto found = not_numbers_.find(node.input(i));
    if (found != not_numbers_.end()) refuse(found->second, "nan", "a number", "train or export the net again");
  }
}

void GraphReader::keep_nan(const Node& node, const std::string& name, const Value& value) {
  const auto* const tensor = std::get_if<OnnxTensor>(&value);
  const auto at = tensor ? tensor->first_nan() : std::nullopt;
  if (!at) return;
  const auto given = std::ranges::find_if(node.input(), [&](const auto& one) { return not_numbers_.contains(one); });
  not_numbers_[name] =
      given != node.input().end() ? not_numbers_.at(*given) : place(node) + "[" + std::to_string(*at) + "]";
}

bool GraphReader::makes_truths(const Node& node) const {
  static const std::set<std::string_view> tells{"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And",
                                                "Or",    "Not",  "Xor",         "IsNaN",   "IsInf"};
  static const std::set<std::string_view> keeps{
      "Identity", "Dropout", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Gather",         "GatherND",
      "Slice",    "Split",   "Concat",  "Expand",  "Tile",    "Pad",       "ScatterND", "ScatterElements"};
  const std::string& op = node.op_type();
  if (op == "Cast") return integer(node, "to", 0) == onnx::TensorProto::BOOL;
  const int like = op == "CastLike" || op == "Where" ? 1 : keeps.contains(op) ? 0 : node.input_size();
  return tells.contains(op) || (like < node.input_size() && truths_.contains(node.input(like)));
}

GraphReader::Values GraphReader::results_of(const Node& node) {
  if (node.domain() == "ai.onnx.ml" && node.op_type() == "LinearClassifier") return linear_classifier(node);
  if (node.domain() == "ai.onnx.ml") return {machine_learning(node)};
  if (node.op_type() == "Constant") return {read_constant(node, place(node), path_)};
  if (auto values = folded(node)) return std::move(*values);
  if (auto values = more_dimensions(node)) return std::move(*values);
  if (auto value = layer(node)) return {std::move(*value)};
  if (auto value = arithmetic(node)) return {std::move(*value)};
  if (auto values = columns(node)) return std::move(*values);
  if (auto value = activation(node)) return {std::move(*value)};
  unsupported(node, "an operator that is not supported here",
              "layers, activations, arithmetic, normalisations, and what selects or joins features",
              "leave it out of the exported net, or save the stack inside as safetensors (docs/model_format.md)");
}

StepGraph read_steps(const onnx::ModelProto& model, const std::filesystem::path& path, UnreadableOutputs unreadable) {
  return GraphReader(model, path).read(unreadable);
}

}  // namespace lockstep::nn::detail
