// The frame of writing: names that are nobody else's, ports, tensors, nodes.
#include "lockstep/nn/detail/onnx_writer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/text.h"
#include "lockstep/nn/detail/onnx_node.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {
namespace {

static_assert(std::endian::native == std::endian::little, "raw data of ONNX is little-endian");

// "pressure [Pa], temperature [K]", as viewers show it beside a port.
std::string features_text(const Port& port) {
  std::string text;
  for (const Feature& feature : port.features) {
    if (feature.name.empty()) return {};
    text += (text.empty() ? "" : ", ") + feature.name + (feature.unit.empty() ? "" : " [" + feature.unit + "]");
  }
  return text;
}

void describe(onnx::ValueInfoProto& value, const Port& port, const std::string& name,
              onnx::TensorProto::DataType type) {
  value.set_name(name);
  auto* tensor = value.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape()->add_dim()->set_dim_param("batch");
  tensor->mutable_shape()->add_dim()->set_dim_value(static_cast<std::int64_t>(port.features.size()));
  const std::string text = features_text(port);
  if (!text.empty()) value.set_doc_string(text);
}

bool holds_numbers(const Operation& operation) {
  return std::visit(
      []<class Op>(const Op&) {
        return std::is_same_v<Op, Dense> || std::is_same_v<Op, Standardise> || std::is_same_v<Op, Rescale> ||
               std::is_same_v<Op, Constant> || std::is_same_v<Op, LayerNormalise> || std::is_same_v<Op, Interpolate>;
      },
      operation);
}

void require_text(const std::string& name, const std::string& what) {
  if (!is_utf8(name)) refuse(what, "a name that is not UTF-8", "UTF-8, which ONNX files are written in", "rename it");
}

}  // namespace

OnnxWriter::OnnxWriter(const Model& model, Precision precision) : model_(model), precision_(precision) {
  for (const Port& port : model.inputs) require_text(port.name, "input port");
  for (const Port& port : model.outputs) require_text(port.name, "output port");
  for (const Node& node : model.nodes) require_text(node.name, "node");
  find_readers();
  name_values();
}

std::string OnnxWriter::claim(const std::string& wanted) {
  std::string name = wanted;
  for (std::size_t next = 2; !taken_.insert(name).second; ++next) name = wanted + "." + std::to_string(next);
  return name;
}

// A node that no output depends on, as equations have of a net's outputs that they leave out, is not written, unless it
// holds numbers, which the file would lose.
void OnnxWriter::find_readers() {
  for (const Port& port : model_.outputs) as_numbers_.insert(port.value);
  for (auto node = model_.nodes.rbegin(); node != model_.nodes.rend(); ++node) {
    if (!as_numbers_.contains(node->name) && !as_truths_.contains(node->name) && !holds_numbers(node->operation)) {
      continue;
    }
    written_.insert(node->name);
    for (std::size_t i = 0; i < node->inputs.size(); ++i) {
      const bool condition = i == 0 && std::holds_alternative<Select>(node->operation);
      (condition ? as_truths_ : as_numbers_).insert(node->inputs[i]);
    }
  }
}

// An output port is the value that it shows, under the port's name; other values are called as their nodes.
void OnnxWriter::name_values() {
  std::map<std::string, const Node*> nodes;
  for (const Node& node : model_.nodes) nodes[node.name] = &node;
  for (const Port& port : model_.inputs) values_[port.name] = {claim(port.name), true};
  for (const Port& port : model_.outputs) {
    outputs_.push_back(claim(port.name));
    const auto node = nodes.find(port.value);
    if (node == nodes.end() || std::holds_alternative<Constant>(node->second->operation)) continue;
    named_.emplace(port.value, outputs_.back());
  }
  for (const Node& node : model_.nodes) {
    if (!named_.contains(node.name)) named_[node.name] = claim(node.name);
  }
}

onnx::GraphProto OnnxWriter::write() {
  require_text(model_.name, "model");
  graph_.set_name(model_.name.empty() ? "net" : model_.name);
  write_inputs();
  for (const Node& node : model_.nodes) {
    if (written_.contains(node.name)) write_node(node);
  }
  write_outputs();
  return std::move(graph_);
}

void OnnxWriter::write_inputs() {
  for (const Port& port : model_.inputs) describe(*graph_.add_input(), port, values_[port.name].name, type());
}

void OnnxWriter::write_outputs() {
  node_ = nullptr;
  for (std::size_t i = 0; i < model_.outputs.size(); ++i) {
    const Port& port = model_.outputs[i];
    const Value& shown = values_[port.value];
    describe(*graph_.add_output(), port, outputs_[i], type());
    if (shown.name == outputs_[i] && shown.each_sample) continue;
    if (shown.each_sample) {
      piece("Identity", {shown.name});
    } else {
      each_sample(shown);
    }
    graph_.mutable_node()->rbegin()->set_output(0, outputs_[i]);
  }
}

