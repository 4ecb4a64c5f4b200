// A GPU's own ways to tanh, by another quotient and by tables in shared memory, give the bits of everybody's.
#include "lockstep/kernels/cuda/thread_net.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "lockstep/core/testing/sanitized.h"
#include "lockstep/kernels/mlp/testing/reference.h"

namespace lockstep::cuda {
namespace {

struct GuessingLane : TanhLane {
  static inline int ulps_off = 0;
  static float div(float a, float b) { return quotient(a, b, from_bits(bits(1.0f / b) + ulps_off)); }
};

// Among all float32.
template <class Tanh>
void expect_tanh(const Tanh& tanh) {
  constexpr std::uint64_t stride = kSanitized ? 1000003 : 16411;
  for (std::uint64_t i = 0; i < std::uint64_t{1} << 32; i += stride) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(i));
    const float expected = math::tanh(x), found = tanh(x);
    ASSERT_TRUE(std::bit_cast<std::uint32_t>(found) == std::bit_cast<std::uint32_t>(expected) ||
                (x != x && found != found))
        << "tanh(" << x << ") is " << found << ", not " << expected;
  }
}

TEST(ThreadNet, tanh_is_the_same_by_any_guess_of_a_reciprocal_to_two_ulp) {
  for (const int ulps : {-2, -1, 0, 1, 2}) {
    SCOPED_TRACE(ulps);
    GuessingLane::ulps_off = ulps;
    expect_tanh([](float x) { return math::tanh<GuessingLane>(x); });
  }
}

TEST(ThreadNet, tanh_is_the_same_by_the_table_of_a_folded_net) {
  std::vector<float> weights;
  const NetImage net = make_net_image(mlp::random_mlp({2, 5, 2}, {ActivationKind::tanh}, 1), weights);
  ASSERT_GE(net.folded, 0);
  const auto& table = *reinterpret_cast<const TanhTable16*>(weights.data() + net.folded);
  expect_tanh([&](float x) { return tanh_by_table(table, x); });
}

}  // namespace
}  // namespace lockstep::cuda
