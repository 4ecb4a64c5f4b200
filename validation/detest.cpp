// The 25 problems of the non-stiff DETEST set: Hull, Enright, Fellen & Sedgwick 1972, Comparing numerical methods for
// ordinary differential equations, SIAM J. Numer. Anal. 9, 603-637. All end at t = 20.
#include <cmath>
#include <cstddef>
#include <utility>

#include "lockstep/kernels/math/math.h"
#include "lockstep/ode/function.h"
#include "lockstep/ode/rhs.h"
#include "problems.h"

namespace lockstep::validation {
namespace {

PublishedProblem detest(const std::string& name, const std::string& equations, ode::Rhs rhs,
                        std::vector<double> initial_state, std::vector<double> parameters = {}) {
  return {name,
          equations,
          "Hull, Enright, Fellen & Sedgwick 1972, SIAM J. Numer. Anal. 9, 603-637",
          {.rhs = std::move(rhs),
           .initial_states = std::move(initial_state),
           .parameters = std::move(parameters),
           .end_times = {20}}};
}

template <int n, class F>
PublishedProblem own(const std::string& name, std::vector<double> initial_state, const F& f) {
  return detest(name, name, ode::function<n>(name, f), std::move(initial_state));
}

std::vector<double> first_of(std::size_t n) {
  std::vector<double> state(n);
  state[0] = 1;
  return state;
}

// Single equations.
void add_class_a(std::vector<PublishedProblem>& to) {
  to.push_back(own<1>("detest_a1", {1}, [](auto, const auto& u, const auto&, auto& du) { du[0] = -u[0]; }));
  to.push_back(
      own<1>("detest_a2", {1}, [](auto, const auto& u, const auto&, auto& du) { du[0] = -u[0] * u[0] * u[0] / 2; }));
  to.push_back(own<1>("detest_a3", {1}, [](auto t, const auto& u, const auto&, auto& du) {
    using T = std::decay_t<decltype(du[0])>;
    du[0] = u[0] * T(math::cos(t));
  }));
  to.push_back(
      own<1>("detest_a4", {1}, [](auto, const auto& u, const auto&, auto& du) { du[0] = u[0] / 4 * (1 - u[0] / 20); }));
  to.push_back(own<1>("detest_a5", {4}, [](auto t, const auto& u, const auto&, auto& du) {
    using T = std::decay_t<decltype(du[0])>;
    du[0] = (u[0] - T(t)) / (u[0] + T(t));
  }));
}

// Small systems.
void add_class_b(std::vector<PublishedProblem>& to) {
  to.push_back(detest("detest_b1", "lotka_volterra", ode::system("lotka_volterra"), {1, 3}, {2, 2, 1, 1}));
  to.push_back(own<3>("detest_b2", {2, 0, 1}, [](auto, const auto& u, const auto&, auto& du) {
    du[0] = u[1] - u[0];
    du[1] = u[0] - 2 * u[1] + u[2];
    du[2] = u[1] - u[2];
  }));
  to.push_back(own<3>("detest_b3", {1, 0, 0}, [](auto, const auto& u, const auto&, auto& du) {
    du[0] = -u[0];
    du[1] = u[0] - u[1] * u[1];
    du[2] = u[1] * u[1];
  }));
  to.push_back(own<3>("detest_b4", {3, 0, 0}, [](auto, const auto& u, const auto&, auto& du) {
    const auto r = std::sqrt(u[0] * u[0] + u[1] * u[1]);
    du[0] = -u[1] - u[0] * u[2] / r;
    du[1] = u[0] - u[1] * u[2] / r;
    du[2] = u[0] / r;
  }));
  to.push_back(own<3>("detest_b5", {0, 1, 1}, [](auto, const auto& u, const auto&, auto& du) {
    using T = std::decay_t<decltype(du[0])>;
    du[0] = u[1] * u[2];
    du[1] = -u[0] * u[2];
    du[2] = -T(0.51) * u[0] * u[1];
  }));
}

// The heat equation on n points, from a peak at the first.
template <int n>
PublishedProblem heat(const std::string& name) {
  PublishedProblem problem = own<n>(name, first_of(n), [](auto, const auto& u, const auto&, auto& du) {
    du[0] = u[1] - 2 * u[0];
    for (std::size_t i = 1; i + 1 < n; ++i) du[i] = u[i - 1] - 2 * u[i] + u[i + 1];
    du[n - 1] = u[n - 2] - 2 * u[n - 1];
  });
  problem.equations = "detest_heat";
  return problem;
}

// Sun and five planets, units of AU, 100 days and the sun's mass: the planets' places, then their velocities.
PublishedProblem five_bodies() {
  const std::vector<double> state{3.42947415189,  3.35386959711,  1.35494901715,  6.64145542550,  5.97156957878,
                                  2.18231499728,  11.2630437207,  14.6952576794,  6.27960525067,  -30.1552268759,
                                  1.65699966404,  1.43785752721,  -21.1238353380, 28.4465098142,  15.3882659679,
                                  -.557160570446, .505696783289,  .230578543901,  -.415570776342, .365682722812,
                                  .169143213293,  -.325325669158, .189706021964,  .0877265322780, -.0240476254170,
                                  -.287659532608, -.117219543175, -.176860753121, -.216393453025, -.0148647893090};
  return own<30>("detest_c5", state, [](auto, const auto& u, const auto&, auto& du) {
    using T = std::decay_t<decltype(du[0])>;
    constexpr double kGravity = 2.95912208286, kSun = 1.00000597682;
    constexpr double kMass[5] = {.000954786104043, .000285583733151, .0000437273164546, .0000517759138449,
                                 .00000277777777778};
    T pull[5];
    for (int j = 0; j < 5; ++j) {
      const T r2 = u[3 * j] * u[3 * j] + u[3 * j + 1] * u[3 * j + 1] + u[3 * j + 2] * u[3 * j + 2];
      pull[j] = 1 / (r2 * std::sqrt(r2));
    }
    for (int j = 0; j < 5; ++j) {
      for (int i = 0; i < 3; ++i) {
        du[3 * j + i] = u[15 + 3 * j + i];
        du[15 + 3 * j + i] = -T(kSun + kMass[j]) * u[3 * j + i] * pull[j];
      }
      for (int k = 0; k < 5; ++k) {
        if (k == j) continue;
        const T x = u[3 * k] - u[3 * j], y = u[3 * k + 1] - u[3 * j + 1], z = u[3 * k + 2] - u[3 * j + 2];
        const T d2 = x * x + y * y + z * z;
        const T near = 1 / (d2 * std::sqrt(d2));
        du[15 + 3 * j] += T(kMass[k]) * (x * near - u[3 * k] * pull[k]);
        du[15 + 3 * j + 1] += T(kMass[k]) * (y * near - u[3 * k + 1] * pull[k]);
        du[15 + 3 * j + 2] += T(kMass[k]) * (z * near - u[3 * k + 2] * pull[k]);
      }
      for (int i = 0; i < 3; ++i) du[15 + 3 * j + i] *= T(kGravity);
    }
  });
}

// Moderate systems.
void add_class_c(std::vector<PublishedProblem>& to) {
  to.push_back(own<10>("detest_c1", first_of(10), [](auto, const auto& u, const auto&, auto& du) {
    du[0] = -u[0];
    for (std::size_t i = 1; i < 9; ++i) du[i] = u[i - 1] - u[i];
    du[9] = u[8];
  }));
  to.push_back(own<10>("detest_c2", first_of(10), [](auto, const auto& u, const auto&, auto& du) {
    using T = std::decay_t<decltype(du[0])>;
    du[0] = -u[0];
    for (std::size_t i = 1; i < 9; ++i) du[i] = T(i) * u[i - 1] - T(i + 1) * u[i];
    du[9] = 9 * u[8];
  }));
  to.push_back(heat<10>("detest_c3"));
  to.push_back(heat<51>("detest_c4"));
  to.push_back(five_bodies());
}

// Orbits of five eccentricities.
void add_class_d(std::vector<PublishedProblem>& to) {
  for (int i = 1; i <= 5; ++i) {
    const double e = (2 * i - 1) / 10.0;
    to.push_back(detest("detest_d" + std::to_string(i), "kepler", ode::system("kepler"),
                        {1 - e, 0, 0, std::sqrt((1 + e) / (1 - e))}, {1}));
  }
}

// Equations of second order.
void add_class_e(std::vector<PublishedProblem>& to) {
  // Bessel's equation of order 1/2 at x + 1.
  to.push_back(
      own<2>("detest_e1", {.6713967071418030, .09540051444747446}, [](auto t, const auto& u, const auto&, auto& du) {
        using T = std::decay_t<decltype(du[0])>;
        const T x = T(t) + 1;
        du[0] = u[1];
        du[1] = -(u[1] / x + (1 - T(0.25) / (x * x)) * u[0]);
      }));
  to.push_back(detest("detest_e2", "van_der_pol", ode::system("van_der_pol"), {2, 0}, {1}));
  to.push_back(own<2>("detest_e3", {0, 0}, [](auto t, const auto& u, const auto&, auto& du) {
    using T = std::decay_t<decltype(du[0])>;
    du[0] = u[1];
    du[1] = u[0] * u[0] * u[0] / 6 - u[0] + T(2 * math::sin(2.78535 * t));
  }));
  to.push_back(own<2>("detest_e4", {30, 0}, [](auto, const auto& u, const auto&, auto& du) {
    using T = std::decay_t<decltype(du[0])>;
    du[0] = u[1];
    du[1] = T(.032) - T(.4) * u[1] * u[1];
  }));
  to.push_back(own<2>("detest_e5", {0, 0}, [](auto t, const auto& u, const auto&, auto& du) {
    using T = std::decay_t<decltype(du[0])>;
    du[0] = u[1];
    du[1] = std::sqrt(1 + u[1] * u[1]) / T(25 - t);
  }));
}

}  // namespace

void add_detest_problems(std::vector<PublishedProblem>& to) {
  add_class_a(to);
  add_class_b(to);
  add_class_c(to);
  add_class_d(to);
  add_class_e(to);
}

}  // namespace lockstep::validation
