#include "lockstep/ode/detail/graph_knots.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <variant>

#include "lockstep/kernels/graph/time_multiple.h"

namespace lockstep::ode::detail {

std::vector<TimeKnot> time_knots(const graph::Graph& graph, const GraphPieces& pieces) {
  using graph::TimeMultiple;
  if (std::ranges::none_of(pieces, [](const GraphPiece& piece) { return piece.source == GraphSource::time; }))
    return {};
  // Ports take the pieces one after another: where in them the time lies.
  std::size_t time_row = 0;
  for (const GraphPiece& piece : pieces) {
    if (piece.source == GraphSource::time) break;
    time_row += piece.count;
  }
  static constexpr TimeMultiple kTime{1, 0, 0};
  std::vector<std::optional<TimeMultiple>> values;
  std::vector<std::size_t> first_row;  // of each port
  std::size_t row = 0;
  for (const graph::Port& port : graph.inputs) {
    const bool is_time = port.width == 1 && row == time_row;
    values.push_back(is_time ? std::optional(kTime) : std::nullopt);
    first_row.push_back(row);
    row += port.width;
  }
  std::vector<TimeKnot> knots;
  std::vector<const TimeMultiple*> inputs;
  for (const graph::Node& node : graph.nodes) {
    inputs.clear();
    for (const std::size_t input : node.inputs) inputs.push_back(values[input] ? &*values[input] : nullptr);
    const auto* columns = std::get_if<graph::Columns>(&node.operation);
    if (columns != nullptr && columns->indices.size() == 1 && node.inputs[0] < first_row.size() &&
        first_row[node.inputs[0]] + columns->indices[0] == time_row) {
      inputs[0] = &kTime;
    }
    graph::find_bends(node.operation, inputs, [&](const TimeMultiple& argument, double value, bool jumps) {
      const double time = argument.time_of(value);
      if (!std::isfinite(time)) return;
      knots.push_back({time, jumps, std::max(argument.magnitude, std::fabs(value)) / std::fabs(argument.factor)});
    });
    values.push_back(graph::time_multiple(node.operation, inputs));
  }
  return knots;
}

}  // namespace lockstep::ode::detail
