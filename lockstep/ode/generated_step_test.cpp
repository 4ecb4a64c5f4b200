// Solves whose steps are generated machine code against the same solves by the general kernels.
#include "lockstep/ode/cpu/generated_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "lockstep/ode/cpu/solve_context.h"
#include "lockstep/ode/function.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode {
namespace {

using graph::Binary;
using graph::BinaryKind;
using graph::Columns;
using graph::Graph;

// The Lorenz equations, operation by operation; where `with_time`, t is added to each; where `with_functions`, sines of
// the state and an exponential are.
Graph lorenz(bool with_time, bool with_functions = false) {
  Graph g;
  g.inputs = {{"u", 0, 3}, {"p", 1, 3}};
  if (with_time) g.inputs.push_back({"t", 2, 1});
  const auto add = [&](graph::Operation operation, std::vector<std::size_t> inputs) {
    g.nodes.push_back({"n" + std::to_string(g.nodes.size()), std::move(operation), std::move(inputs)});
    return g.inputs.size() + g.nodes.size() - 1;
  };
  const auto both = [&](BinaryKind kind, std::size_t a, std::size_t b) { return add(Binary{kind}, {a, b}); };
  std::vector<std::size_t> u, p;
  for (std::uint32_t i = 0; i < 3; ++i) {
    u.push_back(add(Columns{{i}}, {0}));
    p.push_back(add(Columns{{i}}, {1}));
  }
  const auto dx = both(BinaryKind::multiply, p[0], both(BinaryKind::subtract, u[1], u[0]));
  const auto dy =
      both(BinaryKind::subtract, both(BinaryKind::multiply, u[0], both(BinaryKind::subtract, p[1], u[2])), u[1]);
  const auto dz =
      both(BinaryKind::subtract, both(BinaryKind::multiply, u[0], u[1]), both(BinaryKind::multiply, p[2], u[2]));
  auto out = add(graph::Concatenate{}, {dx, dy, dz});
  if (with_time) out = both(BinaryKind::add, out, 2);
  if (with_functions) {
    const auto sines = add(graph::Activate{{ActivationKind::sin}}, {0});
    const auto bell = add(graph::Unary{graph::UnaryKind::exp},
                          {add(graph::Unary{graph::UnaryKind::negate}, {both(BinaryKind::multiply, u[0], u[0])})});
    out = both(BinaryKind::add, out, both(BinaryKind::multiply, sines, bell));
  }
  g.outputs = {{"du", out, 3}};
  return g;
}

// As many as are worth the code; one that leaves the numbers at once, one on its way.
Problem ensemble(bool with_time, bool saves) {
  Problem problem;
  problem.rhs = net(lorenz(with_time));
  for (int i = 0; i < 260; ++i) {
    const double x = i == 20 ? 1e30 : i == 33 ? 1e9 : 1 + 0.007 * i;
    problem.initial_states.insert(problem.initial_states.end(), {x, 1, 20});
    problem.parameters.insert(problem.parameters.end(), {10, 0.1 * i, 8.0 / 3});
  }
  problem.end_times = {0.15};
  problem.save_times = saves ? std::vector<double>{0, 0.03, 0.033, 0.15} : std::vector<double>{0.15};
  return problem;
}

template <class T>
void expect_same_numbers(const std::vector<T>& found, const std::vector<T>& expected, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] != found[i] && expected[i] != expected[i]) continue;
    ASSERT_EQ(std::memcmp(&found[i], &expected[i], sizeof(T)), 0)
        << what << ", number " << i << ": " << found[i] << " for " << expected[i];
  }
}

Solution solved(const Problem& problem, const Options& options, bool generated) {
  if (!generated) setenv("LOCKSTEP_GENERATED_CODE", "off", 1);
  Solution solution = solve(problem, options);
  unsetenv("LOCKSTEP_GENERATED_CODE");
  return solution;
}

std::vector<double> numbers_of(const Solution& solution) {
  std::vector<double> numbers;
  for (std::size_t i = 0; i < solution.trajectories(); ++i) {
    for (std::size_t k = 0; k < solution.save_points(); ++k) {
      for (std::size_t c = 0; c < 3; ++c) numbers.push_back(solution.state(i, k, c));
    }
    for (std::size_t c = 0; c < 3; ++c) numbers.push_back(solution.end_state(i, c));
    const TrajectoryRecord& record = solution.record(i);
    numbers.insert(numbers.end(),
                   {static_cast<double>(record.status), static_cast<double>(record.accepted),
                    static_cast<double>(record.rejected), static_cast<double>(record.evaluations), record.end_time});
  }
  return numbers;
}

