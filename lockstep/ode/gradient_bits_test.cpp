// What gradients do not depend on, which losses there are, and what happens to trajectories that fail.
#include "lockstep/ode/gradient.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <stdexcept>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/ode/differentiable_event.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/sensitivity.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/gradient_cases.h"

namespace lockstep::ode {
namespace {

using namespace testing;

template <class T>
Numbers saved_states(const Problem& problem, const Options& options) {
  Numbers all(problem.trajectories() * problem.save_points() * problem.rhs->components());
  std::mutex mutex;
  const TrajectoryLoss keep = [&](std::size_t trajectory, std::span<const double> states, std::span<double>) {
    const std::lock_guard lock(mutex);
    std::copy(states.begin(), states.end(), all.begin() + static_cast<std::ptrdiff_t>(trajectory * states.size()));
    return 0.0;
  };
  solve_with_gradients(problem, options, keep);
  return all;
}

TEST(GradientBits, states_have_the_bits_of_solve) {
  std::size_t turn = 0;
  for (const Case& c : all_cases()) {
    for (const Mode& mode : all_modes()) {
      for (const Precision precision : {Precision::f32, Precision::f64}) {
        if (!is_tried(turn++, 11) || !has_derivatives(c, mode.method)) continue;
        const Problem problem = ensemble(c, 35);
        Options options = f64(mode.method, mode.control);
        options.precision = precision;
        const Numbers states = precision == Precision::f32 ? saved_states<float>(problem, options)
                                                           : saved_states<double>(problem, options);
        const Solution solution = solve(problem, options);
        std::size_t at = 0;
        for (std::size_t i = 0; i < problem.trajectories(); ++i) {
          for (std::size_t k = 0; k < problem.save_points(); ++k) {
            for (std::size_t d = 0; d < problem.rhs->components(); ++d, ++at) {
              ASSERT_EQ(states[at], solution.state(i, k, d)) << c.name << " " << mode.method << " trajectory " << i;
            }
          }
        }
      }
    }
  }
}

void expect_same_bits(const Gradients& a, const Gradients& b, const std::string& what) {
  EXPECT_EQ(a.loss, b.loss) << what;
  EXPECT_EQ(a.weights, b.weights) << what;
  EXPECT_EQ(a.initial_states, b.initial_states) << what;
  EXPECT_EQ(a.parameters, b.parameters) << what;
}

TEST(GradientBits, has_the_same_bits_on_any_threads_targets_and_memory) {
  std::size_t turn = 0;
  for (const Case& c : all_cases()) {
    for (const StepControl control : {StepControl::per_trajectory, StepControl::common, StepControl::fixed}) {
      for (const auto& [precision, method_name] : {std::pair{Precision::f32, "dop853"},
                                                   {Precision::f64, "dop853"},
                                                   {Precision::f32, "rodas5p"},
                                                   {Precision::f64, "rodas5p"}}) {
        if (!is_tried(turn++, 13) || !has_derivatives(c, method_name)) continue;
        Problem problem = ensemble(c, 101);
        problem.parameters = c.parameters;  // shared: summed over trajectories
        Options options = f64(method_name, control);
        options.precision = precision;
        options.threads = 1;
        const Gradients one = solve_with_gradients(problem, options, TrajectoryLoss(linear_loss));
        for (const int threads : {2, 5}) {
          options.threads = threads;
          expect_same_bits(one, solve_with_gradients(problem, options, TrajectoryLoss(linear_loss)), "threads");
        }
        options.threads = 1;
        for (const std::size_t bytes : {std::size_t{0}, std::size_t{40'000}, std::size_t{200'000}}) {
          expect_same_bits(one,
                           solve_with_gradients(problem, options, TrajectoryLoss(linear_loss), {.memory_bytes = bytes}),
                           std::to_string(bytes) + " bytes, " + c.name);
        }
        for (const CpuTarget target : available_cpu_targets()) {
          options.cpu_target = target;
          expect_same_bits(one, solve_with_gradients(problem, options, TrajectoryLoss(linear_loss)),
                           std::string(to_string(target)) + " " + c.name);
        }
      }
    }
  }
}

// A tile's sweeps go over the registers that hold its trajectories. Nets alone take few trajectories one by one, whose
// sums have an order of their own.
TEST(GradientBits, a_trajectory_has_the_same_bits_however_many_share_its_tile) {
  std::vector<Case> cases = all_cases();
  cases.push_back(trained_case());
  const std::vector<Mode> modes = {
      {"tsit5", StepControl::per_trajectory}, {"rodas5p", StepControl::per_trajectory}, {"dop853", StepControl::fixed}};
  std::size_t turn = 0;
  for (const Case& c : cases) {
    const bool alone = lower_differentiable<double>(*c.rhs, best_cpu_target())->sample() != nullptr;
    for (const Mode& mode : modes) {
      for (const Precision precision : {Precision::f32, Precision::f64}) {
        if (!has_derivatives(c, mode.method) || !is_tried(turn++, 7)) continue;
        Options options = f64(mode.method, mode.control);
        options.precision = precision;
        const auto gradients = [&](std::size_t count, std::size_t memory_bytes = std::size_t{1} << 30) {
          return solve_with_gradients(ensemble(c, count), options, TrajectoryLoss(linear_loss),
                                      {.memory_bytes = memory_bytes});
        };
        const Gradients all = gradients(65);
        for (const std::size_t count : {1, 7, 8, 9, 31, 32, 33}) {
          if (alone && count < 9) continue;
          const std::string what = std::string(c.name) + " " + mode.method + ", " + std::to_string(count);
          const Gradients few = gradients(count);
          const auto begin_with = [](const Numbers& numbers, std::size_t size) {
            return Numbers(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(size));
          };
          EXPECT_EQ(few.initial_states, begin_with(all.initial_states, few.initial_states.size())) << what;
          EXPECT_EQ(few.parameters, begin_with(all.parameters, few.parameters.size())) << what;
          if (count != 1 && count != 9) continue;
          expect_same_bits(few, gradients(count, 20'000), what + ", little memory");
          for (const CpuTarget target : available_cpu_targets()) {
            options.cpu_target = target;
            expect_same_bits(few, gradients(count), what + ", " + std::string(to_string(target)));
          }
          options.cpu_target = {};
        }
      }
    }
  }
}

// Few trajectories of a net are taken one by one, by other loops with the same forward bits.
TEST(GradientBits, a_loss_without_derivatives_has_the_bits_of_the_one_with_them) {
  for (const Case& c : {net_case(), hybrid_case()}) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{67}}) {  // one by one, and in tiles
      const Problem problem = ensemble(c, count);
      GradientSolver both(problem, f64("tsit5", StepControl::per_trajectory), TrajectoryLoss(linear_loss));
      GradientSolver alone(problem, f64("tsit5", StepControl::per_trajectory), TrajectoryLoss(linear_loss));
      std::vector<double> weights = c.rhs->weights();
      for (const double scale : {1.0, 0.5}) {
        for (double& w : weights) w *= scale;
        const Gradients expected = both.evaluate(weights);
        const Gradients& found = alone.evaluate_loss(weights);
        EXPECT_EQ(found.loss, expected.loss);
        EXPECT_EQ(found.left_out, expected.left_out);
        EXPECT_EQ(found.records[0].accepted, expected.records[0].accepted);
        // The way back may still be asked for.
        expect_same_bits(alone.evaluate(weights), expected, c.name);
      }
    }
  }
}

TEST(GradientBits, one_by_one_and_by_tiles_agree) {
  const Case c = net_case();
  for (const Mode& mode : all_modes()) {
    if (mode.control == StepControl::common) continue;
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      Options options = f64(mode.method, mode.control);
      options.precision = precision;
      if (mode.control != StepControl::fixed) options.component_atol = {1e-5, 3e-6, 1e-4};
      const Problem few = ensemble(c, 5);
      const Numbers states =
          precision == Precision::f32 ? saved_states<float>(few, options) : saved_states<double>(few, options);
      const Solution solution = solve(few, options);
      for (std::size_t i = 0; i < states.size(); ++i) {
        ASSERT_EQ(states[i], solution.state(i / 18, i / 3 % 6, i % 3)) << mode.method;
      }
      const Gradients one = solve_with_gradients(few, options, TrajectoryLoss(linear_loss));
      for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(one.records[i].accepted, solution.record(i).accepted);
        EXPECT_EQ(one.records[i].rejected, solution.record(i).rejected);
        EXPECT_EQ(one.records[i].evaluations, solution.record(i).evaluations) << mode.method;
        EXPECT_EQ(one.records[i].end_time, solution.record(i).end_time);
      }
      for (const CpuTarget target : available_cpu_targets()) {
        options.cpu_target = target;
        expect_same_bits(one, solve_with_gradients(few, options, TrajectoryLoss(linear_loss)),
                         std::string(to_string(target)) + " " + mode.method);
      }
    }
    // The plain replay is the judge of the derivative, with the bound of the test above.
    const Problem few = ensemble(c, 5);
    const Gradients gradients = solve_with_gradients(few, f64(mode.method, mode.control), TrajectoryLoss(linear_loss),
                                                     {.keep = GradientOptions::Keep::steps});
    const Direction direction(few, 17);
    const auto loss = plain_loss<Dual<double>>(c, few, mode.method, gradients, direction,
                                               [](double x, double d) { return Dual<double>(x, d); });
    double magnitude = 0;
    const double along = direction.along(gradients, magnitude);
    EXPECT_NEAR(along, loss.slope, 1e-12 * magnitude) << mode.method;
  }
}

