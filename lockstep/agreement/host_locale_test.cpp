// A host program may have set a locale that writes 0,5 for 0.5 (desktop toolkits do): what is written for compilers,
// browsers and files stays the same, and numbers in files are read as they were written.
#include <gmock/gmock.h>

#include <clocale>
#include <cstdio>
#include <filesystem>

#include "lockstep/agreement/report.h"
#include "lockstep/agreement/testing/ensembles.h"
#include "lockstep/core/testing/german_numbers.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/core/text.h"
#include "lockstep/kernels/mlp/plan.h"
#include "lockstep/nn/equations.h"
#include "lockstep/nn/export.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/onnx.h"
#include "lockstep/ode/detail/graph_source.h"
#include "lockstep/ode/solve.h"

namespace lockstep::agreement {
namespace {

using ::testing::ContainsRegex;
using ::testing::Not;

// Everything below that holds a number as text.
std::vector<std::string> texts() {
  nn::Equations system;
  system.equations = {{"x", "v"}, {"v", "-g * min(x, 0.75) - 0.5 * v"}};
  system.parameters = {{"g", 9.81}};
  const nn::Model model = nn::equations(system);
  const auto source = ode::detail::graph_source(
      nn::to_graph(model), {{ode::detail::GraphSource::state, 0, 2}, {ode::detail::GraphSource::parameters, 0, 1}});

  const ode::Problem problem = testing::lotka_volterra(30, 2);
  const HeldEnsemble ours = testing::solved(problem, testing::adaptive(Precision::f64, 1.5e-7));
  const HeldEnsemble theirs = testing::solved(problem, testing::adaptive(Precision::f32, 1.5e-7));
  const Verdict verdict = judge(ours, theirs);

  std::vector<std::string> all{
      source.value_or("no source"),
      nn::export_header(model).text,
      verdict.sentence,
      verdict_json(ours, theirs, verdict),
      report_page(ours, theirs, verdict),
      number_text(verdict.evidence.value().spread.another_step)};  // from the file's tolerances
  for (const auto& [name, value] : model.metadata) all.push_back(name + " = " + value);
  Mlp large;
  large.layers.push_back({.inputs = 1, .outputs = 1, .weights = {1.5e300}, .bias = {0}, .activation = {}});
  all.push_back(message_of([&] { Plan<float>::compile(large); }));

  nn::Model ranged = model;
  ranged.inputs[0].features[0].minimum = -1.5;
  all.push_back(message_of([&] {
    const std::filesystem::path file = std::filesystem::path(::testing::TempDir()) / "lockstep_host_locale.onnx";
    nn::write_onnx(file, ranged, Existing::replace);
    const nn::Model read = nn::load(file);
    all.push_back(read.digest() + number_text(read.inputs[0].features[0].minimum));
  }));
  return all;
}

TEST(host_locale, changes_no_text_and_no_number) {
  const std::vector<std::string> expected = texts();
  if (!set_german_numbers(std::filesystem::path(::testing::TempDir()) / "lockstep_host_locale"))
    GTEST_SKIP() << "no locale writes a decimal comma here, and localedef makes none";
  char half[8];
  std::snprintf(half, sizeof half, "%.1f", 0.5);
  ASSERT_STREQ(half, "0,5");
  EXPECT_EQ(texts(), expected);
  const ode::Explanation explanation =
      ode::explain(testing::lotka_volterra(30, 2), testing::adaptive(Precision::f64, 1.5e-7));
  for (const std::string& reason : explanation.reasons) EXPECT_THAT(reason, Not(ContainsRegex("[0-9],[0-9]")));
  std::setlocale(LC_NUMERIC, "C");
}

}  // namespace
}  // namespace lockstep::agreement
