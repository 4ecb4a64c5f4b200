#include "lockstep/nn/guarded_calls.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "lockstep/core/standard_arithmetic.h"

namespace lockstep::nn {
namespace {

bool is_of(const Node& node, const GuardedCall& call) {
  return node.name.size() > call.name.size() && node.name[call.name.size()] == '.' && node.name.starts_with(call.name);
}

// Where the values of a model come from.
class Sources {
 public:
  explicit Sources(const Model& model) : model_(model) {
    for (std::size_t i = 0; i < model.inputs.size(); ++i) {
      ports_[model.inputs[i].name] = i;
      widths_[model.inputs[i].name] = model.inputs[i].features.size();
    }
    for (std::size_t i = 0; i < model.nodes.size(); ++i) {
      const Node& node = model.nodes[i];
      std::vector<std::size_t> read;
      for (const std::string& input : node.inputs) read.push_back(widths_.at(input));
      nodes_[node.name] = i;
      widths_[node.name] = graph::output_width(node.operation, read, node.name);
    }
  }

  // A feature of an input port.
  struct Source {
    std::size_t port, index;
  };
  // What value[index] is, where it is one as it is.
  std::optional<Source> source_of(std::string value, std::size_t index) const {
    pass_on(value, index);
    const auto port = ports_.find(value);
    if (port == ports_.end()) return std::nullopt;
    return Source{port->second, index};
  }
  // Where value[index] was made: what is moved as it is is not made anew.
  void pass_on(std::string& value, std::size_t& index) const {
    while (!ports_.contains(value)) {
      const Node& node = model_.nodes[nodes_.at(value)];
      if (const auto* columns = std::get_if<Columns>(&node.operation)) {
        index = columns->indices.at(index);
        value = node.inputs[0];
      } else if (std::holds_alternative<Concatenate>(node.operation)) {
        std::size_t part = 0;
        for (; index >= widths_.at(node.inputs[part]); ++part) index -= widths_.at(node.inputs[part]);
        value = node.inputs[part];
      } else {
        return;
      }
    }
  }
  std::size_t width(const std::string& value) const { return widths_.at(value); }

