// What a training prints and stores of its parameters' errors.
#include "lockstep/cli/parameter_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/cli/derivative_notes.h"
#include "lockstep/cli/trained_values.h"

namespace lockstep::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ParameterReport two() {
  ParameterReport report;
  report.names = {"a", "rate"};
  report.found.values = {0.48119903, -1234.5};
  report.found.standard_errors = {0.0350879, 67.4};
  report.found.lower = {0.41003, -1371.2};
  report.found.upper = {0.55236, -1097.8};
  report.found.correlations = {1, -0.963341986, -0.963341986, 1};
  report.found.deviation = 4.9312;
  report.found.numbers = 42;
  report.found.unknowns = 4;
  return report;
}

TEST(ParameterReport, rounds_each_number_to_the_second_digit_of_its_error) {
  EXPECT_THAT(table_lines(two()),
              ElementsAre("parameter        estimate   95 % interval  correlation with a",
                          "a          0.481 +- 0.035  0.410 to 0.552",
                          "rate          -1234 +- 67  -1371 to -1098               -0.96",
                          "errors by Gauss-Newton from 42 numbers, deviation 4.93, 4 unknowns, starts among them"));
}

TEST(ParameterReport, says_what_its_figures_hold_for) {
  ParameterReport report = two();
  report.starts = StartsOf::data;
  report.found.nets = ode::ParameterUncertainty::Nets::as_trained;
  report.found.distance = 2.345;
  EXPECT_THAT(
      note_lines(report),
      ElementsAre("errors by Gauss-Newton from 42 numbers, deviation 4.93, 4 unknowns; first points taken to be "
                  "exact: phases = \"noisy\" trains them",
                  "errors and intervals are given the nets as they were trained, and not ones of the truth: what a net "
                  "can take over from a parameter is not in them",
                  "not at the least sum of squares of whole trajectories: that lies about 2.3 standard errors "
                  "away"));
}

TEST(ParameterReport, of_hubers_loss_says_how_many_numbers_are_beyond_its_threshold) {
  ParameterReport report = two();
  report.huber_threshold = 1.345;
  report.found.beyond = 5;
  report.found.distance = 2.345;
  EXPECT_THAT(note_lines(report),
              ElementsAre("errors by Gauss-Newton and Huber's formula from 42 numbers, 5 of them beyond the threshold, "
                          "deviation 4.93, 4 unknowns, starts among them",
                          "not at the least loss of whole trajectories: that lies about 2.3 standard errors away"));
  // No chi-square: of normal errors alone it would tell something.
  report.stated_errors = true;
  report.found.distance = 0;
  report.found.deviation = 1.9;
  EXPECT_THAT(
      note_lines(report),
      ElementsAre("errors by Gauss-Newton and Huber's formula from 42 numbers and their sigma, 5 of them beyond "
                  "the threshold, deviation 1.9, 4 unknowns, starts among them"));
  report.found.deviation = 4.93;
  EXPECT_THAT(note_lines(report, Notes::harms),
              ElementsAre(HasSubstr("the fit misses the data by 4.93 times what sigma says")));
}

TEST(ParameterReport, says_so_where_a_fit_misses_the_data_by_far_more_than_a_stated_sigma) {
  ParameterReport report = two();  // by 4.93
  EXPECT_THAT(note_lines(report, Notes::harms), IsEmpty());
  report.implied_errors = true;
  EXPECT_THAT(note_lines(report, Notes::harms),
              ElementsAre("the fit misses the data by 4.93 times what sigma says: the model does not describe them "
                          "within the stated sigma, and errors and intervals assume that it does; where sigma tells "
                          "ratios alone, say so: absolute_sigma = false"));
  report.starts = StartsOf::data;
  EXPECT_THAT(note_lines(report, Notes::harms), ElementsAre(HasSubstr("; first points taken to be exact: phases =")));
  report.found.deviation = 2.9;  // sigma is a guess by many who give it without absolute_sigma
  EXPECT_THAT(note_lines(report, Notes::harms), IsEmpty());
  report.implied_errors = false;
  report.stated_errors = true;
  EXPECT_THAT(note_lines(report, Notes::harms),
              ElementsAre("the fit misses the data by 2.9 times what sigma says: the model lacks something, or sigma "
                          "is too small; absolute_sigma = false takes the size of the errors from the fit; first "
                          "points taken to be exact: phases = \"noisy\" trains them"));
  report.starts = StartsOf::fit;
  report.found.deviation = 4.9312;
  EXPECT_THAT(note_lines(report, Notes::harms),
              ElementsAre(HasSubstr("within the stated sigma, and errors and intervals assume that it does: it lacks "
                                    "something, or sigma is too small")));
}

