// Standard errors, correlations and intervals of fitted parameters: against SciPy, and against repeated experiments.
#include "lockstep/ode/parameter_uncertainty.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "lockstep/core/random.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/ode/detail/least_squares.h"
#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/gradient_cases.h"

namespace lockstep::ode {
namespace {

using ::testing::HasSubstr;
using Numbers = std::vector<double>;

const Options kTight{.method = "dop853", .rtol = 1e-11, .atol = 1e-11, .precision = Precision::f64, .threads = 1};
const Options kUsual{.precision = Precision::f64, .threads = 1};

// Pelts of hare and lynx in thousands, winters 1900 to 1920.
TrajectoryData pelts() {
  TrajectoryData data;
  for (int i = 0; i <= 20; ++i) data.times.push_back(i);
  data.states = {30,   4,    47.2, 6.1,  70.2, 9.8,  77.4, 35.2, 36.3, 59.4, 20.6, 41.7, 18.1, 19,
                 21.4, 13,   22,   8.3,  25.4, 9.1,  27.1, 7.4,  40.3, 8,    57,   12.3, 76.6, 19.5,
                 52.3, 45.7, 19.5, 51.1, 11.2, 29.7, 7.6,  15.8, 14.6, 9.7,  16.2, 10.1, 24.7, 8.6};
  return data;
}

// What training would have found: the weights are x = 1 of the linear law with the value for its scale.
std::vector<TrainedParameter> at(const Numbers& values) {
  std::vector<TrainedParameter> trained;
  for (std::size_t i = 0; i < values.size(); ++i) trained.push_back({.parameter = i, .start = values[i]});
  return trained;
}

void expect_near_each(const Numbers& found, const Numbers& expected, double relative) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], relative * std::abs(expected[i])) << i;
  }
}

// Recorded by testdata/curve_fit_covariance.py (SciPy 1.17.1), nine digits of errors at twelve of the values.
TEST(ParameterUncertainty, of_hare_and_lynx_is_that_of_curve_fit) {
  const Numbers ones(4, 1.0);
  const auto trained = at({0.481199033219, 0.0248317606383, 0.926018343397, 0.0275329505179});
  const Numbers starts{34.9142877522, 3.86186639036};
  const ParameterUncertainty found =
      parameter_uncertainty(system("lotka_volterra"), trained, ones, pelts(), kTight, {.initial_states = starts});
  expect_near_each(found.standard_errors, {0.0350879991, 0.00163800143, 0.0731132183, 0.00209289952}, 1e-7);
  expect_near_each(found.correlations,
                   {1, 0.807905248, -0.963341986, -0.888391631, 0.807905248, 1, -0.736283889, -0.639257403,
                    -0.963341986, -0.736283889, 1, 0.944941453, -0.888391631, -0.639257403, 0.944941453, 1},
                   1e-7);
  EXPECT_EQ(found.numbers, 42u);
  EXPECT_EQ(found.unknowns, 6u);
  EXPECT_LT(found.distance, 1e-6);
  EXPECT_TRUE(found.undetermined.empty());
  // Student's t of 36 degrees of freedom is 2.028094.
  EXPECT_NEAR(found.upper[0] - found.values[0], 2.028094 * found.standard_errors[0], 1e-7);
  EXPECT_NEAR(found.values[3] - found.lower[3], 2.028094 * found.standard_errors[3], 1e-8);
}

TEST(ParameterUncertainty, of_starts_that_are_taken_to_be_exact_is_that_of_curve_fit) {
  const auto trained = at({0.547536026352, 0.0281194658352, 0.843170682094, 0.0265575063713});
  const ParameterUncertainty found =
      parameter_uncertainty(system("lotka_volterra"), trained, Numbers(4, 1.0), pelts(), kTight);
  expect_near_each(found.standard_errors, {0.0232073102, 0.00168821668, 0.0380605234, 0.00117175875}, 1e-7);
  EXPECT_NEAR(found.correlations[1], 0.866655558, 1e-7);
  EXPECT_EQ(found.numbers, 40u);
}

