// Starts that are functions of parameters: their derivatives, what they do to errors, what is refused.
#include "lockstep/ode/given_starts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "lockstep/core/random.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/fit.h"
#include "lockstep/ode/parameter_uncertainty.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using Numbers = std::vector<double>;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kNoise = 0.02;
const Options kTight{.rtol = 1e-10, .atol = 1e-10, .precision = Precision::f64, .threads = 1};

// Prey x and predators y, y of them at first, x measured: x' = a x - x y, y' = x y - 3 y.
const Rhs kHunt = differentiable_function<2, 2>("hunt", [](auto, const auto& u, const auto& p, auto& du) {
  du[0] = p[0] * u[0] - u[0] * u[1];
  du[1] = u[0] * u[1] - 3.0 * u[1];
});
// Predators start at p[1] times themselves, so that derivatives differ from 1.
const Rhs kSquare = differentiable_function<2, 2>("starts", [](auto, const auto&, const auto& p, auto& du) {
  du[0] = 0.0 * p[0];
  du[1] = p[1] * p[1];
});
const Rhs kBoth = differentiable_function<2, 3>("both", [](auto, const auto&, const auto& p, auto& du) {
  du[0] = p[1];
  du[1] = p[2];
});
const std::vector<TrainedParameter> kTrained{{.parameter = 0, .start = 1.3, .law = ParameterLaw::positive},
                                             {.parameter = 1, .start = 1.2}};

GivenStarts squares() { return {train_parameters(kSquare, kTrained), {1}}; }

// Of a = 1.5 and y0 = 1, in which nothing is seen of y but its noisy start in the second trajectory.
TrajectoryData prey(std::size_t trajectories) {
  Problem problem{.rhs = kHunt, .parameters = {1.5, 1}};
  for (std::size_t i = 0; i < trajectories; ++i) {
    problem.initial_states.insert(problem.initial_states.end(), {1 + static_cast<double>(i), 1});
  }
  for (int i = 0; i <= 20; ++i) problem.save_times.push_back(0.2 * i);
  problem.end_times = {problem.save_times.back()};
  TrajectoryData data{.trajectories = trajectories, .times = problem.save_times};
  const Solution solution = solve(problem, kTight);
  for (std::size_t at = 0; at < trajectories * 42; ++at) {
    const bool is_start = at % 42 == 0, is_seen = at % 2 == 0 || at == 43;
    data.states.push_back(is_seen ? solution.states<double>()[at] + (is_start ? 0 : kNoise * Random(5).normal(at, 0))
                                  : kNone);
  }
  return data;
}

TEST(GivenStarts, are_what_the_function_says) {
  const Numbers weights{0.5, 2};  // 1.3 exp(0.5), and 1.2 * 2
  EXPECT_THAT(start_states(squares(), weights, prey(2)), ElementsAre(1, 2.4 * 2.4, 2, 2.4 * 2.4));
}

TEST(GivenStarts, the_gradient_is_that_of_differences) {
  FitPhase whole, free, batch, segments;
  free.continuity = 1;
  free.segment = 7;
  batch.batch = 2;
  segments.segment = 5;
  for (const FitPhase& phase : {whole, free, batch, segments}) {
    TrajectoryData data = prey(3);
    for (std::size_t at = 0; at < data.states.size() && phase.segment == 5; ++at) {
      if (at % 42 != 1 && std::isnan(data.states[at])) data.states[at] = 1;
    }
    data.sigma.assign(data.states.size(), 0.5);
    FitOptions options{.solve = kTight, .phases = {phase}};
    options.starts = squares();
    FitLoss<double> loss(train_parameters(kHunt, kTrained), data, options);
    Numbers at(loss.parameters()), gradient(at.size()), direction(at.size());
    for (std::size_t i = 0; i < at.size(); ++i) {
      at[i] = i == 1 ? 1.1 : 0.05 * Random(3).normal(i, 0);
      direction[i] = Random(3).normal(i, 1);
    }
    const double here = loss({}, at, gradient);
    ASSERT_TRUE(std::isfinite(here));
    const double along = std::inner_product(direction.begin(), direction.end(), gradient.begin(), 0.0);
    EXPECT_NE(gradient[1], 0);
    Numbers unused(at.size());
    const auto moved = [&](double by) {
      Numbers there = at;
      for (std::size_t i = 0; i < at.size(); ++i) there[i] += by * direction[i];
      return loss({}, there, unused);
    };
    EXPECT_NEAR(along, (moved(1e-4) - moved(-1e-4)) / 2e-4, 1e-5 * std::fabs(along)) << phase.segment;
    EXPECT_THAT(loss.states(at)[1], 1.2 * 1.1 * (1.2 * 1.1));
  }
}

