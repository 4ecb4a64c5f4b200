// DeviceGraphPlan over a simulated device: the bits of the CPU's plan for every operation and for random graphs, values
// in shared and in global memory, any layout; typed errors. With LOCKSTEP_TEST_DEVICE=cuda the tests of numbers run on
// this machine's GPU.
#include "lockstep/kernels/cuda/device_graph_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/kernels/cuda/graph_image.h"
#include "lockstep/kernels/cuda/testing/card_graph.h"
#include "lockstep/kernels/cuda/testing/on_a_card.h"
#include "lockstep/kernels/cuda/testing/simulated_evaluation_runtime.h"
#include "lockstep/kernels/graph/derivative.h"
#include "lockstep/kernels/graph/plan.h"
#include "lockstep/kernels/graph/testing/random_graph.h"

namespace lockstep::cuda {
namespace {

using namespace graph;
using graph::testing::add_random_node;
using graph::testing::Builder;
using ::testing::HasSubstr;
using testing::on_a_card;

class DeviceGraph : public ::testing::Test {
 protected:
  DeviceGraph() { replace_evaluation_runtime(&runtime_); }
  ~DeviceGraph() override { replace_evaluation_runtime(nullptr); }

  // This machine's GPU where it was asked for, else the simulated one.
  EvaluationRuntime& runtime() {
    if (!on_a_card()) return runtime_;
    replace_evaluation_runtime(nullptr);
    std::string missing;
    EvaluationRuntime* const found = load_evaluation_runtime(missing);
    EXPECT_NE(found, nullptr) << missing;
    return found == nullptr ? runtime_ : *found;
  }
  testing::SimulatedEvaluationRuntime runtime_;
};

template <class T>
MatrixView<T> view_of(T* data, std::size_t rows, std::size_t columns, bool by_column) {
  return by_column ? MatrixView<T>::column_major(data, rows, columns) : MatrixView<T>::row_major(data, rows, columns);
}

// The numbers of every output port, samples by the CPU's plan and by the device's.
template <class T>
void expect_same_bits(EvaluationRuntime& runtime, const Graph& graph, std::size_t samples, bool by_column,
                      const std::vector<double>& special = {}) {
  SCOPED_TRACE(::testing::Message() << samples << " samples, " << (by_column ? "by column" : "by row") << ", "
                                    << sizeof(T) << " bytes a number");
  const auto plan = DeviceGraphPlan<T>::compile(graph);
  std::mt19937 random(7);
  std::normal_distribution<double> normal(0, 1.5);
  std::vector<std::vector<T>> in, expected;
  std::vector<void*> device_in, device_out;
  std::vector<MatrixView<const T>> in_views, device_in_views;
  std::vector<MatrixView<T>> out_views, device_out_views;
  const auto upload = [&](const std::vector<T>& numbers) {
    void* memory = nullptr;
    const std::size_t bytes = std::max<std::size_t>(numbers.size(), 1) * sizeof(T);
    EXPECT_EQ(numbers.empty() ? runtime.allocate(0, bytes, memory) : runtime.upload(0, numbers.data(), bytes, memory),
              "");
    return memory;
  };
  for (const Port& port : graph.inputs) {
    std::vector<T>& x = in.emplace_back(samples * port.width);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i < special.size() ? special[i] : normal(random));
    device_in.push_back(upload(x));
  }
  for (const Port& port : graph.outputs) {
    device_out.push_back(upload(expected.emplace_back(samples * port.width, T(-77))));
  }
  for (std::size_t p = 0; p < in.size(); ++p) {
    const std::size_t width = graph.inputs[p].width;
    in_views.push_back(view_of<const T>(in[p].data(), samples, width, by_column));
    device_in_views.push_back(view_of<const T>(static_cast<const T*>(device_in[p]), samples, width, by_column));
  }
  for (std::size_t p = 0; p < expected.size(); ++p) {
    const std::size_t width = graph.outputs[p].width;
    out_views.push_back(view_of(expected[p].data(), samples, width, by_column));
    device_out_views.push_back(view_of(static_cast<T*>(device_out[p]), samples, width, by_column));
  }
  GraphPlan<T>::compile(graph).evaluate(in_views, out_views);
  plan.enqueue(nullptr, device_in_views, device_out_views);
  for (std::size_t p = 0; p < expected.size(); ++p) {
    std::vector<T> out(expected[p].size());
    EXPECT_EQ(runtime.download(0, out.data(), device_out[p], out.size() * sizeof(T)), "");
    for (std::size_t i = 0; i < out.size(); ++i) {
      const bool both_nan = std::isnan(out[i]) && std::isnan(expected[p][i]);
      ASSERT_TRUE(both_nan || std::memcmp(&out[i], &expected[p][i], sizeof(T)) == 0)
          << "output " << p << ", number " << i << ": " << out[i] << ", expected " << expected[p][i] << "\n"
          << plan.description();
    }
  }
  for (void* const memory : device_in) runtime.release(0, memory);
  for (void* const memory : device_out) runtime.release(0, memory);
}

const std::vector<double> kSpecial = {0.0,          -0.0, 1.0,    -1.0, 2.0,   -2.0,  0.5,    -0.5, INFINITY, -INFINITY,
                                      std::nan(""), 100., -100.0, 1e30, -1e30, 1e-30, -1e-30, 3.0,  -3.0,     0.25};

TEST_F(DeviceGraph, has_the_bits_of_the_cpu_for_every_operation) {
  Builder b;
  const std::size_t x = b.input(5), y = b.input(5), one = b.input(1);
  for (std::size_t kind = 0; kind < graph::kUnaryKinds; ++kind) {
    b.output(b.add(Unary{static_cast<UnaryKind>(kind)}, {x}));
  }
  for (std::size_t kind = 0; kind < graph::kBinaryKinds; ++kind) {
    const Binary op{static_cast<BinaryKind>(kind)};
    b.output(b.add(op, {x, y}));
    b.output(b.add(op, {one, x}));
  }
  const std::size_t constants = b.add(Constant{b.numbers(5)}, {});
  b.output(b.add(Binary{BinaryKind::multiply}, {x, constants}));
  b.output(b.add(Binary{BinaryKind::subtract}, {constants, y}));
  b.output(b.add(Concatenate{}, {x, constants, x}));
  b.output(b.add(Columns{{4, 0, 0, 2}}, {x}));
  b.output(b.add(Clip{-1, 0.75}, {x}));
  b.output(b.add(DeadZone{-0.5, 0.5, 0.25}, {x}));
  for (const std::size_t knots : {1u, 3u, 9u}) b.output(b.add(b.table(knots, 2, 1 + knots / 3), {one}));
  b.output(b.add(Standardise{b.numbers(5), b.numbers(5, 1, 0.5)}, {x}));
  b.output(b.add(Rescale{b.numbers(5), b.numbers(5)}, {x}));
  b.output(b.add(Choose{{1, 0, 0, 1, 1}}, {x, one}));
  b.output(b.add(Select{}, {x, y, one}));
  for (const auto kind : {SoftmaxKind::plain, SoftmaxKind::logarithm}) b.output(b.add(Softmax{kind}, {y}));
  for (int kind = 0; kind < 4; ++kind) b.output(b.add(Reduce{static_cast<ReduceKind>(kind)}, {x}));
  b.output(b.add(LayerNormalise{b.numbers(5), b.numbers(5), 1e-5}, {y}));
  for (const bool by_column : {false, true}) {
    expect_same_bits<float>(runtime(), b.graph, 37, by_column, kSpecial);
    expect_same_bits<double>(runtime(), b.graph, 37, by_column, kSpecial);
  }
  Builder c;
  const std::size_t u = c.input(5), v = c.input(5);
  for (const Activation& activation : all_activations()) {
    c.output(c.add(Activate{activation}, {u}));
    c.output(c.add(Chain{activation}, {u, v}));
  }
  expect_same_bits<float>(runtime(), c.graph, 37, false, kSpecial);
  expect_same_bits<double>(runtime(), c.graph, 37, false, kSpecial);
}

TEST_F(DeviceGraph, has_the_bits_of_the_cpu_for_random_graphs) {
  for (int round = 0; round < 12; ++round) {
    Builder b;
    b.random.seed(static_cast<unsigned>(round));
    SCOPED_TRACE(::testing::Message() << "seed " << round);
    b.input(1 + b.below(6));
    b.input(1 + b.below(6));
    while (b.graph.nodes.size() < 12) add_random_node(b);
    for (int i = 0; i < 3; ++i) b.output(b.below(b.widths().size()));
    runtime_.shared_memory = round % 3 == 2 ? 64 : 232448;  // the former: values in global memory
    expect_same_bits<float>(runtime(), b.graph, 150, round % 2 == 1);
    expect_same_bits<double>(runtime(), b.graph, 70, round % 2 == 0);
  }
}

// What a net's derivatives are made of, as nn::derivative_model() hands it over.
TEST_F(DeviceGraph, has_the_bits_of_the_cpu_for_derivatives) {
  for (const unsigned seed : {3u, 8u}) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Builder b;
    b.random.seed(seed);
    b.input(2);
    b.input(1);
    while (b.graph.nodes.size() < 10) add_random_node(b);
    b.output(b.widths().size() - 1);
    b.output(b.add(Activate{{ActivationKind::tanh}}, {b.add(b.dense(2, 5), {0})}));
    for (const Graph& derivative : {jvp_graph(b.graph), vjp_graph(b.graph), jacobian_graph(b.graph)}) {
      expect_same_bits<float>(runtime(), derivative, 37, true);
      expect_same_bits<double>(runtime(), derivative, 33, false);
    }
  }
}

