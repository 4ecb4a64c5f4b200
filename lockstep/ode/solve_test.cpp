// The engine against the plain reference integrator, bit for bit, over methods, controls, targets, threads and sizes.
#include "lockstep/ode/solve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/reference.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/testing/plain_function.h"

namespace lockstep::ode {
namespace {

using ::testing::ElementsAre;
using testing::plain_event;
using testing::plain_function;

Rhs lorenz() {
  return plain_function(3, 1, [](double, auto u, auto p, auto du) {
    using T = std::decay_t<decltype(u(0))>;
    du(0) = T(10) * (u(1) - u(0));
    du(1) = std::fma(u(0), p(0) - u(2), -u(1));
    du(2) = std::fma(u(0), u(1), -(T(8.0 / 3.0) * u(2)));
  });
}

// Trajectories of very different cost and shape: rho from quiet to chaotic, spans and starts of their own.
Problem ensemble(std::size_t count) {
  Problem problem;
  problem.rhs = lorenz();
  problem.start_times.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(i % 17) / 17;
    problem.initial_states.insert(problem.initial_states.end(), {1 + x, 0.1 * x, 2 * x});
    problem.parameters.push_back(28 * x);
    problem.start_times.push_back(0.25 * static_cast<double>(i % 3));
    problem.end_times.push_back(problem.start_times.back() + 0.2 + (i % 5 == 4 ? 3 : 0));
    for (const double share : {0.0, 0.1, 0.105, 0.5, 1.0}) {
      problem.save_times.push_back(problem.start_times.back() * (1 - share) + problem.end_times.back() * share);
    }
  }
  problem.save_times_per_trajectory = true;
  return problem;
}

template <class T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0) return false;
  }
  return true;
}

void expect_same(const Solution& a, const Solution& b) {
  if (a.precision() == Precision::f32) {
    EXPECT_TRUE(same_bits(a.states<float>(), b.states<float>()));
    EXPECT_TRUE(same_bits(a.end_states<float>(), b.end_states<float>()));
  } else {
    EXPECT_TRUE(same_bits(a.states<double>(), b.states<double>()));
    EXPECT_TRUE(same_bits(a.end_states<double>(), b.end_states<double>()));
  }
  ASSERT_EQ(a.trajectories(), b.trajectories());
  for (std::size_t i = 0; i < a.trajectories(); ++i) {
    EXPECT_EQ(a.record(i).status, b.record(i).status) << i;
    EXPECT_EQ(a.record(i).accepted, b.record(i).accepted) << i;
    EXPECT_EQ(a.record(i).rejected, b.record(i).rejected) << i;
    EXPECT_EQ(a.record(i).evaluations, b.record(i).evaluations) << i;
    EXPECT_EQ(a.record(i).end_time, b.record(i).end_time) << i;
  }
}

Options options_for(std::string_view name, Precision precision) {
  Options options;
  options.method = name;
  options.precision = precision;
  // A method of second order would take a hundred times the steps of the others at 1e-8.
  options.rtol = options.atol = precision == Precision::f32 || method(name).order < 3 ? 1e-5 : 1e-8;
  options.threads = 1;
  if (method(name).error.empty()) {
    options.control = StepControl::fixed;
    options.rtol = options.atol = 1e-6;
    options.dt = 0.0123;
  }
  return options;
}

class EngineAgainstReference : public ::testing::TestWithParam<std::tuple<std::string_view, Precision>> {};

TEST_P(EngineAgainstReference, has_the_same_bits_on_every_target) {
  const auto [name, precision] = GetParam();
  const Problem problem = ensemble(71);
  Options options = options_for(name, precision);
  const Solution expected = solve_reference(problem, options);
  for (const CpuTarget target : available_cpu_targets()) {
    SCOPED_TRACE(to_string(target));
    options.cpu_target = target;
    expect_same(expected, solve(problem, options));
  }
}

TEST_P(EngineAgainstReference, has_the_same_bits_with_fixed_steps) {
  const auto [name, precision] = GetParam();
  const Problem problem = ensemble(37);
  Options options = options_for(name, precision);
  options.control = StepControl::fixed;
  options.dt = 0.01;
  const Solution expected = solve_reference(problem, options);
  for (const CpuTarget target : available_cpu_targets()) {
    options.cpu_target = target;
    expect_same(expected, solve(problem, options));
  }
}

