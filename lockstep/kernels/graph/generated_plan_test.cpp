// Tile plans whose arithmetic is generated machine code against the same plans run operation by operation.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/kernels/generated/lane_code.h"
#include "lockstep/kernels/graph/testing/random_graph.h"
#include "lockstep/kernels/graph/tile_plan.h"

namespace lockstep::graph {
namespace {

using testing::Builder;
using testing::some_value;

template <class T>
GraphTilePlan<T> compiled(const Graph& graph, CpuTarget target, bool generated) {
  if (!generated) setenv("LOCKSTEP_GENERATED_CODE", "off", 1);
  auto plan = GraphTilePlan<T>::compile(graph, target);
  unsetenv("LOCKSTEP_GENERATED_CODE");
  return plan;
}

// Mostly arithmetic, now and then a function or a layer between.
void add_node(Builder& b, bool arithmetic_alone) {
  const std::size_t x = some_value(b, 0), width = b.widths()[x];
  const std::size_t twin = some_value(b, width), third = some_value(b, width), one = some_value(b, 1);
  switch (b.below(arithmetic_alone ? 14 : 20)) {
    case 0:
      b.add(Unary{static_cast<UnaryKind>(std::vector{0, 3, 4, 5, 8, 9}[b.below(6)])}, {x});
      return;
    case 1:
      b.add(Standardise{b.numbers(width), b.numbers(width, 1, 0.5)}, {x});
      return;
    case 2:
      b.add(Rescale{b.numbers(width), b.numbers(width)}, {x});
      return;
    case 3:
      b.add(Clip{-0.5, b.below(2) == 0 ? INFINITY : 1.5}, {x});
      return;
    case 4:
      b.add(DeadZone{-0.5, 0.75, 0.25}, {x});
      return;
    case 5:
      b.add(Select{}, {one, x, twin});
      return;
    case 6: {
      Choose choose;
      for (std::size_t i = 0; i < width; ++i) choose.mask.push_back(static_cast<std::uint8_t>(b.below(2)));
      b.add(choose, {x, twin});
      return;
    }
    case 7:
      b.add(Reduce{static_cast<ReduceKind>(b.below(4))}, {x});
      return;
    case 8: {
      Columns columns;
      for (std::size_t i = 0; i < 1 + b.below(3); ++i) columns.indices.push_back(b.below(width));
      b.add(columns, {x});
      return;
    }
    case 9:
      if (width < 20) b.add(Concatenate{}, {x, twin, one});
      return;
    case 10: {
      const std::size_t constant = b.add(Constant{b.numbers(width)}, {});
      b.add(Binary{b.below(7) == 0 ? BinaryKind::modulo : static_cast<BinaryKind>(b.below(6))},
            b.below(2) == 0 ? std::vector{x, constant} : std::vector{constant, x});
      return;
    }
    case 11:
      b.add(Chain{{std::vector{ActivationKind::relu, ActivationKind::tanh, ActivationKind::sigmoid}[b.below(3)]}},
            {x, third});
      return;
    case 14:
      b.add(Unary{std::vector{UnaryKind::exp, UnaryKind::log, UnaryKind::erf, UnaryKind::cosine,
                              UnaryKind::arctangent}[b.below(5)]},
            {x});
      return;
    case 15:
      b.add(Activate{{static_cast<ActivationKind>(b.below(18)), 0.75}}, {x});
      return;
    case 16:
      b.add(b.dense(width, 1 + b.below(4)), {x});
      return;
    case 17:
      b.add(Binary{BinaryKind::power}, {x, b.below(3) == 0 ? one : twin});
      return;
    case 18:
      b.add(Chain{{static_cast<ActivationKind>(b.below(18)), 0.75}}, {x, third});
      return;
    case 19:
      b.add(b.table(3 + b.below(4), 1 + b.below(3), 1 + b.below(4)), {one});
      return;
    default: {
      const std::size_t kind = b.below(kBinaryKinds - 1);
      b.add(Binary{static_cast<BinaryKind>(kind < 6 ? kind : kind + 1)}, {x, b.below(3) == 0 ? one : twin});
      return;
    }
  }
}

template <class T>
std::vector<T> evaluated(const GraphTilePlan<T>& plan, const std::vector<std::vector<T>>& in, std::size_t width,
                         int lanes) {
  std::vector<const T*> pointers;
  for (const auto& rows : in) pointers.push_back(rows.data());
  std::vector<T> out(width * kTileLanes);
  AlignedBuffer<std::byte> workspace(plan.workspace_bytes());
  plan.evaluate(pointers, out.data(), lanes, workspace.data());
  return out;
}

template <class T>
T some_number(std::mt19937& random) {
  using Limits = std::numeric_limits<T>;
  const std::vector<T> special = {0,
                                  -T(0),
                                  1,
                                  -1,
                                  Limits::infinity(),
                                  -Limits::infinity(),
                                  Limits::quiet_NaN(),
                                  Limits::denorm_min(),
                                  -Limits::min() / 4,
                                  Limits::max()};
  return random() % 5 == 0 ? special[random() % special.size()]
                           : static_cast<T>(std::normal_distribution<double>(0, 1.5)(random));
}

template <class T>
void expect_the_interpreters_bits(Graph graph, CpuTarget target, std::mt19937& random) {
  graph.outputs = {graph.outputs.back()};
  const std::size_t width = graph.outputs[0].width;
  const auto plan = compiled<T>(graph, target, true), expected_plan = compiled<T>(graph, target, false);
  std::vector<std::vector<T>> in;
  for (const Port& port : graph.inputs) {
    for (T& number : in.emplace_back(port.width * kTileLanes)) number = some_number<T>(random);
  }
  for (const int lanes : {1, 15, 16, 17, 32}) {
    const std::vector<T> found = evaluated(plan, in, width, lanes),
                         expected = evaluated(expected_plan, in, width, lanes);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (i % kTileLanes >= static_cast<std::size_t>(lanes) || (found[i] != found[i] && expected[i] != expected[i]))
        continue;
      ASSERT_EQ(std::memcmp(&found[i], &expected[i], sizeof(T)), 0)
          << to_string(target) << ", " << lanes << " lanes, number " << i << ": " << found[i] << " for " << expected[i]
          << "\n"
          << plan.description();
    }
  }
}

template <class T>
void expect_same_bits_of_random_graphs(bool arithmetic_alone) {
  std::mt19937 random(11);
  Builder b;
  for (int trial = 0; trial < 40; ++trial) {
    b.graph = {};
    b.input(1 + b.below(4));
    b.input(1);
    for (int i = 0; i < 3 + trial / 2; ++i) add_node(b, arithmetic_alone);
    if (b.below(3) == 0) {
      b.output(some_value(b, 0));
    } else {
      b.output(b.add(Concatenate{}, {some_value(b, 0), some_value(b, 0)}));
    }
    for (const CpuTarget target : available_cpu_targets()) {
      if (!LaneCode::available(target)) continue;
      expect_the_interpreters_bits<T>(b.graph, target, random);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(GeneratedPlan, arithmetic_has_the_interpreters_bits) {
  expect_same_bits_of_random_graphs<float>(true);
  expect_same_bits_of_random_graphs<double>(true);
}

TEST(GeneratedPlan, runs_between_functions_and_layers_have_the_interpreters_bits) {
  expect_same_bits_of_random_graphs<float>(false);
  expect_same_bits_of_random_graphs<double>(false);
}

TEST(GeneratedPlan, says_for_how_many_steps_code_was_generated) {
  if (!LaneCode::available(best_cpu_target())) GTEST_SKIP() << "no code is generated for this machine";
  Builder b;
  const std::size_t x = b.input(1), square = b.add(Binary{BinaryKind::multiply}, {x, x});
  const std::size_t norm = b.add(LayerNormalise{{2}, {1}, 1e-3}, {square});
  b.output(b.add(Binary{BinaryKind::add}, {b.add(Unary{UnaryKind::exp}, {norm}), x}));
  const auto said = compiled<float>(b.graph, best_cpu_target(), true).description();
  const std::string expected =
      std::string("machine code generated for ") + (kCallsFunctions ? "3" : "2") + " of 4 steps";
  EXPECT_NE(said.find(expected), std::string::npos) << said;
  EXPECT_EQ(compiled<float>(b.graph, best_cpu_target(), false).description().find("machine code"), std::string::npos);
}

// `values` products of neighbours on a ring, all made before the first of the differences between them, which go from
// the last to the first: where `apart`, one product waits for each of them.
Graph ring(std::size_t values, bool apart) {
  Builder b;
  const std::size_t u = b.input(values);
  std::vector<std::size_t> features, products, differences;
  for (std::size_t i = 0; i < values; ++i) features.push_back(b.add(Columns{{i}}, {u}));
  const auto product = [&](std::size_t i) {
    return b.add(Binary{BinaryKind::multiply}, {features[i], features[(i + 1) % values]});
  };
  for (std::size_t i = 0; i < values && apart; ++i) products.push_back(product(i));
  for (std::size_t i = values; i-- > 0;) {
    differences.push_back(b.add(Binary{BinaryKind::subtract}, {features[i], apart ? products[i] : product(i)}));
  }
  b.output(b.add(Concatenate{}, differences));
  return b.graph;
}

TEST(GeneratedPlan, as_many_equations_as_one_likes_become_code) {
  constexpr std::size_t kEquations = 1500;  // three times the places that the stack has for registers of AVX-512
  for (const CpuTarget target : available_cpu_targets()) {
    if (!LaneCode::available(target)) continue;
    for (const bool apart : {false, true}) {
      const Graph graph = ring(kEquations, apart);
      const std::string said = compiled<double>(graph, target, true).description();
      EXPECT_NE(said.find("machine code generated for 3000 of 3000 steps"), std::string::npos) << apart << said;
      std::mt19937 random(3);
      expect_the_interpreters_bits<double>(graph, target, random);
    }
  }
}

}  // namespace
}  // namespace lockstep::graph
