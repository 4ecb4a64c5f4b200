#include "lockstep/ode/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"
#include "lockstep/train/initialise.h"

namespace lockstep::ode {
namespace {

// The Lorenz trajectory of the examples: (1, 0, 0), t 0 .. 1 at `points` times, in float32.
TrajectoryData lorenz_data(std::size_t points = 101) {
  Problem problem{
      .rhs = system("lorenz"), .initial_states = {1, 0, 0}, .parameters = {10, 28, 8.0 / 3}, .end_times = {1}};
  for (std::size_t i = 0; i < points; ++i) {
    problem.save_times.push_back(static_cast<double>(i) / static_cast<double>(points - 1));
  }
  const Options options{.method = "dop853", .rtol = 1e-12, .atol = 1e-12, .precision = Precision::f64};
  const Solution solution = solve(problem, options);
  TrajectoryData data{.times = problem.save_times};
  for (const double x : solution.states<double>()) data.states.push_back(static_cast<float>(x));
  return data;
}

Mlp lorenz_net(std::size_t width) {
  Mlp mlp;
  mlp.layers.push_back({3, width, std::vector<double>(3 * width), std::vector<double>(width), {ActivationKind::tanh}});
  mlp.layers.push_back({width, 3, std::vector<double>(3 * width), std::vector<double>(3), {ActivationKind::identity}});
  return mlp;
}

train::Phase adam(std::int64_t iterations) {
  train::Phase phase;
  phase.iterations = iterations;
  phase.learning_rate.rate = 0.01;
  return phase;
}

// A sum of squared errors of 92 or less, which is 0.55 in every number of a state up to 40 in size.
// A part of the recommended iterations is enough, and keeps the test short.
TEST(Fit, recommended_phases_fit_the_lorenz_trajectory_from_any_seed) {
  const TrajectoryData data = lorenz_data();
  for (const std::uint64_t seed : {0, 1, 2, 3, 4}) {
    if (!is_tried(seed, 5)) continue;
    Mlp mlp = lorenz_net(100);
    fit_scaling(mlp, data);
    train::initialise(mlp, train::Initialisation::glorot_uniform, seed);
    FitOptions options{.phases = recommended_phases(101, 92.0)};
    options.solve.threads = 1;
    for (FitPhase& phase : options.phases)
      phase.training.iterations = std::min<std::int64_t>(40, phase.training.iterations);
    const FitResult result = fit(net(mlp), data, options);
    EXPECT_LE(result.loss, 92) << "seed " << seed;
  }
}

// Five seeds of diffrax, weights of the same law, left 14,372 to 14,884, their median 14,419
// (benchmarks/results/losses-2026-11-21.json): the loss before the last of 1,000 steps of Adam at 0.01, adaptive at
// 1e-6.
TEST(Fit, a_thousand_iterations_of_adam_leave_what_they_leave_elsewhere) {
  if (kSanitized) GTEST_SKIP() << "slow under the sanitizers, where the tests beside run the same code";
  const TrajectoryData data = lorenz_data();
  std::vector<double> losses;
  for (const std::uint64_t seed : {0, 1, 2, 3, 4}) {
    Mlp mlp = lorenz_net(100);
    train::initialise(mlp, train::Initialisation::glorot_uniform, seed);
    FitOptions options{.phases = {{.training = adam(1000)}}};
    options.solve.threads = 1;
    double last = 0;
    fit(net(mlp), data, options, {.progress = [&](const train::IterationReport& report) { last = report.loss; }});
    losses.push_back(last);
  }
  std::sort(losses.begin(), losses.end());
  EXPECT_LE(losses[2], 14884) << ::testing::PrintToString(losses);
  EXPECT_GE(losses[2], 13000) << "a loss of another kind: " << ::testing::PrintToString(losses);
}

TEST(Fit, has_the_same_bits_for_any_threads_and_targets) {
  const TrajectoryData data = lorenz_data(41);
  Mlp mlp = lorenz_net(20);
  fit_scaling(mlp, data);
  train::initialise(mlp, train::Initialisation::glorot_uniform, 3);
  FitOptions options;
  options.phases = {
      {.training = adam(5), .segment = 1}, {.training = adam(5), .segment = 7, .horizon = 30}, {.training = adam(3)}};
  options.solve.threads = 1;
  const FitResult one = fit(net(mlp), data, options);
  EXPECT_EQ(one.iterations, 13);
  options.solve.threads = 2;
  EXPECT_EQ(fit(net(mlp), data, options).weights, one.weights);
  for (const CpuTarget target : available_cpu_targets()) {
    options.solve.cpu_target = target;
    EXPECT_EQ(fit(net(mlp), data, options).weights, one.weights) << to_string(target);
  }
}

TEST(Fit, segments_of_a_net_that_is_right_have_no_loss) {
  // A net that is linear: du = -u, whose trajectory is known.
  Mlp mlp;
  mlp.layers.push_back({1, 1, {-1}, {0}, {ActivationKind::identity}});
  TrajectoryData data;
  for (int i = 0; i <= 10; ++i) {
    data.times.push_back(0.1 * i);
    data.states.push_back(std::exp(-data.times.back()));
  }
  FitOptions options;
  options.solve.precision = Precision::f64;
  options.solve.rtol = options.solve.atol = 1e-12;
  options.phases = {{.training = adam(1), .segment = 3}};
  FitLoss<double> loss(net(mlp), data, options);
  std::vector<double> weights{-1, 0}, gradient(2);
  EXPECT_LT(loss(train::Place{}, weights, gradient), 1e-20);  // (1e-11)^2 for ten points
  EXPECT_LT(loss.loss(weights), 1e-20);
  // With du = -u + b each segment ends too high: d(loss)/db > 0 at b > 0.
  weights[1] = 0.1;
  EXPECT_GT(loss(train::Place{}, weights, gradient), 0);
  EXPECT_GT(gradient[1], 0);
}

// 10 intervals in segments of 3, of a net that is du = -u: points 1 to 9 are solved from 0, 3 and 6, and point 10 from
// 7, where the last segment begins so as to be as long as the others. Solves at a tolerance of 1e-12 err by less than
// 1e-11, squares of errors near 0.5 by twice that, and their sum of ten by 1e-10.
TEST(Fit, a_last_segment_that_reaches_back_counts_no_point_twice) {
  Mlp mlp;
  mlp.layers.push_back({1, 1, {-1}, {0}, {ActivationKind::identity}});
  TrajectoryData data;
  for (int i = 0; i <= 10; ++i) {
    data.times.push_back(0.1 * i);
    data.states.push_back(1 + 0.3 * (i % 3) + 0.1 * (i % 2));
  }
  const auto error = [&](std::size_t from, std::size_t to) {
    return data.states[from] * std::exp(data.times[from] - data.times[to]) - data.states[to];
  };
  double points = std::pow(error(7, 10), 2);
  for (std::size_t i = 1; i < 10; ++i) points += std::pow(error((i - 1) / 3 * 3, i), 2);
  const double gaps = std::pow(error(0, 3), 2) + std::pow(error(3, 6), 2) + std::pow(error(6, 7), 2);
  for (const double sigma : {1.0, 0.25}) {
    if (sigma != 1) data.sigma.assign(11, sigma);
    for (const double continuity : {0.0, 2.0}) {
      FitOptions options;
      options.solve.precision = Precision::f64;
      options.solve.rtol = options.solve.atol = 1e-12;
      options.phases = {{.training = adam(1), .segment = 3}};
      if (continuity > 0) options.phases[0].continuity = continuity;
      FitLoss<double> loss(net(mlp), data, options);
      std::vector<double> parameters(loss.parameters()), gradient(loss.parameters());
      parameters[0] = -1;
      const double expected = (points + continuity * gaps) / (sigma * sigma);
      EXPECT_NEAR(loss(train::Place{}, parameters, gradient), expected, 1e-10 / (sigma * sigma)) << continuity;
    }
  }
}

TEST(Fit, scaling_is_that_of_data_and_their_difference_quotients) {
  TrajectoryData data{.times = {0, 1, 2}, .states = {0, 10, 2, 10, 4, 10}};
  Mlp mlp;
  mlp.layers.push_back({3, 2, std::vector<double>(6), std::vector<double>(2), {}});
  fit_scaling(mlp, data);  // the third input is time
  EXPECT_THAT(mlp.input_scaling.shift, ::testing::ElementsAre(2, 10, 1));
  EXPECT_DOUBLE_EQ(mlp.input_scaling.scale[0], std::sqrt(8.0 / 3));
  EXPECT_EQ(mlp.input_scaling.scale[1], 1);  // does not vary
  EXPECT_THAT(mlp.output_scaling.shift, ::testing::ElementsAre(2, 0));
  EXPECT_THAT(mlp.output_scaling.scale, ::testing::ElementsAre(1, 1));
}

TEST(Fit, a_validation_set_decides_which_weights_are_best) {
  const TrajectoryData data = lorenz_data(21);
  Mlp mlp = lorenz_net(8);
  fit_scaling(mlp, data);
  train::initialise(mlp, train::Initialisation::glorot_uniform, 1);
  FitOptions options;
  options.phases = {{.training = adam(20), .segment = 1}};
  options.validation = data;
  options.validate_every = 1;
  const FitResult result = fit(net(mlp), data, options);
  ASSERT_TRUE(result.validation_loss);
  EXPECT_EQ(*result.validation_loss, result.loss);
  FitLoss<float> loss(net(mlp), data, options);
  const std::vector<double> start = net(mlp)->weights();
  EXPECT_LE(result.loss, loss.loss(std::vector<float>(start.begin(), start.end())));
}

// Seven trajectories of u' = -u in batches of three: the last batch of an epoch reaches back.
TrajectoryData decays() {
  TrajectoryData data{.trajectories = 7};
  for (int i = 0; i <= 5; ++i) data.times.push_back(0.2 * i);
  for (int trajectory = 1; trajectory <= 7; ++trajectory) {
    for (const double t : data.times) data.states.push_back(trajectory * std::exp(-t));
  }
  return data;
}
Mlp linear_net(double weight) {
  Mlp mlp;
  mlp.layers.push_back({1, 1, {weight}, {0}, {ActivationKind::identity}});
  return mlp;
}

// The loss of a trajectory that starts at k is k^2 times that at 1, so a batch's tells what is in it.
TEST(Fit, an_epoch_of_mini_batches_sees_every_trajectory) {
  FitOptions options{.phases = {{.training = adam(9), .batch = 3}}, .seed = 4};
  options.solve.precision = Precision::f64;
  FitLoss<double> loss(net(linear_net(-0.5)), decays(), options);
  const std::vector<double> weights{-0.5, 0};
  std::vector<double> gradient(2);
  options.phases[0].batch = 0;
  TrajectoryData one = decays();
  one.trajectories = 1;
  one.states.resize(6);
  FitLoss<double> single(net(linear_net(-0.5)), one, options);
  const double unit = single(train::Place{}, weights, gradient);
  std::vector<double> sums;
  for (std::int64_t step = 0; step < 9; ++step) {
    // Adaptive steps of trajectories of other sizes differ: a tolerance of 1e-6 is far below 1 / 147, the least change.
    sums.push_back(3 * loss({.iteration = step, .total = step}, weights, gradient) / unit);
    EXPECT_NEAR(sums.back(), std::round(sums.back()), 0.05);
  }
  // An epoch's two batches that do not reach back hold six of seven; with the third nothing is left out: the sum of all
  // squares is 140, and two come twice.
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    const double sum = sums[3 * epoch] + sums[3 * epoch + 1] + sums[3 * epoch + 2];
    EXPECT_GE(std::round(sum), 140 + 1 + 4);
    EXPECT_LE(std::round(sum), 140 + 36 + 49);
  }
  EXPECT_NE(sums[0] * 1e6 + sums[1], sums[3] * 1e6 + sums[4]) << "the next epoch has the same order";
}

TEST(Fit, mini_batches_have_the_same_bits_for_any_threads_and_find_the_net) {
  train::Phase phase = adam(400);
  phase.learning_rate.rate = 0.02;
  FitOptions options{.phases = {{.training = phase, .batch = 3}}, .seed = 4};
  options.solve.threads = 1;
  const FitResult one = fit(net(linear_net(-0.5)), decays(), options);
  EXPECT_NEAR(one.weights[0], -1, 0.02);  // a step of Adam's
  options.solve.threads = 2;
  EXPECT_EQ(fit(net(linear_net(-0.5)), decays(), options).weights, one.weights);
  options.seed = 5;
  EXPECT_NE(fit(net(linear_net(-0.5)), decays(), options).weights, one.weights);
  options.phases[0].training.rule = train::LbfgsOptions{};
  EXPECT_THROW(fit(net(linear_net(-0.5)), decays(), options), Error);
}

TEST(Fit, bad_data_are_refused_by_name) {
  const Rhs rhs = net(lorenz_net(4));
  const auto message = [&](const TrajectoryData& data, const FitOptions& options = {}) -> std::string {
    return message_of([&] { fit(rhs, data, options); });
  };
  TrajectoryData data = lorenz_data(5);
  data.times[3] = 0.4;
  EXPECT_THAT(message(data), ::testing::HasSubstr("data.times: found 0.4 after 0.5 in trajectory 0, row 3"));
  data = lorenz_data(5);
  data.states[7] = INFINITY;
  EXPECT_THAT(message(data), ::testing::HasSubstr("trajectory 0, row 2, component 1"));
  data.states.pop_back();
  EXPECT_THAT(message(data), ::testing::HasSubstr("data.states: found 14 numbers, expected a multiple of 1"));
  data = lorenz_data(5);
  data.parameters = {1};
  EXPECT_THAT(message(data), ::testing::HasSubstr("data.parameters: found 1 numbers"));
  EXPECT_THAT(message(lorenz_data(5), {.component_weights = {1}}), ::testing::HasSubstr("options.component_weights"));
  EXPECT_THROW(fit(system("lorenz"), lorenz_data(5)), Error);
}

TEST(Fit, common_steps_over_differing_spans_are_refused_before_training) {
  TrajectoryData data{
      .trajectories = 2, .times = {0, 1, 2, 0, 1, 2.5}, .states = {1, 2, 3, 1, 2, 3}, .numbers = {4, 9}};
  Mlp mlp;
  mlp.layers.push_back({1, 1, {0.1}, {0}, {ActivationKind::identity}});
  const Rhs rhs = net(mlp);
  FitOptions options{.solve = {.control = StepControl::common}};
  const auto message = [&] { return message_of([&] { FitLoss<float>(rhs, data, options); }); };
  EXPECT_THAT(message(), ::testing::HasSubstr(
                             "options.control: found common with a time span of its own for trajectory 9, expected "
                             "one time span for all"));
  data.times[5] = 2;
  EXPECT_EQ(message(), "no error");
  options.phases[0].segment = 1;
  EXPECT_THAT(message(), ::testing::HasSubstr("for trajectory 4, segment 1"));
  options.phases[0].solve = Options{.control = StepControl::fixed, .dt = 0.1};
  EXPECT_EQ(message(), "no error");
}

TEST(Fit, a_trajectory_that_fails_stops_the_run_by_name) {
  Mlp mlp;  // du = 1e30 u: not finite at once
  mlp.layers.push_back({1, 1, {1e30}, {0}, {ActivationKind::square}});
  const TrajectoryData data{.times = {0, 1}, .states = {1, 2}};
  try {
    fit(net(mlp), data);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.field(), "iteration 0, trajectory 0");
  }
}

