// Plans of graphs against the plain reference, bit for bit: each operation, and random graphs of them.
#include "lockstep/kernels/graph/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/kernels/graph/detail/program.h"
#include "lockstep/kernels/graph/testing/random_graph.h"
#include "lockstep/kernels/graph/testing/reference.h"
#include "lockstep/kernels/graph/tile_plan.h"

namespace lockstep::graph {
namespace {

using testing::add_random_node;
using testing::Builder;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
bool same(T a, T b) {
  return (a != a && b != b) || std::memcmp(&a, &b, sizeof a) == 0;
}

// One tile of the first samples, and of one output port, by a plan that reads and writes rows where they lie.
template <class T>
void expect_tile(Graph graph, std::size_t port, const std::vector<std::vector<T>>& in, const std::vector<T>& expected,
                 std::size_t samples, CpuTarget target) {
  graph.outputs = {graph.outputs[port]};
  const auto plan = GraphTilePlan<T>::compile(graph, target);
  AlignedBuffer<std::byte> workspace(plan.workspace_bytes());
  const std::size_t lanes = std::min<std::size_t>(samples, kTileLanes);
  std::vector<std::vector<T>> rows;
  std::vector<const T*> pointers;
  for (std::size_t p = 0; p < in.size(); ++p) {
    const std::size_t width = graph.inputs[p].width;
    std::vector<T>& row = rows.emplace_back(width * kTileLanes, T(NAN));
    for (std::size_t i = 0; i < lanes * width; ++i) row[i % width * kTileLanes + i / width] = in[p][i];
    pointers.push_back(row.data());
  }
  const std::size_t width = graph.outputs[0].width;
  std::vector<T> out(width * kTileLanes);
  const auto before = rows;
  plan.evaluate(pointers, out.data(), static_cast<int>(lanes), workspace.data());
  for (std::size_t i = 0; i < lanes * width; ++i) {
    ASSERT_TRUE(same(out[i % width * kTileLanes + i / width], expected[i]))
        << to_string(target) << ", " << lanes << " lanes, output " << port << ", number " << i << "\n"
        << plan.description();
  }
  for (std::size_t p = 0; p < rows.size(); ++p) {
    ASSERT_EQ(std::memcmp(rows[p].data(), before[p].data(), rows[p].size() * sizeof(T)), 0) << "input " << p;
  }
}

// Evaluates on every target and in several splits and layouts; every number must be the reference's.
template <class T>
void expect_reference(const Graph& graph, std::size_t samples, std::mt19937& random,
                      const std::vector<double>& special = {}) {
  std::normal_distribution<double> normal(0, 1.5);
  std::vector<std::vector<T>> in, expected;
  for (const Port& port : graph.inputs) {
    std::vector<T>& values = in.emplace_back(samples * port.width);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<T>(i < special.size() ? special[i] : normal(random));
    }
  }
  for (const Port& port : graph.outputs) expected.emplace_back(samples * port.width);
  for (std::size_t s = 0; s < samples; ++s) {
    std::vector<std::vector<T>> one;
    for (std::size_t p = 0; p < in.size(); ++p) {
      const auto first = in[p].begin() + static_cast<std::ptrdiff_t>(s * graph.inputs[p].width);
      one.emplace_back(first, first + static_cast<std::ptrdiff_t>(graph.inputs[p].width));
    }
    const auto out = testing::reference<T>(graph, one);
    for (std::size_t p = 0; p < out.size(); ++p) {
      std::copy(out[p].begin(), out[p].end(), expected[p].begin() + static_cast<std::ptrdiff_t>(s * out[p].size()));
    }
  }
  for (const CpuTarget target : available_cpu_targets()) {
    const auto plan = GraphPlan<T>::compile(graph, target);
    AlignedBuffer<std::byte> workspace(plan.workspace_bytes());
    if (graph.inputs.size() <= GraphTilePlan<T>::kMostInputs) {
      expect_tile<T>(graph, graph.outputs.size() - 1, in, expected.back(), samples, target);
    }
    for (const bool by_column : {false, true}) {
      std::vector<std::vector<T>> out;
      std::vector<MatrixView<const T>> in_views;
      std::vector<MatrixView<T>> out_views;
      std::vector<std::vector<T>> columns = in;
      for (std::size_t p = 0; p < in.size(); ++p) {
        const std::size_t width = graph.inputs[p].width;
        if (by_column) {
          for (std::size_t i = 0; i < in[p].size(); ++i) columns[p][i % width * samples + i / width] = in[p][i];
        }
        in_views.push_back(by_column ? MatrixView<const T>::column_major(columns[p].data(), samples, width)
                                     : MatrixView<const T>::row_major(in[p].data(), samples, width));
      }
      for (const Port& port : graph.outputs) out.emplace_back(samples * port.width, T(-77));
      for (std::size_t p = 0; p < out.size(); ++p) {
        const std::size_t width = graph.outputs[p].width;
        out_views.push_back(by_column ? MatrixView<T>::column_major(out[p].data(), samples, width)
                                      : MatrixView<T>::row_major(out[p].data(), samples, width));
      }
      plan.evaluate(in_views, out_views, workspace.span());
      for (std::size_t p = 0; p < out.size(); ++p) {
        const std::size_t width = graph.outputs[p].width;
        for (std::size_t i = 0; i < out[p].size(); ++i) {
          const T found = by_column ? out[p][i % width * samples + i / width] : out[p][i];
          ASSERT_TRUE(same(found, expected[p][i]))
              << to_string(target) << ", " << samples << " samples, output " << p << ", number " << i << ": " << found
              << ", expected " << expected[p][i] << "\n"
              << plan.description();
        }
      }
    }
  }
}

void expect_both(const Graph& graph, std::size_t samples, const std::vector<double>& special = {}) {
  std::mt19937 random(7);
  expect_reference<float>(graph, samples, random, special);
  expect_reference<double>(graph, samples, random, special);
}

// Up to a `part` of a register of samples go by registers of features wherever a register is more than a number.
template <class T>
void expect_by_sample(const Graph& graph, std::size_t part) {
  for (const CpuTarget target : available_cpu_targets()) {
    const auto program = lower<T>(graph, target);
    const std::size_t lanes = program.kernels->lanes;
    for (std::size_t samples = 1; lanes > 1 && samples <= lanes / part; ++samples) {
      EXPECT_EQ(program.rest[samples].registers, 0) << to_string(target) << ", " << samples << " samples";
    }
  }
}

const std::vector<double> kSpecial = {0.0,   -0.0,      1.0,        -1.0,         2.0,   -2.0,   0.5,
                                      -0.5,  kInfinity, -kInfinity, std::nan(""), 100.0, -100.0, 1e30,
                                      -1e30, 1e-30,     -1e-30,     3.0,          -3.0,  0.25};

TEST(GraphPlan, every_function_of_one_element_has_the_reference_bits) {
  Builder b;
  const std::size_t x = b.input(5);
  for (std::size_t kind = 0; kind < kUnaryKinds; ++kind) b.output(b.add(Unary{static_cast<UnaryKind>(kind)}, {x}));
  b.output(b.add(Clip{0, kInfinity}, {x}));
  b.output(b.add(Clip{-1, 0.75}, {x}));
  b.output(b.add(DeadZone{-kInfinity, 0.5, 0}, {x}));
  b.output(b.add(DeadZone{-0.5, 0.5, 0.25}, {x}));
  for (const Activation& activation : all_activations()) b.output(b.add(Activate{activation}, {x}));
  b.output(b.add(Standardise{b.numbers(5), b.numbers(5, 1, 0.5)}, {x}));
  b.output(b.add(Rescale{b.numbers(5), b.numbers(5)}, {x}));
  expect_both(b.graph, 37, kSpecial);
}

// Numbers on knots, between and beyond them.
TEST(GraphPlan, tables_of_any_size_have_the_reference_bits) {
  Builder b;
  const std::size_t x = b.input(1);
  std::vector<double> at = kSpecial;
  for (const std::size_t knots : {1u, 2u, 3u, 4u, 5u, 8u, 9u, 100u, 1000u}) {
    for (const std::size_t powers : {1u, 2u, 4u}) {
      const Interpolate table = b.table(knots, powers == 2 ? 3 : 1, powers);
      if (knots < 10) at.insert(at.end(), table.knots.begin(), table.knots.end());
      b.output(b.add(table, {x}));
    }
  }
  for (const std::size_t samples : {std::size_t(1), std::size_t(5), at.size() + 40}) expect_both(b.graph, samples, at);
  // In order, each for as many lanes as some register has, so that lanes agree; one of them now and then is no number.
  std::erase_if(at, [](double x) { return x != x; });
  std::ranges::sort(at);
  for (const std::size_t times : {3u, 16u}) {
    std::vector<double> ordered;
    for (const double x : at) ordered.insert(ordered.end(), times, x);
    expect_both(b.graph, ordered.size(), ordered);
    for (std::size_t i = 5; i < ordered.size(); i += 37) ordered[i] = std::numeric_limits<double>::quiet_NaN();
    expect_both(b.graph, ordered.size(), ordered);
  }
}

TEST(GraphPlan, knots_that_are_one_number_in_float32_are_refused_there) {
  Builder b;
  b.output(b.add(Interpolate{{0, 1.7e9, 1.7e9 + 1}, 1, {1, 2, 3}}, {b.input(1)}));
  EXPECT_NO_THROW(GraphPlan<double>::compile(b.graph));
  try {
    GraphPlan<float>::compile(b.graph);
    FAIL() << "compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::model);
    EXPECT_EQ(error.field(), "n0.knots[2]");
    EXPECT_EQ(error.found(), "1700000001 after 1700000000, which are one number in float32");
  }
}

TEST(GraphPlan, every_function_of_two_elements_has_the_reference_bits) {
  Builder b;
  const std::size_t x = b.input(5), y = b.input(5), one = b.input(1);
  const std::size_t c = b.add(Constant{{0.5, 2, -1, 3, 0}}, {}), half = b.add(Constant{{0.5}}, {});
  const std::size_t mask = b.add(Constant{{0, -kInfinity, kInfinity, 1, -kInfinity}}, {});
  for (std::size_t kind = 0; kind < kBinaryKinds; ++kind) {
    const Binary op{static_cast<BinaryKind>(kind)};
    for (const auto& [left, right] : std::vector<std::pair<std::size_t, std::size_t>>{{x, y},
                                                                                      {x, c},
                                                                                      {c, x},
                                                                                      {x, half},
                                                                                      {half, x},
                                                                                      {x, one},
                                                                                      {one, x},
                                                                                      {one, c},
                                                                                      {c, half},
                                                                                      {x, x},
                                                                                      {x, mask},
                                                                                      {mask, x}}) {
      b.output(b.add(op, {left, right}));
    }
  }
  b.output(b.add(Choose{{1, 0, 0, 1, 1}}, {x, y}));
  b.output(b.add(Choose{{1, 0, 0, 1, 1}}, {x, one}));
  b.output(b.add(Choose{{1, 0, 0, 1, 1}}, {half, x}));
  const std::size_t less = b.add(Binary{BinaryKind::less}, {x, y}), sign = b.add(Binary{BinaryKind::less}, {one, half});
  b.output(b.add(Select{}, {less, x, y}));
  b.output(b.add(Select{}, {sign, x, c}));
  b.output(b.add(Select{}, {less, half, x}));
  for (const Activation& activation : all_activations()) b.output(b.add(Chain{activation}, {x, y}));
  expect_both(b.graph, 19, kSpecial);
}

TEST(GraphPlan, functions_of_all_features_have_the_reference_bits) {
  Builder b;
  for (const std::size_t width : {1, 2, 7, 20}) {
    const std::size_t x = b.input(width);
    (void)x;
  }
  for (std::size_t x = 0; x < 4; ++x) {
    const std::size_t width = b.graph.inputs[x].width;
    for (int kind = 0; kind < 4; ++kind) b.output(b.add(Reduce{static_cast<ReduceKind>(kind)}, {x}));
    b.output(b.add(Softmax{SoftmaxKind::plain}, {x}));
    b.output(b.add(Softmax{SoftmaxKind::logarithm}, {x}));
    b.output(b.add(LayerNormalise{b.numbers(width), b.numbers(width), 1e-5}, {x}));
  }
  expect_both(b.graph, 33);
}

TEST(GraphPlan, random_graphs_have_the_reference_bits_at_every_batch_size) {
  const std::size_t sizes[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 45, 64, 67};
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Builder b;
    b.random.seed(seed);
    for (std::size_t i = 0; i < 1 + b.below(3); ++i) b.input(1 + b.below(9));
    const std::size_t nodes = 3 + b.below(22);
    while (b.graph.nodes.size() < nodes) add_random_node(b);
    const std::size_t values = b.widths().size();
    for (std::size_t i = 0; i < 1 + b.below(4); ++i)
      b.output(b.below(3) == 0 ? b.below(values) : values - 1 - b.below(3));
    std::mt19937 random(seed);
    if (seed % 2 == 0) {
      expect_reference<float>(b.graph, sizes[seed % std::size(sizes)], random);
    } else {
      expect_reference<double>(b.graph, sizes[seed % std::size(sizes)], random);
    }
    if (HasFatalFailure()) return;
  }
}

