// States that change all at once: exact solutions across doses, the engine's bits against the plain reference
// integrator's, and derivatives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "lockstep/core/testing/message_of.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/ode/differentiable_event.h"
#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/function.h"
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

using testing::expect_same;
using ::testing::HasSubstr;
using testing::tight;
using testing::weight;

// A drug in the gut and in the blood: absorbed at the rate p0, gone at p1.
Rhs absorbed() {
  return differentiable_function<2, 2>("absorbed", [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = -p[0] * u[0];
    du[1] = p[0] * u[0] - p[1] * u[1];
  });
}

// 45 patients with starts, ends and rates of their own, some of which begin or end at a dose.
Problem treated(std::size_t count = 45) {
  Problem problem;
  problem.rhs = absorbed();
  problem.start_times.clear();
  const double starts[] = {0, 0.5, 1.25}, ends[] = {4, 3, 2.5, 3.75};
  for (std::size_t i = 0; i < count; ++i) {
    const double start = starts[i % 3], end = ends[i % 4];
    for (const double u : {2 + 0.01 * static_cast<double>(i), 0.5}) problem.initial_states.push_back(u);
    problem.parameters.push_back(1.5 + 0.02 * static_cast<double>(i));
    problem.parameters.push_back(0.4 + 0.01 * static_cast<double>(i));
    problem.start_times.push_back(start);
    problem.end_times.push_back(end);
    for (const double time : {start, 1.5, 2.25, end}) problem.save_times.push_back(time);
  }
  problem.save_times_per_trajectory = true;
  return problem;
}
// Two at once, in the order that counts; one before every start and one behind every end.
const std::vector<Impulse> kShared{{2, 0, 3}, {1.5, 1, 0.25, 0.5}, {1.5, 1, 1}, {0, 0, 1},
                                   {3, 0, 2}, {-1, 0, 9},          {9, 0, 9}};
Problem dosed(std::size_t count = 45) {
  Problem problem = treated(count);
  problem.impulses = kShared;
  return problem;
}
// Of each patient: none, one, or several.
Problem dosed_apart(std::size_t count = 45) {
  Problem problem = treated(count);
  problem.first_impulse = {0};
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < i % 4; ++k) {
      const double time = problem.start_times[i] + 0.3 * static_cast<double>(k * (i % 5));
      problem.impulses.push_back({time, k % 2, 1 + 0.1 * static_cast<double>(i), k == 2 ? 0.5 : 1});
    }
    problem.first_impulse.push_back(problem.impulses.size());
  }
  return problem;
}

// The exact state at `end`: between impulses the equations are linear.
std::array<double, 2> exact(const Problem& problem, std::size_t i, double end) {
  double u = problem.initial_states[2 * i], v = problem.initial_states[2 * i + 1], t = problem.start_times[i];
  const double* p = problem.parameters_of(i);
  const auto flow = [&](double to) {
    const double fast = std::exp(-p[0] * (to - t)), slow = std::exp(-p[1] * (to - t));
    v = v * slow + u * p[0] / (p[0] - p[1]) * (slow - fast);
    u *= fast;
    t = to;
  };
  std::vector<Impulse> impulses(problem.impulses_of(i).begin(), problem.impulses_of(i).end());
  std::ranges::stable_sort(impulses, {}, &Impulse::time);
  for (const Impulse& impulse : impulses) {
    if (impulse.time < problem.start_times[i] || impulse.time >= end) continue;
    flow(impulse.time);
    double& x = impulse.component == 0 ? u : v;
    x = impulse.factor * x + impulse.change;
  }
  flow(end);
  return {u, v};
}

Options fixed_steps(std::string_view method, Precision precision = Precision::f64) {
  Options options;
  options.control = StepControl::fixed;
  options.dt = 0.0625;  // ends at every impulse of dosed()
  options.method = method;
  options.precision = precision;
  return options;
}

// Errors of steps are a few times the tolerance, and decay; float32 rounds some 40 steps of numbers below 8.
TEST(Impulses, solutions_across_them_are_exact_to_the_tolerance) {
  for (const Precision precision : {Precision::f64, Precision::f32}) {
    for (const Problem& problem : {dosed(), dosed_apart()}) {
      const Solution solution = solve(problem, tight(precision));
      for (std::size_t i = 0; i < problem.trajectories(); ++i) {
        ASSERT_EQ(solution.record(i).status, Status::success);
        for (std::size_t k = 0; k < problem.save_points(); ++k) {
          const auto expected = exact(problem, i, problem.save_times_of(i)[k]);
          for (std::size_t c = 0; c < 2; ++c)
            EXPECT_NEAR(solution.state(i, k, c), expected[c], precision == Precision::f64 ? 1e-9 : 4e-5)
                << "trajectory " << i << ", save point " << k << ", component " << c;
        }
      }
    }
  }
}