// u' = w^2 u^2 blows up at t = 1 / (w^2 u0): at w = 1 the third of these before its end.
TrajectoryData growing() {
  TrajectoryData data{.trajectories = 3, .times = {0, 0.5, 1}};
  for (const double u0 : {0.25, 0.5, 2.0}) {
    for (const double t : data.times) data.states.push_back(u0 / (1 - 0.36 * u0 * t));  // w = 0.6
  }
  return data;
}
Mlp square_net(double weight) {
  Mlp mlp;
  mlp.layers.push_back({1, 1, {weight}, {0}, {ActivationKind::square}});
  return mlp;
}

TEST(Fit, trajectories_left_out_count_neither_in_the_mean_nor_in_its_gradient) {
  FitOptions options{.failed = FailedTrajectories::leave_out};
  options.solve.precision = Precision::f64;
  options.solve.threads = 1;
  FitLoss<double> loss(net(square_net(1)), growing(), options);
  TrajectoryData others = growing();
  others.trajectories = 2;
  others.states.resize(6);
  FitLoss<double> of_others(net(square_net(1)), others, options);
  const std::vector<double> weights{1, 0};
  std::vector<double> gradient(2), expected(2);
  const double value = loss(train::Place{}, weights, gradient);
  EXPECT_EQ(loss.left_out(), 1u);
  ASSERT_EQ(loss.records().size(), 3u);
  EXPECT_NE(loss.records()[2].status, Status::success);
  // The same numbers, divided by 3 and times 3/2, or by 2: a few roundings apart.
  const double same = of_others(train::Place{}, weights, expected);
  EXPECT_NEAR(value, same, 1e-14 * same);
  EXPECT_NEAR(gradient[0], expected[0], 1e-14 * std::fabs(expected[0]));
  EXPECT_NEAR(loss.loss(weights), same, 1e-14 * same);
}