TEST(ParameterUncertainty, of_sizes_of_errors_is_that_of_curve_fit_with_sigma) {
  const auto trained = at({0.482084948017, 0.0247869000384, 0.914671665796, 0.0272105745711});
  const Numbers starts{35.7192611501, 3.97043769364}, weights{1.0 / 9, 1.0 / 4};
  const ParameterUncertainty found =
      parameter_uncertainty(system("lotka_volterra"), trained, Numbers(4, 1.0), pelts(), kTight,
                            {.initial_states = starts, .component_weights = weights});
  expect_near_each(found.standard_errors, {0.0353972469, 0.00169155457, 0.0677491018, 0.00189610662}, 1e-7);
}

// Experiments whose noise is known, each fitted: the truth must lie in 95 % of the intervals. Of 80
// experiments that share has a standard deviation of 2.4 % at most, as if both parameters were right together; 2.3 of
// them are allowed.
enum class Start { exact, measured };
double covered(Start start, std::uint64_t seed, std::size_t experiments) {
  constexpr std::size_t kPoints = 16;
  constexpr double kNoise = 0.1;
  const Options solver{
      .method = "rk4", .control = StepControl::fixed, .dt = 0.3, .precision = Precision::f64, .threads = 1};
  Problem problem{
      .rhs = system("lotka_volterra"), .initial_states = {1, 1}, .parameters = {1.5, 1, 3, 1}, .end_times = {4.5}};
  for (std::size_t i = 0; i < kPoints; ++i) problem.save_times.push_back(0.3 * static_cast<double>(i));
  const Solution solution = solve(problem, solver);
  const std::vector<TrainedParameter> trained{{.parameter = 0, .start = 1.4, .law = ParameterLaw::positive},
                                              {.parameter = 2, .start = 3.1}};
  const Rhs rhs = train_parameters(problem.rhs, trained);
  FitOptions options{.solve = solver};
  options.phases[0].training.rule = train::LbfgsOptions{};
  options.phases[0].training.iterations = 25;
  if (start == Start::measured) options.phases[0].continuity = 1;
  const Random random(seed);
  std::size_t inside = 0;
  for (std::size_t experiment = 0; experiment < experiments; ++experiment) {
    TrajectoryData data{.times = problem.save_times, .parameters = {1, 1}};
    for (std::size_t i = 0; i < 2 * kPoints; ++i) {
      const double noise = kNoise * random.normal(experiment, static_cast<std::uint32_t>(i));
      data.states.push_back(solution.states<double>()[i] + (start == Start::exact && i < 2 ? 0 : noise));
    }
    const FitResult result = fit(rhs, data, options);
    Numbers starts;
    if (start == Start::measured) starts.assign(result.states.begin(), result.states.begin() + 2);
    const ParameterUncertainty found =
        parameter_uncertainty(problem.rhs, trained, result.weights, data, solver, {.initial_states = starts});
    EXPECT_LT(found.distance, 0.1) << experiment;
    inside += static_cast<std::size_t>(found.lower[0] < 1.5 && 1.5 < found.upper[0]);
    inside += static_cast<std::size_t>(found.lower[1] < 3 && 3 < found.upper[1]);
  }
  return static_cast<double>(inside) / static_cast<double>(2 * experiments);
}

TEST(ParameterUncertainty, intervals_hold_the_truth_in_95_of_100_experiments) {
  EXPECT_NEAR((covered(Start::exact, 1, 40) + covered(Start::measured, 2, 40)) / 2, 0.95, 0.055);
}

