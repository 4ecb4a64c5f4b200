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

// A number of the graph: feature `feature` of value `value`.
struct Number {
  std::size_t value, feature;
};

// One block of statements for each node; y is what it makes, x0, x1, ... what it reads, rows of the array v. Where that
// is one number each, as in equations, a statement of a variable of its own, "a12", which a compiler keeps in
// registers, and what only puts numbers together or takes them apart is no statement at all.
class Writer {
 public:
  Writer(const graph::Graph& graph, const GraphPieces& pieces)
      : graph_(graph),
        widths_(graph.widths()),
        as_number_(widths_.size()),
        as_row_(widths_.size()),
        rows_(widths_.size()) {
    std::size_t port = 0;
    for (const GraphPiece& piece : pieces) {
      const char* const from = piece.source == GraphSource::state ? "u" : "p";
      for (std::size_t i = 0; i < piece.count; ++i) {
        const std::string place = from + ("[" + text_of(piece.first + i) + "]");
        inputs_.push_back(piece.source == GraphSource::time ? "R(t)" : place);
      }
    }
    for (std::size_t first = 0; port < graph.inputs.size(); first += widths_[port++]) first_input_.push_back(first);
  }

  // All that `outputs` are made of; afterwards name() of each says what it is called.
  std::string statements(const std::vector<Number>& outputs) {
    for (const Number& output : outputs) want(output);
    for (std::size_t value = widths_.size(); value-- > 0;) want_inputs_of(value);
    std::size_t rows = 0;
    for (std::size_t value = 0; value < widths_.size(); ++value) {
      rows_[value] = rows;
      if (as_row_[value]) rows += widths_[value];
    }
    std::string text = "using R = decltype(u[0] + u[0]);\n" + (rows == 0 ? "" : "R v[" + text_of(rows) + "];\n");
    for (std::size_t value = 0; value < widths_.size(); ++value) text += of_value(value);
    return text;
  }

  std::string name(Number number) const {
    number = resolved(number);
    if (number.value < graph_.inputs.size()) return inputs_[first_input_[number.value] + number.feature];
    if (const auto* constant = std::get_if<graph::Constant>(&operation(number.value)))
      return source_literal(constant->values[number.feature]);
    if (is_plain(number.value)) return "a" + text_of(number.value);
    return "v[" + text_of(rows_[number.value] + number.feature) + "]";
  }

 private:
  static constexpr std::size_t kFewColumns = 16;  // that are named one by one

  const graph::Operation& operation(std::size_t value) const { return node(value).operation; }
  const graph::Node& node(std::size_t value) const { return graph_.nodes[value - graph_.inputs.size()]; }

  // Of which number it is a copy: one that is computed, an input's or a constant's.
  Number resolved(Number number) const {
    while (number.value >= graph_.inputs.size()) {
      const graph::Node& from = node(number.value);
      if (const auto* columns = std::get_if<graph::Columns>(&from.operation)) {
        number = {from.inputs[0], static_cast<std::size_t>(columns->indices[number.feature])};
      } else if (std::holds_alternative<graph::Concatenate>(from.operation)) {
        std::size_t part = 0;
        while (number.feature >= widths_[from.inputs[part]]) number.feature -= widths_[from.inputs[part++]];
        number.value = from.inputs[part];
      } else {
        break;
      }
    }
    return number;
  }

  void want(Number number) {
    const std::size_t value = resolved(number).value;
    if (value < graph_.inputs.size() || std::holds_alternative<graph::Constant>(operation(value))) return;
    (is_plain(value) ? as_number_ : as_row_)[value] = true;
  }
  void want_inputs_of(std::size_t value) {
    if (value < graph_.inputs.size() || !(as_number_[value] || as_row_[value])) return;
    const std::vector<std::size_t>& inputs = node(value).inputs;
    if (const auto* columns = few_columns(value)) {
      for (const auto index : columns->indices) want({inputs[0], static_cast<std::size_t>(index)});
      return;
    }
    for (const std::size_t input : inputs) {
      if (is_plain(value) || is_named_in(value, input)) {
        want({input, 0});
      } else {
        as_row_[input] = true;
      }
    }
  }
  // Whether a row is put together of this number by its name.
  bool is_named_in(std::size_t value, std::size_t input) const {
    return widths_[input] == 1 && std::holds_alternative<graph::Concatenate>(operation(value));
  }
  const graph::Columns* few_columns(std::size_t value) const {
    const auto* const columns = std::get_if<graph::Columns>(&operation(value));
    return columns != nullptr && columns->indices.size() <= kFewColumns ? columns : nullptr;
  }

