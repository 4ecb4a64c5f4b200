#include "oracle.h"

#include <algorithm>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <boost/numeric/odeint/algebra/default_operations.hpp>
#include <boost/numeric/odeint/algebra/range_algebra.hpp>
#include <boost/numeric/odeint/stepper/runge_kutta_fehlberg78.hpp>
#include <cmath>
#include <cstddef>
#include <string_view>

#include "lockstep/core/error.h"

namespace lockstep::validation {
namespace {

namespace odeint = boost::numeric::odeint;
using Real = boost::multiprecision::cpp_bin_float_quad;  // 113 bits
using Vector = std::vector<Real>;

// DETEST's own; false for a name that is none of them. Constants are the float64 numbers nearest to
// the printed ones, as in Lockstep's right-hand sides.
bool detest_derivative(std::string_view name, const Real& t, const Vector& u, Vector& du) {
  const std::size_t n = u.size();
  if (name == "detest_a1") {
    du[0] = -u[0];
  } else if (name == "detest_a2") {
    du[0] = -u[0] * u[0] * u[0] / 2;
  } else if (name == "detest_a3") {
    du[0] = u[0] * cos(t);
  } else if (name == "detest_a4") {
    du[0] = u[0] / 4 * (1 - u[0] / 20);
  } else if (name == "detest_a5") {
    du[0] = (u[0] - t) / (u[0] + t);
  } else if (name == "detest_b2") {
    du[0] = -u[0] + u[1];
    du[1] = u[0] - 2 * u[1] + u[2];
    du[2] = u[1] - u[2];
  } else if (name == "detest_b3") {
    du[0] = -u[0];
    du[1] = u[0] - u[1] * u[1];
    du[2] = u[1] * u[1];
  } else if (name == "detest_b4") {
    const Real r = sqrt(u[0] * u[0] + u[1] * u[1]);
    du[0] = -u[1] - u[0] * u[2] / r;
    du[1] = u[0] - u[1] * u[2] / r;
    du[2] = u[0] / r;
  } else if (name == "detest_b5") {
    du[0] = u[1] * u[2];
    du[1] = -u[0] * u[2];
    du[2] = -Real(0.51) * u[0] * u[1];
  } else if (name == "detest_c1" || name == "detest_c2") {
    for (std::size_t i = 0; i < n; ++i) {
      const int decay = name == "detest_c1" ? 1 : int(i + 1), birth = name == "detest_c1" ? 1 : int(i);
      du[i] = i + 1 < n ? Real(-decay * u[i]) : Real(0);
      if (i > 0) du[i] += birth * u[i - 1];
    }
  } else if (name == "detest_heat") {
    for (std::size_t i = 0; i < n; ++i) {
      du[i] = -2 * u[i];
      if (i > 0) du[i] += u[i - 1];
      if (i + 1 < n) du[i] += u[i + 1];
    }
  } else if (name == "detest_c5") {
    const Real gravity = 2.95912208286, sun = 1.00000597682;
    const Real mass[5] = {.000954786104043, .000285583733151, .0000437273164546, .0000517759138449, .00000277777777778};
    const auto cube = [](const Real& x, const Real& y, const Real& z) {
      const Real r2 = x * x + y * y + z * z;
      return Real(r2 * sqrt(r2));
    };
    for (std::size_t j = 0; j < 5; ++j) {
      for (std::size_t c = 0; c < 3; ++c) {
        // Masses are added as the float64 program adds them.
        const Real both = double(sun) + double(mass[j]);
        Real pull = -both * u[3 * j + c] / cube(u[3 * j], u[3 * j + 1], u[3 * j + 2]);
        for (std::size_t k = 0; k < 5; ++k) {
          if (k == j) continue;
          const Real d = cube(u[3 * k] - u[3 * j], u[3 * k + 1] - u[3 * j + 1], u[3 * k + 2] - u[3 * j + 2]);
          pull +=
              mass[k] * ((u[3 * k + c] - u[3 * j + c]) / d - u[3 * k + c] / cube(u[3 * k], u[3 * k + 1], u[3 * k + 2]));
        }
        du[3 * j + c] = u[15 + 3 * j + c];
        du[15 + 3 * j + c] = gravity * pull;
      }
    }
  } else if (name == "detest_e1") {
    const Real x = t + 1;
    du[0] = u[1];
    du[1] = -(u[1] / x + (1 - 1 / (4 * x * x)) * u[0]);
  } else if (name == "detest_e3") {
    du[0] = u[1];
    du[1] = u[0] * u[0] * u[0] / 6 - u[0] + 2 * sin(Real(2.78535) * t);
  } else if (name == "detest_e4") {
    du[0] = u[1];
    du[1] = Real(.032) - Real(.4) * u[1] * u[1];
  } else if (name == "detest_e5") {
    du[0] = u[1];
    du[1] = sqrt(1 + u[1] * u[1]) / (25 - t);
  } else {
    return false;
  }
  return true;
}

// The equations as the papers print them.
void derivative(std::string_view name, const Real& t, const Vector& u, const Vector& p, Vector& du) {
  if (detest_derivative(name, t, u, du)) return;
  if (name == "lorenz") {
    du[0] = p[0] * (u[1] - u[0]);
    du[1] = u[0] * (p[1] - u[2]) - u[1];
    du[2] = u[0] * u[1] - p[2] * u[2];
  } else if (name == "rossler") {
    du[0] = -u[1] - u[2];
    du[1] = u[0] + p[0] * u[1];
    du[2] = p[1] + u[2] * (u[0] - p[2]);
  } else if (name == "harmonic_oscillator") {
    du[0] = u[1];
    du[1] = -p[0] * p[0] * u[0];
  } else if (name == "henon_heiles") {
    du[0] = u[2];
    du[1] = u[3];
    du[2] = -u[0] - 2 * u[0] * u[1];
    du[3] = -u[1] - u[0] * u[0] + u[1] * u[1];
  } else if (name == "kepler") {
    const Real r2 = u[0] * u[0] + u[1] * u[1];
    const Real r3 = r2 * sqrt(r2);
    du[0] = u[2];
    du[1] = u[3];
    du[2] = -p[0] * u[0] / r3;
    du[3] = -p[0] * u[1] / r3;
  } else if (name == "lotka_volterra") {
    du[0] = p[0] * u[0] - p[1] * u[0] * u[1];
    du[1] = p[3] * u[0] * u[1] - p[2] * u[1];
  } else if (name == "van_der_pol") {
    du[0] = u[1];
    du[1] = p[0] * (1 - u[0] * u[0]) * u[1] - u[0];
  } else if (name == "brusselator") {
    du[0] = p[0] + u[0] * u[0] * u[1] - (p[1] + 1) * u[0];
    du[1] = p[1] * u[0] - u[0] * u[0] * u[1];
  } else if (name == "fitzhugh_nagumo") {
    du[0] = u[0] - u[0] * u[0] * u[0] / 3 - u[1] + p[3];
    du[1] = (u[0] + p[0] - p[1] * u[1]) / p[2];
  } else if (name == "arenstorf") {
    const Real mu = p[0], rest = 1 - mu;
    const Real d1 = (u[0] + mu) * (u[0] + mu) + u[1] * u[1], earth = d1 * sqrt(d1);
    const Real d2 = (u[0] - rest) * (u[0] - rest) + u[1] * u[1], moon = d2 * sqrt(d2);
    du[0] = u[2];
    du[1] = u[3];
    du[2] = u[0] + 2 * u[3] - rest * (u[0] + mu) / earth - mu * (u[0] - rest) / moon;
    du[3] = u[1] - 2 * u[2] - rest * u[1] / earth - mu * u[1] / moon;
  } else if (name == "pleiades") {
    constexpr std::size_t n = 7;
    for (std::size_t i = 0; i < n; ++i) {
      du[i] = u[2 * n + i];
      du[n + i] = u[3 * n + i];
      du[2 * n + i] = du[3 * n + i] = 0;
    }
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = i + 1; j < n; ++j) {
        const Real dx = u[j] - u[i], dy = u[n + j] - u[n + i], r2 = dx * dx + dy * dy;
        const Real r3 = r2 * sqrt(r2), fx = dx / r3, fy = dy / r3;
        du[2 * n + i] += int(j + 1) * fx;
        du[3 * n + i] += int(j + 1) * fy;
        du[2 * n + j] -= int(i + 1) * fx;
        du[3 * n + j] -= int(i + 1) * fy;
      }
    }
  } else {
    throw Error(ErrorKind::invalid_argument,
                {"equations", std::string(name), "equations the oracle knows", "add them to validation/oracle.cpp"});
  }
}

}  // namespace

