// For tests: models that are no plain stacks.
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/kernels/graph/testing/random_graph.h"
#include "lockstep/nn/model.h"

namespace lockstep::nn::testing {

// A net under names, as to_graph() would have read it.
inline Model named(const graph::Graph& graph) {
  Model model;
  std::vector<std::string> names;
  for (const graph::Port& port : graph.inputs) {
    model.inputs.push_back({port.name, "", std::vector<Feature>(port.width)});
    names.push_back(port.name);
  }
  for (const graph::Node& node : graph.nodes) {
    std::vector<std::string> reads;
    for (const std::size_t input : node.inputs) reads.push_back(names[input]);
    model.nodes.push_back({node.name, node.operation, reads});
    names.push_back(node.name);
  }
  for (const graph::Port& port : graph.outputs) {
    model.outputs.push_back({port.name, names[port.value], std::vector<Feature>(port.width)});
  }
  return model;
}

// Each operation in each of its kinds, an output port for each.
inline Model every_operation() {
  graph::testing::Builder b;
  const std::size_t x = b.input(5), y = b.input(5), one = b.input(1);
  b.input(2);  // that nothing reads
  const std::size_t c = b.add(Constant{{0.5, 2, -1, 3, 0}}, {}), half = b.add(Constant{{0.5}}, {});
  const std::size_t positive = b.add(Unary{UnaryKind::absolute}, {x});
  for (std::size_t kind = 0; kind < graph::kUnaryKinds; ++kind) {
    b.output(b.add(Unary{static_cast<UnaryKind>(kind)}, {kind == 2 ? positive : x}));
  }
  for (std::size_t kind = 0; kind < graph::kBinaryKinds; ++kind) {
    const Binary op{static_cast<BinaryKind>(kind)};
    for (const auto& [left, right] :
         std::vector<std::pair<std::size_t, std::size_t>>{{x, y}, {x, c}, {half, x}, {x, one}, {x, x}}) {
      b.output(b.add(op, {left, right}));
    }
  }
  b.output(b.add(Binary{}, {c, half}));
  const std::size_t mask = b.add(Constant{{0, -INFINITY, 0, INFINITY, -INFINITY}}, {});
  for (const BinaryKind kind : {BinaryKind::add, BinaryKind::minimum, BinaryKind::maximum, BinaryKind::less}) {
    b.output(b.add(Binary{kind}, {x, mask}));
  }
  b.output(b.add(Concatenate{}, {mask, b.add(Binary{BinaryKind::maximum}, {b.add(Constant{{-INFINITY}}, {}), y})}));
  b.output(b.add(Clip{0, INFINITY}, {x}));
  b.output(b.add(Clip{-1, 0.75}, {y}));
  b.output(b.add(DeadZone{-0.5, 0.5, 0.25}, {x}));
  b.output(b.add(DeadZone{-INFINITY, 0.5, 0}, {x}));
  for (const std::size_t knots : {1u, 3u, 9u}) b.output(b.add(b.table(knots, 2, 1 + knots / 3), {one}));
  b.output(b.add(Choose{{1, 0, 0, 1, 1}}, {x, one}));
  const std::size_t less = b.add(Binary{BinaryKind::less}, {x, y});
  b.output(b.add(Select{}, {less, x, one}));
  b.output(b.add(Concatenate{}, {x, c, one, y}));
  b.output(b.add(Columns{{4, 0, 0, 2}}, {x}));
  for (int kind = 0; kind < 4; ++kind) b.output(b.add(Reduce{static_cast<ReduceKind>(kind)}, {y}));
  b.output(b.add(Softmax{SoftmaxKind::plain}, {x}));
  b.output(b.add(Softmax{SoftmaxKind::logarithm}, {x}));
  b.output(b.add(LayerNormalise{b.numbers(5), b.numbers(5), 1e-5}, {y}));
  b.output(b.add(Standardise{b.numbers(5), b.numbers(5, 1, 0.5)}, {x}));
  b.output(b.add(Rescale{b.numbers(5), b.numbers(5)}, {x}));
  const std::size_t layer = b.add(b.dense(5, 19), {x});
  b.output(b.add(Activate{{ActivationKind::tanh}}, {layer}));
  b.output(b.add(Activate{{ActivationKind::sin}}, {layer}));  // of the same sums
  b.output(b.add(Activate{{ActivationKind::identity}}, {y}));
  for (const Activation& activation : all_activations()) b.output(b.add(Chain{activation}, {x, y}));
  b.output(x);
  return named(b.graph);
}

inline Model random_net(unsigned seed) {
  graph::testing::Builder b;
  b.random.seed(seed);
  for (std::size_t i = 0; i < 1 + b.below(3); ++i) b.input(1 + b.below(9));
  while (b.graph.nodes.size() < 20) add_random_node(b);
  for (std::size_t i = 0; i < 3; ++i) b.output(b.widths().size() - 1 - b.below(6));
  return named(b.graph);
}

}  // namespace lockstep::nn::testing
