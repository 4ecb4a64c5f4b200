// Derivatives through resets in either precision: how far float32 is from float64, and what their bits do not depend
// on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "lockstep/ode/differentiable_event.h"
#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/sensitivity.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/jumps.h"
#include "lockstep/train/initialise.h"

namespace lockstep::ode {
namespace {

using Numbers = std::vector<double>;
using testing::weight;

constexpr std::size_t kComponents = 3;

// Height, speed, bounces; p0: gravity, p1: the share of the speed that a bounce leaves.
Rhs falling() {
  return differentiable_function<3, 2>("falling", [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = u[1];
    du[1] = -p[0];
    du[2] = 0 * u[2];
  });
}
std::vector<Reset> bounces() {
  using Direction = TerminalEvent::Direction;
  return {{differentiable_event_function<3, 2>("height", [](auto, const auto& u, const auto&) { return u[0]; }),
           differentiable_reset_function<3, 2>("bounce",
                                               [](auto, const auto& u, const auto& p, auto& next) {
                                                 next[0] = 0 * u[0];
                                                 next[1] = -p[1] * u[1];
                                                 next[2] = u[2] + 1;
                                               }),
           Direction::falling},
          // A count that a kick carries over 50 begins anew, and the ball is slowed: struck by impulses alone.
          {differentiable_event_function<3, 2>("kicked", [](auto, const auto& u, const auto&) { return u[2] - 50; }),
           differentiable_reset_function<3, 2>("slow",
                                               [](auto, const auto& u, const auto& p, auto& next) {
                                                 next[0] = u[0];
                                                 next[1] = p[1] * u[1];
                                                 next[2] = u[2] - 100;
                                               }),
           Direction::rising}};
}

// Each of `count` has its save points, one of them fewer, its parameters and its kicks: at a save point, between them,
// one that strikes the second reset.
Problem kicked_balls(std::size_t count) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  Problem problem{.rhs = falling(), .save_times_per_trajectory = true, .first_impulse = {0}, .resets = bounces()};
  problem.start_times.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(i % 41), start = 0.01 * static_cast<double>(i % 7), end = start + 1.5;
    for (const double u : {1 + 0.02 * x, 0.5 - 0.03 * x, 0.0}) problem.initial_states.push_back(u);
    for (const double p : {9.81 + 0.05 * x, 0.8 - 0.002 * x}) problem.parameters.push_back(p);
    problem.start_times.push_back(start);
    problem.end_times.push_back(end);
    for (const double t : {start, start + 0.31, start + 0.9, i % 3 == 0 ? kNever : end})
      problem.save_times.push_back(t);
    problem.impulses.push_back({start + 0.2, 1, 0.5});
    if (i % 2 == 0) problem.impulses.push_back({start + 0.9, 1, 1, 0.75});
    if (i % 5 == 0) problem.impulses.push_back({start + 1.1, 2, 100});
    problem.first_impulse.push_back(problem.impulses.size());
  }
  return problem;
}

// The same for whole ensembles: shared parameters, beside a net that pulls at the balls.
Problem pulled_balls(std::size_t count) {
  Mlp mlp;
  mlp.layers.push_back({3, 4, Numbers(12), Numbers(4), {ActivationKind::tanh}});
  mlp.layers.push_back({4, 3, Numbers(12), Numbers(3), {ActivationKind::identity}});
  train::initialise(mlp, train::Initialisation::glorot_uniform, 1);
  for (double& w : mlp.layers[1].weights) w *= 0.1;
  Problem problem = kicked_balls(count);
  problem.rhs = sum(falling(), net(mlp));
  problem.parameters = {9.81, 0.8};
  return problem;
}

// Rows end early: there is no state there.
double weighted_sum(std::size_t, std::span<const double> states, std::span<double> bar) {
  double sum = 0;
  for (std::size_t at = 0; at < states.size(); ++at) {
    if (std::isnan(states[at])) continue;
    bar[at] = weight(at);
    sum += bar[at] * states[at];
  }
  return sum;
}

