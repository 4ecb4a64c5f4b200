#include "problems.h"

#include <algorithm>

#include "lockstep/core/names.h"
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

std::vector<PublishedProblem> make_problems() {
  std::vector<PublishedProblem> problems{
      as_published("arenstorf"),       as_published("brusselator"),
      as_published("fitzhugh_nagumo"), as_published("harmonic_oscillator"),
      as_published("henon_heiles"),    as_published("kepler"),
      as_published("lorenz"),          as_published("lotka_volterra"),
      as_published("pleiades"),        as_published("rossler"),
      as_published("van_der_pol"),
  };
  add_detest_problems(problems);
  return problems;
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
