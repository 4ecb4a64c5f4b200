// The functions of an exported graph's nodes, as text: loops over features and samples in C, over the work that a group
// of threads shares in CUDA, around expressions that the library's own templates write.
#include <cmath>
#include <functional>
#include <map>
#include <type_traits>
#include <variant>

#include "lockstep/kernels/graph/detail/knots.h"
#include "lockstep/kernels/math/math.h"
#include "lockstep/nn/detail/c_lane.h"
#include "lockstep/nn/detail/header_graph.h"

namespace lockstep::nn::detail {
namespace {

template <class T>
class NodeTexts {
 public:
  explicit NodeTexts(const HeaderPlan& plan)
      : plan_(plan),
        graph_(plan.graph->graph),
        cuda_(plan.options.language == HeaderLanguage::cuda),
        widths_(graph_.widths()) {}

  std::string run() {
    std::string nodes;
    for (const HeaderStep& step : plan_.graph->steps) {
      if (step.layer != HeaderStep::kNoLayer || step.function_of != step.node) continue;
      nodes += function(step, "node" + std::to_string(step.node));
    }
    std::string text;
    for (const auto& [name, helper] : helpers_) text += helper;
    return text + nodes;
  }

  // Of a node that is no layer.
  std::string function(const HeaderStep& step, const std::string& name) {
    step_ = &step;
    node_ = &graph_.nodes[step.node];
    width_ = widths_[graph_.inputs.size() + step.node];
    tables_.clear();
    parameters_.clear();
    const std::string body =
        std::visit([this](const auto& operation) { return this->of(operation); }, node_->operation);
    return function(name, body);
  }

 private:
  using L = CLane<T>;
  using V = typename L::V;
  static constexpr const char* kType = L::kType;

  // ---- texts of functions

  std::string function(const std::string& name, const std::string& body) const {
    std::string reads;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      reads += std::string("const ") + kType + (cuda_ ? "* " : " *") + parameters_[i] + ", ";
    }
    const std::string what = "\n/* " + graph::describe(node_->operation) + " */\n";
    if (!cuda_) {
      return what + "@CALL void $" + name + "~(int n, " + reads + kType + " *y) {\n" + tables_ + body + "}\n";
    }
    return what + "@ANY_GROUP\ntemplate <class Group>\n" + cuda_call(step_->calls) + " void $" + name +
           "(const Group& group, int n, " + reads + kType +
           "* y) {\n  const int rank = (int)group.thread_rank(), size = (int)group.size();\n" + tables_ + body +
           "  group.sync();\n}\n";
  }

  // The statement for every feature i of every sample s, both of which it may name; `at` is the element of both.
  std::string for_elements(std::size_t width, const std::string& statement) const {
    const std::string w = std::to_string(width);
    if (cuda_) {
      const bool wants_i = statement.find("[i]") != statement.npos || statement.find("(i)") != statement.npos;
      const bool wants_s = statement.find("[s]") != statement.npos || statement.find("+ s]") != statement.npos;
      return "  for (int at = rank; at < " + w + " * n; at += size) {\n" +
             (wants_i ? "    const int i = at / n;\n" : "") + (wants_s ? "    const int s = at % n;\n" : "") + "    " +
             statement + "\n  }\n";
    }
    return "  int i, s;\n  for (i = 0; i < " + w + "; ++i) {\n    for (s = 0; s < n; ++s) {\n" +
           (statement.find("at") != statement.npos ? "      const int at = i * n + s;\n" : "") + "      " + statement +
           "\n    }\n  }\n";
  }

  // Statements for every sample s, with i to count features.
  std::string for_samples(const std::string& statements) const {
    if (cuda_) {
      return "  for (int s = rank; s < n; s += size) {\n    int i;\n" + statements + "  }\n";
    }
    return "  int i, s;\n  for (s = 0; s < n; ++s) {\n" + statements + "  }\n";
  }
  std::string for_features(int from, std::size_t width, const std::string& statement) const {
    return "    for (i = " + std::to_string(from) + "; i < " + std::to_string(width) + "; ++i) " + statement + "\n";
  }

