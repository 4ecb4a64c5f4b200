#include "lockstep/nn/detail/equation_names.h"

#include <utility>

#include "lockstep/core/names.h"

namespace lockstep::nn::detail {
namespace {

// What functions of other languages are called here.
constexpr std::array<std::pair<std::string_view, std::string_view>, 19> kElsewhere{
    {{"ln", "write log(x), the natural logarithm"},
     {"log10", "write log(x) / log(10)"},
     {"log2", "write log(x) / log(2)"},
     {"fabs", "write abs(x)"},
     {"fmod", "write mod(x, y), which has the sign of y"},
     {"remainder", "write mod(x, y)"},
     {"rem", "write mod(x, y), which has the sign of y"},
     {"trunc", "write if(x < 0, ceil(x), floor(x))"},
     {"sign", "write if(x < 0, -1, x > 0)"},
     {"sgn", "write if(x < 0, -1, x > 0)"},
     {"heaviside", "write x > 0, which is 1 or 0"},
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