TEST(GraphPlan, few_samples_have_the_reference_bits_whatever_their_widths) {
  for (const std::size_t width : {1, 5, 8, 16, 37}) {
    SCOPED_TRACE("width " + std::to_string(width));
    Builder b;
    const std::size_t x = b.input(width), y = b.input(width), one = b.input(1);
    const std::size_t c = b.add(Constant{b.numbers(width)}, {});
    std::vector<std::uint8_t> mask(width);
    std::vector<std::size_t> backwards(width);
    for (std::size_t i = 0; i < width; ++i) {
      mask[i] = i % 3 == 0;
      backwards[i] = width - 1 - i;
    }
    for (std::size_t kind = 0; kind < kUnaryKinds; ++kind) b.output(b.add(Unary{static_cast<UnaryKind>(kind)}, {x}));
    for (const Activation& activation : all_activations()) b.output(b.add(Activate{activation}, {x}));
    for (std::size_t kind = 0; kind < kBinaryKinds; ++kind) {
      const Binary op{static_cast<BinaryKind>(kind)};
      if (op.kind == BinaryKind::power) continue;
      for (const std::size_t other : {y, one, c}) {
        b.output(b.add(op, {x, other}));
        b.output(b.add(op, {other, x}));
      }
    }
    for (int kind = 0; kind < 4; ++kind) b.output(b.add(Reduce{static_cast<ReduceKind>(kind)}, {y}));
    b.output(b.add(Clip{-1, 0.75}, {x}));
    b.output(b.add(DeadZone{-0.5, 0.5, 0.25}, {x}));
    b.output(b.add(Standardise{b.numbers(width), b.numbers(width, 1, 0.5)}, {x}));
    b.output(b.add(Rescale{b.numbers(width), b.numbers(width)}, {x}));
    b.output(b.add(LayerNormalise{b.numbers(width), b.numbers(width), 1e-5}, {y}));
    b.output(b.add(Softmax{SoftmaxKind::plain}, {y}));
    b.output(b.add(Choose{mask}, {x, y}));
    b.output(b.add(Choose{mask}, {one, x}));
    b.output(b.add(Select{}, {b.add(Binary{BinaryKind::less}, {x, y}), one, c}));
    b.output(b.add(Columns{backwards}, {x}));
    b.output(b.add(Concatenate{}, {one, c, x, one}));
    b.output(b.add(Activate{{ActivationKind::tanh}}, {b.add(b.dense(width, 21), {x})}));
    b.output(b.add(Activate{{ActivationKind::relu}}, {b.add(b.dense(width, 3), {x})}));
    // By registers of lanes this would take long for a few samples: they go by registers of features.
    const std::size_t wide = b.add(b.dense(width, 300), {x});
    b.output(b.add(b.dense(300, 300), {wide}));
    expect_by_sample<float>(b.graph, 2);
    expect_by_sample<double>(b.graph, 2);
    expect_both(b.graph, 1);
    for (const std::size_t samples : {1, 2, 3, 8}) expect_both(b.graph, samples, kSpecial);
    if (width != 5) continue;
    for (const std::size_t samples : {5, 9, 11, 18}) expect_both(b.graph, samples);  // some after a register of others
  }
}

