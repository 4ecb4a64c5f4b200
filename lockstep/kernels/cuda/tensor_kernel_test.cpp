// The tensor-core kernel's source, run by the simulator of blocks: the numbers of a plain loop over rounded numbers,
// bit for bit, and within a derived bound of float64, for widths and batches at the edges; wrong indices are caught.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "lockstep/core/error.h"
#include "lockstep/kernels/cuda/testing/simulate_tensor.h"
#include "lockstep/kernels/cuda/testing/tensor_reference.h"
#include "lockstep/kernels/mlp/testing/reference.h"

namespace lockstep::cuda {
namespace {

using testing::TensorRun;

std::vector<float> random_inputs(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> in(count);
  for (float& x : in) x = normal(random);
  return in;
}

template <class Format>
std::vector<float> evaluate(const Mlp& mlp, const std::vector<float>& in, const TensorRun& run = {}) {
  const std::size_t batch = in.size() / mlp.inputs();
  TensorWeights<Format> weights;
  const BlockNet net = weights.add(mlp);
  std::vector<float> out(batch * mlp.outputs());
  testing::simulate_tensor<Format>(weights, net, MatrixView<const float>::row_major(in.data(), batch, mlp.inputs()),
                                   MatrixView<float>::row_major(out.data(), batch, mlp.outputs()), run);
  return out;
}

bool same_bits(float a, float b) { return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof a) == 0; }

// How many numbers differ from the plain loop's.
template <class Format>
std::size_t differences(const Mlp& mlp, const std::vector<float>& in, const std::vector<float>& out) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < in.size() / mlp.inputs(); ++i) {
    const auto begin = in.begin() + static_cast<std::ptrdiff_t>(i * mlp.inputs());
    const auto expected =
        testing::tensor_reference<Format>(mlp, {begin, begin + static_cast<std::ptrdiff_t>(mlp.inputs())});
    for (std::size_t j = 0; j < mlp.outputs(); ++j) count += !same_bits(out[i * mlp.outputs() + j], expected[j]);
  }
  return count;
}

template <class Format>
void expect_reference(const Mlp& mlp, std::size_t batch, const TensorRun& run = {}) {
  SCOPED_TRACE(::testing::Message() << Format::kName << ", batch " << batch << ", tiles of " << run.tile << ", seed "
                                    << run.seed);
  const std::vector<float> in = random_inputs(batch * mlp.inputs(), static_cast<unsigned>(batch) + run.seed);
  EXPECT_EQ(differences<Format>(mlp, in, evaluate<Format>(mlp, in, run)), 0u);
}

// Of a block, and of a warp alone where the format is one of those that allow it and no layer is too wide.
template <class Format>
std::vector<int> tiles_for(std::size_t widest) {
  std::vector<int> tiles(std::begin(kTensorTiles), std::end(kTensorTiles));
  if (Format::kTile == 16 && widest <= kMostHeldInputs) tiles.insert(tiles.end(), {kWarpTile, kWarpTile / 2});
  return tiles;
}

template <class Format>
class TensorKernel : public ::testing::Test {};
using Formats = ::testing::Types<Tf32, Bf16, Fp16>;
TYPED_TEST_SUITE(TensorKernel, Formats);

TYPED_TEST(TensorKernel, has_the_numbers_of_a_plain_loop_for_every_batch) {
  const Mlp mlp = mlp::random_mlp({5, 33, 16, 4}, {ActivationKind::tanh}, 1);
  for (const std::size_t batch : {0u, 1u, 31u, 33u, 128u, 129u, 397u}) expect_reference<TypeParam>(mlp, batch);
  for (const int tile : tiles_for<TypeParam>(33)) {
    for (const std::size_t batch : {1u, 15u, 63u, 65u, 131u, 517u})
      expect_reference<TypeParam>(mlp, batch, {.tile = tile, .blocks = 1});
  }
}

