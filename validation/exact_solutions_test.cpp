// Solutions known in closed form: spans, parameters and save points of each trajectory's own, both directions of time,
// and events where they must happen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string_view>
#include <vector>

#include "lockstep/ode/function.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep {
namespace {

constexpr double kTolerance = 1e-10;
const ode::Options kOptions{.rtol = kTolerance, .atol = kTolerance, .precision = Precision::f64};

// x'' = -omega^2 x from (x0, v0) at t0.
struct Oscillation {
  double omega, t0, x0, v0;
  double x(double t) const {
    const double phase = omega * (t - t0);
    return x0 * std::cos(phase) + v0 / omega * std::sin(phase);
  }
  double v(double t) const {
    const double phase = omega * (t - t0);
    return v0 * std::cos(phase) - x0 * omega * std::sin(phase);
  }
  // Each step's local error is at most sqrt(2) (the RMS of two components) times atol + rtol |u|; a rotation in the
  // plane of x and v/omega magnifies it by max(omega, 1/omega) at the most. Twice that between steps: the interpolant's
  // error is of the order of the estimate.
  double error_bound(double steps) const {
    const double size = std::max(std::hypot(x0, v0 / omega), std::hypot(x0 * omega, v0));
    return 2 * steps * std::numbers::sqrt2 * kTolerance * (1 + size) * std::max(omega, 1 / omega);
  }
};

// Sixty-seven oscillators, two tiles and three, each with omega, start, end, initial state and save times of its own.
// `direction` -1 runs them backwards.
struct Oscillators {
  std::vector<Oscillation> exact;
  ode::Problem problem;

