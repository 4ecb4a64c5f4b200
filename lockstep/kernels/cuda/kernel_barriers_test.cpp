// Each barrier of the kernels that evaluate nets is needed: one that orders nothing is a race, which ThreadSanitizer
// finds. Part of kernel_race_test.
#include <gtest/gtest.h>

#include "lockstep/kernels/cuda/device_graph_plan.h"
#include "lockstep/kernels/cuda/testing/needed_barriers.h"
#include "lockstep/kernels/cuda/testing/simulate_evaluation.h"
#include "lockstep/kernels/cuda/testing/simulate_tensor.h"
#include "lockstep/kernels/cuda/testing/simulated_evaluation_runtime.h"
#include "lockstep/kernels/graph/testing/random_graph.h"
#include "lockstep/kernels/mlp/testing/reference.h"

namespace lockstep::cuda {
namespace {

using testing::expect_every_barrier_to_be_needed;

constexpr std::size_t kInputs = 12, kOutputs = 10;  // more than eight: threads share them out by their layout

// Normalised: there is work on either side of every barrier.
Mlp normalised_net() {
  Mlp mlp = mlp::random_mlp({kInputs, 33, kOutputs}, {ActivationKind::tanh}, 1);
  mlp.input_scaling = {std::vector<double>(kInputs, 0.1), std::vector<double>(kInputs, 1.5)};
  mlp.output_scaling = {std::vector<double>(kOutputs, 0.2), std::vector<double>(kOutputs, 2)};
  return mlp;
}

// Two tiles of samples, rows of inputs into rows or columns of outputs.
struct Samples {
  explicit Samples(int tile)
      : count(2 * static_cast<std::size_t>(tile)), in(count * kInputs, 0.25f), out(count * kOutputs) {}
  MatrixView<const float> inputs() const { return MatrixView<const float>::row_major(in.data(), count, kInputs); }
  MatrixView<float> rows() { return MatrixView<float>::row_major(out.data(), count, kOutputs); }
  MatrixView<float> columns() { return MatrixView<float>::column_major(out.data(), count, kOutputs); }
  std::size_t count;
  std::vector<float> in, out;
};

TEST(KernelBarriers, of_the_evaluation_kernel_are_needed) {
  const Mlp mlp = normalised_net();
  Mlp plain = mlp;
  plain.input_scaling = {};
  Samples samples(32);
  expect_every_barrier_to_be_needed([&] {
    testing::simulate_evaluation<float>(mlp, samples.inputs(), samples.rows(), 32, 1);
    testing::simulate_evaluation<float>(plain, samples.inputs(), samples.columns(), 32, 1);
  });
}

TEST(KernelBarriers, of_the_tensor_kernel_are_needed) {
  const Mlp mlp = normalised_net();
  // Warps that share samples wait for each other, others for their own lanes alone.
  TensorWeights<Bf16> shared_samples;
  TensorWeights<Tf32> own_samples;
  const BlockNet first = shared_samples.add(mlp), second = own_samples.add(mlp);
  Samples small(64), large(128);
  expect_every_barrier_to_be_needed([&] {
    testing::simulate_tensor(shared_samples, first, small.inputs(), small.rows(), {.tile = 64, .blocks = 1});
    testing::simulate_tensor(own_samples, second, large.inputs(), large.columns(), {.tile = 128, .blocks = 1});
  });
}

TEST(KernelBarriers, of_warps_that_take_samples_alone_are_needed) {
  TensorWeights<Bf16> weights;
  const BlockNet net = weights.add(normalised_net());
  // Eight warps, two tiles of 16 each.
  Samples samples(128);
  expect_every_barrier_to_be_needed([&] {
    testing::simulate_tensor(weights, net, samples.inputs(), samples.rows(), {.tile = kWarpTile / 2, .blocks = 1});
  });
}

TEST(KernelBarriers, of_the_graph_kernel_are_needed) {
  graph::testing::Builder b;
  const std::size_t x = b.input(kInputs);
  const std::size_t h = b.add(graph::Activate{{ActivationKind::tanh}}, {b.add(b.dense(kInputs, 9), {x})});
  b.output(b.add(b.dense(9, kOutputs), {h}));
  testing::SimulatedEvaluationRuntime runtime;
  replace_evaluation_runtime(&runtime);
  runtime.multiprocessors = 1;
  const auto in_shared_memory = DeviceGraphPlan<float>::compile(b.graph);
  runtime.shared_memory = 16;
  const auto in_global_memory = DeviceGraphPlan<float>::compile(b.graph);
  Samples samples(128);
  const auto in = samples.inputs();
  const auto out = samples.columns();
  expect_every_barrier_to_be_needed([&] {
    in_shared_memory.enqueue(nullptr, std::span(&in, 1), std::span(&out, 1));
    in_global_memory.enqueue(nullptr, std::span(&in, 1), std::span(&out, 1));
  });
  replace_evaluation_runtime(nullptr);
}

}  // namespace
}  // namespace lockstep::cuda