  // Numbers as a table of the function.
  std::string table(const char* name, const std::vector<double>& numbers) {
    tables_ += std::string("  static const ") + kType + " " + name + "[] = " + initialiser<T>(numbers) + ";\n";
    return std::string(name) + "[i]";
  }
  template <class List>
  std::string index_table(const char* name, const char* type, const List& list) {
    tables_ += std::string("  static const ") + type + " " + name + "[] = {";
    for (std::size_t i = 0; i < list.size(); ++i) {
      tables_ += (i == 0 ? "" : i % 20 == 0 ? ",\n      " : ", ") + std::to_string(list[i]);
    }
    tables_ += "};\n";
    return std::string(name) + "[i]";
  }
  static std::string literal(double number) { return L::set(static_cast<T>(number)).text; }

  // What the operation reads as element (i, s): rows, or numbers where it is a constant that only such operations read.
  std::string operand(std::size_t which) {
    const std::size_t value = node_->inputs[which];
    const std::string name(1, static_cast<char>('a' + which));
    const bool inner = value >= graph_.inputs.size();
    if (inner && std::holds_alternative<Binary>(node_->operation)) {
      const auto* constant = std::get_if<Constant>(&graph_.nodes[value - graph_.inputs.size()].operation);
      const bool has_rows = step_->reads.size() == node_->inputs.size();
      if (constant && !has_rows) {
        if (constant->values.size() == 1) return literal(constant->values[0]);
        return table(("numbers_" + name).c_str(), constant->values);
      }
    }
    parameters_.push_back(name);
    return widths_[value] == width_ ? name + "[at]" : name + "[s]";
  }
  // ---- functions of numbers, written once for all nodes that call them

  std::string helper(const std::string& name, const std::string& what, const std::function<V(V, V)>& formula,
                     bool two = false) {
    std::string& text = helpers_[name];
    if (text.empty()) {
      CRecorder recorder;
      const V result = formula(V{{"x"}}, V{{"z"}});
      const std::string body = recorder.statements(result.text) + "  return " + result.text + ";\n";
      const bool ignored = two && result.text == "x";
      text = "/* " + what + " */\n@CALL " + kType + " $" + name + "~(" + kType + " x" +
             (two ? std::string(", ") + kType + " z" : "") + ") {\n" + (ignored ? "  (void)z;\n" : "") + body + "}\n";
    }
    return "$" + name + "~";
  }

  std::string unary_function(UnaryKind kind) {
    return helper(std::string(graph::to_string(kind)), std::string(graph::to_string(kind)), [kind](V x, V) {
      switch (kind) {
        case UnaryKind::square_root:
          return L::sqrt(x);
        case UnaryKind::exp:
          return math::exp<L>(x);
        case UnaryKind::log:
          return math::log<L>(x);
        case UnaryKind::absolute:
          return L::abs(x);
        case UnaryKind::negate:
          return L::neg(x);
        case UnaryKind::reciprocal:
          return L::div(L::set(T(1)), x);
        case UnaryKind::erf:
          return math::erf<L>(x);
        case UnaryKind::floor:
          return L::floor(x);
        case UnaryKind::round:
          return L::round(x);
        case UnaryKind::arctangent:
          return math::atan<L>(x);
        case UnaryKind::cosine:
          break;
      }
      return math::cos<L>(x);
    });
  }