TYPED_TEST(TensorKernel, has_the_numbers_of_a_plain_loop_for_every_width) {
  for (const std::size_t width : {1u, 8u, 16u, 31u, 33u, 48u, 80u, 100u, 128u, 129u, 256u}) {
    SCOPED_TRACE(width);
    for (const ActivationKind kind : {ActivationKind::relu, ActivationKind::sigmoid}) {
      const Mlp mlp = mlp::random_mlp({width, width, 17, width}, {kind}, static_cast<unsigned>(width));
      for (const int tile : tiles_for<TypeParam>(width)) {
        expect_reference<TypeParam>(mlp, 35, {.tile = tile, .seed = 1});
        expect_reference<TypeParam>(mlp, 33, {.tile = tile, .blocks = 1, .place = WeightPlace::global});
      }
    }
  }
}

TYPED_TEST(TensorKernel, stays_within_its_bound_of_float64) {
  for (const std::size_t width : {16u, 100u, 129u, 256u}) {
    SCOPED_TRACE(width);
    for (const ActivationKind kind : {ActivationKind::relu, ActivationKind::tanh, ActivationKind::gelu}) {
      const Mlp mlp = mlp::random_mlp({7, width, width, 3}, {kind}, static_cast<unsigned>(width));
      const std::vector<float> in = random_inputs(32 * 7, 3), out = evaluate<TypeParam>(mlp, in, {.tile = 64});
      double worst = 0, least = 1;
      for (std::size_t i = 0; i < 32; ++i) {
        const auto begin = in.begin() + static_cast<std::ptrdiff_t>(i * 7);
        const auto bounds = testing::tensor_bound<TypeParam>(mlp, {begin, begin + 7});
        for (std::size_t j = 0; j < 3; ++j) {
          const double error = std::fabs(out[i * 3 + j] - bounds[j].value);
          EXPECT_LE(error, bounds[j].error);
          worst = std::max(worst, error);
          least = std::min(least, bounds[j].error);
        }
      }
      // A format it did not round to would be far within the bound.
      EXPECT_GT(worst, TypeParam::kUnit / 16);
    }
  }
}

TYPED_TEST(TensorKernel, does_not_depend_on_the_split_of_a_batch) {
  const Mlp mlp = mlp::random_mlp({12, 40, 70, 5}, {ActivationKind::gelu}, 5);
  const std::vector<float> in = random_inputs(211 * 12, 1), whole = evaluate<TypeParam>(mlp, in);
  for (const std::size_t cut : {1u, 31u, 97u}) {
    const auto at = in.begin() + static_cast<std::ptrdiff_t>(cut * 12);
    const int other = tiles_for<TypeParam>(70).back();
    std::vector<float> parts = evaluate<TypeParam>(mlp, {in.begin(), at}, {.tile = cut == 31 ? other : 64});
    const std::vector<float> rest =
        evaluate<TypeParam>(mlp, {at, in.end()}, {.tile = cut == 1 ? other : 128, .blocks = 3, .seed = 2});
    parts.insert(parts.end(), rest.begin(), rest.end());
    EXPECT_EQ(std::memcmp(parts.data(), whole.data(), whole.size() * sizeof(float)), 0) << cut;
  }
}

TYPED_TEST(TensorKernel, knows_every_activation_and_scaling) {
  for (const Activation& activation : all_activations()) {
    SCOPED_TRACE(to_string(activation));
    Mlp mlp = mlp::random_mlp({6, 17, 8}, activation, 4);
    mlp.layers.back().activation = activation;
    mlp.input_scaling.scale = {1, 2, 3, 0.5, 0.7, 4};
    mlp.input_scaling.shift = {1, 2, 3, 4, 5, 6};
    mlp.output_scaling.shift = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8};
    for (const int tile : {64, tiles_for<TypeParam>(17).back()})
      expect_reference<TypeParam>(mlp, 18, {.tile = tile, .blocks = 1});
  }
}