// The decay exp(-k t) + c with errors of 0.01: a bound that is far away changes nothing but cuts the interval, one that
// the data would have k beyond is where it ends. The others' errors are then those of a fit with k known there.
TEST(ParameterUncertainty, a_parameter_at_its_bound_is_no_unknown) {
  const Rhs rhs = differentiable_function<1, 2>(
      "decay", [](auto, const auto& u, const auto& p, auto& du) { du[0] = -p[0] * (u[0] - p[1]); });
  TrajectoryData data{.states = {2}};
  data.times.push_back(0);
  for (int i = 1; i <= 12; ++i) {
    data.times.push_back(0.25 * i);
    data.states.push_back(0.5 + 1.5 * std::exp(-1.2 * 0.25 * i) +
                          0.01 * Random(4).normal(static_cast<std::uint64_t>(i), 0));
  }
  data.sigma.assign(13, 0.01);
  FitOptions options{.solve = kTight};
  options.phases[0].training.rule = train::LbfgsOptions{};
  options.phases[0].training.iterations = 300;
  const auto found = [&](std::optional<double> min, std::optional<double> max) {
    const std::vector<TrainedParameter> trained{{.parameter = 0,
                                                 .start = 0.7,
                                                 .law = min || max ? ParameterLaw::bounded : ParameterLaw::linear,
                                                 .min = min,
                                                 .max = max},
                                                {.parameter = 1, .start = 0.4}};
    const FitResult result = fit(train_parameters(rhs, trained), data, options);
    return parameter_uncertainty(rhs, trained, result.weights, data, kTight, {.error_size = ErrorSize::as_stated});
  };
  const ParameterUncertainty without = found({}, {}), far = found(0.0, 5.0), at = found(0.0, 1.0);
  EXPECT_THAT(without.at_bound, ::testing::Each(ParameterUncertainty::Bound::none));
  // The one minimum, to what L-BFGS leaves.
  expect_near_each(far.values, without.values, 1e-6);
  expect_near_each(far.standard_errors, without.standard_errors, 1e-5);
  EXPECT_THAT(far.at_bound, ::testing::Each(ParameterUncertainty::Bound::none));
  EXPECT_NEAR(far.upper[0] - far.values[0], 1.959964 * far.standard_errors[0], 1e-6);
  // At a bound that cuts off half an error it stands by chance, four errors are not that: chi-square of one degree.
  const double error = without.standard_errors[0];
  const ParameterUncertainty by_chance = found(0.0, without.values[0] - 0.5 * error);
  EXPECT_NEAR(by_chance.values[0], without.values[0] - 0.5 * error, 0.01 * error);
  EXPECT_EQ(by_chance.at_bound[0], ParameterUncertainty::Bound::none);
  // Linearised half an error away: errors change by that much of the parameters' relative ones.
  expect_near_each(by_chance.standard_errors, without.standard_errors, 0.05);
  EXPECT_LT(by_chance.lower[0], without.values[0] - 2 * error);
  EXPECT_LT(by_chance.distance, 0.01) << "no way is left within the bounds";
  EXPECT_EQ(found(0.0, without.values[0] - 4 * error).at_bound[0], ParameterUncertainty::Bound::max);
  const ParameterUncertainty cut = found(0.0, without.values[0] + 0.5 * without.standard_errors[0]);
  EXPECT_EQ(cut.upper[0], without.values[0] + 0.5 * without.standard_errors[0]);
  EXPECT_NEAR(cut.standard_errors[0], without.standard_errors[0], 1e-3 * without.standard_errors[0]);

  EXPECT_NEAR(at.values[0], 1, 1e-4);
  EXPECT_EQ(at.at_bound[0], ParameterUncertainty::Bound::max);
  EXPECT_TRUE(std::isnan(at.standard_errors[0]) && std::isnan(at.upper[0]) && std::isnan(at.correlations[1]));
  EXPECT_EQ(at.unknowns, 1u);
  const std::vector<TrainedParameter> alone{{.parameter = 1, .start = at.values[1]}};
  TrajectoryData known = data;
  known.parameters = {at.values[0]};
  const ParameterUncertainty given =
      parameter_uncertainty(rhs, alone, Numbers{1}, known, kTight, {.error_size = ErrorSize::as_stated});
  EXPECT_NEAR(at.standard_errors[1], given.standard_errors[0], 1e-9 * given.standard_errors[0]);
  EXPECT_LT(at.standard_errors[1], 0.9 * without.standard_errors[1]);
  EXPECT_LT(at.distance, 0.01);
}