TEST_P(EngineAgainstReference, has_the_same_bits_in_common_steps) {
  const auto [name, precision] = GetParam();
  if (method(name).error.empty()) GTEST_SKIP() << "fixed steps alone";
  Options options = options_for(name, precision);
  options.control = StepControl::common;
  options.rtol = options.atol = 1e-3;
  for (const bool with_event : {false, true}) {
    for (const std::vector<double>& save_times : {std::vector<double>{}, {0.5}, {0, 0.1, 0.33, 0.5}}) {
      for (const bool compiled_in : {false, true}) {
        Problem problem = ensemble(37);
        problem.start_times = {0};
        problem.end_times = {0.5};
        problem.save_times = save_times;
        problem.save_times_per_trajectory = false;
        if (compiled_in) {
          problem.rhs = system("lorenz");
          problem.parameters = {10, 28, 8.0 / 3};
        } else {
          problem.initial_states[3 * 7] = 1e30;  // left behind
          problem.initial_states[3 * 35] = std::numeric_limits<double>::max();
        }
        if (with_event) {
          problem.event = TerminalEvent{plain_event(3, problem.rhs->parameters(), [](double, auto u, auto, auto out) {
            out(0) = u(0) - std::decay_t<decltype(u(0))>(3);
          })};
        }
        const Solution expected = solve_reference(problem, options);
        for (const CpuTarget target : available_cpu_targets()) {
          options.cpu_target = target;
          expect_same(expected, solve(problem, options));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(methods, EngineAgainstReference,
                         ::testing::Combine(::testing::ValuesIn(explicit_method_names()),
                                            ::testing::Values(Precision::f32, Precision::f64)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" +
                                  std::string(to_string(std::get<1>(info.param)));
                         });

TEST(Solve, systems_compiled_into_the_step_have_the_bits_of_the_reference) {
  std::size_t turn = 0;
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    for (const char* name : {"rk4", "tsit5", "dop853", "vern7", "vern9"}) {
      for (const bool fixed : {false, true}) {
        if (!fixed && method(name).error.empty()) continue;
        for (const bool save : {false, true}) {
          if (!is_tried(turn++, 11)) continue;
          Problem problem = ensemble(75);
          problem.rhs = system("lorenz");
          problem.parameters.clear();
          for (std::size_t i = 0; i < 75; ++i) {
            problem.parameters.insert(problem.parameters.end(), {10, 0.4 * static_cast<double>(i), 8.0 / 3});
          }
          problem.initial_states[3 * 40] = 1e30;  // overflows on the way, in float32
          if (!save) problem.save_times.clear();
          Options options = options_for(name, precision);
          options.control = fixed ? StepControl::fixed : StepControl::per_trajectory;
          options.dt = fixed ? 0.001 : 0;
          const Solution expected = solve_reference(problem, options);
          for (const CpuTarget target : available_cpu_targets()) {
            SCOPED_TRACE(std::string(name) + " " + std::string(to_string(target)));
            options.cpu_target = target;
            expect_same(expected, solve(problem, options));
          }
        }
      }
    }
  }
}

TEST(Solve, every_component_may_have_a_tolerance_of_its_own) {
  std::size_t turn = 0;
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    for (const char* name : {"bs3", "tsit5", "dop853"}) {  // bs3 is not compiled into one piece with the system
      for (const bool save : {false, true}) {
        if (!is_tried(turn++, 5)) continue;
        Problem problem = ensemble(41);
        problem.rhs = system("lorenz");
        problem.parameters = {10, 28, 8.0 / 3};
        if (!save) problem.save_times.clear();
        Options options = options_for(name, precision);
        const Solution one = solve(problem, options);
        options.component_atol = {options.atol, options.atol, options.atol};
        expect_same(one, solve(problem, options));
        options.component_atol = {100 * options.atol, 0.03 * options.atol, options.atol};
        const Solution expected = solve_reference(problem, options);
        EXPECT_NE(one.record(0).accepted, expected.record(0).accepted);
        for (const CpuTarget target : available_cpu_targets()) {
          SCOPED_TRACE(std::string(name) + " " + std::string(to_string(target)));
          options.cpu_target = target;
          expect_same(expected, solve(problem, options));
        }
      }
    }
  }
}

// The sizes of the blocks that a sink was asked for, ascending.
std::vector<std::size_t> blocks_of(std::size_t count, Precision precision, int threads) {
  struct Sink : SolutionSink {
    explicit Sink(Solution& the_solution) : solution(the_solution) {}
    SolutionBlock acquire(std::size_t first, std::size_t size) override {
      const std::lock_guard lock(mutex);
      blocks.push_back(size);
      return solution.block(first, size);
    }
    void commit(const SolutionBlock&) override {}
    Solution& solution;
    std::mutex mutex;
    std::vector<std::size_t> blocks;
  };
  const Problem problem = ensemble(count);
  Options options = options_for("tsit5", precision);
  options.threads = threads;
  Solution solution(precision, count, 3, problem.save_times, true);
  Sink sink(solution);
  solve(problem, options, sink);
  std::ranges::sort(sink.blocks);
  return sink.blocks;
}

TEST(Solve, threads_share_what_is_little_more_than_a_tile_evenly) {
  EXPECT_THAT(blocks_of(33, Precision::f64, 2), ElementsAre(9, 24));
  EXPECT_THAT(blocks_of(48, Precision::f64, 2), ElementsAre(24, 24));
  EXPECT_THAT(blocks_of(65, Precision::f64, 3), ElementsAre(17, 24, 24));
  EXPECT_THAT(blocks_of(33, Precision::f32, 2), ElementsAre(1, 32));  // 16 and 17, which takes two registers as well
  EXPECT_THAT(blocks_of(70, Precision::f32, 3), ElementsAre(6, 32, 32));
  // Each thread has a tile already.
  EXPECT_THAT(blocks_of(64, Precision::f64, 2), ElementsAre(32, 32));
  EXPECT_THAT(blocks_of(65, Precision::f64, 2), ElementsAre(1, 32, 32));
  EXPECT_THAT(blocks_of(33, Precision::f64, 1), ElementsAre(1, 32));
}

TEST(Solve, bits_do_not_depend_on_size_threads_or_order) {
  for (const std::size_t count : {1, 2, 31, 32, 33, 41, 97, 1009}) {
    const Problem problem = ensemble(count);
    Options options = options_for("tsit5", count == 41 ? Precision::f64 : Precision::f32);
    const Solution whole = solve(problem, options);
    for (const int threads : {2, 5}) {
      options.threads = threads;
      expect_same(whole, solve(problem, options));
    }
    Problem reversed = problem;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t j = count - 1 - i;
      std::copy_n(&problem.initial_states[3 * j], 3, &reversed.initial_states[3 * i]);
      std::copy_n(&problem.save_times[5 * j], 5, &reversed.save_times[5 * i]);
      reversed.parameters[i] = problem.parameters[j];
      reversed.start_times[i] = problem.start_times[j];
      reversed.end_times[i] = problem.end_times[j];
    }
    const Solution backwards = solve(reversed, options);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < 5; ++k) {
        for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(whole.state(i, k, c), backwards.state(count - 1 - i, k, c));
      }
    }
  }
}

