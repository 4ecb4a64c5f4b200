// The Boost.Odeint adapter against ode::solve (same bits with fixed steps), odeint's own methods and exact solutions.
#include "lockstep/ode/odeint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <boost/numeric/odeint/integrate/integrate_adaptive.hpp>
#include <boost/numeric/odeint/integrate/integrate_const.hpp>
#include <boost/numeric/odeint/integrate/integrate_n_steps.hpp>
#include <boost/numeric/odeint/stepper/generation/generation_runge_kutta_dopri5.hpp>
#include <boost/numeric/odeint/stepper/runge_kutta_dopri5.hpp>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/ode/function.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode {
namespace {

namespace odeint = boost::numeric::odeint;
using Vector = std::vector<double>;

const std::vector<double> kLorenz{10, 28, 8.0 / 3};

// The solution of the harmonic oscillator from (1, 0) with omega = 1: a rotation, so errors never grow on the way.
OdeintSystem<> oscillator() { return OdeintSystem<>(system("harmonic_oscillator"), {1}); }
double distance_from_truth(const Vector& u, double t) { return std::hypot(u[0] - std::cos(t), u[1] + std::sin(t)); }

// Counts the evaluations of a system; pass it by std::ref.
struct Counted {
  OdeintSystem<> inner;
  int evaluations = 0;
  void operator()(const Vector& u, Vector& du, double t) {
    ++evaluations;
    inner(u, du, t);
  }
};

template <class T>
Solution fixed(const char* method, Rhs rhs, std::vector<double> u0, std::vector<double> p, double end, double dt,
               std::vector<double> save_times = {}) {
  const Problem problem{.rhs = std::move(rhs),
                        .initial_states = std::move(u0),
                        .parameters = std::move(p),
                        .end_times = {end},
                        .save_times = std::move(save_times)};
  const Options options{
      .method = method, .control = StepControl::fixed, .dt = dt, .precision = kPrecisionOf<T>, .threads = 1};
  return solve(problem, options);
}

// 1/64 is exact in binary: t0 + i dt is then the same number however it is computed.
constexpr double kDt = 1.0 / 64;
constexpr int kSteps = 128;

template <class Stepper, class State>
State after_fixed_steps(const OdeintSystem<typename State::value_type>& rhs, State u) {
  odeint::integrate_n_steps(Stepper(), rhs, u, 0.0, kDt, kSteps);
  return u;
}

template <class State>
void expect_bits_of(const Solution& solution, const State& u) {
  for (std::size_t c = 0; c < u.size(); ++c) EXPECT_EQ(double(u[c]), solution.end_state(0, c)) << c;
}

TEST(OdeintStepper, fixed_steps_give_the_bits_of_solve) {
  const OdeintSystem<> lorenz(system("lorenz"), kLorenz);
  const Vector u0{1, 1, 1};
  const auto solved = [&](const char* name) {
    return fixed<double>(name, system("lorenz"), u0, kLorenz, kDt * kSteps, kDt);
  };
  expect_bits_of(solved("tsit5"), after_fixed_steps<OdeintTsit5<Vector>>(lorenz, u0));
  expect_bits_of(solved("dopri5"), after_fixed_steps<OdeintDopri5<Vector>>(lorenz, u0));
  expect_bits_of(solved("bs3"), after_fixed_steps<OdeintBs3<Vector>>(lorenz, u0));
  using Array = std::array<double, 3>;
  expect_bits_of(solved("tsit5"), after_fixed_steps<OdeintTsit5<Array>>(lorenz, Array{1, 1, 1}));
}

TEST(OdeintStepper, fixed_steps_in_float32_give_the_bits_of_solve) {
  using State = std::vector<float>;
  const Solution solution = fixed<float>("tsit5", system("lorenz"), {1, 1, 1}, kLorenz, kDt * kSteps, kDt);
  const OdeintSystem<float> lorenz(system("lorenz"), kLorenz);
  expect_bits_of(solution, after_fixed_steps<OdeintTsit5<State, float, State, double>>(lorenz, State{1, 1, 1}));
}

TEST(OdeintStepper, time_reaches_the_right_hand_side_as_in_solve) {
  const Rhs rhs = function<1>("t u", [](auto t, const auto& u, const auto&, auto& du) { du[0] = t * u[0]; });
  const Solution solution = fixed<double>("tsit5", rhs, {1}, {}, kDt * kSteps, kDt);
  expect_bits_of(solution, after_fixed_steps<OdeintTsit5<Vector>>(OdeintSystem<>(rhs), Vector{1}));
}

TEST(OdeintStepper, dense_output_gives_the_bits_of_solve) {
  const OdeintSystem<> lorenz(system("lorenz"), kLorenz);
  const std::vector<double> fractions{0, 0.125, 0.3, 0.5, 0.99, 1};
  std::vector<double> times;
  for (const double theta : fractions) times.push_back(kDt + theta * kDt);
  const Solution solution = fixed<double>("tsit5", system("lorenz"), {1, 1, 1}, kLorenz, 3 * kDt, kDt, times);

  OdeintTsit5<Vector> stepper;
  Vector u0{1, 1, 1}, u1(3), u2(3), k0(3), k1(3), k2(3), between(3);
  lorenz(u0, k0, 0);
  stepper.do_step(lorenz, u0, k0, 0, u1, k1, kDt);
  stepper.do_step(lorenz, u1, k1, kDt, u2, k2, kDt);
  for (std::size_t i = 0; i < times.size(); ++i) {
    stepper.calc_state(times[i], between, u1, k1, kDt, u2, k2, 2 * kDt);
    for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(between[c], solution.state(0, i, c)) << times[i];
  }
}

TEST(OdeintStepper, the_last_stage_serves_the_next_step) {
  Counted counted{oscillator()};
  Vector u{1, 0};
  odeint::integrate_n_steps(OdeintTsit5<Vector>(), std::ref(counted), u, 0.0, 0.1, 20);
  EXPECT_EQ(counted.evaluations, 6 * 20 + 1);
}

TEST(OdeintStepper, a_step_in_place_is_the_step_to_another_place) {
  const OdeintSystem<> lorenz(system("lorenz"), kLorenz);
  OdeintTsit5<Vector> stepper;
  const Vector u0{1, 2, 3};
  Vector k0(3), apart(3), k1(3), error(3);
  lorenz(u0, k0, 0);
  stepper.do_step(lorenz, u0, k0, 0, apart, k1, 0.01, error);
  Vector in_place = u0, k = k0, error_in_place(3);
  stepper.do_step(lorenz, in_place, k, 0, 0.01, error_in_place);
  EXPECT_EQ(in_place, apart);
  EXPECT_EQ(k, k1);
  EXPECT_EQ(error_in_place, error);
  EXPECT_NE(error[0], 0);
}

// log2 of the ratio of errors at h and h/2, where h is small enough for the next order to change it by less than 0.1,
// and errors are far above rounding (1e-15).
double order_of(const std::function<double(double)>& error) { return std::log2(error(1.0 / 8) / error(1.0 / 16)); }

TEST(OdeintStepper, converges_with_its_order) {
  const auto end_error = [](auto stepper, double h) {
    Vector u{1, 0};
    odeint::integrate_n_steps(stepper, oscillator(), u, 0.0, h, std::size_t(4 / h));
    return distance_from_truth(u, 4);
  };
  EXPECT_NEAR(order_of([&](double h) { return end_error(OdeintTsit5<Vector>(), h); }), 5, 0.2);
  EXPECT_NEAR(order_of([&](double h) { return end_error(OdeintDopri5<Vector>(), h); }), 5, 0.2);
  EXPECT_NEAR(order_of([&](double h) { return end_error(odeint::runge_kutta_dopri5<Vector>(), h); }), 5, 0.2);
  EXPECT_NEAR(order_of([&](double h) { return end_error(OdeintBs3<Vector>(), h); }), 3, 0.2);
}

// The largest error of dense output within one step of size h from (1, 0). A linear right-hand side that commutes with
// rotations makes it the same wherever on the circle the step begins.
template <class Stepper>
double interpolation_error(double h) {
  Stepper stepper;
  Vector u0{1, 0}, u1(2), k0(2), k1(2), u(2);
  oscillator()(u0, k0, 0);
  stepper.do_step(oscillator(), u0, k0, 0, u1, k1, h);
  double largest = 0;
  for (int i = 1; i < 64; ++i) {
    stepper.calc_state(h * i / 64, u, u0, k0, 0, u1, k1, h);
    largest = std::max(largest, distance_from_truth(u, h * i / 64));
  }
  return largest;
}

TEST(OdeintStepper, dense_output_is_of_order_four) {
  // Within one step the error of an interpolant of order p falls like h^(p + 1).
  EXPECT_NEAR(order_of(interpolation_error<OdeintTsit5<Vector>>), 5, 0.2);
  EXPECT_NEAR(order_of(interpolation_error<OdeintDopri5<Vector>>), 5, 0.2);
}

TEST(OdeintStepper, controlled_steps_stay_within_the_tolerance_as_odeints_do) {
  // No relative part: an accepted step adds at most eps to each component, sqrt 2 eps to the distance, and the flow
  // turns errors without growth. Rounding, some 20 operations a step at 2^-53, is 1e-6 of that.
  constexpr double kEps = 1e-9, kEnd = 10;
  const auto run = [&](auto stepper) {
    Vector u{1, 0};
    const std::size_t steps = odeint::integrate_adaptive(stepper, oscillator(), u, 0.0, kEnd, 0.01);
    EXPECT_LT(distance_from_truth(u, kEnd), double(steps) * std::sqrt(2) * kEps * 1.01);
    return std::pair{u, double(steps)};
  };
  const auto [ours, our_steps] = run(odeint::make_controlled<OdeintTsit5<Vector>>(kEps, 0.0));
  const auto [theirs, their_steps] = run(odeint::make_controlled<odeint::runge_kutta_dopri5<Vector>>(kEps, 0.0));
  EXPECT_LT(std::hypot(ours[0] - theirs[0], ours[1] - theirs[1]), (our_steps + their_steps) * std::sqrt(2) * kEps);

  // ode::solve holds the RMS below the tolerance: sqrt 2 eps again.
  const Problem problem{
      .rhs = system("harmonic_oscillator"), .initial_states = {1, 0}, .parameters = {1}, .end_times = {kEnd}};
  const Solution solved = solve(problem, {.rtol = 0, .atol = kEps, .precision = Precision::f64, .threads = 1});
  EXPECT_LT(std::hypot(ours[0] - solved.end_state(0, 0), ours[1] - solved.end_state(0, 1)),
            (our_steps + solved.record(0).accepted) * std::sqrt(2) * kEps);
}

TEST(OdeintStepper, the_same_method_takes_odeints_own_steps) {
  // The tableau of Dormand and Prince under the same control: the same steps, up to rounding. At each step about 30
  // roundings of numbers up to 1; a rounding also moves step sizes, by a relative 1e-16 / 1e-6 of the error estimate
  // over 5, which moves the end (through the local errors of 1e-6 each) by less than that again.
  const auto run = [](auto stepper, std::vector<double>& times) {
    Vector u{1, 0};
    odeint::integrate_adaptive(stepper, oscillator(), u, 0.0, 10.0, 0.01,
                               [&](const Vector&, double t) { times.push_back(t); });
    return u;
  };
  std::vector<double> our_times, their_times;
  const Vector ours = run(odeint::make_controlled<OdeintDopri5<Vector>>(1e-6, 1e-6), our_times);
  const Vector theirs = run(odeint::make_controlled<odeint::runge_kutta_dopri5<Vector>>(1e-6, 1e-6), their_times);
  ASSERT_EQ(our_times.size(), their_times.size());
  const double bound = 30 * double(our_times.size()) * 0x1p-53 + 10 * 1e-10;
  for (std::size_t c = 0; c < 2; ++c) EXPECT_NEAR(ours[c], theirs[c], bound);
}

TEST(OdeintStepper, dense_output_steps_past_the_points_asked_for) {
  constexpr double kEps = 1e-8;
  Counted counted{oscillator()};
  auto stepper = odeint::make_dense_output<OdeintTsit5<Vector>>(kEps, 0.0);
  stepper.initialize(Vector{1, 0}, 0.0, 0.01);
  Vector u(2);
  int steps = 0, points = 0;
  double largest_step = 0;
  while (stepper.current_time() < 10) {
    const auto [from, to] = stepper.do_step(std::ref(counted));
    ++steps;
    largest_step = std::max(largest_step, to - from);
    const int before = counted.evaluations;
    for (; points * 0.01 <= to; ++points) {
      stepper.calc_state(points * 0.01, u);
      // Steps as above, then the interpolant's own error (sampled at 63 points: 1.1 for what lies between them).
      EXPECT_LT(distance_from_truth(u, points * 0.01),
                steps * std::sqrt(2) * kEps + 1.1 * interpolation_error<OdeintTsit5<Vector>>(largest_step));
    }
    EXPECT_EQ(counted.evaluations, before);
  }
  EXPECT_GT(points, 5 * steps);

  Vector end{1, 0};
  int observed = 0;
  odeint::integrate_const(odeint::make_dense_output<OdeintTsit5<Vector>>(kEps, kEps), oscillator(), end, 0.0, 10.0, 0.5,
                          [&](const Vector&, double) { ++observed; });
  EXPECT_EQ(observed, 21);
}

// [component][trajectory] from random numbers.
template <class T>
std::vector<T> random_numbers(std::size_t n) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> number(-3, 3);
  std::vector<T> numbers(n);
  for (T& x : numbers) x = T(number(random));
  return numbers;
}