TEST(GradientBits, checkpoints_thinned_out_give_the_same_bits) {
  const Case c = lorenz_case();
  Problem problem = ensemble(c, 2);
  problem.end_times = {3};
  Options options = f64("rk4", StepControl::fixed);
  options.dt = 0.003;
  const Gradients plenty = solve_with_gradients(problem, options, TrajectoryLoss(linear_loss));
  const Gradients little =
      solve_with_gradients(problem, options, TrajectoryLoss(linear_loss), {.memory_bytes = 16'000});
  expect_same_bits(plenty, little, "1,000 steps within 16 kB");
}

TEST(GradientBits, squared_error_and_ensemble_loss_are_what_they_say) {
  const Case c = net_case();
  const Problem problem = ensemble(c, 40);
  const Options options = f64("tsit5", StepControl::per_trajectory);
  const std::size_t count = 40 * 6 * 3;
  SquaredError squares{.targets = Numbers(count), .weights = {1, 2, 0.5}, .scale = 0.25};
  for (std::size_t i = 0; i < count; ++i) squares.targets[i] = coefficient(0, i);
  const Gradients built_in = solve_with_gradients(problem, options, squares);
  const EnsembleLoss by_hand = [&](std::span<const double> states, std::span<double> gradient) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double difference = states[i] - squares.targets[i];
      sum += 0.25 * squares.weights[i % 3] * difference * difference;
      gradient[i] = 2 * (0.25 * squares.weights[i % 3]) * difference;
    }
    return sum;
  };
  const Gradients all_at_once = solve_with_gradients(problem, options, by_hand);
  EXPECT_NEAR(built_in.loss, all_at_once.loss, 1e-13 * built_in.loss);  // sums of 720 positive terms
  EXPECT_EQ(built_in.weights, all_at_once.weights);
  EXPECT_EQ(built_in.initial_states, all_at_once.initial_states);
}