// Two unknown starts of one trajectory are the same as starts that are free.
TEST(GivenStarts, errors_are_those_of_free_ones) {
  const Rhs with_starts = differentiable_function<2, 3>("hunt", [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = p[0] * u[0] - u[0] * u[1];
    du[1] = u[0] * u[1] - 3.0 * u[1];
  });
  const TrajectoryData data = prey(1);
  const std::vector<TrainedParameter> trained{
      {.parameter = 0, .start = 1.5}, {.parameter = 1, .start = 1}, {.parameter = 2, .start = 1}};
  const Numbers at{1, 1, 1}, start{1, 1};
  TrajectoryData of_hunt = data;
  of_hunt.parameters = {1};
  const auto expected =
      parameter_uncertainty(kHunt, std::span(trained).first(1), Numbers{1}, of_hunt, kTight, {.initial_states = start});
  const auto found =
      parameter_uncertainty(with_starts, trained, at, data, kTight, {.starts = GivenStarts{kBoth, {0, 1}}});
  EXPECT_EQ(found.numbers, expected.numbers);
  EXPECT_EQ(found.unknowns, expected.unknowns);
  EXPECT_NEAR(found.standard_errors[0], expected.standard_errors[0], 1e-9 * expected.standard_errors[0]);
  EXPECT_NEAR(found.deviation, expected.deviation, 1e-12);
  EXPECT_GT(found.standard_errors[2], 0);
  const auto mixed = parameter_uncertainty(with_starts, trained, at, data, kTight,
                                           {.initial_states = start, .starts = GivenStarts{kBoth, {1}}});
  ASSERT_EQ(mixed.undetermined.size(), 1u) << "p[1] is where nothing starts";
  EXPECT_THAT(mixed.undetermined[0], ElementsAre(0, 1, 0));
}

// The truth within four standard errors: 1 in 8,000 fits would miss it.
TEST(GivenStarts, are_found_from_what_follows_from_them) {
  const Rhs rhs = train_parameters(kHunt, kTrained);
  const TrajectoryData data = prey(2);
  FitOptions options{.solve = kTight, .phases = recommended_phases(21, {}, true)};
  options.starts = squares();
  options.validation = prey(1);
  const FitResult one = fit(rhs, data, options);
  options.solve.threads = 2;
  const FitResult two = fit(rhs, data, options);
  EXPECT_EQ(one.weights, two.weights);
  EXPECT_EQ(one.loss, two.loss);
  EXPECT_EQ(one.validation_loss, two.validation_loss);
  EXPECT_NEAR(*one.validation_loss, 20 * kNoise * kNoise, 20 * kNoise * kNoise);
  const auto known =
      parameter_uncertainty(kHunt, kTrained, one.weights, data, kTight, {.starts = GivenStarts{kSquare, {1}}});
  EXPECT_EQ(known.numbers, 41u);
  EXPECT_EQ(known.unknowns, 2u);
  EXPECT_LT(known.distance, 0.01);
  EXPECT_NEAR(known.values[0], 1.5, 4 * known.standard_errors[0]);
  EXPECT_NEAR(known.values[1], 1, 4 * known.standard_errors[1]);
  EXPECT_LT(known.standard_errors[1], 0.05);
}

// What trajectories share is solved once; with parameters of each one's own each is.
TEST(GivenStarts, that_are_shared_are_those_of_each_trajectory) {
  const Rhs hunt = differentiable_function<2, 3>("hunt", [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = p[0] * u[0] - u[0] * u[1];
    du[1] = u[0] * u[1] - 3.0 * u[1];
  });
  const Rhs product = differentiable_function<2, 3>("starts", [](auto, const auto&, const auto& p, auto& du) {
    du[0] = 0.0 * p[0];
    du[1] = p[1] * p[2];
  });
  FitPhase whole, free, batch;
  free.continuity = 1;
  batch.batch = 2;
  for (const FitPhase& phase : {whole, free, batch}) {
    FitOptions options{.solve = kTight, .phases = {phase}};
    options.starts = GivenStarts{train_parameters(product, kTrained), {1}};
    const auto evaluate = [&](const Numbers& parameters, const train::Place& place) {
      TrajectoryData data = prey(5);
      data.parameters = parameters;
      FitLoss<double> loss(train_parameters(hunt, kTrained), data, options);
      Numbers at(loss.parameters()), found(at.size());
      at[0] = 0.1, at[1] = 0.9;
      for (int again = 0; again < 2; ++again) {  // into a solver that is there
        found.assign(at.size(), 0);
        found.push_back(loss(place, at, std::span(found).first(at.size())));
      }
      return found;
    };
    for (const train::Place& place : {train::Place{}, train::Place{.iteration = 2, .total = 2}}) {
      const Numbers shared = evaluate({1.1}, place), own = evaluate(Numbers(5, 1.1), place);
      EXPECT_EQ(shared.back(), own.back());
      EXPECT_NE(shared[1], 0);
      for (std::size_t i = 0; i < shared.size(); ++i) {
        EXPECT_NEAR(shared[i], own[i], 1e-14 * std::fabs(own[i])) << i;  // sums in another order
      }
    }
  }
}

