#include "lockstep/nn/shared_weights.h"

#include <optional>
#include <variant>

namespace lockstep::nn {
namespace {

enum class Turned { no, yes };

bool all_one_number(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [&](double x) { return x == numbers.front(); });
}

// Where a number of a layer's weights is in those of one that has the transpose.
std::size_t turned(const Dense& layer, std::size_t at) { return at % layer.inputs * layer.outputs + at / layer.inputs; }

std::optional<Turned> same_weights(const Dense& a, const Dense& b) {
  if (a.inputs == b.inputs && a.outputs == b.outputs) {
    if (a.weights == b.weights && (!all_one_number(a.weights) || (a.bias == b.bias && !all_one_number(a.bias)))) {
      return Turned::no;
    }
  }
  if (a.inputs != b.outputs || a.outputs != b.inputs || all_one_number(a.weights)) return std::nullopt;
  for (std::size_t i = 0; i < a.weights.size(); ++i) {
    if (a.weights[i] != b.weights[turned(a, i)]) return std::nullopt;
  }
  return Turned::yes;
}

}  // namespace

void SharedWeights::append(const Model& model) {
  struct Known {
    const Dense* layer;
    std::size_t place;  // of its numbers among all
    std::size_t group;  // in `groups`
  };
  std::vector<Known> known;
  std::vector<std::vector<std::string>> groups;
  for (const Node& node : model.nodes) {
    const auto* const layer = std::get_if<Dense>(&node.operation);
    if (layer == nullptr) continue;
    const std::size_t place = of_.size(), weights = layer->weights.size();
    std::optional<Turned> same;
    const auto as = std::find_if(known.begin(), known.end(), [&](const Known& other) {
      same = same_weights(*layer, *other.layer);
      return same.has_value();
    });
    const bool is_new = as == known.end();
    const Known before = is_new ? Known{layer, place, groups.size()} : *as;
    known.push_back({layer, place, before.group});
    if (is_new) groups.emplace_back();
    groups[before.group].push_back(node.name);
    for (std::size_t i = 0; i < weights; ++i) {
      of_.push_back(is_new ? trained_++ : of_[before.place + (same == Turned::yes ? turned(*layer, i) : i)]);
    }
    const bool shares_bias = !is_new && same == Turned::no && layer->bias == before.layer->bias &&
                             lacks_bias(*layer) == lacks_bias(*before.layer);
    for (std::size_t j = 0; j < layer->outputs; ++j) {
      of_.push_back(lacks_bias(*layer) ? kNone : shares_bias ? of_[before.place + weights + j] : trained_++);
    }
  }
  for (const std::vector<std::string>& names : groups) {
    if (names.size() < 2) continue;
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    groups_.push_back(std::move(text));
  }
}

void SharedWeights::append(std::size_t numbers) {
  for (std::size_t i = 0; i < numbers; ++i) of_.push_back(trained_++);
}

}  // namespace lockstep::nn