TEST(Impulses, the_engine_has_the_bits_of_the_reference) {
  std::size_t turn = 0;
  for (const Precision precision : {Precision::f64, Precision::f32}) {
    for (const std::string_view name : method_names()) {
      const bool adaptive = !method(name).error.empty();
      for (const bool apart : {false, true}) {
        if (!is_tried(turn++, 5)) continue;
        Problem problem = apart ? dosed_apart() : dosed();
        Options options = adaptive ? tight(precision) : fixed_steps(name, precision);
        if (!adaptive && apart) continue;
        if (adaptive) options.rtol = options.atol = method(name).order < 4 ? 1e-4 : 1e-6;
        options.method = name;
        const std::string what = std::string(name) + (apart ? ", apart" : "");
        const Solution expected = solve_reference(problem, options);
        expect_same(solve(problem, options), expected, what);
        options.threads = 2;
        options.cpu_target = CpuTarget::scalar;
        expect_same(solve(problem, options), expected, what + ", another target");
        expect_same(solve(problem.part(0, 45), options), expected, what + ", as a part");
        if (adaptive && !apart) {
          problem.start_times = {0};
          problem.end_times = {3.5};
          problem.save_times = {0, 1.5, 2, 3.5};
          problem.save_times_per_trajectory = false;
          options.control = StepControl::common;
          expect_same(solve(problem, options), solve_reference(problem, options), what + ", common steps");
        }
        if (!apart)
          expect_same(solve(dosed(), fixed_steps(name, precision)),
                      solve_reference(dosed(), fixed_steps(name, precision)), what + ", fixed steps");
      }
    }
  }
}

// By code generated for the steps, which many trajectories of a graph get.
TEST(Impulses, generated_code_has_the_same_bits) {
  graph::Graph g;
  g.inputs = {{"u", 0, 2}, {"p", 1, 2}};
  g.nodes = {{"du", graph::Binary{graph::BinaryKind::multiply}, {0, 1}}};
  g.outputs = {{"du", 2, 2}};
  Problem problem = dosed_apart(600);
  problem.rhs = net(g);
  for (double& p : problem.parameters) p = -p;
  problem.save_times.clear();
  problem.save_times_per_trajectory = false;
  for (const Precision precision : {Precision::f64, Precision::f32})
    expect_same(solve(problem, tight(precision)), solve_reference(problem, tight(precision)), "many");
}

TEST(Impulses, parts_and_selections_keep_those_of_their_trajectories) {
  const Problem whole = dosed_apart();
  const Solution expected = solve(whole, tight());
  const Solution part = solve(whole.part(40, 5), tight());
  const std::vector<std::size_t> rows{4, 3, 17, 0};  // 0 and 4 have none
  const Solution selection = solve(whole.selection(rows), tight());
  const Solution without = solve(whole.selection({0, 4, 8}), tight());
  for (std::size_t k = 0; k < whole.save_points(); ++k) {
    for (std::size_t c = 0; c < 2; ++c) {
      for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(part.state(i, k, c), expected.state(40 + i, k, c));
      for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(selection.state(i, k, c), expected.state(rows[i], k, c));
      for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(without.state(i, k, c), expected.state(4 * i, k, c));
    }
  }
}

TEST(Impulses, selections_of_trajectories_that_there_are_not_are_refused) {
  const Problem whole = dosed_apart();
  const std::size_t all = whole.trajectories();
  EXPECT_EQ(message_of([&] {
              static_cast<void>(whole.selection({0, all}));
            }),
            "problem.selection[1]: found trajectory " + std::to_string(all) + ", expected trajectories below " +
                std::to_string(all));
  EXPECT_TRUE(whole.selection({}).initial_states.empty());
}

