// Linearly implicit methods: their coefficients by the conditions of Rosenbrock methods, and the engine that solves
// their equations against the plain reference, bit for bit, and against published values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/ode/cuda/program.h"
#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/jacobian_tile.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/reference.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/sensitivity.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/test_tile.h"
#include "lockstep/ode/testing/bouncing_balls.h"
#include "lockstep/ode/testing/jumps.h"

namespace lockstep::ode {
namespace {

using testing::expect_same;
using ::testing::HasSubstr;
using Number = long double;
using Matrix = std::vector<std::vector<Number>>;

constexpr std::string_view kName = "rodas5p";

// --- Coefficients ---

// The numbers of a method that a Rosenbrock method is written with (Hairer & Wanner II, IV.7): alpha, beta = alpha +
// gamma, and b of y1, b_hat of the embedded formula or the interpolant's, from those of tableau.h.
struct Rosenbrock {
  int s;  // its stages: k_2 .. k_{s+1} of tableau.h
  Matrix alpha, gamma, beta;

  explicit Rosenbrock(const std::vector<double>& a, const std::vector<double>& coupling, double diagonal, int all)
      : s(all - 2) {
    // gamma is the inverse of 1/diagonal - g, which is lower triangular.
    gamma.assign(std::size_t(s), std::vector<Number>(std::size_t(s)));
    alpha = gamma;
    for (int column = 0; column < s; ++column) {
      for (int row = column; row < s; ++row) {
        Number sum = row == column ? 1 : 0;
        for (int k = column; k < row; ++k)
          sum += Number(coupling[std::size_t((row + 1) * all + k + 1)]) * gamma[std::size_t(k)][std::size_t(column)];
        gamma[std::size_t(row)][std::size_t(column)] = sum * Number(diagonal);
      }
    }
    for (int row = 0; row < s; ++row) alpha[std::size_t(row)] = times_gamma(&a[std::size_t((row + 1) * all + 1)]);
    beta = alpha;
    for (std::size_t i = 0; i < beta.size(); ++i)
      for (std::size_t j = 0; j < beta.size(); ++j) beta[i][j] += gamma[i][j];
  }
  std::vector<Number> times_gamma(const double* weights) const {
    std::vector<Number> result(static_cast<std::size_t>(s));
    for (std::size_t j = 0; j < result.size(); ++j)
      for (std::size_t k = j; k < result.size(); ++k) result[j] += Number(weights[k]) * gamma[k][j];
    return result;
  }
};

std::vector<Number> applied(const Matrix& m, const std::vector<Number>& x) {
  std::vector<Number> result;
  for (const auto& row : m) {
    Number sum = 0;
    for (std::size_t j = 0; j < x.size(); ++j) sum += row[j] * x[j];
    result.push_back(sum);
  }
  return result;
}
std::vector<Number> product(const std::vector<Number>& x, const std::vector<Number>& y) {
  std::vector<Number> result;
  for (std::size_t i = 0; i < x.size(); ++i) result.push_back(x[i] * y[i]);
  return result;
}

// The elementary weights of all trees up to order 5 at each stage, and what sum_i b_i of them is: Hairer & Wanner II,
// IV.7, theorem 7.2 and table 7.1. A vertex with one branch takes beta, one with more alpha.
struct Condition {
  int order;
  Number expected;
  std::vector<Number> weights;
};
std::vector<Condition> conditions(const Rosenbrock& m) {
  const std::vector<Number> one(static_cast<std::size_t>(m.s), 1);
  const auto by_alpha = [&](const std::vector<Number>& x) { return applied(m.alpha, x); };
  const auto by_beta = [&](const std::vector<Number>& x) { return applied(m.beta, x); };
  const auto c = by_alpha(one), b = by_beta(one);
  const auto cc = product(c, c), bb = by_beta(b), ab = by_alpha(b);
  return {{1, 1, one},
          {2, Number(1) / 2, b},
          {3, Number(1) / 3, cc},
          {3, Number(1) / 6, bb},
          {4, Number(1) / 4, product(cc, c)},
          {4, Number(1) / 8, product(c, ab)},
          {4, Number(1) / 12, by_beta(cc)},
          {4, Number(1) / 24, by_beta(bb)},
          {5, Number(1) / 5, product(cc, cc)},
          {5, Number(1) / 10, product(cc, ab)},
          {5, Number(1) / 20, product(ab, ab)},
          {5, Number(1) / 15, product(c, by_alpha(cc))},
          {5, Number(1) / 30, product(c, by_alpha(bb))},
          {5, Number(1) / 20, by_beta(product(cc, c))},
          {5, Number(1) / 40, by_beta(product(c, ab))},
          {5, Number(1) / 60, by_beta(by_beta(cc))},
          {5, Number(1) / 120, by_beta(by_beta(bb))}};
}

// sum_i weight_i (weights of the condition)_i; `weights` are of k_2 and on.
Number left_side(const Rosenbrock& m, const Condition& condition, const std::vector<double>& weights) {
  const std::vector<Number> b = m.times_gamma(weights.data() + 1);
  Number sum = 0;
  for (std::size_t i = 0; i < b.size(); ++i) sum += b[i] * condition.weights[i];
  return sum;
}

struct Coefficients {
  std::vector<double> a, coupling, weights;
  double gamma;
  int all;
  explicit Coefficients(const Tableau& m)
      : a(m.a.begin(), m.a.end()), coupling(m.coupling.begin(), m.coupling.end()), gamma(m.gamma), all(m.stages) {}
  Number residual(std::size_t which, Number expected) const {
    const Rosenbrock m(a, coupling, gamma, all);
    return left_side(m, conditions(m)[which], weights) - expected;
  }
  // How far the residual moves where every coefficient is off by `share` of itself, to first order.
  Number reach(std::size_t which, double share) {
    const Number here = residual(which, 0);
    constexpr double kNudge = 0x1p-30;
    Number sum = 0;
    const auto nudge = [&](double& x) {
      const double kept = x;
      x *= 1 + kNudge;
      if (kept != 0) sum += std::abs(residual(which, 0) - here) * share / kNudge;
      x = kept;
    };
    std::ranges::for_each(a, nudge);
    std::ranges::for_each(coupling, nudge);
    std::ranges::for_each(weights, nudge);
    nudge(gamma);
    return sum;
  }
};

// Published as double precision numbers, which are the result of some arithmetic: each within 2^-51 of the exact one.
constexpr double kPublished = 0x1p-51;

void expect_order(const std::vector<double>& weights, int order, Number power_of_theta, bool is_error) {
  Coefficients numbers(method(kName));
  numbers.weights = weights;
  const auto all = conditions(Rosenbrock(numbers.a, numbers.coupling, numbers.gamma, numbers.all));
  Number next = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool counts = power_of_theta == 0 || all[i].order == power_of_theta;
    const Number expected = is_error || !counts ? 0 : all[i].expected;
    const Number residual = numbers.residual(i, expected);
    if (all[i].order <= order) {
      EXPECT_LE(std::abs(residual), numbers.reach(i, kPublished)) << "condition " << i << " of order " << all[i].order;
    } else {
      next = std::max(next, std::abs(residual));
    }
  }
  if (order < 5 && power_of_theta == 0) {
    EXPECT_GT(next, 1e-4);
  }
}

std::vector<double> row_of(const Tableau& m, int i) {
  std::vector<double> row;
  for (int j = 0; j < m.stages; ++j) row.push_back(m.a_at(i, j));
  return row;
}

TEST(Rodas5p, satisfies_every_condition_of_order_5_and_its_embedded_formula_of_order_4) {
  const Tableau& m = method(kName);
  const std::vector<double> b = row_of(m, m.stages - 1);
  expect_order(b, 5, 0, false);
  std::vector<double> embedded = b;
  for (std::size_t j = 0; j < b.size(); ++j) embedded[j] -= m.error[j];
  expect_order(embedded, 4, 0, false);
}

TEST(Rodas5p, the_interpolant_has_order_4) {
  const Tableau& m = method(kName);
  EXPECT_EQ(m.interpolant_order, 4);
  for (int power = 1; power <= m.interpolant_degree; ++power) {
    std::vector<double> p;
    for (int j = 0; j < m.stages; ++j) p.push_back(m.interpolant[std::size_t(j * m.interpolant_degree + power - 1)]);
    SCOPED_TRACE(power);
    expect_order(p, 4, Number(power), false);
  }
}

TEST(Rodas5p, nodes_and_time_weights_are_sums_of_their_rows) {
  const Tableau& m = method(kName);
  const Coefficients numbers(m);
  const Rosenbrock r(numbers.a, numbers.coupling, m.gamma, m.stages);
  for (int i = 0; i < r.s; ++i) {
    Number node = 0, weight = 0;
    for (int j = 0; j < r.s; ++j) {
      node += r.alpha[std::size_t(i)][std::size_t(j)];
      weight += r.gamma[std::size_t(i)][std::size_t(j)];
    }
    // Sums of up to 8 products of numbers up to 170 that are published to 2^-51.
    EXPECT_NEAR(static_cast<double>(node), m.c[std::size_t(i) + 1], 8 * 170 * kPublished) << i;
    EXPECT_NEAR(static_cast<double>(weight), m.time_weights[std::size_t(i) + 1], 8 * 170 * kPublished) << i;
  }
}

// R(z) of u' = lambda u, z = h lambda.
std::complex<double> growth(const Tableau& m, std::complex<double> z) {
  std::vector<std::complex<double>> k(1);
  const auto argument = [&](int i) {
    std::complex<double> y = 1;
    for (int j = 1; j < i; ++j) y += m.a_at(i, j) * k[std::size_t(j)];
    return y;
  };
  for (int i = 1; i + 1 < m.stages; ++i) {
    std::complex<double> right = z * argument(i);
    for (int j = 1; j < i; ++j) right += m.coupling[std::size_t(i * m.stages + j)] * k[std::size_t(j)];
    k.push_back(right / (1 / m.gamma - z));
  }
  return argument(m.stages - 1);
}

// By the maximum principle the imaginary axis decides: all poles are at z = 1/gamma. Roundings of weights up to 170.
TEST(Rodas5p, is_a_stable_and_forgets_what_decays_at_once) {
  const Tableau& m = method(kName);
  for (double y = 1e-3; y < 1e7; y *= 1.01) EXPECT_LE(std::abs(growth(m, {0, y})), 1 + 1e-12) << y;
  EXPECT_LT(std::abs(growth(m, {-1e9, 0})), 1e-6);
  EXPECT_LT(std::abs(growth(m, {0, 1e9})), 1e-6);
}

// --- Jacobians ---

// f(t, u, p) with a derivative by time that is known to the engine, or not.
Rhs driven() {
  return differentiable_function<2, 1>("driven", [](auto t, const auto& u, const auto& p, auto& du) {
    using std::cos;
    using math::cos;
    du[0] = p[0] * (static_cast<float>(t) * static_cast<float>(t) - u[0]) + u[1];
    du[1] = u[0] * u[1] - 3 * u[1];
  });
}

TEST(JacobianTile, of_a_function_is_its_derivative_in_every_lane) {
  const Rhs rhs = driven();
  Tile<double> tile(*rhs);
  const auto jacobian = lower_jacobian<double>(*rhs, available_cpu_targets().back());
  for (const int lanes : {1, 7, 32}) {
    AlignedBuffer<double> by_state(4 * kTileLanes), by_time(2 * kTileLanes);
    AlignedBuffer<std::byte> workspace(jacobian->workspace_bytes());
    jacobian->evaluate({tile.t.data(), tile.in.data(), tile.parameters.data(), nullptr, lanes}, by_state.data(),
                       by_time.data(), workspace.data());
    for (std::size_t lane = 0; lane < static_cast<std::size_t>(lanes); ++lane) {
      const double x = tile.in[lane], y = tile.in[kTileLanes + lane], p = tile.parameters[lane];
      EXPECT_EQ(by_state[lane], -p);
      EXPECT_EQ(by_state[kTileLanes + lane], 1);
      EXPECT_EQ(by_state[2 * kTileLanes + lane], y);
      EXPECT_EQ(by_state[3 * kTileLanes + lane], x - 3);
      EXPECT_EQ(by_time[kTileLanes + lane], 0);
    }
  }
}

// --- The engine ---

// x'' = mu (1 - x^2) x' - x, trajectories from easy to stiff.
Problem oscillators(std::size_t count) {
  Problem problem;
  problem.rhs = system("van_der_pol");
  for (std::size_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(i % 19) / 19;
    problem.initial_states.insert(problem.initial_states.end(), {2 - x, x});
    problem.parameters.push_back(std::pow(10.0, 4 * x));
    problem.end_times.push_back(0.5 + 2 * x);
  }
  problem.save_times = {0, 0.1, 0.37, 0.5};
  return problem;
}

// Robertson's.
Problem reaction_to(double end) {
  Problem problem;
  problem.rhs = system("robertson");
  problem.parameters = {0.04, 3e7, 1e4};
  problem.initial_states = {1, 0, 0};
  problem.end_times = {end};
  return problem;
}

// u_c' is large in the component after it: every elimination exchanges rows, other ones in other lanes.
Rhs turning() {
  return differentiable_function<5, 1>("turning", [](auto, const auto& u, const auto& p, auto& du) {
    for (std::size_t c = 0; c < 5; ++c) du[c] = 50 * p[0] * u[(c + 2) % 5] - 50 * u[(c + 3) % 5] * u[c] - u[c];
  });
}

Options options_for(Precision precision, StepControl control = StepControl::per_trajectory) {
  Options options{.method = std::string(kName), .control = control, .precision = precision, .threads = 1};
  options.rtol = options.atol = precision == Precision::f64 ? 1e-7 : 1e-4;
  if (control == StepControl::fixed) options.dt = 0.0123;
  return options;
}

void expect_the_bits_of_the_reference(const Problem& problem, Options options) {
  const Solution expected = solve_reference(problem, options);
  for (const CpuTarget target : available_cpu_targets()) {
    options.cpu_target = target;
    expect_same(expected, solve(problem, options), std::string(to_string(target)));
  }
}

TEST(LinearlyImplicit, the_engine_has_the_bits_of_the_reference) {
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    for (const StepControl control : {StepControl::per_trajectory, StepControl::common, StepControl::fixed}) {
      for (const std::size_t count : {1u, 31u, 70u}) {
        SCOPED_TRACE(std::string(to_string(precision)) + ", " + std::to_string(static_cast<int>(control)));
        Problem problem = oscillators(count);
        if (control == StepControl::common) problem.end_times = {0.5};
        expect_the_bits_of_the_reference(problem, options_for(precision, control));
        problem.initial_states[0] = 1e30;  // overflows
        problem.save_times.clear();
        expect_the_bits_of_the_reference(problem, options_for(precision, control));
      }
    }
  }
}