TEST(ParameterUncertainty, says_which_combination_the_data_do_not_determine) {
  // u' = -(a b) u + c: the product alone matters.
  const Rhs rhs = differentiable_function<1, 3>(
      "product", [](auto, const auto& u, const auto& p, auto& du) { du[0] = p[2] - p[0] * p[1] * u[0]; });
  Problem problem{.rhs = rhs, .initial_states = {3}, .parameters = {2, 0.5, 0.25}, .end_times = {2}};
  for (int i = 0; i <= 8; ++i) problem.save_times.push_back(0.25 * i);
  const Solution solution = solve(problem, kUsual);
  TrajectoryData data{.times = problem.save_times};
  data.states.assign(solution.states<double>().begin(), solution.states<double>().end());
  const ParameterUncertainty found = parameter_uncertainty(rhs, at({2, 0.5, 0.25}), Numbers(3, 1.0), data, kUsual);
  ASSERT_EQ(found.undetermined.size(), 1u);
  const Numbers& change = found.undetermined[0];
  // As much up as down, relative to their values: to the rounding of derivatives over their cosine's distance from 1.
  EXPECT_NEAR(change[0] / 2, -change[1] / 0.5, 1e-6);
  EXPECT_NEAR(std::abs(change[0] / 2), 1, 1e-6);
  EXPECT_NEAR(change[2] / 0.25, 0, 1e-6);
  EXPECT_TRUE(std::isnan(found.standard_errors[0]) && std::isnan(found.standard_errors[1]));
  EXPECT_TRUE(std::isnan(found.lower[0]) && std::isnan(found.correlations[2]));
  EXPECT_EQ(found.unknowns, 2u);
  // One of them known, the others are determined.
  data.parameters = {0.5};
  const ParameterUncertainty two = parameter_uncertainty(
      rhs, std::vector<TrainedParameter>{{.parameter = 0, .start = 2}, {.parameter = 2, .start = 0.25}},
      Numbers(2, 1.0), data, kUsual);
  EXPECT_TRUE(two.undetermined.empty());
  EXPECT_LT(two.standard_errors[0], 1e-3);
  // What is added to u is determined all the same, as well as where the product is one unknown.
  EXPECT_NEAR(found.standard_errors[2], two.standard_errors[1], 1e-6 * two.standard_errors[1]);
}

TEST(ParameterUncertainty, a_parameter_without_effect_is_named_alone) {
  const Rhs rhs = differentiable_function<1, 2>(
      "one", [](auto, const auto& u, const auto& p, auto& du) { du[0] = p[1] * 0.0 - p[0] * u[0]; });
  const TrajectoryData data{.times = {0, 1, 2, 3}, .states = {1, 0.6, 0.35, 0.2}};
  const ParameterUncertainty found = parameter_uncertainty(rhs, at({0.5, 3}), Numbers(2, 1.0), data, kUsual);
  ASSERT_EQ(found.undetermined.size(), 1u);
  EXPECT_EQ(found.undetermined[0][0], 0);
  EXPECT_EQ(found.undetermined[0][1], 3);
  const ParameterUncertainty alone =
      parameter_uncertainty(rhs, std::vector<TrainedParameter>{{.parameter = 0, .start = 0.5}}, Numbers{1},
                            {.times = data.times, .states = data.states, .parameters = {3}}, kUsual);
  EXPECT_DOUBLE_EQ(found.standard_errors[0], alone.standard_errors[0]);
  EXPECT_DOUBLE_EQ(found.upper[0], alone.upper[0]);
  EXPECT_TRUE(std::isnan(found.standard_errors[1]));
  EXPECT_LT(found.distance, 10) << "of the parameter that is determined";
}