void expect_the_general_kernels_bits(StepControl control, bool with_time) {
  for (const CpuTarget target : available_cpu_targets()) {
    if (!LaneCode::available(target)) continue;
    for (const std::string_view name : method_names()) {
      if (control != StepControl::fixed && method(name).error.empty()) continue;
      if (with_time && name != "rk4" && name != "tsit5" && name != "dop853") continue;
      for (const Precision precision : {Precision::f32, Precision::f64}) {
        for (const bool saves : {false, true}) {
          Problem problem = ensemble(with_time, saves);
          if (control == StepControl::common) {  // a trajectory that fails would end them all
            problem.initial_states[3 * 20] = problem.initial_states[3 * 33] = 2;
          }
          Options options;
          options.method = name;
          options.control = control;
          options.precision = precision;
          options.cpu_target = target;
          options.dt = control == StepControl::fixed ? 0.01 : 0;
          options.rtol = options.atol = 1e-5;
          options.max_steps = 60;
          options.threads = 1;
          expect_same_numbers(numbers_of(solved(problem, options, true)), numbers_of(solved(problem, options, false)),
                              std::string(to_string(target)) + " " + std::string(name) + " " +
                                  std::string(to_string(precision)) + (saves ? " with saves" : ""));
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(GeneratedStep, fixed_steps_have_the_general_kernels_bits) {
  expect_the_general_kernels_bits(StepControl::fixed, false);
}
TEST(GeneratedStep, adaptive_steps_have_the_general_kernels_bits) {
  expect_the_general_kernels_bits(StepControl::per_trajectory, false);
}
TEST(GeneratedStep, common_steps_have_the_general_kernels_bits) {
  expect_the_general_kernels_bits(StepControl::common, false);
}
TEST(GeneratedStep, stages_are_evaluated_at_their_times) {
  expect_the_general_kernels_bits(StepControl::fixed, true);
  expect_the_general_kernels_bits(StepControl::per_trajectory, true);
}

// The first `count` trajectories, over a span in which each makes more steps than code is waited for.
Problem first_few(std::size_t count, bool saves) {
  Problem problem = ensemble(false, saves);
  problem.initial_states[3 * 20] = problem.initial_states[3 * 33] = 2;
  problem.initial_states.resize(3 * count);
  problem.parameters.resize(3 * count);
  for (std::size_t i = 0; i < count; ++i) problem.parameters[3 * i + 1] = 28 + 0.01 * static_cast<double>(i);
  problem.end_times = {5};
  if (!saves) problem.save_times = {5};
  return problem;
}

Options adaptive(Precision precision) {
  Options options;
  options.precision = precision;
  options.rtol = options.atol = 1e-6;
  return options;
}

TEST(GeneratedStep, code_taken_on_the_way_has_the_same_bits) {
  for (const std::size_t count : {1, 2, 8, 9, 33, 255, 256}) {
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      for (const StepControl control : {StepControl::per_trajectory, StepControl::common}) {
        for (const bool saves : {false, true}) {
          Options options = adaptive(precision);
          options.control = control;
          options.threads = count == 255 ? 2 : 1;
          const Problem problem = first_few(count, saves);
          const Solution general = solved(problem, options, false);
          ASSERT_GT(general.record(0).accepted, 200);
          const auto without = numbers_of(general);
          const std::string what =
              std::to_string(count) + " " + std::string(to_string(precision)) + (saves ? " with saves" : "");
          expect_same_numbers(numbers_of(solved(problem, options, true)), without, what);
          expect_same_numbers(numbers_of(solved(problem, options, true)), without, what + ", again");
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

// Registers take turns there: tiles of one to four of them, full and not.
TEST(GeneratedStep, steps_that_call_functions_have_the_general_kernels_bits) {
  for (const CpuTarget target : available_cpu_targets()) {
    if (!LaneCode::available(target)) continue;
    for (const std::size_t count : {1, 5, 9, 17, 25, 32, 39}) {
      for (const Precision precision : {Precision::f32, Precision::f64}) {
        for (const StepControl control : {StepControl::per_trajectory, StepControl::fixed}) {
          Options options = adaptive(precision);
          options.control = control;
          options.cpu_target = target;
          options.dt = control == StepControl::fixed ? 0.01 : 0;
          options.threads = 1;
          Problem problem = first_few(count, false);
          problem.rhs = net(lorenz(false, true));
          const std::string what =
              std::string(to_string(target)) + " " + std::to_string(count) + " " + std::string(to_string(precision));
          const Solution made = solved(problem, options, true);
          ASSERT_GT(made.record(0).accepted, 200) << what;
          expect_same_numbers(numbers_of(made), numbers_of(solved(problem, options, false)), what);
          expect_same_numbers(numbers_of(solved(problem, options, true)), numbers_of(made), what + ", again");
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(GeneratedStep, an_event_after_code_was_taken_is_found_at_the_same_time) {
  Problem problem = first_few(3, false);
  problem.parameters = {10, 28, 8.0 / 3};
  problem.event = TerminalEvent{
      event_function<3, 3>("late", [](auto t, const auto& u, const auto&) { return u[0] * 0.01 + t - 2.5; })};
  const Options options = adaptive(Precision::f64);
  expect_same_numbers(numbers_of(solved(problem, options, true)), numbers_of(solved(problem, options, false)), "event");
  EXPECT_EQ(solve(problem, options).record(0).status, Status::terminated);
}

// What a solve with these options leaves for the next one.
cpu::KeptStep<double> left_by_solves(const Problem& problem, const Options& options) {
  const cpu::SolveContext<double> context(problem, options, best_cpu_target());
  return cpu::kept_step(context.step.settings, 3);
}

bool begins_with_code(const Problem& problem, const Options& options) {
  cpu::SolveContext<double> context(problem, options, best_cpu_target());
  context.generate_code(best_cpu_target());
  return context.step.settings.generated != nullptr;
}

TEST(GeneratedStep, few_trajectories_take_code_once_they_made_many_steps) {
  if (!LaneCode::available(best_cpu_target())) GTEST_SKIP() << "no code is generated for this machine";
  for (const StepControl control : {StepControl::per_trajectory, StepControl::common}) {
    Problem problem = first_few(1, false);
    Options options = adaptive(Precision::f64);
    options.control = control;
    EXPECT_FALSE(begins_with_code(problem, options));
    problem.end_times = problem.save_times = {0.01};
    solve(problem, options);
    EXPECT_EQ(left_by_solves(problem, options).code, nullptr);
    problem.end_times = problem.save_times = {5};
    solve(problem, options);
    EXPECT_NE(left_by_solves(problem, options).code, nullptr);
    EXPECT_TRUE(begins_with_code(problem, options));  // the next one need not wait
    options.rtol = 1e-5;                              // a constant of the code
    EXPECT_FALSE(begins_with_code(problem, options));
  }
}

TEST(GeneratedStep, steps_of_short_solves_add_up) {
  if (!LaneCode::available(best_cpu_target())) GTEST_SKIP() << "no code is generated for this machine";
  Problem problem = first_few(1, false);
  problem.end_times = problem.save_times = {0.05};
  const Options options = adaptive(Precision::f64);
  int solves = 0;
  while (!begins_with_code(problem, options) && solves < 100) {
    solve(problem, options);
    ++solves;
  }
  EXPECT_GT(solves, 2);
  EXPECT_LT(solves, 100);
}

TEST(GeneratedStep, steps_known_in_advance_decide_at_once) {
  if (!LaneCode::available(best_cpu_target())) GTEST_SKIP() << "no code is generated for this machine";
  const Problem problem = first_few(8, false);
  Options options;
  options.precision = Precision::f64;
  options.control = StepControl::fixed;
  options.dt = 0.1;
  EXPECT_FALSE(begins_with_code(problem, options));
  options.dt = 0.001;
  EXPECT_TRUE(begins_with_code(problem, options));
}

TEST(GeneratedStep, a_right_hand_side_is_lowered_once) {
  const Rhs rhs = net(lorenz(false));
  const CpuTarget target = best_cpu_target();
  EXPECT_EQ(rhs->lower_f64(target), rhs->lower_f64(target));
  EXPECT_EQ(rhs->lower_f32(target), rhs->lower_f32(target));
  EXPECT_NE(rhs->lower_f64(target), net(lorenz(false))->lower_f64(target));
  if (!LaneCode::available(target)) return;
  const auto with_code = rhs->lower_f64(target);
  setenv("LOCKSTEP_GENERATED_CODE", "off", 1);
  EXPECT_NE(rhs->lower_f64(target), with_code);
  unsetenv("LOCKSTEP_GENERATED_CODE");
}

TEST(GeneratedStep, explain_tells_where_it_is_taken) {
  if (!LaneCode::available(best_cpu_target())) GTEST_SKIP() << "no code is generated for this machine";
  Options options;
  options.max_steps = 100;
  const auto said = [&] { return explain(ensemble(false, false), options).reasons; };
  EXPECT_THAT(said(), testing::Contains(testing::HasSubstr("machine code is generated")));
  setenv("LOCKSTEP_GENERATED_CODE", "off", 1);
  EXPECT_THAT(said(), testing::Not(testing::Contains(testing::HasSubstr("machine code is generated"))));
  unsetenv("LOCKSTEP_GENERATED_CODE");
  EXPECT_THAT(explain(first_few(1, false), options).reasons, testing::Contains(testing::HasSubstr("after 128 steps")));
}

}  // namespace
}  // namespace lockstep::ode
