#include "lockstep/cli/fit_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lockstep::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

FitReport::Row row(const std::string& data, const std::string& name, double rms, double spread) {
  return {data, name, "m", {.rms = rms, .largest = 2 * rms, .spread = spread, .numbers = 10}, "t = 1"};
}

TEST(FitReport, a_table_reads_back_as_it_was) {
  FitReport report{.rows = {row("training", "x, \"big\"", 0.1, 1), row("validation", "y", 1 / 3.0, 2)},
                   .worst = "none"};
  report.rows[1].errors.rms = std::numeric_limits<double>::quiet_NaN();
  report.rows[1].unit = "°C\n";
  const std::optional<FitReport> read = parse_fit_report(to_csv(report), report.worst);
  ASSERT_TRUE(read.has_value());
  ASSERT_THAT(read->rows, SizeIs(2));
  EXPECT_EQ(to_csv(*read), to_csv(report));
  EXPECT_EQ(read->rows[0].name, "x, \"big\"");
  EXPECT_EQ(read->rows[1].unit, "°C\n");
  EXPECT_TRUE(std::isnan(read->rows[1].errors.rms));
  EXPECT_EQ(read->worst, "none");
}

TEST(FitReport, errors_within_a_threshold_read_back_and_tell_what_a_few_outliers_hide) {
  FitReport report{.rows = {row("training", "x", 5, 5.1), row("training", "y", 5, 5.1), row("training", "z", 5, 5.1)},
                   .outliers = "some, \"far\""};
  report.rows[0].errors.within = {0.1, 2, 9};
  report.rows[1].errors.within = {std::numeric_limits<double>::quiet_NaN(), 0, 0};
  report.rows[2].errors.within = {0.1, 2, 4};
  const std::optional<FitReport> read = parse_fit_report(to_csv(report), "", report.outliers);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(to_csv(*read), to_csv(report));
  EXPECT_EQ(read->outliers, report.outliers);
  EXPECT_EQ(read->rows[0].errors.usual(), 0.05);
  EXPECT_EQ(read->rows[2].errors.usual(), 5 / 5.1) << "most are beyond: no fit";
  EXPECT_THAT(unexplained(*read).outputs, ElementsAre("y 98 %", "z 98 %"));
  EXPECT_FALSE(unexplained(*read).all);
  EXPECT_THAT(table_lines(*read), ElementsAre("error over     RMS  of spread  RMS within  beyond  largest  at",     //
                                              "training    x  5 m       98 %       0.1 m       1     10 m  t = 1",  //
                                              "            y  5 m       98 %           -      10     10 m  t = 1",  //
                                              "            z  5 m       98 %       0.1 m       6     10 m  t = 1",  //
                                              "some, \"far\""));
  EXPECT_FALSE(parse_fit_report(to_csv(report) + "training,q,m,1,1,1,3,,nan,1,4\n", "").has_value());
}

TEST(FitReport, shares_are_written_with_the_digits_that_tell_something) {
  EXPECT_EQ(percent_text(0.0214), "2.1 %");
  EXPECT_EQ(percent_text(0.9949), "99 %");
  EXPECT_EQ(percent_text(0.998), "100 %");
  EXPECT_EQ(percent_text(12.345), "1234 %");
  EXPECT_EQ(percent_text(3.0091e23), "3e+25 %");
}

TEST(FitReport, other_texts_are_no_table) {
  const std::string good = to_csv({.rows = {row("training", "x", 0.1, 1)}, .worst = {}});
  EXPECT_FALSE(parse_fit_report("", "").has_value());
  EXPECT_FALSE(parse_fit_report("data,name\n", "").has_value());
  EXPECT_FALSE(parse_fit_report(good + "training,x\n", "").has_value());
  EXPECT_FALSE(parse_fit_report(good.substr(0, good.size() - 8), "").has_value());
}

TEST(FitReport, lines_are_aligned_and_name_each_kind_of_data_once) {
  const FitReport report{
      .rows = {row("training", "x", 0.1, 1), row("training", "höhe", 12, 3), row("validation", "x", 2, 0)},
      .worst = "trajectory 1"};
  EXPECT_THAT(table_lines(report), ElementsAre("error over          RMS  of spread  largest  at",     //
                                               "training    x     0.1 m       10 %    0.2 m  t = 1",  //
                                               "            höhe   12 m      400 %     24 m  t = 1",  //
                                               "validation  x       2 m          -      4 m  t = 1",  //
                                               "worst: trajectory 1"));
}

