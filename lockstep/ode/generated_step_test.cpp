// Solves whose steps are generated machine code against the same solves by the general kernels.
#include "lockstep/ode/cpu/generated_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "lockstep/ode/cpu/solve_context.h"
#include "lockstep/ode/detail/arithmetic_tile.h"
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

// A ring of n sites, u_i' = p (u_i+1 - u_i) - u_i max(u_i, p - u_i), with t added to each where `with_time`, with
// sin(u_j) exp(-u_j^2) of the last site where `with_functions`.
Graph ring(std::size_t n, bool with_time, bool with_functions) {
  Graph g;
  g.inputs = {{"u", 0, n}, {"p", 1, 1}};
  if (with_time) g.inputs.push_back({"t", 2, 1});
  const auto add = [&](graph::Operation operation, std::vector<std::size_t> inputs) {
    g.nodes.push_back({"n" + std::to_string(g.nodes.size()), std::move(operation), std::move(inputs)});
    return g.inputs.size() + g.nodes.size() - 1;
  };
  std::vector<std::size_t> next;
  for (std::size_t i = 0; i < n; ++i) next.push_back((i + 1) % n);
  const auto both = [&](BinaryKind kind, std::size_t a, std::size_t b) { return add(Binary{kind}, {a, b}); };
  const auto square = both(BinaryKind::multiply, 0, both(BinaryKind::maximum, 0, both(BinaryKind::subtract, 1, 0)));
  auto out = both(BinaryKind::subtract,
                  both(BinaryKind::multiply, both(BinaryKind::subtract, add(Columns{next}, {0}), 0), 1), square);
  if (with_time) out = both(BinaryKind::add, out, 2);
  if (with_functions) {
    const auto last = add(Columns{{n - 1}}, {0});
    const auto sine = add(graph::Activate{{ActivationKind::sin}}, {last});
    const auto bell = add(graph::Unary{graph::UnaryKind::exp},
                          {add(graph::Unary{graph::UnaryKind::negate}, {both(BinaryKind::multiply, last, last)})});
    out = both(BinaryKind::add, out, both(BinaryKind::multiply, sine, bell));
  }
  g.outputs = {{"du", out, n}};
  return g;
}

std::vector<double> first_of(const Solution& solution, std::size_t n) {
  std::vector<double> numbers;
  for (std::size_t k = 0; k < solution.save_points(); ++k) {
    for (std::size_t c = 0; c < n; ++c) numbers.push_back(solution.state(0, k, c));
  }
  for (std::size_t c = 0; c < n; ++c) numbers.push_back(solution.end_state(0, c));
  const TrajectoryRecord& record = solution.record(0);
  numbers.insert(numbers.end(), {static_cast<double>(record.status), static_cast<double>(record.accepted),
                                 static_cast<double>(record.rejected), record.end_time});
  return numbers;
}

