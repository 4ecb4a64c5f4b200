#include "lockstep/nn/detail/equation_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "lockstep/core/names.h"
#include "lockstep/nn/detail/composed.h"
#include "lockstep/nn/detail/equation_names.h"
#include "lockstep/nn/table_model.h"

namespace lockstep::nn::detail {
namespace {

using Value = EquationGraph::Value;

constexpr int kDeepest = 200;

struct Operator {
  std::string_view symbol;
  int binding;  // the higher the tighter
};
constexpr int kComparison = 1, kSum = 2, kProduct = 3, kSign = 4, kPower = 5;
constexpr std::array<Operator, 11> kOperators = {{{"<", kComparison},
                                                  {"<=", kComparison},
                                                  {">", kComparison},
                                                  {">=", kComparison},
                                                  {"==", kComparison},
                                                  {"+", kSum},
                                                  {"-", kSum},
                                                  {"*", kProduct},
                                                  {"/", kProduct},
                                                  {"%", kProduct},
                                                  {"^", kPower}}};

struct Function {
  std::string_view name;
  std::size_t arguments;
};
constexpr std::array<Function, 31> kFunctions = {
    {{"abs", 1},     {"acos", 1}, {"asin", 1}, {"atan", 1}, {"atan2", 2},    {"ceil", 1},     {"clamp", 3},
     {"cos", 1},     {"cosh", 1}, {"erf", 1},  {"exp", 1},  {"gelu", 1},     {"floor", 1},    {"if", 3},
     {"log", 1},     {"max", 2},  {"min", 2},  {"mod", 2},  {"pow", 2},      {"relu", 1},     {"round", 1},
     {"sigmoid", 1}, {"silu", 1}, {"sin", 1},  {"sinh", 1}, {"softplus", 1}, {"softsign", 1}, {"sqrt", 1},
     {"square", 1},  {"tan", 1},  {"tanh", 1}}};

const Function* function_named(std::string_view name) {
  const auto found = std::ranges::find(kFunctions, name, &Function::name);
  return found == kFunctions.end() ? nullptr : &*found;
}

std::optional<UnaryKind> unary_named(std::string_view name) {
  if (name == "abs") return UnaryKind::absolute;
  if (name == "atan") return UnaryKind::arctangent;
  if (name == "cos") return UnaryKind::cosine;
  if (name == "erf") return UnaryKind::erf;
  if (name == "exp") return UnaryKind::exp;
  if (name == "floor") return UnaryKind::floor;
  if (name == "log") return UnaryKind::log;
  if (name == "round") return UnaryKind::round;
  if (name == "sqrt") return UnaryKind::square_root;
  return {};
}

std::optional<double> constant_named(std::string_view name) {
  if (name == "pi") return std::numbers::pi;
  if (name == "e") return std::numbers::e;
  return {};
}

std::string list(const std::vector<std::string_view>& words) {
  constexpr std::size_t kMost = 24;
  std::string text;
  for (std::size_t i = 0; i < words.size() && i < kMost; ++i) text += (i == 0 ? "" : ", ") + std::string(words[i]);
  return words.size() > kMost ? text + ", ..." : text;
}

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
     {"asinh", "write log(x + sqrt(x^2 + 1))"},
     {"acosh", "write log(x + sqrt(x^2 - 1))"},
     {"atanh", "write log((1 + x) / (1 - x)) / 2"}}};

std::string nearest(std::string_view name, const std::vector<std::string_view>& known) {
  for (const auto& [other, remedy] : kElsewhere) {
    if (name == other) return std::string(remedy);
  }
  const std::string found = nearest_name(name, known);
  return found.empty() ? "" : "did you mean \"" + found + "\"?";
}

// The rest of "[index]", a whole number below `end`; `expected` is what messages say of it.
std::size_t take_index(Tokens& tokens, std::size_t end, const std::string& expected) {
  const Token index = tokens.take();
  const bool whole = index.kind == Token::Kind::number && index.number == std::floor(index.number);
  if (!whole || index.number >= static_cast<double>(end)) tokens.refuse(index, index.quoted(), expected);
  tokens.expect("]", "\"]\"");
  return static_cast<std::size_t>(index.number);
}

