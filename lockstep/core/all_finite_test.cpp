#include "lockstep/core/all_finite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace lockstep {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kMost32 = std::numeric_limits<float>::max();

TEST(AllFinite, numbers_of_any_size_and_sign_are) {
  for (const std::size_t size : {0, 1, 7, 8, 9, 10007}) {
    std::vector<double> numbers(size, -std::numeric_limits<double>::max());
    if (size > 3) numbers[3] = std::numeric_limits<double>::denorm_min();
    if (size > 5) numbers[5] = -0.0;
    EXPECT_TRUE(all_finite(numbers)) << size;
  }
}

TEST(AllFinite, one_that_is_not_is_found_wherever_it_stands) {
  for (const double odd : {kInfinity, -kInfinity, kNaN, -kNaN, std::numeric_limits<double>::signaling_NaN()}) {
    for (std::size_t place = 0; place < 37; ++place) {
      std::vector<double> numbers(37, 1e-300);
      numbers[place] = odd;
      EXPECT_FALSE(all_finite(numbers)) << odd << " at " << place;
      EXPECT_FALSE(all_finite<float>(numbers)) << odd << " at " << place;
    }
  }
}

TEST(AllFinite, in_float32_ends_half_a_place_beyond_its_largest_number) {
  // Rounded to even: the number in the middle between the largest one and the next power of two is infinity.
  const double middle = kMost32 + 0x1p103;
  for (const double sign : {1.0, -1.0}) {
    EXPECT_TRUE(all_finite<float>(std::vector{sign * kMost32, sign * std::nextafter(middle, 0.0), 0.0}));
    EXPECT_FALSE(all_finite<float>(std::vector{0.0, sign * middle}));
    EXPECT_TRUE(all_finite(std::vector{sign * middle}));
  }
}

}  // namespace
}  // namespace lockstep
