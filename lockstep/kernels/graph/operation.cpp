#include "lockstep/kernels/graph/operation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "lockstep/core/all_finite.h"
#include "lockstep/core/error.h"
#include "lockstep/core/text.h"

namespace lockstep::graph {
namespace {

// Of one value: repeated doubling in a damaged file would ask for all memory.
constexpr std::size_t kMostFeatures = std::size_t{1} << 20;

[[noreturn]] void refuse(std::string field, std::string found, std::string expected, std::string remedy = {}) {
  throw Error(ErrorKind::model, {std::move(field), std::move(found), std::move(expected), std::move(remedy)});
}

std::string six_digits(double value) { return rounded_text(value, 6); }

void check_finite(const std::string& field, double value) {
  if (!std::isfinite(value)) refuse(field, std::isnan(value) ? "nan" : "infinity", "a finite number");
}

void check_finite(const std::string& field, std::span<const double> values) {
  if (all_finite(values)) return;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) check_finite(field + "[" + std::to_string(i) + "]", values[i]);
  }
}

void check_size(const std::string& field, std::size_t found, std::size_t expected, const std::string& what) {
  if (found != expected) {
    refuse(field, std::to_string(found) + " numbers", std::to_string(expected) + " (" + what + ")");
  }
}

// Each returns the width of what it makes. `width` has as many numbers as the operation reads values.
struct Check {
  std::span<const std::size_t> width;
  const std::string& name;

  static constexpr const char* kWidth = "the width of what it reads";

  void check_scaling(const std::vector<double>& shift, const std::vector<double>& scale) const {
    check_size(name + ".shift", shift.size(), width[0], kWidth);
    check_size(name + ".scale", scale.size(), width[0], kWidth);
    check_finite(name + ".shift", shift);
    check_finite(name + ".scale", scale);
  }
  std::size_t elementwise() const {
    const std::size_t wide = std::max(width[0], width[1]);
    if (width[0] != width[1] && std::min(width[0], width[1]) != 1) {
      refuse(name, "values of " + std::to_string(width[0]) + " and " + std::to_string(width[1]) + " features",
             "one width, or one of them of width 1");
    }
    return wide;
  }