std::vector<std::string> oracle_end_state(const PublishedProblem& published, double tolerance) {
  const ode::Problem& problem = published.problem;
  Vector u(problem.initial_states.begin(), problem.initial_states.end());
  const Vector p(problem.parameters.begin(), problem.parameters.end());
  const auto rhs = [&](const Vector& x, Vector& dx, const Real& t) { derivative(published.equations, t, x, p, dx); };
  // Step sizes need no 113 bits: their powers are taken in float64, odeint's own controller would take them in Real.
  odeint::runge_kutta_fehlberg78<Vector, Real, Vector, Real, odeint::range_algebra> stepper;
  Real t = 0, dt = 1e-4;
  const Real end = problem.end_times[0];
  Vector next(u.size()), error(u.size());
  while (t < end) {
    const bool last = t + dt >= end;
    if (last) dt = end - t;
    stepper.do_step(rhs, u, t, next, dt, error);
    double norm = 1e-30;
    for (std::size_t c = 0; c < u.size(); ++c) {
      const double scaled = double(error[c]) / (tolerance * (1 + std::abs(double(next[c]))));
      norm = std::max(norm, std::abs(scaled));
    }
    if (norm <= 1) {
      t = last ? end : t + dt;
      u.swap(next);
    }
    dt *= std::clamp(0.9 * std::pow(norm, -1.0 / 8), 0.2, 4.0);
  }
  std::vector<std::string> digits;
  for (const Real& x : u) digits.push_back(x.str(30, std::ios_base::scientific));
  return digits;
}

double largest_difference(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  Real largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Real difference = abs(Real(a[i]) - Real(b.at(i)));
    if (difference > largest) largest = difference;
  }
  return double(largest);
}

}  // namespace lockstep::validation
