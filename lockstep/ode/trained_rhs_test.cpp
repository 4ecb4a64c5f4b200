// What of a right-hand side is trained: weights that calls share, nets that are kept, parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/ode/fit.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/gradient_cases.h"
#include "lockstep/ode/trained_parameters.h"

namespace lockstep::ode {
namespace {

using namespace testing;
using ::testing::HasSubstr;

TEST(TrainedRhs, has_the_weights_that_are_trained) {
  const Rhs rhs = trained_case().rhs;
  const std::vector<double> net = gather_parameters<double>(small_net(2, 1));
  std::vector<double> expected = net;
  expected.insert(expected.end(), {0, -0.75});  // 0.4 exp(0), 2 times -0.75
  EXPECT_EQ(rhs->weights(), expected);
  EXPECT_EQ(rhs->parameters(), 1u);
}

// A smooth function of x with the slope that it says, which begins at the start and ends at the bounds. Differences of
// 1e-6 err by 1e-12 of third derivatives, which are at most the range here, and by 1e-16 over 1e-6.
TEST(TrainedRhs, bounded_parameters_stay_between_their_bounds) {
  const TrainedParameter laws[] = {{.start = 0.3, .law = ParameterLaw::bounded, .min = 0.0, .max = 2.0},
                                   {.start = -4, .law = ParameterLaw::bounded, .min = -5.0, .max = -1.0},
                                   {.start = 3, .law = ParameterLaw::bounded, .min = 1.0},
                                   {.start = 3, .law = ParameterLaw::bounded, .max = 10.0}};
  for (const TrainedParameter& law : laws) {
    law.validate("p");
    EXPECT_EQ(law.first(), 0);
    EXPECT_NEAR(law.value(0.0), law.start, 1e-15 * 10);
    EXPECT_NEAR(law.value(0.0f), law.start, 1e-6 * 10);
    double before = law.value(-800.0);
    for (double x = -6; x <= 6; x += 0.5) {
      const double value = law.value(x), slope = law.slope(x);
      EXPECT_GT(value, before) << x;
      before = value;
      EXPECT_NEAR(slope, (law.value(x + 1e-6) - law.value(x - 1e-6)) / 2e-6, 1e-8 * (1 + std::fabs(value))) << x;
      if (law.min) {
        EXPECT_GT(value, *law.min);
      }
      if (law.max) {
        EXPECT_LT(value, *law.max);
      }
    }
    if (law.min) {
      EXPECT_EQ(law.value(-800.0), *law.min);
    }
    if (law.max) {
      EXPECT_EQ(law.value(800.0), *law.max);
    }
    if (law.min && law.max) {
      EXPECT_EQ(law.slope(800.0), 0);
    }
  }
}

// Wherever x goes, which in float32 could not tell a start from the bound beside it.
TEST(TrainedRhs, bounded_parameters_keep_their_digits_beside_a_bound) {
  const TrainedParameter low{.start = 1e-9, .law = ParameterLaw::bounded, .min = 0.0, .max = 1.0};
  const TrainedParameter high{.start = -1e-9, .law = ParameterLaw::bounded, .min = -1.0, .max = 0.0};
  for (const double x : {-3.0, -0.1, 0.0, 0.1, 3.0}) {
    const double odds = 1e-9 / (1 - 1e-9) * std::exp(x), expected = odds / (1 + odds);
    EXPECT_NEAR(low.value(x) / expected, 1, 4e-15) << x;
    EXPECT_NEAR(low.value(static_cast<float>(x)) / expected, 1, 1e-6) << x;
    EXPECT_NEAR(high.value(-x) / -expected, 1, 4e-15) << x;
    EXPECT_NEAR(high.value(static_cast<float>(-x)) / -expected, 1, 1e-6) << x;
  }
}

TEST(TrainedRhs, bounds_that_cannot_hold_are_refused_by_name) {
  const auto message = [](std::optional<double> min, std::optional<double> max, double start,
                          ParameterLaw law = ParameterLaw::bounded, std::optional<double> scale = {}) {
    return message_of(
        [&] { TrainedParameter{.start = start, .law = law, .scale = scale, .min = min, .max = max}.validate("p"); });
  };
  EXPECT_THAT(message(0, 2, 2.5), HasSubstr("p.start: found 2.5, expected a number between min and max, 0 and 2; a"));
  EXPECT_THAT(message(0, 2, 0), HasSubstr("p.start: found 0, expected a number between"));
  EXPECT_THAT(message(1, {}, 0.5), HasSubstr("p.start: found 0.5, expected a number above min, 1"));
  EXPECT_THAT(message({}, 1, 1), HasSubstr("p.start: found 1, expected a number below max, 1"));
  EXPECT_THAT(message(2, 2, 2), HasSubstr("p.min: found 2, expected less than max, 2"));
  EXPECT_THAT(message(3, 2, 2.5), HasSubstr("p.min: found 3, expected less than max, 2"));
  EXPECT_THAT(message({}, {}, 1), HasSubstr("a bounded law without bounds"));
  EXPECT_THAT(message(0, NAN, 1), HasSubstr("p.max"));
  EXPECT_THAT(message(0, {}, 1, ParameterLaw::linear), HasSubstr("p.min: found 0, expected none beside another law"));
  EXPECT_THAT(message(0, {}, 1, ParameterLaw::bounded, 2.0), HasSubstr("p.scale"));
}

// Magnitudes are summed as in gradient_test.cpp: 1e-12 of them is 4,500 roundings.
TEST(TrainedRhs, gradients_agree_with_dual_numbers_for_every_method_and_control) {
  const Case c = trained_case();
  for (const Mode& mode : all_modes()) {
    const Problem problem = ensemble(c, 2);
    const Gradients gradients = solve_with_gradients(
        problem, f64(mode.method, mode.control), TrajectoryLoss(linear_loss), {.keep = GradientOptions::Keep::steps});
    ASSERT_EQ(gradients.left_out, 0u);
    const Direction direction(problem, 3);
    const auto loss = plain_loss<Dual<double>>(c, problem, mode.method, gradients, direction,
                                               [](double x, double d) { return Dual<double>(x, d); });
    double magnitude = 0;
    const double along = direction.along(gradients, magnitude);
    EXPECT_NEAR(along, loss.slope, 1e-12 * magnitude) << mode.method << static_cast<int>(mode.control);
  }
}

// Fixed steps, so that the loss is smooth: differences of 1e-5 leave 1e-10 times third derivatives, and 1e-16 of a
// loss of some ten over 1e-5.
TEST(TrainedRhs, gradients_are_those_of_differences_of_the_loss) {
  const Case c = trained_case();
  const Problem problem = ensemble(c, 2);
  for (const char* const method : {"tsit5", "rodas5p"}) {
    GradientSolver solver(problem, f64(method, StepControl::fixed), TrajectoryLoss(linear_loss));
    std::vector<double> weights = c.rhs->weights();
    const std::vector<double> gradient = solver.evaluate(weights).weights;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double at = weights[i], step = 1e-5;
      weights[i] = at + step;
      const double above = solver.evaluate(weights).loss;
      weights[i] = at - step;
      const double below = solver.evaluate(weights).loss;
      weights[i] = at;
      EXPECT_NEAR(gradient[i], (above - below) / (2 * step), 1e-8) << method << i;
    }
  }
}

TEST(TrainedRhs, gradients_have_the_same_bits_for_any_threads_memory_and_instruction_set) {
  const Problem problem = ensemble(trained_case(), 67);
  for (const auto& [precision, method] : {std::pair{Precision::f32, "tsit5"},
                                          {Precision::f64, "tsit5"},
                                          {Precision::f32, "rodas5p"},
                                          {Precision::f64, "rodas5p"}}) {
    const auto gradients = [&, precision = precision, method = method](int threads, std::size_t memory,
                                                                       std::optional<CpuTarget> target) {
      Options options = f64(method, StepControl::per_trajectory);
      options.precision = precision;
      options.threads = threads;
      options.cpu_target = target;
      return solve_with_gradients(problem, options, TrajectoryLoss(linear_loss), {.memory_bytes = memory});
    };
    const Gradients expected = gradients(1, std::size_t{1} << 30, {});
    for (const auto& [threads, memory] :
         {std::pair{2, std::size_t{1} << 30}, {5, std::size_t{1} << 30}, {1, std::size_t{1}}}) {
      const Gradients found = gradients(threads, memory, {});
      EXPECT_EQ(found.weights, expected.weights) << threads << " threads, " << memory;
      EXPECT_EQ(found.parameters, expected.parameters);
      EXPECT_EQ(found.loss, expected.loss);
    }
    for (const CpuTarget target : available_cpu_targets())
      EXPECT_EQ(gradients(1, std::size_t{1} << 30, target).weights, expected.weights);
  }
}

TEST(TrainedRhs, solves_have_the_bits_of_parameters_that_are_given) {
  const double rho = 27.3, beta = 8.0 / 3;
  Problem given{.rhs = system("lorenz"), .initial_states = {1, 0.5, 2, 3, 1, 2}, .parameters = {10, rho, beta}};
  given.end_times = {1};
  Problem trained = given;
  trained.rhs = train_parameters(system("lorenz"), {{.parameter = 1, .start = rho},
                                                    {.parameter = 2, .start = beta, .law = ParameterLaw::positive}});
  trained.parameters = {10};
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    const Options options{.precision = precision};
    const Solution expected = solve(given, options), found = solve(trained, options);
    for (std::size_t i = 0; i < 2; ++i) {
      for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(found.end_state(i, c), expected.end_state(i, c));
    }
  }
}