TEST(GraphImage, holds_the_weights_of_a_jacobian_once_with_biases_and_once_without) {
  Builder b;
  const std::size_t hidden = b.add(Activate{{ActivationKind::tanh}}, {b.add(b.dense(8, 64), {b.input(8)})});
  const std::size_t deep = b.add(Activate{{ActivationKind::tanh}}, {b.add(b.dense(64, 64), {hidden})});
  b.output(b.add(b.dense(64, 8), {deep}));
  const std::size_t net = make_graph_image<float>(b.graph).numbers.size();
  const std::size_t columns = 8 * 64;  // of the first layer
  EXPECT_LE(make_graph_image<float>(jacobian_graph(b.graph)).numbers.size(), 2 * net + columns);
}

Graph residual(std::size_t inputs, std::size_t width) {
  Builder b;
  const std::size_t x = b.input(inputs);
  const std::size_t h = b.add(Activate{{ActivationKind::relu}}, {b.add(b.dense(inputs, width), {x})});
  const std::size_t inner = b.add(Activate{{ActivationKind::tanh}}, {b.add(b.dense(width, width), {h})});
  b.output(b.add(b.dense(width, 3), {b.add(Binary{BinaryKind::add}, {h, inner})}));
  return b.graph;
}

TEST_F(DeviceGraph, takes_every_batch_and_layers_of_any_width) {
  std::size_t turn = 0;
  for (const std::size_t samples : testing::batch_sizes({0, 1, 31, 33, 127, 257})) {
    if (is_tried(turn++, 3)) expect_same_bits<float>(runtime(), residual(7, 33), samples, false);
    if (is_tried(turn++, 3)) expect_same_bits<double>(runtime(), residual(7, 33), samples, true);
  }
  expect_same_bits<float>(runtime(), residual(3, 256), 65, false);
  expect_same_bits<double>(runtime(), residual(3, 430), 40, true);  // in global memory
}