  std::string binary(BinaryKind kind, const std::string& a, const std::string& b) {
    const std::string arguments = "(" + a + ", " + b + ")";
    switch (kind) {
      case BinaryKind::add:
        return a + " + " + b;
      case BinaryKind::subtract:
        return a + " - " + b;
      case BinaryKind::multiply:
        return "$mul~" + arguments;
      case BinaryKind::divide:
        return "$div~" + arguments;
      case BinaryKind::minimum:
        return helper(
                   "minimum", "the smaller, NaN where either is",
                   [](V x, V z) { return L::select(L::eq(z, z), L::min(x, z), z); }, true) +
               arguments;
      case BinaryKind::maximum:
        return helper(
                   "maximum", "the larger, NaN where either is",
                   [](V x, V z) { return L::select(L::eq(z, z), L::max(x, z), z); }, true) +
               arguments;
      case BinaryKind::less:
        return a + " < " + b + " ? 1 : 0";
      case BinaryKind::less_or_equal:
        return a + " <= " + b + " ? 1 : 0";
      case BinaryKind::equal:
        return a + " == " + b + " ? 1 : 0";
      case BinaryKind::modulo:
        return helper(
                   "modulo", "x - z floor(x/z)", [](V x, V z) { return math::modulo<L>(x, z); }, true) +
               arguments;
      case BinaryKind::power:
        break;
    }
    return helper(
               "power", "x to the power of z", [](V x, V z) { return math::pow<L>(x, z); }, true) +
           arguments;
  }

  std::string chain_function(const Activation& activation) {
    std::string name = "times_derivative_of_" + std::string(to_string(activation));
    for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    return helper(
        name, "x times the derivative of " + to_string(activation),
        [&](V x, V z) {
          return with_activation_kind(activation.kind, [&](auto kind) -> V {
            constexpr ActivationKind kKind = kind();
            if constexpr (kKind == ActivationKind::identity) {
              return x;
            } else if constexpr (kKind == ActivationKind::relu) {
              return L::select(L::lt(L::zero(), z), x, L::zero());
            } else if constexpr (kKind == ActivationKind::tanh) {
              return L::mul(x, L::nfma(z, z, L::set(T(1))));
            } else if constexpr (kKind == ActivationKind::sigmoid) {
              return L::mul(x, L::nfma(z, z, z));
            } else {
              const V slope = math::activate_derivative<kKind, L>(z, L::set(static_cast<T>(activation.alpha)));
              return L::mul(x, slope);
            }
          });
        },
        true);
  }

  // ---- operations