// e^2 within the threshold, its tangent beyond; errors that are all within it have the bits of e^2.
TEST(GradientBits, errors_beyond_a_threshold_count_by_their_size) {
  const Case c = net_case();
  const Problem problem = ensemble(c, 40);
  const std::size_t count = 40 * 6 * 3;
  SquaredError loss{.targets = Numbers(count), .weights = {1, 2, 0.5}, .scale = 0.25};
  for (std::size_t i = 0; i < count; ++i) loss.targets[i] = i % 7 == 2 ? std::nan("") : coefficient(0, i);
  const Options options = f64("tsit5", StepControl::per_trajectory);
  const Gradients squares = solve_with_gradients(problem, options, loss);
  loss.thresholds = {1e6, std::numeric_limits<double>::infinity(), 1e6};
  expect_same_bits(solve_with_gradients(problem, options, loss), squares, "all within");
  const Numbers of_components{0.25, 0.5, 0.125};
  for (const bool each : {false, true}) {
    loss.thresholds = of_components;
    if (each) loss.thresholds.resize(count);
    for (std::size_t i = 0; each && i < count; ++i) loss.thresholds[i] = of_components[i % 3] * (1 + 0.5 * (i / 3 % 2));
    std::size_t beyond = 0;
    const EnsembleLoss by_hand = [&](std::span<const double> states, std::span<double> gradient) {
      double sum = 0;
      for (std::size_t i = 0; i < count; ++i) {
        if (std::isnan(loss.targets[i])) continue;
        const double e = states[i] - loss.targets[i], d = loss.thresholds[each ? i : i % 3];
        const double weight = 0.25 * loss.weights[i % 3], size = std::fabs(e);
        beyond += size > d;
        sum += weight * (size <= d ? e * e : d * (2 * size - d));
        gradient[i] = 2 * weight * (size <= d ? e : std::copysign(d, e));
      }
      return sum;
    };
    const Gradients expected = solve_with_gradients(problem, options, by_hand);
    const Gradients found = solve_with_gradients(problem, options, loss);
    EXPECT_TRUE(beyond > count / 5 && beyond < 4 * count / 5) << beyond;
    EXPECT_NEAR(found.loss, expected.loss, 1e-13 * found.loss);  // sums of 620 positive terms
    EXPECT_EQ(found.weights, expected.weights);
    EXPECT_EQ(found.initial_states, expected.initial_states);
  }
}