TEST(LinearlyImplicit, rows_are_exchanged_as_in_the_reference) {
  Problem problem;
  problem.rhs = turning();
  for (std::size_t i = 0; i < 9; ++i) {
    for (std::size_t c = 0; c < 5; ++c) problem.initial_states.push_back(std::sin(static_cast<double>(7 * i + c * c)));
    problem.parameters.push_back(std::cos(static_cast<double>(i)));
  }
  problem.end_times = {0.1};
  problem.save_times = {0.03, 0.1};
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    expect_the_bits_of_the_reference(problem, options_for(precision));
    expect_the_bits_of_the_reference(problem, options_for(precision, StepControl::fixed));
  }
}

TEST(LinearlyImplicit, steps_end_at_events_resets_and_impulses_as_in_the_reference) {
  Problem problem = testing::balls(12);
  problem.rhs = differentiable_function<4, 1>("dragged", [](auto t, const auto& u, const auto& p, auto& du) {
    du[0] = u[1];
    du[1] = -testing::kGravity - 2 * p[0] * u[1] + static_cast<float>(t);
    du[2] = 0 * u[2];
    du[3] = -100 * u[3];
  });
  problem.end_times = {3};
  problem.save_times = {0.5, 1, 3};
  problem.impulses = {{0.6, 1, 30}, {1.4, 1, 20, 0.5}, {2, 1, 25}};
  for (const Precision precision : {Precision::f32, Precision::f64})
    expect_the_bits_of_the_reference(problem, options_for(precision));
  EXPECT_GE(solve(problem, options_for(Precision::f64)).state(0, 2, 2), 1);  // bounces
}