// u' = a v^2 + c v + net(u, v), v' = net(u, v) of a net that is a linear map, and the same with its weights written out
// as parameters: what is said of `a` is the same. c is the net's to take over, and with nets as trained nobody sees it.
TEST(ParameterUncertainty, a_net_that_is_let_go_is_as_its_weights_among_the_parameters) {
  const Rhs physics = differentiable_function<2, 2>("forced", [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = p[0] * u[1] * u[1] + p[1] * u[1];
    du[1] = u[1] * 0.0;
  });
  const Rhs written = differentiable_function<2, 7>("written", [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = p[0] * u[1] * u[1] + p[1] * u[0] + p[2] * u[1] + p[5];
    du[1] = p[3] * u[0] + p[4] * u[1] + p[6];
  });
  const Numbers w{-0.4, 0.3, -0.8, -0.2, 0.1, -0.05};  // matrix by rows, then the bias
  Mlp linear;
  linear.layers.push_back(
      {2, 2, Numbers(w.begin(), w.begin() + 4), Numbers(w.begin() + 4, w.end()), {ActivationKind::identity}});
  const Rhs beside = sum(physics, net(linear));
  const double a = 0.7, c = 0.2;
  Numbers all{a, w[0], w[1] + c, w[2], w[3], w[4], w[5]};
  const Numbers signs{1, -1, 1, -1, -1, 1, -1};  // x, in units of the starts' sizes
  Problem problem{.rhs = written, .initial_states = {1, 0.5, -0.5, 1}, .parameters = all, .end_times = {4}};
  for (int i = 0; i <= 20; ++i) problem.save_times.push_back(0.2 * i);
  const Solution solution = solve(problem, kTight);
  TrajectoryData data{.trajectories = 2, .times = problem.save_times};
  for (const double state : solution.states<double>()) {
    data.states.push_back(state + 0.02 * Random(6).normal(data.states.size(), 0));
  }
  Numbers weights = beside->weights();
  weights.insert(weights.end(), {1, 1});
  const std::vector<TrainedParameter> both{{.parameter = 0, .start = a}, {.parameter = 1, .start = c}};
  const auto with = [&](UncertaintyOptions::Nets nets) {
    return parameter_uncertainty(beside, both, weights, data, kUsual, {.nets = nets});
  };
  const ParameterUncertainty given = with(UncertaintyOptions::Nets::as_trained),
                             let_go = with(UncertaintyOptions::Nets::let_go),
                             expected = parameter_uncertainty(written, at(all), signs, data, kUsual);
  EXPECT_EQ(let_go.nets, ParameterUncertainty::Nets::let_go);
  EXPECT_EQ(let_go.unknowns, 7u) << "a and six weights";
  // To what differences of solves are good to.
  EXPECT_NEAR(let_go.standard_errors[0], expected.standard_errors[0], 1e-4 * expected.standard_errors[0]);
  EXPECT_NEAR(let_go.upper[0], expected.upper[0], 1e-4 * expected.standard_errors[0]);
  EXPECT_TRUE(std::isnan(let_go.standard_errors[1]));
  ASSERT_EQ(let_go.undetermined.size(), 1u);
  EXPECT_NEAR(let_go.undetermined[0][0], 0, 1e-3);
  EXPECT_NEAR(let_go.undetermined[0][1], c, 1e-12);
  EXPECT_EQ(given.nets, ParameterUncertainty::Nets::as_trained);
  EXPECT_TRUE(given.undetermined.empty());
  EXPECT_LT(given.standard_errors[0], 0.7 * expected.standard_errors[0]) << "too small";
  EXPECT_EQ(let_go.left_by_nets[1], 0);
  EXPECT_TRUE(let_go.left_by_nets[0] > 0.01 && let_go.left_by_nets[0] < 1);
  // More weights than numbers: they stay.
  TrajectoryData few = data;
  few.trajectories = 1;
  few.times = {0, 1, 2, 3};
  few.states.resize(8);
  EXPECT_EQ(parameter_uncertainty(beside, both, weights, few, kUsual, {.nets = UncertaintyOptions::Nets::let_go}).nets,
            ParameterUncertainty::Nets::as_trained);
}

