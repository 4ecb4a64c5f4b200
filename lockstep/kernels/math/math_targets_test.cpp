// Every function gives the same bits as its scalar form on every instruction set this machine runs.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "lockstep/kernels/lane/targets.h"
#include "lockstep/kernels/math/math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/kernels/math/math_targets_test.cpp"
#include <hwy/foreach_target.h>
#include "lockstep/kernels/lane/dispatch.h"
#include "lockstep/kernels/math/math_hwy-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
void tanh_all(const float* in, float* out, size_t n) {
  const hn::ScalableTag<float> d;
  using L = HwyLane<decltype(d)>;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    hn::StoreU(activate<ActivationKind::tanh, L>(hn::LoadU(d, in + i), L::zero()), d, out + i);
  }
}
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep {
namespace {

TEST(Math, tanh_has_the_scalar_bits_on_every_target) {
  std::mt19937 random(1);
  std::vector<float> in(4096), out(4096);
  for (float& x : in) x = std::bit_cast<float>(uint32_t(random()));
  for (const CpuTarget target : available_cpu_targets()) {
    LOCKSTEP_CHOOSE(target, tanh_all)(in.data(), out.data(), in.size());
    for (size_t i = 0; i < in.size(); ++i) {
      const float expected = math::tanh(in[i]);
      if (expected != expected) {
        EXPECT_NE(out[i], out[i]);
      } else {
        EXPECT_EQ(std::bit_cast<uint32_t>(out[i]), std::bit_cast<uint32_t>(expected)) << in[i];
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
#endif
