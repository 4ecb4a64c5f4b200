// What the names in an expression may be, and words for those that nothing has.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::nn::detail {

constexpr bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) > 127;
}

constexpr bool is_name(std::string_view text) {
  return !text.empty() && begins_name(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) { return begins_name(c) || (c >= '0' && c <= '9'); });
}

// A function that every expression may call.
struct NamedFunction {
  std::string_view name;
  std::size_t arguments;
  bool or_more = false;
};
inline constexpr std::array<NamedFunction, 40> kNamedFunctions = {
    {{"abs", 1},     {"acos", 1},      {"acosh", 1},     {"asin", 1}, {"asinh", 1}, {"atan", 1},     {"atan2", 2},
     {"atanh", 1},   {"ceil", 1},      {"clamp", 3},     {"cos", 1},  {"cosh", 1},  {"erf", 1},      {"exp", 1},
     {"expm1", 1},   {"floor", 1},     {"gelu", 1},      {"if", 3},   {"log", 1},   {"log10", 1},    {"log1p", 1},
     {"log2", 1},    {"max", 2, true}, {"min", 2, true}, {"mod", 2},  {"pow", 2},   {"relu", 1},     {"round", 1},
     {"sigmoid", 1}, {"sign", 1},      {"silu", 1},      {"sin", 1},  {"sinh", 1},  {"softplus", 1}, {"softsign", 1},
     {"sqrt", 1},    {"square", 1},    {"tan", 1},       {"tanh", 1}, {"trunc", 1}}};
// nullptr where there is none.
const NamedFunction* named_function(std::string_view name);

// "a, b, c", of many the first ones.
std::string listed(const std::vector<std::string_view>& words);
// What to write instead of a name that none of those known is; empty where nothing is near.
std::string remedy_for(std::string_view name, const std::vector<std::string_view>& known);

}  // namespace lockstep::nn::detail
