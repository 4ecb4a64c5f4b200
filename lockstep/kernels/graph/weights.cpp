#include "lockstep/kernels/graph/weights.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "lockstep/core/error.h"

namespace lockstep::graph {
namespace {

std::size_t count_of(const Dense& dense) { return dense.weights.size() + dense.bias.size(); }

std::vector<double> numbers_of(const Dense& dense) {
  std::vector<double> numbers = dense.weights;
  numbers.insert(numbers.end(), dense.bias.begin(), dense.bias.end());
  return numbers;
}

[[noreturn]] void refuse_weights(const char* field, std::string found, std::string expected, std::string remedy = {}) {
  throw Error(ErrorKind::invalid_argument, {field, std::move(found), std::move(expected), std::move(remedy)});
}

}  // namespace

WeightPlaces own_places(const Graph& graph) {
  WeightPlaces places;
  std::size_t place = 0;
  for (const Node& node : graph.nodes) {
    const auto* dense = std::get_if<Dense>(&node.operation);
    if (!dense) continue;
    places.push_back(place);
    place += count_of(*dense);
  }
  return places;
}

std::vector<double> gather_weights(const Graph& graph, std::span<const std::size_t> places) {
  std::vector<const Node*> nodes;
  for (const Node& node : graph.nodes) {
    if (std::holds_alternative<Dense>(node.operation)) nodes.push_back(&node);
  }
  if (nodes.size() != places.size()) {
    refuse_weights("weight_places", std::to_string(places.size()) + " places",
                   std::to_string(nodes.size()) + ", one for each dense node");
  }
  std::map<std::size_t, std::vector<double>> at;  // by where they begin
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] == kKept) continue;
    std::vector<double> numbers = numbers_of(std::get<Dense>(nodes[i]->operation));
    const auto [known, fresh] = at.try_emplace(places[i], numbers);
    if (!fresh && known->second != numbers) {
      refuse_weights("weight_places", "other numbers in " + nodes[i]->name + " than in the node it shares them with",
                     "the same ones");
    }
  }
  std::vector<double> all;
  for (const auto& [place, numbers] : at) {
    if (place != all.size()) {
      refuse_weights("weight_places",
                     "a place at " + std::to_string(place) + " after " + std::to_string(all.size()) + " numbers",
                     "places without a gap, which overlap as a whole or not at all");
    }
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  return all;
}

void scatter_weights(std::span<const double> weights, std::span<const std::size_t> places, Graph& graph) {
  std::size_t expected = 0, next = 0;
  for (const Node& node : graph.nodes) {
    const auto* dense = std::get_if<Dense>(&node.operation);
    if (dense && places[next++] != kKept) expected = std::max(expected, places[next - 1] + count_of(*dense));
  }
  if (weights.size() != expected) {
    refuse_weights("weights", std::to_string(weights.size()) + " numbers", std::to_string(expected),
                   "give those of every dense node");
  }
  next = 0;
  for (Node& node : graph.nodes) {
    auto* dense = std::get_if<Dense>(&node.operation);
    if (!dense) continue;
    const std::size_t place = places[next++];
    if (place == kKept) continue;
    std::span<const double> from = weights.subspan(place);
    for (std::vector<double>* part : {&dense->weights, &dense->bias}) {
      std::copy_n(from.begin(), part->size(), part->begin());
      from = from.subspan(part->size());
    }
  }
}

std::vector<double> gather_weights(const Graph& graph) { return gather_weights(graph, own_places(graph)); }

void scatter_weights(std::span<const double> weights, Graph& graph) {
  scatter_weights(weights, own_places(graph), graph);
}

}  // namespace lockstep::graph
