#include "lockstep/nn/detail/equation_names.h"

#include <utility>

#include "lockstep/core/names.h"

namespace lockstep::nn::detail {
namespace {

// What functions of other languages are called here.
constexpr std::array<std::pair<std::string_view, std::string_view>, 20> kElsewhere{
    {{"ln", "write log(x), the natural logarithm"},
     {"fabs", "write abs(x)"},
     {"fmod", "write mod(x, y), which has the sign of y"},
     {"remainder", "write mod(x, y)"},
     {"rem", "write mod(x, y), which has the sign of y"},
     {"fix", "write trunc(x)"},
     {"sgn", "write sign(x)"},
     {"heaviside", "write x > 0, which is 1 or 0"},
     {"step", "write x > 0, which is 1 or 0"},
     {"hypot", "write sqrt(x^2 + y^2)"},
     {"cbrt", "write sign(x) * abs(x)^(1/3)"},
     {"where", "write if(condition, a, b)"},
     {"arcsin", "write asin(x)"},
     {"arccos", "write acos(x)"},
     {"arctan", "write atan(x)"},
     {"arctan2", "write atan2(y, x)"},
     {"arcsinh", "write asinh(x)"},
     {"arccosh", "write acosh(x)"},
     {"arctanh", "write atanh(x)"}}};

}  // namespace

const NamedFunction* named_function(std::string_view name) {
  const auto found = std::ranges::find(kNamedFunctions, name, &NamedFunction::name);
  return found == kNamedFunctions.end() ? nullptr : &*found;
}

std::string listed(const std::vector<std::string_view>& words) {
  constexpr std::size_t kMost = 24;
  std::string text;
  for (std::size_t i = 0; i < words.size() && i < kMost; ++i) text += (i == 0 ? "" : ", ") + std::string(words[i]);
  return words.size() > kMost ? text + ", ..." : text;
}

std::string remedy_for(std::string_view name, const std::vector<std::string_view>& known) {
  for (const auto& [other, remedy] : kElsewhere) {
    if (name == other) return std::string(remedy);
  }
  const std::string found = nearest_name(name, known);
  return found.empty() ? "" : "did you mean \"" + found + "\"?";
}

}  // namespace lockstep::nn::detail
