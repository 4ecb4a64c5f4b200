#include "lockstep/ode/detail/graph_knots.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <variant>

#include "lockstep/kernels/graph/time_multiple.h"

namespace lockstep::ode::detail {

namespace {

using graph::TimeMultiple;
using Parameters = std::optional<std::span<const double>>;

// Of each row of the ports, which take the pieces one after another.
std::vector<std::optional<TimeMultiple>> row_values(const GraphPieces& pieces, const Parameters& parameters) {
  std::vector<std::optional<TimeMultiple>> values;
  for (const GraphPiece& piece : pieces) {
    for (std::size_t i = piece.first; i < piece.first + piece.count; ++i) {
      if (piece.source == GraphSource::time) {
        values.push_back(TimeMultiple{1, 0, 0});
      } else if (piece.source == GraphSource::parameters && parameters) {
        const double value = (*parameters)[i];
        values.push_back(TimeMultiple{0, value, std::fabs(value)});
      } else {
        values.push_back(std::nullopt);
      }
    }
  }
  return values;
}

using Inputs = std::span<const TimeMultiple* const>;

// Calls visit(value, node, inputs) for one node after another, by the number of what it makes; of its inputs those are
// null that are no multiples of the time.
template <class Visit>
void walk(const graph::Graph& graph, const GraphPieces& pieces, const Parameters& parameters, Visit visit) {
  const std::vector<std::optional<TimeMultiple>> rows = row_values(pieces, parameters);
  std::vector<std::optional<TimeMultiple>> values;
  std::vector<std::size_t> first_row;  // of each port
  std::size_t row = 0;
  for (const graph::Port& port : graph.inputs) {
    values.push_back(port.width == 1 ? rows[row] : std::nullopt);
    first_row.push_back(row);
    row += port.width;
  }
  std::vector<const TimeMultiple*> inputs;
  for (const graph::Node& node : graph.nodes) {
    inputs.clear();
    for (const std::size_t input : node.inputs) inputs.push_back(values[input] ? &*values[input] : nullptr);
    const auto* columns = std::get_if<graph::Columns>(&node.operation);
    if (columns != nullptr && columns->indices.size() == 1 && node.inputs[0] < first_row.size()) {
      const std::optional<TimeMultiple>& taken = rows[first_row[node.inputs[0]] + columns->indices[0]];
      inputs[0] = taken ? &*taken : nullptr;
    }
    visit(values.size(), node, Inputs(inputs));
    values.push_back(graph::time_multiple(node.operation, inputs));
  }
}

// What a value is made of.
struct Sources {
  bool time = false, state = false;
};

bool may_jump(const graph::Operation& operation) {
  if (const auto* binary = std::get_if<graph::Binary>(&operation)) {
    return binary->kind == graph::BinaryKind::less || binary->kind == graph::BinaryKind::less_or_equal;
  }
  return std::holds_alternative<graph::Interpolate>(operation) || std::holds_alternative<graph::DeadZone>(operation);
}

}  // namespace

bool reads_time(const GraphPieces& pieces) {
  return std::ranges::any_of(pieces, [](const GraphPiece& piece) { return piece.source == GraphSource::time; });
}

std::vector<TimeKnot> time_knots(const graph::Graph& graph, const GraphPieces& pieces,
                                 std::span<const std::size_t> continuous, Parameters parameters) {
  std::vector<TimeKnot> knots;
  if (!reads_time(pieces)) return knots;
  walk(graph, pieces, parameters, [&](std::size_t made, const graph::Node& node, Inputs inputs) {
    graph::find_bends(node.operation, inputs, [&](const TimeMultiple& argument, double value, bool jumps) {
      const double time = argument.time_of(value);
      if (!std::isfinite(time)) return;
      jumps = jumps && !std::ranges::binary_search(continuous, made);
      knots.push_back({time, jumps, std::max(argument.magnitude, std::fabs(value)) / std::fabs(argument.factor)});
    });
  });
  return knots;
}

bool hides_knots(const graph::Graph& graph, const GraphPieces& pieces, std::span<const std::size_t> continuous,
                 std::size_t parameters) {
  if (!reads_time(pieces)) return false;
  std::vector<Sources> rows, values;
  for (const GraphPiece& piece : pieces) {
    rows.insert(rows.end(), piece.count, {piece.source == GraphSource::time, piece.source == GraphSource::state});
  }
  std::vector<std::size_t> first_row;
  std::size_t row = 0;
  const auto both = [](Sources a, Sources b) { return Sources{a.time || b.time, a.state || b.state}; };
  for (const graph::Port& port : graph.inputs) {
    first_row.push_back(row);
    Sources all;
    for (std::size_t i = 0; i < port.width; ++i) all = both(all, rows[row++]);
    values.push_back(all);
  }
  bool hides = false;
  walk(graph, pieces, any_parameters(parameters), [&](std::size_t made, const graph::Node& node, Inputs inputs) {
    Sources all;
    const auto* columns = std::get_if<graph::Columns>(&node.operation);
    if (columns != nullptr && node.inputs[0] < first_row.size()) {
      for (const std::size_t index : columns->indices) all = both(all, rows[first_row[node.inputs[0]] + index]);
    } else {
      for (const std::size_t input : node.inputs) all = both(all, values[input]);
    }
    const bool located = std::ranges::none_of(inputs, [](const TimeMultiple* input) { return input == nullptr; });
    hides = hides || (all.time && !all.state && !located && may_jump(node.operation) &&
                      !std::ranges::binary_search(continuous, made));
    values.push_back(all);
  });
  return hides;
}

}  // namespace lockstep::ode::detail
