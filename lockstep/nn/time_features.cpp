#include "lockstep/nn/time_features.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <variant>
#include <vector>

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

// |dv/dt| of values that are a multiple of the time plus a constant.
class Multiples {
 public:
  explicit Multiples(const Model& model) {
    for (const Port& port : model.inputs) {
      if (model.inputs.size() > 1 && is_time(port)) factor_[port.name] = 1;
    }
  }
  double of(const std::string& value) const {
    const auto found = factor_.find(value);
    return found == factor_.end() ? 0 : found->second;
  }
  void add(const Node& node) {
    if (const auto* constant = std::get_if<Constant>(&node.operation)) {
      if (constant->values.size() == 1) number_[node.name] = constant->values[0];
    } else if (const auto* binary = std::get_if<Binary>(&node.operation)) {
      const std::string &a = node.inputs[0], &b = node.inputs[1];
      const auto left = number_.find(a), right = number_.find(b);
      if ((left == number_.end()) == (right == number_.end())) return;
      const double number = left == number_.end() ? right->second : left->second;
      const double factor = of(left == number_.end() ? a : b);
      if (binary->kind == BinaryKind::add || binary->kind == BinaryKind::subtract) {
        factor_[node.name] = factor;
      } else if (binary->kind == BinaryKind::multiply) {
        factor_[node.name] = factor * std::fabs(number);
      } else if (binary->kind == BinaryKind::divide && right != number_.end() && number != 0) {
        factor_[node.name] = factor / std::fabs(number);
      }
    } else if (const auto* columns = std::get_if<Columns>(&node.operation)) {  // of a port that is one number
      if (columns->indices.size() == 1) factor_[node.name] = of(node.inputs[0]);
    }
  }

 private:
  std::map<std::string, double> factor_, number_;  // by value
};

bool is_a_table(const Node& node) { return std::holds_alternative<Interpolate>(node.operation); }

// "rain" of its second call's node "rain#2.table".
std::string table_of(const std::string& node) {
  const std::string call = node.substr(0, node.rfind('.'));
  return call.substr(0, call.rfind('#'));
}

}  // namespace

std::optional<TimeFeature> shortest_time_feature(const Model& model) {
  if (std::ranges::none_of(model.nodes, is_a_table)) return std::nullopt;  // soon known: nets are solved in loops
  Multiples multiples(model);
  TimeFeature shortest{kInfinity, ""};
  for (const Node& node : model.nodes) {
    multiples.add(node);
    const auto* table = std::get_if<Interpolate>(&node.operation);
    if (table == nullptr) continue;
    const double factor = multiples.of(node.inputs[0]);
    if (factor == 0) continue;
    const double width = shortest_feature(*table) / factor;
    if (width < shortest.width) shortest = {width, table_of(node.name)};
  }
  return shortest.width == kInfinity ? std::nullopt : std::optional(shortest);
}

}  // namespace lockstep::nn
