#include "lockstep/train/optimiser.h"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/core/testing/message_of.h"

namespace lockstep::train {
namespace {

using testing::HasSubstr;

constexpr std::array kAllRules{Rule::sgd, Rule::nesterov, Rule::adam, Rule::adamw, Rule::adamax, Rule::radam};

// The loss of optimiser_steps.py.
constexpr std::array<double, 3> kWeights{1, 4, 0.25};
constexpr std::array<double, 3> kCentre{1, -2, 0.5};

std::vector<double> gradient(const std::vector<double>& x) {
  std::vector<double> g(3);
  for (std::size_t i = 0; i < 3; ++i) g[i] = kWeights[i] * (x[i] - kCentre[i]);
  return g;
}

OptimiserOptions options_of(const std::string& recorded) {
  OptimiserOptions options;
  options.rule = parse_rule("rule", recorded == "adam_decay" ? "adam" : recorded);
  if (recorded == "adam_decay" || recorded == "adamw") options.weight_decay = 0.3;
  return options;
}

TEST(Optimiser, every_rule_takes_the_steps_that_optax_takes) {
  std::ifstream file(LOCKSTEP_TEST_DATA "/optimiser_steps.csv");
  std::string line;
  std::getline(file, line);
  std::map<std::string, std::pair<Optimiser<double>, std::vector<double>>> runs;
  int rows = 0;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string rule, text;
    std::getline(fields, rule, ',');
    std::getline(fields, text, ',');
    auto [run, fresh] = runs.try_emplace(rule, Optimiser<double>(options_of(rule), 3), std::vector<double>(3));
    auto& [optimiser, x] = run->second;
    optimiser.step(x, gradient(x), 0.1);
    for (std::size_t i = 0; i < 3; ++i) {
      std::getline(fields, text, ',');
      // Both round some 15 operations a step, and the quadratic does not amplify: 10 steps of 15 units of 2^-53 on
      // numbers up to 3 are 5e-14. 1 - beta2^t is known to 2^-53 / 0.001 = 1.1e-13 relative at the first step, which
      // moves a step of 0.1 by half of that.
      EXPECT_NEAR(x[i], std::stod(text), 2e-13) << rule << " " << line;
    }
    ++rows;
  }
  EXPECT_EQ(rows, 70);
}

TEST(Optimiser, every_rule_finds_the_minimum_of_a_quadratic) {
  for (const Rule rule : kAllRules) {
    Optimiser<double> optimiser({.rule = rule}, 3);
    std::vector<double> x(3);
    // Rates fall to nothing, so that adaptive steps, which have the size of the rate, do as well.
    for (int i = 0; i < 2000; ++i) optimiser.step(x, gradient(x), 0.1 * (1 - i / 2000.0));
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(x[i], kCentre[i], 1e-3) << to_string(rule);
  }
}

// Ten steps of every rule on gradients of many sizes, zeros among them; their bits.
template <class T>
std::vector<T> wander(const OptimiserOptions& options, std::size_t n) {
  Optimiser<T> optimiser(options, n);
  std::vector<T> x(n), g(n);
  const Random random(3);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<T>(random.normal(i, 0));
  for (std::uint32_t step = 1; step <= 10; ++step) {
    for (std::size_t i = 0; i < n; ++i) {
      const double size = i % 7 == 0 ? 0 : std::ldexp(1.0, static_cast<int>(i % 40) - 30);
      g[i] = static_cast<T>(size * random.normal(i, step));
    }
    optimiser.step(x, g, 0.01);
  }
  return x;
}

template <class T>
void expect_same_bits_on_every_target() {
  for (const Rule rule : kAllRules) {
    for (const std::size_t n : {0, 1, 3, 4, 15, 16, 17, 33, 703}) {
      const OptimiserOptions scalar{.rule = rule, .weight_decay = 0.01, .cpu_target = CpuTarget::scalar};
      const std::vector<T> expected = wander<T>(scalar, n);
      for (const CpuTarget target : available_cpu_targets()) {
        OptimiserOptions options = scalar;
        options.cpu_target = target;
        EXPECT_EQ(wander<T>(options, n), expected) << to_string(rule) << " " << to_string(target) << " " << n;
      }
      for (const T value : expected) EXPECT_TRUE(std::isfinite(value));
    }
  }
}

TEST(Optimiser, float32_steps_have_the_same_bits_on_every_target) { expect_same_bits_on_every_target<float>(); }
TEST(Optimiser, float64_steps_have_the_same_bits_on_every_target) { expect_same_bits_on_every_target<double>(); }

TEST(Optimiser, a_parameter_does_not_depend_on_its_neighbours) {
  const std::vector<float> alone = wander<float>({}, 5), among = wander<float>({}, 700);
  EXPECT_EQ(alone, std::vector<float>(among.begin(), among.begin() + 5));
}

TEST(Optimiser, a_restored_state_continues_with_the_same_bits) {
  for (const Rule rule : kAllRules) {
    Optimiser<double> a({.rule = rule}, 3), b({.rule = rule}, 3);
    std::vector<double> x(3);
    for (int i = 0; i < 5; ++i) a.step(x, gradient(x), 0.1);
    b.restore(a.state());
    std::vector<double> y = x;
    for (int i = 0; i < 5; ++i) {
      a.step(x, gradient(x), 0.1);
      b.step(y, gradient(y), 0.1);
    }
    EXPECT_EQ(x, y) << to_string(rule);
  }
}

TEST(Optimiser, a_state_of_another_size_is_refused) {
  Optimiser<float> adam({}, 3), sgd({.rule = Rule::sgd}, 3);
  try {
    adam.restore(sgd.state());
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("second: found 0 numbers, expected 3"));
  }
}

TEST(Optimiser, options_and_sizes_that_cannot_be_are_refused_by_name) {
  const auto message = [](const OptimiserOptions& options) -> std::string {
    return message_of([&] { Optimiser<float> optimiser(options, 1); });
  };
  EXPECT_THAT(message({.beta2 = 1}), HasSubstr("optimiser.beta2: found 1"));
  EXPECT_THAT(message({.momentum = -0.1}), HasSubstr("optimiser.momentum"));
  EXPECT_THAT(message({.epsilon = 0}), HasSubstr("optimiser.epsilon"));
  EXPECT_THAT(message({.weight_decay = NAN}), HasSubstr("optimiser.weight_decay: found nan"));
  Optimiser<float> optimiser({}, 2);
  std::vector<float> x(2), g(3);
  EXPECT_THROW(optimiser.step(x, g, 0.1), Error);
  EXPECT_THROW(optimiser.step(x, x, -0.1), Error);
}

TEST(Optimiser, an_unknown_rule_is_told_the_nearest) {
  try {
    parse_rule("training.optimiser", "adamww");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean \"adamw\""));
  }
}

}  // namespace
}  // namespace lockstep::train