  std::size_t operator()(const Dense& dense) const {
    if (dense.inputs == 0 || dense.outputs == 0) {
      refuse(name, std::to_string(dense.inputs) + " inputs and " + std::to_string(dense.outputs) + " outputs",
             "at least one of each");
    }
    if (dense.inputs != width[0]) {
      refuse(name, std::to_string(dense.inputs) + " inputs", std::to_string(width[0]) + ", the width of what it reads");
    }
    if (dense.weights.size() / dense.inputs != dense.outputs || dense.weights.size() % dense.inputs != 0) {
      refuse(name + ".weight", std::to_string(dense.weights.size()) + " numbers",
             std::to_string(dense.outputs) + " x " + std::to_string(dense.inputs));
    }
    check_size(name + ".bias", dense.bias.size(), dense.outputs, "one for each output");
    for (std::size_t j = 0; j < dense.outputs; ++j) {
      check_finite(name + ".weight[" + std::to_string(j) + "]",
                   std::span(dense.weights).subspan(j * dense.inputs, dense.inputs));
    }
    check_finite(name + ".bias", dense.bias);
    return dense.outputs;
  }
  std::size_t operator()(const Activate& activate) const {
    const Activation& activation = activate.activation;
    check_finite(name + ".alpha", activation.alpha);
    if (activation.kind == ActivationKind::celu && activation.alpha == 0) {
      refuse(name + ".alpha", "0", "a number that can be divided by, as celu does", "give celu its alpha; 1 is usual");
    }
    return width[0];
  }
  std::size_t operator()(const Standardise& standardise) const {
    check_scaling(standardise.shift, standardise.scale);
    for (std::size_t i = 0; i < standardise.scale.size(); ++i) {
      if (standardise.scale[i] == 0) {
        refuse(name + ".scale[" + std::to_string(i) + "]", "0", "a number other than 0");
      }
    }
    return width[0];
  }
  std::size_t operator()(const Rescale& rescale) const {
    check_scaling(rescale.shift, rescale.scale);
    return width[0];
  }
  std::size_t operator()(const Constant& constant) const {
    if (constant.values.empty()) refuse(name, "no numbers", "at least one");
    const auto nan = std::ranges::find_if(constant.values, [](double value) { return std::isnan(value); });
    if (nan != constant.values.end()) {
      refuse(name + "[" + std::to_string(nan - constant.values.begin()) + "]", "nan", "a number");
    }
    return constant.values.size();
  }
  std::size_t operator()(const Concatenate&) const {
    std::size_t sum = 0;
    for (const std::size_t one : width) sum += one;
    if (sum > kMostFeatures) refuse(name, std::to_string(sum) + " features", "at most 2^20");
    return sum;
  }
  std::size_t operator()(const Columns& columns) const {
    if (columns.indices.empty()) refuse(name, "no features", "at least one");
    for (std::size_t i = 0; i < columns.indices.size(); ++i) {
      if (columns.indices[i] >= width[0]) {
        refuse(name + "[" + std::to_string(i) + "]", "feature " + std::to_string(columns.indices[i]),
               "less than " + std::to_string(width[0]) + ", " + kWidth);
      }
    }
    return columns.indices.size();
  }
  std::size_t operator()(const Unary&) const { return width[0]; }
  std::size_t operator()(const Clip& clip) const {
    if (!(clip.minimum <= clip.maximum)) {
      refuse(name, "bounds " + six_digits(clip.minimum) + " and " + six_digits(clip.maximum),
             "a minimum not above the maximum");
    }
    return width[0];
  }
  std::size_t operator()(const DeadZone& zone) const {
    if (!(zone.lower <= zone.upper)) {
      refuse(name, "bounds " + six_digits(zone.lower) + " and " + six_digits(zone.upper),
             "a lower one not above the upper one");
    }
    check_finite(name + ".bias", zone.bias);
    return width[0];
  }
  std::size_t operator()(const Binary&) const { return elementwise(); }
  std::size_t operator()(const Choose& choose) const {
    const std::size_t wide = std::max(elementwise(), choose.mask.size());
    if (choose.mask.size() != wide || (std::max(width[0], width[1]) != wide && std::max(width[0], width[1]) != 1)) {
      refuse(name + ".mask", std::to_string(choose.mask.size()) + " entries",
             std::to_string(std::max(width[0], width[1])) + ", one for each feature");
    }
    return wide;
  }
  std::size_t operator()(const Select&) const {
    const std::size_t wide = std::max({width[0], width[1], width[2]});
    for (const std::size_t one : width) {
      if (one != wide && one != 1) refuse(name, std::to_string(one) + " features", std::to_string(wide) + ", or 1");
    }
    return wide;
  }
  std::size_t operator()(const Chain& chain) const {
    check_size(name, width[1], width[0], kWidth);
    return (*this)(Activate{chain.activation});
  }
  std::size_t operator()(const Interpolate& table) const {
    if (width[0] != 1) refuse(name, std::to_string(width[0]) + " features to read", "1, the number it looks up");
    if (table.knots.empty()) refuse(name + ".knots", "no numbers", "at least one");
    check_finite(name + ".knots", table.knots);
    for (std::size_t i = 1; i < table.knots.size(); ++i) {
      if (table.knots[i - 1] < table.knots[i]) continue;
      refuse(name + ".knots[" + std::to_string(i) + "]",
             six_digits(table.knots[i]) + " after " + six_digits(table.knots[i - 1]), "ascending numbers, none twice");
    }
    const std::size_t each = table.knots.size();
    if (table.outputs == 0 || table.outputs > kMostFeatures) {
      refuse(name + ".outputs", std::to_string(table.outputs), "1 to 2^20");
    }
    if (table.coefficients.empty() || table.coefficients.size() % each != 0 ||
        table.coefficients.size() / each % table.outputs != 0) {
      refuse(
          name + ".coefficients", std::to_string(table.coefficients.size()) + " numbers",
          "as many for each of " + std::to_string(table.outputs) + " features and " + std::to_string(each) + " knots");
    }
    check_finite(name + ".coefficients", table.coefficients);
    return table.outputs;
  }
  std::size_t operator()(const Softmax&) const { return width[0]; }
  std::size_t operator()(const Reduce&) const { return 1; }
  std::size_t operator()(const LayerNormalise& normalise) const {
    check_scaling(normalise.shift, normalise.scale);
    if (!(normalise.epsilon >= 0) || !std::isfinite(normalise.epsilon)) {
      refuse(name + ".epsilon", six_digits(normalise.epsilon), "a finite number, 0 or more");
    }
    return width[0];
  }
};

// How many values an operation reads; concatenations take any number from 1 on.
std::size_t operands(const Operation& operation) {
  if (std::holds_alternative<Constant>(operation)) return 0;
  if (std::holds_alternative<Select>(operation)) return 3;
  if (std::holds_alternative<Binary>(operation) || std::holds_alternative<Choose>(operation)) return 2;
  if (std::holds_alternative<Chain>(operation)) return 2;
  return 1;
}

// "0..4, 7"
std::string ranges(const std::vector<std::size_t>& indices) {
  std::string text;
  for (std::size_t i = 0; i < indices.size();) {
    std::size_t end = i + 1;
    while (end < indices.size() && indices[end] == indices[end - 1] + 1) ++end;
    if (text.size() > 60) return text + ", ...";
    text += (text.empty() ? "" : ", ") + std::to_string(indices[i]);
    if (end - i > 1) text += ".." + std::to_string(indices[end - 1]);
    i = end;
  }
  return text;
}

