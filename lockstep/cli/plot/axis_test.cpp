#include "lockstep/cli/plot/axis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "lockstep/cli/plot/canvas.h"
#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

TEST(Axis, takes_a_round_number_off_where_all_are_near_it) {
  const Axis pressure({101324.99, 101325.01});
  EXPECT_EQ(pressure.offset(), 101325);
  EXPECT_EQ(pressure.label("p", "Pa"), "p − 101325 (Pa)");
  std::string row;
  pressure.append(row, 101325.00123456);
  EXPECT_EQ(row.substr(0, 8), " 0.00123");
  const Axis seconds({1e9, 1e9 + 10});
  EXPECT_EQ(seconds.offset(), 1e9);
  const Axis below({-5.000123, -5.000117});
  EXPECT_EQ(below.offset(), -5.00012);
  EXPECT_EQ(below.label("v", ""), "v + 5.00012");
  EXPECT_TRUE(std::isnan(pressure.shown(NAN)));
  // Of a long name the beginning; what was taken off and the unit stay.
  EXPECT_EQ(pressure.label("pressure_at_the_wall", "Pa", 30), "pressure_at_t… − 101325 (Pa)");
}

TEST(Axis, leaves_wide_ranges_and_constants_alone) {
  for (const Extent extent : {Extent{-20, 20}, Extent{0, 1e9}, Extent{100, 101}, Extent{3, 3}, Extent{}}) {
    EXPECT_EQ(Axis(extent).offset(), 0);
    EXPECT_EQ(Axis(extent).shown(2.5), extent.low == 3 ? 3 : 2.5);
    EXPECT_EQ(Axis(extent).label("x", "m"), "x (m)");
  }
  // Rounding of a constant is no curve.
  const Axis constant({1, 1 + 2e-15});
  EXPECT_EQ(constant.shown(1 + 2e-15), 1);
}

TEST(Axis, shows_subnormal_numbers_as_they_are) {
  const Axis tiny({1e-309, 1e-309 + 5e-313});
  EXPECT_EQ(tiny.offset(), 0);
  EXPECT_EQ(tiny.shown(1e-309), 1e-309);
  EXPECT_EQ(tiny.label("x", "m"), "x (m)");
  EXPECT_TRUE(std::isfinite(tiny.tick_pixels()));
}

TEST(Axis, knows_how_wide_its_ticks_are) {
  EXPECT_LT(Axis({-20, 20}).tick_pixels(), 50);
  EXPECT_GT(Axis({-1.5e-5, 1.5e-5}).tick_pixels(), 100);
  EXPECT_GT(Axis({0, 6e5}).tick_pixels(), 95);
}

TEST(Shortened, leaves_out_the_end_and_no_half_of_a_character) {
  EXPECT_EQ(shortened("temperature", 11), "temperature");
  EXPECT_EQ(shortened("temperature", 10), "temperatu…");
  EXPECT_EQ(shortened("θφψω", 3), "θφ…");
  EXPECT_EQ(shortened("θφψ", 3), "θφψ");
}

// 1,540 of 1,600 pixels hold 42 letters of the type's size, 36 pixels, or more narrow ones.
TEST(Headings, keep_a_title_of_wide_letters_within_the_picture) {
  const auto has = [](const std::string& title, const std::string& shown) {
    return headings(title, "", {}).find("'" + shown + "'") != std::string::npos;
  };
  EXPECT_TRUE(has(std::string(42, 'M'), std::string(42, 'M')));
  EXPECT_TRUE(has(std::string(43, 'M'), std::string(41, 'M') + "…"));
  EXPECT_TRUE(has(std::string(90, 'i'), std::string(90, 'i')));
  // Runs to the edge, 1,600 pixels.
  EXPECT_FALSE(has("Equations of O3, NO, NO2, HNO3, Ndep, CO, HCH…: maximum over time by q",
                   "Equations of O3, NO, NO2, HNO3, Ndep, CO, HCH…: maximum over time by q"));
}

}  // namespace
}  // namespace lockstep::cli