TEST(GradientBits, errors_beyond_a_threshold_have_the_same_bits_everywhere) {
  const Case c = net_case();
  const Problem problem = ensemble(c, 40);
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    SquaredError loss{.targets = Numbers(40 * 6 * 3), .weights = {}, .thresholds = {0.25, 0.5, 0.125}};
    for (std::size_t i = 0; i < loss.targets.size(); ++i) loss.targets[i] = coefficient(0, i);
    Options options = f64("tsit5", StepControl::per_trajectory);
    options.precision = precision;
    options.threads = 1;
    const Gradients one = solve_with_gradients(problem, options, loss);
    options.threads = 2;
    expect_same_bits(solve_with_gradients(problem, options, loss), one, "two threads");
    for (const CpuTarget target : available_cpu_targets()) {
      options.cpu_target = target;
      expect_same_bits(solve_with_gradients(problem, options, loss), one, std::string(to_string(target)));
    }
  }
}

// Threads are busy to the end when short work comes last. The loss is asked tile by tile.
TEST(GradientBits, the_next_evaluation_begins_with_the_tiles_that_took_the_most_steps) {
  Problem problem = ensemble(lorenz_case(), 3 * 32 + 1);
  problem.end_times.clear();
  for (std::size_t i = 0; i < problem.trajectories(); ++i) problem.end_times.push_back(i / 32 == 1 ? 4.0 : 1.0);
  problem.end_times[70] = 2;
  problem.save_times = {1};
  std::vector<std::size_t> order;
  const TrajectoryLoss loss = [&](std::size_t trajectory, std::span<const double> states, std::span<double> slopes) {
    if (trajectory % 32 == 0) order.push_back(trajectory / 32);
    slopes[0] = 1;
    return states[0];
  };
  GradientSolver solver(problem, f64("tsit5", StepControl::per_trajectory), loss);
  const Gradients first = solver.evaluate();
  EXPECT_THAT(order, ::testing::ElementsAre(0, 1, 2, 3));
  order.clear();
  expect_same_bits(solver.evaluate(), first, "another order");
  EXPECT_EQ(order[0], 1u);
  EXPECT_EQ(order[1], 2u);
}

// u' = u^2 from u0 blows up at t = 1 / u0.
Rhs blow_up() {
  return differentiable_function<1>("blow_up", [](auto, const auto& u, const auto&, auto& du) { du[0] = u[0] * u[0]; });
}

TEST(GradientBits, failed_trajectories_are_left_out_or_stop_the_run) {
  Problem problem{.rhs = blow_up(), .initial_states = {0.5, 5, 0.25}, .end_times = {1}, .save_times = {0.5, 1}};
  const Options options = f64("tsit5", StepControl::per_trajectory);
  const Gradients gradients = solve_with_gradients(problem, options, TrajectoryLoss(linear_loss));
  EXPECT_EQ(gradients.left_out, 1u);
  EXPECT_NE(gradients.records[1].status, Status::success);
  EXPECT_EQ(gradients.initial_states[1], 0);
  Problem alone = problem;
  alone.initial_states = {0.5};
  EXPECT_EQ(gradients.initial_states[0],
            solve_with_gradients(alone, options, TrajectoryLoss(linear_loss)).initial_states[0]);
  try {
    solve_with_gradients(problem, options, TrajectoryLoss(linear_loss), {.failed = FailedTrajectories::stop});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.field(), "trajectory 1");
    EXPECT_THAT(error.what(), ::testing::HasSubstr("at t = "));
  }
}