TEST(Solve, an_empty_ensemble_is_solved) {
  Problem problem;
  problem.rhs = lorenz();
  problem.end_times = {1};
  EXPECT_EQ(solve(problem, {}).trajectories(), 0u);
}

TEST(Solve, integrates_backwards_to_where_it_came_from) {
  Problem problem = ensemble(5);
  Options options = options_for("dop853", Precision::f64);
  options.rtol = options.atol = 1e-12;
  const Solution forwards = solve(problem, options);
  Problem back = problem;
  std::swap(back.start_times, back.end_times);
  back.save_times = {};
  back.save_times_per_trajectory = false;
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t c = 0; c < 3; ++c) back.initial_states[3 * i + c] = forwards.end_state(i, c);
  }
  const Solution backwards = solve(back, options);
  expect_same(backwards, solve_reference(back, options));
  for (std::size_t i = 0; i < 4;
       ++i) {  // the fifth is long, and the Lorenz system is dissipative: errors grow backwards
    for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(backwards.end_state(i, c), problem.initial_states[3 * i + c], 1e-8);
  }
}

TEST(Solve, a_bad_trajectory_gets_a_status_and_spoils_no_neighbour) {
  // u' = u^2 blows up at t = 1/u0; a parameter of 2 makes the right-hand side NaN from t = 0.5 on.
  const auto rhs = plain_function(1, 1, [](double t, auto u, auto p, auto du) {
    using T = std::decay_t<decltype(u(0))>;
    du(0) = p(0) == T(2) && t > 0.5 ? std::numeric_limits<T>::quiet_NaN() : p(0) * u(0) * u(0);
  });
  Problem problem;
  problem.rhs = rhs;
  problem.end_times = {1};
  problem.save_times = {0.25, 0.75, 1};
  for (int i = 0; i < 40; ++i) {
    problem.initial_states.push_back(0.01 * (i + 1));
    problem.parameters.push_back(1);
  }
  Options options = options_for("tsit5", Precision::f64);
  const Solution good = solve(problem, options);
  problem.initial_states[7] = 3;
  problem.parameters[11] = 2;
  problem.parameters[13] = 0;
  const Solution mixed = solve(problem, options);
  expect_same(mixed, solve_reference(problem, options));
  EXPECT_NE(mixed.record(7).status, Status::success);
  EXPECT_NEAR(mixed.record(7).end_time, 1.0 / 3, 1e-6);
  EXPECT_TRUE(std::isfinite(mixed.state(7, 0, 0)));
  EXPECT_TRUE(std::isnan(mixed.state(7, 1, 0)));
  EXPECT_EQ(mixed.record(11).status, Status::not_finite);
  EXPECT_NEAR(mixed.record(11).end_time, 0.5, 1e-6);
  for (std::size_t i = 0; i < 40; ++i) {
    if (i == 7 || i == 11 || i == 13) continue;
    for (std::size_t k = 0; k < 3; ++k) ASSERT_EQ(good.state(i, k, 0), mixed.state(i, k, 0));
  }
}

