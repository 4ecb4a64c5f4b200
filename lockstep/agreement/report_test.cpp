// The page and the JSON: what they say, that the page needs nothing from outside, and that a browser shows it.
#include "lockstep/agreement/report.h"

#include <gmock/gmock.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "lockstep/agreement/testing/ensembles.h"
#include "lockstep/agreement/testing/foreign_solver.h"

namespace lockstep::agreement {
namespace {

using testing::ForeignLorenz;
using ::testing::HasSubstr;
using testing::kStep;
using testing::Mistakes;
using ::testing::Not;
using testing::Rounding;

constexpr std::size_t kTrajectories = 100;
constexpr double kEnd = 45;

const HeldEnsemble& ours() {
  static const HeldEnsemble ensemble = testing::solved(testing::lorenz(kTrajectories, kEnd), testing::fixed_rk4());
  return ensemble;
}

HeldEnsemble port(const Mistakes& mistakes) {
  const ode::Problem problem = testing::lorenz(kTrajectories, kEnd);
  Numbers numbers = testing::solve_rk4<double, Rounding::contracted, ForeignLorenz>(problem, kStep, mistakes);
  numbers.name = "port <of> ours & more";
  numbers.provenance = {{"engine", "a \"foreign\" one"}};
  return {problem, std::move(numbers)};
}

std::filesystem::path scratch() {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "lockstep_report_test";
  std::filesystem::create_directories(folder);
  return folder;
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  std::array<char, 4096> piece;
  while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), pipe)) text.append(piece.data(), count);
  ::pclose(pipe);
  return text;
}

TEST(report, says_the_verdict_first_and_shows_every_picture) {
  const HeldEnsemble other = port({});
  const Verdict verdict = judge(ours(), other);
  const std::string page = report_page(ours(), other, verdict);
  const auto place = [&](const char* text) {
    const std::size_t at = page.find(text);
    EXPECT_NE(at, std::string::npos) << text;
    return at;
  };
  EXPECT_LT(place("They agree</b>"), place("<ol>"));
  EXPECT_LT(place("<ol>"), place("Is the difference explained by rounding?"));
  place("The first trajectories that leave");
  place("When trajectories part");
  place("Distributions on the attractor");
  place("a &quot;foreign&quot; one");
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  EXPECT_THAT(page, Not(HasSubstr("<of>")));
}

TEST(report, needs_nothing_from_outside) {
  const HeldEnsemble other = port({.weight = 1e-3});
  const std::string page = report_page(ours(), other, judge(ours(), other));
  for (const char* reference : {"http:", "https:", "src=", "href=", "url(", "@import", "<script"}) {
    EXPECT_THAT(page, Not(HasSubstr(reference)));
  }
}

TEST(report, tells_why_there_is_no_verdict) {
  Numbers without;
  without.states = ours().states(0, kTrajectories);
  const HeldEnsemble bare(testing::lorenz(kTrajectories, kEnd), std::move(without));
  const HeldEnsemble other = port({});
  const std::string page = report_page(bare, other, judge(bare, other));
  EXPECT_THAT(page, HasSubstr("No verdict</b>"));
  EXPECT_THAT(page, HasSubstr("--certificate"));
}

TEST(report, opens_in_a_browser) {
  if (output_of("command -v chromium").empty()) GTEST_SKIP() << "chromium is not installed: the page was not opened";
  const HeldEnsemble other = port({.parameter = 1e-12});
  const Verdict verdict = judge(ours(), other);
  const std::filesystem::path page = write_report(scratch() / "report", ours(), other, verdict);
  const std::string profile = (scratch() / "profile").string();
  const std::string browser =
      "timeout 60 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage"
      " --user-data-dir='" +
      profile + "' ";
  const std::string document = output_of(browser + "--dump-dom 'file://" + page.string() + "' 2>/dev/null");
  EXPECT_THAT(document, HasSubstr("They do not agree</b>"));
  // Parsed as pictures, not as text: seven or more, each closed.
  std::size_t pictures = 0;
  for (std::size_t at = document.find("<svg "); at != std::string::npos; at = document.find("<svg ", at + 1))
    ++pictures;
  EXPECT_GE(pictures, 7u);
  EXPECT_THAT(document, HasSubstr("</body></html>"));
}

TEST(report, gives_the_numbers_as_json) {
  const HeldEnsemble other = port({.parameter = 1e-12});
  const auto value = nlohmann::json::parse(verdict_json(ours(), other, judge(ours(), other)));
  EXPECT_EQ(value["outcome"], "disagree");
  EXPECT_EQ(value["exit_code"], 1);
  EXPECT_GT(value["evidence"]["spread"]["largest_ratio"].get<double>(), 10);
  EXPECT_EQ(value["evidence"]["over_time"]["time"].size(), ours().save_points());
  EXPECT_EQ(value["differences"][0]["field"], "engine");

  const auto same = nlohmann::json::parse(verdict_json(ours(), ours(), judge(ours(), ours())));
  EXPECT_EQ(same["outcome"], "agree");
  EXPECT_TRUE(same["same_bits"].get<bool>());
}

}  // namespace
}  // namespace lockstep::agreement