struct Describe {
  std::string operator()(const Dense& dense) const {
    bool biased = false;
    for (const double b : dense.bias) biased = biased || b != 0;
    return "dense " + std::to_string(dense.inputs) + " -> " + std::to_string(dense.outputs) +
           (biased ? "" : ", no bias");
  }
  std::string operator()(const Activate& activate) const { return lockstep::to_string(activate.activation); }
  std::string operator()(const Standardise&) const { return "(x - shift) / scale"; }
  std::string operator()(const Rescale&) const { return "x * scale + shift"; }
  std::string operator()(const Constant& constant) const {
    if (constant.values.size() == 1) return "constant " + six_digits(constant.values[0]);
    return std::to_string(constant.values.size()) + " constants";
  }
  std::string operator()(const Concatenate&) const { return "concatenate"; }
  std::string operator()(const Columns& columns) const {
    return (columns.indices.size() == 1 ? "column " : "columns ") + ranges(columns.indices);
  }
  std::string operator()(const Unary& unary) const { return std::string(to_string(unary.kind)); }
  std::string operator()(const Clip& clip) const {
    std::string text = "clip";
    if (std::isfinite(clip.minimum)) text += " from " + six_digits(clip.minimum);
    if (std::isfinite(clip.maximum)) text += " to " + six_digits(clip.maximum);
    return text;
  }
  std::string operator()(const DeadZone& zone) const {
    return "0 between " + six_digits(zone.lower) + " and " + six_digits(zone.upper) + ", " + six_digits(zone.bias) +
           " nearer to 0 outside";
  }
  std::string operator()(const Binary& binary) const { return std::string(to_string(binary.kind)); }
  std::string operator()(const Choose& choose) const {
    std::size_t first = 0;
    for (const auto one : choose.mask) first += one != 0;
    return "choose: " + std::to_string(first) + " of " + std::to_string(choose.mask.size()) +
           " features from the first, the others from the second";
  }
  std::string operator()(const Select&) const { return "select by condition"; }
  std::string operator()(const Chain& chain) const {
    return "times the derivative of " + lockstep::to_string(chain.activation);
  }
  std::string operator()(const Interpolate& table) const {
    static constexpr std::array<const char*, 4> kDegrees = {"steps", "lines", "parabolas", "cubics"};
    const std::size_t degree = table.powers() - 1;
    return "table of " + std::to_string(table.outputs) + (table.outputs == 1 ? " column" : " columns") + ", " +
           (degree < kDegrees.size() ? kDegrees[degree] : "polynomials") + " between " +
           std::to_string(table.knots.size()) + " knots from " + six_digits(table.knots.front()) + " to " +
           six_digits(table.knots.back());
  }
  std::string operator()(const Softmax& softmax) const { return std::string(to_string(softmax.kind)); }
  std::string operator()(const Reduce& reduce) const { return std::string(to_string(reduce.kind)) + " over features"; }
  std::string operator()(const LayerNormalise& normalise) const {
    return "layer normalisation of " + std::to_string(normalise.scale.size()) + ", epsilon " +
           six_digits(normalise.epsilon);
  }
};

}  // namespace

std::string_view to_string(UnaryKind kind) {
  static constexpr std::array<std::string_view, kUnaryKinds> kNames = {
      "square_root", "exp", "log", "absolute", "negate", "reciprocal", "erf", "cosine", "floor", "round", "arctangent"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view to_string(BinaryKind kind) {
  static constexpr std::array<std::string_view, kBinaryKinds> kNames = {
      "add",   "subtract", "multiply",      "divide", "minimum", "maximum",
      "power", "less",     "less_or_equal", "equal",  "modulo"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view to_string(SoftmaxKind kind) { return kind == SoftmaxKind::plain ? "softmax" : "log_softmax"; }

std::string_view to_string(ReduceKind kind) {
  static constexpr std::array<std::string_view, 4> kNames = {"sum", "mean", "minimum", "maximum"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name_of(const Operation& operation) {
  static constexpr std::array<std::string_view, std::variant_size_v<Operation>> kNames = {
      "dense",           "activate", "standardise", "rescale",    "constant", "concatenate", "columns",
      "unary",           "clip",     "dead_zone",   "binary",     "choose",   "softmax",     "reduce",
      "layer_normalise", "select",   "chain",       "interpolate"};
  return kNames[operation.index()];
}

std::size_t output_width(const Operation& operation, std::span<const std::size_t> inputs, const std::string& name) {
  const std::size_t expected = operands(operation);
  const bool any = std::holds_alternative<Concatenate>(operation);
  if (any ? inputs.empty() : inputs.size() != expected) {
    refuse(name, std::to_string(inputs.size()) + " values to read",
           any ? "at least one" : std::to_string(expected) + ", as this operation takes");
  }
  return std::visit(Check{inputs, name}, operation);
}

std::string describe(const Operation& operation) { return std::visit(Describe{}, operation); }

}  // namespace lockstep::graph
