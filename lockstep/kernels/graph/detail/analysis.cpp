#include "lockstep/kernels/graph/detail/analysis.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace lockstep::graph {

Analysis::Analysis(const Graph& graph) : widths(graph.widths()), graph_(graph) {
  find_readers();
  fuse_activations();
  find_lifetimes();
  merge_layers();
}

Activation Analysis::activation_of(std::size_t layer) const {
  return fused[layer] == kNone ? Activation{} : as<Activate>(fused[layer])->activation;
}

void Analysis::find_readers() {
  readers.assign(widths.size(), 0);
  for (const Port& port : graph_.outputs) ++readers[port.value];
  for (std::size_t value = widths.size(); value-- > inputs();) {
    if (!needed(value)) {
      ++dropped_nodes;
      continue;
    }
    for (const std::size_t input : node(value).inputs) ++readers[input];
  }
}

void Analysis::fuse_activations() {
  fused.assign(widths.size(), kNone);
  for (std::size_t value = inputs(); value < widths.size(); ++value) {
    if (!needed(value) || as<Activate>(value) == nullptr) continue;
    const std::size_t layer = node(value).inputs[0];
    if (as<Dense>(layer) == nullptr || readers[layer] != 1) continue;
    fused[layer] = value;
    ++fused_activations;
  }
}

void Analysis::find_lifetimes() {
  last.assign(widths.size(), 0);
  constant_only.assign(widths.size(), true);
  for (const Port& port : graph_.outputs) {
    last[port.value] = graph_.nodes.size() + 1;
    constant_only[port.value] = false;
  }
  for (std::size_t value = widths.size(); value-- > inputs();) {
    if (!needed(value)) continue;
    const Node& reader = node(value);
    const bool other_name = as<Columns>(value) != nullptr || as<Concatenate>(value) != nullptr;
    const std::size_t until = other_name ? std::max(time(value), last[value]) : time(value);
    for (const std::size_t input : reader.inputs) last[input] = std::max(last[input], until);
    const bool two_constants = reader.inputs.size() == 2 && as<Constant>(reader.inputs[0]) != nullptr &&
                               as<Constant>(reader.inputs[1]) != nullptr;
    if (as<Binary>(value) == nullptr || two_constants) {
      for (const std::size_t input : reader.inputs) constant_only[input] = false;
    }
  }
}

// Layers that read one value and end in one activation are one layer with all their outputs.
void Analysis::merge_layers() {
  std::map<std::tuple<std::size_t, ActivationKind, double>, std::vector<std::size_t>> alike;
  for (std::size_t value = inputs(); value < widths.size(); ++value) {
    if (!needed(value) || as<Dense>(value) == nullptr) continue;
    const Activation activation = activation_of(value);
    alike[{node(value).inputs[0], activation.kind, activation.alpha}].push_back(value);
  }
  for (auto& [key, layers] : alike) {
    if (layers.size() > 1) merged_layers += layers.size();
    merged_into += layers.size() > 1;
    groups[layers.front()] = std::move(layers);
  }
}

}  // namespace lockstep::graph
