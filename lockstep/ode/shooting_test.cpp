// Multiple shooting with free states: the gradient, what it is for, and the same bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/fit.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/trained_parameters.h"
#include "lockstep/train/initialise.h"

namespace lockstep::ode {
namespace {

constexpr double kNoise = 0.2;

// u' = A u, two turns of a spiral sampled at 101 times, with noise; and a net that is a linear map.
struct Spiral {
  static constexpr double kExact[4] = {-0.1, 2, -2, -0.1};  // A, row by row
  TrajectoryData data{.trajectories = 2};
  Mlp net;
  Spiral() {
    net.layers.push_back({2, 2, std::vector<double>(4), std::vector<double>(2), {ActivationKind::identity}});
    for (int i = 0; i <= 100; ++i) data.times.push_back(0.1 * i);
    for (const double start : {0.0, 1.0}) {
      for (const double t : data.times) {
        for (const double exact : {std::cos(2 * t + start), -std::sin(2 * t + start)}) {
          data.states.push_back(std::exp(-0.1 * t) * exact + kNoise * Random(5).normal(data.states.size(), 0));
        }
      }
    }
  }
  // A's eigenvalues are -damping +- i frequency.
  static double damping(const std::vector<double>& weights) { return -0.5 * (weights[0] + weights[3]); }
  static double frequency(const std::vector<double>& weights) { return 0.5 * (weights[1] - weights[2]); }
};

FitPhase lbfgs_phase(std::size_t segment, std::optional<double> continuity) {
  FitPhase phase{.segment = segment, .continuity = continuity};
  phase.training.iterations = 100;
  phase.training.rule = train::LbfgsOptions{};
  return phase;
}

FitOptions f64_options() {
  FitOptions options;
  options.solve.precision = Precision::f64;
  options.solve.control = StepControl::fixed;
  options.solve.dt = 0.1;
  options.solve.threads = 1;
  return options;
}

// A segment that starts from the data takes its start's noise for the state. With noise of variance v = 0.04 around
// states of variance V = 0.22 (half the mean of exp(-0.2 t)) a regression of the next point on this one shrinks by
// v / (V + v), as if the spiral were damped by that in each interval of 0.1: by 1.5. Free starts have no such bias.
// What is left is the noise itself: a state's derivative by damping or frequency is t exp(-0.1 t) in size, whose
// squares sum to 1,600 over 202 points, hence 0.2 / sqrt(1,600) = 0.005, of which six are allowed.
TEST(Shooting, free_states_find_what_segments_from_noisy_data_miss) {
  const Spiral spiral;
  FitOptions options = f64_options();
  options.phases = {lbfgs_phase(1, {})};
  EXPECT_GT(Spiral::damping(fit(net(spiral.net), spiral.data, options).weights), 0.1 + 0.75);
  options.phases = {lbfgs_phase(5, 1), lbfgs_phase(5, 10), lbfgs_phase(20, 100)};
  const FitResult result = fit(net(spiral.net), spiral.data, options);
  EXPECT_NEAR(Spiral::damping(result.weights), 0.1, 0.03);
  EXPECT_NEAR(Spiral::frequency(result.weights), 2, 0.03);
  // States at joints are nearer to the truth than the data there.
  ASSERT_EQ(result.states.size(), spiral.data.states.size());
  double of_states = 0, of_data = 0;
  for (std::size_t point = 0; point < 100; point += 20) {
    const double t = spiral.data.times[point], exact = std::exp(-0.1 * t) * std::cos(2 * t);
    of_states += std::fabs(result.states[2 * point] - exact);
    of_data += std::fabs(spiral.data.states[2 * point] - exact);
  }
  EXPECT_LT(of_states, 0.5 * of_data);
}

// The noise is met, not fitted: a loss of 0.04 for each of 400 numbers less 6 weights and 4 starts, halved by the mean
// over two trajectories, with a deviation of sqrt(2 / 390) = 7 %, of which three are allowed. Trajectories that begin
// at their first measurements carry the noise of these along.
TEST(Shooting, noisy_phases_reach_the_noise_that_fixed_starts_do_not) {
  const Spiral spiral;
  constexpr double kExpected = kNoise * kNoise * 390 / 2;
  FitOptions options = f64_options();
  options.phases = noisy_phases(101);
  const FitResult free = fit(net(spiral.net), spiral.data, options);
  EXPECT_NEAR(free.loss, kExpected, 0.21 * kExpected);
  EXPECT_NEAR(Spiral::damping(free.weights), 0.1, 0.03);
  options.phases = recommended_phases(101);
  EXPECT_GT(fit(net(spiral.net), spiral.data, options).loss, 1.05 * free.loss);
}

// Fixed steps, so that the loss is smooth. Central differences with e = 1e-5 miss by e^2 / 6 times third derivatives,
// seen to be some hundred times the loss, and by its rounding over e, 1e-16 * 100 / 1e-5: both below 1e-8 of it.
TEST(Shooting, gradient_agrees_with_differences) {
  const Spiral spiral;
  Mlp mlp;
  mlp.layers.push_back({2, 4, std::vector<double>(8), std::vector<double>(4), {ActivationKind::tanh}});
  mlp.layers.push_back({4, 2, std::vector<double>(8), std::vector<double>(2), {ActivationKind::identity}});
  train::initialise(mlp, train::Initialisation::glorot_uniform, 2);
  FitOptions options = f64_options();
  options.component_weights = {1, 0.5};
  // 23 intervals in segments of 5: the last one reaches back. Then whole trajectories from free initial states.
  options.phases = {lbfgs_phase(5, 3), lbfgs_phase(0, 3)};
  options.phases[0].horizon = 24;
  FitLoss<double> loss(net(mlp), spiral.data, options);
  ASSERT_EQ(loss.parameters(), loss.weights() + spiral.data.states.size());
  std::vector<double> parameters(loss.parameters()), gradient(parameters.size()), unused(parameters.size());
  const std::vector<double> weights = net(mlp)->weights();
  std::copy(weights.begin(), weights.end(), parameters.begin());
  for (std::size_t i = weights.size(); i < parameters.size(); ++i) parameters[i] = 0.1 * Random(6).normal(i, 0);
  for (std::size_t phase = 0; phase < 2; ++phase) {
    const double value = loss({.phase = phase}, parameters, gradient);
    std::size_t free = 0;
    for (std::size_t i = weights.size(); i < parameters.size(); ++i) free += gradient[i] != 0;
    EXPECT_EQ(free, phase == 0 ? 5u * 2 * 2 : 2u * 2);  // segments, trajectories, components
    for (std::size_t i = 0; i < parameters.size(); i += i < weights.size() + 60 ? 1 : 19) {
      const double kept = parameters[i];
      parameters[i] = kept + 1e-5;
      const double above = loss({.phase = phase}, parameters, unused);
      parameters[i] = kept - 1e-5;
      const double below = loss({.phase = phase}, parameters, unused);
      parameters[i] = kept;
      EXPECT_NEAR(gradient[i], (above - below) / 2e-5, 1e-8 * value) << "phase " << phase << ", parameter " << i;
    }
  }
}

TEST(Shooting, of_a_net_that_is_right_has_no_loss_and_a_gap_costs_what_it_should) {
  Spiral spiral;
  for (std::size_t i = 0; i < spiral.data.states.size(); ++i) {
    const double t = spiral.data.times[i / 2 % 101], phase = 2 * t + (i < 202 ? 0.0 : 1.0);
    spiral.data.states[i] = std::exp(-0.1 * t) * (i % 2 == 0 ? std::cos(phase) : -std::sin(phase));
  }
  FitOptions options = f64_options();
  options.solve.control = StepControl::per_trajectory;
  options.solve.dt = 0;
  options.solve.rtol = options.solve.atol = 1e-12;
  options.phases = {lbfgs_phase(50, 8)};
  FitLoss<double> loss(net(spiral.net), spiral.data, options);
  std::vector<double> parameters(loss.parameters()), gradient(loss.parameters());
  std::copy_n(Spiral::kExact, 4, parameters.begin());
  EXPECT_LT(loss(train::Place{}, parameters, gradient), 1e-20);  // (1e-11)^2 for 400 numbers
  EXPECT_LT(loss.loss(parameters), 1e-20);
  // The first trajectory's second segment, from t = 5, begins off by d. Its data part is d^2 times the sum of
  // exp(-0.2 (t - 5)) over its points, and the gap adds 8 d^2.
  const std::size_t joint = loss.weights() + 2 * 50;
  parameters[joint] = 1e-3;
  const double d = loss.states(parameters)[2 * 50] - spiral.data.states[2 * 50];
  double decays = 0;
  for (int i = 1; i <= 50; ++i) decays += std::exp(-0.2 * 0.1 * i);
  const double expected = 0.5 * d * d * (8 + decays);  // the mean over two trajectories
  EXPECT_NEAR(loss(train::Place{}, parameters, gradient), expected, 1e-8 * expected);
}

TEST(Shooting, has_the_same_bits_for_any_threads_and_targets) {
  const Spiral spiral;
  FitOptions options;
  options.solve.threads = 1;
  options.phases = {lbfgs_phase(3, 2), lbfgs_phase(40, 20)};
  for (FitPhase& phase : options.phases) phase.training.iterations = 5;
  const FitResult one = fit(net(spiral.net), spiral.data, options);
  options.solve.threads = 2;
  for (const CpuTarget target : available_cpu_targets()) {
    options.solve.cpu_target = target;
    const FitResult other = fit(net(spiral.net), spiral.data, options);
    EXPECT_EQ(other.weights, one.weights) << to_string(target);
    EXPECT_EQ(other.states, one.states) << to_string(target);
  }
}

TEST(Shooting, refuses_a_continuity_that_is_none) {
  const Spiral spiral;
  for (const double wrong : {0.0, -1.0, std::nan("")}) {
    FitOptions options = f64_options();
    options.phases = {lbfgs_phase(5, wrong)};
    try {
      fit(net(spiral.net), spiral.data, options);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.field(), "options.phases.continuity");
    }
  }
}

// u' = k u^2 with k = 0.5 ends where u is infinite, at 1 / (k u_0): with the 2.5 it starts from before the end of some
// segments of the first phase, not of all. Those that are left teach k; the last phase is one of everything.
TEST(Shooting, segments_that_fail_are_passed_over_in_all_phases_but_the_last) {
  const Rhs growth = differentiable_function<1, 1>(
      "growth", [](auto, const auto& u, const auto& p, auto& du) { du[0] = p[0] * u[0] * u[0]; });
  TrajectoryData data{.trajectories = 2};
  for (int i = 0; i <= 15; ++i) data.times.push_back(0.1 * i);
  for (const double start : {0.2, 1.0}) {
    for (const double t : data.times) data.states.push_back(start / (1 - 0.5 * start * t));
  }
  const Rhs rhs = train_parameters(growth, {{.parameter = 0, .start = 2.5, .law = ParameterLaw::positive}});
  FitOptions options{.solve = {.precision = Precision::f64, .threads = 1}, .phases = noisy_phases(16)};
  std::int64_t left_out = 0;
  const FitResult result = fit(rhs, data, options, {.progress = [&](const train::IterationReport& report) {
                                 if (report.place.phase == 0) left_out = std::max(left_out, report.left_out);
                                 if (report.place.phase + 1 == options.phases.size()) {
                                   EXPECT_EQ(report.left_out, 0);
                                 }
                               }});
  EXPECT_GT(left_out, 0);
  EXPECT_NEAR(2.5 * std::exp(result.weights[0]), 0.5, 1e-4);
  const auto message = [&] { return message_of([&] { fit(rhs, data, options); }); };
  for (FitPhase& phase : options.phases) phase.failed = FailedTrajectories::stop;
  EXPECT_THAT(message(),
              ::testing::AllOf(::testing::HasSubstr("iteration 0 (segments of 5 intervals, 0), trajectory 1, "
                                                    "segment 0: found "),
                               ::testing::HasSubstr("or start from parameters that are nearer to the data")));
  // A phase that cannot begin is named too, and what has short segments before it is not told to have them.
  options.phases = {{.segment = 1}, {}};
  options.phases[0].training.iterations = 1;
  options.phases[0].training.learning_rate.rate = 1e-9;
  EXPECT_THAT(message(), ::testing::AllOf(::testing::HasSubstr("iteration 1 (phase 2, 0), trajectory 1: found "),
                                          ::testing::Not(::testing::HasSubstr("short segments"))));
}

}  // namespace
}  // namespace lockstep::ode