  std::string of_value(std::size_t value) {
    row_ = rows_[value];
    width_ = widths_[value];
    std::string text;
    if (value < graph_.inputs.size()) {
      for (std::size_t i = 0; as_row_[value] && i < width_; ++i) text += copied(value, i);
      return text;
    }
    if (!as_number_[value] && !as_row_[value]) return text;
    node_ = &node(value);
    plain_ = is_plain(value);
    if (plain_) {
      value_ = value;
      text = "R " + statements();
      if (as_row_[value]) text += copied(value, 0);
      return text;
    }
    if (few_columns(value) != nullptr) {
      for (std::size_t i = 0; i < width_; ++i) text += copied(value, i);
      return text;
    }
    text = "{\nR* const y = v + " + text_of(row_) + ";\n";
    for (std::size_t i = 0; i < node_->inputs.size(); ++i) {
      const std::size_t input = node_->inputs[i];
      if (!is_named_in(value, input))
        text += "const R* const x" + text_of(i) + " = v + " + text_of(rows_[input]) + ";\n";
    }
    return text + statements() + "}\n";
  }
  std::string copied(std::size_t value, std::size_t feature) const {
    return "v[" + text_of(row_ + feature) + "] = " + name({value, feature}) + ";\n";
  }

  std::string statements() const {
    return std::visit([this](const auto& operation) { return of(operation); }, node_->operation);
  }
  bool is_plain(std::size_t value) const {
    return widths_[value] == 1 &&
           std::visit([this](const auto& operation) { return is_plain(operation); }, operation(value));
  }
  // By operation: whether of() says x() and y() alone where it makes one number.
  template <class Operation>
  bool is_plain(const Operation&) const {
    return true;
  }
  bool is_plain(const graph::Dense&) const { return false; }
  bool is_plain(const graph::Interpolate&) const { return false; }
  bool is_plain(const graph::Choose&) const { return false; }
  bool is_plain(const graph::Softmax&) const { return false; }
  bool is_plain(const graph::Reduce&) const { return false; }
  bool is_plain(const graph::LayerNormalise&) const { return false; }
  bool is_plain(const graph::Concatenate&) const { return false; }
  bool is_plain(const graph::Columns&) const { return false; }
  bool is_plain(const graph::Constant&) const { return false; }

  static std::string loop(std::size_t count, const std::string& statement, std::size_t from = 0) {
    return "for (int i = " + text_of(from) + "; i < " + text_of(count) + "; ++i) " + statement + "\n";
  }
  std::string y() const { return plain_ ? "a" + text_of(value_) : "y[i]"; }
  std::string each(const std::string& expression) const {
    const std::string statement = y() + " = " + expression + ";";
    return plain_ ? statement + "\n" : loop(width_, statement);
  }
  // Feature i of what it reads, or the only one.
  std::string x(std::size_t which) const {
    if (plain_) return name({node_->inputs[which], 0});
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
    return table("numbers", constant.values) + each("numbers[i]");
  }
  std::string of(const graph::Concatenate&) const {
    std::string text;
    std::size_t offset = 0;
    for (std::size_t part = 0; part < node_->inputs.size(); ++part) {
      const std::size_t width = widths_[node_->inputs[part]];
      text += width == 1 ? "y[" + text_of(offset) + "] = " + name({node_->inputs[part], 0}) + ";\n"
                         : loop(width, "y[" + text_of(offset) + " + i] = x" + text_of(part) + "[i];");
      offset += width;
    }
    return text;
  }
  std::string of(const graph::Columns& columns) const {
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
  const std::vector<std::size_t> widths_;
  std::vector<std::string> inputs_;       // what each feature of the inputs is called
  std::vector<std::size_t> first_input_;  // [input]
  std::vector<bool> as_number_, as_row_;  // [value]: what it is wanted as
  std::vector<std::size_t> rows_;         // [value]: where its features begin in v, if it is one there
  const graph::Node* node_ = nullptr;
  std::size_t value_ = 0, width_ = 0, row_ = 0;
  bool plain_ = false;  // its statements are of numbers by their names
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

namespace {

std::string assigned(const graph::Graph& graph, const GraphPieces& pieces, const std::vector<Assignment>& assignments) {
  Writer writer(graph, pieces);
  std::vector<Number> numbers;
  for (const Assignment& assignment : assignments) numbers.push_back({graph.outputs[0].value, assignment.from});
  std::string text = writer.statements(numbers);
  for (std::size_t i = 0; i < numbers.size(); ++i) text += assignments[i].to + " = " + writer.name(numbers[i]) + ";\n";
  return text;
}

// The features of all values, above which there is no text.
bool fits(const graph::Graph& graph, std::size_t most_features) {
  std::size_t features = 0;
  for (const std::size_t width : graph.widths()) features += width;
  return features <= most_features && numbers_in(graph) <= kMostSourceNumbers;
}

}  // namespace

std::optional<std::string> graph_source(const graph::Graph& graph, const GraphPieces& pieces, GraphSourceForm form) {
  if (!fits(graph, kMostSourceFeatures)) return {};
  std::vector<Assignment> assignments;
  for (std::size_t i = 0; i < graph.outputs[0].width; ++i) assignments.push_back({"du[" + text_of(i) + "]", i});
  if (form == GraphSourceForm::derivative) return assigned(graph, pieces, assignments);
  Writer writer(graph, pieces);
  const Number value{graph.outputs[0].value, 0};
  const std::string text = writer.statements({value});
  return text + "return " + writer.name(value) + ";\n";
}

std::optional<std::string> jacobian_source(const graph::Graph& graph, const GraphPieces& pieces,
                                           const std::vector<Assignment>& assignments) {
  if (!fits(graph, kMostJacobianFeatures)) return {};
  return assigned(graph, pieces, assignments);
}

}  // namespace lockstep::ode::detail
