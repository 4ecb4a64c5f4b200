// The frame of reading: opset, ports, operands, and which function reads which operator.
#include "lockstep/nn/detail/onnx_graph.h"
#include "lockstep/core/text.h"

#include <algorithm>
#include <cmath>
#include <functional>
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

bool is_integer(int type) {
  using Tensor = onnx::TensorProto;
  static const std::set<int> integers{Tensor::INT8,  Tensor::INT16,  Tensor::INT32,  Tensor::INT64,
                                      Tensor::UINT8, Tensor::UINT16, Tensor::UINT32, Tensor::UINT64};
  return integers.contains(type);
}

// Of outputs that are no floating point numbers, what they are: "int64", "string"; else empty. Truth values are read as
// 0 and 1.
std::string label_type(const onnx::ValueInfoProto& output) {
  using Tensor = onnx::TensorProto;
  if (output.type().has_sequence_type() || output.type().has_map_type()) return "a list for each sample";
  const int type = output.type().tensor_type().elem_type();
  return is_integer(type) || type == Tensor::STRING ? type_name(type) : "";
}

// Results are some of the numbers that it is given.
bool chooses(const std::string& op) {
  static const std::set<std::string_view> known{
      "Where", "Min", "Max", "Clip", "ReduceMin", "ReduceMax", "ArrayFeatureExtractor"};
  return known.contains(op);
}

constexpr const char* kCastFirst = "export with inputs of floats, or cast to them before (x.float())";

}  // namespace

GraphReader::GraphReader(const onnx::ModelProto& model, const std::filesystem::path& path)
    : graph_(model.graph()), path_(path), builder_(result_) {
  read_opset(model);
}

StepGraph GraphReader::read(UnreadableOutputs unreadable) {
  require_texts();
  needed_ = needed_values();
  read_initialisers(graph_);
  read_inputs();
  for (const auto& node : graph_.node()) {
    if (std::ranges::none_of(node.output(), [&](const auto& name) { return needed_.contains(name); })) continue;
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
}

// Those that become names of ports and nodes, which other formats and languages read, or stand in messages.
void GraphReader::require_texts() const {
  const auto require = [&](const std::string& name) {
    if (!is_utf8(name))
      refuse(path_.string(), "a name that is not UTF-8", "an undamaged file", "export or copy it again");
  };
  const std::function<void(const onnx::GraphProto&)> require_all = [&](const onnx::GraphProto& graph) {
    for (const auto& input : graph.input()) require(input.name());
    for (const auto& output : graph.output()) require(output.name());
    for (const auto& tensor : graph.initializer()) require(tensor.name());
    for (const auto& node : graph.node()) {
      for (const std::string* text : {&node.name(), &node.op_type(), &node.domain()}) require(*text);
      for (const std::string& input : node.input()) require(input);
      for (const std::string& output : node.output()) require(output);
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_s()) require(attribute.s());
        if (attribute.has_g()) require_all(attribute.g());
      }
    }
  };
  require_all(graph_);
}