TEST_F(DeviceGraph, keeps_values_in_shared_memory_where_they_fit) {
  const auto text = [](const Graph& graph) { return DeviceGraphPlan<float>::compile(graph).description(); };
  EXPECT_THAT(text(residual(7, 33)), HasSubstr("a tile of 128 or 32 samples, 73 rows in shared memory"));
  // Two blocks of 32 samples a multiprocessor rather than one of 128.
  EXPECT_THAT(text(residual(7, 180)), HasSubstr("a tile of 32 samples, 367 rows in shared memory"));
  EXPECT_THAT(text(residual(7, 1000)), HasSubstr("a tile of 128 or 32 samples, 2007 rows in global memory"));
}

TEST_F(DeviceGraph, gives_each_block_a_slot_and_takes_it_back) {
  runtime_.shared_memory = 32;  // of a multiprocessor; two blocks of no values
  const Graph graph = residual(7, 40);
  expect_same_bits<float>(runtime_, graph, 1281, false);  // eleven tiles of 128 for four slots
  const int before = runtime_.allocations;
  {
    const auto plan = DeviceGraphPlan<float>::compile(graph);
    EXPECT_EQ(runtime_.allocations, before + 4);  // steps, numbers, workspace, which slots are taken
    const auto copy = plan;
  }
  EXPECT_EQ(runtime_.allocations, before);
}