TEST(GraphPlan, a_wide_net_has_the_reference_bits_at_every_small_batch_size) {
  Builder b;
  const std::size_t state = b.input(9), at = b.input(2);
  std::size_t x = b.add(b.dense(11, 50), {b.add(Concatenate{}, {state, at})});
  for (int block = 0; block < 2; ++block) {
    const std::size_t normal = b.add(LayerNormalise{b.numbers(50), b.numbers(50), 1e-5}, {x});
    const std::size_t inner = b.add(Activate{{ActivationKind::gelu}}, {b.add(b.dense(50, 70), {normal})});
    x = b.add(Binary{BinaryKind::add}, {x, b.add(b.dense(70, 50), {inner})});
  }
  b.output(b.add(Softmax{}, {b.add(b.dense(50, 5), {x})}));
  b.output(b.add(b.dense(50, 21), {x}));
  expect_by_sample<float>(b.graph, 2);
  expect_by_sample<double>(b.graph, 2);
  for (std::size_t samples = 1; samples <= 65; ++samples) {
    if (is_tried(samples, 7)) expect_both(b.graph, samples);
    if (HasFatalFailure()) return;
  }
}

Graph heads() {
  Builder b;
  const std::size_t x = b.input(6);
  const std::size_t trunk = b.add(Activate{{ActivationKind::tanh}}, {b.add(b.dense(6, 40), {x})});
  std::vector<std::size_t> made;
  for (const std::size_t width : {3, 1, 5}) {
    made.push_back(b.add(Activate{{ActivationKind::relu}}, {b.add(b.dense(40, width), {trunk})}));
  }
  b.add(b.dense(40, 9), {trunk});  // nobody needs it
  b.output(b.add(Concatenate{}, made));
  b.output(made[1]);
  return b.graph;
}