  std::string of(const Dense&) { return {}; }  // a layer
  std::string of(const Activate& activate) {
    for (const auto& [name, known] : plan_.functions) {
      if (known == activate.activation) return elements("$" + name + "~(" + operand(0) + ")");
    }
    return elements(operand(0));  // identity
  }
  std::string of(const Standardise& standardise) {
    const std::string shift = table("shift", standardise.shift), scale = table("scale", standardise.scale);
    return elements("$div~(" + operand(0) + " - " + shift + ", " + scale + ")");
  }
  std::string of(const Rescale& rescale) {
    const std::string scale = table("scale", rescale.scale), shift = table("shift", rescale.shift);
    return elements("$fma~(" + operand(0) + ", " + scale + ", " + shift + ")");
  }
  std::string of(const Constant& constant) { return elements(table("numbers", constant.values)); }
  std::string of(const Concatenate&) {
    std::string body = cuda_ ? "" : "  int at;\n";
    std::size_t offset = 0;
    for (std::size_t part = 0; part < node_->inputs.size(); ++part) {
      const std::string name = "part" + std::to_string(part);
      parameters_.push_back(name);
      const std::size_t width = widths_[node_->inputs[part]];
      const std::string to = offset == 0 ? "at" : std::to_string(offset) + " * n + at";
      body += cuda_ ? "  for (int at = rank; at < " + std::to_string(width) + " * n; at += size) "
                    : "  for (at = 0; at < " + std::to_string(width) + " * n; ++at) ";
      body += "y[" + to + "] = " + name + "[at];\n";
      offset += width;
    }
    return body;
  }
  std::string of(const Columns& columns) {
    const std::string index = index_table("from", "int", columns.indices);
    parameters_.push_back("a");
    return for_elements(width_, "y[at] = a[" + index + " * n + s];");
  }
  std::string of(const Unary& unary) { return elements(unary_function(unary.kind) + "(" + operand(0) + ")"); }
  std::string of(const Clip& clip) {
    std::string body = std::string(kType) + " x = " + operand(0) + ";";
    const std::string indent = cuda_ ? "\n    " : "\n      ";
    if (std::isfinite(clip.minimum)) {
      const std::string bound = literal(clip.minimum);
      body += indent + "x = " + bound + " > x ? " + bound + " : x;";
    }
    if (std::isfinite(clip.maximum)) {
      const std::string bound = literal(clip.maximum);
      body += indent + "x = " + bound + " < x ? " + bound + " : x;";
    }
    return for_elements(width_, body + indent + "y[at] = x;");
  }
  std::string of(const DeadZone& zone) {
    const std::string x = operand(0), bias = literal(zone.bias);
    std::string text = x + " == " + x + " ? 0 : " + x;
    if (std::isfinite(zone.lower)) text = x + " < " + literal(zone.lower) + " ? " + x + " + " + bias + " : " + text;
    if (std::isfinite(zone.upper)) text = literal(zone.upper) + " < " + x + " ? " + x + " - " + bias + " : " + text;
    return elements(text);
  }
  std::string of(const Interpolate& given) {
    const std::string type = kType, knots = std::to_string(given.knots.size());
    const std::vector<T> padded = graph::padded_knots<T>(given, node_->name);
    parameters_.push_back("a");
    table("knots", given.knots);
    table("coefficients", given.coefficients);
    const auto bound = [&](double number, const char* order) {
      return "    c = " + literal(number) + " " + order + " c ? " + literal(number) + " : c;\n";
    };
    std::string value = "coefficients[i * " + std::to_string(given.powers()) + " * " + knots + " + at]";
    for (std::size_t power = 1; power < given.powers(); ++power) {
      value = "$fma~(" + value + ", d, coefficients[(i * " + std::to_string(given.powers()) + " + " +
              std::to_string(power) + ") * " + knots + " + at])";
    }
    const bool constant = given.powers() == 1;
    return for_samples("    " + type + (constant ? " c = a[s];\n" : " c = a[s], d;\n") + "    int at = 0, half;\n" +
                       bound(given.knots.front(), ">") + bound(given.knots.back(), "<") +
                       "    for (half = " + std::to_string(padded.size() / 2) +
                       "; half > 0; half /= 2) {\n      const int next = at + half < " + knots + " ? at + half : " +
                       std::to_string(given.knots.size() - 1) + ";\n      if (at + half < " + knots +
                       " && knots[next] <= c) at = next;\n    }\n" + (constant ? "" : "    d = c - knots[at];\n") +
                       for_features(0, width_, "y[i * n + s] = " + value + ";"));
  }
  std::string of(const Binary& operation) {
    const std::string a = operand(0), b = operand(1);
    return elements(binary(operation.kind, a, b));
  }
  std::string of(const Choose& choose) {
    const std::string first = index_table("first", "unsigned char", choose.mask);
    const std::string a = operand(0), b = operand(1);
    return chosen(first, a, b);
  }
  std::string of(const Select&) {
    const std::string condition = operand(0), yes = operand(1), no = operand(2);
    return chosen(condition + " == 0", no, yes);
  }
  std::string of(const Chain& chain) {
    const std::string a = operand(0), b = operand(1);
    return elements(chain_function(chain.activation) + "(" + a + ", " + b + ")");
  }