// Bits do not depend on threads, nor on what else is in the batch.
TEST(LinearlyImplicit, a_part_has_the_bits_of_the_whole) {
  const Problem problem = oscillators(203);
  Options options = options_for(Precision::f64);
  const Solution whole = solve(problem, options);
  options.threads = 3;
  expect_same(whole, solve(problem, options), "three threads");
  const Solution part = solve(problem.part(100, 9), options);
  for (std::size_t i = 0; i < 9; ++i) {
    for (std::size_t c = 0; c < 2; ++c) EXPECT_EQ(part.end_state(i, c), whole.end_state(100 + i, c));
  }
}

// The end values: Hairer & Wanner II, section IV.10, as on their page of test problems ("Problem ROBER", "VDPOL").
TEST(LinearlyImplicit, published_stiff_problems_end_where_they_should) {
  Problem problem = reaction_to(1e11);
  Options options = options_for(Precision::f64);
  options.rtol = 1e-9;
  options.component_atol = {1e-17, 1e-22, 1e-12};
  const Solution reaction = solve(problem, options);
  ASSERT_EQ(reaction.record(0).status, Status::success);
  EXPECT_LT(reaction.record(0).accepted, 2500);
  EXPECT_NEAR(reaction.end_state(0, 0) / 0.2083340149701255e-7, 1, 1e-6);
  EXPECT_NEAR(reaction.end_state(0, 1) / 0.8333360770334713e-13, 1, 1e-6);
  EXPECT_NEAR(reaction.end_state(0, 2), 0.9999999791665050, 1e-9);

  problem.rhs = differentiable_function<2>("relaxation", [](auto, const auto& u, const auto&, auto& du) {
    du[0] = u[1];
    du[1] = ((1 - u[0] * u[0]) * u[1] - u[0]) * 1e6;
  });
  problem.parameters.clear();
  problem.initial_states = {2, 0};
  problem.end_times = {2};
  options.component_atol.clear();
  options.rtol = options.atol = 1e-7;
  const Solution oscillator = solve(problem, options);
  EXPECT_NEAR(oscillator.end_state(0, 0), 1.706167732170483, 1e-6);
  EXPECT_NEAR(oscillator.end_state(0, 1), -0.8928097010247975, 1e-6);
  EXPECT_LT(oscillator.record(0).accepted, 2000);
}

