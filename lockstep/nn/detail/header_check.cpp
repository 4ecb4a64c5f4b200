// The check of an exported header: one sample against the library's bits, and samples together against each alone.
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/nn/detail/header_text.h"

namespace lockstep::nn::detail {
namespace {

// Samples together go through other loops than one alone: a whole tile and a rest beside it.
constexpr std::string_view kTogetherInC = R"(
/* Has a batch, a tile and a rest of other samples each, other bits than its samples alone? */
@CALL int $batch_differs~({WEIGHT_FIRST}const {T} *in) {
  {T} x[@INPUTS * (@TILE + 1)], y[@OUTPUTS * (@TILE + 1)], alone[@OUTPUTS];
  int i, s, result = 0;
  for (s = 0; s <= @TILE; ++s) {
    for (i = 0; i < @INPUTS; ++i) x[s * @INPUTS + i] = in[i] * (({T})(64 - s) / 64);
  }
  $evaluate_batch~({WEIGHT_PASS}@TILE + 1, {TOGETHER});
  for (s = 0; s <= @TILE; ++s) {
    $evaluate~({WEIGHT_PASS}{ALONE});
    for (i = 0; i < @OUTPUTS; ++i) {
      if ($finite_bits~(y[s * @OUTPUTS + i]) != $finite_bits~(alone[i])) result = 1;
    }
  }
  return result;
}
)";
constexpr std::string_view kTogetherInCuda = R"(
// Have three samples of a group, of one thread here, other bits than each alone?
template <class T>
@CALL int $group_differs({WEIGHT_FIRST}const T* in) {
  T x[3 * @INPUTS], y[3 * @OUTPUTS], alone[@OUTPUTS], scratch[$scratch(3)];
  int result = 0;
  for (int s = 0; s < 3; ++s) {
    for (int i = 0; i < @INPUTS; ++i) x[s * @INPUTS + i] = in[i] * (T(64 - s) / 64);
  }
  $evaluate_group($alone(), {WEIGHT_PASS}3, {TOGETHER}, scratch);
  for (int s = 0; s < 3; ++s) {
    $evaluate({WEIGHT_PASS}{ALONE});
    for (int i = 0; i < @OUTPUTS; ++i) {
      if ($finite_bits(y[s * @OUTPUTS + i]) != $finite_bits(alone[i])) result = 1;
    }
  }
  return result;
}
)";

constexpr std::string_view kFiniteBits = R"(
/* 0 for what is not finite, whose bits are not kept. */
@CALL {BITS} $finite_bits~({T} x) { return x - x == 0 ? $bits~(x) : 0; }
)";

constexpr std::string_view kCheck = R"(
/* 0 when this compiler and machine keep the net's bits, of a sample alone and of samples together, and denormal
 * numbers; else {RESULTS}. */
@CALL int $check({WEIGHT_ARGUMENT}) {
  static const double in[@INPUTS] = {IN};
  int i, result = 0;
{EACH}  return result;
}
)";
constexpr std::string_view kCheckOfPrecision = R"(  {
    static const {T} expected[@OUTPUTS] = {OUT}; /* 0 for what is not finite */
    {T} x[@INPUTS], y[@OUTPUTS];
    volatile {T} small = {SMALL};
    if (@PRODUCT{DIGITS}(small, {HALF}) == 0) result |= {RESULT};
    for (i = 0; i < @INPUTS; ++i) x[i] = ({T})in[i];
    $evaluate~({WEIGHT_PASS}{ONE});
    for (i = 0; i < @OUTPUTS; ++i) {
      if ($finite_bits~(y[i]) != $bits~(expected[i])) result |= {RESULT};
    }
    if (${SEVERAL}_differs~({WEIGHT_PASS}x)) result |= {RESULT};
  }
)";

// The arguments of all ports: each one's array, of all ports' features, from where its own begin, and its strides.
std::string ports_text(const HeaderPlan& plan, const std::string& from, const std::string& to,
                       const std::string& from_strides, const std::string& to_strides) {
  std::string text;
  const auto pass = [&](const std::string& array, std::size_t offset, const std::string& strides) {
    text += (text.empty() ? "" : ", ") + array + " + " + std::to_string(offset) + strides;
  };
  if (!plan.graph) {
    pass(from, 0, from_strides);
    pass(to, 0, to_strides);
    return text;
  }
  std::size_t offset = 0;
  for (const HeaderPort& port : plan.graph->inputs)
    pass(from, std::exchange(offset, offset + port.width), from_strides);
  offset = 0;
  for (const HeaderPort& port : plan.graph->outputs) pass(to, std::exchange(offset, offset + port.width), to_strides);
  return text;
}

}  // namespace

std::string check_text(const HeaderPlan& plan, const std::vector<double>& in, const std::vector<double>& out32,
                       const std::vector<double>& out64) {
  const bool cuda = plan.options.language == HeaderLanguage::cuda;
  const bool argument = plan.options.weights_in == WeightsIn::argument;
  const std::string alone = cuda ? ", 1" : "";
  const TextValues common = {
      {"WEIGHT_ARGUMENT", argument ? "const $weight* weights"
                          : cuda   ? ""
                                   : "void"},
      {"WEIGHT_FIRST", argument ? "const $weight* weights, " : ""},
      {"WEIGHT_PASS", argument ? "weights, " : ""},
      {"ONE", ports_text(plan, "x", "y", alone, alone)},
      {"ALONE", ports_text(plan, "x + s * @INPUTS", "alone", alone, alone)},
      {"TOGETHER", ports_text(plan, "x", "y", ", @INPUTS, 1", ", @OUTPUTS, 1")},
      {"SEVERAL", cuda ? "group" : "batch"},
  };
  const auto in_float = [&](std::string_view text) {
    TextValues values = common;
    values.insert({{"T", "float"},
                   {"BITS", "uint32_t"},
                   {"DIGITS", "32"},
                   {"OUT", initialiser<float>(out32)},
                   {"SMALL", "1e-40f"},
                   {"HALF", "0.5f"},
                   {"RESULT", "1"}});
    return replaced(fill(text, values), '~', cuda ? "" : "_f32");
  };
  const auto in_double = [&](std::string_view text) {
    TextValues values = common;
    values.insert({{"T", "double"},
                   {"BITS", "uint64_t"},
                   {"DIGITS", "64"},
                   {"OUT", initialiser<double>(out64)},
                   {"SMALL", "1e-310"},
                   {"HALF", "0.5"},
                   {"RESULT", "2"}});
    return replaced(fill(text, values), '~', cuda ? "" : "_f64");
  };
  const auto in_each = [&](std::string_view text) {
    return (plan.has_float() ? in_float(text) : "") + in_double(text);
  };
  TextValues values = common;
  values.insert({{"RESULTS", plan.has_float() ? "1 (float differs), 2 (double differs) or 3" : "2"},
                 {"IN", initialiser<double>(in)},
                 {"EACH", in_each(kCheckOfPrecision)}});
  return in_each(kFiniteBits) + (cuda ? fill(kTogetherInCuda, common) : in_each(kTogetherInC)) + fill(kCheck, values);
}

}  // namespace lockstep::nn::detail