TEST(TrainedRhs, a_fit_finds_the_parameters_of_lorenz) {
  Problem problem{
      .rhs = system("lorenz"), .initial_states = {1, 0, 0}, .parameters = {10, 28, 8.0 / 3}, .end_times = {1}};
  for (int i = 0; i <= 10; ++i) problem.save_times.push_back(0.1 * i);
  const Options exact{.method = "dop853", .rtol = 1e-8, .atol = 1e-8, .precision = Precision::f64, .threads = 1};
  const Solution solution = solve(problem, exact);
  TrajectoryData data{.times = problem.save_times, .parameters = {10}};
  data.states.assign(solution.states<double>().begin(), solution.states<double>().end());
  const std::vector<TrainedParameter> parameters{{.parameter = 1, .start = 20},
                                                 {.parameter = 2, .start = 1, .law = ParameterLaw::positive}};
  FitOptions options{.solve = exact};
  options.phases[0].training.rule = train::LbfgsOptions{};
  options.phases[0].training.iterations = 25;
  const FitResult result = fit(train_parameters(system("lorenz"), parameters), data, options);
  ASSERT_EQ(result.weights.size(), 2u);
  // Data and fit take nearly the same steps, to 1e-8 of states up to 40, which vary with rho by more than themselves.
  EXPECT_NEAR(parameters[0].value(result.weights[0]), 28, 1e-6);
  EXPECT_NEAR(parameters[1].value(result.weights[1]), 8.0 / 3, 1e-6);
}