// What to write where an expression goes on without an operator.
std::string operator_remedy(const Token& next) {
  if (next.kind == Token::Kind::name && next.text == "and") return "write a * b for both of two comparisons";
  if (next.kind == Token::Kind::name && next.text == "or") return "write max(a, b) for one of two comparisons";
  const std::string sign = next.kind == Token::Kind::name ? keyboard_remedy(next.text) : "";
  if (!sign.empty()) return sign;
  return next.kind != Token::Kind::symbol || next.is("(") ? "write * for products" : "";
}

std::string arguments_text(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " argument" : " arguments");
}

}  // namespace

class EquationReader::Deeper {
 public:
  Deeper(EquationReader& reader, Tokens& tokens) : reader_(reader) {
    if (reader_.depth_ >= kDeepest) {
      tokens.refuse(tokens.now(), "more than " + std::to_string(kDeepest) + " levels of nesting", "fewer",
                    "give names to its parts, as definitions");
    }
    ++reader_.depth_;
  }
  ~Deeper() { --reader_.depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  EquationReader& reader_;
};

EquationReader::EquationReader(const Equations& system, EquationGraph& graph)
    : system_(system), graph_(graph), definitions_(system.definitions.size()) {
  for (std::size_t i = 0; i < system.equations.size(); ++i) {
    add_name(system.equations[i].name, system.equations[i].where, {What::component, i});
  }
  for (std::size_t i = 0; i < system.parameters.size(); ++i) {
    add_name(system.parameters[i].name, "parameters", {What::parameter, i});
  }
  for (std::size_t i = 0; i < system.definitions.size(); ++i) {
    add_name(system.definitions[i].name, system.definitions[i].where, {What::definition, i});
  }
  for (std::size_t i = 0; i < system.nets.size(); ++i) {
    require_free_net_name(system.nets[i].name, i, system.nets[i].where);
    system.nets[i].model.validate();
  }
}

// That nothing has, the first `nets` of the system's nets among it.
void EquationReader::require_free_net_name(const std::string& name, std::size_t nets, const std::string& where) const {
  const auto is_it = [&](const auto& net) { return net.name == name; };
  const bool again =
      std::any_of(system_.nets.begin(), system_.nets.begin() + static_cast<std::ptrdiff_t>(nets), is_it) ||
      std::ranges::any_of(open_, is_it);
  if (is_name(name) && !again && !function_named(name) && !names_.contains(name)) return;
  constexpr const char* kFree = "a name of letters, digits and _ that nothing else has";
  throw Error(ErrorKind::invalid_argument, {where.empty() ? "models" : where, '"' + name + '"', kFree, {}});
}

void EquationReader::open(const std::string& name) {
  require_free_net_name(name, system_.nets.size());
  open_.emplace_back().name = name;
}

void EquationReader::add_name(const std::string& name, const std::string& where, Name meaning) {
  const auto refuse = [&](std::string found, std::string expected) {
    throw Error(ErrorKind::invalid_argument,
                {where.empty() ? name : where, std::move(found), std::move(expected), "choose another name"});
  };
  if (!is_name(name)) refuse("the name \"" + name + '"', "letters, digits and _, a letter first");
  if (name == "t") refuse("the name \"t\"", "another: t is the time");
  if (!names_.emplace(name, meaning).second) refuse("the name \"" + name + "\" a second time", "names that differ");
}

Value EquationReader::read(const Equation& equation) {
  Tokens tokens(equation);
  const Value value = expression(tokens, 0);
  const Token& rest = tokens.now();
  if (rest.kind == Token::Kind::end) return value;
  tokens.refuse(rest, rest.quoted(), "an operator, or the end", operator_remedy(rest));
}

void EquationReader::read_definitions() {
  for (std::size_t i = 0; i < definitions_.size(); ++i) {
    if (definitions_[i].done) continue;
    definitions_[i].begun = true;
    definitions_[i].value = read(system_.definitions[i]);
    definitions_[i].done = true;
  }
}

// Everything from here on that binds tighter than `binding`.
Value EquationReader::expression(Tokens& tokens, int binding) {
  const Deeper deeper(*this, tokens);
  Value value = operand(tokens);
  for (;;) {
    const Token symbol = tokens.now();
    const auto found = std::ranges::find_if(kOperators, [&](const Operator& o) { return symbol.is(o.symbol); });
    if (found == kOperators.end() || found->binding <= binding) return value;
    tokens.take();
    if (symbol.is("*") && tokens.now().is("*")) {
      tokens.refuse(symbol, "\"**\"", "an operator", "write x^2 for powers");
    }
    // Powers group from the right, and their exponents may have a sign; all others from the left.
    const Value right = expression(tokens, symbol.is("^") ? kSign - 1 : found->binding);
    value = checked(tokens, symbol, combine(symbol, value, right));
    if (found->binding != kComparison) continue;
    const bool chained = std::ranges::any_of(
        kOperators, [&](const Operator& o) { return o.binding == kComparison && tokens.now().is(o.symbol); });
    if (chained) tokens.refuse(tokens.now(), tokens.now().quoted(), "one comparison", "put parentheses around one");
  }
}

Value EquationReader::operand(Tokens& tokens) {
  const Token token = tokens.take();
  if (token.kind == Token::Kind::number) return EquationGraph::number(token.number);
  if (token.kind == Token::Kind::name) return tokens.now().is("(") ? called(tokens, token) : named(tokens, token);
  if (token.is("-")) return graph_.unary(UnaryKind::negate, expression(tokens, kSign));
  if (token.is("+")) return expression(tokens, kSign);
  if (token.is("(")) {
    const Value value = expression(tokens, 0);
    tokens.expect(")", "an operator, or \")\"");
    return value;
  }
  tokens.refuse(token, token.quoted(), "a number, a name, or \"(\"");
}

Value EquationReader::combine(const Token& symbol, const Value& a, const Value& b) {
  if (symbol.is("+")) return graph_.binary(BinaryKind::add, a, b);
  if (symbol.is("-")) return graph_.binary(BinaryKind::subtract, a, b);
  if (symbol.is("*")) return graph_.binary(BinaryKind::multiply, a, b);
  if (symbol.is("/")) return graph_.binary(BinaryKind::divide, a, b);
  if (symbol.is("%")) return graph_.binary(BinaryKind::modulo, a, b);
  if (symbol.is("<")) return graph_.binary(BinaryKind::less, a, b);
  if (symbol.is("<=")) return graph_.binary(BinaryKind::less_or_equal, a, b);
  if (symbol.is(">")) return graph_.binary(BinaryKind::less, b, a);
  if (symbol.is(">=")) return graph_.binary(BinaryKind::less_or_equal, b, a);
  if (symbol.is("==")) return graph_.binary(BinaryKind::equal, a, b);
  return power(a, b);
}

// The small whole powers are products: faster, and exact where these are.
Value EquationReader::power(const Value& base, const Value& exponent) {
  const auto product = [&](const Value& a, const Value& b) { return graph_.binary(BinaryKind::multiply, a, b); };
  if (exponent.is_number() && !base.is_number()) {
    if (exponent.number == 2) return product(base, base);
    if (exponent.number == 3) return product(product(base, base), base);
    if (exponent.number == 4) {
      const Value squared = product(base, base);
      return product(squared, squared);
    }
  }
  return graph_.binary(BinaryKind::power, base, exponent);
}

Value EquationReader::checked(Tokens& tokens, const Token& at, Value value) {
  if (value.is_number() && !std::isfinite(value.number)) {
    tokens.refuse(at, "numbers that give " + std::string(std::isnan(value.number) ? "no number" : "infinity"),
                  "a finite number");
  }
  return value;
}

Value EquationReader::named(Tokens& tokens, const Token& name) {
  if (name.text == "t") {
    if (!time_at_) time_at_ = name.offset;
    return {0, "t"};
  }
  const auto found = names_.find(name.text);
  if (found == names_.end()) {
    if (const auto constant = constant_named(name.text)) return EquationGraph::number(*constant);
    unknown(tokens, name);
  }
  switch (found->second.what) {
    case What::component:
      return graph_.feature("u", system_.equations.size(), found->second.index);
    case What::parameter:
      return graph_.feature("p", system_.parameters.size(), found->second.index);
    case What::definition:
      break;
  }
  return definition(tokens, name, found->second.index);
}

void EquationReader::unknown(Tokens& tokens, const Token& name) const {
  std::vector<std::string_view> known;
  for (const Equation& equation : system_.equations) known.push_back(equation.name);
  for (const auto& parameter : system_.parameters) known.push_back(parameter.name);
  for (const Equation& definition : system_.definitions) known.push_back(definition.name);
  for (const std::string_view constant : {"t", "pi", "e"}) known.push_back(constant);
  std::string remedy = nearest(name.text, known);
  const auto is_it = [&](const auto& net) { return net.name == name.text; };
  const bool is_net = std::ranges::any_of(system_.nets, is_it) || std::ranges::any_of(open_, is_it);
  if (is_net || function_named(name.text)) remedy = "call it, " + std::string(name.text) + "(...)";
  if (remedy.empty()) remedy = keyboard_remedy(name.text);
  tokens.refuse(name, name.quoted(), "one of " + list(known), std::move(remedy));
}

Value EquationReader::definition(Tokens& tokens, const Token& name, std::size_t index) {
  Definition& known = definitions_[index];
  if (known.begun && !known.done) {
    tokens.refuse(name, name.quoted() + ", whose own definition leads here", "definitions without a circle");
  }
  if (known.done) return known.value;
  known.begun = true;
  const Deeper deeper(*this, tokens);
  known.value = read(system_.definitions[index]);
  known.done = true;
  return known.value;
}

Value EquationReader::called(Tokens& tokens, const Token& name) {
  const auto net = std::ranges::find_if(system_.nets, [&](const auto& one) { return one.name == name.text; });
  const auto open = std::ranges::find_if(open_, [&](const auto& one) { return one.name == name.text; });
  const bool is_open = open != open_.end();
  const Function* function = net == system_.nets.end() ? function_named(name.text) : nullptr;
  if (net == system_.nets.end() && function == nullptr && !is_open) {
    const std::string remedy = std::string(name.text) + " * (...)";
    if (names_.contains(name.text)) {
      tokens.refuse(name, name.quoted() + " called", "a function, net or table", "write " + remedy + " for a product");
    }
    std::vector<std::string_view> known;
    for (const auto& one : system_.nets) known.push_back(one.name);
    for (const OpenNet& one : open_) known.push_back(one.name);
    for (const Function& one : kFunctions) known.push_back(one.name);
    tokens.refuse(name, name.quoted(), "one of " + list(known), nearest(name.text, known));
  }
  const auto open_at = static_cast<std::size_t>(open - open_.begin());
  tokens.expect("(", "\"(\"");
  std::vector<Value> inputs;
  std::vector<std::string> texts;
  if (!tokens.now().is(")")) {
    do {
      const Token begin = tokens.now();
      inputs.push_back(expression(tokens, 0));
      texts.emplace_back(tokens.text_since(begin));
    } while (tokens.take_if(","));
  }
  tokens.expect(")", "an operator, \",\" or \")\"");
  if (is_open) return open_output(tokens, name, open_[open_at], inputs, texts);
  if (net != system_.nets.end()) return net_output(tokens, name, *net, inputs, texts);
  if (inputs.size() != function->arguments) {
    tokens.refuse(name, std::string(name.text) + " of " + arguments_text(inputs.size()),
                  std::to_string(function->arguments));
  }
  return checked(tokens, name, this->function(tokens, name, inputs));
}

Value EquationReader::function(Tokens& tokens, const Token& name, const std::vector<Value>& inputs) {
  const Value& x = inputs[0];
  if (const auto kind = unary_named(name.text)) return graph_.unary(*kind, x);
  if (name.text == "min") return graph_.binary(BinaryKind::minimum, x, inputs[1]);
  if (name.text == "max") return graph_.binary(BinaryKind::maximum, x, inputs[1]);
  if (name.text == "mod") return graph_.binary(BinaryKind::modulo, x, inputs[1]);
  if (name.text == "ceil") return ceil_of(graph_, x);
  if (name.text == "pow") return power(x, inputs[1]);
  if (name.text == "square") return graph_.binary(BinaryKind::multiply, x, x);
  if (name.text == "if") return graph_.select(x, inputs[1], inputs[2]);
  if (name.text == "sinh") return sinh_of(graph_, x);
  if (name.text == "cosh") return cosh_of(graph_, x);
  if (name.text == "asin") return asin_of(graph_, x);
  if (name.text == "acos") return acos_of(graph_, x);
  if (name.text == "atan2") return atan2_of(graph_, x, inputs[1]);
  if (name.text == "tan") return tan_of(graph_, x);
  if (name.text == "clamp") {
    const Value &low = inputs[1], &high = inputs[2];
    if (!low.is_number() || !high.is_number()) {
      return graph_.binary(BinaryKind::minimum, graph_.binary(BinaryKind::maximum, x, low), high);
    }
    if (low.number > high.number) tokens.refuse(name, "bounds of clamp in falling order", "the lower one first");
    return graph_.clip(x, low.number, high.number);
  }
  return graph_.activate({parse_activation(name.text)->kind}, x);  // the functions that are left
}

Value EquationReader::open_output(Tokens& tokens, const Token& name, OpenNet& net, const std::vector<Value>& inputs,
                                  const std::vector<std::string>& texts) {
  const auto same = [](const Value& a, const Value& b) { return a.node == b.node && a.number == b.number; };
  if (inputs.empty()) tokens.refuse(name, name.quoted() + " of no arguments", "the net's inputs");
  if (net.width == 0) {
    net.width = inputs.size();
    net.input_names = texts;
  } else if (net.width != inputs.size()) {
    tokens.refuse(name, std::string(name.text) + " of " + arguments_text(inputs.size()),
                  std::to_string(net.width) + ", as in its first call");
  }
  const bool known =
      std::ranges::any_of(net.calls, [&](const auto& call) { return std::ranges::equal(call, inputs, same); });
  if (std::ranges::any_of(inputs, [&](const Value& value) { return graph_.is_unknown(value); })) {
    net.reads_unknown = true;
  } else if (!known) {
    net.calls.push_back(inputs);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      std::string& text = net.input_names[i];
      if (text != texts[i] && !text.ends_with(" ...")) text += " ...";
    }
  }
  const bool first = net.outputs.empty(), by_name = tokens.now().is(".");
  if (!first && by_name != net.by_name) {
    tokens.refuse(name, "outputs taken by index and by name", "either");
  }
  net.by_name = by_name;
  if (tokens.take_if(".")) {
    const Token output = tokens.take();
    if (output.kind != Token::Kind::name) tokens.refuse(output, output.quoted(), "an output's name");
    const auto known = std::ranges::find(net.outputs, output.text);
    if (known == net.outputs.end()) net.outputs.emplace_back(output.text);
  } else {
    const std::size_t index = tokens.take_if("[") ? take_index(tokens, 1000, "an index from 0 to 999") : 0;
    net.outputs.resize(std::max(net.outputs.size(), index + 1));
  }
  return graph_.unknown();
}

