#include "lockstep/kernels/graph/graph.h"

#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/hash.h"

namespace lockstep::graph {
namespace {

[[noreturn]] void refuse_graph(std::string field, std::string found, std::string expected) {
  throw Error(ErrorKind::model, {std::move(field), std::move(found), std::move(expected), ""});
}

void add_operation(ContentHash& hash, const Operation& operation) {
  const auto add_list = [&](const std::vector<double>& values) { hash.add(std::span<const double>(values)); };
  const auto add_number = [&](double value) { hash.add(std::span<const double>(&value, 1)); };
  hash.add(name_of(operation));
  std::visit(
      [&]<class T>(const T& op) {
        if constexpr (std::is_same_v<T, Dense>) {
          add_list(op.weights);
          add_list(op.bias);
        } else if constexpr (std::is_same_v<T, Activate> || std::is_same_v<T, Chain>) {
          hash.add(lockstep::to_string(op.activation));
        } else if constexpr (std::is_same_v<T, Standardise>) {
          add_list(op.shift);
          add_list(op.scale);
        } else if constexpr (std::is_same_v<T, Rescale>) {
          add_list(op.scale);
          add_list(op.shift);
        } else if constexpr (std::is_same_v<T, Constant>) {
          add_list(op.values);
        } else if constexpr (std::is_same_v<T, Columns>) {
          const std::vector<std::uint64_t> indices(op.indices.begin(), op.indices.end());
          hash.add(std::span<const std::uint64_t>(indices));
        } else if constexpr (std::is_same_v<T, Clip>) {
          add_number(op.minimum);
          add_number(op.maximum);
        } else if constexpr (std::is_same_v<T, DeadZone>) {
          add_number(op.lower);
          add_number(op.upper);
          add_number(op.bias);
        } else if constexpr (std::is_same_v<T, Choose>) {
          hash.add(std::span<const std::uint8_t>(op.mask));
        } else if constexpr (std::is_same_v<T, Interpolate>) {
          add_list(op.knots);
          add_number(static_cast<double>(op.outputs));
          add_list(op.coefficients);
        } else if constexpr (std::is_same_v<T, LayerNormalise>) {
          add_list(op.scale);
          add_list(op.shift);
          add_number(op.epsilon);
        } else if constexpr (!std::is_same_v<T, Concatenate> &&
                             !std::is_same_v<T, Select>) {  // Unary, Binary, Softmax, Reduce
          hash.add(to_string(op.kind));
        }
      },
      operation);
}

}  // namespace

std::vector<std::size_t> Graph::widths() const {
  std::vector<std::size_t> widths;
  for (const Port& port : inputs) {
    if (port.value != widths.size() || port.width == 0) {
      refuse_graph("input port \"" + port.name + '"', "value " + std::to_string(port.value),
                   "its own number and a width");
    }
    widths.push_back(port.width);
  }
  std::vector<std::size_t> read;
  for (const Node& node : nodes) {
    read.clear();
    for (const std::size_t input : node.inputs) {
      if (input >= widths.size())
        refuse_graph(node.name, "value " + std::to_string(input) + " to read", "an earlier one");
      read.push_back(widths[input]);
    }
    widths.push_back(output_width(node.operation, read, node.name));
  }
  for (const Port& port : outputs) {
    if (port.value >= widths.size() || widths[port.value] != port.width) {
      refuse_graph("output port \"" + port.name + '"', "value " + std::to_string(port.value), "a value of its width");
    }
  }
  return widths;
}

std::string Graph::digest() const {
  ContentHash hash;
  const auto add_number = [&](std::uint64_t number) { hash.add(std::span<const std::uint64_t>(&number, 1)); };
  for (const Port& port : inputs) add_number(port.width);
  for (const Node& node : nodes) {
    add_number(node.inputs.size());
    for (const std::size_t input : node.inputs) add_number(input);
    add_operation(hash, node.operation);
  }
  for (const Port& port : outputs) add_number(port.value);
  return hash.hex();
}

}  // namespace lockstep::graph
