#include "lockstep/nn/equations.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>
#include <variant>

#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"
#include "lockstep/nn/detail/equation_graph.h"
#include "lockstep/nn/detail/equation_reader.h"
#include "lockstep/nn/table_model.h"

namespace lockstep::nn {
namespace {

using detail::EquationGraph;
using detail::EquationReader;

constexpr const char* kText = "equations";
constexpr const char* kDefaults = "parameter_defaults";

// Characters, not bytes, up to `offset`: columns as people count them.
std::size_t characters(std::string_view text, std::size_t offset) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < offset && i < text.size(); ++i)
    count += (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
  return count;
}

Error::Parts with_column(Error::Parts parts, std::string_view text, std::size_t offset) {
  parts.field += (parts.field.empty() ? "column " : ", column ") + std::to_string(characters(text, offset) + 1);
  return parts;
}

std::vector<Feature> features_of(const std::vector<Equation>& named, const std::string& before = {},
                                 const std::string& after = {}) {
  std::vector<Feature> features(named.size());
  for (std::size_t i = 0; i < named.size(); ++i) features[i].name = before + named[i].name + after;
  return features;
}

std::string text_of(const Equations& system) {
  std::string text;
  const auto line = [&](const std::string& name, const std::string& value) {
    text += (text.empty() ? "" : "\n") + name + " = " + value;
  };
  for (const Equation& equation : system.equations) line("d" + equation.name + "/dt", equation.text);
  for (const Equation& definition : system.definitions) line(definition.name, definition.text);
  for (const Equations::Parameter& parameter : system.parameters) {
    if (parameter.value) line(parameter.name, number_text(*parameter.value));
  }
  for (const Equations::Net& net : system.nets) {
    line(net.name, (is_table(net.model) ? "table " : "net ") + net.model.digest());
  }
  return text;
}

Model model_of(const Equations& system, EquationGraph graph, bool reads_time, Port output) {
  Model model;
  model.inputs.push_back({"u", "", features_of(system.equations)});
  if (!system.parameters.empty()) {
    Port& port = model.inputs.emplace_back(Port{"p", "", {}});
    for (const auto& parameter : system.parameters) port.features.emplace_back().name = parameter.name;
  }
  if (reads_time) model.inputs.push_back({"t", "", {Feature{.name = "t", .unit = ""}}});
  model.nodes = graph.take_nodes();
  model.outputs.push_back(std::move(output));
  model.validate();
  return model;
}

// Those of one net after another, whatever calls which first.
std::vector<GuardedCall> in_order_of_nets(const Equations& system, std::vector<GuardedCall> calls) {
  const auto place = [&](const GuardedCall& call) {
    return std::ranges::find(system.nets, call.net.substr(0, call.net.find('.')), &Equations::Net::name);
  };
  std::ranges::stable_sort(calls, {}, place);
  return calls;
}

void require_components(const Equations& system) {
  if (!system.equations.empty()) return;
  throw Error(ErrorKind::invalid_argument, {"equations", "none", "one for each component of the state", {}});
}

}  // namespace

ExpressionError::ExpressionError(Parts parts, std::string_view text, std::size_t offset)
    : Error(ErrorKind::invalid_argument, with_column(std::move(parts), text, offset)) {
  std::size_t begin = offset == 0 ? std::string_view::npos : text.rfind('\n', offset - 1);
  begin = begin == std::string_view::npos ? 0 : begin + 1;
  const std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
  // Of a line that fills a screen, what stands about the place.
  constexpr std::size_t kAround = 80;
  const auto continues = [&](std::size_t at) { return at < line.size() && (line[at] & 0xC0) == 0x80; };
  std::size_t first = offset - begin > kAround ? offset - begin - kAround : 0;
  while (continues(first)) ++first;
  std::size_t last = std::min(line.size(), offset - begin + kAround);
  while (continues(last)) ++last;
  excerpt_ = std::string(line.substr(first, last - first)) + '\n' +
             std::string(characters(line.substr(first), offset - begin - first), ' ') + '^';
}

Model equations(const Equations& system) {
  const StandardArithmetic arithmetic;
  require_components(system);
  EquationGraph graph;
  EquationReader reader(system, graph);
  reader.read_definitions();
  std::vector<EquationGraph::Value> derivatives;
  for (const Equation& equation : system.equations) derivatives.push_back(reader.read(equation));
  Port output{"du", graph.vector_of(derivatives), features_of(system.equations, "d", "/dt")};
  std::vector<GuardedCall> calls = graph.take_guarded_calls();
  Model model = model_of(system, std::move(graph), reader.reads_time(), std::move(output));
  model.calls = in_order_of_nets(system, std::move(calls));
  model.metadata[kText] = text_of(system);
  std::string defaults;
  for (const auto& parameter : system.parameters) {
    defaults += (defaults.empty() ? "" : " ") + (parameter.value ? number_text(*parameter.value) : std::string("-"));
  }
  if (!defaults.empty()) model.metadata[kDefaults] = defaults;
  return model;
}

