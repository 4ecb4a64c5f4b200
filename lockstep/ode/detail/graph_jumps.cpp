#include "lockstep/ode/detail/graph_jumps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <variant>
#include <vector>

#include "lockstep/kernels/graph/plan.h"

namespace lockstep::ode::detail {
namespace {

using Numbers = std::vector<double>;

// What tells the sides of a jump apart, if the operation may have one: its own value, what it reads against bounds, or
// of a remainder the quotient's whole part.
struct Sides {
  std::size_t value = 0;  // of the graph
  const graph::DeadZone* bounds = nullptr;
  const graph::Node* remainder = nullptr;
};

std::optional<Sides> sides_of(const graph::Node& node, std::size_t value) {
  using graph::BinaryKind;
  if (const auto* binary = std::get_if<graph::Binary>(&node.operation)) {
    if (binary->kind == BinaryKind::less || binary->kind == BinaryKind::less_or_equal) return Sides{value};
    if (binary->kind == BinaryKind::modulo) return Sides{value, nullptr, &node};
  } else if (const auto* unary = std::get_if<graph::Unary>(&node.operation)) {
    if (graph::is_in_steps(unary->kind)) return Sides{value};
  } else if (const auto* table = std::get_if<graph::Interpolate>(&node.operation)) {
    if (table->powers() == 1) return Sides{value};
  } else if (const auto* zone = std::get_if<graph::DeadZone>(&node.operation)) {
    if (zone->upper != zone->bias || zone->lower != -zone->bias) return Sides{node.inputs[0], zone};
  }
  return std::nullopt;
}

// The graph's outputs and the value that tells the sides, at one sample.
class Sample {
 public:
  Sample(const graph::Graph& graph, const Sides& sides) : sides_(sides), plan_(compile(graph, sides)) {
    for (const graph::Port& port : graph.outputs) outputs_.emplace_back(port.width);
    outputs_.emplace_back(graph.widths()[sides.value]);
  }

  void evaluate(const Numbers& rows) {
    std::vector<MatrixView<const double>> in;
    std::vector<MatrixView<double>> out;
    const double* row = rows.data();
    for (const graph::Port& port : plan_.inputs()) {
      in.push_back(MatrixView<const double>::row_major(row, 1, port.width));
      row += port.width;
    }
    for (Numbers& output : outputs_) out.push_back(MatrixView<double>::row_major(output.data(), 1, output.size()));
    plan_.evaluate(in, out);
  }
  Numbers side() const {
    Numbers side = outputs_.back();
    if (sides_.bounds == nullptr) return side;
    for (double& x : side) x = (x > sides_.bounds->upper ? 1 : 0) - (x < sides_.bounds->lower ? 1 : 0);
    return side;
  }
  const Numbers& output() const { return outputs_.front(); }

 private:
  static GraphPlan<double> compile(graph::Graph graph, const Sides& sides) {
    std::size_t value = sides.value;
    const std::size_t width = graph.widths()[value];
    if (sides.remainder != nullptr) {
      value = graph.inputs.size() + graph.nodes.size() + 1;
      graph.nodes.push_back({"quotient", graph::Binary{graph::BinaryKind::divide}, sides.remainder->inputs});
      graph.nodes.push_back({"whole", graph::Unary{graph::UnaryKind::floor}, {value - 1}});
    }
    graph.outputs.push_back({"side", value, width});
    return GraphPlan<double>::compile(graph);
  }

  Sides sides_;
  GraphPlan<double> plan_;
  std::vector<Numbers> outputs_;
};

// Numbers of either sign and of sizes from 10^-exponent to 10^exponent, evenly spread over their logarithms: a fixed
// sequence.
class Spread {
 public:
  double next(double exponent) {
    constexpr double kGolden = 0.6180339887498949, kPlastic = 0.7548776662466927;
    ++count_;
    const auto share = [this](double step) { return count_ * step - std::floor(count_ * step); };
    const double size = std::pow(10.0, exponent * (2 * share(kGolden) - 1));
    return share(kPlastic) < 0.5 ? -size : size;
  }

 private:
  double count_ = 0;
};

// Whether the outputs jump between two points with different sides; nothing where they are not finite.
bool jumps_between(Sample& sample, Numbers left, Numbers right) {
  constexpr int kMostHalvings = 200;    // between any two doubles of the sizes here 64 leave neighbours, but around 0
  constexpr double kContinuous = 1e-9;  // of neighbours, relative: a condition of a millionth of 1 / epsilon
  constexpr double kRounding = 1e-12;   // of the outputs' size far from where they pass 0
  sample.evaluate(left);
  const Numbers side = sample.side(), first = sample.output();
  sample.evaluate(right);
  if (sample.side() == side) return false;
  const Numbers last = sample.output();
  for (int i = 0; i < kMostHalvings; ++i) {
    Numbers middle = left;
    for (std::size_t k = 0; k < middle.size(); ++k) middle[k] = left[k] / 2 + right[k] / 2;
    if (middle == left || middle == right) break;
    sample.evaluate(middle);
    (sample.side() == side ? left : right) = std::move(middle);
  }
  sample.evaluate(left);
  const Numbers before = sample.output();
  sample.evaluate(right);
  const Numbers& behind = sample.output();
  for (std::size_t k = 0; k < before.size(); ++k) {
    const double change = std::fabs(before[k] - behind[k]);
    const double usual = kContinuous * (std::fabs(before[k]) + std::fabs(behind[k])) +
                         kRounding * (std::fabs(first[k]) + std::fabs(last[k]));
    if (std::isfinite(change) && change > usual) return true;
  }
  return false;
}

}  // namespace

bool jumps_at_states(const graph::Graph& graph, const GraphPieces& pieces) {
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    if (jumps_at_states(graph, pieces, node)) return true;
  }
  return false;
}

bool jumps_at_states(const graph::Graph& graph, const GraphPieces& pieces, std::size_t node) {
  constexpr std::array<double, 4> kExponents{1, 3, 0.3, 9};
  constexpr int kPairs = 64;
  const std::optional<Sides> sides = sides_of(graph.nodes[node], graph.inputs.size() + node);
  if (!sides) return false;
  Sample sample(graph, *sides);
  Spread spread;
  for (int pair = 0; pair < kPairs; ++pair) {
    const double exponent = kExponents[static_cast<std::size_t>(pair) % kExponents.size()];
    Numbers left, right;
    for (const GraphPiece& piece : pieces) {
      for (std::size_t k = 0; k < piece.count; ++k) {
        left.push_back(spread.next(exponent));
        right.push_back(piece.source == GraphSource::state ? spread.next(exponent) : left.back());
      }
    }
    if (jumps_between(sample, std::move(left), std::move(right))) return true;
  }
  return false;
}

}  // namespace lockstep::ode::detail
