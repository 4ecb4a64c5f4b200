// An unknown name is answered with the one that was probably meant.
#include "lockstep/core/names.h"

#include <gtest/gtest.h>

#include <array>

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 4> kKnown{"tsit5", "dopri5", "rtol", "atol"};

TEST(Names, nearest_name_takes_the_fewest_edits) {
  EXPECT_EQ(nearest_name("tsit", kKnown), "tsit5");
  EXPECT_EQ(nearest_name("dorpi5", kKnown), "dopri5");
  EXPECT_EQ(nearest_name("atoll", kKnown), "atol");
  EXPECT_EQ(nearest_name("rtol", kKnown), "rtol");
}

TEST(Names, the_case_of_letters_is_no_edit) {
  constexpr std::array<std::string_view, 3> kParameters{"cf", "q", "Tf"};
  EXPECT_EQ(nearest_name("Q", kParameters), "q");
  EXPECT_EQ(nearest_name("TF", kParameters), "Tf");
}

TEST(Names, a_unit_behind_a_name_is_no_edit) {
  constexpr std::array<std::string_view, 4> kColumns{"time", "A (mol/L)", "AB", "temperature[K]"};
  EXPECT_EQ(nearest_name("A", kColumns), "A (mol/L)");
  EXPECT_EQ(nearest_name("temperature", kColumns), "temperature[K]");
  EXPECT_EQ(nearest_name("tempera", kColumns), "");
}

TEST(Names, exchanged_neighbours_are_one_edit) {
  constexpr std::array<std::string_view, 2> kCommands{"solve", "plot"};
  EXPECT_EQ(nearest_name("slove", kCommands), "solve");
  EXPECT_EQ(nearest_name("plto", kCommands), "plot");
  EXPECT_EQ(nearest_name("lpto", kCommands), "");
}

TEST(Names, of_two_letters_one_may_differ) {
  constexpr std::array<std::string_view, 3> kArguments{"x", "v", "dt"};
  EXPECT_EQ(nearest_name("vv", kArguments), "v");
  EXPECT_EQ(nearest_name("dy", kArguments), "dt");
  EXPECT_EQ(nearest_name("t", kArguments), "");
}

TEST(Names, nothing_is_suggested_when_nothing_is_near) {
  EXPECT_EQ(nearest_name("radau", kKnown), "");
  EXPECT_EQ(nearest_name("", kKnown), "");
  EXPECT_EQ(nearest_name("x", {}), "");
}

TEST(Names, the_message_names_field_found_expected_and_the_nearest) {
  EXPECT_STREQ(unknown_name("options.method", "tsit", kKnown).what(),
               "options.method: found \"tsit\", expected one of tsit5, dopri5, rtol, atol; did you mean \"tsit5\"?");
  EXPECT_STREQ(unknown_name("options.method", "radau", kKnown).what(),
               "options.method: found \"radau\", expected one of tsit5, dopri5, rtol, atol");
}

}  // namespace
}  // namespace lockstep
