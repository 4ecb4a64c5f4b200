// What the nodes of a net may compute: operations on vectors, one sample at a time. Everything a trained net is made
// of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lockstep/core/cpp20.h"
#include "lockstep/kernels/activation.h"

namespace lockstep::graph {

// Numbers are held as float64, which is exact for every smaller format. Lists run over the features of the vector that
// is read or made. Each operation is rounded as written here, sums run over features ascending; docs/numerics.md.

struct Dense {  // W x + b: acc = b[j]; for k ascending acc = fma(W[j][k], x[k], acc)
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  std::vector<double> weights;  // [output][input]
  std::vector<double> bias;     // [output]
  bool has_bias = true;         // without one `bias` is zeros, which training leaves alone
};
struct Activate {  // the function on each element
  Activation activation;
};
struct Standardise {  // (x - shift) / scale, element by element: one subtraction, one division
  std::vector<double> shift;
  std::vector<double> scale;
};
struct Rescale {  // fma(x, scale, shift), element by element
  std::vector<double> scale;
  std::vector<double> shift;
};

struct Constant {  // reads nothing: the same numbers for every sample; infinities too, which masks are made of
  std::vector<double> values;
};
struct Concatenate {};  // all it reads, one after another
struct Columns {        // some features of what it reads, in this order; one may stand there twice
  std::vector<std::size_t> indices;
};

// round takes halves to the even neighbour.
enum class UnaryKind { square_root, exp, log, absolute, negate, reciprocal, erf, cosine, floor, round, arctangent };
struct Unary {  // the function on each element
  UnaryKind kind = UnaryKind::negate;
};
struct Clip {  // min(max(x, minimum), maximum), a bound left out where infinite; NaN stays
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
};
struct DeadZone {  // x > upper ? x - bias : x < lower ? x + bias : 0; NaN stays. Hard and soft thresholds
  double lower = 0;
  double upper = 0;
  double bias = 0;
};

// Element by element between two vectors of one width, or one of them of width 1, which then meets every element of the
// other. minimum and maximum are NaN where either is. Comparisons give 1 or 0, and 0 where either is NaN. modulo is the
// remainder with the sign of the second, math/modulo-inl.h.
enum class BinaryKind { add, subtract, multiply, divide, minimum, maximum, power, less, less_or_equal, equal, modulo };
inline constexpr std::size_t kUnaryKinds = static_cast<std::size_t>(UnaryKind::arctangent) + 1,
                             kBinaryKinds = static_cast<std::size_t>(BinaryKind::modulo) + 1;
// Of a value in steps, whose derivative is 0.
constexpr bool is_comparison(BinaryKind kind) {
  return kind == BinaryKind::less || kind == BinaryKind::less_or_equal || kind == BinaryKind::equal;
}
constexpr bool is_in_steps(UnaryKind kind) { return kind == UnaryKind::floor || kind == UnaryKind::round; }
struct Binary {
  BinaryKind kind = BinaryKind::add;
};
struct Choose {  // mask[i] ? first[i] : second[i]; widths as for Binary
  std::vector<std::uint8_t> mask;
};

struct Select {};  // of three values: first[i] != 0 ? second[i] : third[i]; widths as for Binary

// Over the features, m being the largest: e[i] = exp(x[i] - m), y[i] = e[i] / sum(e), or its logarithm
// (x[i] - m) - log(sum(e)).
enum class SoftmaxKind { plain, logarithm };
struct Softmax {
  SoftmaxKind kind = SoftmaxKind::plain;
};
enum class ReduceKind { sum, mean, minimum, maximum };
struct Reduce {  // all features to one
  ReduceKind kind = ReduceKind::sum;
};
// d = (x - x[0]) - mean(x - x[0]), r = 1 / sqrt(mean(d^2) + epsilon), y = fma((d - mean(d)) r, scale, shift); squares
// are summed by fma. mean(d) is what rounding left of the mean, which matters beside the others, not in the squares.
struct LayerNormalise {
  std::vector<double> scale;
  std::vector<double> shift;
  double epsilon = 1e-5;
};

// Of one number x a polynomial between knots, one for each feature made; beyond the ends the value at the end, so that
// x is clamped first: c = min(max(x, knots.front()), knots.back()). From knot i, the last one with knots[i] <= c, the
// distance is d = c - knots[i], and y[j] = fma(... fma(c_n, d, c_(n-1)) ..., d, c_0) with that knot's coefficients.
struct Interpolate {
  std::vector<double> knots;         // ascending
  std::size_t outputs = 1;           // features
  std::vector<double> coefficients;  // [feature][power, the highest first][knot]; as many powers as that makes

  std::size_t powers() const { return coefficients.size() / (outputs * knots.size()); }
};

// What derivatives of nets are made of: first[i] f'(second[i]), f the activation, element by element between two values
// of one width. Where chain_reads_value() the second is f's value, else its argument.
struct Chain {
  Activation activation;
};
// relu, tanh and sigmoid: x > 0 ? first : 0, first fma(-x, x, 1), first fma(-x, x, x) for the value x.
constexpr bool chain_reads_value(ActivationKind kind) {
  return kind == ActivationKind::relu || kind == ActivationKind::tanh || kind == ActivationKind::sigmoid;
}

// New ones are appended: the order enters stored plans.
using Operation = std::variant<Dense, Activate, Standardise, Rescale, Constant, Concatenate, Columns, Unary, Clip,
                               DeadZone, Binary, Choose, Softmax, Reduce, LayerNormalise, Select, Chain, Interpolate>;

std::string_view to_string(UnaryKind kind);            // "square_root"
std::string_view to_string(BinaryKind kind);           // "multiply"
std::string_view to_string(SoftmaxKind kind);          // "softmax", "log_softmax"
std::string_view to_string(ReduceKind kind);           // "sum"
std::string_view name_of(const Operation& operation);  // "dense", "columns", ...

// The width of what `operation` makes of values of these widths. Throws Error (model), its fields beginning with
// `name`, when their number or widths do not fit, a number is not finite, or a scale is zero.
std::size_t output_width(const Operation& operation, std::span<const std::size_t> inputs, const std::string& name);

// One line for people: "dense 10 -> 133", "columns 0..4, 7", "clip from 0".
std::string describe(const Operation& operation);

}  // namespace lockstep::graph
