#include "lockstep/nn/time_features.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <variant>
#include <vector>

#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/kernels/graph/time_multiple.h"
#include "lockstep/nn/guarded_calls.h"

namespace lockstep::nn {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Of one column: a run of equal values with others before and behind, on the same side of it where lines lead there.
double shortest_feature(const std::vector<double>& knots, const double* values, bool steps) {
  double shortest = kInfinity;
  for (std::size_t first = 0; first < knots.size();) {
    std::size_t end = first + 1;
    while (end < knots.size() && values[end] == values[first]) ++end;
    if (first > 0 && end < knots.size()) {
      const bool turns = (values[first] - values[first - 1]) * (values[end] - values[first]) < 0;
      if (steps) {
        shortest = std::fmin(shortest, knots[end] - knots[first]);
      } else if (turns) {
        shortest = std::fmin(shortest, knots[end] - knots[first - 1]);
      }
    }
    first = end;
  }
  return shortest;
}

double shortest_feature(const Interpolate& table) {
  const std::size_t knots = table.knots.size();
  double shortest = kInfinity;
  for (std::size_t j = 0; j < table.outputs; ++j) {
    const double* const values = table.coefficients.data() + ((j + 1) * table.powers() - 1) * knots;
    shortest = std::fmin(shortest, shortest_feature(table.knots, values, table.powers() == 1));
  }
  return shortest;
}

bool is_a_table(const Node& node) { return std::holds_alternative<Interpolate>(node.operation); }

// "rain" of its second call's node "rain#2.table".
std::string table_of(const std::string& node) {
  const std::string call = node.substr(0, node.rfind('.'));
  return call.substr(0, call.rfind('#'));
}

}  // namespace

std::optional<TimeFeature> shortest_time_feature(const Model& model) {
  const StandardArithmetic arithmetic;
  if (std::ranges::none_of(model.nodes, is_a_table)) return std::nullopt;  // soon known: nets are solved in loops
  std::map<std::string, graph::TimeMultiple> multiples;
  for (const Port& port : model.inputs) {
    if (model.inputs.size() > 1 && is_time(port)) multiples[port.name] = {1, 0, 0};
  }
  TimeFeature shortest{kInfinity, ""};
  std::vector<const graph::TimeMultiple*> inputs;
  for (const Node& node : model.nodes) {
    inputs.clear();
    for (const std::string& input : node.inputs) {
      const auto found = multiples.find(input);
      inputs.push_back(found == multiples.end() ? nullptr : &found->second);
    }
    if (const auto made = graph::time_multiple(node.operation, inputs)) multiples[node.name] = *made;
    const auto* binary = std::get_if<Binary>(&node.operation);  // t % 24 goes as fast as t
    if (binary != nullptr && binary->kind == BinaryKind::modulo && inputs[0] != nullptr && inputs[1] != nullptr) {
      multiples[node.name] = *inputs[0];
    }
    const auto* table = std::get_if<Interpolate>(&node.operation);
    if (table == nullptr || inputs[0] == nullptr || inputs[0]->factor == 0) continue;
    const double width = shortest_feature(*table) / std::fabs(inputs[0]->factor);
    if (width < shortest.width) shortest = {width, table_of(node.name)};
  }
  return shortest.width == kInfinity ? std::nullopt : std::optional(shortest);
}

}  // namespace lockstep::nn