TEST(OdeintSystem, an_ensemble_is_its_trajectories_bit_for_bit) {
  for (const std::size_t n : {1u, 31u, 32u, 33u, 97u}) {
    const std::vector<float> u = random_numbers<float>(3 * n);
    std::vector<double> p;
    for (std::size_t i = 0; i < n; ++i) p.insert(p.end(), {10, 0.25 * double(i), 8.0 / 3});
    std::vector<float> du(3 * n);
    OdeintSystem<float>(system("lorenz"), p, n)(u, du, 0);
    for (std::size_t i = 0; i < n; ++i) {
      const std::vector<double> own(p.begin() + std::ptrdiff_t(3 * i), p.begin() + std::ptrdiff_t(3 * i + 3));
      const std::array<float, 3> alone{u[i], u[n + i], u[2 * n + i]};
      std::array<float, 3> expected{};
      OdeintSystem<float>(system("lorenz"), own)(alone, expected, 0);
      for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(du[c * n + i], expected[c]) << n << " " << i;
    }
  }
}

TEST(OdeintSystem, an_ensemble_with_fixed_steps_has_the_bits_of_solve) {
  constexpr std::size_t n = 33;
  std::vector<double> p, u0;
  Vector u(3 * n, 1.0);
  for (std::size_t i = 0; i < n; ++i) {
    p.insert(p.end(), {10, double(i), 8.0 / 3});
    u0.insert(u0.end(), {1, 1, 1});
  }
  const Solution solution = fixed<double>("tsit5", system("lorenz"), u0, p, kDt * kSteps, kDt);
  odeint::integrate_n_steps(OdeintTsit5<Vector>(), OdeintSystem<>(system("lorenz"), p, n), u, 0.0, kDt, kSteps);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(u[c * n + i], solution.end_state(i, c)) << i;
  }
}

TEST(OdeintSystem, an_empty_ensemble_is_left_alone) {
  Vector u, du;
  OdeintSystem<>(system("lorenz"), kLorenz, 0)(u, du, 0);
  EXPECT_TRUE(du.empty());
}

TEST(OdeintSystem, numbers_that_do_not_fit_are_named) {
  EXPECT_THROW(OdeintSystem<>(system("lorenz"), {10, 28}), Error);
  EXPECT_THROW(OdeintSystem<>(system("lorenz"), {10, 28, 1, 10, 28, 1}, 3), Error);
  const OdeintSystem<> lorenz(system("lorenz"), kLorenz, 2);
  Vector u(6), du(3);
  try {
    lorenz(u, du, 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.field(), "derivative");
    EXPECT_EQ(error.found(), "3 numbers");
  }
  EXPECT_THROW(OdeintSystem<>(nullptr), Error);
}

}  // namespace
}  // namespace lockstep::ode