// The delta method: the same standard error by either law, and an interval of its own.
TEST(ParameterUncertainty, positive_parameters_have_positive_intervals) {
  const Rhs rhs = differentiable_function<1, 1>(
      "decay", [](auto, const auto& u, const auto& p, auto& du) { du[0] = -p[0] * u[0]; });
  const TrajectoryData data{.times = {0, 1, 2, 3}, .states = {1, 0.7, 0.3, 0.25}};
  const auto of = [&](ParameterLaw law, double value) {
    const bool positive = law == ParameterLaw::positive;
    return parameter_uncertainty(rhs, std::vector<TrainedParameter>{{.parameter = 0, .start = value, .law = law}},
                                 Numbers{positive ? 0.0 : 1.0}, data, kUsual);
  };
  const ParameterUncertainty linear = of(ParameterLaw::linear, 0.5), positive = of(ParameterLaw::positive, 0.5);
  EXPECT_DOUBLE_EQ(linear.standard_errors[0], positive.standard_errors[0]);
  // Of two degrees of freedom t is 4.302653.
  const double t = 4.302653 * linear.standard_errors[0];
  EXPECT_NEAR(linear.lower[0], 0.5 - t, 1e-6);
  EXPECT_NEAR(positive.lower[0], 0.5 * std::exp(-t / 0.5), 1e-6);
  EXPECT_NEAR(positive.upper[0], 0.5 * std::exp(t / 0.5), 1e-6);
  const ParameterUncertainty small = of(ParameterLaw::positive, 1e-3);
  ASSERT_GT(small.standard_errors[0], 1e-3);
  EXPECT_EQ(small.lower[0], 0);
  EXPECT_DOUBLE_EQ(small.upper[0], of(ParameterLaw::linear, 1e-3).upper[0]);
}

// Beside a net the parameter is the inner right-hand side's; trajectories have lengths and gaps.
TEST(ParameterUncertainty, beside_a_net_is_that_of_differences_of_the_solve) {
  const testing::Case c = testing::hybrid_case();
  Numbers weights = c.rhs->weights();
  for (double& w : weights) w *= 0.9;
  weights.push_back(1.1);
  const std::vector<TrainedParameter> trained{{.parameter = 1, .start = 28}};
  TrajectoryData data{.trajectories = 2, .times = {0, 0.1, 0.2, 0.3, 0, 0.15, 0.25}, .lengths = {4, 3}};
  data.parameters = {10, 8.0 / 3};
  for (int i = 0; i < 21; ++i) data.states.push_back(1 + 0.1 * i);
  data.states[7] = std::nan("");
  const Options fixed{.control = StepControl::fixed, .dt = 0.01, .precision = Precision::f64, .threads = 1};
  const ParameterUncertainty found = parameter_uncertainty(c.rhs, trained, weights, data, fixed);
  EXPECT_EQ(found.numbers, 14u);
  // Sums of squares of states and of their differences by the parameter, from GradientSolver's loss.
  double squares = 0, loss = 0;
  const Rhs rhs = train_parameters(c.rhs, trained);
  Numbers states[2];
  const double step = 1e-5;
  for (int side = 0; side < 2; ++side) {
    Numbers moved = weights;
    moved.back() += (side == 0 ? -step : step) / 28;
    FitOptions options{.solve = fixed};
    FitLoss<double> of(rhs, data, options);
    loss += of.loss(moved) / 2;
    states[side] = Numbers();
    Problem problem{.rhs = rhs, .initial_states = {data.states[0], data.states[1], data.states[2]}};
    problem.parameters = data.parameters;
    problem.end_times = {0.3};
    problem.save_times = {0.1, 0.2, 0.3};
    const auto keep = [&](std::size_t, std::span<const double> solved, std::span<double>) {
      states[side].assign(solved.begin(), solved.end());
      return 0.0;
    };
    solve_with_gradients(problem, fixed, TrajectoryLoss(keep));
    GradientSolver first(problem, fixed, TrajectoryLoss(keep));
    first.evaluate(moved);
    Numbers one = states[side];
    problem.initial_states = {data.states[12], data.states[13], data.states[14]};
    problem.end_times = {0.25};
    problem.save_times = {0.15, 0.25};
    GradientSolver second(problem, fixed, TrajectoryLoss(keep));
    second.evaluate(moved);
    one.insert(one.end(), states[side].begin(), states[side].end());
    states[side] = one;
  }
  for (std::size_t i = 0; i < states[0].size(); ++i) {
    const double slope = (states[1][i] - states[0][i]) / (2 * step);
    if (i != 4) squares += slope * slope;  // what was not measured
  }
  EXPECT_NEAR(found.standard_errors[0], std::sqrt(2 * loss / 13 / squares), 1e-6 * found.standard_errors[0]);
}

