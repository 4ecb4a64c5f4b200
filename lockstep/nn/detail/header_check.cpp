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
 * numbers; else 1 (float differs), 2 (double differs) or 3. */
@CALL int $check({WEIGHT_ARGUMENT}) {
  static const double in[@INPUTS] = {IN};
  static const float expected_f32[@OUTPUTS] = {OUT32}; /* 0 for what is not finite */
  static const double expected_f64[@OUTPUTS] = {OUT64};
  float x[@INPUTS], y[@OUTPUTS];
  double u[@INPUTS], v[@OUTPUTS];
  volatile float small32 = 1e-40f;
  volatile double small64 = 1e-310;
  int i, result = (@PRODUCT32(small32, 0.5f) == 0 ? 1 : 0) | (@PRODUCT64(small64, 0.5) == 0 ? 2 : 0);
  for (i = 0; i < @INPUTS; ++i) x[i] = (float)(u[i] = in[i]);
  $evaluate{S32}({WEIGHT_PASS}{ALONE32});
  $evaluate{S64}({WEIGHT_PASS}{ALONE64});
  for (i = 0; i < @OUTPUTS; ++i) {
    if ($finite_bits{S32}(y[i]) != $bits{S32}(expected_f32[i])) result |= 1;
    if ($finite_bits{S64}(v[i]) != $bits{S64}(expected_f64[i])) result |= 2;
  }
  if (${TOGETHER}_differs{S32}({WEIGHT_PASS}x)) result |= 1;
  if (${TOGETHER}_differs{S64}({WEIGHT_PASS}u)) result |= 2;
  return result;
}
)";
constexpr std::string_view kCheckOfDouble = R"(
/* 0 when this compiler and machine keep the net's bits, of a sample alone and of samples together, and denormal
 * numbers; else 2. */
@CALL int $check({WEIGHT_ARGUMENT}) {
  static const double in[@INPUTS] = {IN};
  static const double expected_f64[@OUTPUTS] = {OUT64}; /* 0 for what is not finite */
  double u[@INPUTS], v[@OUTPUTS];
  volatile double small64 = 1e-310;
  int i, result = @PRODUCT64(small64, 0.5) == 0 ? 2 : 0;
  for (i = 0; i < @INPUTS; ++i) u[i] = in[i];
  $evaluate{S64}({WEIGHT_PASS}{ALONE64});
  for (i = 0; i < @OUTPUTS; ++i) {
    if ($finite_bits{S64}(v[i]) != $bits{S64}(expected_f64[i])) result = 2;
  }
  if (${TOGETHER}_differs{S64}({WEIGHT_PASS}u)) result = 2;
  return result;
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
  const std::string alone = cuda ? ", 1" : "", single = cuda ? "" : "_f32", twice = cuda ? "" : "_f64";
  const TextValues common = {
      {"WEIGHT_ARGUMENT", argument ? "const $weight* weights"
                          : cuda   ? ""
                                   : "void"},
      {"WEIGHT_FIRST", argument ? "const $weight* weights, " : ""},
      {"WEIGHT_PASS", argument ? "weights, " : ""},
      {"ALONE", ports_text(plan, "x + s * @INPUTS", "alone", alone, alone)},
      {"TOGETHER", ports_text(plan, "x", "y", ", @INPUTS, 1", ", @OUTPUTS, 1")},
  };
  const auto of_precision = [&](std::string_view text, bool is_single) {
    TextValues values = common;
    values.insert({{"T", is_single ? "float" : "double"}, {"BITS", is_single ? "uint32_t" : "uint64_t"}});
    return replaced(fill(text, values), '~', is_single ? single : twice);
  };
  const auto of_precisions = [&](std::string_view text) {
    return (plan.has_float() ? of_precision(text, true) : "") + of_precision(text, false);
  };
  const std::string text =
      of_precisions(kFiniteBits) + (cuda ? fill(kTogetherInCuda, common) : of_precisions(kTogetherInC));
  TextValues values = common;
  values["TOGETHER"] = cuda ? "group" : "batch";
  values.insert({{"IN", initialiser<double>(in)},
                 {"OUT32", plan.has_float() ? initialiser<float>(out32) : ""},
                 {"OUT64", initialiser<double>(out64)},
                 {"S32", single},
                 {"S64", twice},
                 {"ALONE32", ports_text(plan, "x", "y", alone, alone)},
                 {"ALONE64", ports_text(plan, "u", "v", alone, alone)}});
  return text + fill(plan.has_float() ? kCheck : kCheckOfDouble, values);
}

}  // namespace lockstep::nn::detail
