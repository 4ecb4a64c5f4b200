#include "lockstep/ode/detail/graph_source.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <variant>
#include <vector>

#include "lockstep/core/text.h"

namespace lockstep::ode::detail {
namespace {

using graph::BinaryKind;
using graph::ReduceKind;
using graph::UnaryKind;

std::string text_of(std::size_t value) { return std::to_string(value); }

std::string table(const char* name, const std::vector<double>& values) {
  std::string text = std::string("static const R ") + name + "[] = {";
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += (i == 0 ? "" : i % 8 == 0 ? ",\n    " : ", ") + source_literal(values[i]);
  }
  return text + "};\n";
}

template <class List>
std::string index_table(const char* name, const List& values) {
  std::string text = std::string("static const int ") + name + "[] = {";
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += (i == 0 ? "" : i % 20 == 0 ? ",\n    " : ", ") + text_of(static_cast<std::size_t>(values[i]));
  }
  return text + "};\n";
}

// One block of statements for each node; y is what it makes, x0, x1, ... what it reads. Where that is one number each,
// as in equations, a statement without names: the text's length decides what is compiled into every stage.
class Writer {
 public:
  Writer(const graph::Graph& graph, const std::vector<std::size_t>& widths) : graph_(graph), widths_(widths) {
    for (std::size_t value = 0, row = 0; value < widths.size(); row += widths[value++]) rows_.push_back(row);
  }

  std::size_t row(std::size_t value) const { return rows_[value]; }

  std::string node(std::size_t value) {
    node_ = &graph_.nodes[value - graph_.inputs.size()];
    width_ = widths_[value];
    row_ = rows_[value];
    plain_ = is_plain();
    if (plain_) return statements();
    std::string text = "{\nR* const y = v + " + text_of(rows_[value]) + ";\n";
    for (std::size_t i = 0; i < node_->inputs.size(); ++i) {
      text += "const R* const x" + text_of(i) + " = v + " + text_of(rows_[node_->inputs[i]]) + ";\n";
    }
    return text + statements() + "}\n";
  }

 private:
  std::string statements() const {
    return std::visit([this](const auto& operation) { return of(operation); }, node_->operation);
  }
  bool is_plain() const {
    return std::visit([this](const auto& operation) { return is_plain(operation); }, node_->operation);
  }
  // By operation: whether of() says x() and y() alone where it makes one number.
  template <class Operation>
  bool is_plain(const Operation&) const {
    return width_ == 1;
  }
  bool is_plain(const graph::Dense&) const { return false; }
  bool is_plain(const graph::Interpolate&) const { return false; }
  bool is_plain(const graph::Choose&) const { return false; }
  bool is_plain(const graph::Softmax&) const { return false; }
  bool is_plain(const graph::Reduce&) const { return false; }
  bool is_plain(const graph::LayerNormalise&) const { return false; }
  bool is_plain(const graph::Concatenate&) const {
    return std::all_of(node_->inputs.begin(), node_->inputs.end(), [this](std::size_t i) { return widths_[i] == 1; });
  }

  static std::string number(std::size_t row) { return "v[" + text_of(row) + "]"; }
  static std::string loop(std::size_t count, const std::string& statement, std::size_t from = 0) {
    return "for (int i = " + text_of(from) + "; i < " + text_of(count) + "; ++i) " + statement + "\n";
  }
  std::string y() const { return plain_ ? number(row_) : "y[i]"; }
  std::string each(const std::string& expression) const {
    const std::string statement = y() + " = " + expression + ";";
    return plain_ ? statement + "\n" : loop(width_, statement);
  }
  // Feature i of what it reads, or the only one.
  std::string x(std::size_t which) const {
    if (plain_) return number(rows_[node_->inputs[which]]);
    const bool one = widths_[node_->inputs[which]] == 1 && width_ != 1;
    return "x" + text_of(which) + (one ? "[0]" : "[i]");
  }
  // Of numbers that a table holds: the table, and number i.
  std::string given(const char* name, const std::vector<double>& values) const {
    return plain_ ? "" : table(name, values);
  }
  std::string entry(const char* name, const std::vector<double>& values) const {
    return plain_ ? source_literal(values[0]) : std::string(name) + "[i]";
  }
  std::size_t read_width() const { return widths_[node_->inputs[0]]; }