// The state there is the one before, at the end of a span too, and behind it only where a span begins.
TEST(Impulses, save_points_at_one_hold_the_state_before_it) {
  Problem problem;
  problem.rhs = function<1, 0>("still", [](auto, const auto& u, const auto&, auto& du) { du[0] = 0 * u[0]; });
  problem.initial_states = {1};
  problem.end_times = {3};
  problem.save_times = {0, 0.5, 1, 1.5, 3};
  problem.impulses = {{0, 0, 10}, {1, 0, 100}, {3, 0, 1000}};
  Options options = tight();
  for (const StepControl control : {StepControl::per_trajectory, StepControl::common, StepControl::fixed}) {
    options.control = control;
    options.dt = control == StepControl::fixed ? 0.25 : 0;
    const Solution solution = solve(problem, options);
    for (std::size_t k = 0; k < 5; ++k) EXPECT_EQ(solution.state(0, k, 0), (std::array{1, 11, 11, 111, 111}[k])) << k;
    EXPECT_EQ(solution.end_state(0, 0), 111);
  }
  problem.end_times = {0};
  problem.save_times = {0};
  EXPECT_EQ(solve(problem, tight()).end_state(0, 0), 1);  // a span without length
}

TEST(Impulses, the_last_attempt_allowed_may_end_at_one) {
  std::size_t turn = 0;
  for (Options options : {tight(), fixed_steps("tsit5")}) {
    for (options.max_steps = 1; options.max_steps < 40; ++options.max_steps) {
      if (!is_tried(turn++, 5)) continue;
      expect_same(solve(dosed(), options), solve_reference(dosed(), options),
                  std::to_string(options.max_steps) + " steps");
    }
  }
}

TEST(Impulses, events_see_what_they_do) {
  Problem problem = dosed();
  problem.event = TerminalEvent{
      testing::plain_event(2, 2, [](double, auto u, auto, auto out) { out(0) = u(0) - decltype(u(0))(2.5); }),
      TerminalEvent::Direction::rising};
  const Solution solution = solve(problem, tight());
  expect_same(solution, solve_reference(problem, tight()), "events");
  // Rates of 1.5 to 2.4 leave less than 1 of 2.4 and a dose at 0 by time 2, where 3 more pass 2.5.
  for (std::size_t i = 0; i < 45; ++i) {
    if (problem.start_times[i] != 0) continue;
    EXPECT_EQ(solution.record(i).status, Status::terminated);
    EXPECT_EQ(solution.record(i).end_time, 2) << i;
    EXPECT_NEAR(solution.end_state(i, 0), exact(problem, i, 2)[0] + 3, 1e-9) << i;
  }
  problem.start_times = {0};
  problem.end_times = {3.5};
  problem.save_times = {1.5, 2, 3.5};
  problem.save_times_per_trajectory = false;
  Options common = tight();
  common.control = StepControl::common;
  expect_same(solve(problem, common), solve_reference(problem, common), "common steps");
  expect_same(solve(problem, fixed_steps("rk4")), solve_reference(problem, fixed_steps("rk4")), "fixed steps");
}

// What is back on its own side by the end of the step behind has been at its event all the same.
TEST(Impulses, an_event_may_last_no_step) {
  Problem problem;
  problem.rhs = function<1, 0>("decay", [](auto, const auto& u, const auto&, auto& du) { du[0] = -5 * u[0]; });
  problem.initial_states = {0.5, 0.5, 0.5};
  problem.end_times = {3};
  problem.first_impulse = {0, 1, 2, 3};
  problem.impulses = {{1, 0, 1.01}, {1, 0, 0.9}, {1, 0, 1, 0}};  // beyond 1, below it, onto it
  problem.event = TerminalEvent{testing::plain_event(1, 0, [](double, auto u, auto, auto out) { out(0) = u(0) - 1; }),
                                TerminalEvent::Direction::rising};
  Options options = tight();
  for (const double tolerance : {1e-3, 1e-10}) {
    options.rtol = options.atol = tolerance;
    const Solution solution = solve(problem, options);
    expect_same(solution, solve_reference(problem, options), "an event");
    for (const std::size_t i : {0u, 2u}) {
      EXPECT_EQ(solution.record(i).status, Status::terminated);
      EXPECT_EQ(solution.record(i).end_time, 1);
    }
    EXPECT_EQ(solution.end_state(2, 0), 1);
    EXPECT_EQ(solution.record(1).status, Status::success);
  }
}