TYPED_TEST(TensorKernel, reads_and_writes_any_layout) {
  for (const std::size_t features : {3u, 40u}) {
    const Mlp mlp = mlp::random_mlp({features, 20, features + 1}, {ActivationKind::relu}, 3);
    const std::size_t batch = 70;
    const std::vector<float> in = random_inputs(batch * features, 2);
    std::vector<float> columns(in.size()), out(batch * (features + 1));
    for (std::size_t i = 0; i < batch; ++i)
      for (std::size_t k = 0; k < features; ++k) columns[k * batch + i] = in[i * features + k];
    TensorWeights<TypeParam> weights;
    const BlockNet net = weights.add(mlp);
    for (const int tile : tiles_for<TypeParam>(features + 1)) {
      std::fill(out.begin(), out.end(), NAN);
      testing::simulate_tensor<TypeParam>(
          weights, net, MatrixView<const float>::column_major(columns.data(), batch, features),
          MatrixView<float>::column_major(out.data(), batch, features + 1), {.tile = tile});
      std::vector<float> rows(out.size());
      for (std::size_t i = 0; i < batch; ++i)
        for (std::size_t j = 0; j <= features; ++j) rows[i * (features + 1) + j] = out[j * batch + i];
      EXPECT_EQ(differences<TypeParam>(mlp, in, rows), 0u) << tile;
    }
  }
}

TYPED_TEST(TensorKernel, keeps_nan_and_infinity_to_their_sample) {
  for (const std::size_t width : {130u, 70u}) {
    const Mlp mlp = mlp::random_mlp({3, 20, width, 3}, {ActivationKind::relu}, 6);
    std::vector<float> in = random_inputs(40 * 3, 6);
    in[9] = NAN;
    in[60] = INFINITY;
    const std::vector<float> out =
        evaluate<TypeParam>(mlp, in, {.tile = width == 130 ? 64 : tiles_for<TypeParam>(width).back()});
    EXPECT_EQ(differences<TypeParam>(mlp, in, out), 0u);
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (i / 3 == 3 || i / 3 == 20) continue;
      EXPECT_TRUE(std::isfinite(out[i])) << i;
    }
  }
}

// Every word of the packed weights matters, and its place: any two of a lane, and any two lanes, cannot be exchanged.
TYPED_TEST(TensorKernel, gives_other_numbers_for_a_wrong_fragment_index) {
  const Mlp mlp = mlp::random_mlp({32, 32, 3}, {ActivationKind::tanh}, 7);
  const std::vector<float> in = random_inputs(33 * 32, 7);
  int tile = 64;
  const auto run = [&](auto&& spoil) {
    TensorWeights<TypeParam> weights;
    const BlockNet net = weights.add(mlp);
    spoil(weights.words);
    std::vector<float> out(33 * 3);
    testing::simulate_tensor<TypeParam>(weights, net, MatrixView<const float>::row_major(in.data(), 33, 32),
                                        MatrixView<float>::row_major(out.data(), 33, 3), {.tile = tile, .blocks = 1});
    return differences<TypeParam>(mlp, in, out);
  };
  for (const int each : tiles_for<TypeParam>(32)) {
    tile = each;
    EXPECT_EQ(run([](auto&) {}), 0u);
    EXPECT_GT(run([](auto& words) { std::swap(words[0], words[1]); }), 90u);           // halves of a tile of inputs
    EXPECT_GT(run([](auto& words) { std::swap(words[1], words[2]); }), 90u);           // outputs 8 apart
    EXPECT_GT(run([](auto& words) { std::swap(words[4 * 5], words[4 * 6]); }), 90u);   // neighbouring lanes: inputs
    EXPECT_GT(run([](auto& words) { std::swap(words[0], words[kPairWords]); }), 90u);  // tiles of inputs
  }
}

TEST(TensorWeights, refuse_what_does_not_fit) {
  Mlp mlp = mlp::random_mlp({3, 16, 3}, {ActivationKind::relu}, 1);
  mlp.layers[0].weights[5] = 70000;
  EXPECT_THROW(TensorWeights<Fp16>().add(mlp), Error);
  EXPECT_NO_THROW(TensorWeights<Bf16>().add(mlp));
  EXPECT_THROW(TensorWeights<Bf16>().add(mlp::random_mlp({3, 257, 3}, {ActivationKind::relu}, 1)), Error);
}

}  // namespace
}  // namespace lockstep::cuda
