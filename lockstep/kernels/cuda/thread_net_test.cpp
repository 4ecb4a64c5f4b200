// A GPU's own ways to tanh, by another quotient and by tables in shared memory, give the bits of everybody's.
#include "lockstep/kernels/cuda/thread_net.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "lockstep/core/testing/sanitized.h"
#include "lockstep/kernels/mlp/testing/reference.h"

namespace lockstep::cuda {
namespace {

// By the float32 next above the true 1 / b, or by the one next below: all that are no further than 1 ulp from it.
struct GuessingLane : TanhLane<float> {
  static inline bool above = false;
  static float div(float a, float b) {
    const double exact = 1.0 / b;
    const auto nearest = static_cast<float>(exact);
    const bool there = above ? nearest > exact : nearest < exact;
    return quotient(a, b, there ? nearest : from_bits(bits(nearest) + (above ? 1 : -1)));
  }
};

// By 1 / b with an error of `off` and the lower half of its bits zero.
struct RoughLane : TanhLane<double> {
  static inline double off = 0;
  static double div(double a, double b) {
    return quotient(a, b, from_bits(bits((1 + off) / b) & ~std::int64_t{0xffffffff}));
  }
};

// Of the float32 with bits from `first` to `last`, every stride-th.
template <class Tanh>
void expect_tanh(const Tanh& tanh, std::uint64_t first, std::uint64_t last, std::uint64_t stride) {
  for (std::uint64_t i = first; i <= last; i += stride) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(i));
    const float expected = math::tanh(x), found = tanh(x);
    ASSERT_TRUE(std::bit_cast<std::uint32_t>(found) == std::bit_cast<std::uint32_t>(expected) ||
                (x != x && found != found))
        << "tanh(" << x << ") is " << found << ", not " << expected;
  }
}

// Below 2^-12 the denominator is 1 or beside it.
TEST(ThreadNet, tanh_is_the_same_by_every_guess_of_a_reciprocal_to_one_ulp) {
  for (const bool above : {false, true}) {
    SCOPED_TRACE(above);
    GuessingLane::above = above;
    const auto guessing = [](float x) { return math::tanh<GuessingLane>(x); };
    expect_tanh(guessing, 0, std::numeric_limits<std::uint32_t>::max(), kSanitized ? 1000003 : 16411);
    expect_tanh(guessing, std::bit_cast<std::uint32_t>(0x1p-12f), std::bit_cast<std::uint32_t>(9.0f),
                kSanitized ? 10007 : 1);
  }
}

TEST(ThreadNet, tanh_in_float64_is_the_same_by_guesses_of_a_reciprocal_to_seventeen_bits) {
  for (const double off : {-0x1p-17, -0x1p-20, 0.0, 0x1p-21, 0x1p-17}) {
    RoughLane::off = off;
    const auto expect_at = [&](double x) {
      ASSERT_EQ(math::tanh<RoughLane>(x), math::tanh(x)) << "tanh(" << x << "), the guess off by " << off;
    };
    for (double x = 0x1p-40; x < 20; x *= kSanitized ? 1.001 : 1.00001) expect_at(x);
    for (const double x : {0.0, 5e-324, 1e-310, 0x1p-1022, 1e-300, 1e-150, 1e-20, 19.1, 1e300}) expect_at(x);
  }
}

TEST(ThreadNet, tanh_is_the_same_by_the_table_of_a_folded_net) {
  std::vector<float> weights;
  const NetImage net = make_net_image(mlp::random_mlp({2, 5, 2}, {ActivationKind::tanh}, 1), weights);
  ASSERT_GE(net.folded, 0);
  const auto& table = *reinterpret_cast<const TanhTable16*>(weights.data() + net.folded);
  expect_tanh([&](float x) { return tanh_by_table(table, x); }, 0, std::numeric_limits<std::uint32_t>::max(),
              kSanitized ? 1000003 : 16411);
}

}  // namespace
}  // namespace lockstep::cuda