TEST(GivenStarts, a_line_search_turns_back_where_there_is_none) {
  const Rhs decay = differentiable_function<1, 2>(
      "decay", [](auto, const auto& u, const auto& p, auto& du) { du[0] = -p[0] * u[0]; });
  const Rhs root = differentiable_function<1, 2>("starts", [](auto, const auto&, const auto& p, auto& du) {
    using std::sqrt;
    du[0] = sqrt(p[1]);
  });
  const std::vector<TrainedParameter> trained{{.parameter = 0, .start = 0.5}, {.parameter = 1, .start = 1}};
  TrajectoryData data{.trajectories = 2};
  for (int i = 0; i <= 10; ++i) {
    data.times.push_back(0.2 * i);
    data.states.push_back(0.2 * std::exp(-0.2 * i));
  }
  data.states.insert(data.states.end(), data.states.begin(), data.states.end());
  FitPhase adam, lbfgs, free;
  lbfgs.training.rule = free.training.rule = train::LbfgsOptions{};
  free.continuity = 1;
  FitOptions options{.solve = kTight, .phases = {adam, lbfgs, free}};
  options.starts = GivenStarts{train_parameters(root, trained), {0}};
  options.validation = data;
  FitLoss<double> loss(train_parameters(decay, trained), data, options);
  Numbers good(loss.parameters()), gradient(good.size());
  good[0] = good[1] = 1;
  Numbers bad = good;
  bad[1] = -1;
  EXPECT_TRUE(std::isinf(loss.loss(bad)));
  EXPECT_TRUE(std::isinf(loss.validation_loss(bad)));
  EXPECT_LT(loss.loss(good), 10);
  EXPECT_LT(loss.validation_loss(good), 10);
  for (std::size_t phase = 0; phase < 3; ++phase) {
    const train::Place place{.phase = phase};
    EXPECT_THROW(loss(place, bad, gradient), StartsNotFinite) << "there is nothing to turn back to";
    EXPECT_LT(loss(place, good, gradient), 10);
    if (phase == 0) {
      EXPECT_THAT(message_of([&] { loss(place, bad, gradient); }, ErrorKind::invalid_argument),
                  HasSubstr("starts: found no finite number for component 0 of every trajectory"));
      continue;
    }
    EXPECT_TRUE(std::isinf(loss(place, bad, gradient)));
    EXPECT_THAT(gradient, Each(0));
    EXPECT_LT(loss(place, good, gradient), 10);
  }
  options.phases = {lbfgs};
  options.phases[0].training.iterations = 100;
  const FitResult result = fit(train_parameters(decay, trained), data, options);
  EXPECT_NEAR(result.weights[0] * 0.5, 1, 1e-6);
  EXPECT_NEAR(result.weights[1], 0.04, 1e-6);
}

TEST(GivenStarts, what_does_not_fit_is_refused_by_name) {
  const Rhs rhs = train_parameters(kHunt, kTrained);
  const auto message = [&](const GivenStarts& starts) {
    FitOptions options{.solve = kTight};
    options.starts = starts;
    return message_of([&] { fit(rhs, prey(1), options); }, ErrorKind::invalid_argument);
  };
  EXPECT_THAT(message({nullptr, {1}}), HasSubstr("starts.values: found none"));
  EXPECT_THAT(message({kSquare, {1}}), HasSubstr("starts.values.parameters: found 2, expected 0"));
  EXPECT_THAT(message({squares().values, {2}}), HasSubstr("starts.components: found 2, expected components below 2"));
  EXPECT_THAT(message({squares().values, {0}}),
              HasSubstr("data.states: found NaN in trajectory 0, row 0, component 1, expected a complete state"));
  const Rhs infinite = differentiable_function<2, 2>("starts", [](auto, const auto&, const auto& p, auto& du) {
    du[0] = p[0];
    du[1] = p[1] / (p[0] - p[0]);
  });
  EXPECT_THAT(message({train_parameters(infinite, kTrained), {1}}),
              HasSubstr("starts: found no finite number for component 1 of trajectory 0"));
}

}  // namespace
}  // namespace lockstep::ode