TEST(TrainedRhs, says_what_cannot_be_trained) {
  const auto message = [](std::vector<TrainedParameter> parameters) {
    return message_of([&] { train_parameters(system("lorenz"), std::move(parameters)); });
  };
  EXPECT_THAT(message({{.parameter = 3}}), HasSubstr("parameters[0].parameter: found 3, expected one of the 3 that"));
  EXPECT_THAT(message({{.parameter = 1}, {.parameter = 1}}), HasSubstr("parameters[1].parameter: found 1 again"));
  EXPECT_THAT(message({{.parameter = 0, .start = -1, .law = ParameterLaw::positive}}),
              HasSubstr("parameters[0].start: found -1"));
  EXPECT_THAT(message({{.parameter = 0, .start = 1, .scale = 0}}), HasSubstr("parameters[0].scale: found 0"));
  const graph::Graph two{{{"u", 0, 1}},
                         {{"a", graph::Dense{1, 1, {2}, {0}}, {0}}, {"b", graph::Dense{1, 1, {3}, {0}}, {1}}},
                         {{"du", 2, 1}}};
  const auto place = [&](graph::WeightPlaces places) {
    return message_of([&] { net(two, {.weight_places = std::move(places)}); });
  };
  EXPECT_THAT(place({0}), HasSubstr("weight_places: found 1 places, expected 2"));
  EXPECT_THAT(place({0, 1}), HasSubstr("found a place at 1 after 2 numbers"));
  EXPECT_THAT(place({0, 0}), HasSubstr("found other numbers in b"));
  EXPECT_EQ(place({graph::kKept, graph::kKept}), "no error");
  EXPECT_EQ(net(two, {.weight_places = {2, 0}})->weights(), (std::vector<double>{3, 0, 2, 0}));
}

}  // namespace
}  // namespace lockstep::ode
