// Ensembles through the public interface: bad trajectories, unlike ones, and the ways of writing a right-hand side.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

#include "lockstep/ode/function.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep {
namespace {

// Same bits of the saved and end states of trajectory i of a and j of b.
template <class T>
void expect_same_trajectory(const ode::Solution& a, std::size_t i, const ode::Solution& b, std::size_t j) {
  const std::size_t row = a.save_points() * a.components();
  EXPECT_EQ(std::memcmp(a.states<T>().data() + i * row, b.states<T>().data() + j * row, row * sizeof(T)), 0)
      << i << " " << j;
  EXPECT_EQ(std::memcmp(a.end_states<T>().data() + i * a.components(), b.end_states<T>().data() + j * a.components(),
                        a.components() * sizeof(T)),
            0)
      << i << " " << j;
  EXPECT_EQ(a.record(i).status, b.record(j).status);
  EXPECT_EQ(a.record(i).accepted, b.record(j).accepted);
  EXPECT_EQ(a.record(i).rejected, b.record(j).rejected);
}

const auto lorenz = [](auto, const auto& u, const auto& p, auto& du) {
  du[0] = p[0] * (u[1] - u[0]);
  du[1] = std::fma(u[0], p[1] - u[2], -u[1]);
  du[2] = std::fma(u[0], u[1], -(p[2] * u[2]));
};

ode::Problem lorenz_ensemble(ode::Rhs rhs, std::size_t count) {
  ode::Problem problem{
      .rhs = std::move(rhs), .parameters = {10, 28, 8.0 / 3}, .end_times = {2}, .save_times = {0.5, 1, 2}};
  std::mt19937 random(11);
  std::uniform_real_distribution<double> number(-10, 10);
  for (std::size_t i = 0; i < 3 * count; ++i) problem.initial_states.push_back(number(random));
  return problem;
}

// Equations that fail where x is above a limit, by throwing or by NaN.
enum class Failure { throws, is_nan };
ode::Rhs failing_lorenz(Failure failure, double limit) {
  return ode::function<3, 3>("failing", [failure, limit](auto t, const auto& u, const auto& p, auto& du) {
    if (u[0] > limit) {
      if (failure == Failure::throws) throw std::runtime_error("x too large");
      du[0] = std::nan("");
      return;
    }
    lorenz(t, u, p, du);
  });
}

TEST(Ensembles, a_trajectory_that_throws_or_yields_nan_ends_alone) {
  constexpr std::size_t count = 70;
  ode::Problem healthy = lorenz_ensemble(ode::function<3, 3>("lorenz", lorenz), count);
  ode::Problem ill = healthy;
  for (const std::size_t i : {std::size_t{3}, std::size_t{40}}) ill.initial_states[3 * i] = 1000;
  for (const CpuTarget target : available_cpu_targets()) {
    const ode::Options options{.threads = 2, .cpu_target = target};
    const ode::Solution expected = ode::solve(healthy, options);
    for (const Failure failure : {Failure::throws, Failure::is_nan}) {
      ill.rhs = failing_lorenz(failure, 500);
      const ode::Solution solution = ode::solve(ill, options);
      for (std::size_t i = 0; i < count; ++i) {
        if (i == 3 || i == 40) {
          EXPECT_EQ(solution.record(i).status, ode::Status::not_finite);
          EXPECT_TRUE(std::isnan(solution.state(i, 0, 0)));
        } else {
          expect_same_trajectory<float>(solution, i, expected, i);
        }
      }
    }
  }
}

TEST(Ensembles, a_trajectory_that_fails_on_its_way_keeps_what_it_had) {
  // x' = 1, which throws beyond x = 2: from x = 0 the states at 0.5 and 1.5 are saved, those at 2.5 and 3 are not.
  const ode::Rhs rhs = ode::function<1>("wall", [](auto, const auto& u, const auto&, auto& du) {
    if (u[0] > 2) throw std::out_of_range("wall");
    du[0] = 1;
  });
  const ode::Problem problem{.rhs = rhs, .initial_states = {0, -5}, .end_times = {3}, .save_times = {0.5, 1.5, 2.5, 3}};
  const ode::Solution solution = ode::solve(problem, {.max_step = 0.25, .precision = Precision::f64});
  EXPECT_NE(solution.record(0).status, ode::Status::success);
  EXPECT_LE(solution.record(0).end_time, 2);
  // Twelve steps or so of one rounding each.
  EXPECT_NEAR(solution.state(0, 0, 0), 0.5, 12 * 0x1p-53);
  EXPECT_NEAR(solution.state(0, 1, 0), 1.5, 12 * 0x1p-52);
  EXPECT_TRUE(std::isnan(solution.state(0, 2, 0)));
  EXPECT_TRUE(std::isnan(solution.state(0, 3, 0)));
  EXPECT_EQ(solution.record(1).status, ode::Status::success);
}

TEST(Ensembles, a_solution_that_blows_up_is_stopped_at_its_singularity) {
  // u' = u^2: u0 / (1 - u0 t) is infinite at 1/u0.
  const ode::Rhs rhs =
      ode::function<1>("blow up", [](auto, const auto& u, const auto&, auto& du) { du[0] = u[0] * u[0]; });
  const ode::Problem problem{.rhs = rhs, .initial_states = {1, -1, 2, 0.1}, .end_times = {2}};
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    const ode::Solution solution = ode::solve(problem, {.rtol = 1e-5, .atol = 1e-5, .precision = precision});
    for (const std::size_t i : {std::size_t{0}, std::size_t{2}}) {
      const ode::Status status = solution.record(i).status;
      EXPECT_TRUE(status == ode::Status::step_too_small || status == ode::Status::not_finite) << int(status);
      // The relative error of u, at most 1e-5 a step, is that of the time left: the singularity moves by less than the
      // sum over the steps.
      const double singularity = 1 / problem.initial_states[i];
      EXPECT_NEAR(solution.record(i).end_time, singularity, 1e-5 * solution.record(i).accepted);
    }
    for (const std::size_t i : {std::size_t{1}, std::size_t{3}}) {
      EXPECT_EQ(solution.record(i).status, ode::Status::success);
      const double u0 = problem.initial_states[i], exact = u0 / (1 - 2 * u0);
      EXPECT_NEAR(solution.end_state(i, 0), exact, 2e-5 * solution.record(i).accepted);
    }
  }
}