// Against float64 at 1e-9; the tolerance is 1e-4.
TEST(LinearlyImplicit, float32_serves_stiff_problems) {
  const Problem problem = reaction_to(40);
  Options options = options_for(Precision::f64);
  options.rtol = 1e-9;
  options.atol = 1e-13;
  const Solution exact = solve(problem, options);
  options.precision = Precision::f32;
  options.rtol = 1e-4;
  options.atol = 1e-8;
  const Solution solution = solve(problem, options);
  for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(solution.end_state(0, c) / exact.end_state(0, c), 1, 1e-4) << c;
  EXPECT_LT(solution.record(0).accepted, 100);
}

// u' = -lambda (u - sin t) + cos t, u = sin t (Prothero & Robinson 1974), where only part of the classical order is
// left: the error is some h^3 / lambda (as of these coefficients by themselves, in NumPy).
TEST(LinearlyImplicit, forcing_of_what_decays_fast_costs_little) {
  const auto error = [](double dt) {
    Problem problem;
    problem.rhs = differentiable_function<2>("forced", [](auto, const auto& u, const auto&, auto& du) {
      using math::cos;
      using math::sin;
      du[0] = 0 * u[0] + 1.0;  // the time, of which the engine knows the derivative
      du[1] = cos(u[0]) - 1e6 * (u[1] - sin(u[0]));
    });
    problem.initial_states = {0.5, std::sin(0.5)};
    problem.end_times = {2};
    Options options = options_for(Precision::f64, StepControl::fixed);
    options.dt = dt;
    return std::abs(solve(problem, options).end_state(0, 1) - std::sin(2.5));
  };
  const double order = std::log2(error(1.0 / 4) / error(1.0 / 8));
  EXPECT_NEAR(order, 3, 0.2);
  EXPECT_LT(error(1.0 / 4), 1e-10);
}