// x' = -p sqrt(x) below its threshold, and by what is not there at all from a negative state.
std::vector<Rhs> defined_from_zero_on() {
  const auto root = [](auto, const auto& u, const auto& p, auto& du) {
    using std::sqrt;
    du[0] = -p[0] * sqrt(u[0]);
  };
  const auto refuse = [](auto x) {
    if (x < 0) throw std::domain_error("negative");
  };
  const auto careful = [refuse](auto, const auto& u, const auto& p, auto& du) {
    refuse(u[0]);
    du[0] = -p[0] * u[0];
  };
  return {differentiable_function<1, 1>("root", root), differentiable_function<1, 1>("careful", careful),
          function_with_transpose<1, 1>(
              "careful by hand", careful,
              [refuse](auto, const auto& u, const auto& p, const auto& du_bar, const auto& u_bar, const auto& p_bar) {
                refuse(u[0]);
                u_bar[0] += -p[0] * du_bar[0];
                p_bar[0] += -u[0] * du_bar[0];
              }),
          differentiable_function_with_net<1, 1>(
              "with a net", small_net(1, 1),
              [refuse](auto, const auto& u, const auto&, const auto& in) {
                refuse(u[0]);
                in[0] = u[0];
              },
              [refuse](auto, const auto& u, const auto& p, const auto& net, auto& du) {
                refuse(u[0]);
                du[0] = -p[0] * u[0] + 0.1 * net[0];
              })};
}

TEST(GradientBits, trajectories_that_fail_at_their_start_leave_the_others_alone) {
  const Numbers whole = {1, 2, 1.5};
  for (const Rhs& rhs : defined_from_zero_on()) {
    for (const StepControl control : {StepControl::per_trajectory, StepControl::common, StepControl::fixed}) {
      Options options = f64(control == StepControl::fixed ? "rk4" : "tsit5", control);
      if (control == StepControl::fixed) options.dt = 0.05;
      const auto gradients = [&](const Numbers& starts, std::size_t bytes) {
        const Problem problem{
            .rhs = rhs, .initial_states = starts, .parameters = {0.5}, .end_times = {1}, .save_times = {0.5, 1}};
        return solve_with_gradients(problem, options, TrajectoryLoss(linear_loss), {.memory_bytes = bytes});
      };
      for (const std::size_t bytes : {std::size_t{1} << 30, std::size_t{1}}) {
        const Gradients expected = gradients(whole, bytes);
        const Gradients last = gradients({1, 2, 1.5, -1}, bytes);
        const std::string what = rhs->description() + ", " + options.method;
        EXPECT_EQ(last.left_out, 1u) << what;
        EXPECT_EQ(last.records[3].status, Status::not_finite) << what;
        EXPECT_EQ(last.initial_states,
                  Numbers({expected.initial_states[0], expected.initial_states[1], expected.initial_states[2], 0}))
            << what;
        EXPECT_EQ(last.parameters, expected.parameters) << what;
        EXPECT_EQ(last.weights, expected.weights) << what;
        const Gradients first = gradients({-1, 1, 2, 1.5}, bytes);
        EXPECT_EQ(first.left_out, 1u) << what;
        EXPECT_EQ(first.initial_states[0], 0) << what;
        EXPECT_TRUE(std::isfinite(first.parameters[0])) << what;
        const Gradients none = gradients({-1, -1}, bytes);
        EXPECT_EQ(none.left_out, 2u) << what;
        EXPECT_EQ(none.initial_states, Numbers({0, 0})) << what;
        EXPECT_EQ(none.parameters, Numbers({0})) << what;
      }
      const Problem problem{
          .rhs = rhs, .initial_states = {1, -1, 2}, .parameters = {0.5}, .end_times = {1}, .save_times = {1}};
      Problem apart = problem;
      apart.initial_states = {1, 2};
      const Sensitivities beside = solve_with_sensitivities(problem, options);
      const Sensitivities alone = solve_with_sensitivities(apart, options);
      EXPECT_EQ(beside.by_initial_state[0], alone.by_initial_state[0]) << rhs->description();
      EXPECT_EQ(beside.by_initial_state[2], alone.by_initial_state[1]) << rhs->description();
      EXPECT_EQ(beside.by_parameter[2], alone.by_parameter[1]) << rhs->description();
      EXPECT_TRUE(std::isnan(beside.by_initial_state[1])) << rhs->description();
      EXPECT_EQ(beside.end_states[1], -1) << rhs->description();
      Problem broken = problem;
      broken.initial_states = {-1};
      EXPECT_TRUE(std::isnan(solve_with_sensitivities(broken, options).by_initial_state[0])) << rhs->description();
    }
  }
}