TEST_F(DeviceGraph, allows_an_output_that_is_an_input) {
  Builder b;
  const std::size_t x = b.input(4);
  b.output(b.add(Activate{{ActivationKind::tanh}}, {b.add(b.dense(4, 4), {x})}));
  std::vector<float> numbers(4 * 50), expected(4 * 50);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 13) / 7 - 1;
  const auto view = MatrixView<float>::row_major(numbers.data(), 50, 4);
  const MatrixView<const float> in = view;
  const auto expected_view = MatrixView<float>::row_major(expected.data(), 50, 4);
  GraphPlan<float>::compile(b.graph).evaluate(std::span(&in, 1), std::span(&expected_view, 1));
  DeviceGraphPlan<float>::compile(b.graph).enqueue(nullptr, std::span(&in, 1), std::span(&view, 1));
  EXPECT_EQ(numbers, expected);
}

// With LOCKSTEP_TEST_DEVICE=cuda, on this machine's first GPU.
TEST_F(DeviceGraph, has_the_same_bits_from_a_cuda_graph_and_on_two_streams) {
  if (!on_a_card()) GTEST_SKIP() << "LOCKSTEP_TEST_DEVICE is not cuda";
  EvaluationRuntime& device = runtime();
  // Values in global memory, about 160 slots: each launch fills 157, so that both together wait for slots.
  const Graph net = residual(7, 3000);
  constexpr std::size_t samples = 20000, period = 101;  // after which samples come again
  std::vector<float> in(samples * 7), expected(period * 3), out(samples * 3);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % period) / 50 - 1;
  const auto in_view = MatrixView<const float>::row_major(in.data(), period, 7);
  const auto expected_view = MatrixView<float>::row_major(expected.data(), period, 3);
  GraphPlan<float>::compile(net).evaluate(std::span(&in_view, 1), std::span(&expected_view, 1));
  const auto plan = DeviceGraphPlan<float>::compile(net);
  void* x = nullptr;
  void* y[2] = {};
  ASSERT_EQ(device.upload(0, in.data(), in.size() * sizeof(float), x), "");
  for (void*& memory : y) ASSERT_EQ(device.upload(0, out.data(), out.size() * sizeof(float), memory), "");
  testing::CardGraph graphs[2];
  for (int i = 0; i < 2; ++i) {
    graphs[i].capture([&] {
      const auto from = MatrixView<const float>::row_major(static_cast<const float*>(x), samples, 7);
      const auto to = MatrixView<float>::row_major(static_cast<float*>(y[i]), samples, 3);
      plan.enqueue(graphs[i].stream(), std::span(&from, 1), std::span(&to, 1));
    });
  }
  for (auto& graph : graphs) graph.launch();
  for (auto& graph : graphs) graph.wait();
  for (void* const memory : y) {
    ASSERT_EQ(device.download(0, out.data(), memory, out.size() * sizeof(float)), "");
    for (std::size_t i = 0; i < samples; ++i) {
      ASSERT_EQ(std::memcmp(&out[3 * i], &expected[i % period * 3], 3 * sizeof(float)), 0) << "sample " << i;
    }
    device.release(0, memory);
  }
  device.release(0, x);
}