 private:
  const Model& model_;
  std::map<std::string, std::size_t> ports_, nodes_;  // places, by name
  std::map<std::string, std::size_t> widths_;
};

using Calls = std::vector<const GuardedCall*>;

// By net, in the order of its first call.
std::vector<Calls> by_net(const std::vector<GuardedCall>& calls) {
  std::vector<Calls> nets;
  for (const GuardedCall& call : calls) {
    const auto known = std::ranges::find_if(nets, [&](const Calls& of) { return of.front()->net == call.net; });
    (known == nets.end() ? nets.emplace_back() : *known).push_back(&call);
  }
  return nets;
}

// The nodes in which something that these calls give is.
std::set<std::string> made_by(const Calls& calls, const Model& model) {
  std::set<std::string> made;
  for (const Node& node : model.nodes) {
    const bool own = std::ranges::any_of(calls, [&](const GuardedCall* call) { return is_of(node, *call); });
    if (own || std::ranges::any_of(node.inputs, [&](const std::string& input) { return made.contains(input); })) {
      made.insert(node.name);
    }
  }
  return made;
}

// As the call itself: its own nodes that show what it reads do not make it read what it gives.
bool reads(const GuardedCall& call, const std::set<std::string>& made, const Model& model) {
  return std::ranges::any_of(call.inputs, [&](const Port& port) {
    const auto node = std::ranges::find(model.nodes, port.value, &Node::name);
    if (node == model.nodes.end() || !is_of(*node, call)) return made.contains(port.value);
    return std::ranges::any_of(node->inputs, [&](const std::string& input) { return made.contains(input); });
  });
}

std::vector<Feature> features_of(const GuardedCall& call) {
  std::vector<Feature> features;
  for (const Port& port : call.inputs) features.insert(features.end(), port.features.begin(), port.features.end());
  return features;
}

// The first call's arguments, " ..." behind one that differs in another.
std::vector<std::string> argument_texts(const Calls& calls) {
  std::vector<std::string> texts;
  for (const GuardedCall* call : calls) {
    const std::vector<Feature> features = features_of(*call);
    if (texts.empty()) {
      for (const Feature& feature : features) texts.push_back(feature.name);
      continue;
    }
    for (std::size_t i = 0; i < std::min(texts.size(), features.size()); ++i) {
      if (texts[i] != features[i].name && !texts[i].ends_with(" ...")) texts[i] += " ...";
    }
  }
  return texts;
}

const Node* node_of(const Model& model, const std::string& value) {
  const auto node = std::ranges::find(model.nodes, value, &Node::name);
  return node == model.nodes.end() ? nullptr : &*node;
}

// The node of the value where that is a remainder.
const Node* remainder_of(const Model& model, const std::string& value) {
  const Node* const node = node_of(model, value);
  const auto* binary = node == nullptr ? nullptr : std::get_if<Binary>(&node->operation);
  return binary != nullptr && binary->kind == BinaryKind::modulo ? node : nullptr;
}

// Of a remainder by a number, t % 24 of a table of one day: it lies within whatever it is of.
bool is_remainder_within(const Model& model, const std::string& value, const Feature& feature) {
  const Node* const node = remainder_of(model, value);
  if (node == nullptr) return false;
  const Node* const divisor = node_of(model, node->inputs[1]);
  const auto* number = divisor == nullptr ? nullptr : std::get_if<Constant>(&divisor->operation);
  if (number == nullptr || number->values.size() != 1) return false;
  const double end = number->values[0];
  return feature.minimum <= std::min(end, 0.0) && std::max(end, 0.0) <= feature.maximum;
}

// slope * t + shift
struct TimeLine {
  double slope, shift;
};

std::optional<TimeLine> line_of(BinaryKind kind, TimeLine a, TimeLine b) {
  switch (kind) {
    case BinaryKind::add:
      return TimeLine{a.slope + b.slope, a.shift + b.shift};
    case BinaryKind::subtract:
      return TimeLine{a.slope - b.slope, a.shift - b.shift};
    case BinaryKind::multiply:
      if (a.slope != 0) std::swap(a, b);
      if (a.slope != 0) return std::nullopt;
      return TimeLine{a.shift * b.slope, a.shift * b.shift};
    case BinaryKind::divide:
      if (b.slope != 0 || b.shift == 0) return std::nullopt;
      return TimeLine{a.slope / b.shift, a.shift / b.shift};
    default:
      return std::nullopt;
  }
}

// A number made of the time, numbers and parameters alone, "(t - lag) / 2", and its line where there is no parameter.
struct OfTime {
  bool reads_time = false;
  std::optional<TimeLine> line;
};

std::map<std::string, OfTime> made_of_time(const Model& model, const Sources& sources) {
  std::map<std::string, OfTime> made;
  const auto read = [&](const std::string& value) -> std::optional<OfTime> {
    if (sources.width(value) != 1) return std::nullopt;
    if (const auto source = sources.source_of(value, 0)) {
      if (is_time(model.inputs[source->port])) return OfTime{true, TimeLine{1, 0}};
      if (source->port == 0) return std::nullopt;  // the state
      return OfTime{};
    }
    const auto known = made.find(value);
    return known == made.end() ? std::nullopt : std::optional(known->second);
  };
  for (const Node& node : model.nodes) {
    if (sources.width(node.name) != 1) continue;
    OfTime all;
    std::vector<TimeLine> lines;
    bool alone = true;
    for (const std::string& input : node.inputs) {
      const std::optional<OfTime> one = read(input);
      alone = alone && one;
      if (!one) break;
      all.reads_time = all.reads_time || one->reads_time;
      if (one->line) lines.push_back(*one->line);
    }
    if (!alone) continue;
    const auto* number = std::get_if<Constant>(&node.operation);
    const auto* unary = std::get_if<Unary>(&node.operation);
    const auto* binary = std::get_if<Binary>(&node.operation);
    if (number != nullptr) all.line = TimeLine{0, number->values[0]};
    if (unary != nullptr && unary->kind == UnaryKind::negate && lines.size() == 1)
      all.line = TimeLine{-lines[0].slope, -lines[0].shift};
    if (binary != nullptr && lines.size() == 2) all.line = line_of(binary->kind, lines[0], lines[1]);
    made.emplace(node.name, all);
  }
  return made;
}

// At which times a table's argument is within its range.
Feature at_times(Feature feature, const TimeLine& line) {
  feature.minimum = (feature.minimum - line.shift) / line.slope;
  feature.maximum = (feature.maximum - line.shift) / line.slope;
  if (feature.minimum > feature.maximum) std::swap(feature.minimum, feature.maximum);
  return feature;
}

std::optional<KnownTimes::LastStep> last_step(const Interpolate& table, const TimeLine& line) {
  const std::vector<double>& knots = table.knots;
  if (table.powers() != 1 || knots.size() < 2 || !(line.slope > 0)) return std::nullopt;
  double longest = 0;
  bool is_zero = true;
  for (std::size_t i = 1; i < knots.size(); ++i) longest = std::max(longest, knots[i] - knots[i - 1]);
  for (std::size_t j = 1; j <= table.outputs; ++j) is_zero = is_zero && table.coefficients[j * knots.size() - 1] == 0;
  if (is_zero) return std::nullopt;
  return KnownTimes::LastStep{(knots.back() - line.shift) / line.slope, longest / line.slope};
}

// `line`: what a table reads of the time.
void note_time(std::vector<KnownTimes>& times, const std::string& net, const Feature& feature, const Interpolate* table,
               const TimeLine& line = {1, 0}) {
  if (std::ranges::find(times, net, &KnownTimes::name) != times.end()) return;  // all its calls read the same
  times.push_back({net, feature.minimum, feature.maximum, table != nullptr,
                   table == nullptr ? std::nullopt : last_step(*table, line)});
}

// An input that no input of the model tells of, and the nets or tables that read it.
struct OtherInput {
  std::string range, input;  // "range of ", "input t - lag"
  std::vector<std::string> readers;

