// Solves whose steps are generated machine code against the same solves by the general kernels.
#include "lockstep/ode/cpu/generated_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "lockstep/ode/cpu/solve_context.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode {
namespace {

using graph::Binary;
using graph::BinaryKind;
using graph::Columns;
using graph::Graph;

// The Lorenz equations, operation by operation; where `with_time`, t is added to each.
Graph lorenz(bool with_time) {
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

TEST(GeneratedStep, few_short_trajectories_do_without) {
  if (!LaneCode::available(best_cpu_target())) GTEST_SKIP() << "no code is generated for this machine";
  Problem problem = ensemble(false, false);
  problem.initial_states.resize(3 * 8);
  problem.parameters.resize(3 * 8);
  Options options;
  options.control = StepControl::fixed;
  const auto generates = [&](double dt) {
    options.dt = dt;
    cpu::SolveContext<float> context(problem, options, best_cpu_target());
    context.generate_code(best_cpu_target());
    return context.settings.generated != nullptr;
  };
  EXPECT_FALSE(generates(0.01));
  EXPECT_TRUE(generates(0.0001));
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
}

}  // namespace
}  // namespace lockstep::ode