TEST(Ensembles, attempts_are_counted_and_limited) {
  ode::Problem problem = lorenz_ensemble(ode::system("lorenz"), 40);
  problem.end_times = {100};
  problem.save_times.clear();
  const ode::Solution solution = ode::solve(problem, {.max_steps = 50});
  for (const ode::TrajectoryRecord& record : solution.records()) {
    EXPECT_EQ(record.status, ode::Status::too_many_steps);
    EXPECT_EQ(record.accepted + record.rejected, 50);
    EXPECT_LT(record.end_time, 100);
  }
}

TEST(Ensembles, trajectories_unlike_each_other_are_solved_as_if_alone) {
  ode::Problem problem{.rhs = ode::system("van_der_pol"), .save_times = {0.25}};
  for (int i = 0; i < 75; ++i) {
    problem.initial_states.insert(problem.initial_states.end(), {2 - 0.02 * i, 0.1});
    problem.parameters.push_back(i % 9 == 4 ? 300 : 0.1 * i);
    problem.end_times.push_back(0.5 + (i % 13));
  }
  const ode::Options options{.method = "dopri5", .precision = Precision::f64, .threads = 2};
  const ode::Solution together = ode::solve(problem, options);
  std::int32_t fewest = together.record(0).accepted, most = fewest;
  for (std::size_t i = 0; i < problem.trajectories(); ++i) {
    const ode::Problem one{.rhs = problem.rhs,
                           .initial_states = {problem.initial_states[2 * i], problem.initial_states[2 * i + 1]},
                           .parameters = {problem.parameters[i]},
                           .end_times = {problem.end_times[i]},
                           .save_times = {0.25}};
    expect_same_trajectory<double>(together, i, ode::solve(one, options), 0);
    fewest = std::min(fewest, together.record(i).accepted);
    most = std::max(most, together.record(i).accepted);
  }
  EXPECT_GT(most, 10 * fewest);  // else the ensemble is too alike to show anything
}