TEST_F(DeviceGraph, says_what_does_not_fit) {
  Builder b;
  const std::size_t x = b.input(2), y = b.input(2);
  b.output(b.add(Binary{BinaryKind::add}, {x, y}));
  b.output(b.add(Binary{BinaryKind::multiply}, {x, y}));
  const auto plan = DeviceGraphPlan<float>::compile(b.graph);
  float numbers[16] = {};
  using In = std::vector<MatrixView<const float>>;
  using Out = std::vector<MatrixView<float>>;
  const auto message = [&](const In& in, const Out& out) {
    return message_of([&] { plan.enqueue(nullptr, in, out); }, ErrorKind::invalid_argument);
  };
  const auto at = [&](int place, std::size_t rows = 2, std::size_t columns = 2) {
    return MatrixView<float>::row_major(numbers + place, rows, columns);
  };
  EXPECT_EQ(message({at(0), at(4)}, {at(8), at(12)}), "no error");
  EXPECT_EQ(message({at(0), at(4)}, {at(0), at(4)}), "no error");  // in place
  EXPECT_EQ(message({at(0), at(4)}, {at(8), {nullptr, 2, 2, 2, 1}}), "no error");
  EXPECT_THAT(message({at(0)}, {at(8), at(12)}), HasSubstr("in views: found 1, expected 2"));
  EXPECT_THAT(message({at(0), at(4)}, {at(8)}), HasSubstr("out views: found 1, expected 2"));
  EXPECT_THAT(message({at(0), at(4, 2, 3)}, {at(8), at(12)}), HasSubstr("in \"in1\".columns: found 3, expected 2"));
  EXPECT_THAT(message({at(0), at(4)}, {at(8), at(12, 1)}), HasSubstr("out \"out1\".rows: found 1, expected 2"));
  EXPECT_THAT(message({at(0), {nullptr, 2, 2, 2, 1}}, {at(8), at(12)}), HasSubstr("in \"in1\".data: found a null"));
  EXPECT_THAT(message({at(0), at(4)}, {at(8), at(8)}),
              HasSubstr("out \"out1\": found memory that overlaps out \"out0\", expected memory of its own"));
  EXPECT_THAT(message({at(0), at(4)}, {MatrixView<float>::column_major(numbers, 2, 2), at(8)}),
              HasSubstr("out \"out0\": found memory that overlaps in \"in0\""));
  EXPECT_THAT(message({at(0), at(4)}, {at(2), at(8)}), HasSubstr("out \"out0\": found memory that overlaps in"));
  runtime_.launch_failure = "invalid resource handle";
  EXPECT_THAT(message_of(
                  [&] {
                    plan.enqueue(nullptr, In{at(0), at(4)}, Out{at(8), at(12)});
                  },
                  ErrorKind::unsupported),
              HasSubstr("invalid resource handle"));
  const auto compile = [&](int device = 0) { DeviceGraphPlan<float>::compile(b.graph, device); };
  EXPECT_THAT(message_of([&] { compile(3); }, ErrorKind::unsupported), HasSubstr("cuda:3: found no such device"));
  runtime_.upload_failure = "out of memory";
  EXPECT_THAT(message_of([&] { compile(); }, ErrorKind::unsupported), HasSubstr("free memory on the device"));
  runtime_.upload_failure.clear();
  runtime_.shared_memory = 8;
  EXPECT_THAT(message_of([&] { compile(); }, ErrorKind::unsupported), HasSubstr("cuda:0: found no room for a block"));
  while (b.graph.outputs.size() < 95) b.output(x);
  EXPECT_THAT(message_of([&] { compile(); }, ErrorKind::unsupported), HasSubstr("found 97 ports, expected at most 96"));
  Builder large;
  large.output(large.add(Rescale{{1e39}, {0}}, {large.input(1)}));
  EXPECT_THAT(message_of([&] { DeviceGraphPlan<float>::compile(large.graph); }, ErrorKind::model),
              HasSubstr("n0.scale[0]"));
}

}  // namespace
}  // namespace lockstep::cuda
