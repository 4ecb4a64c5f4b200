// What holds of the engine cuda_gemm whatever the order in which a product sums: a bound on the error. Here with the
// host's double; on a card, where LOCKSTEP_TEST_DEVICE=cuda, with cuBLASLt and graphs.
#include <gtest/gtest.h>

#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/ode/cuda/gemm/testing/gemm_bounds.h"
#include "lockstep/ode/cuda/gemm/testing/host_gemm.h"

namespace lockstep::ode::cuda {
namespace {

TEST(GemmBounds, hold_in_every_mode_whatever_order_products_sum_in) {
  HostDevice device;
  HostRuntime host(device);
  HostGemm gemm;
  HostGemmRuntime products(gemm);
  Runtime* runtime = &host;
  GemmRuntime* multiplies = &products;
  if (Runtime* const card = wanted_card(); card != nullptr) {
    runtime = card;
    multiplies = load_gemm_runtime();
    ASSERT_NE(multiplies, nullptr);
    if (const std::string missing = multiplies->missing(); !missing.empty()) GTEST_SKIP() << missing;
  }
  for (const ActivationKind kind : {ActivationKind::relu, ActivationKind::tanh}) {
    const Mlp mlp = mlp::random_mlp({3, 33, 17, 3}, {kind}, 12);
    for (const std::size_t count : {1u, 33u, 101u}) {
      expect_within_bounds(mlp, count, MatrixPrecision::f32, Precision::f64, runtime, multiplies);
      for (const MatrixPrecision mode :
           {MatrixPrecision::f32, MatrixPrecision::tf32, MatrixPrecision::bf16, MatrixPrecision::fp16})
        expect_within_bounds(mlp, count, mode, Precision::f32, runtime, multiplies);
    }
  }
  const Mlp wide = mlp::random_mlp({3, 300, 3}, {ActivationKind::relu}, 5);
  expect_within_bounds(wide, 33, MatrixPrecision::f32, Precision::f32, runtime, multiplies);
}

TEST(GemmBounds, are_narrower_than_what_a_mode_changes) {
  // The bound of float32 must not hold for bf16, or it would say nothing.
  const Mlp mlp = mlp::random_mlp({3, 33, 17, 3}, {ActivationKind::tanh}, 12);
  const Bounded u{{0.3, 0.7, 0.1}, {0, 0, 0}};
  const Bounded exact = euler(mlp, u, 0x1p-5, 9, MatrixPrecision::f32, 0x1p-24);
  const Bounded bf16 = euler(mlp, u, 0x1p-5, 9, MatrixPrecision::bf16, 0x1p-24);
  for (std::size_t c = 0; c < 3; ++c) EXPECT_GT(bf16.error[c], 50 * exact.error[c]);
}

}  // namespace
}  // namespace lockstep::ode::cuda