// A fixed step may lead to a state that is a number and has no derivative: the trajectory fails in the next one.
TEST(GradientBits, trajectories_that_fixed_steps_lead_out_of_a_domain_leave_the_others_alone) {
  const auto refuse = [](auto x) {
    if (x < 0) throw std::domain_error("negative");
  };
  const auto falling = [refuse](auto, const auto& u, const auto& p, auto& du) {
    refuse(u[0]);
    du[0] = -p[0] + 0 * u[0];
  };
  const std::vector<Rhs> all = {
      differentiable_function<1, 1>("root",
                                    [](auto, const auto& u, const auto& p, auto& du) {
                                      using std::sqrt;
                                      du[0] = -p[0] + 1e-3 * sqrt(u[0]);
                                    }),
      differentiable_function<1, 1>("falling", falling),
      function_with_transpose<1, 1>(
          "falling by hand", falling,
          [refuse](auto, const auto& u, const auto&, const auto& du_bar, const auto&, const auto& p_bar) {
            refuse(u[0]);
            p_bar[0] += -du_bar[0];
          }),
      differentiable_function_with_net<1, 1>(
          "with a net", small_net(1, 1),
          [refuse](auto, const auto& u, const auto&, const auto& in) {
            refuse(u[0]);
            in[0] = u[0];
          },
          [refuse](auto, const auto& u, const auto& p, const auto& net, auto& du) {
            refuse(u[0]);
            du[0] = -p[0] + 1e-3 * net[0];
          })};
  for (const Rhs& rhs : all) {
    Options options = f64("euler", StepControl::fixed);
    options.dt = 0.05;
    const auto gradients = [&](const Numbers& starts, std::size_t bytes) {
      const Problem problem{
          .rhs = rhs, .initial_states = starts, .parameters = {0.5}, .end_times = {1}, .save_times = {0.5, 1}};
      return solve_with_gradients(problem, options, TrajectoryLoss(linear_loss), {.memory_bytes = bytes});
    };
    for (const std::size_t bytes : {std::size_t{1} << 30, std::size_t{1}}) {
      const Gradients expected = gradients({1, 2, 1.5}, bytes);
      const Gradients beside = gradients({1, 2, 1.5, 0.06}, bytes);
      EXPECT_EQ(beside.left_out, 1u) << rhs->description();
      EXPECT_EQ(beside.records[3].status, Status::not_finite) << rhs->description();
      EXPECT_EQ(beside.records[3].accepted, 3u) << rhs->description();
      EXPECT_EQ(beside.initial_states,
                Numbers({expected.initial_states[0], expected.initial_states[1], expected.initial_states[2], 0}))
          << rhs->description();
      EXPECT_EQ(beside.parameters, expected.parameters) << rhs->description();
      EXPECT_EQ(beside.weights, expected.weights) << rhs->description();
      // One that ends there succeeds, while the others go on.
      const Problem ending{.rhs = rhs,
                           .initial_states = {1, 2, 0.06},
                           .parameters = {0.5},
                           .end_times = {1, 1, 0.15},
                           .save_times = {0.15}};
      const Gradients ended =
          solve_with_gradients(ending, options, TrajectoryLoss(linear_loss), {.memory_bytes = bytes});
      EXPECT_EQ(ended.left_out, 0u) << rhs->description();
      EXPECT_GT(std::fabs(ended.initial_states[2]), 0.1) << rhs->description();
      EXPECT_TRUE(std::isfinite(ended.parameters[0])) << rhs->description();
      EXPECT_TRUE(std::ranges::all_of(ended.weights, [](double w) { return std::isfinite(w); })) << rhs->description();
    }
  }
}