  std::string text() const {
    std::string text = range;
    for (std::size_t i = 0; i < readers.size(); ++i) {
      text += (i == 0 ? "" : i + 1 < readers.size() ? ", " : " and ") + readers[i] + "'s";
    }
    return text + " " + input;
  }
};

void note_other(std::vector<OtherInput>& others, const std::string& range, const std::string& input,
                const std::string& reader) {
  const auto known = std::ranges::find_if(
      others, [&](const OtherInput& other) { return other.range == range && other.input == input; });
  if (known == others.end()) {
    others.push_back({range, input, {reader}});
  } else if (std::ranges::find(known->readers, reader) == known->readers.end()) {
    known->readers.push_back(reader);
  }
}

// What a table reads at the time, a multiple of it or a time made of parameters, is no input to be watched: it keeps
// its ends. Of a multiple its times are told. A shift, "t - lag", means a time that was measured earlier or later; a
// remainder, "t % period", one of the first period, of which a number tells whether the table knows all of it.
bool reads_at_times(const Model& model, const std::string& value, const std::map<std::string, OfTime>& of_time) {
  const auto made = of_time.find(value);
  if (made == of_time.end() || !made->second.reads_time) return false;
  const Node* const remainder = remainder_of(model, value);
  if (remainder == nullptr) return true;
  const Node* const divisor = node_of(model, remainder->inputs[1]);
  return divisor == nullptr || !std::holds_alternative<Constant>(divisor->operation);
}
bool is_multiple(const std::optional<TimeLine>& line) { return line && line->slope != 0 && std::abs(line->slope) != 1; }

void narrow(const Calls& calls, const Model& model, Watch watch, const Sources& sources,
            const std::map<std::string, OfTime>& of_time, WatchedInputs& watched, std::vector<OtherInput>& others) {
  const std::set<std::string> made = made_by(calls, model);
  Calls known;
  std::ranges::copy_if(calls, std::back_inserter(known),
                       [&](const GuardedCall* call) { return !reads(*call, made, model); });
  const std::vector<std::string> texts = argument_texts(known);
  const std::string& net = calls.front()->net;
  const std::string range = called_table(model, *calls.front()) == nullptr ? "training range of " : "range of ";
  const bool time_is_apart = watch == Watch::state_and_parameters && model.inputs.size() > 1;
  for (const GuardedCall* call : known) {
    std::size_t argument = 0;
    for (const Port& port : call->inputs) {
      for (std::size_t i = 0; i < port.features.size(); ++i, ++argument) {
        const Feature& feature = port.features[i];
        if (!is_bounded(feature)) continue;
        const auto source = sources.source_of(port.value, i);
        if (source && time_is_apart && is_time(model.inputs[source->port])) {
          note_time(watched.times, net, feature, called_table(model, *call));
          continue;
        }
        if (!source) {
          if (port.features.size() == 1 && is_remainder_within(model, port.value, feature)) continue;
          const Interpolate* const table = called_table(model, *call);
          if (table != nullptr && time_is_apart && reads_at_times(model, port.value, of_time)) {
            const std::optional<TimeLine>& line = of_time.at(port.value).line;
            if (is_multiple(line))
              note_time(watched.times, net + "(" + feature.name + ")", at_times(feature, *line), table, *line);
            continue;
          }
          note_other(others, range, "input " + texts[std::min(argument, texts.size() - 1)], net);
          continue;
        }
        Feature& read = watched.inputs[source->port].features[source->index];
        read.minimum = std::max(read.minimum, feature.minimum);
        read.maximum = std::min(read.maximum, feature.maximum);
      }
    }
  }
  if (known.size() < calls.size()) note_other(others, range, "input that holds what it returns", net);
}

// Names that no value of the model has.
class FreshNames {
 public:
  explicit FreshNames(const Model& model) {
    for (const Port& port : model.inputs) taken_.insert(port.name);
    for (const Node& node : model.nodes) taken_.insert(node.name);
  }
  std::string like(std::string name) {
    while (!taken_.insert(name).second) name += "'";
    return name;
  }