TEST(Solve, attempts_are_limited_for_each_trajectory) {
  Problem problem = ensemble(50);
  Options options = options_for("tsit5", Precision::f32);
  options.max_steps = 12;
  const Solution solution = solve(problem, options);
  expect_same(solution, solve_reference(problem, options));
  EXPECT_EQ(solution.record(4).status, Status::too_many_steps);
  EXPECT_EQ(solution.record(4).accepted + solution.record(4).rejected, 12);
  EXPECT_EQ(solution.record(0).status, Status::success);
}

TEST(Solve, an_event_ends_a_trajectory_where_it_crosses) {
  // A falling body: height 1 + v t - t^2/2, terminal velocity none; it lands at t = v + sqrt(v^2 + 2).
  Problem problem;
  problem.rhs = plain_function(2, 0, [](double, auto u, auto, auto du) {
    du(0) = u(1);
    du(1) = -1;
  });
  problem.event = TerminalEvent{plain_event(2, 0, [](double, auto u, auto, auto out) { out(0) = u(0); }),
                                TerminalEvent::Direction::falling};
  for (int i = 0; i < 45; ++i) problem.initial_states.insert(problem.initial_states.end(), {1, 0.05 * i});
  problem.end_times = {3};
  for (int k = 0; k <= 30; ++k) problem.save_times.push_back(0.1 * k);
  for (const char* name : {"tsit5", "dop853", "bs3"}) {
    Options options = options_for(name, Precision::f64);
    const Solution solution = solve(problem, options);
    expect_same(solution, solve_reference(problem, options));
    // The motion is quadratic: every interpolant is exact but for rounding. Horner's rule and the sum over stages each
    // lose at most a few ulp of h |k| sum |p|, here with h <= 3 and |k| <= 3.
    double weights = 0;
    for (const double p : method(name).interpolant) weights += std::fabs(p);
    const double bound = 4 * 0x1p-52 * 3 * 3 * weights;
    for (std::size_t i = 0; i < 45; ++i) {
      const double v = 0.05 * static_cast<double>(i);
      const double landing = v + std::sqrt(v * v + 2);
      if (landing > 3) {
        EXPECT_EQ(solution.record(i).status, Status::success);
        continue;
      }
      EXPECT_EQ(solution.record(i).status, Status::terminated);
      EXPECT_NEAR(solution.record(i).end_time, landing, bound);  // the speed at landing is above 1
      EXPECT_NEAR(solution.end_state(i, 0), 0, bound);
      for (std::size_t k = 0; k <= 30; ++k) {
        if (std::fabs(problem.save_times[k] - landing) < 1e-12) continue;  // either side is right
        EXPECT_EQ(std::isnan(solution.state(i, k, 0)), problem.save_times[k] > landing);
      }
    }
  }
}