Model expressions(std::span<const Equation> functions, const Equations& system) {
  const StandardArithmetic arithmetic;
  require_components(system);
  EquationGraph graph;
  EquationReader reader(system, graph);
  std::vector<EquationGraph::Value> values;
  for (const Equation& function : functions) values.push_back(reader.read(function));
  Port output{"value", graph.vector_of(values), std::vector<Feature>(values.size())};
  std::vector<GuardedCall> calls = graph.take_guarded_calls();
  Model model = model_of(system, std::move(graph), reader.reads_time(), std::move(output));
  model.calls = in_order_of_nets(system, std::move(calls));
  return model;
}

Model expression(const Equation& function, const Equations& system) { return expressions({&function, 1}, system); }

std::vector<NetCalls> net_calls(const Equations& system, std::span<const std::string> nets) {
  const StandardArithmetic arithmetic;
  require_components(system);
  EquationGraph graph;
  EquationReader reader(system, graph);
  for (const std::string& net : nets) reader.open(net);
  reader.read_definitions();
  for (const Equation& equation : system.equations) reader.read(equation);
  std::vector<NetCalls> all;
  for (const EquationReader::OpenNet& called : reader.opened()) {
    if (called.width == 0) {
      throw Error(ErrorKind::invalid_argument, {"equations", "no call of \"" + called.name + '"',
                                                "the net that is to be trained", "write " + called.name + "(...)"});
    }
    NetCalls& made =
        all.emplace_back(NetCalls{called.input_names, called.outputs, called.calls.size(), {}, called.reads_unknown});
    if (made.calls == 0) continue;
    std::vector<EquationGraph::Value> read;
    for (const auto& call : called.calls) read.insert(read.end(), call.begin(), call.end());
    EquationGraph copy = graph;
    Port output{"inputs", copy.vector_of(read), std::vector<Feature>(read.size())};
    made.read = model_of(system, std::move(copy), reader.reads_time(), std::move(output));
  }
  return all;
}

graph::WeightPlaces weight_places(const Model& equations, const Equations& system,
                                  std::span<const std::string> trained) {
  std::map<std::string, std::size_t> places;  // by net and node, "net.layers.0"
  std::size_t place = 0;
  for (const std::string& name : trained) {
    for (const Equations::Net& net : system.nets) {
      if (net.name != name) continue;
      for (const Node& node : net.model.nodes) {
        const auto* dense = std::get_if<Dense>(&node.operation);
        if (dense == nullptr) continue;
        places[name + "." + node.name] = place;
        place += dense->weights.size() + dense->bias.size();
      }
    }
  }
  graph::WeightPlaces all;
  for (const Node& node : equations.nodes) {
    if (!std::holds_alternative<Dense>(node.operation)) continue;
    // "net#2.layers.0" is a node of the second call.
    const std::size_t dot = std::min(node.name.find('.'), node.name.size());
    const auto known = places.find(node.name.substr(0, std::min(node.name.find('#'), dot)) + node.name.substr(dot));
    all.push_back(known == places.end() ? graph::kKept : known->second);
  }
  return all;
}

double constant_expression(const Equation& constant) {
  const StandardArithmetic arithmetic;
  const Equations nothing;
  EquationGraph graph;
  EquationReader reader(nothing, graph);
  const EquationGraph::Value value = reader.read(constant);
  if (value.is_number()) return value.number;
  throw ExpressionError(
      {constant.where.empty() ? constant.name : constant.where, "the time", "an expression of numbers alone", {}},
      constant.text, reader.time_at());
}

bool is_constant(const Equation& function, const Equations& system) {
  const StandardArithmetic arithmetic;
  EquationGraph graph;
  EquationReader reader(system, graph);
  return reader.read(function).is_number();
}

std::vector<std::optional<double>> parameter_defaults(const Model& model) {
  const auto known = model.metadata.find(kDefaults);
  if (known == model.metadata.end()) return {};
  std::vector<std::optional<double>> values;
  std::string_view text = known->second;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    const bool is_number = error == std::errc() && end == word.data() + word.size();
    values.push_back(is_number ? std::optional(value) : std::nullopt);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return values;
}

}  // namespace lockstep::nn
