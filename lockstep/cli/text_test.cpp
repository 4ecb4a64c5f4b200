#include "lockstep/cli/text.h"

#include <gtest/gtest.h>

#include <limits>

#include "lockstep/cli/progress.h"
#include "lockstep/core/resolved_text.h"

namespace lockstep::cli {
namespace {

TEST(Text, numbers_read_back_and_are_short) {
  EXPECT_EQ(number_text(1e-6), "1e-06");
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(-28.0), "-28");
}

TEST(Text, numbers_far_from_zero_have_the_digits_that_tell_them_apart) {
  EXPECT_EQ(resolved_text(1700002220, 60), "1700002220");
  EXPECT_EQ(resolved_text(1700100000.5, 0.5), "1700100000.5");
  EXPECT_EQ(resolved_text(2460000.5 + 37.0 / 1440, 1.0 / 1440), "2460000.5257");
  EXPECT_EQ(resolved_text(-1700000000, 1e-3), "-1700000000");
  for (int k = 0; k < 999; ++k) {  // of neighbours no two are alike
    EXPECT_NE(resolved_text(2460000.5 + k / 86400.0, 1 / 86400.0),
              resolved_text(2460000.5 + (k + 1) / 86400.0, 1 / 86400.0));
  }
}

TEST(Text, numbers_that_few_digits_tell_apart_have_those_alone) {
  EXPECT_EQ(resolved_text(2.5, 0.1), "2.5");
  EXPECT_EQ(resolved_text(1.0 / 3, 0.01), "0.333333");
  EXPECT_EQ(resolved_text(0, 1e-9), "0");
  EXPECT_EQ(resolved_text(1234567, 0), "1.23457e+06");
  EXPECT_EQ(resolved_text(1234567, std::numeric_limits<double>::infinity()), "1.23457e+06");
  EXPECT_EQ(resolved_text(std::numeric_limits<double>::quiet_NaN(), 1), "nan");
  EXPECT_EQ(resolved_text(1e300, 1), "1e+300");
  EXPECT_EQ(resolved_text(0.35049999, 1e-3, 4), "0.3505");
}

TEST(Text, other_programs_words_for_a_precision_are_known) {
  const std::string_view precisions[] = {"f32", "f64"}, others[] = {"tsit5", "rk4"};
  for (const char* word : {"float64", "double", "f8", "F64"}) {
    EXPECT_EQ(did_you_mean(word, precisions), "did you mean \"f64\"?") << word;
  }
  EXPECT_EQ(did_you_mean("single", precisions), "did you mean \"f32\"?");
  EXPECT_EQ(did_you_mean("quadruple", precisions), "");
  EXPECT_EQ(did_you_mean("float64", others), "");
}

TEST(Text, counts_group_thousands) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(1000), "1,000");
  EXPECT_EQ(count_text(-1234567), "-1,234,567");
}

TEST(Text, no_time_is_left_when_all_is_done) {
  EXPECT_EQ(progress_text("solving", "trajectories", 5, 10, 2.5, 0),
            "solving 50 %, 5 of 10 trajectories, 2/s, 2.5 s left");
  EXPECT_EQ(progress_text("solving", "trajectories", 10, 10, 5, 0), "solving 100 %, 10 of 10 trajectories, 2/s");
}

TEST(Text, sizes_times_and_rates_carry_units) {
  EXPECT_EQ(size_text(999), "999 bytes");
  EXPECT_EQ(size_text(12'120'000), "12.1 MB");
  EXPECT_EQ(size_text(999'990'000), "1.0 GB");
  EXPECT_EQ(size_text(100'400'000), "100 MB");
  EXPECT_EQ(seconds_text(2e-8), "20 ns");
  EXPECT_EQ(seconds_text(0.0853), "85.3 ms");
  EXPECT_EQ(seconds_text(0.9999), "1 s");
  EXPECT_EQ(seconds_text(200), "3 min 20 s");
  EXPECT_EQ(seconds_text(7500), "2 h 05 min");
  EXPECT_EQ(rate_text(0.314159), "0.314");
  EXPECT_EQ(rate_text(52345), "52,300");
}

TEST(Text, a_message_stays_on_one_line) { EXPECT_EQ(one_line("a\n  b\t c \n"), "a b c"); }

TEST(Progress, a_line_fits_into_the_terminal) {
  const auto text = [](std::size_t bar) { return progress_text("solving", "trajectories", 5000, 10000, 0.1, bar); };
  const std::size_t bare = text(0).size();
  EXPECT_EQ(fitted_line(200, text), text(30));
  for (std::size_t columns = 2; columns < 120; ++columns) EXPECT_LT(fitted_line(columns, text).size(), columns + 3);
  EXPECT_EQ(fitted_line(bare + 3 + 4 + 1, text), text(4));
  EXPECT_EQ(fitted_line(bare + 3 + 4, text), text(0));
  EXPECT_EQ(fitted_line(20, text), "solving 50 %, 5,00…");
}

TEST(Progress, a_report_has_part_rate_and_time_left) {
  EXPECT_EQ(progress_text("solving", "trajectories", 5000, 10000, 0.1, 10),
            "solving [#####.....] 50 %, 5,000 of 10,000 trajectories, 50,000/s, 100 ms left");
  EXPECT_EQ(progress_text("solving", "trajectories", 0, 10, 1, 0), "solving 0 %, 0 of 10 trajectories");
}

TEST(Text, lists_that_nobody_would_read_are_cut) {
  std::vector<std::string_view> words(40, "x");
  EXPECT_EQ(list_text(words).size(), 40u + 2 * 39);
  words.resize(2000, "x");
  words[1] = "y";
  EXPECT_EQ(list_text(words).substr(0, 7), "x, y, x");
  EXPECT_TRUE(list_text(words).ends_with(", x and 1,980 others")) << list_text(words);
}

}  // namespace
}  // namespace lockstep::cli