TEST(Fit, the_best_weights_are_those_that_lose_the_fewest_trajectories) {
  FitOptions options{.phases = {{.training = adam(50)}}, .failed = FailedTrajectories::leave_out};
  options.phases[0].training.learning_rate.rate = 0.5;
  options.solve.threads = 1;
  TrajectoryData data = growing();
  data.numbers = {7, 8, 9};
  // Adam's first step leads from 0.3 to 0.8, where the third is lost and with it most of the loss.
  const FitResult result = fit(net(square_net(0.3)), data, options);
  FitLoss<float> loss(net(square_net(0.3)), data, options);
  const std::vector<float> best(result.weights.begin(), result.weights.end());
  EXPECT_EQ(loss.loss(best), result.loss);
  EXPECT_EQ(loss.left_out(), 0u);
  std::vector<float> gradient(2);
  try {
    loss(train::Place{}, std::vector<float>{1e4f, 0}, gradient);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.field(), "iteration 0, trajectory 7");
    EXPECT_THAT(error.what(), ::testing::HasSubstr("and no other succeeded"));
  }
  EXPECT_TRUE(std::isinf(loss.loss(std::vector<float>{1e4f, 0})));
}

// A quasi-Newton step along which the solve blows up is shortened, not the end of the run: u' = w u^2 from u0 = 1 blows
// up before t = 1 for w > 1, and the loss at w = 0.9 is steep.
TEST(Fit, a_line_search_survives_trajectories_that_fail) {
  Mlp mlp;
  mlp.layers.push_back({1, 1, {0.5}, {0}, {ActivationKind::square}});  // (w u)^2
  TrajectoryData data;
  for (int i = 0; i <= 10; ++i) {
    data.times.push_back(0.1 * i);
    data.states.push_back(1 / (1 - 0.95 * 0.95 * data.times.back()));
  }
  train::Phase phase;
  phase.iterations = 60;
  phase.rule = train::LbfgsOptions{};
  FitOptions options;
  options.solve.precision = Precision::f64;
  options.phases = {{.training = phase}};
  const FitResult result = fit(net(mlp), data, options);
  EXPECT_NEAR(std::fabs(result.weights[0]), 0.95, 1e-3);
  FitLoss<double> loss(net(mlp), data, options);
  const std::vector<double> good{0.5, 0}, too_far{1.3, 0};
  std::vector<double> gradient(2);
  EXPECT_THROW(loss(train::Place{}, too_far, gradient), Error);  // nowhere to go back to
  EXPECT_TRUE(std::isfinite(loss(train::Place{}, good, gradient)));
  EXPECT_TRUE(std::isinf(loss(train::Place{}, too_far, gradient)));
  EXPECT_TRUE(std::isinf(loss.loss(too_far)));
  // So it is in a training that continues from a checkpoint.
  FitLoss<double> resumed(net(mlp), data, options);
  EXPECT_TRUE(std::isinf(resumed({.iteration = 5, .total = 5}, too_far, gradient)));
}