 private:
  std::set<std::string> taken_;
};

// Nodes that bring `value` into the port's range; `to` becomes what they make.
std::vector<Node> clamping(const Port& port, const std::string& value, const std::string& prefix, FreshNames& names,
                           std::string& to) {
  std::vector<Node> made;
  std::vector<std::string> pieces;
  for (std::size_t i = 0; i < port.features.size(); ++i) {
    const std::string piece = names.like(prefix + port.name + "." + std::to_string(i));
    const std::string clamped = names.like(piece + ".clamped");
    made.push_back({piece, Columns{{i}}, {value}});
    made.push_back({clamped, Clip{port.features[i].minimum, port.features[i].maximum}, {piece}});
    pieces.push_back(clamped);
  }
  to = names.like(prefix + port.name + ".clamped");
  made.push_back({to, Concatenate{}, std::move(pieces)});
  return made;
}

void clamp(Model& model, const GuardedCall& call, FreshNames& names) {
  const auto is_read = [&](const Node& node) {
    return std::ranges::find(call.inputs, node.name, &Port::value) != call.inputs.end();
  };
  // Its nodes stand together, those that only show what it reads before the others.
  auto begin = std::ranges::find_if(model.nodes, [&](const Node& node) { return is_of(node, call); });
  while (begin != model.nodes.end() && is_of(*begin, call) && is_read(*begin)) ++begin;
  std::vector<Node> first;
  std::map<std::string, std::string> clamped;  // by what it stands for
  for (const Port& port : call.inputs) {
    if (!is_bounded(port)) continue;
    std::vector<Node> made = clamping(port, port.value, call.name + ".", names, clamped[port.value]);
    std::ranges::move(made, std::back_inserter(first));
  }
  for (auto node = begin; node != model.nodes.end(); ++node) {
    for (std::string& input : node->inputs) {
      // Of another's values only this call's nodes read the clamped one; its own are read by everybody.
      const auto found = clamped.find(input);
      if (found == clamped.end()) continue;
      if (is_of(*node, call) || input.starts_with(call.name + ".")) input = found->second;
    }
  }
  for (Port& output : model.outputs) {
    const auto found = clamped.find(output.value);
    if (found != clamped.end() && output.value.starts_with(call.name + ".")) output.value = found->second;
  }
  model.nodes.insert(begin, std::make_move_iterator(first.begin()), std::make_move_iterator(first.end()));
}

}  // namespace

bool is_time(const Port& port) { return port.name == "t" || port.name == "time"; }

bool has_time_port(const Model& model) { return model.inputs.size() > 1 && std::ranges::any_of(model.inputs, is_time); }

const Interpolate* called_table(const Model& model, const GuardedCall& call) {
  const auto node = std::ranges::find(model.nodes, call.name + ".table", &Node::name);
  return node == model.nodes.end() ? nullptr : std::get_if<Interpolate>(&node->operation);
}

bool is_bounded(const Feature& feature) { return std::isfinite(feature.minimum) || std::isfinite(feature.maximum); }

bool is_bounded(const Port& port) {
  return std::ranges::any_of(port.features, [](const Feature& feature) { return is_bounded(feature); });
}

bool knows_range(const Model& net) {
  return !net.calls.empty() || std::ranges::any_of(net.inputs, [](const Port& port) { return is_bounded(port); });
}

WatchedInputs watched_inputs(const Model& model, Watch watch) {
  WatchedInputs watched{model.inputs, {}, {}};
  if (model.calls.empty()) return watched;
  model.validate();
  const Sources sources(model);
  std::vector<OtherInput> others;
  const std::map<std::string, OfTime> of_time = made_of_time(model, sources);
  for (const Calls& calls : by_net(model.calls)) narrow(calls, model, watch, sources, of_time, watched, others);
  for (const OtherInput& other : others) watched.other.push_back(other.text());
  return watched;
}

std::vector<bool> shown_otherwise(const Model& model) {
  model.validate();
  const Sources sources(model);
  const std::size_t count = model.inputs[0].features.size();
  std::vector<bool> shown(count);
  std::set<std::pair<std::string, std::size_t>> seen;
  // What value[index] is made of, all that its maker reads, however far back.
  std::vector<std::pair<std::string, std::size_t>> open;
  const auto add = [&](std::string value, std::size_t index) {
    sources.pass_on(value, index);
    if (seen.emplace(value, index).second) open.emplace_back(std::move(value), index);
  };
  for (const Port& port : model.outputs) {
    for (std::size_t i = 0; i < port.features.size(); ++i) {
      if (!sources.source_of(port.value, i)) add(port.value, i);
    }
  }
  while (!open.empty()) {
    const auto [value, index] = std::move(open.back());
    open.pop_back();
    if (value == model.inputs[0].name) shown[index] = true;
    const auto node = std::ranges::find(model.nodes, value, &Node::name);
    if (node == model.nodes.end()) continue;
    for (const std::string& input : node->inputs) {
      for (std::size_t i = 0; i < sources.width(input); ++i) add(input, i);
    }
  }
  return shown;
}

Model with_clamped_calls(const Model& model) {
  const StandardArithmetic arithmetic;
  model.validate();
  Model made = model;
  made.calls.clear();
  FreshNames names(model);
  // A net that is equations itself comes before the nets it calls, whose nodes are among its own: it is the last to be
  // clamped. A table keeps its ends anyway, and a clamped time is none whose knots are known.
  for (auto call = model.calls.rbegin(); call != model.calls.rend(); ++call) {
    if (called_table(model, *call) == nullptr) clamp(made, *call, names);
  }
  return made;
}

Model with_clamped_inputs(const Model& net) {
  Model made = with_clamped_calls(net);
  FreshNames names(made);
  std::vector<Node> first;
  for (Port& port : made.inputs) {
    if (!is_bounded(port)) continue;
    std::string clamped;
    std::vector<Node> clip = clamping(port, port.name, "", names, clamped);
    std::ranges::move(clip, std::back_inserter(first));
    for (Node& node : made.nodes) std::ranges::replace(node.inputs, port.name, clamped);
    for (Port& output : made.outputs) {
      if (output.value == port.name) output.value = clamped;
    }
    for (Feature& feature : port.features) {
      feature.minimum = -std::numeric_limits<double>::infinity();
      feature.maximum = std::numeric_limits<double>::infinity();
    }
  }
  made.nodes.insert(made.nodes.begin(), std::make_move_iterator(first.begin()), std::make_move_iterator(first.end()));
  return made;
}

}  // namespace lockstep::nn
