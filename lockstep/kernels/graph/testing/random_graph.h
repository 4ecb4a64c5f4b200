// Graphs for tests: built value by value, or of random operations on each other's results.
#pragma once

#include <cmath>
#include <cstddef>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/kernels/graph/graph.h"

namespace lockstep::graph::testing {

// Builds graphs value by value; returns numbers of values.
class Builder {
 public:
  std::size_t input(std::size_t width) {
    graph.inputs.push_back({"in" + std::to_string(graph.inputs.size()), graph.inputs.size(), width});
    return graph.inputs.size() - 1;
  }
  std::size_t add(Operation operation, std::vector<std::size_t> inputs) {
    graph.nodes.push_back({"n" + std::to_string(graph.nodes.size()), std::move(operation), std::move(inputs)});
    return graph.inputs.size() + graph.nodes.size() - 1;
  }
  void output(std::size_t value) {
    const std::string name = "out" + std::to_string(graph.outputs.size());
    graph.outputs.push_back({name, value, 0});
    graph.outputs.back().width = widths()[value];
  }
  std::vector<std::size_t> widths() const {
    Graph bare = graph;
    bare.outputs.clear();
    return bare.widths();
  }
  Dense dense(std::size_t inputs, std::size_t outputs) {
    return {inputs, outputs, numbers(inputs * outputs, 1 / std::sqrt(static_cast<double>(inputs))),
            numbers(outputs, 0.5)};
  }
  std::vector<double> numbers(std::size_t count, double size = 1, double least = 0) {
    std::uniform_real_distribution<double> uniform(-size, size);
    std::vector<double> values(count);
    for (double& value : values) {
      value = static_cast<float>(uniform(random));
      value += value < 0 ? -least : least;
    }
    return values;
  }
  // Knots some 0.01 to 1 apart around 0, float32 numbers; as many coefficients.
  Interpolate table(std::size_t knots, std::size_t outputs, std::size_t powers) {
    Interpolate made{{}, outputs, numbers(knots * outputs * powers, 2)};
    std::uniform_real_distribution<double> apart(0.01, 1);
    double at = -0.25 * static_cast<double>(knots);
    for (std::size_t i = 0; i < knots; ++i) made.knots.push_back(static_cast<float>(at += apart(random)));
    return made;
  }
  std::size_t below(std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(random); }

  Graph graph;
  std::mt19937 random{20261121};
};

// A value chosen among those there are, of the given width where that is not 0.
inline std::size_t some_value(Builder& b, std::size_t width) {
  const std::vector<std::size_t> widths = b.widths();
  std::vector<std::size_t> fitting;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (width == 0 || widths[i] == width) fitting.push_back(i);
  }
  return fitting.empty() ? ~std::size_t(0) : fitting[b.below(fitting.size())];
}

// Appends an operation, or a few that belong together.
inline void add_random_node(Builder& b) {
  const std::size_t x = some_value(b, 0), width = b.widths()[x];
  const std::size_t twin = some_value(b, width), one = some_value(b, 1);
  switch (b.below(15)) {
    case 0:
    case 1: {
      const std::size_t layer = b.add(b.dense(width, 1 + b.below(20)), {x});
      if (b.below(2) == 0) b.add(Activate{all_activations()[b.below(all_activations().size())]}, {layer});
      return;
    }
    case 2: {  // heads
      const std::size_t heads = 2 + b.below(3);
      for (std::size_t i = 0; i < heads; ++i) {
        const std::size_t layer = b.add(b.dense(width, 1 + b.below(6)), {x});
        if (i != 1) b.add(Activate{{ActivationKind::tanh}}, {layer});
      }
      return;
    }
    case 3:
      b.add(Activate{{b.below(2) == 0 ? ActivationKind::relu : ActivationKind::silu}}, {x});
      return;
    case 4: {
      std::vector<std::size_t> parts = {x};
      for (std::size_t i = 0; i < b.below(3) + 1; ++i) parts.push_back(some_value(b, 0));
      std::size_t sum = 0;
      for (const std::size_t part : parts) sum += b.widths()[part];
      if (sum < 60) b.add(Concatenate{}, parts);
      return;
    }
    case 5: {
      const std::size_t first = b.below(width), count = 1 + b.below(width - first);
      Columns columns;
      for (std::size_t i = 0; i < count; ++i) columns.indices.push_back(first + i);
      b.add(columns, {x});
      return;
    }
    case 6: {
      Columns columns;
      for (std::size_t i = 0; i < 1 + b.below(5); ++i) columns.indices.push_back(b.below(width));
      b.add(columns, {x});
      return;
    }
    case 7:
      b.add(Binary{static_cast<BinaryKind>(b.below(6))}, {x, twin});
      return;
    case 8:
      if (one != ~std::size_t(0)) b.add(Binary{BinaryKind::multiply}, {x, one});
      return;
    case 9: {
      const std::size_t constant = b.add(Constant{b.numbers(b.below(2) == 0 ? 1 : width)}, {});
      b.add(Binary{static_cast<BinaryKind>(b.below(4))}, {x, constant});
      return;
    }
    case 13:
      b.add(Binary{BinaryKind::modulo}, {x, b.below(2) == 0 ? b.add(Constant{{1.75}}, {}) : twin});
      return;
    case 10:
      b.add(Softmax{}, {x});
      return;
    case 12:
      b.add(Select{}, {x, twin, some_value(b, width)});
      return;
    case 11:
      b.add(LayerNormalise{b.numbers(width), b.numbers(width), 1e-5}, {x});
      return;
    default:
      b.add(Unary{std::vector{UnaryKind::negate, UnaryKind::absolute, UnaryKind::floor, UnaryKind::round}[b.below(4)]},
            {x});
      return;
  }
}

}  // namespace lockstep::graph::testing