// u' = -u and v' = -v in a unit of any size, by a net whose scaling is that of the data: with the tolerances and the
// loss that fit such data, every training ends where that of size 1 does.
TEST(Fit, does_not_depend_on_the_unit_of_the_states) {
  const auto trained = [](double unit, train::Phase phase) {
    TrajectoryData data;
    for (int i = 0; i <= 10; ++i) {
      data.times.push_back(0.2 * i);
      data.states.push_back(unit * std::exp(-0.2 * i));
    }
    Mlp mlp;
    mlp.layers.push_back({1, 4, std::vector<double>(4), std::vector<double>(4), {ActivationKind::tanh}});
    mlp.layers.push_back({4, 1, std::vector<double>(4), std::vector<double>(1), {ActivationKind::identity}});
    train::initialise(mlp, train::Initialisation::glorot_uniform, 1);
    fit_scaling(mlp, data);
    FitOptions options{.phases = {{.training = std::move(phase)}}};
    options.solve.precision = Precision::f64;
    options.solve.component_atol = fit_tolerances(data, 1, Precision::f64);
    options.solve.threads = 1;
    const FitResult result = fit(net(mlp), data, options);
    return std::pair(result.weights, result.loss);
  };
  train::Phase lbfgs;
  lbfgs.iterations = 15;
  lbfgs.rule = train::LbfgsOptions{};
  for (const train::Phase& phase : {adam(60), lbfgs}) {
    const auto [weights, loss] = trained(1, phase);
    EXPECT_LT(loss, 0.05);
    for (const double unit : {0x1p-16, 0x1p-64}) {
      const auto [others, other_loss] = trained(unit, phase);
      EXPECT_NEAR(other_loss / (unit * unit) / loss, 1, 1e-6) << unit;
      for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(others[i], weights[i], 1e-6) << unit << ' ' << i;
    }
  }
}

TEST(Fit, tolerances_and_the_unit_of_the_loss_follow_the_data) {
  TrajectoryData data{.times = {0, 1}, .states = {-3, 1e-6, 0, 2, std::nan(""), 0}};
  EXPECT_THAT(fit_tolerances(data, 3, Precision::f64), testing::ElementsAre(1e-6, 1e-6 * 1e-6, 1e-6));
  EXPECT_EQ(loss_unit(data, 3), 1);
  data.states = {-3, 1, 0, 2, 1, 0};
  EXPECT_TRUE(fit_tolerances(data, 3, Precision::f64).empty());
  data.states = {3e-35, 1, 0, 2e-35, 1, 0};
  EXPECT_EQ(fit_tolerances(data, 3, Precision::f32)[0], std::numeric_limits<float>::min());
  data.states = {0, 1e-6, 0, 0, 2e-6, 0};
  EXPECT_EQ(loss_unit(data, 3), std::pow(256.0, -6));  // of half a millionth, the deviation of those that vary
  data.sigma.assign(6, 1e-7);
  EXPECT_EQ(loss_unit(data, 3), 1);
}

}  // namespace
}  // namespace lockstep::ode
