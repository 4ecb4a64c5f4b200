#include "lockstep/nn/detail/equation_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "lockstep/nn/detail/equation_names.h"

namespace lockstep::nn::detail {
namespace {

using Value = EquationGraph::Value;

constexpr int kDeepest = 200;

struct Operator {
  std::string_view symbol;
  int binding;  // the higher the tighter
};
constexpr int kOr = 1, kAnd = 2, kNot = 3, kComparison = 4, kSum = 5, kProduct = 6, kSign = 7, kPower = 8;
constexpr std::array<Operator, 14> kOperators = {{{"or", kOr},
                                                  {"and", kAnd},
                                                  {"<", kComparison},
                                                  {"<=", kComparison},
                                                  {">", kComparison},
                                                  {">=", kComparison},
                                                  {"==", kComparison},
                                                  {"!=", kComparison},
                                                  {"+", kSum},
                                                  {"-", kSum},
                                                  {"*", kProduct},
                                                  {"/", kProduct},
                                                  {"%", kProduct},
                                                  {"^", kPower}}};

std::optional<double> constant_named(std::string_view name) {
  if (name == "pi") return std::numbers::pi;
  if (name == "e") return std::numbers::e;
  return {};
}

// What to write where an expression goes on without an operator.
std::string operator_remedy(const Token& next) {
  if (next.kind == Token::Kind::symbol && next.is(",")) return "write decimal points: 0.5, not 0,5";
  const std::string sign = next.kind == Token::Kind::name ? keyboard_remedy(next.text) : "";
  if (!sign.empty()) return sign;
  return next.kind != Token::Kind::symbol || next.is("(") ? "write * for products" : "";
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
  if (is_name(name) && !again && !named_function(name) && !names_.contains(name)) return;
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
    const auto found = std::ranges::find_if(kOperators, [&](const Operator& o) { return symbol.text == o.symbol; });
    if (found == kOperators.end() || found->binding <= binding) return value;
    tokens.take();
    if (symbol.is("*") && tokens.now().is("*")) {
      tokens.refuse(symbol, "\"**\"", "an operator", "write x^2 for powers");
    }
    // Powers group from the right, and their exponents may have a sign; all others from the left.
    const Value right = expression(tokens, symbol.is("^") ? kSign - 1 : found->binding);
    value = checked(tokens, symbol, combine(found->symbol, value, right));
    if (found->binding != kComparison) continue;
    const bool chained = std::ranges::any_of(
        kOperators, [&](const Operator& o) { return o.binding == kComparison && tokens.now().is(o.symbol); });
    if (chained) tokens.refuse(tokens.now(), tokens.now().quoted(), "one comparison", "write a < b and b < c");
  }
}

Value EquationReader::operand(Tokens& tokens) {
  const Token token = tokens.take();
  if (token.text == "not" && !names_.contains(token.text)) return opposite(expression(tokens, kNot));
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

Value EquationReader::combine(std::string_view symbol, const Value& a, const Value& b) {
  if (symbol == "+") return graph_.binary(BinaryKind::add, a, b);
  if (symbol == "-") return graph_.binary(BinaryKind::subtract, a, b);
  if (symbol == "*") return graph_.binary(BinaryKind::multiply, a, b);
  if (symbol == "/") return graph_.binary(BinaryKind::divide, a, b);
  if (symbol == "%") return graph_.binary(BinaryKind::modulo, a, b);
  if (symbol == "<") return one_or_zero(graph_.binary(BinaryKind::less, a, b));
  if (symbol == "<=") return one_or_zero(graph_.binary(BinaryKind::less_or_equal, a, b));
  if (symbol == ">") return one_or_zero(graph_.binary(BinaryKind::less, b, a));
  if (symbol == ">=") return one_or_zero(graph_.binary(BinaryKind::less_or_equal, b, a));
  if (symbol == "==") return one_or_zero(graph_.binary(BinaryKind::equal, a, b));
  if (symbol == "!=") return opposite(one_or_zero(graph_.binary(BinaryKind::equal, a, b)));
  if (symbol == "and") return one_or_zero(graph_.binary(BinaryKind::multiply, truth(a), truth(b)));
  if (symbol == "or") return one_or_zero(graph_.binary(BinaryKind::maximum, truth(a), truth(b)));
  return power(a, b);
}

Value EquationReader::one_or_zero(Value value) {
  if (!value.is_number()) ones_and_zeros_.insert(value.node);
  return value;
}

Value EquationReader::truth(const Value& value) {
  if (value.is_number()) return EquationGraph::number(value.number != 0 ? 1 : 0);
  if (ones_and_zeros_.contains(value.node)) return value;
  return one_or_zero(graph_.select(value, EquationGraph::number(1), EquationGraph::number(0)));
}

Value EquationReader::opposite(const Value& value) {
  return one_or_zero(graph_.binary(BinaryKind::subtract, EquationGraph::number(1), truth(value)));
}

// The small whole powers are products: faster, and exact where these are.
Value EquationReader::power(const Value& base, const Value& exponent) {
  const auto product = [&](const Value& a, const Value& b) { return graph_.binary(BinaryKind::multiply, a, b); };
  if (exponent.is_number()) {
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
  std::string remedy = remedy_for(name.text, known);
  const auto is_it = [&](const auto& net) { return net.name == name.text; };
  const bool is_net = std::ranges::any_of(system_.nets, is_it) || std::ranges::any_of(open_, is_it);
  if (is_net || named_function(name.text)) remedy = "call it, " + std::string(name.text) + "(...)";
  // That one may have been meant does not tell what is wrong with letters that look the same.
  const std::string alike = look_alike_remedy(name.text, known);
  if (const std::string typed = alike.empty() ? keyboard_remedy(name.text) : alike; !typed.empty())
    remedy += (remedy.empty() ? "" : " ") + typed;
  tokens.refuse(name, name.quoted(), "one of " + listed(known), std::move(remedy));
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

}  // namespace lockstep::nn::detail