// Then the end is the impulse's time, whatever the state: dx/dx0 is that of the state before, times the factor.
TEST(Impulses, derivatives_of_an_end_by_one_leave_its_time_alone) {
  Problem problem;
  problem.rhs = differentiable_function<2, 1>("rise", [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = p[0];
    du[1] = 0.3 * u[0];
  });
  problem.initial_states = {0.01, 1, 0.02, 1.1};
  problem.parameters = {0.1};
  problem.end_times = {3};
  problem.impulses = {{1, 0, 2, 0.5}, {1, 1, 0, 3}};
  problem.event = TerminalEvent{
      differentiable_event_function<2, 1>("high", [](auto, const auto& u, const auto&) { return u[0] - 1; }),
      TerminalEvent::Direction::rising};
  const EndLoss loss = [](std::size_t, std::span<const double>, const TrajectoryEnd& end, EndSlopes& slopes) {
    slopes.end_time = 7;
    slopes.end_state[0] = 1;
    slopes.end_state[1] = 10;
    return 7 * end.time + end.state[0] + 10 * end.state[1];
  };
  const Gradients back = solve_with_gradients(problem, tight(), loss);
  const Sensitivities forward = solve_with_sensitivities(problem, tight());
  // x(1) = x0 + a, y(1) = y0 + 0.3 (x0 + a / 2); behind it 0.5 x + 2 and 3 y.
  double by_a = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(forward.records[i].status, Status::terminated);
    EXPECT_EQ(forward.records[i].end_time, 1);
    EXPECT_NEAR(back.initial_states[2 * i], 0.5 + 10 * 3 * 0.3, 1e-12);
    EXPECT_NEAR(back.initial_states[2 * i + 1], 30, 1e-12);
    EXPECT_THAT(std::vector(&forward.end_time_by_initial_state[2 * i], &forward.end_time_by_initial_state[2 * i] + 2),
                ::testing::ElementsAre(0, 0));
    const double* const by_start = &forward.end_state_by_initial_state[4 * i];
    EXPECT_NEAR(by_start[0], 0.5, 1e-12);
    EXPECT_NEAR(by_start[1], 0, 1e-12);
    EXPECT_NEAR(by_start[2], 0.9, 1e-12);
    EXPECT_NEAR(by_start[3], 3, 1e-12);
    EXPECT_NEAR(forward.end_state_by_parameter[2 * i], 0.5, 1e-12);
    EXPECT_NEAR(forward.end_state_by_parameter[2 * i + 1], 0.45, 1e-12);
    by_a += 0.5 + 4.5;
  }
  EXPECT_NEAR(back.parameters[0], by_a, 1e-12);
}

// Nearer than fixed steps tell apart both are given; a little farther one is refused, rather than lost.
TEST(Impulses, neighbours_of_one_fixed_step_are_both_given_or_refused) {
  Problem problem;
  problem.rhs = function<1, 0>("still", [](auto, const auto& u, const auto&, auto& du) { du[0] = 0 * u[0]; });
  problem.initial_states = {0};
  problem.end_times = {2};
  Options options = fixed_steps("rk4");
  options.dt = 0.1;
  for (const double gap : {0.0, 0.5e-10, 0.9e-10, 1.1e-10, 1.5e-10, 1.9e-10, 3e-10}) {
    problem.impulses = {{1, 0, 1}, {1 + gap, 0, 100}};
    const std::string refused = message_of([&] { EXPECT_EQ(solve(problem, options).end_state(0, 0), 101) << gap; });
    if (gap < 1e-10) {
      EXPECT_EQ(refused, "no error") << gap;
    } else {
      EXPECT_THAT(refused, HasSubstr("expected times at which fixed steps end")) << gap;
    }
  }
}

// An impulse that no number survives ends its trajectory alone.
TEST(Impulses, overflow_is_a_status_of_one_trajectory) {
  Problem problem = dosed_apart();
  const Solution expected = solve(problem, tight());
  problem.impulses[problem.first_impulse[3]] = {problem.start_times[3] + 0.1, 0, std::numeric_limits<double>::max(),
                                                1e300};
  problem.initial_states[6] = 1e300;
  const Solution solution = solve(problem, tight());
  EXPECT_EQ(solution.record(3).status, Status::not_finite);
  for (std::size_t i = 0; i < 45; ++i) {
    if (i == 3) continue;
    EXPECT_EQ(solution.end_state(i, 1), expected.end_state(i, 1)) << i;
  }
}