// From systems whose registers take turns to those whose components hide each other's latency (12 is where that
// begins), with tiles of one to four registers, full and not.
TEST(GeneratedStep, fixed_steps_of_few_and_many_components_have_the_general_kernels_bits) {
  for (const CpuTarget target : available_cpu_targets()) {
    if (!LaneCode::available(target)) continue;
    for (const std::size_t n : {3, 11, 12, 40}) {
      for (const std::size_t count : {2, 9, 17, 25, 32, 33, 64}) {
        for (const std::string_view name : {"rk4", "tsit5"}) {
          for (const Precision precision : {Precision::f32, Precision::f64}) {
            Problem problem;
            problem.rhs = net(ring(n, false, false));
            for (std::size_t i = 0; i < n * count; ++i)
              problem.initial_states.push_back(std::sin(0.7 * static_cast<double>(i)) + 0.1);
            problem.parameters = {0.8};
            problem.end_times = {4};
            problem.save_times = {4};
            Options options;
            options.method = name;
            options.control = StepControl::fixed;
            options.precision = precision;
            options.cpu_target = target;
            options.dt = 0.015;
            options.threads = 1;
            const auto numbers = [&](bool generated) {
              const Solution solution = solved(problem, options, generated);
              std::vector<double> all;
              for (std::size_t i = 0; i < count; ++i) {
                for (std::size_t c = 0; c < n; ++c) all.push_back(solution.end_state(i, c));
              }
              return all;
            };
            expect_same_numbers(numbers(true), numbers(false),
                                std::string(to_string(target)) + " " + std::string(name) + " " +
                                    std::string(to_string(precision)) + ", " + std::to_string(n) + " components of " +
                                    std::to_string(count));
            if (testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

// Of those that call no functions, at 9 trajectories and alone.
TEST(GeneratedStep, built_in_systems_have_the_general_kernels_bits) {
  for (const CpuTarget target : available_cpu_targets()) {
    if (!LaneCode::available(target)) continue;
    for (const std::string_view name : system_names()) {
      const SystemInfo& info = system_info(name);
      const std::size_t n = info.components.size();
      for (const std::string_view method_name : {"rk4", "bs3", "tsit5", "dop853"}) {
        for (const StepControl control : {StepControl::fixed, StepControl::per_trajectory}) {
          if (control != StepControl::fixed && method(method_name).error.empty()) continue;
          for (const Precision precision : {Precision::f32, Precision::f64}) {
            for (const std::size_t count : {1, 9}) {
              Problem problem;
              problem.rhs = system(name);
              problem.parameters = info.default_parameters;
              for (std::size_t i = 0; i < count; ++i) {
                for (const double u : info.default_initial_state)
                  problem.initial_states.push_back(u * (1 + 0.001 * static_cast<double>(i)));
              }
              problem.end_times = {std::min(info.default_end_time, 1.0)};
              problem.save_times = {problem.end_times[0]};
              Options options;
              options.method = method_name;
              options.control = control;
              options.precision = precision;
              options.cpu_target = target;
              options.dt = control == StepControl::fixed ? problem.end_times[0] / 300 : 0;
              options.max_step = problem.end_times[0] / 300;  // more steps than code is waited for
              options.max_steps = 1000;
              options.rtol = options.atol = 1e-5;
              options.threads = 1;
              const auto numbers = [&](bool generated) {
                const Solution solution = solved(problem, options, generated);
                std::vector<double> all;
                for (std::size_t i = 0; i < count; ++i) {
                  for (std::size_t c = 0; c < n; ++c) all.push_back(solution.end_state(i, c));
                  all.push_back(solution.record(i).accepted);
                  all.push_back(solution.record(i).rejected);
                }
                return all;
              };
              const std::string what = std::string(to_string(target)) + " " + std::string(name) + " by " +
                                       std::string(method_name) + " " + std::string(to_string(precision)) + ", " +
                                       std::to_string(count);
              const auto expected = numbers(false);
              expect_same_numbers(numbers(true), expected, what);
              expect_same_numbers(numbers(true), expected, what + ", again");
              if (testing::Test::HasFatalFailure()) return;
            }
          }
        }
      }
    }
  }
}

TEST(GeneratedStep, a_built_in_system_keeps_its_code_for_whoever_asks_for_it_again) {
  if (!LaneCode::available(best_cpu_target())) GTEST_SKIP() << "no code is generated here";
  const auto solve_again = [] {
    Problem problem;
    problem.rhs = system("lorenz96");
    for (int i = 0; i < 256; ++i) {
      for (const double u : system_info("lorenz96").default_initial_state) problem.initial_states.push_back(u);
    }
    problem.parameters = {8};
    problem.end_times = {0.1};
    solve(problem, adaptive(Precision::f64));
    return lower<double>(*problem.rhs, best_cpu_target());
  };
  const auto lowered = solve_again();
  const auto* const tile = dynamic_cast<const detail::ArithmeticTile<double>*>(lowered.get());
  ASSERT_NE(tile, nullptr);
  ASSERT_NE(tile->arithmetic(), nullptr);
  EXPECT_EQ(solve_again(), lowered);
}

// From where its components lie side by side to where they do not; 16 is where that begins.
TEST(GeneratedStep, a_trajectory_alone_has_the_bits_that_it_has_in_company) {
  for (const CpuTarget target : available_cpu_targets()) {
    for (const std::size_t n : {15, 16, 17, 64, 131}) {
      for (const std::string_view name : {"rk4", "tsit5", "dop853"}) {
        for (const StepControl control : {StepControl::fixed, StepControl::per_trajectory, StepControl::common}) {
          for (const Precision precision : {Precision::f32, Precision::f64}) {
            for (const int variant : {0, 1, 2, 3, 4, 7}) {  // with time; with saves within steps; with functions
              if (control != StepControl::fixed && method(name).error.empty()) continue;
              const bool saves = (variant & 2) != 0;
              Problem alone;
              alone.rhs = net(ring(n, (variant & 1) != 0, (variant & 4) != 0));
              for (std::size_t i = 0; i < n; ++i)
                alone.initial_states.push_back(std::sin(0.7 * static_cast<double>(i)) + 0.1);
              if (n == 64) alone.initial_states[40] = 1e30;  // leaves the numbers
              alone.parameters = {0.8};
              alone.end_times = {4};
              alone.save_times = saves ? std::vector<double>{0, 0.333, 3.1, 4} : std::vector<double>{4};
              Options options;
              options.method = name;
              options.control = control;
              options.precision = precision;
              options.cpu_target = target;
              options.dt = control == StepControl::fixed ? 0.015 : 0;
              options.max_step = 0.02;  // more steps than code is waited for
              options.rtol = options.atol = 1e-5;
              options.threads = 1;
              Problem company = alone;
              for (int i = 1; i < 5 && control != StepControl::common; ++i) {  // which has the steps of all
                for (std::size_t c = 0; c < n; ++c)
                  company.initial_states.push_back(alone.initial_states[c] * (1 + 0.01 * i));
              }
              const auto expected = first_of(solved(company, options, false), n);
              const std::string what = std::string(to_string(target)) + " " + std::string(name) + " " +
                                       std::string(to_string(precision)) + ", " + std::to_string(n) + ", variant " +
                                       std::to_string(variant);
              expect_same_numbers(first_of(solved(alone, options, false), n), expected, what + ", without code");
              expect_same_numbers(first_of(solved(alone, options, true), n), expected, what);
              expect_same_numbers(first_of(solved(alone, options, true), n), expected, what + ", again");
              if (testing::Test::HasFatalFailure()) return;
            }
          }
        }
      }
    }
  }
}

TEST(GeneratedStep, a_trajectory_alone_gets_code_of_one_lane_where_functions_are_called_too) {
  const CpuTarget target = best_cpu_target();
  if (!LaneCode::available(target)) GTEST_SKIP() << "no code is generated for this machine";
  for (const bool with_functions : {false, true}) {
    if (with_functions && !kCallsFunctions) continue;
    for (const std::size_t n : {15, 16}) {
      for (const std::size_t trajectories : {1, 2}) {
        Problem problem;
        problem.rhs = net(ring(n, false, with_functions));
        problem.initial_states.assign(trajectories * n, 0.5);
        problem.parameters.assign(trajectories, 0.8);
        problem.end_times = {1};
        problem.save_times = {1};
        const Options options;
        cpu::SolveContext<double> context(problem, options, target);
        context.generate_code(target);
        const auto* const code = context.generated_code();
        ASSERT_NE(code, nullptr);
        EXPECT_EQ(code->settings.generated->one_lane.code != nullptr, n == 16 && trajectories == 1)
            << n << " components, " << trajectories << " trajectories";
      }
    }
  }
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

// u' = -u of 100 components: stages by Tsit5 that wait for their sums fill more stack than code may take on AVX-512.
TEST(GeneratedStep, code_that_was_refused_is_not_asked_for_again) {
  const CpuTarget target = CpuTarget::avx512;
  if (!LaneCode::available(target) || std::ranges::count(available_cpu_targets(), target) == 0)
    GTEST_SKIP() << "no code is generated for AVX-512";
  constexpr std::size_t kHalf = 50;
  Graph g;
  g.inputs = {{"u", 0, 2 * kHalf}};
  std::vector<std::size_t> halves;
  for (std::size_t first : {std::size_t{0}, kHalf}) {
    Columns columns;
    for (std::size_t i = 0; i < kHalf; ++i) columns.indices.push_back(static_cast<std::uint32_t>(first + i));
    g.nodes.push_back({"part" + std::to_string(first), std::move(columns), {0}});
    g.nodes.push_back({"rate" + std::to_string(first), graph::Unary{graph::UnaryKind::negate}, {g.nodes.size()}});
    halves.push_back(g.nodes.size());
  }
  g.nodes.push_back({"rates", graph::Concatenate{}, halves});
  g.outputs = {{"du", g.nodes.size(), 2 * kHalf}};
  Problem problem;
  problem.rhs = net(g);
  problem.initial_states.assign(2 * 2 * kHalf, 1);
  problem.end_times = problem.save_times = {1};
  Options options;
  options.cpu_target = target;
  for (const bool before : {true, false}) {
    cpu::SolveContext<double> context(problem, options, target);
    context.generate_code(target);
    EXPECT_EQ(context.take_code_after() != context.kNever, before);
    EXPECT_EQ(context.generated_code(), nullptr);
  }
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
  Problem alone;
  alone.rhs = net(ring(16, false, false));
  alone.initial_states.assign(16, 0.5);
  alone.parameters = {0.8};
  alone.end_times = alone.save_times = {1};
  EXPECT_THAT(explain(alone, options).reasons,
              testing::Contains(testing::HasSubstr("right-hand side of one trajectory after 128 steps")));
  options.control = StepControl::fixed;
  options.dt = 0.001;
  EXPECT_THAT(
      explain(alone, options).reasons,
      testing::Contains(testing::HasSubstr("right-hand side of one trajectory: its components lie side by side")));
}

}  // namespace
}  // namespace lockstep::ode