void expect_same(const Gradients& a, const Gradients& b, const std::string& what) {
  EXPECT_EQ(a.loss, b.loss) << what;
  EXPECT_EQ(a.weights, b.weights) << what;
  EXPECT_EQ(a.initial_states, b.initial_states) << what;
  EXPECT_EQ(a.parameters, b.parameters) << what;
}

Options options_of(Precision precision) { return {.precision = precision, .threads = 1}; }

TEST(ResetGradientBits, have_the_same_bits_on_any_threads_targets_and_memory) {
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    for (const Problem& problem : {kicked_balls(101), pulled_balls(101)}) {
      Options options = options_of(precision);
      const Gradients one = solve_with_gradients(problem, options, weighted_sum);
      EXPECT_EQ(one.left_out, 0u);
      for (const int threads : {2, 3, 5}) {
        options.threads = threads;
        expect_same(one, solve_with_gradients(problem, options, weighted_sum), std::to_string(threads) + " threads");
      }
      options.threads = 1;
      for (const std::size_t bytes : {std::size_t{1}, std::size_t{20'000}, std::size_t{200'000}})
        expect_same(one, solve_with_gradients(problem, options, weighted_sum, {.memory_bytes = bytes}),
                    std::to_string(bytes) + " bytes");
      for (const CpuTarget target : available_cpu_targets()) {
        options.cpu_target = target;
        expect_same(one, solve_with_gradients(problem, options, weighted_sum), std::string(to_string(target)));
      }
    }
  }
}

// Central differences of losses whose solves are exact but for roundings, 1e-14 of some 10 over 2e-6.
TEST(ResetGradientBits, are_those_of_the_loss_across_kicks_and_uneven_rows) {
  const Problem problem = kicked_balls(40);
  const Gradients all = solve_with_gradients(problem, testing::tight(), TrajectoryLoss(weighted_sum));
  for (std::size_t i = 0; i < 40; ++i) {
    Problem own = problem.part(i, 1);
    const auto value = [&] { return solve_with_gradients(own, testing::tight(), TrajectoryLoss(weighted_sum)).loss; };
    for (std::size_t c = 0; c < 2; ++c) {
      EXPECT_NEAR(all.initial_states[kComponents * i + c], testing::slope(own.initial_states[c], value, 1e-6), 1e-6);
      EXPECT_NEAR(all.parameters[2 * i + c], testing::slope(own.parameters[c], value, 1e-6), 1e-6);
    }
  }
}

// A step of tsit5 rounds the arguments of its 7 stages on the way there and their cotangents on the way back, each by
// 2^-24 of terms that are no larger than the largest derivative of that kind: crossings divide by the speed against the
// floor, 2 at least, and multiply by rates of some 10 that the next flight's derivatives have as well.
TEST(ResetGradientBits, float32_is_as_near_to_float64_as_its_roundings) {
  Problem problem = kicked_balls(101);
  for (Numbers* numbers : {&problem.initial_states, &problem.parameters}) {
    for (double& x : *numbers) x = static_cast<double>(static_cast<float>(x));
  }
  const Gradients narrow = solve_with_gradients(problem, options_of(Precision::f32), TrajectoryLoss(weighted_sum));
  const Gradients wide = solve_with_gradients(problem, testing::tight(), TrajectoryLoss(weighted_sum));
  const auto compare = [&](const Numbers& found, const Numbers& exact, std::size_t width) {
    Numbers largest(width);
    for (std::size_t at = 0; at < exact.size(); ++at)
      largest[at % width] = std::max(largest[at % width], std::fabs(exact[at]));
    for (std::size_t at = 0; at < exact.size(); ++at) {
      const double roundings = 2 * 7 * narrow.records[at / width].accepted;
      EXPECT_NEAR(found[at], exact[at], roundings * 0x1p-24 * largest[at % width]) << at / width << ", " << at % width;
    }
  };
  compare(narrow.initial_states, wide.initial_states, kComponents);
  compare(narrow.parameters, wide.parameters, 2);
}