TEST(ParameterReport, says_what_is_not_determined_and_prints_no_errors) {
  ParameterReport report = two();
  report.found.undetermined = {{0.48119903, 1234.5}};
  report.found.standard_errors.assign(2, std::nan(""));
  report.found.lower = report.found.upper = report.found.standard_errors;
  report.found.correlations.assign(4, std::nan(""));
  EXPECT_THAT(table_lines(report),
              ElementsAre("the data do not determine the parameters: a 1 % up, rate 1 % up leaves the fit as it is"));
  EXPECT_EQ(to_csv(report),
            "name,value,standard_error,lower,upper,correlation_a,correlation_rate\n"
            "a,0.48119903,nan,nan,nan,nan,nan\nrate,-1234.5,nan,nan,nan,nan,nan\n");
}

TEST(ParameterReport, says_so_where_nets_stay_as_trained_and_what_they_leave_where_not) {
  ParameterReport report = two();
  report.found.nets = ode::ParameterUncertainty::Nets::as_trained;
  EXPECT_THAT(table_lines(report)[0], HasSubstr("estimate  95 % given the nets  correlation"));
  EXPECT_THAT(note_lines(report, Notes::harms), ElementsAre(HasSubstr("not ones of the truth")));
  report.found.nets = ode::ParameterUncertainty::Nets::let_go;
  report.found.left_by_nets = {0.1234, 0};
  report.found.undetermined = {{0, -1234.5}};
  report.found.correlations.assign(4, std::nan(""));
  report.found.standard_errors[1] = report.found.lower[1] = report.found.upper[1] = std::nan("");
  EXPECT_THAT(
      table_lines(report),
      ElementsAre(
          HasSubstr("95 % interval"), HasSubstr("0.481 +- 0.035  0.410 to 0.552"),
          ::testing::MatchesRegex("rate +-1234.5  not determined"),
          "beside nets that can make up for it, the data do not determine the parameters: rate 1 % down leaves "
          "the fit as it is",
          "errors by Gauss-Newton from 42 numbers, deviation 4.93, 4 unknowns, starts and weights of nets among "
          "them",
          "they allow for what the nets could do instead, which leaves of the parameters' effects 12 % of a, "
          "nothing of rate"));
  EXPECT_EQ(note_lines(report, Notes::harms).size(), 1u);
}

TEST(ParameterReport, of_a_fit_that_has_not_converged_says_that_first_and_gives_no_errors) {
  ParameterReport report = two();
  report.stated_errors = true;  // which chi-square contradicts
  report.found.distance = report.found.resolved_distance = 0.9;
  FitReport fit{.rows = {}, .worst = {}, .beyond_sigma = {"x 12 sigma"}};
  presuppose_minimum(report, fit);
  EXPECT_EQ(table_lines(report).size(), table_lines(two()).size() + 2);  // on the misfit, and on the distance
  EXPECT_EQ(fit.beyond_sigma.size(), 1u);
  // To the tolerance of the solves that is nothing.
  report.found.distance = 30;
  presuppose_minimum(report, fit);
  EXPECT_FALSE(report.unconverged);
  report.found.resolved_distance = 30;
  presuppose_minimum(report, fit);
  const auto says = ElementsAre(
      "the fit has not converged, and so has no errors or intervals: the least sum of squares of whole trajectories "
      "lies about 30 standard errors away; end with a phase of whole trajectories by lbfgs, in float64, give it more "
      "iterations or a larger history, or start nearer");
  EXPECT_THAT(table_lines(report), says);
  EXPECT_THAT(note_lines(report, Notes::harms), says);
  EXPECT_THAT(fit.beyond_sigma, IsEmpty());
  std::map<std::string, std::string> metadata;
  store(report, metadata);
  EXPECT_FALSE(metadata.contains(kParametersKey));
  EXPECT_THAT(metadata[kParametersNotesKey], HasSubstr("not converged"));
  report.jumps = {"a"};
  EXPECT_THAT(note_lines(report)[0], HasSubstr("not converged"));
  // Nets are seldom trained to the last.
  ParameterReport beside = two();
  beside.found.nets = ode::ParameterUncertainty::Nets::let_go;
  beside.found.left_by_nets = {1, 1};
  beside.found.resolved_distance = 1.9;
  presuppose_minimum(beside, fit);
  EXPECT_FALSE(beside.unconverged);
  beside.found.resolved_distance = 2.1;
  presuppose_minimum(beside, fit);
  EXPECT_TRUE(beside.unconverged);
}

