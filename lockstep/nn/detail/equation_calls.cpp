// What an expression calls: functions, nets and tables, and nets that are yet to come.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <numbers>
#include <numeric>
#include <utility>

#include "lockstep/nn/detail/composed.h"
#include "lockstep/nn/detail/equation_names.h"
#include "lockstep/nn/detail/equation_reader.h"
#include "lockstep/nn/table_model.h"

namespace lockstep::nn::detail {
namespace {

using Value = EquationGraph::Value;

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

// The rest of "[index]", a whole number below `end`; `expected` is what messages say of it.
std::size_t take_index(Tokens& tokens, std::size_t end, const std::string& expected) {
  const Token index = tokens.take();
  const bool whole = index.kind == Token::Kind::number && index.number == std::floor(index.number);
  if (!whole || index.number >= static_cast<double>(end)) tokens.refuse(index, index.quoted(), expected);
  tokens.expect("]", "\"]\"");
  return static_cast<std::size_t>(index.number);
}

std::string arguments_text(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " argument" : " arguments");
}

bool is_a_name(std::string_view text) {
  const auto is_of_one = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  return !text.empty() && std::ranges::all_of(text, is_of_one) &&
         std::isdigit(static_cast<unsigned char>(text[0])) == 0;
}

// Of an output that `net` has not: one whose name begins so, as that of a column with a unit, goes by its place.
std::string remedy_for_output(std::string_view net, std::string_view asked,
                              const std::vector<std::string_view>& names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (is_a_name(names[i]) || !names[i].starts_with(asked)) continue;
    return "write " + std::string(net) + "(...)[" + std::to_string(i) + "] for \"" + std::string(names[i]) + "\"";
  }
  std::vector<std::string_view> known;
  std::ranges::copy_if(names, std::back_inserter(known), is_a_name);
  return remedy_for(asked, known);
}

}  // namespace

Value EquationReader::called(Tokens& tokens, const Token& name) {
  const auto net = std::ranges::find_if(system_.nets, [&](const auto& one) { return one.name == name.text; });
  const auto open = std::ranges::find_if(open_, [&](const auto& one) { return one.name == name.text; });
  const bool is_open = open != open_.end();
  const NamedFunction* function = net == system_.nets.end() ? named_function(name.text) : nullptr;
  if (net == system_.nets.end() && function == nullptr && !is_open) {
    const std::string remedy = std::string(name.text) + " * (...)";
    if (names_.contains(name.text)) {
      tokens.refuse(name, name.quoted() + " called", "a function, net or table", "write " + remedy + " for a product");
    }
    std::vector<std::string_view> known;
    for (const auto& one : system_.nets) known.push_back(one.name);
    for (const OpenNet& one : open_) known.push_back(one.name);
    for (const NamedFunction& one : kNamedFunctions) known.push_back(one.name);
    std::string advice = remedy_for(name.text, known);
    if (advice.empty()) advice = "name a net that it calls in models, a table there or in tables";
    tokens.refuse(name, name.quoted(), "one of " + listed(known), std::move(advice));
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
  if (inputs.size() < function->arguments || (inputs.size() > function->arguments && !function->or_more)) {
    tokens.refuse(name, std::string(name.text) + " of " + arguments_text(inputs.size()),
                  std::to_string(function->arguments) + (function->or_more ? " or more" : ""));
  }
  return checked(tokens, name, this->function(tokens, name, inputs));
}

Value EquationReader::function(Tokens& tokens, const Token& name, const std::vector<Value>& inputs) {
  const Value& x = inputs[0];
  if (const auto kind = unary_named(name.text)) return graph_.unary(*kind, x);
  if (name.text == "min" || name.text == "max") {
    const BinaryKind kind = name.text == "min" ? BinaryKind::minimum : BinaryKind::maximum;
    return std::accumulate(inputs.begin() + 1, inputs.end(), x,
                           [&](const Value& a, const Value& b) { return graph_.binary(kind, a, b); });
  }
  if (name.text == "mod") return graph_.binary(BinaryKind::modulo, x, inputs[1]);
  if (name.text == "ceil") return ceil_of(graph_, x);
  if (name.text == "trunc") return trunc_of(graph_, x);
  if (name.text == "sign") return sign_of(graph_, x);
  if (name.text == "expm1") return expm1_of(graph_, x);
  if (name.text == "log1p") return log1p_of(graph_, x);
  if (name.text == "log2") return log_by_base(graph_, x, std::numbers::ln2);
  if (name.text == "log10") return log_by_base(graph_, x, std::numbers::ln10);
  if (name.text == "pow") return power(x, inputs[1]);
  if (name.text == "square") return graph_.binary(BinaryKind::multiply, x, x);
  if (name.text == "if") return graph_.select(x, inputs[1], inputs[2]);
  if (name.text == "sinh") return sinh_of(graph_, x);
  if (name.text == "cosh") return cosh_of(graph_, x);
  if (name.text == "asin") return asin_of(graph_, x);
  if (name.text == "acos") return acos_of(graph_, x);
  if (name.text == "asinh") return asinh_of(graph_, x);
  if (name.text == "acosh") return acosh_of(graph_, x);
  if (name.text == "atanh") return atanh_of(graph_, x);
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
        known.empty() ? "an index, [0] to [" + last + "]: the outputs have no names" : "one of " + listed(known),
        remedy_for_output(name.text, output.text, names));
  }
  if (outputs.size() != 1) {
    tokens.refuse(name, std::string(name.text) + "(...), which has " + std::to_string(outputs.size()) + " outputs",
                  "one of them", "write " + std::string(name.text) + "(...)[0], or .NAME");
  }
  return outputs[0];
}

}  // namespace lockstep::nn::detail