// Behind an impulse, or a reset, into a state from which there is no way on.
TEST(GradientBits, trajectories_that_fail_behind_a_change_leave_the_others_alone) {
  for (const Rhs& rhs : defined_from_zero_on()) {
    for (const bool by_reset : {false, true}) {
      for (const StepControl control : {StepControl::per_trajectory, StepControl::common, StepControl::fixed}) {
        if (by_reset && control != StepControl::per_trajectory) continue;
        Options options = f64(control == StepControl::fixed ? "rk4" : "tsit5", control);
        if (control == StepControl::fixed) options.dt = 0.05;
        const auto problem = [&](const Numbers& starts) {
          Problem made{
              .rhs = rhs, .initial_states = starts, .parameters = {0.5}, .end_times = {1}, .save_times = {0.1, 0.5, 1}};
          if (by_reset) {
            made.resets = {
                {differentiable_event_function<1, 1>("low",
                                                     [](auto, const auto& u, const auto&) { return u[0] - 0.45; }),
                 differentiable_reset_function<1, 1>(
                     "below zero", [](auto, const auto& u, const auto&, auto& next) { next[0] = 0 * u[0] - 1; }),
                 TerminalEvent::Direction::falling}};
          } else {
            made.impulses = {{.time = 0.25, .component = 0, .change = -0.5}};
          }
          return made;
        };
        const std::string what = rhs->description() + ", " + options.method + (by_reset ? ", reset" : ", impulse");
        for (const std::size_t bytes : {std::size_t{1} << 30, std::size_t{1}}) {
          const auto gradients = [&](const Numbers& starts) {
            return solve_with_gradients(problem(starts), options, TrajectoryLoss(linear_loss), {.memory_bytes = bytes});
          };
          const Gradients expected = gradients({2, 3, 2.5});
          const Gradients last = gradients({2, 3, 2.5, 0.5});
          EXPECT_EQ(last.left_out, 1u) << what;
          EXPECT_EQ(last.records[3].status, Status::not_finite) << what;
          EXPECT_EQ(last.initial_states[3], 0) << what;
          if (control != StepControl::common) {  // whose steps are those of all
            EXPECT_TRUE(
                std::equal(expected.initial_states.begin(), expected.initial_states.end(), last.initial_states.begin()))
                << what;
            EXPECT_EQ(last.parameters, expected.parameters) << what;
            EXPECT_EQ(last.weights, expected.weights) << what;
          }
          const Gradients first = gradients({0.5, 2, 3, 2.5});
          EXPECT_EQ(first.records[0].status, Status::not_finite) << what;
          EXPECT_EQ(first.initial_states[0], 0) << what;
          EXPECT_TRUE(std::isfinite(first.initial_states[1]) && std::isfinite(first.parameters[0])) << what;
          EXPECT_TRUE(std::ranges::all_of(first.weights, [](double w) { return std::isfinite(w); })) << what;
          const Solution solution = solve(problem({0.5, 2, 3, 2.5}), options);
          for (std::size_t i = 0; i < 4; ++i) {
            EXPECT_EQ(first.records[i].status, solution.record(i).status) << what;
            EXPECT_EQ(first.records[i].evaluations, solution.record(i).evaluations) << what;
            EXPECT_EQ(first.records[i].end_time, solution.record(i).end_time) << what;
          }
        }
        const Sensitivities beside = solve_with_sensitivities(problem({2, 0.5, 3}), options);
        EXPECT_TRUE(std::isfinite(beside.by_initial_state[0]) && std::isfinite(beside.by_parameter[0])) << what;
        EXPECT_TRUE(std::isfinite(beside.by_initial_state[3])) << what;
        EXPECT_TRUE(std::isnan(beside.by_initial_state[4])) << what;
      }
    }
  }
}

// x(t) = x0 / (1 - x0 t): the one from 5 saves two points, at 0 and 0.1, and reaches neither 0.5 nor the end.
TEST(GradientBits, failed_trajectories_count_until_then_where_asked) {
  const Problem problem{
      .rhs = blow_up(), .initial_states = {0.5, 5, 0.25}, .end_times = {1}, .save_times = {0, 0.1, 0.5, 1}};
  for (const StepControl control : {StepControl::per_trajectory, StepControl::common, StepControl::fixed}) {
    Options options = f64(control == StepControl::fixed ? "rk4" : "tsit5", control);
    if (control == StepControl::fixed) options.dt = 0.01;
    const GradientOptions until{.failed = FailedTrajectories::count_until_then};
    const Gradients found = solve_with_gradients(problem, options, TrajectoryLoss(linear_loss), until);
    const Gradients without = solve_with_gradients(problem, options, TrajectoryLoss(linear_loss));
    EXPECT_EQ(found.left_out, 1u);
    EXPECT_EQ(found.initial_states[0], without.initial_states[0]);
    EXPECT_EQ(found.initial_states[2], without.initial_states[2]);
    const Sensitivities forward = solve_with_sensitivities(problem, options);
    std::vector<double> states(4, 0.0), weights(4);
    linear_loss(1, states, weights);
    const double expected = weights[0] * forward.by_initial_state[4] + weights[1] * forward.by_initial_state[5];
    EXPECT_NEAR(found.initial_states[1], expected, 1e-12 * std::fabs(expected));
    EXPECT_NEAR(found.initial_states[1], weights[0] + 4 * weights[1], 1e-3);  // dx/dx0 = 1 / (1 - x0 t)^2
    for (const auto failed : {FailedTrajectories::count_until_then, FailedTrajectories::leave_out}) {
      EXPECT_EQ(
          solve_with_gradients(problem, options, TrajectoryLoss(linear_loss), {.failed = failed, .memory_bytes = 1})
              .initial_states,
          (failed == FailedTrajectories::leave_out ? without : found).initial_states);
    }
  }
}

