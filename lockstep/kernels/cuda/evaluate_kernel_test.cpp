// The evaluation kernel's source, run by the simulator of blocks, against the CPU's plan: the same bits for widths and
// batches at the edges, either layout, every activation, scalings, any order of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/kernels/cuda/testing/simulate_evaluation.h"
#include "lockstep/kernels/mlp/plan.h"
#include "lockstep/kernels/mlp/testing/reference.h"

namespace lockstep::cuda {
namespace {

enum class Layout { rows, columns, apart };

// An array of `rows` x `columns` in a layout, in a buffer whose gaps hold 77.
template <class T>
struct Array {
  std::vector<T> numbers;
  MatrixView<T> view;

  Array(std::size_t rows, std::size_t columns, Layout layout) : numbers(2 * rows * (columns + 3) + 1, T(77)) {
    if (layout == Layout::rows) view = MatrixView<T>::row_major(numbers.data(), rows, columns);
    if (layout == Layout::columns) view = MatrixView<T>::column_major(numbers.data(), rows, columns);
    if (layout == Layout::apart)
      view = {numbers.data(), rows, columns, static_cast<std::ptrdiff_t>(2 * columns + 5), 2};
  }
};

template <class T>
void expect_same_bits(const Mlp& mlp, std::size_t batch, int tile, unsigned blocks = 2, Layout layout = Layout::rows,
                      unsigned seed = 0) {
  SCOPED_TRACE(::testing::Message() << "batch " << batch << ", tiles of " << tile << ", seed " << seed);
  Array<T> in(batch, mlp.inputs(), layout), out(batch, mlp.outputs(), layout), expected(batch, mlp.outputs(), layout);
  std::mt19937 random(static_cast<unsigned>(batch) + seed);
  std::normal_distribution<double> normal;
  for (std::size_t i = 0; i < batch; ++i)
    for (std::size_t k = 0; k < mlp.inputs(); ++k) in.view(i, k) = static_cast<T>(normal(random));
  Plan<T>::compile(mlp).evaluate(in.view, expected.view);
  ASSERT_TRUE(testing::simulate_evaluation<T>(mlp, in.view, out.view, tile, blocks, seed));
  for (std::size_t i = 0; i < out.numbers.size(); ++i) {  // gaps, too
    if (std::isnan(out.numbers[i]) && std::isnan(expected.numbers[i])) continue;
    ASSERT_EQ(std::memcmp(&out.numbers[i], &expected.numbers[i], sizeof(T)), 0)
        << "number " << i << ": " << out.numbers[i] << " instead of " << expected.numbers[i];
  }
}

TEST(EvaluateKernel, has_the_bits_of_the_cpu_for_every_batch) {
  const Mlp mlp = mlp::random_mlp({5, 33, 7, 4}, {ActivationKind::tanh}, 1);
  for (const std::size_t batch : {0u, 1u, 31u, 33u, 127u, 128u, 129u, 397u}) {
    expect_same_bits<float>(mlp, batch, 128);
    expect_same_bits<float>(mlp, batch, 32, 3);
    expect_same_bits<double>(mlp, batch, 64, 1);
  }
}

TEST(EvaluateKernel, has_the_bits_of_the_cpu_for_every_width) {
  std::size_t turn = 0;
  for (const std::size_t width : {1u, 3u, 8u, 9u, 31u, 64u, 65u, 100u, 128u, 129u, 256u}) {
    SCOPED_TRACE(width);
    const Mlp mlp = mlp::random_mlp({width, width, 3, width}, {ActivationKind::relu}, static_cast<unsigned>(width));
    if (width <= 128 && is_tried(turn++, 3)) expect_same_bits<float>(mlp, 131, 128);
    if (is_tried(turn++, 3)) expect_same_bits<float>(mlp, 67, 64);
    if (is_tried(turn++, 3)) expect_same_bits<float>(mlp, 33, 32);
    if (width <= 128 && is_tried(turn++, 3)) expect_same_bits<double>(mlp, 67, 64);
    if (is_tried(turn++, 3)) expect_same_bits<double>(mlp, 33, 32);
  }
}

TEST(EvaluateKernel, has_the_bits_of_the_cpu_for_the_benchmarks_net) {
  const Mlp mlp = mlp::random_mlp({32, 128, 128, 31}, {ActivationKind::relu}, 2);
  expect_same_bits<float>(mlp, 300, 128);
  expect_same_bits<double>(mlp, 150, 64);
}

TEST(EvaluateKernel, reads_and_writes_any_layout) {
  for (const std::size_t features : {3u, 40u}) {
    const Mlp mlp = mlp::random_mlp({features, 20, features + 1}, {ActivationKind::silu}, 3);
    for (const Layout layout : {Layout::rows, Layout::columns, Layout::apart}) {
      expect_same_bits<float>(mlp, 161, 128, 2, layout);
      expect_same_bits<double>(mlp, 37, 64, 2, layout);
    }
  }
}

TEST(EvaluateKernel, knows_every_activation_and_scaling) {
  for (const Activation& activation : all_activations()) {
    SCOPED_TRACE(to_string(activation));
    Mlp mlp = mlp::random_mlp({6, 17, 6}, activation, 4);
    mlp.layers.back().activation = activation;
    expect_same_bits<float>(mlp, 35, 32);
    mlp.input_scaling.scale = {1, 2, 3, 0.5, 0.7, 4};
    mlp.output_scaling.shift = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6};
    expect_same_bits<double>(mlp, 33, 32);
    mlp.input_scaling.shift = {1, 2, 3, 4, 5, 6};
    expect_same_bits<float>(mlp, 33, 64);
  }
}

TEST(EvaluateKernel, does_not_depend_on_the_order_of_threads) {
  const Mlp mlp = mlp::random_mlp({12, 40, 70, 5}, {ActivationKind::gelu}, 5);
  for (unsigned seed = 1; seed < 4; ++seed) {
    expect_same_bits<float>(mlp, 200, 64, 2, Layout::rows, seed);
    expect_same_bits<double>(mlp, 70, 32, 2, Layout::rows, seed);
  }
}

TEST(EvaluateKernel, keeps_nan_infinity_and_negative_zero_to_their_sample) {
  Mlp mlp = mlp::random_mlp({3, 9, 3}, {ActivationKind::identity}, 6);
  for (DenseLayer& layer : mlp.layers) layer.bias.assign(layer.outputs, -0.0);
  std::vector<float> in(40 * 3, -0.0f), out(40 * 3), expected(40 * 3);
  in[9] = NAN;
  in[60] = INFINITY;
  const auto view = [](auto& numbers) { return MatrixView<float>::row_major(numbers.data(), 40, 3); };
  Plan<float>::compile(mlp).evaluate(view(in), view(expected));
  ASSERT_TRUE(testing::simulate_evaluation<float>(mlp, view(in), view(out), 32, 1));
  for (std::size_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(std::isnan(out[i]), std::isnan(expected[i])) << i;
    if (std::isnan(out[i])) continue;
    EXPECT_EQ(std::memcmp(&out[i], &expected[i], sizeof(float)), 0) << i;
  }
}

TEST(BlockWeights, refuse_a_net_too_wide_and_a_weight_too_large) {
  BlockWeights<float> weights;
  EXPECT_THROW(weights.add(mlp::random_mlp({3, 257, 3}, {ActivationKind::relu}, 1)), Error);
  Mlp large = mlp::random_mlp({3, 4, 3}, {ActivationKind::relu}, 1);
  large.layers[0].weights[5] = 1e39;
  EXPECT_THROW(weights.add(large), Error);
  EXPECT_NO_THROW(BlockWeights<double>().add(large));
}

TEST(TileSize, is_smaller_where_a_large_one_would_leave_multiprocessors_idle) {
  BlockWeights<float> weights;
  const BlockNet narrow = weights.add(mlp::random_mlp({3, 128, 3}, {ActivationKind::relu}, 1));
  const BlockNet wide = weights.add(mlp::random_mlp({3, 129, 3}, {ActivationKind::relu}, 1));
  const std::vector<int> sizes = tile_sizes<float>(narrow);
  EXPECT_EQ(sizes, (std::vector<int>{128, 64, 32}));
  EXPECT_EQ(tile_sizes<float>(wide), (std::vector<int>{64, 32}));
  EXPECT_EQ(tile_sizes<double>(wide), (std::vector<int>{32}));
  EXPECT_EQ(sizes[choose_tile(sizes, 1'000'000, 132)], 128);
  EXPECT_EQ(sizes[choose_tile(sizes, 128 * 131, 132)], 64);
  EXPECT_EQ(sizes[choose_tile(sizes, 1, 132)], 32);
}

}  // namespace
}  // namespace lockstep::cuda