void OnnxWriter::write_node(const Node& node) {
  node_ = &node;
  read_.clear();
  truth_.clear();
  bool depends = false;  // on the inputs
  for (const std::string& input : node.inputs) {
    read_.push_back(values_[input]);
    depends = depends || read_.back().each_sample;
  }
  std::string made = std::visit([&](const auto& operation) { return write(operation); }, node.operation);
  if (!std::holds_alternative<Constant>(node.operation)) {
    // The last piece carries the node's name, and what it makes the value's.
    onnx::NodeProto& last = *graph_.mutable_node()->rbegin();
    last.set_name(node.name);
    if (truth_ == made) truth_ = named_[node.name];
    made = named_[node.name];
    if (!depends) {  // made of constants alone, and shown by a port
      const auto port = std::ranges::find(outputs_, made);
      if (port != outputs_.end()) made = claim(node.name);
    }
    last.set_output(0, made);
  }
  values_[node.name] = {made, depends, truth_};
}

void OnnxWriter::check_fits(double value, const std::string& what) const {
  if (!single() || std::isinf(value) || std::fabs(value) <= std::numeric_limits<float>::max()) return;
  refuse((node_ == nullptr ? "model" : node_->name) + what, number_text(value), "a number that fits in float32",
         "write the net in float64");
}

std::string OnnxWriter::tensor(const std::string& name, std::span<const double> values,
                               std::vector<std::int64_t> shape) {
  onnx::TensorProto& tensor = *graph_.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type());
  for (const std::int64_t extent : shape) tensor.add_dims(extent);
  std::string& raw = *tensor.mutable_raw_data();
  raw.resize(values.size() * (single() ? sizeof(float) : sizeof(double)));
  if (single()) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      check_fits(values[i], "[" + std::to_string(i) + "]");
      const auto value = static_cast<float>(values[i]);
      std::memcpy(raw.data() + i * sizeof value, &value, sizeof value);
    }
  } else {
    std::memcpy(raw.data(), values.data(), raw.size());
  }
  return name;
}

std::string OnnxWriter::tensor_of_node(const std::string& name, std::span<const double> values,
                                       std::vector<std::int64_t> shape) {
  tensors_[node_->name].push_back(claim(node_->name + "." + name));
  return tensor(tensors_[node_->name].back(), values, std::move(shape));
}

std::string OnnxWriter::list(const char* name, const std::vector<double>& values) {
  return tensor_of_node(name, values, {static_cast<std::int64_t>(values.size())});
}

std::string OnnxWriter::number(double value) {
  std::string& name = numbers_[value];
  if (name.empty()) name = tensor(claim("number." + number_text(value)), std::span(&value, 1), {});
  return name;
}

std::string OnnxWriter::whole_numbers(const std::string& name, std::span<const std::int64_t> values) {
  onnx::TensorProto& tensor = *graph_.add_initializer();
  tensor.set_name(claim(name));
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<std::int64_t>(values.size()));
  tensor.set_raw_data(std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
  return tensor.name();
}

std::string OnnxWriter::feature_axis() {
  constexpr std::int64_t kAxis = 1;
  if (axis_.empty()) axis_ = whole_numbers("axis.features", std::span(&kAxis, 1));
  return axis_;
}

// [batch, 1], made once.
std::string OnnxWriter::batch_shape() {
  if (!batch_.empty()) return batch_;
  const Node* const node = std::exchange(node_, nullptr);  // it is no part of the one that asks first
  piece("Shape", {values_[model_.inputs[0].name].name});
  attribute("start", std::int64_t{0});
  attribute("end", std::int64_t{1});
  batch_ = piece("Concat", {graph_.node().rbegin()->output(0), feature_axis()});
  attribute("axis", std::int64_t{0});
  node_ = node;
  return batch_;
}

std::string OnnxWriter::each_sample(const Value& value) {
  return value.each_sample ? value.name : piece("Expand", {value.name, batch_shape()});
}

std::string OnnxWriter::truth_of(std::size_t input) {
  const Value& value = read_[input];
  return value.truth.empty() ? cast(value.name, onnx::TensorProto::BOOL) : value.truth;
}

bool OnnxWriter::read_as_number(const Node& node) const { return as_numbers_.contains(node.name); }

std::string OnnxWriter::piece(const char* op, Names inputs) {
  onnx::NodeProto& node = *graph_.add_node();
  node.set_op_type(op);
  const std::string name = claim((node_ == nullptr ? std::string("batch") : node_->name) + "/" + op);
  node.set_name(name);
  for (std::string& input : inputs) node.add_input(std::move(input));
  node.add_output(name);
  return name;
}

void OnnxWriter::attribute(const char* name, std::int64_t value) {
  onnx::AttributeProto& attribute = *graph_.mutable_node()->rbegin()->add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

void OnnxWriter::attribute(const char* name, double value) {
  onnx::AttributeProto& attribute = *graph_.mutable_node()->rbegin()->add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::FLOAT);
  attribute.set_f(static_cast<float>(value));
}

std::string OnnxWriter::cast(const std::string& x, onnx::TensorProto::DataType type) {
  std::string made = piece("Cast", {x});
  attribute("to", static_cast<std::int64_t>(type));
  return made;
}

}  // namespace lockstep::nn::detail