Value EquationReader::net_output(Tokens& tokens, const Token& name, const Equations::Net& net,
                                 const std::vector<Value>& inputs, const std::vector<std::string>& texts) {
  std::size_t expected = 0;
  for (const Port& port : net.model.inputs) expected += port.features.size();
  if (inputs.size() != expected) {
    std::string names;
    for (const Port& port : net.model.inputs) {
      for (const Feature& feature : port.features) {
        if (!feature.name.empty()) names += (names.empty() ? ": " : ", ") + feature.name;
      }
    }
    tokens.refuse(
        name, std::string(name.text) + " of " + arguments_text(inputs.size()),
        std::to_string(expected) + (is_table(net.model) ? ", what the table is of" : ", the net's inputs") + names);
  }
  const std::vector<Value> outputs = graph_.call(net.name, net.model, inputs, texts);
  std::vector<std::string_view> names;
  for (const Port& port : net.model.outputs) {
    for (const Feature& feature : port.features) {
      names.push_back(feature.name.empty() && port.features.size() == 1 ? port.name : feature.name);
    }
  }
  const std::string last = std::to_string(outputs.size() - 1);
  if (tokens.take_if("[")) return outputs[take_index(tokens, outputs.size(), "an output from 0 to " + last)];
  if (tokens.take_if(".")) {
    const Token output = tokens.take();
    const auto found = std::ranges::find(names, output.text);
    if (output.kind == Token::Kind::name && found != names.end()) {
      return outputs[static_cast<std::size_t>(found - names.begin())];
    }
    std::vector<std::string_view> known;
    std::ranges::copy_if(names, std::back_inserter(known), [](std::string_view n) { return !n.empty(); });
    tokens.refuse(
        output, output.quoted(),
        known.empty() ? "an index, [0] to [" + last + "]: the outputs have no names" : "one of " + list(known),
        nearest(output.text, known));
  }
  if (outputs.size() != 1) {
    tokens.refuse(name, std::string(name.text) + "(...), which has " + std::to_string(outputs.size()) + " outputs",
                  "one of them", "write " + std::string(name.text) + "(...)[0], or .NAME");
  }
  return outputs[0];
}

}  // namespace lockstep::nn::detail