  explicit Oscillators(double direction) {
    problem.rhs = ode::system("harmonic_oscillator");
    problem.start_times.clear();
    problem.save_times_per_trajectory = true;
    for (int i = 0; i < 67; ++i) {
      const Oscillation o{0.5 + 0.05 * i, 0.3 * (i % 7) - 1, 1 - 0.01 * i, 0.02 * i};
      const double length = 1 + 0.5 * (i % 11);
      exact.push_back(o);
      problem.initial_states.insert(problem.initial_states.end(), {o.x0, o.v0});
      problem.parameters.push_back(o.omega);
      problem.start_times.push_back(o.t0);
      problem.end_times.push_back(o.t0 + direction * length);
      for (const double share : {0.1, 0.11, 0.5, 0.9}) problem.save_times.push_back(o.t0 + direction * share * length);
    }
  }
};

void expect_exact(const Oscillators& oscillators, const ode::Options& options) {
  const ode::Solution solution = ode::solve(oscillators.problem, options);
  for (std::size_t i = 0; i < oscillators.exact.size(); ++i) {
    const Oscillation& exact = oscillators.exact[i];
    EXPECT_EQ(solution.record(i).status, ode::Status::success);
    EXPECT_EQ(solution.record(i).end_time, oscillators.problem.end_times[i]);
    const double bound = exact.error_bound(solution.record(i).accepted);
    for (std::size_t k = 0; k < 4; ++k) {
      const double t = oscillators.problem.save_times[4 * i + k];
      EXPECT_NEAR(solution.state(i, k, 0), exact.x(t), bound) << i << " at " << t;
      EXPECT_NEAR(solution.state(i, k, 1), exact.v(t), bound) << i << " at " << t;
    }
    EXPECT_NEAR(solution.end_state(i, 0), exact.x(oscillators.problem.end_times[i]), bound) << i;
    EXPECT_NEAR(solution.end_state(i, 1), exact.v(oscillators.problem.end_times[i]), bound) << i;
  }
}

TEST(ExactSolutions, every_trajectory_has_its_own_span_parameters_and_save_points) {
  for (const char* method : {"dopri5", "tsit5", "dop853"}) {
    ode::Options options = kOptions;
    options.method = method;
    SCOPED_TRACE(method);
    expect_exact(Oscillators(1), options);
    expect_exact(Oscillators(-1), options);
  }
}

TEST(ExactSolutions, one_common_step_keeps_every_trajectory_s_tolerance) {
  // Trajectories that share a step share its span.
  Oscillators oscillators(1);
  oscillators.problem.start_times = {0};
  oscillators.problem.end_times.assign(oscillators.exact.size(), 4);
  oscillators.problem.save_times.clear();
  for (Oscillation& exact : oscillators.exact) {
    exact.t0 = 0;
    oscillators.problem.save_times.insert(oscillators.problem.save_times.end(), {0.4, 0.5, 2, 3.9});
  }
  ode::Options options = kOptions;
  options.control = ode::StepControl::common;
  options.threads = 1;
  expect_exact(oscillators, options);
}

// A driven linear oscillator, x'' = gamma cos(omega t) - x: from x = a, v = 0 with a = gamma / (1 - omega^2) the answer
// is a cos(omega t) and nothing of the free oscillation. A difference from it swings freely and does not grow, so that
// the steps' errors add up; the bound is Oscillation's.
TEST(ExactSolutions, a_driven_system_follows_its_drive) {
  const double gamma = 0.75;
  for (const char* method : {"dopri5", "tsit5", "dop853"}) {
    for (const double omega : {0.5, 2.0, 3.25}) {
      const double a = gamma / (1 - omega * omega), t0 = std::numbers::pi / omega;  // half a period later: from -a
      ode::Problem problem;
      problem.rhs = ode::system("duffing");
      problem.parameters = {0, 1, 0, gamma, omega};
      problem.initial_states = {-a, 0};
      problem.start_times = {t0};
      problem.end_times = {t0 + 20};
      problem.save_times = {t0 + 0.3, t0 + 7, t0 + 19.9};
      ode::Options options = kOptions;
      options.method = method;
      const ode::Solution solution = ode::solve(problem, options);
      const Oscillation size{1, t0, a, a * omega};
      const double bound = size.error_bound(solution.record(0).accepted);
      for (std::size_t k = 0; k < 3; ++k) {
        const double t = problem.save_times[k];
        EXPECT_NEAR(solution.state(0, k, 0), a * std::cos(omega * t), bound) << method << omega;
        EXPECT_NEAR(solution.state(0, k, 1), -a * omega * std::sin(omega * t), bound) << method << omega;
      }
    }
  }
}

// Heat in a rod of 48 cells between ends at 0: sums of sin(pi j x), each of which decays at its own rate, the fastest
// at 9,600 a unit of time. All of it decays, so that errors of steps at most add up: each is the tolerance in the root
// mean square, sqrt(48) of it in any cell, twice that between steps. Methods for decay take steps as the slow parts
// allow.
TEST(ExactSolutions, diffusion_takes_methods_made_for_decay_a_fraction_of_the_evaluations) {
  constexpr int kCells = 48;
  constexpr double k = (kCells + 1) * (kCells + 1), pi = std::numbers::pi, tolerance = 1e-4;
  const auto exact = [](double t, int cell) {
    double u = 0;
    for (const int j : {1, 3, 40}) {
      const double half = std::sin(0.5 * pi * j / (kCells + 1));
      u += std::exp(-4 * k * half * half * t) * std::sin(pi * j * (cell + 1) / (kCells + 1)) / j;
    }
    return u;
  };
  ode::Problem problem;
  problem.rhs = ode::function<kCells>("rod", [](auto, const auto& u, const auto&, auto& du) {
    for (int i = 0; i < kCells; ++i) {
      auto flux = -2 * u[i];
      if (i > 0) flux = flux + u[i - 1];
      if (i + 1 < kCells) flux = flux + u[i + 1];
      du[i] = k * flux;
    }
  });
  for (int cell = 0; cell < kCells; ++cell) problem.initial_states.push_back(exact(0, cell));
  problem.end_times = {1};
  problem.save_times = {0.01, 0.1, 1};
  const auto evaluations = [&](std::string_view method) {
    ode::Options options = kOptions;
    options.method = method;
    options.rtol = options.atol = tolerance;
    const ode::Solution solution = ode::solve(problem, options);
    const double bound = 2 * solution.record(0).accepted * tolerance * 2 * std::sqrt(kCells);  // |u| < 1
    for (std::size_t i = 0; i < problem.save_times.size(); ++i) {
      for (int cell = 0; cell < kCells; ++cell)
        EXPECT_NEAR(solution.state(0, i, static_cast<std::size_t>(cell)), exact(problem.save_times[i], cell), bound);
    }
    return solution.record(0).evaluations;
  };
  const auto usual = evaluations("tsit5");
  EXPECT_LT(evaluations("rkc8") * 3, usual);
  EXPECT_LT(evaluations("rkc20") * 5, usual);
}

// Thrown upwards from height p0 with speed p1 and gravity 1; the event is the ground.
struct Throw {
  ode::Rhs fall = ode::function<2, 2>("fall", [](auto, const auto& u, const auto&, auto& du) {
    du[0] = u[1];
    du[1] = -1;
  });
  ode::Rhs height = ode::event_function<2, 2>("height", [](auto, const auto& u, const auto&) { return u[0]; });
};

// A parabola is integrated and interpolated without error but for rounding. The interpolant adds terms p_jm h k_j, each
// rounded about twice and in the sums twice more, with h and |k| up to 20 and 12 here; the step's own sums are smaller,
// and the crossing is located to 2^-52 of the step.
double height_rounding(std::string_view method) {
  double weights = 0;
  for (const double p : ode::method(method).interpolant) weights += std::abs(p);
  return 4 * weights * 20 * 12 * 0x1p-53;
}

TEST(ExactSolutions, a_ball_hits_the_ground_when_it_must) {
  ode::Problem problem{.rhs = Throw().fall, .end_times = {20}};
  problem.event = ode::TerminalEvent{Throw().height, ode::TerminalEvent::Direction::falling};
  for (int i = 0; i < 40; ++i) {
    const double height = 0.25 + 0.125 * i, speed = 0.125 * i;
    problem.initial_states.insert(problem.initial_states.end(), {height, speed});
    problem.parameters.insert(problem.parameters.end(), {height, speed});
  }
  for (const char* method : {"bs3", "dopri5", "tsit5", "dop853", "vern7", "vern9"}) {
    ode::Options options = kOptions;
    options.method = method;
    const ode::Solution solution = ode::solve(problem, options);
    const double rounding = height_rounding(method);
    for (std::size_t i = 0; i < problem.trajectories(); ++i) {
      const double height = problem.initial_states[2 * i], speed = problem.initial_states[2 * i + 1];
      const double impact = std::sqrt(speed * speed + 2 * height);
      EXPECT_EQ(solution.record(i).status, ode::Status::terminated);
      EXPECT_NEAR(solution.record(i).end_time, speed + impact, rounding / impact) << method << " " << i;
      EXPECT_NEAR(solution.end_state(i, 0), 0, 2 * rounding) << method << " " << i;
      EXPECT_NEAR(solution.end_state(i, 1), -impact, 2 * rounding / impact + rounding) << method << " " << i;
    }
  }
}

TEST(ExactSolutions, only_crossings_in_the_wanted_direction_end_a_trajectory) {
  // x = cos t falls through zero at pi/2 and rises at 3 pi/2.
  const double pi = std::numbers::pi;
  const std::vector<double> times{0.5, 1, 1.5, 2, 3, 4, 4.5, 5};
  ode::Problem problem{.rhs = ode::system("harmonic_oscillator"),
                       .initial_states = {1, 0},
                       .parameters = {1},
                       .end_times = {6},
                       .save_times = times};
  using Direction = ode::TerminalEvent::Direction;
  const Oscillation exact{1, 0, 1, 0};
  for (const auto& [direction, crossing] :
       {std::pair{Direction::either, pi / 2}, {Direction::falling, pi / 2}, {Direction::rising, 3 * pi / 2}}) {
    problem.event = ode::TerminalEvent{
        ode::event_function<2, 1>("x", [](auto, const auto& u, const auto&) { return u[0]; }), direction};
    const ode::Solution solution = ode::solve(problem, kOptions);
    // At the crossing |x'| = 1: time is as good as x.
    const double bound = exact.error_bound(solution.record(0).accepted);
    EXPECT_EQ(solution.record(0).status, ode::Status::terminated);
    EXPECT_NEAR(solution.record(0).end_time, crossing, bound);
    for (std::size_t k = 0; k < times.size(); ++k) {
      if (times[k] < crossing) {
        EXPECT_NEAR(solution.state(0, k, 0), exact.x(times[k]), bound);
      } else {
        EXPECT_TRUE(std::isnan(solution.state(0, k, 0))) << times[k];
      }
    }
  }
}

TEST(ExactSolutions, events_see_time_and_parameters) {
  // Stop at time p: the crossing is located to 2^-52 of a step and rounded to a time.
  ode::Problem problem{.rhs = Throw().fall, .end_times = {3}};
  problem.event = ode::TerminalEvent{
      ode::event_function<2, 2>("clock", [](auto t, const auto&, const auto& p) { return t - p[0]; })};
  for (int i = 0; i < 33; ++i) {
    problem.initial_states.insert(problem.initial_states.end(), {0, 1});
    problem.parameters.insert(problem.parameters.end(), {0.1 * (i + 1), 0});
  }
  const ode::Solution solution = ode::solve(problem, kOptions);
  for (std::size_t i = 0; i < 33; ++i) {
    const double p = problem.parameters[2 * i];
    if (p < 3) {
      EXPECT_EQ(solution.record(i).status, ode::Status::terminated);
      EXPECT_NEAR(solution.record(i).end_time, p, 2 * 3 * 0x1p-52);
    } else {
      EXPECT_EQ(solution.record(i).status, p > 3 ? ode::Status::success : solution.record(i).status);
      EXPECT_EQ(solution.record(i).end_time, 3);
    }
  }
}

TEST(ExactSolutions, a_bouncing_ball_is_solved_from_impact_to_impact) {
  // Dropped from height 1 and losing nothing: impacts at sqrt 2, then every 2 sqrt 2.
  double t = 0;
  std::vector<double> state{1, 0};
  for (int bounce = 0; bounce < 10; ++bounce) {
    ode::Problem problem{
        .rhs = Throw().fall, .initial_states = state, .parameters = {0, 0}, .start_times = {t}, .end_times = {t + 10}};
    problem.event = ode::TerminalEvent{Throw().height, ode::TerminalEvent::Direction::falling};
    const ode::Solution solution = ode::solve(problem, kOptions);
    ASSERT_EQ(solution.record(0).status, ode::Status::terminated) << bounce;
    t = solution.record(0).end_time;
    state = {0, -solution.end_state(0, 1)};
    // As above: 20 operations on numbers up to 64 an impact, and the speeds' errors, as large, times the flights' 2
    // sqrt 2.
    EXPECT_NEAR(t, std::numbers::sqrt2 * (2 * bounce + 1), 4 * (bounce + 1) * (bounce + 1) * 20 * 64 * 0x1p-53);
  }
}

}  // namespace
}  // namespace lockstep
