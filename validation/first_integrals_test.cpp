// What the exact flow conserves, and how far a correct solve may let it drift.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/ode/methods.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"
#include "problems.h"

namespace lockstep {
namespace {

// R(z): one step of y' = lambda y with z = lambda h multiplies y by it (Hairer & Wanner II, IV.2).
std::complex<double> stability_function(const ode::Tableau& m, std::complex<double> z) {
  const auto stages = static_cast<std::size_t>(m.stages);
  std::complex<double> argument;
  std::vector<std::complex<double>> k;  // times the step
  for (std::size_t i = 0; i < stages; ++i) {
    argument = 1;
    for (std::size_t j = 0; j < i; ++j) argument += m.a_at(int(i), int(j)) * k[j];
    k.push_back(z * argument);
    if (!m.is_linearly_implicit() || i == 0 || i + 1 == stages) continue;
    for (std::size_t j = 1; j < i; ++j) k[i] += m.coupling[i * stages + j] * k[j];
    k[i] /= 1 / m.gamma - z;
  }
  return argument;
}

// For x'' = -omega^2 x the energy of v^2 + omega^2 x^2 changes by exactly |R(i omega h)|^2 a step.
TEST(FirstIntegrals, the_oscillators_energy_follows_the_stability_function) {
  constexpr double kOmega = 2, kH = 1.0 / 4;
  constexpr int kSteps = 640;
  for (const auto name : ode::method_names()) {
    const ode::Problem problem{.rhs = ode::system("harmonic_oscillator"),
                               .initial_states = {1, 0},
                               .parameters = {kOmega},
                               .end_times = {kSteps * kH}};
    const ode::Options options{.method = std::string(name),
                               .control = ode::StepControl::fixed,
                               .dt = kH,
                               .precision = Precision::f64,
                               .threads = 1};
    const ode::Solution solution = ode::solve(problem, options);
    const double x = solution.end_state(0, 0), v = solution.end_state(0, 1);
    const double ratio = (v * v + kOmega * kOmega * x * x) / (kOmega * kOmega);
    const double expected = std::pow(std::norm(stability_function(ode::method(name), {0, kOmega * kH})), kSteps);
    // A step rounds its stages' sums of at most 13 terms about 30 times, each by 2^-53 of numbers up to omega and
    // weights up to 12 (tsit5) and 100 (dop853) times h; the energy feels an error twice.
    EXPECT_NEAR(ratio / expected, 1, kSteps * 2 * 30 * 100 * kH * kOmega * 0x1p-53) << name;
  }
}

using Integral = std::function<double(const std::vector<double>&)>;

double kepler_energy(const std::vector<double>& u) {
  return (u[2] * u[2] + u[3] * u[3]) / 2 - 1 / std::hypot(u[0], u[1]);
}
double angular_momentum(const std::vector<double>& u) { return u[0] * u[3] - u[1] * u[2]; }
double henon_heiles_energy(const std::vector<double>& u) {
  const double x = u[0], y = u[1];
  return (u[2] * u[2] + u[3] * u[3] + x * x + y * y) / 2 + x * x * y - y * y * y / 3;
}
double lotka_volterra_integral(const std::vector<double>& u) {
  return u[0] - 3 * std::log(u[0]) + u[1] - 1.5 * std::log(u[1]);  // delta x - gamma ln x + beta y - alpha ln y
}

// The largest |grad I|_2 over the saved states, by central differences (their error, 1e-6 squared, is no matter).
double gradient(const Integral& integral, const std::vector<double>& u) {
  double square = 0;
  for (std::size_t c = 0; c < u.size(); ++c) {
    std::vector<double> up = u, down = u;
    up[c] += 1e-6;
    down[c] -= 1e-6;
    const double slope = (integral(up) - integral(down)) / 2e-6;
    square += slope * slope;
  }
  return std::sqrt(square);
}

struct Drift {
  double largest;
  double bound;
};

// Errors of steps do not grow in I, which the exact flow keeps: a drift is the sum over steps of grad I . e. Step
// control holds the RMS of e / (atol + rtol |u|) at or below 1: |e|_2 <= sqrt(n) (atol + rtol max|u|). A step adds some
// four roundings of numbers of the state's size, and evaluating I some ten. The gradient between saved points may
// exceed its largest by the unsaved part of an orbit: 1.1.
Drift drift(const std::string& name, const Integral& integral, const std::string& method, double tolerance) {
  ode::Problem problem = validation::published_problem(name).problem;
  problem.end_times[0] *= 10;
  for (int i = 1; i <= 2000; ++i) problem.save_times.push_back(problem.end_times[0] * i / 2000);
  const ode::Solution solution = ode::solve(
      problem, {.method = method, .rtol = tolerance, .atol = tolerance, .precision = Precision::f64, .threads = 1});
  const double start = integral(problem.initial_states);
  const std::size_t n = solution.components();
  double size = 0, steepest = 0;
  Drift result{0, 0};
  for (std::size_t k = 0; k < solution.save_points(); ++k) {
    std::vector<double> u(n);
    for (std::size_t c = 0; c < n; ++c) {
      u[c] = solution.state(0, k, c);
      size = std::max(size, std::abs(u[c]));
    }
    steepest = std::max(steepest, gradient(integral, u));
  }
  // The drift itself at the end of the last step: saved points carry the interpolant's error besides.
  std::vector<double> end(n);
  for (std::size_t c = 0; c < n; ++c) end[c] = solution.end_state(0, c);
  result.largest = std::abs(integral(end) - start);
  const double local = std::sqrt(double(n)) * (tolerance * (1 + size) + 4 * size * 0x1p-53);
  result.bound = 1.1 * steepest * solution.record(0).accepted * local + 10 * size * size * 0x1p-53;
  EXPECT_EQ(solution.record(0).status, ode::Status::success) << name;
  return result;
}

TEST(FirstIntegrals, drift_less_than_the_steps_errors_add_up_to) {
  const struct {
    const char* name;
    Integral integral;
  } cases[] = {{"kepler", kepler_energy},
               {"kepler", angular_momentum},
               {"henon_heiles", henon_heiles_energy},
               {"lotka_volterra", lotka_volterra_integral},
               {"detest_b5", [](const auto& u) { return u[0] * u[0] + u[1] * u[1]; }},
               {"detest_b5", [](const auto& u) { return 0.51 * u[0] * u[0] + u[2] * u[2]; }}};
  for (const auto& [name, integral] : cases) {
    for (const char* method : {"bs3", "tsit5", "dopri5", "dop853"}) {
      for (const double tolerance : {1e-4, 1e-7, 1e-10}) {
        if (std::string(method) == "bs3" && tolerance < 1e-7) continue;  // a million steps
        const Drift found = drift(name, integral, method, tolerance);
        EXPECT_LT(found.largest, found.bound) << name << " " << method << " " << tolerance;
      }
      // In proportion to the tolerance, less a factor of ten for how unevenly steps fall.
      EXPECT_LT(drift(name, integral, method, 1e-7).largest, 1e-2 * drift(name, integral, method, 1e-4).largest)
          << name << " " << method;
    }
  }
}

// A Runge-Kutta method keeps what the flow keeps and is linear in the state, w . u: each stage's slope has w . k = 0. What
// is left is rounding. A slope here costs at most 3 roundings a component and the step's sum 2 for each stage, all
// times h and that stage's weight; adding it to the state one of the state's size.
TEST(FirstIntegrals, linear_ones_drift_by_rounding_alone) {
  constexpr double kH = 1.0 / 32, kUlp = 0x1p-53;
  constexpr int kSteps = 640;  // to t = 20
  for (const char* name : {"detest_b2", "detest_b3", "detest_c1", "detest_c2"}) {
    const ode::Problem& problem = validation::published_problem(name).problem;
    const std::size_t n = problem.initial_states.size();
    double before = 0;
    for (const double u : problem.initial_states) before += u;  // the largest state too: none is negative
    for (const auto method : ode::explicit_method_names()) {
      const ode::Options options{.method = std::string(method),
                                 .control = ode::StepControl::fixed,
                                 .dt = kH,
                                 .precision = Precision::f64,
                                 .threads = 1};
      const ode::Solution solution = ode::solve(problem, options);
      double after = 0;
      for (std::size_t c = 0; c < n; ++c) after += solution.end_state(0, c);
      const ode::Tableau& tableau = ode::method(method);
      double weights = 0;
      for (int j = 0; j + 1 < tableau.stages; ++j) weights += std::abs(tableau.a_at(tableau.stages - 1, j));
      // Slopes are at most 9 times the state (C2's rates), its rates' products among the 3 roundings.
      const double slope = 9 * before * (3 + 2 * tableau.stages);
      EXPECT_NEAR(after, before, kSteps * double(n) * kUlp * (before + kH * weights * slope)) << name << " " << method;
    }
  }
}

}  // namespace
}  // namespace lockstep