TEST(ParameterUncertainty, says_what_it_cannot_do) {
  const Rhs rhs = system("lotka_volterra");
  const auto message = [&](const Numbers& weights, const TrajectoryData& data) {
    return message_of([&] { parameter_uncertainty(rhs, at({0.5, 0.02, 0.9, 0.03}), weights, data, kUsual); });
  };
  EXPECT_THAT(message(Numbers(3, 1.0), pelts()), HasSubstr("weights: found 3 numbers, expected 4"));
  const TrajectoryData few{.times = {0, 1, 2}, .states = {30, 4, 47, 6, 70, 10}};
  EXPECT_THAT(message(Numbers(4, 1.0), few),
              HasSubstr("data: found 4 numbers to compare, expected more than the 4 unknowns"));
}

// Tables of Student's distribution: two-sided 5 %.
TEST(LeastSquares, students_t_is_that_of_tables) {
  for (const auto& [degrees, t] : {std::pair<std::size_t, double>{1, 12.706205},
                                   {2, 4.302653},
                                   {5, 2.570582},
                                   {10, 2.228139},
                                   {36, 2.028094},
                                   {100, 1.983972},
                                   {1000, 1.962339},
                                   {2001, 1.961151}}) {
    EXPECT_NEAR(detail::student_t_95(degrees), t, 1e-6) << degrees;
  }
}

TEST(LeastSquares, singular_values_and_reduction_keep_the_rows_products) {
  detail::Rows rows{3, {}};
  const Random random(3);
  for (std::uint32_t i = 0; i < 21; ++i) rows.numbers.push_back(random.normal(0, i));
  detail::Rows triangle = rows;
  detail::reduce(triangle);
  ASSERT_EQ(triangle.count(), 3u);
  const auto found = detail::singular_values(triangle);
  for (std::size_t p = 0; p < 3; ++p) {
    for (std::size_t q = 0; q < 3; ++q) {
      double expected = 0, by_triangle = 0, by_values = 0;
      for (std::size_t i = 0; i < 7; ++i) expected += rows.at(i, p) * rows.at(i, q);
      for (std::size_t i = 0; i < 3; ++i) {
        by_triangle += triangle.at(i, p) * triangle.at(i, q);
        by_values += found.values[i] * found.values[i] * found.right.at(p, i) * found.right.at(q, i);
      }
      EXPECT_NEAR(by_triangle, expected, 1e-13);
      EXPECT_NEAR(by_values, expected, 1e-13);
    }
  }
}

}  // namespace
}  // namespace lockstep::ode