  static std::string activation(const Activation& function, const std::string& of_what, bool derivative) {
    return std::string("math::activate") + (derivative ? "_derivative" : "") + "<static_cast<ActivationKind>(" +
           text_of(static_cast<std::size_t>(function.kind)) + "), ScalarLane<R>>(" + of_what + ", " +
           source_literal(function.alpha) + ")";
  }
  static std::string smaller(const std::string& a, const std::string& b) {
    return "(" + b + " != " + b + " ? " + b + " : " + b + " < " + a + " ? " + b + " : " + a + ")";
  }
  static std::string larger(const std::string& a, const std::string& b) {
    return "(" + b + " != " + b + " ? " + b + " : " + b + " > " + a + " ? " + b + " : " + a + ")";
  }

  std::string of(const graph::Dense& dense) const {
    return table("w", dense.weights) + table("b", dense.bias) + "for (int j = 0; j < " + text_of(dense.outputs) +
           "; ++j) {\nR sum = b[j];\n" +
           loop(dense.inputs, "sum = std::fma(w[j * " + text_of(dense.inputs) + " + i], x0[i], sum);") +
           "y[j] = sum;\n}\n";
  }
  std::string of(const graph::Activate& activate) const { return each(activation(activate.activation, x(0), false)); }
  std::string of(const graph::Chain& chain) const {
    switch (chain.activation.kind) {
      case ActivationKind::identity:
        return (plain_ ? "" : "(void)x1;\n") + each(x(0));
      case ActivationKind::relu:
        return each("R(0) < " + x(1) + " ? " + x(0) + " : R(0)");
      case ActivationKind::tanh:
        return each(x(0) + " * std::fma(-" + x(1) + ", " + x(1) + ", R(1))");
      case ActivationKind::sigmoid:
        return each(x(0) + " * std::fma(-" + x(1) + ", " + x(1) + ", " + x(1) + ")");
      default:
        return each(x(0) + " * " + activation(chain.activation, x(1), true));
    }
  }
  std::string of(const graph::Standardise& standardise) const {
    const auto& [shift, scale] = standardise;
    return given("shift", shift) + given("scale", scale) +
           each("(" + x(0) + " - " + entry("shift", shift) + ") / " + entry("scale", scale));
  }
  std::string of(const graph::Rescale& rescale) const {
    const auto& [scale, shift] = rescale;
    return given("scale", scale) + given("shift", shift) +
           each("std::fma(" + x(0) + ", " + entry("scale", scale) + ", " + entry("shift", shift) + ")");
  }
  std::string of(const graph::Constant& constant) const {
    return given("numbers", constant.values) + each(entry("numbers", constant.values));
  }
  std::string of(const graph::Concatenate&) const {
    std::string text;
    std::size_t offset = 0;
    for (std::size_t part = 0; part < node_->inputs.size(); ++part) {
      const std::size_t width = widths_[node_->inputs[part]];
      if (plain_) {
        text += number(row_ + offset++) + " = " + x(part) + ";\n";
        continue;
      }
      text += loop(width, "y[" + text_of(offset) + " + i] = x" + text_of(part) + "[i];");
      offset += width;
    }
    return text;
  }
  std::string of(const graph::Columns& columns) const {
    if (plain_) return each(number(rows_[node_->inputs[0]] + static_cast<std::size_t>(columns.indices[0])));
    return index_table("from", columns.indices) + each("x0[from[i]]");
  }
  std::string of(const graph::Unary& unary) const {
    switch (unary.kind) {
      case UnaryKind::square_root:
        return each("std::sqrt(" + x(0) + ")");
      case UnaryKind::absolute:
        return each("std::abs(" + x(0) + ")");
      case UnaryKind::negate:
        return each("-" + x(0));
      case UnaryKind::reciprocal:
        return each("R(1) / " + x(0));
      case UnaryKind::floor:
        return each("std::floor(" + x(0) + ")");
      case UnaryKind::round:
        return each("std::rint(" + x(0) + ")");
      case UnaryKind::exp:
      case UnaryKind::log:
      case UnaryKind::erf:
        return each("math::" + std::string(graph::to_string(unary.kind)) + "(" + x(0) + ")");
      case UnaryKind::arctangent:
        return each("math::atan(" + x(0) + ")");
      case UnaryKind::cosine:
        break;
    }
    return each("math::cos(" + x(0) + ")");
  }
  std::string of(const graph::Clip& clip) const {
    std::string text = each(x(0));
    if (std::isfinite(clip.minimum))
      text += each(source_literal(clip.minimum) + " > " + y() + " ? " + source_literal(clip.minimum) + " : " + y());
    if (std::isfinite(clip.maximum))
      text += each(source_literal(clip.maximum) + " < " + y() + " ? " + source_literal(clip.maximum) + " : " + y());
    return text;
  }
  std::string of(const graph::DeadZone& zone) const {
    const std::string a = x(0), bias = source_literal(zone.bias);
    std::string text = a + " == " + a + " ? R(0) : " + a;
    if (std::isfinite(zone.lower))
      text = a + " < " + source_literal(zone.lower) + " ? " + a + " + " + bias + " : " + text;
    if (std::isfinite(zone.upper))
      text = source_literal(zone.upper) + " < " + a + " ? " + a + " - " + bias + " : " + text;
    return each(text);
  }
  std::string of(const graph::Interpolate& given) const {
    const std::string knots = text_of(given.knots.size()), powers = text_of(given.powers());
    std::string value = "coefficients[i * " + powers + " * " + knots + " + at]";
    for (std::size_t power = 1; power < given.powers(); ++power) {
      value = "std::fma(" + value + ", d, coefficients[(i * " + powers + " + " + text_of(power) + ") * " + knots +
              " + at])";
    }
    const std::string first = source_literal(given.knots.front()), last = source_literal(given.knots.back());
    return table("knots", given.knots) + table("coefficients", given.coefficients) + "R c = x0[0];\nc = " + first +
           " > c ? " + first + " : c;\nc = " + last + " < c ? " + last +
           " : c;\nint at = 0;\nfor (int half = " + text_of(std::bit_ceil(given.knots.size()) / 2) +
           "; half > 0; half /= 2) {\nif (at + half < " + knots + " && knots[at + half] <= c) at += half;\n}\n" +
           (given.powers() == 1 ? "" : "const R d = c - knots[at];\n") + loop(width_, "y[i] = " + value + ";");
  }
  std::string of(const graph::Binary& binary) const {
    const std::string a = x(0), b = x(1);
    switch (binary.kind) {
      case BinaryKind::add:
        return each(a + " + " + b);
      case BinaryKind::subtract:
        return each(a + " - " + b);
      case BinaryKind::multiply:
        return each(a + " * " + b);
      case BinaryKind::divide:
        return each(a + " / " + b);
      case BinaryKind::minimum:
        return each(smaller(a, b));
      case BinaryKind::maximum:
        return each(larger(a, b));
      case BinaryKind::less:
        return each(a + " < " + b + " ? R(1) : R(0)");
      case BinaryKind::less_or_equal:
        return each(a + " <= " + b + " ? R(1) : R(0)");
      case BinaryKind::equal:
        return each(a + " == " + b + " ? R(1) : R(0)");
      case BinaryKind::modulo:
        return each("math::modulo(" + a + ", " + b + ")");
      case BinaryKind::power:
        break;
    }
    return each("math::pow(" + a + ", " + b + ")");
  }
  std::string of(const graph::Choose& choose) const {
    return index_table("first", choose.mask) + each("first[i] != 0 ? " + x(0) + " : " + x(1));
  }
  std::string of(const graph::Select&) const { return each(x(0) + " != R(0) ? " + x(1) + " : " + x(2)); }
  std::string of(const graph::Softmax& softmax) const {
    const bool plain = softmax.kind == graph::SoftmaxKind::plain;
    return "R most = x0[0];\n" + loop(width_, "most = " + larger("most", "x0[i]") + ";", 1) + "R sum = R(0);\n" +
           loop(width_, "{\nconst R e = math::exp(x0[i] - most);\nsum = i == 0 ? e : sum + e;\ny[i] = " +
                            std::string(plain ? "e" : "x0[i] - most") + ";\n}") +
           (plain ? each("y[i] / sum") : "sum = math::log(sum);\n" + each("y[i] - sum"));
  }
  std::string of(const graph::Reduce& reduce) const {
    const std::string next = reduce.kind == ReduceKind::minimum   ? smaller("acc", "x0[i]")
                             : reduce.kind == ReduceKind::maximum ? larger("acc", "x0[i]")
                                                                  : "acc + x0[i]";
    return "R acc = x0[0];\n" + loop(read_width(), "acc = " + next + ";", 1) + "y[0] = acc" +
           (reduce.kind == ReduceKind::mean ? " / " + source_literal(static_cast<double>(read_width())) : "") + ";\n";
  }
  std::string of(const graph::LayerNormalise& normalise) const {
    const std::string count = source_literal(static_cast<double>(width_));
    return table("scale", normalise.scale) + table("shift", normalise.shift) +
           "R mean = R(0), rest = R(0), squares = R(0);\n" + loop(width_, "mean = mean + (x0[i] - x0[0]);") +
           "mean = mean / " + count + ";\n" +
           loop(width_,
                "{\ny[i] = x0[i] - x0[0] - mean;\nrest = rest + y[i];\nsquares = std::fma(y[i], y[i], squares);\n}") +
           "rest = rest / " + count + ";\nconst R r = R(1) / std::sqrt(squares / " + count + " + " +
           source_literal(normalise.epsilon) + ");\n" + each("std::fma((y[i] - rest) * r, scale[i], shift[i])");
  }

