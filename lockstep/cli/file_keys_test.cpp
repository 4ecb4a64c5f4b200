// Keys in the wrong table and other programs' words: what the message tells to write.
#include "lockstep/cli/file_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/testing/message_of.h"

namespace lockstep::cli {
namespace {

using ::testing::HasSubstr;

std::string message(FileKind kind, const std::string& text) {
  return message_of([&] { refuse_misplaced_keys(parse_toml(text, "file.toml"), kind); });
}

std::string problem(const std::string& text) { return message(FileKind::problem, text); }
std::string training(const std::string& text) { return message(FileKind::training, text); }

TEST(FileKeys, a_key_in_the_wrong_table_is_told_its_own) {
  EXPECT_EQ(problem("[run]\nprecision = \"f64\"\n"),
            "file.toml:2: run.precision: found an unknown key, expected one of device, engine, threads, cpu_target; "
            "precision belongs to [method]");
  EXPECT_THAT(problem("trajectories = 3\n"), HasSubstr("output; trajectories belongs to [ensemble]"));
  EXPECT_THAT(problem("[method]\ncomponents = []\n"), HasSubstr("components belongs to [rhs] or [output]"));
  EXPECT_THAT(training("[data]\nrate = 1\n"), HasSubstr("rate belongs to [training]"));
  EXPECT_THAT(training("[[phase]]\nrate = 1\n[[phase]]\nhidden = [1]\n"),
              HasSubstr("file.toml:4: phase[1].hidden: found an unknown key"));
  EXPECT_THAT(training("[net.a]\ntime = \"t\"\n"), HasSubstr("net.a.time: found an unknown key"));
  EXPECT_THAT(problem("[run]\nprecison = \"f64\"\n"), HasSubstr("did you mean \"precision\" of [method]?"));
}

TEST(FileKeys, a_sections_name_in_the_plural_is_that_section) {
  EXPECT_THAT(problem("[times]\nspan = [0, 1]\n"), HasSubstr("write [time]"));
  EXPECT_THAT(problem("[events]\nvalue = 1\n"), HasSubstr("write [event]"));
  EXPECT_THAT(problem("events = true\n"), HasSubstr("events belongs to [output]"));
}

// All pairs: the message names the table, unless the key is a word for one of this table's, or one in the plural.
TEST(FileKeys, every_key_of_a_problem_file_finds_its_table_from_every_other) {
  using namespace problem_keys;
  const std::vector<std::pair<std::string, Names>> tables{
      {"rhs", kRhs},       {"ensemble", kEnsemble},     {"time", kTime},   {"method", kMethodKeys}, {"event", kEvent},
      {"resets", kResets}, {"impulses", kImpulsesKeys}, {"run", kRunKeys}, {"output", kOutput}};
  std::set<std::string> others;
  int told = 0;
  for (const auto& [home, keys] : tables) {
    for (const std::string_view key : keys) {
      for (const auto& [table, own] : tables) {
        if (std::ranges::find(own, key) != own.end()) continue;
        const std::string said = problem("[" + table + "]\n" + std::string(key) + " = 1\n");
        if (said.find(std::string(key) + " belongs to ") != said.npos && said.find("[" + home + "]") != said.npos) {
          ++told;
        } else {
          others.insert(table + "." + std::string(key));
        }
      }
    }
  }
  EXPECT_GT(told, 200);
  EXPECT_THAT(others, ::testing::UnorderedElementsAre(
                          "rhs.name", "rhs.file", "output.name", "time.every", "rhs.unit", "time.units",
                          "rhs.component", "output.component", "event.components", "impulses.components",
                          "impulses.value", "impulses.to", "resets.components", "resets.change", "time.times"));
}

TEST(FileKeys, what_is_known_is_passed) {
  EXPECT_EQ(problem("[rhs]\nsystem = \"lorenz\"\n[time]\nspan = [0, 1]\n[method]\nrtoll = 1\n[methods]\n"), "no error");
  EXPECT_EQ(training("[training]\nrate = 1\nloss = \"\"\n[[phase]]\nrate = 1\n[net.a]\nhidden = []\n"), "no error");
}

TEST(FileKeys, other_programs_words_are_told_ours) {
  for (const auto& [text, advice] : std::vector<std::pair<std::string, std::string>>{
           {"tspan = [0, 1]\n", "; write span = [0, 1] in [time]"},
           {"[time]\nt_end = 1\n", "; write span = [0, 1]"},
           {"[time]\nevery = 1\n", "; write save = { every = 0.01 }"},
           {"[ensemble]\nu0 = [1]\n", "; write initial_state = [1, 0, 0]"},
           {"[initial]\nx = 1\n", "; write [ensemble]"},
           {"[solver]\nname = \"rk4\"\n", "; write [method]"},
           {"solver = \"rk4\"\n", "; write name = \"tsit5\" in [method]"},
           {"[method]\nsolver = \"rk4\"\n", "; write name = \"tsit5\""},
           {"[method]\nreltol = 1\n", "; write rtol = 1e-6"},
           {"[method]\nmax_step_size = 1\n", "; write max_step = 0.1"},
           {"method = \"rk4\"\n", "found \"rk4\", expected a table: [method]; write name = \"rk4\" in [method]"},
           {"[method]\ntolerance = 1\n", "; write rtol = 1e-6"},
           {"dt = 1\n", "; dt belongs to [method]"},
           {"[rhs]\nname = \"lorenz\"\n", "; write system = \"lorenz\""},
           {"[output]\nname = \"x.h5\"\n", "; write file = \"result\""},
           {"[tspan]\nstart = 0\n", "; write span = [0, 1] in [time]"},
           {"[u0]\nx = 1\n", "; write initial_state = [1, 0, 0] in [ensemble]"},
           {"[rtol]\nx = 1\n", "; rtol belongs to [method]"},
           {"[ensemble.time]\nspan = [0, 1]\n", "; write [time]"},
           {"precison = \"f64\"\n", "; did you mean \"precision\" of [method]?"},
           {"[output]\nsaveat = 3\n", "; write save = 101 in [time]"},
           {"[[doses]]\namount = 3\n", "; write [[impulses]]"},
           {"[[impulses]]\namount = 3\n", "; write change = 100"},
           {"[[impulses]]\ntime = 3\n", "; write times = [0, 24]"},
           {"[[impulses]]\nperiod = 3\n", "; write every = 24"},
           {"[[callbacks]]\naffect = \"v\"\n", "; write [[resets]]"},
           {"[reset]\nx = 0\n", "; write [[resets]]"},
           {"[[resets]]\naffect = \"v = -v\"\n", "; write to = { v = \"-0.9 * v\" }"},
           {"[[resets]]\nset = {}\n", "; write to = { v = \"-0.9 * v\" }"},
           {"[[resets]]\ncondition = \"x\"\n", "; write function = \"x - 1\""},
           {"[[resets]]\nthreshold = 1\n", "; write value = 0"},
           {"to = { x = 0 }\n", "; to belongs to [[resets]]"}}) {
    EXPECT_THAT(problem(text), ::testing::EndsWith(advice)) << text;
  }
  for (const auto& [text, advice] : std::vector<std::pair<std::string, std::string>>{
           {"[training]\nlearning_rate = 1\n", "; write rate = 0.01"},
           {"[[phase]]\nlr = 1\n", "; write rate = 0.01"},
           {"[training]\nepochs = 1\n", "; write iterations = 1000"},
           {"[net]\nlayers = [1]\n", "; write hidden = [100]"},
           {"[output]\nmodel = \"a.h5\"\n", "; write file = \"net\""},
           {"[epochs]\nn = 1\n", "; write iterations = 1000 in [training]"},
           {"[data]\nlabels = []\n", "; write targets = [\"y\"]"},
           {"[training]\nsolver = \"rk4\"\n", "; write name = \"tsit5\" in [method]"}}) {
    EXPECT_THAT(training(text), ::testing::EndsWith(advice)) << text;
  }
}

}  // namespace
}  // namespace lockstep::cli