// Of sum_k,c w_kc u_c(t_k) by central differences of the exact solution, whose third derivatives are below 100: with
// h = 1e-5 they err by 2e-9, and 1e-10 of rounding.
TEST(Impulses, derivatives_pass_them) {
  for (const StepControl control : {StepControl::per_trajectory, StepControl::common, StepControl::fixed}) {
    for (const bool apart : {false, true}) {
      if (apart && control != StepControl::per_trajectory) continue;
      Problem problem = apart ? dosed_apart(40) : dosed(40);
      if (control == StepControl::common) {
        problem.start_times.assign(1, 0);
        problem.end_times.assign(1, 3);
        problem.save_times = {0, 1.5, 2, 3};
        problem.save_times_per_trajectory = false;
      }
      Options options = control == StepControl::fixed ? fixed_steps("dop853") : tight();
      options.control = control;
      const std::size_t saves = problem.save_points();
      const Gradients back = solve_with_gradients(problem, options, testing::weighted_sum);
      const Gradients again =
          solve_with_gradients(problem, options, testing::weighted_sum, {.memory_bytes = 1});  // steps replayed
      EXPECT_EQ(back.initial_states, again.initial_states);
      EXPECT_EQ(back.parameters, again.parameters);
      const Sensitivities forward = solve_with_sensitivities(problem, options);
      const Solution plain = solve(problem, options);
      for (std::size_t i = 0; i < problem.trajectories(); ++i) {
        SCOPED_TRACE("trajectory " + std::to_string(i));
        Problem own = problem.part(i, 1);
        const auto value = [&] {
          double sum = 0;
          for (std::size_t k = 0; k < saves; ++k) {
            const auto u = exact(own, 0, own.save_times_of(0)[k]);
            for (std::size_t c = 0; c < 2; ++c) sum += weight(2 * k + c) * u[c];
          }
          return sum;
        };
        const auto slope = [&](double& number) { return testing::slope(number, value, 1e-5); };
        for (std::size_t d = 0; d < 2; ++d) {
          double by_start = 0, by_parameter = 0;
          for (std::size_t at = 0; at < 2 * saves; ++at) {
            EXPECT_EQ(forward.states[i * 2 * saves + at], plain.state(i, at / 2, at % 2));
            by_start += weight(at) * forward.by_initial_state[(i * 2 * saves + at) * 2 + d];
            by_parameter += weight(at) * forward.by_parameter[(i * 2 * saves + at) * 2 + d];
          }
          const double start = slope(own.initial_states[d]), parameter = slope(own.parameters[d]);
          EXPECT_NEAR(back.initial_states[2 * i + d], start, 1e-8);
          EXPECT_NEAR(back.parameters[2 * i + d], parameter, 1e-8);
          EXPECT_NEAR(by_start, start, 1e-8);
          EXPECT_NEAR(by_parameter, parameter, 1e-8);
        }
      }
    }
  }
}

TEST(Impulses, wrong_ones_are_refused) {
  const auto refusal = [](const auto& spoil) {
    Problem problem = dosed_apart();
    Options options;
    spoil(problem, options);
    return message_of([&] { solve(problem, options); });
  };
  EXPECT_THAT(refusal([](Problem& p, Options&) { p.impulses[1].component = 2; }),
              HasSubstr("problem.impulses[1].component: found 2, expected a component below 2"));
  EXPECT_THAT(refusal([](Problem& p, Options&) { p.impulses[2].change = std::nan(""); }),
              HasSubstr("problem.impulses[2].change: found nan, expected a finite number"));
  EXPECT_THAT(refusal([](Problem& p, Options&) { p.first_impulse.pop_back(); }),
              HasSubstr("problem.first_impulse: found 45 numbers, expected 46, one more than trajectories"));
  EXPECT_THAT(refusal([](Problem& p, Options&) { p.impulses.pop_back(); }), HasSubstr("problem.first_impulse: found"));
  EXPECT_THAT(refusal([](Problem& p, Options&) {
                p.save_times.clear();
                p.save_times_per_trajectory = false;
                p.end_times[7] = -1;
              }),
              HasSubstr("problem.impulses: found some, and a span that runs backwards for trajectory 7"));
  EXPECT_THAT(refusal([](Problem&, Options& o) { o.control = StepControl::common; }),
              HasSubstr("options.control: found common with impulses of each trajectory's own"));
  EXPECT_THAT(refusal([](Problem& p, Options& o) {
                p = dosed();
                o.control = StepControl::fixed;
                o.dt = 0.3;
              }),
              HasSubstr("problem.impulses: found 2 within a step of trajectory 0, expected times at which fixed steps "
                        "end; choose a dt"));
}

}  // namespace
}  // namespace lockstep::ode