// u' = 10 u overflows float32 at t = 8.87. Nets' few trajectories are taken one by one, or as a tile.
TEST(GradientBits, nets_that_overflow_count_until_then_where_asked) {
  Mlp growing;
  growing.layers = {{.inputs = 1, .outputs = 1, .weights = {10}, .bias = {0}}};
  Problem problem{.rhs = net(growing), .initial_states = {1}, .end_times = {20}, .save_times = {0.5, 1, 20}};
  Options options;
  options.max_step = 0.01;
  for (const std::size_t bytes : {std::size_t{1} << 30, std::size_t{1} << 20}) {
    const Gradients found =
        solve_with_gradients(problem, options, TrajectoryLoss(linear_loss),
                             {.failed = FailedTrajectories::count_until_then, .memory_bytes = bytes});
    EXPECT_EQ(found.records[0].status, Status::not_finite);
    std::vector<double> states(3, 0.0), weights(3);
    linear_loss(0, states, weights);
    const double by_state = weights[0] * std::exp(5) + weights[1] * std::exp(10);
    const double by_weight = 0.5 * weights[0] * std::exp(5) + weights[1] * std::exp(10);
    EXPECT_NEAR(found.initial_states[0], by_state, 1e-4 * by_state);
    EXPECT_NEAR(found.weights[0], by_weight, 1e-4 * by_weight);
  }
}

TEST(GradientBits, refuses_what_it_cannot_differentiate) {
  Problem problem = ensemble(lorenz_case(), 1);
  problem.rhs =
      function<3, 3>("opaque", [](auto, const auto& u, const auto&, auto& du) { du[0] = du[1] = du[2] = u[0]; });
  EXPECT_THROW(solve_with_gradients(problem, f64("tsit5", StepControl::per_trajectory), TrajectoryLoss(linear_loss)),
               Error);
  problem = ensemble(lorenz_case(), 1);
  problem.event = TerminalEvent{event_function<3, 3>("x", [](auto, const auto& u, const auto&) { return u[0]; })};
  EXPECT_THROW(solve_with_gradients(problem, f64("tsit5", StepControl::per_trajectory), TrajectoryLoss(linear_loss)),
               Error);
  problem.event.reset();
  try {
    solve_with_gradients(problem, f64("tsit5", StepControl::per_trajectory), SquaredError{.targets = {1, 2}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "loss.targets: found 2 numbers, expected 18: 1 trajectories x 6 save points x 3 components");
  }
  const auto message = [&](const Loss& loss) {
    return message_of([&] { solve_with_gradients(problem, f64("tsit5", StepControl::per_trajectory), loss); });
  };
  SquaredError squares{.targets = Numbers(18)};
  squares.thresholds = {1, 2};
  EXPECT_EQ(message(squares),
            "loss.thresholds: found 2 numbers, expected 3, one for each component, 18, one for each target, or none");
  squares.thresholds = {1, 0, 1};
  EXPECT_EQ(message(squares), "loss.thresholds: found 0, expected numbers greater than 0, or infinity for none");
  EXPECT_EQ(message(TrajectoryLoss()), "loss: found an empty TrajectoryLoss, expected a function");
  EXPECT_EQ(message(EnsembleLoss()), "loss: found an empty EnsembleLoss, expected a function");
  EXPECT_EQ(message(EndLoss()), "loss: found an empty EndLoss, expected a function");
}

}  // namespace
}  // namespace lockstep::ode