TEST(Solve, common_control_gives_the_same_bits_on_any_number_of_threads_and_target) {
  Problem problem = ensemble(520);  // seventeen tiles: two threads at work
  problem.start_times = {0};
  problem.end_times = {0.5};
  problem.save_times = {0, 0.1, 0.33, 0.5};
  problem.save_times_per_trajectory = false;
  Options options = options_for("tsit5", Precision::f32);
  options.control = StepControl::common;
  options.cpu_target = CpuTarget::scalar;
  const Solution first = solve(problem, options);
  for (const CpuTarget target : available_cpu_targets()) {
    for (const int threads : {1, 2, 5}) {
      options.cpu_target = target;
      options.threads = threads;
      expect_same(first, solve(problem, options));
    }
  }
  for (std::size_t i = 0; i < 520; ++i) EXPECT_EQ(first.record(i).accepted, first.record(0).accepted);
  // One trajectory alone takes the steps it would take on its own.
  Problem single = ensemble(1);
  single.start_times = {0};
  single.end_times = {0.5};
  single.save_times = {0.1, 0.5};
  single.save_times_per_trajectory = false;
  const Solution together = solve(single, options);
  options.control = StepControl::per_trajectory;
  expect_same(together, solve(single, options));
}

TEST(Solve, the_end_saved_alone_is_the_end_saved_after_others) {
  Problem problem;
  problem.rhs = system("lorenz");
  problem.parameters = {10, 28, 8.0 / 3};
  for (int i = 0; i < 40; ++i) problem.initial_states.insert(problem.initial_states.end(), {1 + 0.1 * i, 1, 20});
  problem.end_times = {0.5};
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    for (const StepControl control : {StepControl::per_trajectory, StepControl::common, StepControl::fixed}) {
      Options options = options_for("tsit5", precision);
      options.control = control;
      if (control == StepControl::fixed) options.dt = 0.01;
      problem.save_times = {0, 0.33, 0.5};
      const Solution many = solve(problem, options);
      problem.save_times = {0.5};
      const Solution one = solve(problem, options);
      for (std::size_t i = 0; i < one.trajectories(); ++i) {
        for (std::size_t c = 0; c < 3; ++c) {
          ASSERT_EQ(one.state(i, 0, c), many.state(i, 2, c)) << "trajectory " << i;
          ASSERT_EQ(one.state(i, 0, c), one.end_state(i, c)) << "trajectory " << i;
        }
      }
    }
  }
}

TEST(Solve, a_cancelled_solve_keeps_what_is_finished_and_the_rest_is_not_a_number) {
  Problem problem = ensemble(4000);
  Options options = options_for("tsit5", Precision::f32);
  CancelToken cancel;
  RunControl control{.cancel = &cancel, .progress = [&](std::size_t done, std::size_t) {
                       if (done > 0) cancel.request();
                     }};
  const Solution partial = solve(problem, options, control);
  const Solution whole = solve(problem, options);
  std::size_t finished = 0, never_begun = 0;
  for (std::size_t i = 0; i < 4000; ++i) {
    if (partial.record(i).status == Status::cancelled) {
      ASSERT_TRUE(std::isnan(partial.state(i, 4, 0))) << i;
      never_begun += std::isnan(partial.end_state(i, 2)) ? 1 : 0;
      continue;
    }
    ++finished;
    ASSERT_EQ(partial.state(i, 4, 0), whole.state(i, 4, 0));
  }
  EXPECT_GT(finished, 0u);
  EXPECT_GT(never_begun, 0u);
}

}  // namespace
}  // namespace lockstep::ode
