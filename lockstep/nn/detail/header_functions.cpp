// Elementary operations and activations of exported headers, as text. The activations are the library's own templates,
// instantiated with a lane that records them.
#include "lockstep/kernels/math/math.h"
#include "lockstep/nn/detail/c_lane.h"
#include "lockstep/nn/detail/header_text.h"

namespace lockstep::nn::detail {
namespace {

// A product may be an operand of a sum; @PRODUCT keeps a compiler from making one instruction, rounded once, of both.
constexpr std::string_view kOperations = R"(
@CALL {T} $abs~({T} x) { return {C}fabs{F}(x); }
@CALL {T} $copysign~({T} x, {T} sign) { return {C}copysign{F}(x, sign); }
@CALL {T} $fma~({T} a, {T} b, {T} c) { return {C}fma{F}(a, b, c); }
@CALL {T} $sqrt~({T} x) { return @ROOT{W}(x); }
@CALL {T} $round_down~({T} x) { return {C}floor{F}(x); }
@CALL {T} $round_to_even~({T} x) { return {C}rint{F}(x); }
@CALL {T} $mul~({T} a, {T} b) { return @PRODUCT{W}(a, b); }
@CALL {T} $div~({T} a, {T} b) { return @QUOTIENT{W}(a, b); }
@CALL {I} $bits~({T} x) {
  {I} i;
  memcpy(&i, &x, sizeof i);
  return i;
}
@CALL {T} $from_bits~({I} i) {
  {T} x;
  memcpy(&x, &i, sizeof x);
  return x;
}
)";

template <class T>
std::string activation_text(const std::string& name, const Activation& activation) {
  using L = CLane<T>;
  CRecorder recorder;
  const typename L::V x{{"x"}};
  const auto result = with_activation_kind(activation.kind, [&](auto kind) {
    return math::activate<kind(), L>(x, L::set(static_cast<T>(activation.alpha)));
  });
  const std::string type = L::kType;
  return "/* " + to_string(activation) + " */\n@CALL " + type + " $" + name + "~(" + type + " x) {\n" +
         recorder.statements(result.text) + "  return " + result.text + ";\n}\n";
}

// The scaling of feature i, the feature itself where there is none.
template <class T>
std::string scaling_text(const std::string& name, const std::vector<double>& shift, const std::vector<double>& scale,
                         const std::string& formula) {
  const std::string type = CLane<T>::kType;
  const std::string head = "@CALL " + type + " $" + name + "~(int i, " + type + " x) {\n";
  if (scale.empty()) return head + "  (void)i;\n  return x;\n}\n";
  const auto table = [&](const char* of, const std::vector<double>& numbers) {
    return "  static const " + type + " " + of + "[] = " + initialiser<T>(numbers) + ";\n";
  };
  return head + table("shift", shift) + table("scale", scale) + "  return " + formula + ";\n}\n";
}

// x near 0 for sine: math::reduce_huge_angle, with products of 64-bit numbers made from halves, as C has no wider type.
// export_test compares it bit for bit.
constexpr std::string_view kReduceAngle = R"(
/* The leading and, in *low, the trailing 64 bits of a b. */
@CALL uint64_t $wide_product(uint64_t a, uint64_t b, uint64_t *low) {
  const uint64_t mask = 0xffffffffu;
  const uint64_t ll = (a & mask) * (b & mask), lh = (a & mask) * (b >> 32);
  const uint64_t hl = (a >> 32) * (b & mask), hh = (a >> 32) * (b >> 32);
  const uint64_t middle = (ll >> 32) + (lh & mask) + (hl & mask);
  *low = a * b;
  return hh + (lh >> 32) + (hl >> 32) + (middle >> 32);
}
/* r with sin r = sin x, or cos x for one quarter turn, and |r| <= pi/2, for |x| >= 2^12, in integers (Payne & Hanek
 * 1983). */
@CALL double $reduce_huge_angle{S}(double x, int quarter_turns) {
  /* 64 zero bits, then 1/pi */
  static const uint64_t inverse_pi[21] = {
      0x0000000000000000ull, 0x517cc1b727220a94ull, 0xfe13abe8fa9a6ee0ull, 0x6db14acc9e21c820ull, 0xff28b1d5ef5de2b0ull,
      0xdb92371d2126e970ull, 0x0324977504e8c90eull, 0x7f0ef58e5894d39full, 0x74411afa975da242ull, 0x74ce38135a2fbf20ull,
      0x9cc8eb1cc1a99cfaull, 0x4e422fc5defc941dull, 0x8ffc4bffef02cc07ull, 0xf79788c5ad05368full, 0xb69b3f6793e584dbull,
      0xa7a31fb34f2ff516ull, 0xba93dd63f5f2f8bdull, 0x9e839cfbc5294975ull, 0x35fdafd88fc6ae84ull, 0x2b0198237e3db5d5ull,
      0xf867de104d7a1b0eull};
  const uint64_t bits = $bits{S}(x);
  const int biased = (int)(bits >> 52 & 0x7ff);
  uint64_t m, p[3], low, middle, last, mid, high;
  int i, start, word, shift, odd, up, negative, scale = 0;
  double head, tail, product, rest, r;
  if (biased == 0x7ff) return x - x;
  if (biased < 1023 + 12) return x;
  m = (bits & 0xfffffffffffffull) | 0x10000000000000ull;
  start = biased - 1075 + 63;
  word = start / 64;
  shift = start % 64;
  for (i = 0; i < 3; ++i) {
    p[i] = inverse_pi[word + i] << shift | (shift == 0 ? 0 : inverse_pi[word + i + 1] >> (64 - shift));
  }
  /* m p mod 2^192: the highest bit is the parity of floor(x/pi), the rest its fraction */
  low = $wide_product(m, p[2], &last);
  middle = $wide_product(m, p[1], &mid);
  mid += low;
  high = m * p[0] + middle + (mid < low ? 1 : 0);
  if (quarter_turns != 0) high += (uint64_t)1 << 62;
  odd = high >> 63 != 0;
  high = high << 1 | mid >> 63;
  mid = mid << 1 | last >> 63;
  last <<= 1;
  up = high >> 63 != 0; /* past one half: fraction - 1, as a magnitude */
  if (up) {
    odd = !odd;
    high = ~high;
    mid = ~mid;
    last = ~last;
  }
  negative = up != odd;
  if (quarter_turns == 0 && bits >> 63 != 0) negative = !negative;
  while (high >> 63 == 0 && scale < 128) {
    high = high << 1 | mid >> 63;
    mid = mid << 1 | last >> 63;
    last <<= 1;
    ++scale;
  }
  /* the leading 106 bits as two numbers, times pi as two numbers */
  head = $mul{S}((double)(high >> 11), 1.1102230246251565e-16);
  tail = $mul{S}((double)((high & 0x7ff) << 42 | mid >> 22), 1.232595164407831e-32);
  product = $mul{S}(head, 3.141592653589793);
  rest = $fma{S}(head, 1.2246467991473532e-16, $mul{S}(tail, 3.141592653589793));
  rest = $fma{S}(head, 3.141592653589793, -product) + rest;
  r = $mul{S}(product + rest, $from_bits{S}((uint64_t)(1023 - scale) << 52));
  return negative ? -r : r;
}
)";
constexpr std::string_view kReduceFloatAngle = R"(@CALL float $reduce_huge_angle{S32}(float x, int quarter_turns) {
  return (float)$reduce_huge_angle{S}((double)x, quarter_turns);
}
)";

}  // namespace