TEST(GraphPlan, tells_what_was_fused_merged_and_dropped) {
  const std::string text = GraphPlan<float>::compile(heads()).description();
  EXPECT_THAT(text, HasSubstr("4 activations fused into layers"));
  EXPECT_THAT(text, HasSubstr("3 layers that read one value merged into 1"));
  EXPECT_THAT(text, HasSubstr("1 node dropped that no output needs"));
  EXPECT_THAT(text, HasSubstr("in 2 steps"));
}

TEST(GraphPlan, threads_and_tiles_give_the_same_bits) {
  const auto plan = GraphPlan<float>::compile(heads());
  constexpr std::size_t kSamples = 20011;
  std::vector<float> x(kSamples * 6), y(kSamples * 9), z(kSamples), y4 = y, z4 = z;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (float& value : x) value = normal(random);
  const MatrixView<const float> in[] = {MatrixView<const float>::row_major(x.data(), kSamples, 6)};
  const MatrixView<float> out[] = {MatrixView<float>::row_major(y.data(), kSamples, 9),
                                   MatrixView<float>::row_major(z.data(), kSamples, 1)};
  const MatrixView<float> out4[] = {MatrixView<float>::row_major(y4.data(), kSamples, 9),
                                    MatrixView<float>::row_major(z4.data(), kSamples, 1)};
  plan.evaluate(in, out);
  plan.evaluate(in, out4, 4);
  EXPECT_EQ(y, y4);
  EXPECT_EQ(z, z4);
  plan.evaluate(in, out4, 0);  // all
  EXPECT_EQ(y, y4);

  AlignedBuffer<std::byte> workspace(plan.workspace_bytes());
  AlignedBuffer<float> tile_in(6 * kTileLanes), tile_out(10 * kTileLanes);
  for (const int lanes : {1, 5, 16, 17, 32}) {
    for (std::size_t c = 0; c < 6; ++c) {
      for (std::size_t lane = 0; lane < kTileLanes; ++lane) tile_in[c * kTileLanes + lane] = x[lane * 6 + c];
    }
    plan.evaluate_tile({nullptr, tile_in.data(), nullptr, tile_out.data(), lanes}, workspace.data());
    for (std::size_t lane = 0; lane < static_cast<std::size_t>(lanes); ++lane) {
      for (std::size_t c = 0; c < 9; ++c) ASSERT_EQ(tile_out[c * kTileLanes + lane], y[lane * 9 + c]);
      ASSERT_EQ(tile_out[9 * kTileLanes + lane], z[lane]);
    }
  }
}