  std::string of(const Reduce& reduce) {
    const std::size_t width = widths_[node_->inputs[0]];
    parameters_.push_back("a");
    const BinaryKind kind = reduce.kind == ReduceKind::minimum   ? BinaryKind::minimum
                            : reduce.kind == ReduceKind::maximum ? BinaryKind::maximum
                                                                 : BinaryKind::add;
    const std::string divided = "$div~(acc, " + literal(static_cast<double>(width)) + ")";
    return for_samples("    " + std::string(kType) + " acc = a[s];\n" +
                       for_features(1, width, "acc = " + binary(kind, "acc", "a[i * n + s]") + ";") +
                       "    y[s] = " + (reduce.kind == ReduceKind::mean ? divided : "acc") + ";\n");
  }
  std::string of(const Softmax& softmax) {
    parameters_.push_back("a");
    const std::string type = kType, exp = unary_function(UnaryKind::exp);
    const bool plain = softmax.kind == SoftmaxKind::plain;
    std::string text =
        "    " + type + " most = a[s], sum = 0;\n" +
        for_features(1, width_, "most = " + binary(BinaryKind::maximum, "most", "a[i * n + s]") + ";") +
        for_features(0, width_,
                     "{\n      const " + type + " less = a[i * n + s] - most, e = " + exp +
                         "(less);\n      sum = i == 0 ? e : sum + e;\n      y[i * n + s] = " + (plain ? "e" : "less") +
                         ";\n    }");
    if (!plain) text += "    sum = " + unary_function(UnaryKind::log) + "(sum);\n";
    return for_samples(
        text + for_features(0, width_,
                            plain ? "y[i * n + s] = $div~(y[i * n + s], sum);" : "y[i * n + s] = y[i * n + s] - sum;"));
  }
  std::string of(const LayerNormalise& normalise) {
    parameters_.push_back("a");
    const std::string type = kType, count = literal(static_cast<double>(width_));
    const std::string scale = table("scale", normalise.scale), shift = table("shift", normalise.shift);
    return for_samples(
        "    const " + type + " first = a[s];\n    " + type + " mean = 0, rest = 0, squares = 0, r;\n" +
        for_features(0, width_, "mean = mean + (a[i * n + s] - first);") + "    mean = $div~(mean, " + count + ");\n" +
        for_features(0, width_,
                     "{\n      const " + type +
                         " d = a[i * n + s] - first - mean;\n      rest = rest + d;\n"
                         "      squares = $fma~(d, d, squares);\n      y[i * n + s] = d;\n    }") +
        "    rest = $div~(rest, " + count + ");\n    r = $div~(" + literal(1) + ", $sqrt~($div~(squares, " + count +
        ") + " + literal(normalise.epsilon) + "));\n" +
        for_features(0, width_, "y[i * n + s] = $fma~($mul~(y[i * n + s] - rest, r), " + scale + ", " + shift + ");"));
  }

  // Both are read before one is taken: GCC 12.2 with AVX2 and -O3 makes masked loads of those that a condition guards,
  // and reads others than the text names.
  std::string chosen(const std::string& condition, const std::string& yes, const std::string& no) const {
    const std::string indent = cuda_ ? "\n    " : "\n      ", type(kType);
    return for_elements(
        width_, "const " + type + " p = " + yes + ", q = " + no + ";" + indent + "y[at] = " + condition + " ? p : q;");
  }
  std::string elements(const std::string& expression) const {
    return for_elements(width_, "y[at] = " + expression + ";");
  }

  const HeaderPlan& plan_;
  const graph::Graph& graph_;
  bool cuda_;
  std::vector<std::size_t> widths_;
  const HeaderStep* step_ = nullptr;   // being written
  const graph::Node* node_ = nullptr;  // its node
  std::size_t width_ = 0;              // of what it makes
  std::string tables_;
  std::vector<std::string> parameters_;         // what it reads
  std::map<std::string, std::string> helpers_;  // by name
};

}  // namespace

void share_node_functions(HeaderPlan& plan) {
  NodeTexts<double> texts(plan);
  std::map<std::string, std::size_t> known;
  for (HeaderStep& step : plan.graph->steps) {
    if (step.layer != HeaderStep::kNoLayer) continue;
    step.function_of = known.emplace(texts.function(step, ""), step.node).first->second;
  }
  std::map<std::size_t, std::size_t> calls;
  for (const HeaderStep& step : plan.graph->steps) {
    if (step.layer == HeaderStep::kNoLayer) {
      ++calls[step.function_of];
    } else {
      ++plan.layers[plan.layers[step.layer].functions_of].calls;
    }
  }
  for (HeaderStep& step : plan.graph->steps) step.calls = calls[step.node];
}

template <class T>
std::string node_functions_text(const HeaderPlan& plan) {
  return NodeTexts<T>(plan).run();
}
template std::string node_functions_text<float>(const HeaderPlan&);
template std::string node_functions_text<double>(const HeaderPlan&);

}  // namespace lockstep::nn::detail