TEST(Ensembles, finished_lanes_take_the_next_trajectory) {
  // One trajectory in 32 is 20 times as long. Were its tile to wait for it, the tile would be evaluated as often as
  // the longest needs; refilled lanes cost the total over 32, and a tail of at most one long trajectory.
  static std::atomic<std::int64_t> calls;
  const ode::Rhs counted = ode::tile_function(1, 0, "counted decay", [](const auto& tile) {
    calls.fetch_add(1, std::memory_order_relaxed);
    for (int lane = 0; lane < kTileLanes; ++lane) tile.out[lane] = -tile.in[lane];
  });
  ode::Problem problem{.rhs = counted};
  for (int i = 0; i < 32 * 40; ++i) {
    problem.initial_states.push_back(1);
    problem.end_times.push_back(i % 32 == 0 ? 20 : 1);
  }
  const ode::Options options{.method = "rk4", .control = ode::StepControl::fixed, .dt = 0.01, .threads = 1};
  calls = 0;
  const ode::Solution solution = ode::solve(problem, options);
  std::int64_t total = 0, longest = 0;
  for (const ode::TrajectoryRecord& record : solution.records()) {
    total += record.evaluations;
    longest = std::max<std::int64_t>(longest, record.evaluations);
  }
  EXPECT_GE(calls * kTileLanes, total);
  EXPECT_LE(calls, total / kTileLanes + 2 * longest);
  // What waiting would have cost: every tile as long as its longest.
  EXPECT_LT(calls, 40 * longest / 5);
}

TEST(Ensembles, a_system_written_by_the_user_has_the_built_in_one_s_bits) {
  const ode::Problem built_in = lorenz_ensemble(ode::system("lorenz"), 45);
  const ode::Problem written = lorenz_ensemble(ode::function<3, 3>("lorenz", lorenz), 45);
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    for (const CpuTarget target : available_cpu_targets()) {
      const ode::Options options{.precision = precision, .cpu_target = target};
      const ode::Solution a = ode::solve(built_in, options), b = ode::solve(written, options);
      for (std::size_t i = 0; i < 45; ++i) {
        if (precision == Precision::f32) {
          expect_same_trajectory<float>(a, i, b, i);
        } else {
          expect_same_trajectory<double>(a, i, b, i);
        }
      }
    }
  }
}

TEST(Ensembles, physics_with_a_net_is_a_few_lines_or_a_sum) {
  // A net 3-8-3 added to Lorenz' equations, once by hand and once by ode::sum.
  Mlp closure;
  std::mt19937 random(5);
  std::uniform_real_distribution<float> number(-0.1f, 0.1f);
  for (const auto& [in, out, kind] : {std::tuple<std::size_t, std::size_t, ActivationKind>{3, 8, ActivationKind::tanh},
                                      {8, 3, ActivationKind::identity}}) {
    DenseLayer layer{in, out, std::vector<double>(in * out), std::vector<double>(out), {kind}};
    for (double& w : layer.weights) w = number(random);
    closure.layers.push_back(layer);
  }
  const ode::Rhs by_hand = ode::function_with_net<3, 3>(
      "lorenz with closure", closure, [](auto t, const auto& u, const auto& p, const auto& net, auto& du) {
        lorenz(t, u, p, du);
        for (int i = 0; i < 3; ++i) du[i] += net[i];
      });
  const ode::Solution a = ode::solve(lorenz_ensemble(by_hand, 37));
  const ode::Solution b = ode::solve(lorenz_ensemble(ode::sum(ode::system("lorenz"), ode::net(closure)), 37));
  const ode::Solution physics_alone = ode::solve(lorenz_ensemble(ode::system("lorenz"), 37));
  for (std::size_t i = 0; i < 37; ++i) {
    expect_same_trajectory<float>(a, i, b, i);
    EXPECT_NE(a.end_state(i, 0), physics_alone.end_state(i, 0));
  }
}

}  // namespace
}  // namespace lockstep