template <class T>
std::string functions_text(const HeaderPlan& plan) {
  constexpr bool single = sizeof(T) == 4;
  const bool cuda = plan.options.language == HeaderLanguage::cuda;
  const TextValues values = {{"T", single ? "float" : "double"},
                             {"I", single ? "uint32_t" : "uint64_t"},
                             {"C", cuda ? "::" : ""},
                             {"F", single ? "f" : ""},
                             {"W", single ? "32" : "64"}};
  return fill(kOperations, values);
}

std::string reduce_angle_text(const HeaderPlan& plan) {
  const bool cuda = plan.options.language == HeaderLanguage::cuda;
  const TextValues values = {{"S", cuda ? "" : "_f64"}, {"S32", cuda ? "" : "_f32"}};
  return fill(kReduceAngle, values) + (plan.has_float() ? fill(kReduceFloatAngle, values) : "");
}

template <class T>
std::string activations_text(const HeaderPlan& plan) {
  std::string text;
  for (const auto& [name, activation] : plan.functions) text += activation_text<T>(name, activation);
  return text;
}

template <class T>
std::string scalings_text(const HeaderPlan& plan) {
  const InputScaling& in = plan.mlp.input_scaling;
  const OutputScaling& out = plan.mlp.output_scaling;
  return scaling_text<T>("scale_in", in.shift, in.scale, "$div~(x - shift[i], scale[i])") +
         scaling_text<T>("scale_out", out.shift, out.scale, "$fma~(x, scale[i], shift[i])");
}

template std::string functions_text<float>(const HeaderPlan&);
template std::string functions_text<double>(const HeaderPlan&);
template std::string activations_text<float>(const HeaderPlan&);
template std::string activations_text<double>(const HeaderPlan&);
template std::string scalings_text<float>(const HeaderPlan&);
template std::string scalings_text<double>(const HeaderPlan&);

}  // namespace lockstep::nn::detail
