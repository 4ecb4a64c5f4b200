#include "problems.h"

#include <algorithm>
#include <cmath>

#include "lockstep/core/names.h"
#include "lockstep/ode/function.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::validation {
namespace {

// A built-in system as it comes.
PublishedProblem as_published(const std::string& name) {
  const ode::SystemInfo& info = ode::system_info(name);
  return {name,
          name,
          info.source,
          {.rhs = ode::system(name),
           .initial_states = info.default_initial_state,
           .parameters = info.default_parameters,
           .end_times = {info.default_end_time}}};
}

// Hull, Enright, Fellen & Sedgwick 1972, Comparing numerical methods for ordinary differential equations, SIAM J.
// Numer. Anal. 9, 603-637, whose problems all end at t = 20.
PublishedProblem detest(const std::string& name, const std::string& equations, ode::Rhs rhs,
                        std::vector<double> initial_state, std::vector<double> parameters) {
  return {name,
          equations,
          "Hull, Enright, Fellen & Sedgwick 1972, SIAM J. Numer. Anal. 9, 603-637",
          {.rhs = std::move(rhs),
           .initial_states = std::move(initial_state),
           .parameters = std::move(parameters),
           .end_times = {20}}};
}

PublishedProblem detest_orbit(const std::string& name, double eccentricity) {
  const double e = eccentricity;
  return detest(name, "kepler", ode::system("kepler"), {1 - e, 0, 0, std::sqrt((1 + e) / (1 - e))}, {1});
}

std::vector<PublishedProblem> make_problems() {
  const ode::Rhs rigid_body = ode::function<3>("rigid body", [](auto, const auto& u, const auto&, auto& du) {
    du[0] = u[1] * u[2];
    du[1] = -u[0] * u[2];
    du[2] = -0.51 * u[0] * u[1];
  });
  return {
      as_published("arenstorf"),
      as_published("brusselator"),
      as_published("fitzhugh_nagumo"),
      as_published("harmonic_oscillator"),
      as_published("henon_heiles"),
      as_published("kepler"),
      as_published("lorenz"),
      as_published("lotka_volterra"),
      as_published("pleiades"),
      as_published("rossler"),
      as_published("van_der_pol"),
      detest("detest_b1", "lotka_volterra", ode::system("lotka_volterra"), {1, 3}, {2, 2, 1, 1}),
      detest("detest_b5", "rigid_body", rigid_body, {0, 1, 1}, {}),
      detest_orbit("detest_d1", 0.1),
      detest_orbit("detest_d3", 0.5),
      detest_orbit("detest_d5", 0.9),
  };
}

}  // namespace

const std::vector<PublishedProblem>& published_problems() {
  static const std::vector<PublishedProblem> problems = make_problems();
  return problems;
}

const PublishedProblem& published_problem(const std::string& name) {
  const auto& problems = published_problems();
  const auto found = std::find_if(problems.begin(), problems.end(), [&](const auto& p) { return p.name == name; });
  if (found != problems.end()) return *found;
  std::vector<std::string_view> names;
  for (const PublishedProblem& p : problems) names.push_back(p.name);
  throw unknown_name("published problem", name, names);
}

}  // namespace lockstep::validation