TEST(FitReport, what_is_not_explained_beside_what_varies_more_comes_with_the_sigma_that_counts_them_alike) {
  FitReport report{.rows = {row("training", "y0", 1, 6), row("training", "y1", 1.9, 2), row("training", "c", 0, 0)}};
  EXPECT_THAT(fit_notes(report),
              ElementsAre("the fit explains little of the data, or nothing: RMS of y1 95 % of the spread, where their "
                          "mean has 100 %; y0 varies 3 times as much as y1, and the loss is in their own units: y1 has "
                          "little of it; in [data] sigma = { y0 = 6, y1 = 2 } counts them alike"));
  report.rows[0].errors.spread = 5.9;
  EXPECT_THAT(fit_notes(report), ElementsAre(testing::EndsWith("where their mean has 100 %")));
  report.rows[0].errors = {.rms = 5.9, .largest = 6, .spread = 6, .numbers = 10};  // the larger is not learned either
  EXPECT_THAT(fit_notes(report), ElementsAre(HasSubstr("y1 has little of it")));
  report.rows[1].errors = {.rms = 0.1, .largest = 0.2, .spread = 2, .numbers = 10};  // the smaller is
  EXPECT_THAT(fit_notes(report), ElementsAre(testing::EndsWith("where their mean has 100 %")));
  report.rows[1].errors = {.rms = 1.9, .largest = 2, .spread = 2, .numbers = 10};
  report.rows[0].errors.in_sigma = report.rows[1].errors.in_sigma = 2;
  EXPECT_THAT(fit_notes(report), ElementsAre(testing::EndsWith("where their mean has 100 %")));
}

TEST(FitReport, what_explains_little_is_named_below_it) {
  FitReport report{.rows = {row("training", "x", 1.42, 1), row("training", "v", 0.9, 1), row("training", "w", 0.89, 1),
                            row("training", "constant", 2, 0), row("validation", "w", 5, 1)},
                   .worst = {}};
  EXPECT_THAT(fit_notes(report),
              ElementsAre("the fit explains little of the data, or nothing: RMS of x 142 %, v 90 % of "
                          "the spread, where their mean has 100 %"));
  EXPECT_FALSE(unexplained(report).all);
  report.rows.erase(report.rows.begin() + 2);
  EXPECT_TRUE(unexplained(report).all);
  report.rows[0].errors.in_sigma = 1.1;  // as large as its noise
  EXPECT_THAT(unexplained(report).outputs, ElementsAre("v 90 %"));
  EXPECT_FALSE(unexplained(report).all);
  report.rows.resize(1);
  EXPECT_THAT(fit_notes(report), testing::IsEmpty());
  EXPECT_THAT(fit_notes({}), testing::IsEmpty());
}

TEST(FitReport, a_number_that_has_most_of_the_squares_is_named_below_a_bad_fit) {
  // Ten errors of which one is 9 and the others 3.1: less than half of the squares; beside 2.9 more.
  const auto with = [](double rms, double spread) {
    return FitReport{
        .rows =
            {{"training", "x", "", {.rms = rms, .largest = 9, .spread = spread, .numbers = 10}, "trajectory b, t = 2"}},
        .worst = {}};
  };
  EXPECT_EQ(fit_notes(with(std::sqrt((81 + 9 * 3.1 * 3.1) / 10), 1)).size(), 1u);
  const std::vector<std::string> notes = fit_notes(with(std::sqrt((81 + 9 * 2.9 * 2.9) / 10), 1));
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[1],
            "one number has most of the sum of squares: x at trajectory b, t = 2 has 52 % of the squares of x; to take "
            "its weight away leave it out (an empty field, NaN), or give it a larger sigma");
  FitReport bounded = with(std::sqrt((81 + 9 * 2.9 * 2.9) / 10), 1);
  bounded.bounded_loss = "huber";
  EXPECT_EQ(fit_notes(bounded)[1], notes[1] + "; loss = \"huber\" bounds it");
  EXPECT_THAT(fit_notes(with(3, 100)), testing::IsEmpty());  // of a good fit nothing is said
}

TEST(FitReport, a_bad_fit_from_measured_first_points_has_a_remedy) {
  FitReport report{.rows = {row("training", "x", 1, 10)}, .worst = {}};
  report.exact_starts = true;
  EXPECT_THAT(fit_notes(report), testing::IsEmpty());
  report.beyond_sigma = {"x 12 sigma"};
  EXPECT_THAT(fit_notes(report),
              ElementsAre("the model does not describe the data within the stated sigma: RMS of x 12 sigma",
                          "first points taken to be exact: phases = \"noisy\" trains them"));
}

TEST(FitReport, of_many_outputs_the_worst_are_shown) {
  FitReport report;
  for (int i = 0; i < 40; ++i) report.rows.push_back(row("training", "y" + std::to_string(i), i % 20, 100));
  const std::vector<std::string> lines = table_lines(report);
  EXPECT_THAT(lines, SizeIs(14));
  EXPECT_THAT(lines.back(), HasSubstr("the largest 12 of 40"));
  for (const std::string& line : lines) EXPECT_THAT(line, testing::Not(HasSubstr("y0 ")));
  EXPECT_THAT(lines[12], HasSubstr("y39"));
}

}  // namespace
}  // namespace lockstep::cli
