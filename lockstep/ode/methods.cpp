#include "lockstep/ode/methods.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/names.h"
#include "lockstep/ode/methods/detail/list.h"

namespace lockstep::ode {
namespace {

using MethodFunction = const Tableau& (*)();
constexpr std::array<MethodFunction, 13> kMethods{euler, midpoint, heun,  rk4,  bs3,   dopri5, tsit5,
                                                  vern7, dop853,   vern9, rkc8, rkc20, rodas5p};

// What other programs call a method, in small letters.
struct OtherName {
  std::string_view theirs, ours;
};
constexpr OtherName kOtherNames[] = {{"rk45", "dopri5"},   {"ode45", "dopri5"}, {"dp5", "dopri5"},  {"dop5", "dopri5"},
                                     {"rkf45", "dopri5"},  {"rk23", "bs3"},     {"ode23", "bs3"},   {"dp8", "dop853"},
                                     {"dopri8", "dop853"}, {"ode78", "vern7"},  {"ode89", "vern9"}, {"rkc", "rkc20"},
                                     {"rock2", "rkc20"},   {"rock4", "rkc20"}};
constexpr std::string_view kImplicit[] = {"bdf",      "radau",    "radau5",    "lsoda",  "cvode",  "rodas5",
                                          "rodas4",   "ros3p",    "ode15s",    "ode23s", "ode23t", "ode23tb",
                                          "kvaerno5", "kvaerno3", "kvaerno4",  "trbdf2", "gear",   "rosenbrock23",
                                          "stiff",    "implicit", "rosenbrock"};

std::string remedy_for(std::string_view name) {
  std::string small(name);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const OtherName& other : kOtherNames) {
    if (small == other.theirs) return "did you mean \"" + std::string(other.ours) + "\"?";
  }
  if (std::ranges::find(kImplicit, small) == std::end(kImplicit)) return {};
  return "for stiff problems take \"rodas5p\"";
}

}  // namespace

std::vector<std::string_view> method_names() {
  std::vector<std::string_view> names;
  for (const MethodFunction m : kMethods) names.push_back(m().name);
  return names;
}

std::vector<std::string_view> explicit_method_names() {
  std::vector<std::string_view> names = method_names();
  std::erase_if(names, [](std::string_view name) { return method(name).is_linearly_implicit(); });
  return names;
}

const Tableau& method(std::string_view name) {
  for (const MethodFunction m : kMethods) {
    if (m().name == name) return m();
  }
  const Error unknown = unknown_name("method", name, method_names());
  const std::string remedy = remedy_for(name);
  if (remedy.empty()) throw unknown;
  throw Error(unknown.kind(), {unknown.field(), unknown.found(), unknown.expected(), remedy});
}

}  // namespace lockstep::ode