TEST(LinearlyImplicit, a_singular_system_is_a_rejected_step_alone) {
  Problem problem;
  const double rate = 1 / (method(kName).gamma * 0.25);
  problem.rhs = differentiable_function<1, 1>(
      "growth", [](auto, const auto& u, const auto& p, auto& du) { du[0] = p[0] * u[0]; });
  problem.initial_states = {1, 1, 1};
  problem.parameters = {1, rate, -1};
  problem.end_times = {0.25};
  Options options = options_for(Precision::f64);
  options.initial_step = 0.25;  // 1/gamma - h J is 0 for the second one, up to a rounding
  const Solution solution = solve(problem, options);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(solution.record(i).status, Status::success);
    const double exact = std::exp(problem.parameters[i] * 0.25);
    EXPECT_NEAR(solution.end_state(i, 0) / exact, 1, 1e-5);
  }
  EXPECT_GT(solution.record(1).rejected, 0);
}

TEST(LinearlyImplicit, what_cannot_be_had_says_so) {
  Problem problem = oscillators(2);
  const Options options = options_for(Precision::f64);
  EXPECT_FALSE(cuda::obstacle(problem, options));
  problem.rhs = function<2, 1>("opaque", [](auto, const auto& u, const auto&, auto& du) { du[0] = du[1] = -u[0]; });
  EXPECT_THAT(message_of([&] { solve(problem, options); }), HasSubstr("opaque, which has no derivative"));
  EXPECT_TRUE(cuda::obstacle(problem, options));
}

}  // namespace
}  // namespace lockstep::ode