void GraphReader::read_initialisers(const onnx::GraphProto& graph) {
  for (const auto& tensor : graph.initializer()) {
    if (!needed_.contains(tensor.name())) continue;
    const std::string here = field("initializer \"" + tensor.name() + '"');
    if (tensor.data_type() == onnx::TensorProto::STRING) {  // the names of a classifier's classes
      unreadable_.emplace(tensor.name(),
                          Error(ErrorKind::unsupported, {here, "numbers of type string", "numbers", ""}));
      continue;
    }
    OnnxTensor read = read_tensor(tensor, here, path_);
    if (tensor.data_type() == onnx::TensorProto::BOOL) truths_.insert(tensor.name());
    if (const auto at = read.first_nan()) not_numbers_[tensor.name()] = here + "[" + std::to_string(*at) + "]";
    values_[tensor.name()] = std::move(read);
  }
  if (graph.sparse_initializer_size() > 0) {
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
  const std::function<void(const onnx::GraphProto&)> add = [&](const onnx::GraphProto& graph) {
    for (const auto& output : graph.output()) needed.insert(output.name());
    for (auto node = graph.node().rbegin(); node != graph.node().rend(); ++node) {
      if (std::ranges::none_of(node->output(), [&](const auto& name) { return needed.contains(name); })) continue;
      for (const auto& name : node->input()) {
        if (!name.empty()) needed.insert(name);
      }
      for (const auto& attribute : node->attribute()) {
        if (attribute.has_g()) add(attribute.g());  // a branch
      }
    }
  };
  add(graph_);
  return needed;
}

// The branch that a constant takes, as exporters write what they know of shapes.
GraphReader::Values GraphReader::branch(const Node& node, const OnnxTensor& condition) {
  const auto* const taken = attribute(node, single_number(node, condition) != 0 ? "then_branch" : "else_branch");
  if (taken == nullptr || !taken->has_g()) refuse(place(node), "no branch", "then_branch and else_branch");
  read_initialisers(taken->g());
  for (const auto& one : taken->g().node()) read_node(one);
  Values values;
  for (const auto& output : taken->g().output()) values.push_back(known(output.name(), place(node)));
  return values;
}

std::string GraphReader::where(const Node& node) const {
  const std::string name = node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
  const auto other = opsets_.find(node.domain());  // never of "ai.onnx"
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

// The graph inputs that are no initialisers (older files list those too).
void GraphReader::read_inputs() {
  std::set<std::string_view> initialisers;
  for (const auto& tensor : graph_.initializer()) initialisers.insert(tensor.name());
  for (const auto& input : graph_.input()) {
    if (initialisers.contains(input.name())) continue;
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
    const std::string here = field("input \"" + input.name() + '"');
    result_.inputs.push_back({input.name(), builder_.append({.kind = StepKind::input, .where = here, .width = width})});
    values_[input.name()] = Data{typed_input(input, here, result_.inputs.back().step)};
  }
  if (result_.inputs.empty()) refuse(path_.string(), "no input", "an input [batch, features]");
}

// Ports take floats: other types are what a cast would make of them.
std::size_t GraphReader::typed_input(const onnx::ValueInfoProto& input, const std::string& here, std::size_t step) {
  using Tensor = onnx::TensorProto;
  const int type = input.type().tensor_type().elem_type();
  static const std::set<int> floats{Tensor::UNDEFINED, Tensor::FLOAT, Tensor::DOUBLE, Tensor::FLOAT16,
                                    Tensor::BFLOAT16};
  if (floats.contains(type)) return step;
  if (type == Tensor::BOOL) {
    truths_.insert(input.name());
    return builder_.truth(step, here);
  }
  if (!is_integer(type)) {
    throw Error(ErrorKind::unsupported,
                {here, "numbers of type " + type_name(type), "float32 or float64", "export with an input of floats"});
  }
  integers_.insert(input.name());
  return step;
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
  if (tensor.holds_batch) unsupported(node, "the size of the batch as a number", "fixed numbers");
  if (!tensor.is_scalar()) {
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

void GraphReader::read_node(const Node& node) {
  if (!node.domain().empty() && node.domain() != "ai.onnx" && node.domain() != "ai.onnx.ml") {
    unsupported(node, "an operator of the domain \"" + node.domain() + '"', "operators of ONNX itself",
                "export without custom functions (PyTorch: dynamo=False)");
  }
  if (node.output_size() < 1) refuse(place(node), "no output", "one");
  require_numbers(node);
  require_no_integers(node);
  require_no_sample_numbers(node);
  Values results = results_of(node);
  for (const Value& value : results) {
    if (const auto* tensor = std::get_if<OnnxTensor>(&value)) builder_.count(tensor->values.size(), place(node));
  }
  const bool truths = makes_truths(node), integers = !truths && makes_integers(node);
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
      if (integers && std::holds_alternative<Data>(values_[node.output(i)])) integers_.insert(node.output(i));
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

// Values that depend on the input are computed as real numbers. Integers may be chosen, compared and cast to floats;
// what divides, rounds or overflows otherwise than real numbers do is refused.
void GraphReader::require_no_integers(const Node& node) const {
  static const std::set<std::string_view> reads{"Shape",
                                                "Size",
                                                "Cast",
                                                "CastLike",
                                                "Not",
                                                "Scaler",
                                                "Normalizer",
                                                "LinearRegressor",
                                                "LinearClassifier",
                                                "FeatureVectorizer"};
  const std::string& op = node.op_type();
  for (int i = 0; i < node.input_size(); ++i) {
    if (!integers_.contains(node.input(i))) continue;
    if (op == "CastLike" && i == 1) unsupported(node, "a rounding to integers", "float32 or float64", kCastFirst);
    const bool index = i == 1 && op.starts_with("Gather");  // refused in words of its own
    if (reads.contains(op) || is_comparison(op) || chooses(op) || keeps_type(op) || index) continue;
    unsupported(node, "arithmetic with integers that depend on the input", "float32 or float64", kCastFirst);
  }
}

// What numbers the samples may be laid out as indices, not chosen from or compared.
void GraphReader::require_no_sample_numbers(const Node& node) const {
  static const std::set<std::string_view> lays_out{"Identity", "Cast",  "Reshape", "Squeeze", "Unsqueeze", "Expand",
                                                   "Concat",   "Shape", "Add",     "Mul",     "ScatterND"};
  if (lays_out.contains(node.op_type())) return;
  for (const std::string& name : node.input()) {
    const auto found = values_.find(name);
    const auto* const tensor = found == values_.end() ? nullptr : std::get_if<OnnxTensor>(&found->second);
    if (tensor && tensor->holds_batch && std::ranges::any_of(tensor->values, is_of_sample)) {
      unsupported(node, "the numbers of the samples in the batch", "each sample for itself");
    }
  }
}

bool GraphReader::makes_integers(const Node& node) const {
  if (!chooses(node.op_type()) && !keeps_type(node.op_type())) return false;
  const auto given = [&](int i) { return i < node.input_size() && integers_.contains(node.input(i)); };
  if (node.op_type() != "Where")
    return std::ranges::any_of(node.input(), [&](const auto& name) { return integers_.contains(name); });
  const auto whole = [&](int i) { return constant(node, i) != nullptr && constant(node, i)->whole; };
  return given(1) || given(2) || whole(1) || whole(2);
}

bool GraphReader::keeps_type(const std::string& op) {
  static const std::set<std::string_view> keeps{
      "Identity", "Dropout", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Gather",         "GatherND",
      "Slice",    "Split",   "Concat",  "Expand",  "Tile",    "Pad",       "ScatterND", "ScatterElements"};
  return keeps.contains(op);
}

bool GraphReader::makes_truths(const Node& node) const {
  const std::string& op = node.op_type();
  if (is_comparison(op) || op == "Not" || op == "IsNaN" || op == "IsInf") return true;
  if (op == "Constant") {
    const auto* const tensor = attribute(node, "value");
    return tensor && tensor->t().data_type() == onnx::TensorProto::BOOL;
  }
  if (op == "Cast") return integer(node, "to", 0) == onnx::TensorProto::BOOL;
  const int like = op == "CastLike" || op == "Where" ? 1 : keeps_type(op) ? 0 : node.input_size();
  return like < node.input_size() && truths_.contains(node.input(like));
}

GraphReader::Values GraphReader::results_of(const Node& node) {
  if (node.domain() == "ai.onnx.ml" && node.op_type() == "LinearClassifier") return linear_classifier(node);
  if (node.domain() == "ai.onnx.ml") return {machine_learning(node)};
  if (node.op_type() == "Constant") return {read_constant(node, place(node), path_)};
  if (const OnnxTensor* condition = node.op_type() == "If" ? constant(node, 0) : nullptr)
    return branch(node, *condition);
  if (auto values = folded(node)) return std::move(*values);
  if (auto values = more_dimensions(node)) return std::move(*values);
  if (auto value = layer(node)) return {std::move(*value)};
  if (auto value = arithmetic(node)) return {std::move(*value)};
  if (auto values = columns(node)) return std::move(*values);
  if (auto value = activation(node)) return {std::move(*value)};
  if (node.op_type().find("uantize") != std::string::npos || node.op_type().starts_with("QLinear") ||
      node.op_type().ends_with("Integer")) {
    unsupported(node, "quantised numbers", "floats", "export the model in float32, and not quantised");
  }
  static const std::set<std::string_view> chooses_places{"ArgMax", "ArgMin", "TopK", "OneHot"};
  if (chooses_places.contains(node.op_type())) {
    unsupported(node, "an operator that is not supported here", "numbers, not the places of some",
                "mark the largest instead, where integers are not what the net is to give: "
                "(g == g.amax(-1, keepdim=True)).to(x.dtype) is one-hot");
  }
  unsupported(node, "an operator that is not supported here",
              "layers, activations, arithmetic, normalisations, and what selects or joins features",
              "leave it out of the exported net, or save the stack inside as safetensors (docs/model_format.md)");
}

StepGraph read_steps(const onnx::ModelProto& model, const std::filesystem::path& path, UnreadableOutputs unreadable) {
  return GraphReader(model, path).read(unreadable);
}

}  // namespace lockstep::nn::detail
