// A GPU's own way to a quotient gives the bits of everybody's.
#include "lockstep/kernels/cuda/thread_net.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>

#include "lockstep/core/testing/sanitized.h"

namespace lockstep::cuda {
namespace {

struct GuessingLane : TanhLane {
  static inline int ulps_off = 0;
  static float div(float a, float b) { return quotient(a, b, from_bits(bits(1.0f / b) + ulps_off)); }
};

TEST(ThreadNet, tanh_is_the_same_by_any_guess_of_a_reciprocal_to_two_ulp) {
  constexpr std::uint64_t stride = kSanitized ? 1000003 : 16411;
  for (const int ulps : {-2, -1, 0, 1, 2}) {
    GuessingLane::ulps_off = ulps;
    for (std::uint64_t i = 0; i < std::uint64_t{1} << 32; i += stride) {
      const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(i));
      const float expected = math::tanh(x), found = math::tanh<GuessingLane>(x);
      ASSERT_TRUE(std::bit_cast<std::uint32_t>(found) == std::bit_cast<std::uint32_t>(expected) ||
                  (x != x && found != found))
          << "tanh(" << x << ") by a guess " << ulps << " ulp off is " << found << ", not " << expected;
    }
  }
}

}  // namespace
}  // namespace lockstep::cuda
