#include "lockstep/ode/methods.h"

#include <array>

#include "lockstep/core/names.h"
#include "lockstep/ode/methods/detail/list.h"

namespace lockstep::ode {
namespace {

using MethodFunction = const Tableau& (*)();
constexpr std::array<MethodFunction, 10> kMethods{euler, midpoint, heun, rk4, bs3, dopri5, tsit5, vern7, dop853, vern9};

}  // namespace

std::vector<std::string_view> method_names() {
  std::vector<std::string_view> names;
  for (const MethodFunction m : kMethods) names.push_back(m().name);
  return names;
}

const Tableau& method(std::string_view name) {
  for (const MethodFunction m : kMethods) {
    if (m().name == name) return m();
  }
  throw unknown_name("method", name, method_names());
}

}  // namespace lockstep::ode