TEST(ParameterReport, without_a_fit_there_are_no_errors) {
  const auto fit = [](double x, double v) {
    return FitReport{.rows = {{"training", "x", "", {.rms = x, .spread = 1, .numbers = 9}, ""},
                              {"training", "v", "", {.rms = v, .spread = 1, .numbers = 9}, ""}},
                     .worst = {}};
  };
  ParameterReport report = two();
  const std::vector<std::string> lines = note_lines(report);
  presuppose_fit(report, fit(0.1, 0.89));
  EXPECT_EQ(note_lines(report), lines);
  presuppose_fit(report, fit(0.1, 6.27));
  EXPECT_EQ(table_lines(report).size(), table_lines(two()).size() + 1);
  EXPECT_EQ(note_lines(report)[0],
            "the fit explains little of some data, or nothing (RMS of v 627 % of the spread): "
            "errors and intervals presuppose one that does");
  presuppose_fit(report, fit(1.42, 6.27));
  EXPECT_THAT(
      table_lines(report),
      ElementsAre("no standard errors: they and intervals presuppose a fit, and this one explains little of the "
                  "data, or nothing (RMS of x 142 %, v 627 % of the spread); start elsewhere, train for longer or "
                  "change the model"));
  ParameterReport exact = two();
  exact.starts = StartsOf::data_and_file;
  presuppose_fit(exact, fit(1.42, 6.27));
  EXPECT_THAT(note_lines(exact), ElementsAre(HasSubstr("; first points taken to be exact: phases = \"noisy\" trains")));
  std::map<std::string, std::string> metadata;
  store(report, metadata);
  EXPECT_FALSE(metadata.contains(kParametersKey));
}

TEST(ParameterReport, unstable_steps_come_with_what_to_do) {
  EXPECT_EQ(unstable_text({}),
            "the steps of these solves are unstable for derivatives; take the method rodas5p where "
            "rates differ much, else shorter steps, by a smaller rtol or a max_step");
  EXPECT_THAT(unstable_text({.method = "rodas5p"}), HasSubstr("take shorter steps"));
  EXPECT_THAT(unstable_text({.control = ode::StepControl::fixed}), HasSubstr("by a smaller dt"));
}

TEST(ParameterReport, is_stored_as_a_table_and_as_notes) {
  std::map<std::string, std::string> metadata;
  store(ParameterReport(), metadata);
  EXPECT_TRUE(metadata.empty());
  store(two(), metadata);
  EXPECT_EQ(metadata[kParametersKey],
            "name,value,standard_error,lower,upper,correlation_a,correlation_rate\n"
            "a,0.48119903,0.0350879,0.41003,0.55236,1,-0.963341986\n"
            "rate,-1234.5,67.4,-1371.2,-1097.8,-0.963341986,1\n");
  EXPECT_THAT(metadata[kParametersNotesKey], HasSubstr("42 numbers"));
  ParameterReport refused;
  refused.names = {"a"};
  refused.refused = "no derivative";
  EXPECT_THAT(table_lines(refused), ElementsAre("no standard errors: no derivative"));
}

TEST(ParameterReport, of_a_system_stands_over_the_beginning_of_a_problem_file) {
  const TrainingFile file = parse_training_file(R"toml(
[ode]
system = "lotka_volterra"
parameters = { alpha = { start = 0.5 }, gamma = { start = 1, positive = true }, delta = "1/4" }
[data]
file = "x.csv"
time = "t"
states = ["prey", "predator"]
[training]
phases = "recommended"
[output]
file = "fit"
)toml",
                                                "train.toml");
  ASSERT_EQ(file.ode->trained.size(), 2u);
  EXPECT_TRUE(file.nets.empty());
  ParameterReport report;
  EXPECT_THAT(trained_problem_text(file, {{"alpha", 0.5, 0.75}, {"gamma", 1, 0.875}}, report),
              EndsWith("\n[rhs]\nsystem = \"lotka_volterra\"\n\n[ensemble]\nparameters = [0.75, 1, 0.875, 0.25]\n"));
}

}  // namespace
}  // namespace lockstep::cli
