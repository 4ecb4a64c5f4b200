// Every function gives the bits of its scalar form on every instruction set this machine runs.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "lockstep/core/testing/sanitized.h"
#include "lockstep/kernels/math/detail/function_table.h"
#include "lockstep/kernels/math/detail/samples.h"

namespace lockstep::math {
namespace {

// NaN is compared as a class: its payload differs between processors.
template <class T>
bool same_bits(T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  return std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b) || (a != a && b != b);
}

template <class T>
void expect_scalar_bits(const Entry& entry, const std::vector<T>& x) {
  std::vector<T> expected(x.size()), found(x.size());
  evaluate_scalar(entry, x.data(), expected.data(), x.size());
  for (const CpuTarget target : available_cpu_targets()) {
    evaluate(entry, target, x.data(), found.data(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_TRUE(same_bits(found[i], expected[i]))
          << entry.name << "(" << x[i] << ") on " << to_string(target) << " is " << found[i] << ", but " << expected[i]
          << " in scalar code";
    }
  }
}

TEST(MathTargets, float32_bits_are_the_scalar_ones) {
  const auto x = all_floats_by(kSanitized ? 1000003 : 32749);
  for (const Entry& entry : function_table()) expect_scalar_bits(entry, x);
}

TEST(MathTargets, float64_bits_are_the_scalar_ones) {
  const auto x = double_samples(kSanitized ? 6000 : 60000, 20261122);
  for (const Entry& entry : function_table()) expect_scalar_bits(entry, x);
}

TEST(MathTargets, any_number_of_elements_can_be_asked_for) {
  const Entry& entry = function_table().front();
  for (const std::size_t n : {0, 1, 3, 63, 64, 65, 129}) {
    std::vector<float> x(n, 0.5f), y(n + 1, -7.0f), expected(n);
    evaluate_scalar(entry, x.data(), expected.data(), n);
    evaluate(entry, best_cpu_target(), x.data(), y.data(), n);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), y.begin()));
    EXPECT_EQ(y[n], -7.0f);
  }
}

}  // namespace
}  // namespace lockstep::math
