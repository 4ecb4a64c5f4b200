// DevicePlan over a simulated device: the CPU plan's bits, choices of tiles, typed errors. With
// LOCKSTEP_TEST_DEVICE=cuda the tests of numbers run on this machine's GPU.
#include "lockstep/kernels/cuda/device_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/kernels/cuda/testing/card_graph.h"
#include "lockstep/kernels/cuda/testing/on_a_card.h"
#include "lockstep/kernels/cuda/testing/simulated_evaluation_runtime.h"
#include "lockstep/kernels/cuda/testing/tensor_reference.h"
#include "lockstep/kernels/mlp/plan.h"
#include "lockstep/kernels/mlp/testing/reference.h"

namespace lockstep::cuda {
namespace {

using ::testing::HasSubstr;
using testing::on_a_card;

class DevicePlanTest : public ::testing::Test {
 protected:
  DevicePlanTest() { replace_evaluation_runtime(&runtime_); }
  ~DevicePlanTest() override { replace_evaluation_runtime(nullptr); }

  // This machine's GPU where it was asked for, else the simulated one.
  EvaluationRuntime* runtime() {
    if (!on_a_card()) return &runtime_;
    replace_evaluation_runtime(nullptr);
    std::string missing;
    EvaluationRuntime* const found = load_evaluation_runtime(missing);
    EXPECT_NE(found, nullptr) << missing;
    return found;
  }
  testing::SimulatedEvaluationRuntime runtime_;
};

// out[sample][output] through the device, samples apart by `in_stride` numbers there.
template <class T>
std::vector<T> evaluate_on(EvaluationRuntime& runtime, const DevicePlan<T>& plan, const std::vector<T>& in,
                           std::size_t samples) {
  std::vector<T> out(samples * plan.outputs());
  if (samples == 0) return plan.enqueue(nullptr, {nullptr, 0, plan.inputs()}, {nullptr, 0, plan.outputs()}), out;
  void *device_in = nullptr, *device_out = nullptr;
  EXPECT_EQ(runtime.upload(0, in.data(), in.size() * sizeof(T), device_in), "");
  EXPECT_EQ(runtime.upload(0, out.data(), out.size() * sizeof(T), device_out), "");
  plan.enqueue(nullptr, MatrixView<const T>::row_major(static_cast<const T*>(device_in), samples, plan.inputs()),
               MatrixView<T>::column_major(static_cast<T*>(device_out), samples, plan.outputs()));
  EXPECT_EQ(runtime.download(0, out.data(), device_out, out.size() * sizeof(T)), "");
  runtime.release(0, device_in);
  runtime.release(0, device_out);
  return out;
}

template <class T>
void expect_same_bits(EvaluationRuntime& runtime, const Mlp& mlp) {
  const DevicePlan<T> plan = DevicePlan<T>::compile(mlp);
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  for (const std::size_t samples : testing::batch_sizes({0, 1, 31, 33, 401})) {
    SCOPED_TRACE(samples);
    std::vector<T> in(samples * mlp.inputs());
    for (T& x : in) x = static_cast<T>(normal(random));
    std::vector<T> expected(samples * mlp.outputs());
    Plan<T>::compile(mlp).evaluate(MatrixView<const T>::row_major(in.data(), samples, mlp.inputs()),
                                   MatrixView<T>::column_major(expected.data(), samples, mlp.outputs()));
    const std::vector<T> out = evaluate_on(runtime, plan, in, samples);
    EXPECT_TRUE(samples == 0 || std::memcmp(out.data(), expected.data(), out.size() * sizeof(T)) == 0);
  }
}

TEST_F(DevicePlanTest, has_the_bits_of_the_cpu_plan) {
  EvaluationRuntime* const device = runtime();
  ASSERT_NE(device, nullptr);
  const Mlp narrow = mlp::random_mlp({5, 40, 3}, {ActivationKind::tanh}, 1);
  const Mlp wide = mlp::random_mlp({3, 129, 4}, {ActivationKind::relu}, 2);
  expect_same_bits<float>(*device, narrow);
  expect_same_bits<double>(*device, narrow);
  expect_same_bits<float>(*device, wide);
  expect_same_bits<double>(*device, wide);
}

// The numbers of a batch for large tiles are those of its parts, which small ones make.
void expect_same_in_parts(EvaluationRuntime& runtime, const DevicePlan<float>& plan) {
  constexpr std::size_t samples = testing::kManySamples, most = 4000;
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> in(samples * plan.inputs());
  for (float& x : in) x = normal(random);
  const std::vector<float> out = evaluate_on(runtime, plan, in, samples);
  const auto at = [&](std::size_t sample) { return in.begin() + static_cast<std::ptrdiff_t>(sample * plan.inputs()); };
  for (std::size_t begin = 0; begin < samples; begin += most) {
    const std::size_t count = std::min(most, samples - begin);
    const auto part = evaluate_on(runtime, plan, std::vector<float>(at(begin), at(begin + count)), count);
    for (std::size_t j = 0; j < plan.outputs(); ++j) {
      ASSERT_EQ(std::memcmp(&part[j * count], &out[j * samples + begin], count * sizeof(float)), 0)
          << "output " << j << " of samples from " << begin << " on";
    }
  }
}

// Within the bound of float64; the same numbers in any split of the batch; those of the plain loop, where sums are
// ours.
template <class Format>
void expect_near(EvaluationRuntime& runtime, const Mlp& mlp, MatrixPrecision matrices, bool plain_sums) {
  const auto plan = DevicePlan<float>::compile(mlp, 0, matrices);
  EXPECT_EQ(plan.matrices(), matrices);
  constexpr std::size_t samples = 151;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> in(samples * mlp.inputs());
  for (float& x : in) x = normal(random);
  const std::vector<float> out = evaluate_on(runtime, plan, in, samples);
  for (std::size_t i = 0; i < samples; ++i) {
    const auto begin = in.begin() + static_cast<std::ptrdiff_t>(i * mlp.inputs());
    const std::vector<float> x(begin, begin + static_cast<std::ptrdiff_t>(mlp.inputs()));
    const auto bounds = testing::tensor_bound<Format>(mlp, x);
    const auto plain = testing::tensor_reference<Format>(mlp, x);
    const std::vector<float> alone = i % 50 == 0 ? evaluate_on(runtime, plan, x, 1) : std::vector<float>();
    for (std::size_t j = 0; j < mlp.outputs(); ++j) {
      const float y = out[j * samples + i];
      ASSERT_LE(std::fabs(y - bounds[j].value), bounds[j].error) << i << ", " << j;
      const bool as_plain = !plain_sums || std::memcmp(&y, &plain[j], sizeof y) == 0;
      const bool as_alone = alone.empty() || std::memcmp(&y, &alone[j], sizeof y) == 0;
      ASSERT_TRUE(as_plain && as_alone) << i << ", " << j << ": " << y;
    }
  }
  if (on_a_card()) expect_same_in_parts(runtime, plan);
}

TEST_F(DevicePlanTest, stays_within_its_bound_on_tensor_cores) {
  EvaluationRuntime* const device = runtime();
  ASSERT_NE(device, nullptr);
  std::size_t turn = 0;
  for (const std::size_t width : {24u, 129u}) {
    SCOPED_TRACE(width);
    const Mlp mlp = mlp::random_mlp({5, width, width, 3}, {ActivationKind::tanh}, 1);
    if (is_tried(turn++, 4)) expect_near<Tf32>(*device, mlp, MatrixPrecision::tf32, !on_a_card());
    if (is_tried(turn++, 4)) expect_near<Bf16>(*device, mlp, MatrixPrecision::bf16, !on_a_card());
    if (is_tried(turn++, 4)) expect_near<Fp16>(*device, mlp, MatrixPrecision::fp16, !on_a_card());
  }
}

TEST_F(DevicePlanTest, keeps_tensor_weights_in_shared_memory_only_beside_a_second_block) {
  runtime_.multiprocessors = 1;
  const auto shared_of = [&](const std::vector<std::size_t>& widths) {
    const Mlp mlp = mlp::random_mlp(widths, {ActivationKind::relu}, 1);
    const auto plan = DevicePlan<float>::compile(mlp, 0, MatrixPrecision::bf16);
    evaluate_on(runtime_, plan, std::vector<float>(129 * mlp.inputs()), 129);
    return std::tuple(runtime_.last_mode, runtime_.last_tile, runtime_.last_shared_bytes);
  };
  // Of warps alone 49,152 bytes of weights, 8 x 32 x 160 of outputs on their way, 288 biases.
  EXPECT_EQ(shared_of({32, 128, 128, 31}),
            std::tuple(EvaluationMode::bf16_shared, 32, std::size_t{49152 + 40960 + 1152}));
  // 13 layers of 32,768 bytes do not fit.
  EXPECT_EQ(std::get<0>(shared_of({32, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 31})),
            EvaluationMode::bf16);
  // Wider ones go by blocks: 18,432 bytes of weights beside two buffers of 128 x 304; and
  EXPECT_EQ(shared_of({32, 130, 31}),
            std::tuple(EvaluationMode::bf16_shared, 128, std::size_t{18432 + 2 * 128 * 304 + 1152}));
  // 163,840 bytes of weights, which stay outside; two buffers of 64 x 528, where 128 samples would leave room for one
  // block.
  EXPECT_EQ(shared_of({32, 256, 256, 31}), std::tuple(EvaluationMode::bf16, 64, std::size_t{2 * 64 * 528 + 4 * 544}));
}

// With LOCKSTEP_TEST_DEVICE=cuda, on this machine's first GPU.
TEST(DevicePlanOnACard, has_the_same_bits_from_a_cuda_graph) {
  if (!on_a_card()) GTEST_SKIP() << "LOCKSTEP_TEST_DEVICE is not cuda";
  std::string missing;
  EvaluationRuntime* const runtime = load_evaluation_runtime(missing);
  ASSERT_NE(runtime, nullptr) << missing;
  const Mlp mlp = mlp::random_mlp({5, 40, 3}, {ActivationKind::tanh}, 1);
  constexpr std::size_t samples = 401;
  const std::vector<float> in(samples * 5, 0.3f);
  std::vector<float> out(samples * 3);
  const auto plan = DevicePlan<float>::compile(mlp);
  const std::vector<float> expected = evaluate_on(*runtime, plan, in, samples);
  void *device_in = nullptr, *device_out = nullptr;
  ASSERT_EQ(runtime->upload(0, in.data(), in.size() * sizeof(float), device_in), "");
  ASSERT_EQ(runtime->upload(0, out.data(), out.size() * sizeof(float), device_out), "");
  testing::CardGraph graph;
  graph.capture([&] {
    plan.enqueue(graph.stream(), MatrixView<const float>::row_major(static_cast<const float*>(device_in), samples, 5),
                 MatrixView<float>::column_major(static_cast<float*>(device_out), samples, 3));
  });
  graph.launch_and_wait();
  ASSERT_EQ(runtime->download(0, out.data(), device_out, out.size() * sizeof(float)), "");
  EXPECT_EQ(std::memcmp(out.data(), expected.data(), out.size() * sizeof(float)), 0);
  runtime->release(0, device_in);
  runtime->release(0, device_out);
}

TEST_F(DevicePlanTest, takes_large_tiles_for_large_batches) {
  const auto plan = DevicePlan<float>::compile(mlp::random_mlp({2, 8, 2}, {ActivationKind::relu}, 1));
  const auto tile_of = [&](std::size_t samples) {
    evaluate_on(runtime_, plan, std::vector<float>(2 * samples), samples);
    return runtime_.last_tile;
  };
  EXPECT_EQ(tile_of(129), 128);
  EXPECT_EQ(tile_of(128), 64);
  EXPECT_EQ(tile_of(1), 32);
  EXPECT_THAT(plan.description(), HasSubstr("cuda:0 f32 mlp 2-8-2: a block of 256 threads a tile of 128 or 64 or 32"));
}

TEST_F(DevicePlanTest, leaves_out_tiles_that_do_not_fit_in_shared_memory) {
  const Mlp mlp = mlp::random_mlp({2, 128, 2}, {ActivationKind::relu}, 1);
  runtime_.shared_memory = 64 << 10;
  EXPECT_THAT(DevicePlan<float>::compile(mlp).description(), HasSubstr("a tile of 64 or 32 samples"));
  runtime_.shared_memory = 8 << 10;
  EXPECT_THROW(DevicePlan<float>::compile(mlp), Error);
}

TEST_F(DevicePlanTest, gives_its_memory_back) {
  {
    const auto plan = DevicePlan<double>::compile(mlp::random_mlp({2, 8, 2}, {ActivationKind::relu}, 1));
    const auto copy = plan;
    EXPECT_EQ(runtime_.allocations, 2);
  }
  EXPECT_EQ(runtime_.allocations, 0);
}

TEST_F(DevicePlanTest, says_what_is_missing) {
  const Mlp mlp = mlp::random_mlp({2, 8, 3}, {ActivationKind::relu}, 1);
  const auto compile = [&](int device = 0) { return DevicePlan<float>::compile(mlp, device); };
  const auto unsupported = ErrorKind::unsupported, invalid = ErrorKind::invalid_argument;
  EXPECT_THAT(message_of([&] { compile(3); }, unsupported), HasSubstr("cuda:3: found no such device among 1"));
  EXPECT_THAT(message_of([&] { DevicePlan<double>::compile(mlp, 0, MatrixPrecision::bf16); }, invalid),
              HasSubstr("bf16 with float64"));
  const auto plan = compile();
  float numbers[6];
  const auto view = [&](std::size_t rows, std::size_t columns) {
    return MatrixView<float>::row_major(numbers, rows, columns);
  };
  EXPECT_THAT(message_of([&] { plan.enqueue(nullptr, view(1, 3), view(1, 3)); }, invalid), HasSubstr("in.columns"));
  EXPECT_THAT(message_of([&] { plan.enqueue(nullptr, view(1, 2), view(1, 2)); }, invalid), HasSubstr("out.columns"));
  EXPECT_THAT(message_of([&] { plan.enqueue(nullptr, view(1, 2), view(2, 3)); }, invalid), HasSubstr("out.rows"));
  EXPECT_THAT(message_of(
                  [&] {
                    plan.enqueue(nullptr, view(2, 2), {numbers, 2, 3, 0, 1});
                  },
                  invalid),
              HasSubstr("out: found strides 0 (row)"));
  runtime_.launch_failure = "invalid resource handle";
  EXPECT_THAT(message_of([&] { plan.enqueue(nullptr, view(1, 2), view(1, 3)); }, unsupported),
              HasSubstr("invalid resource handle"));
  runtime_.upload_failure = "out of memory";
  EXPECT_THAT(message_of([&] { compile(); }, unsupported), HasSubstr("free memory on the device"));
  EXPECT_EQ(runtime_.allocations, 2);  // those of `plan`
}

}  // namespace
}  // namespace lockstep::cuda