TEST(GraphPlan, names_the_port_or_node_at_fault) {
  const auto plan = GraphPlan<float>::compile(heads());
  std::vector<float> x(12), y(18), z(2);
  const auto in = MatrixView<const float>::row_major(x.data(), 2, 6);
  const auto out = MatrixView<float>::row_major(y.data(), 2, 9), second = MatrixView<float>::row_major(z.data(), 2, 1);
  using In = std::vector<MatrixView<const float>>;
  using Out = std::vector<MatrixView<float>>;
  EXPECT_THAT(message_of([&] { plan.evaluate(In{in}, Out{out}); }), HasSubstr("out views: found 1, expected 2"));
  EXPECT_THAT(message_of([&] {
                plan.evaluate(In{in}, Out{second, out});
              }),
              HasSubstr("out \"out0\".columns: found 1, expected 9"));
  EXPECT_THAT(message_of([&] {
                plan.evaluate(In{in}, Out{out, MatrixView<float>::row_major(z.data(), 1, 1)});
              }),
              HasSubstr("out \"out1\".rows: found 1, expected 2"));
  EXPECT_THAT(message_of([&] {
                plan.evaluate(In{MatrixView<const float>::row_major(nullptr, 2, 6)}, Out{out, second});
              }),
              HasSubstr("in \"in0\".data: found a null pointer, expected an address"));
  EXPECT_THAT(message_of([&] {
                plan.evaluate(In{in}, Out{out, second}, std::span<std::byte>());
              }),
              HasSubstr("workspace: found 0"));
  EXPECT_THAT(message_of([&] { plan.evaluate(In{in}, Out{out, second}, -1); }), HasSubstr("threads: found -1"));
  const auto within = MatrixView<float>::row_major(y.data() + 4, 2, 1),
             read = MatrixView<float>::row_major(x.data() + 5, 2, 1);
  EXPECT_THAT(message_of([&] {
                plan.evaluate(In{in}, Out{out, within});
              }),
              HasSubstr("out \"out1\": found memory that overlaps out \"out0\", expected memory of its own"));
  EXPECT_THAT(message_of([&] {
                plan.evaluate(In{in}, Out{out, read});
              }),
              HasSubstr("out \"out1\": found memory that overlaps in \"in0\", expected memory apart from it"));
  EXPECT_THAT(message_of([&] {
                plan.evaluate(In{in}, Out{{y.data(), 2, 9, 8, 1}, second});
              }),
              HasSubstr("out \"out0\": found strides 8 (row) and 1 (column) for 2 x 9 results, some of which share"));
  EXPECT_EQ(message_of([&] {
              plan.evaluate(In{in}, Out{{nullptr, 2, 9, 9, 1}, MatrixView<float>{x.data(), 2, 1, 6, 1}});
            }),
            "no error");  // not wanted, and in place
  for (const int threads : {1, 2}) {
    EXPECT_THAT(message_of([&] {
                  plan.evaluate(In{in}, Out{{nullptr, 2, 9, 9, 1}, MatrixView<float>{nullptr, 2, 1, 1, 1}}, threads);
                }),
                HasSubstr("out \"out0\".data: found a null pointer, expected an address"));
  }
  EXPECT_EQ(
      message_of([&] {
        plan.evaluate(In{{nullptr, 0, 6, 6, 1}}, Out{{nullptr, 0, 9, 9, 1}, MatrixView<float>{nullptr, 0, 1, 1, 1}});
      }),
      "no error");
  AlignedBuffer<std::byte> memory(plan.workspace_bytes());
  float* const scratch = reinterpret_cast<float*>(memory.data());
  EXPECT_THAT(message_of([&] {
                plan.evaluate(In{in}, Out{out, {scratch + 3, 2, 1, 1, 1}}, memory.span());
              }),
              HasSubstr("workspace: found memory that overlaps out \"out1\", expected memory of its own"));
  EXPECT_THAT(message_of([&] {
                plan.evaluate(In{{scratch, 2, 6, 6, 1}}, Out{out, second}, memory.span());
              }),
              HasSubstr("workspace: found memory that overlaps in \"in0\", expected memory of its own"));
  EXPECT_THAT(
      message_of([&] {
        plan.evaluate(In{in}, Out{{nullptr, 2, 9, 9, 1}, MatrixView<float>{nullptr, 2, 1, 1, 1}}, memory.span());
      }),
      HasSubstr("out \"out0\".data: found a null pointer, expected an address"));

  const auto fault = [](Operation operation, std::size_t reads) {
    Builder b;
    b.input(3);
    b.input(2);
    std::vector<std::size_t> inputs;
    for (std::size_t i = 0; i < reads; ++i) inputs.push_back(i);
    b.graph.nodes.push_back({"here", std::move(operation), inputs});
    return message_of([&] { b.graph.widths(); });
  };
  EXPECT_EQ(fault(Binary{}, 2),
            "here: found values of 3 and 2 features, expected one width, or one of them of width 1");
  EXPECT_EQ(fault(Binary{}, 1), "here: found 1 values to read, expected 2, as this operation takes");
  EXPECT_EQ(fault(Concatenate{}, 0), "here: found 0 values to read, expected at least one");
  EXPECT_EQ(fault(Columns{{0, 3}}, 1), "here[1]: found feature 3, expected less than 3, the width of what it reads");
  EXPECT_EQ(fault(Columns{}, 1), "here: found no features, expected at least one");
  EXPECT_EQ(fault(Constant{}, 0), "here: found no numbers, expected at least one");
  EXPECT_EQ(fault(Constant{{1, NAN}}, 0), "here[1]: found nan, expected a number");
  EXPECT_EQ(fault(Clip{1, 0}, 1), "here: found bounds 1 and 0, expected a minimum not above the maximum");
  EXPECT_THAT(fault(LayerNormalise{{1, 1}, {0, 0, 0}, 1e-5}, 1), HasSubstr("here.scale: found 2 numbers"));
  EXPECT_THAT(fault(LayerNormalise{{1, 1, 1}, {0, 0, 0}, -1}, 1), HasSubstr("here.epsilon: found -1"));
  EXPECT_EQ(fault(Activate{{ActivationKind::relu}}, 1), "no error");

  Builder big;
  big.output(big.add(Rescale{{1e300}, {0}}, {big.input(1)}));
  EXPECT_THAT(message_of([&] { GraphPlan<float>::compile(big.graph); }), HasSubstr("n0.scale[0]: found"));
  EXPECT_EQ(message_of([&] { GraphPlan<double>::compile(big.graph); }), "no error");
}

TEST(GraphPlan, refuses_an_instruction_set_that_this_machine_lacks) {
  Builder b;
  b.output(b.add(Unary{}, {b.input(1)}));
  const auto here = available_cpu_targets();
  for (const CpuTarget target : {CpuTarget::neon, CpuTarget::avx2, CpuTarget::avx512}) {
    if (std::find(here.begin(), here.end(), target) != here.end()) continue;
    EXPECT_THAT(message_of([&] { GraphPlan<float>::compile(b.graph, target); }),
                HasSubstr("found " + std::string(to_string(target)) + ", expected one this"));
  }
}

}  // namespace
}  // namespace lockstep::graph
