#include "lockstep/train/sums.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "lockstep/core/random.h"
#include "lockstep/train/clip.h"

namespace lockstep::train {
namespace {

// On x86-64 with SSE2; what every other machine must find.
constexpr double kRecorded = 0x1.887124eff788fp+14;

using testing::ElementsAre;

std::vector<float> random_vector(std::size_t n) {
  std::vector<float> v(n);
  const Random random(7);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<float>(random.normal(i, 0));
  return v;
}

TEST(Sums, sizes_around_slots_and_chunks_sum_every_element_once) {
  // Integers below 2^53 add exactly in any order.
  for (const std::size_t n : {0, 1, 15, 16, 17, 4095, 4096, 4097, 8193, 12289, 25091}) {
    std::vector<float> a(n), b(n, 1.f);
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      a[i] = static_cast<float>(i % 1000 + 1);
      sum += a[i];
    }
    EXPECT_EQ(dot(std::span<const float>(a), std::span<const float>(b)), sum) << n;
  }
}

TEST(Sums, a_sum_of_products_has_the_bits_recorded) {
  const std::vector<float> a = random_vector(25091);
  const double value = dot(std::span<const float>(a), std::span<const float>(a));
  // Squares of float32 are exact; in the tree each passes through at most 256 + 4 + 3 additions of positive numbers.
  long double exact = 0;
  for (const float x : a) exact += static_cast<long double>(x) * x;
  EXPECT_NEAR(value, static_cast<double>(exact), 263 * 0x1p-53 * value);
  EXPECT_EQ(value, kRecorded) << std::hexfloat << value;
}

TEST(Clip, a_long_gradient_keeps_its_direction_and_gets_the_norm) {
  std::vector<double> g{3, -4, 0};
  EXPECT_EQ(clip(std::span(g), {.norm = 2.5}), 5);
  EXPECT_THAT(g, ElementsAre(1.5, -2, 0));
}

TEST(Clip, a_short_gradient_keeps_its_bits) {
  std::vector<float> g{0.3f, -0.4f};
  const std::vector<float> before = g;
  clip(std::span(g), {.norm = 1, .value = 0.5});
  EXPECT_EQ(g, before);
}

TEST(Clip, elements_are_brought_into_the_range) {
  std::vector<float> g{3, -4, 0.5f};
  clip(std::span(g), {.value = 1});
  EXPECT_THAT(g, ElementsAre(1, -1, 0.5f));
}

TEST(Clip, a_gradient_that_is_not_finite_is_left_to_the_caller) {
  std::vector<float> g{1, NAN};
  EXPECT_TRUE(std::isnan(clip(std::span(g), {.norm = 0.1})));
  EXPECT_EQ(g[0], 1);
}

}  // namespace
}  // namespace lockstep::train
