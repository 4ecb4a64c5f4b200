// Steps that end where the right-hand side jumps or bends, adaptive ones made to and fixed ones that do: exact
// solutions across jumps, the engine's bits against the plain reference integrator's, and derivatives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "lockstep/core/testing/message_of.h"
#include "lockstep/ode/detail/stops.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/reference.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/sensitivity.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/jumps.h"
#include "lockstep/ode/testing/plain_function.h"

namespace lockstep::ode {
namespace {

using testing::exact;
using testing::expect_same;
using ::testing::HasSubstr;
using testing::kKnots;
using testing::kValues;
using testing::plain_function;
using testing::table;
using testing::tight;

// u' = s(t) - p u, s read at (t - shift) / scale.
Rhs forced(graph::Interpolate s, double shift = 0, double scale = 1) {
  graph::Graph g;
  g.inputs = {{"u", 0, 1}, {"p", 1, 1}, {"t", 2, 1}};
  g.nodes = {{"shift", graph::Constant{{shift}}, {}},
             {"since", graph::Binary{graph::BinaryKind::subtract}, {2, 3}},
             {"scale", graph::Constant{{scale}}, {}},
             {"at", graph::Binary{graph::BinaryKind::divide}, {4, 5}},
             {"s.table", std::move(s), {6}},
             {"decay", graph::Binary{graph::BinaryKind::multiply}, {1, 0}},
             {"du", graph::Binary{graph::BinaryKind::subtract}, {7, 8}}};
  g.outputs = {{"du", 9, 1}};
  return net(std::move(g));
}

// Starts and ends before, at and behind knots; some spans backwards.
Problem switched(Rhs rhs, std::size_t count = 45, double between = 1.27) {
  Problem problem;
  problem.rhs = std::move(rhs);
  problem.start_times.clear();
  const double starts[] = {0, 0.5, between, 3}, ends[] = {3.5, 2.7, 1.3, 0.25, 1.25};
  for (std::size_t i = 0; i < count; ++i) {
    const double start = starts[i % 4], end = ends[i % 5];
    problem.initial_states.push_back(1 + 0.01 * static_cast<double>(i));
    problem.parameters.push_back(0.5 + 0.02 * static_cast<double>(i));
    problem.start_times.push_back(start);
    problem.end_times.push_back(end);
    for (const double share : {0.25, 0.75, 1.0})
      problem.save_times.push_back(share == 1 ? end : start + share * (end - start));
  }
  problem.save_times_per_trajectory = true;
  return problem;
}

// The error of a step is a few times the tolerance at most; a dozen steps and the growth of 3 units backwards at a rate
// of up to 1.4, e^4.2, leave 1e-11 x 12 x 66; float32 rounds each step by 6e-8 of up to 4, three times that of
// evaluations.
TEST(Stops, solutions_across_jumps_are_exact_to_the_tolerance) {
  for (const Precision precision : {Precision::f64, Precision::f32}) {
    for (const auto& [shift, scale] : {std::pair{0.0, 1.0}, {0.0, 0.3}, {24.0, 1.0}}) {
      std::vector<double> knots = kKnots;
      for (double& knot : knots) knot = (knot - shift) / scale;
      const Problem problem = switched(forced(table(knots, kValues, true), shift, scale));
      const Solution solution = solve(problem, tight(precision));
      // Read at (t - shift) / scale in float32 the time itself is rounded, to 2e-6 at 24.
      const double bound = precision == Precision::f64 ? 1e-8 : (shift == 0 ? 2e-4 : 1e-3);
      for (std::size_t i = 0; i < problem.trajectories(); ++i) {
        ASSERT_EQ(solution.record(i).status, Status::success);
        EXPECT_LE(solution.record(i).rejected, 6) << i;
        for (std::size_t k = 0; k < 3; ++k) {
          const double expected = exact(problem.initial_states[i], problem.start_times[i], problem.save_times_of(i)[k],
                                        problem.parameters[i]);
          EXPECT_NEAR(solution.state(i, k, 0), expected, bound * std::max(1.0, std::fabs(expected)))
              << "trajectory " << i << ", save point " << k << ", scale " << scale;
        }
      }
    }
  }
}

// However coarse float32 is at the time: nothing here reads it.
TEST(Stops, impulses_happen_at_their_own_times_in_float32) {
  Problem problem;
  problem.rhs = plain_function(1, 0, [](auto, const auto& u, const auto&, const auto& du) { du(0) = u(0) * -0.125F; });
  problem.initial_states = {0};
  problem.start_times = {6e5};
  problem.end_times = {6e5 + 1000};
  problem.save_times = {6e5 + 100.25, 6e5 + 500.25, 6e5 + 1000};
  for (int i = 1; i < 2000; ++i) problem.impulses.push_back({.time = 6e5 + 0.5 * i, .component = 0, .change = 1});
  problem.impulses.push_back({.time = 6e5 + 999.9375, .component = 0, .change = 3});
  for (const StepControl control : {StepControl::per_trajectory, StepControl::fixed}) {
    Options options = tight();
    options.control = control;
    if (control == StepControl::fixed) options.dt = 0.0625;
    const Solution expected = solve(problem, options);
    // A sum of decaying parts, exact.
    double sum = 0;
    for (const Impulse& impulse : problem.impulses)
      sum += impulse.change * std::exp(-0.125 * (6e5 + 1000 - impulse.time));
    EXPECT_NEAR(expected.end_state(0, 0), sum, 1e-8 * sum);
    options.precision = Precision::f32;
    options.rtol = options.atol = 1e-6;
    const Solution solution = solve(problem, options);
    for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(solution.state(0, k, 0), expected.state(0, k, 0), 1e-4) << k;
  }
}

// Where the slope in time is not finite at a stop at 0: u' = sqrt(t), and t^(1/10), which is steeper beside it.
TEST(Stops, a_slope_that_is_not_finite_at_zero_is_passed) {
  graph::Graph root;
  root.inputs = {{"u", 0, 1}, {"t", 1, 1}};
  root.nodes = {{"du", graph::Unary{graph::UnaryKind::square_root}, {1}}};
  root.outputs = {{"du", 2, 1}};
  graph::Graph power = root;
  power.nodes = {{"log", graph::Unary{graph::UnaryKind::log}, {1}},
                 {"tenth", graph::Constant{{0.1}}, {}},
                 {"exponent", graph::Binary{graph::BinaryKind::multiply}, {2, 3}},
                 {"du", graph::Unary{graph::UnaryKind::exp}, {4}}};
  power.outputs = {{"du", 5, 1}};
  for (const double end : {6.0, 1e5}) {
    for (const auto& [g, exponent] : {std::pair{root, 0.5}, {power, 0.1}}) {
      Problem problem;
      problem.rhs = net(g);
      problem.initial_states = {0};
      problem.end_times = {end};
      Options options;
      options.precision = Precision::f64;
      options.method = "rodas5p";
      options.stops = {0};
      const Solution solution = solve(problem, options);
      ASSERT_EQ(solution.record(0).status, Status::success) << exponent << ", to " << end;
      EXPECT_NEAR(solution.end_state(0, 0) / (std::pow(end, 1 + exponent) / (1 + exponent)), 1, 10 * options.rtol);
    }
  }
}

TEST(Stops, the_engine_has_the_bits_of_the_reference) {
  for (const Precision precision : {Precision::f64, Precision::f32}) {
    for (const std::string_view name : method_names()) {
      if (method(name).error.empty()) continue;
      for (const bool steps : {true, false}) {
        Problem problem = switched(forced(table(kKnots, kValues, steps)));
        Options options = tight(precision);
        options.rtol = options.atol = method(name).order < 4 ? 1e-4 : 1e-6;
        options.method = name;
        const std::string what = std::string(name) + (steps ? ", steps" : ", lines");
        const Solution expected = solve_reference(problem, options);
        expect_same(solve(problem, options), expected, what);
        options.threads = 2;
        options.cpu_target = CpuTarget::scalar;
        expect_same(solve(problem, options), expected, what + ", another target");
        problem.start_times = {0.5};
        problem.end_times = {3};
        problem.save_times = {1, 1.25, 2, 3};
        problem.save_times_per_trajectory = false;
        options.control = StepControl::common;
        expect_same(solve(problem, options), solve_reference(problem, options), what + ", common steps");
      }
    }
  }
}

// Steps of which one ends at each jump, to rounding: 26 of 0.05 lead to 1.3.
Problem on_a_grid(std::size_t count = 45, bool steps = true) {
  return switched(forced(table(kKnots, kValues, steps)), count, 1.2);
}
Options fixed_steps(double dt, std::string_view method, Precision precision = Precision::f64) {
  Options options;
  options.control = StepControl::fixed;
  options.dt = dt;
  options.method = method;
  options.precision = precision;
  return options;
}
double largest_error(const Problem& problem, const Options& options) {
  const Solution solution = solve(problem, options);
  double most = 0;
  for (std::size_t i = 0; i < problem.trajectories(); ++i) {
    const double expected =
        exact(problem.initial_states[i], problem.start_times[i], problem.end_times[i], problem.parameters[i]);
    most = std::max(most, std::fabs(solution.end_state(i, 0) - expected) / std::max(1.0, std::fabs(expected)));
  }
  return most;
}

// Half the steps leave 2^-order of the error, and half as much again for the next term; 1e-12 of rounding. With what
// lies behind a jump in the step before it, every method but those without a stage at a step's end is of order 1.
TEST(Stops, fixed_steps_that_end_at_jumps_keep_their_order) {
  const Problem problem = on_a_grid();
  for (const std::string_view name : method_names()) {
    SCOPED_TRACE(name);
    const double coarse = largest_error(problem, fixed_steps(0.05, name));
    const double fine = largest_error(problem, fixed_steps(0.025, name));
    EXPECT_LE(fine, 1.5 * coarse * std::exp2(-method(name).order) + 1e-12);
    Options across = fixed_steps(0.05, name);
    across.stop_at_knots = false;
    if (name != "euler" && name != "midpoint") {
      EXPECT_GT(largest_error(problem, across), 10 * coarse);
    }
  }
  EXPECT_LE(largest_error(problem, fixed_steps(0.05, "dop853")), 1e-11);
  EXPECT_LE(largest_error(problem, fixed_steps(0.05, "dop853", Precision::f32)), 1e-4);  // 70 roundings, grown by e^4.2
}

TEST(Stops, fixed_steps_have_the_bits_of_the_reference) {
  for (const Precision precision : {Precision::f64, Precision::f32}) {
    for (const std::string_view name : method_names()) {
      for (const bool steps : {true, false})
        expect_same(solve(on_a_grid(45, steps), fixed_steps(0.05, name, precision)),
                    solve_reference(on_a_grid(45, steps), fixed_steps(0.05, name, precision)), std::string(name));
    }
    const Problem many = on_a_grid(600);  // by generated code
    expect_same(solve(many, fixed_steps(0.01, "rk4", precision)),
                solve_reference(many, fixed_steps(0.01, "rk4", precision)), "many");
  }
  Problem problem = on_a_grid();
  problem.event = TerminalEvent{
      testing::plain_event(1, 1, [](double, auto u, auto, auto out) { out(0) = u(0) - decltype(u(0))(1.2); }), {}};
  expect_same(solve(problem, fixed_steps(0.05, "tsit5")), solve_reference(problem, fixed_steps(0.05, "tsit5")),
              "events");
}

// Who has made all steps at a jump makes no evaluation behind it.
TEST(Stops, the_last_attempt_allowed_may_end_at_one) {
  for (Options options : {tight(), fixed_steps(0.05, "tsit5")}) {
    for (options.max_steps = 1; options.max_steps < 40; ++options.max_steps)
      expect_same(solve(on_a_grid(), options), solve_reference(on_a_grid(), options),
                  std::to_string(options.max_steps) + " steps");
  }
}

TEST(Stops, jumps_within_fixed_steps_are_found) {
  const Problem problem = on_a_grid();
  const auto passed = [&](const Options& options) { return passed_jump(problem, options, 100); };
  EXPECT_FALSE(passed(fixed_steps(0.05, "rk4")));
  EXPECT_FALSE(passed(tight()));
  const auto found = passed(fixed_steps(0.5, "rk4"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->time, 1.25);
  EXPECT_EQ(found->trajectory, 0u);
  Options across = fixed_steps(0.5, "rk4");
  across.stop_at_knots = false;
  EXPECT_FALSE(passed(across));
}

TEST(Stops, code_generated_for_the_steps_has_the_same_bits) {
  Problem problem = switched(forced(table(kKnots, kValues, true)), 600);
  problem.save_times.clear();
  problem.save_times_per_trajectory = false;
  for (const Precision precision : {Precision::f64, Precision::f32})
    expect_same(solve(problem, tight(precision)), solve_reference(problem, tight(precision)), "many");
}

TEST(Stops, events_are_located_between_them) {
  Problem problem = switched(forced(table(kKnots, kValues, true)));
  problem.event = TerminalEvent{
      testing::plain_event(1, 1, [](double, auto u, auto, auto out) { out(0) = u(0) - decltype(u(0))(1.2); }), {}};
  expect_same(solve(problem, tight()), solve_reference(problem, tight()), "events");
}

// A caller's own function, whose jumps nobody can know.
TEST(Stops, given_stops_make_steps_end_at_a_functions_jumps) {
  Problem problem = switched(plain_function(1, 1, [](double t, auto u, auto p, auto du) {
    using T = std::decay_t<decltype(u(0))>;
    const double s = t < 1.25 ? 0 : t < 1.3 ? 3 : t < 2.7 ? -2 : 1;
    du(0) = T(s) - p(0) * u(0);
  }));
  Options options = tight();
  const Solution blind = solve(problem, options);
  options.stops = {2.7, 1.25, 1.3, 1.25};
  const Solution solution = solve(problem, options);
  std::int64_t rejected = 0, rejected_blind = 0;
  for (std::size_t i = 0; i < problem.trajectories(); ++i) {
    rejected += solution.record(i).rejected;
    rejected_blind += blind.record(i).rejected;
    const double expected =
        exact(problem.initial_states[i], problem.start_times[i], problem.end_times[i], problem.parameters[i]);
    EXPECT_NEAR(solution.state(i, 2, 0), expected, 1e-8 * std::max(1.0, std::fabs(expected))) << i;
  }
  EXPECT_LT(rejected * 4, rejected_blind);
  expect_same(solution, solve_reference(problem, options), "a function");
}

TEST(Stops, knots_are_known_of_what_reads_a_multiple_of_the_time) {
  const auto times = [](const Rhs& rhs) {
    std::vector<double> all;
    for (const TimeKnot& knot : rhs->time_knots({0, 5}, {})) all.push_back(knot.time);
    return all;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(times(forced(table({1, 2, 4}, {0, 5, 5}, false), 10, 2)), ElementsAre(12, 14));  // level from 2 on
  EXPECT_THAT(times(forced(table({1, 2, 3, 4}, {0, 0, 5, 5}, true))), ElementsAre(3));
  EXPECT_TRUE(forced(table({1, 2}, {0, 1}, true))->time_knots({0, 5}, {})[0].jumps);
  EXPECT_FALSE(forced(table({1, 2}, {0, 1}, false))->time_knots({0, 5}, {})[0].jumps);
  // du = u + |t - 3| + (t < 5) + max(-t, -7), a sum with another.
  graph::Graph g;
  g.inputs = {{"u", 0, 1}, {"t", 1, 1}};
  g.nodes = {{"3", graph::Constant{{3}}, {}},
             {"5", graph::Constant{{5}}, {}},
             {"-7", graph::Constant{{-7}}, {}},
             {"t-3", graph::Binary{graph::BinaryKind::subtract}, {1, 2}},
             {"abs", graph::Unary{graph::UnaryKind::absolute}, {5}},
             {"less", graph::Binary{graph::BinaryKind::less}, {1, 3}},
             {"-t", graph::Unary{graph::UnaryKind::negate}, {1}},
             {"max", graph::Binary{graph::BinaryKind::maximum}, {8, 4}},
             {"a", graph::Binary{graph::BinaryKind::add}, {6, 7}},
             {"b", graph::Binary{graph::BinaryKind::add}, {10, 9}},
             {"du", graph::Binary{graph::BinaryKind::add}, {0, 11}}};
  g.outputs = {{"du", 12, 1}};
  EXPECT_THAT(times(net(g)), ElementsAre(3, 5, 7));
  EXPECT_THAT(times(sum(net(g), forced(table({1, 2}, {0, 1}, true)))), ElementsAre(3, 5, 7, 2));
}

TEST(Stops, times_that_the_precision_does_not_tell_apart_are_one) {
  Problem problem = switched(forced(table({0.5, 1, 1.0000001}, {0, 1, 2}, true)));
  EXPECT_EQ(detail::Stops(problem, tight(Precision::f32)).times(0).count, 1);
  Options options = tight();
  options.stops = {2, 1.5, 2};
  const detail::Stops stops(problem, options);
  const detail::StopTimes times = stops.times(0);
  ASSERT_EQ(times.count, 4);
  EXPECT_EQ(times.time[2], 1.5);
  EXPECT_TRUE(times.low[3] < 2 && 2 < times.high[3]);
  options.stop_at_knots = false;
  EXPECT_EQ(detail::Stops(problem, options).times(0).count, 2);
  options.control = StepControl::fixed;
  options.dt = 0.5;
  EXPECT_EQ(detail::Stops(problem, options).times(0).count, 2);
  // Sides no farther than fixed steps resolve, and no nearer than they end.
  options.dt = 1e-16;
  EXPECT_LE(detail::Stops(problem, options).times(0).high[0], 1.5 + 1e-16);
  options.dt = 1;
  EXPECT_EQ(detail::Stops(problem, options).times(0).high[0], 1.5 + 1e-9);
}

// A stop at a jump takes nothing from the sides that the jump's own argument needs, read at t + 5000; nor another jump.
TEST(Stops, joined_ones_have_the_widest_sides) {
  std::vector<double> knots = kKnots;
  for (double& knot : knots) knot += 5000;
  const Problem problem = switched(forced(table(knots, kValues, true), -5000));
  Options options = tight();
  const detail::Stops alone(problem, options);
  options.stops.assign(kKnots.begin() + 1, kKnots.end());
  const detail::Stops both(problem, options);
  ASSERT_EQ(both.times(0).count, alone.times(0).count);
  for (std::int32_t k = 0; k < both.times(0).count; ++k) {
    EXPECT_LE(both.times(0).low[k], alone.times(0).low[k]) << k;
    EXPECT_GE(both.times(0).high[k], alone.times(0).high[k]) << k;
  }
  const Solution solution = solve(problem, options);
  for (std::size_t i = 0; i < problem.trajectories(); ++i) {
    ASSERT_EQ(solution.record(i).status, Status::success);
    EXPECT_LE(solution.record(i).rejected, 6) << i;
    const double expected =
        exact(problem.initial_states[i], problem.start_times[i], problem.end_times[i], problem.parameters[i]);
    EXPECT_NEAR(solution.state(i, 2, 0), expected, 1e-8 * std::max(1.0, std::fabs(expected))) << i;
  }
}

TEST(Stops, wrong_ones_are_refused) {
  const Problem problem = switched(forced(table(kKnots, kValues, true)));
  Options options;
  options.stops = {1, std::nan("")};
  EXPECT_THAT(message_of([&] { solve(problem, options); }),
              HasSubstr("options.stops[1]: found nan, expected a finite"));
  options.stops = {1, 1.01};
  options.control = StepControl::fixed;
  options.dt = 0.1;
  EXPECT_THAT(message_of([&] { solve(problem, options); }),
              HasSubstr("options.stops: found 1.01 within a step of trajectory 0, expected times at which fixed steps "
                        "end; choose a dt whose steps end there, or leave dt out"));
}

// d/du0 = exp(-p T); d/dp by central differences of the exact solution, which err by h^2 / 6 of a third derivative
// below 30: 5e-10 with h = 1e-5, and 1e-11 of rounding.
TEST(Stops, derivatives_pass_jumps) {
  for (const StepControl control : {StepControl::per_trajectory, StepControl::common, StepControl::fixed}) {
    Problem problem =
        control == StepControl::fixed ? on_a_grid(40) : switched(forced(table(kKnots, kValues, true)), 40);
    if (control == StepControl::common) {
      problem.start_times = {0.5};
      problem.end_times = {2.9};
      problem.save_times = {1.27, 2.9};
      problem.save_times_per_trajectory = false;
    }
    Options options = control == StepControl::fixed ? fixed_steps(0.05, "dop853") : tight();
    options.control = control;
    const std::size_t saves = problem.save_points(), last = saves - 1;
    const TrajectoryLoss end_state = [last](std::size_t, std::span<const double> states, std::span<double> bar) {
      bar[last] = 1;
      return states[last];
    };
    const Sensitivities forward = solve_with_sensitivities(problem, options);
    const Gradients back = solve_with_gradients(problem, options, end_state);
    const Gradients again = solve_with_gradients(problem, options, end_state, {.memory_bytes = 1});  // steps replayed
    EXPECT_EQ(back.initial_states, again.initial_states);
    EXPECT_EQ(back.parameters, again.parameters);
    const Solution solution = solve(problem, options);
    for (std::size_t i = 0; i < problem.trajectories(); ++i) {
      const double start = problem.start_time(i), end = problem.end_time(i), p = problem.parameters[i];
      const double by_state = std::exp(-p * (end - start)), size = std::max(1.0, by_state);
      const auto at = [&](double rate) { return exact(problem.initial_states[i], start, end, rate); };
      const double by_rate = (at(p + 1e-5) - at(p - 1e-5)) / 2e-5;
      EXPECT_NEAR(forward.by_initial_state[i * saves + last], by_state, 1e-8 * size) << i;
      EXPECT_NEAR(forward.by_parameter[i * saves + last], by_rate, 1e-7 * size) << i;
      EXPECT_NEAR(back.initial_states[i], forward.by_initial_state[i * saves + last], 1e-13 * size) << i;
      EXPECT_NEAR(back.parameters[i], forward.by_parameter[i * saves + last], 1e-12 * size) << i;
      EXPECT_EQ(forward.states[i * saves + last], solution.state(i, last, 0)) << i;
      EXPECT_EQ(back.records[i].evaluations, solution.record(i).evaluations) << i;
    }
  }
}

}  // namespace
}  // namespace lockstep::ode