  const graph::Graph& graph_;
  const std::vector<std::size_t>& widths_;
  std::vector<std::size_t> rows_;  // of each value, where its features begin
  const graph::Node* node_ = nullptr;
  std::size_t width_ = 0, row_ = 0;
  bool plain_ = false;  // its statements are of numbers by their places
};

// Numbers that the text spells out.
std::size_t numbers_in(const graph::Graph& graph) {
  std::size_t count = 0;
  for (const graph::Node& node : graph.nodes) {
    if (const auto* dense = std::get_if<graph::Dense>(&node.operation))
      count += dense->weights.size() + dense->bias.size();
    if (const auto* constant = std::get_if<graph::Constant>(&node.operation)) count += constant->values.size();
    if (const auto* given = std::get_if<graph::Interpolate>(&node.operation))
      count += given->knots.size() + given->coefficients.size();
  }
  return count;
}

}  // namespace

// NVRTC has neither <limits> nor the builtins behind it.
std::string source_literal(double value) {
  if (std::isinf(value)) return value > 0 ? "R(1.0 / 0.0)" : "R(-1.0 / 0.0)";
  const std::string digits = rounded_text(value, 17);
  return "R(" + digits + (digits.find_first_of(".e") == digits.npos ? ".0)" : ")");
}

std::optional<std::string> graph_source(const graph::Graph& graph, const GraphPieces& pieces, GraphSourceForm form) {
  const std::vector<std::size_t> widths = graph.widths();
  std::size_t features = 0;
  for (const std::size_t width : widths) features += width;
  if (features > kMostSourceFeatures || numbers_in(graph) > kMostSourceNumbers) return {};
  Writer writer(graph, widths);
  std::string text = "using R = decltype(u[0] + u[0]);\nR v[" + text_of(features) + "];\n";
  std::size_t row = 0;
  for (const GraphPiece& piece : pieces) {
    if (piece.source == GraphSource::time) {
      text += "v[" + text_of(row++) + "] = R(t);\n";
      continue;
    }
    const char* const from = piece.source == GraphSource::state ? "u" : "p";
    text += "for (int i = 0; i < " + text_of(piece.count) + "; ++i) v[" + text_of(row) + " + i] = " + from + "[" +
            text_of(piece.first) + " + i];\n";
    row += piece.count;
  }
  for (std::size_t value = graph.inputs.size(); value < widths.size(); ++value) text += writer.node(value);
  const std::string row_of_output = text_of(writer.row(graph.outputs[0].value));
  if (form == GraphSourceForm::event) return text + "return v[" + row_of_output + "];\n";
  return text + "for (int i = 0; i < " + text_of(graph.outputs[0].width) + "; ++i) du[i] = v[" + row_of_output +
         " + i];\n";
}

}  // namespace lockstep::ode::detail
