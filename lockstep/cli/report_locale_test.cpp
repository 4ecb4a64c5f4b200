// Python and C++ hosts print reports, too: a locale that writes 0,5 for 0.5 changes no text of them.
#include <gtest/gtest.h>

#include <clocale>
#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/cli/fit_report.h"
#include "lockstep/cli/parameter_report.h"
#include "lockstep/cli/plot/canvas.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/testing/german_numbers.h"

namespace lockstep::cli {
namespace {

std::vector<std::string> texts() {
  ParameterReport report;
  report.names = {"a", "rate"};
  report.found.values = {0.48119903, -1.2345e-12};
  report.found.standard_errors = {0.0350879, 6.74e-14};
  report.found.lower = {0.41003, -1.3712e-12};
  report.found.upper = {0.55236, -1.0978e-12};
  report.found.correlations = {1, -0.963341986, -0.963341986, 1};
  std::vector<std::string> all = table_lines(report);
  std::string numbers;
  append_number(numbers, 1.25e-7);
  all.insert(all.end(), {numbers, screen(1.5, 100), percent_text(0.01234), percent_text(1.5), size_text(12'120'000),
                         seconds_text(2.5e-8), seconds_text(0.0853), seconds_text(1.24), rate_text(0.314159)});
  return all;
}

TEST(Reports, are_the_same_in_every_locale) {
  const std::vector<std::string> expected = texts();
  if (!set_german_numbers(std::filesystem::path(::testing::TempDir()) / "lockstep_cli_locale"))
    GTEST_SKIP() << "no locale writes a decimal comma here, and localedef makes none";
  EXPECT_EQ(texts(), expected);
  std::setlocale(LC_NUMERIC, "C");
}

}  // namespace
}  // namespace lockstep::cli
