// What is refused, by which name, before and during an evaluation; and that evaluations allocate nothing.
#include "lockstep/kernels/mlp/mlp.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <thread>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/error.h"
#include "lockstep/core/parallel.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/kernels/mlp/plan.h"
#include "lockstep/kernels/mlp/testing/reference.h"

extern std::atomic<int> allocations;  // count_allocations.cpp

namespace lockstep {
namespace {

Mlp small() { return mlp::random_mlp({3, 5, 2}, {ActivationKind::tanh}, 1); }

std::string refusal(const Mlp& mlp) {
  return message_of([&] { mlp.validate(); });
}

TEST(MlpValidate, a_sound_net_passes_and_counts_its_parameters) {
  EXPECT_NO_THROW(small().validate());
  EXPECT_EQ(small().parameter_count(), 4u * 5 + 6u * 2);
}

TEST(MlpValidate, names_the_field_that_does_not_fit) {
  EXPECT_THAT(refusal(Mlp{}), testing::StartsWith("layers: found none"));
  Mlp mlp = small();
  mlp.layers[1].inputs = 4;
  EXPECT_THAT(refusal(mlp), testing::StartsWith("layers[1].inputs: found 4, expected 5"));
  mlp = small();
  mlp.layers[0].weights.pop_back();
  EXPECT_THAT(refusal(mlp), testing::StartsWith("layers[0].weights: found 14 numbers, expected 15"));
  mlp = small();
  mlp.layers[1].bias.push_back(0);
  EXPECT_THAT(refusal(mlp), testing::StartsWith("layers[1].bias: found 3 numbers, expected 2"));
  mlp = small();
  mlp.layers[0].outputs = 0;
  EXPECT_THAT(refusal(mlp), testing::StartsWith("layers[0].outputs: found 0"));
  mlp = small();
  mlp.input_scaling.scale = {1, 2};
  EXPECT_THAT(refusal(mlp), testing::StartsWith("input_scaling.scale: found 2 numbers, expected 3"));
  mlp.input_scaling.scale = {1, 0, 2};
  EXPECT_THAT(refusal(mlp), testing::StartsWith("input_scaling.scale[1]: found 0"));
  mlp = small();
  mlp.output_scaling.shift = {1, 2, 3};
  EXPECT_THAT(refusal(mlp), testing::StartsWith("output_scaling.shift: found 3 numbers, expected 2"));
}

TEST(MlpValidate, refuses_an_alpha_that_cannot_be_used) {
  Mlp mlp = small();
  mlp.layers[0].activation = {ActivationKind::celu, 0};
  EXPECT_THAT(refusal(mlp), testing::StartsWith("layers[0].activation.alpha: found 0"));
  mlp.layers[0].activation = {ActivationKind::elu, std::numeric_limits<double>::infinity()};
  EXPECT_THAT(refusal(mlp), testing::StartsWith("layers[0].activation.alpha: found inf"));
}

TEST(MlpValidate, names_the_number_that_is_not_finite) {
  Mlp mlp = small();
  mlp.layers[1].weights[7] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(refusal(mlp), testing::StartsWith("layers[1].weights[7]: found NaN"));
  mlp = small();
  mlp.layers[0].bias[2] = -std::numeric_limits<double>::infinity();
  EXPECT_THAT(refusal(mlp), testing::StartsWith("layers[0].bias[2]: found infinity"));
}

TEST(Plan, refuses_a_net_that_is_not_sound) {
  Mlp mlp = small();
  mlp.layers[0].weights[0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(message_of([&] { Plan<float>::compile(mlp); }), testing::HasSubstr("layers[0].weights[0]"));
}

TEST(Plan, refuses_weights_that_overflow_its_precision) {
  Mlp mlp = small();
  mlp.layers[0].weights[3] = 1e39;
  EXPECT_THAT(message_of([&] { Plan<float>::compile(mlp); }),
              testing::HasSubstr("found 1e+39, expected a number that fits in float32; evaluate the net in float64"));
  EXPECT_NO_THROW(Plan<double>::compile(mlp));
}

TEST(Plan, names_the_view_that_does_not_fit) {
  const auto plan = Plan<float>::compile(small());
  std::vector<float> numbers(100);
  const auto in = [&](std::size_t rows, std::size_t columns) {
    return MatrixView<const float>::row_major(numbers.data(), rows, columns);
  };
  const auto out = [&](std::size_t rows, std::size_t columns) {
    return MatrixView<float>::row_major(numbers.data() + 50, rows, columns);
  };
  EXPECT_THAT(message_of([&] { plan.evaluate(in(4, 2), out(4, 2)); }),
              testing::StartsWith("in.columns: found 2, expected 3"));
  EXPECT_THAT(message_of([&] { plan.evaluate(in(4, 3), out(4, 3)); }),
              testing::StartsWith("out.columns: found 3, expected 2"));
  EXPECT_THAT(message_of([&] { plan.evaluate(MatrixView<const float>::row_major(nullptr, 4, 3), out(4, 2)); }),
              testing::StartsWith("in.data: found a null pointer, expected an address"));
  EXPECT_THAT(message_of([&] { plan.evaluate(in(4, 3), MatrixView<float>::row_major(nullptr, 4, 2)); }),
              testing::StartsWith("out.data: found a null pointer"));
  plan.evaluate(MatrixView<const float>::row_major(nullptr, 0, 3), MatrixView<float>::row_major(nullptr, 0, 2));
  EXPECT_THAT(message_of([&] { plan.evaluate(in(4, 3), out(5, 2)); }),
              testing::StartsWith("out.rows: found 5, expected 4"));
  EXPECT_EQ(message_of([&] { plan.evaluate({numbers.data(), 4, 3}, {numbers.data() + 50, 4, 2}); }), "no error");
  EXPECT_THAT(message_of([&] { plan.evaluate(in(4, 3), out(4, 2), -1); }), testing::StartsWith("threads: found -1"));
  AlignedBuffer<std::byte> workspace(plan.workspace_bytes() + 64);
  EXPECT_THAT(message_of([&] { plan.evaluate(in(4, 3), out(4, 2), workspace.span().subspan(0, 8)); }),
              testing::StartsWith("workspace: found 8"));
  EXPECT_THAT(message_of([&] { plan.evaluate(in(4, 3), out(4, 2), workspace.span().subspan(4)); }),
              testing::StartsWith("workspace alignment"));
}

TEST(Plan, says_what_lowering_did) {
  const auto plan = Plan<double>::compile(small(), CpuTarget::scalar);
  EXPECT_THAT(plan.description(), testing::StartsWith("scalar f64 mlp 3-5-2: "));
  EXPECT_EQ(plan.inputs(), 3u);
  EXPECT_EQ(plan.outputs(), 2u);
  EXPECT_EQ(plan.cpu_target(), CpuTarget::scalar);
}

TEST(Plan, evaluates_without_allocating) {
  const Mlp mlp = mlp::random_mlp({32, 128, 128, 31}, {ActivationKind::relu}, 1);
  constexpr std::size_t kRows = 500;
  std::vector<float> x(kRows * 32), y(kRows * 31);
  const auto in = MatrixView<const float>::row_major(x.data(), kRows, 32);
  const auto out = MatrixView<float>::row_major(y.data(), kRows, 31);
  for (const CpuTarget target : available_cpu_targets()) {
    const auto plan = Plan<float>::compile(mlp, target);
    AlignedBuffer<std::byte> workspace(plan.workspace_bytes());
    AlignedBuffer<float> tile_in(32 * kTileLanes), tile_out(31 * kTileLanes);
    const int before = allocations;
    plan.evaluate(in, out, workspace.span());
    plan.evaluate(MatrixView<const float>::row_major(x.data(), 1, 32), MatrixView<float>::row_major(y.data(), 1, 31),
                  workspace.span());
    plan.evaluate_tile({nullptr, tile_in.data(), nullptr, tile_out.data(), 32}, workspace.data());
    EXPECT_EQ(allocations, before) << plan.description();
    plan.evaluate(in, out, 2);  // the threads' workspaces are made here and kept
    plan.evaluate(in, out, 1);
    const int kept = allocations;
    for (int i = 0; i < 2; ++i) plan.evaluate(in, out, 1);
    EXPECT_EQ(allocations, kept) << plan.description();
  }
}

TEST(Plan, evaluates_on_threads_without_allocating) {
  const Mlp mlp = mlp::random_mlp({32, 128, 128, 31}, {ActivationKind::relu}, 1);
  constexpr std::size_t kRows = 400;
  constexpr int kThreads = 3;
  const auto plan = Plan<float>::compile(mlp, best_cpu_target());
  std::vector<float> x(kRows * 32), y(kRows * 31);
  // Each thread has its workspace once it has evaluated.
  std::atomic<int> came{0};
  run_on_threads(kThreads, [&](int) {
    float in[32] = {}, out[31];
    plan.evaluate(MatrixView<const float>::row_major(in, 1, 32), MatrixView<float>::row_major(out, 1, 31));
    ++came;
    const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (came < kThreads && std::chrono::steady_clock::now() < late) std::this_thread::yield();
  });
  ASSERT_EQ(came, kThreads);
  const auto in = MatrixView<const float>::row_major(x.data(), kRows, 32);
  const auto out = MatrixView<float>::row_major(y.data(), kRows, 31);
  const int before = allocations;
  for (int i = 0; i < 100; ++i) plan.evaluate(in, out, kThreads);
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace lockstep