// Whatever the trajectories beside it: each one's own numbers.
TEST(ResetGradientBits, of_a_trajectory_are_its_own_in_any_ensemble) {
  constexpr std::size_t kCount = 70;
  const Problem problem = kicked_balls(kCount);
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    const Options options = options_of(precision);
    const Gradients whole = solve_with_gradients(problem, options, weighted_sum);
    for (const auto& [first, count] :
         std::vector<std::pair<std::size_t, std::size_t>>{{0, 1}, {5, 33}, {31, 2}, {38, 32}, {61, 5}}) {
      const Gradients part = solve_with_gradients(problem.part(first, count), options, weighted_sum);
      for (std::size_t at = 0; at < kComponents * count; ++at)
        EXPECT_EQ(part.initial_states[at], whole.initial_states[kComponents * first + at]);
      for (std::size_t at = 0; at < 2 * count; ++at) EXPECT_EQ(part.parameters[at], whole.parameters[2 * first + at]);
    }
  }
}

// Forwards too, where few trajectories leave lanes to directions.
TEST(ResetGradientBits, sensitivities_of_a_trajectory_are_its_own_in_any_ensemble) {
  Problem problem = kicked_balls(70);
  for (double& t : problem.save_times) t = std::isinf(t) ? 1.5 : t;  // of each as many
  for (std::size_t i = 0; i < 70; ++i) problem.end_times[i] = problem.save_times[4 * i + 3];
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    const Options options = options_of(precision);
    const Sensitivities whole = solve_with_sensitivities(problem, options);
    for (const auto& [first, count] :
         std::vector<std::pair<std::size_t, std::size_t>>{{0, 1}, {5, 33}, {31, 2}, {61, 5}}) {
      const Sensitivities part = solve_with_sensitivities(problem.part(first, count), options);
      const auto expect_same = [count = count, first = first](const Numbers& found, const Numbers& of_whole) {
        const std::size_t each = found.size() / count;
        for (std::size_t at = 0; at < found.size(); ++at) EXPECT_EQ(found[at], of_whole[first * each + at]) << at;
      };
      expect_same(part.by_initial_state, whole.by_initial_state);
      expect_same(part.by_parameter, whole.by_parameter);
      expect_same(part.end_state_by_initial_state, whole.end_state_by_initial_state);
      expect_same(part.end_state_by_parameter, whole.end_state_by_parameter);
    }
  }
}

TEST(ResetGradientBits, states_have_the_bits_of_solve) {
  Problem problem = kicked_balls(70);
  for (double& t : problem.save_times) t = std::isinf(t) ? 1.5 : t;  // a solve has as many for each
  for (std::size_t i = 0; i < 70; ++i) problem.end_times[i] = problem.save_times[4 * i + 3];
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    Options options = options_of(precision);
    const Solution plain = solve(problem, options);
    std::size_t bounced = 0;
    const auto same = [&](std::size_t i, std::span<const double> states, std::span<double>) {
      for (std::size_t at = 0; at < states.size(); ++at)
        EXPECT_EQ(states[at], plain.state(i, at / kComponents, at % kComponents)) << i;
      bounced += states[states.size() - 1] != 0 ? 1 : 0;
      return 0.0;
    };
    solve_with_gradients(problem, options, TrajectoryLoss(same));
    EXPECT_EQ(bounced, 70u);
    const Sensitivities forward = solve_with_sensitivities(problem, options);
    options.threads = 3;
    const Sensitivities threaded = solve_with_sensitivities(problem, options);
    EXPECT_EQ(forward.by_initial_state, threaded.by_initial_state);
    EXPECT_EQ(forward.by_parameter, threaded.by_parameter);
  }
}

}  // namespace
}  // namespace lockstep::ode
