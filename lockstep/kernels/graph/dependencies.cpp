// Which features of a net's output depend on which of its inputs.
#include <cstdint>
#include <type_traits>
#include <variant>

#include "lockstep/kernels/graph/derivative.h"

namespace lockstep::graph {
namespace {

// A set of input features.
using Set = std::vector<std::uint64_t>;

void unite(Set& set, const Set& other) {
  for (std::size_t i = 0; i < set.size(); ++i) set[i] |= other[i];
}

class Dependencies {
 public:
  Dependencies(const Graph& graph, CountedWeights counted)
      : graph_(graph), counted_(counted), widths_(graph.widths()), sets_(widths_.size()) {
    std::size_t features = 0;
    for (const Port& port : graph.inputs) features += port.width;
    words_ = (features + 63) / 64;
    features = 0;
    for (std::size_t value = 0; value < widths_.size(); ++value) {
      sets_[value].assign(widths_[value], Set(words_));
      if (value >= graph.inputs.size()) {
        go_through(value);
        continue;
      }
      for (Set& set : sets_[value]) {
        set[features / 64] |= std::uint64_t{1} << (features % 64);
        ++features;
      }
    }
  }

  const std::vector<Set>& of(std::size_t value) const { return sets_[value]; }

 private:
  void go_through(std::size_t value) {
    const Node& node = graph_.nodes[value - graph_.inputs.size()];
    std::vector<Set>& made = sets_[value];
    std::visit(
        [&]<class Op>(const Op& operation) {
          if constexpr (std::is_same_v<Op, Dense>) {
            const std::vector<Set>& read = sets_[node.inputs[0]];
            if (counted_ == CountedWeights::all) {
              unite_all(made, read);
              return;
            }
            for (std::size_t j = 0; j < operation.outputs; ++j) {
              for (std::size_t k = 0; k < operation.inputs; ++k) {
                if (operation.weights[j * operation.inputs + k] != 0) unite(made[j], read[k]);
              }
            }
          } else if constexpr (std::is_same_v<Op, Concatenate>) {
            std::size_t at = 0;
            for (const std::size_t input : node.inputs) {
              for (const Set& set : sets_[input]) made[at++] = set;
            }
          } else if constexpr (std::is_same_v<Op, Columns>) {
            for (std::size_t i = 0; i < made.size(); ++i) made[i] = sets_[node.inputs[0]][operation.indices[i]];
          } else if constexpr (std::is_same_v<Op, Softmax> || std::is_same_v<Op, Reduce> ||
                               std::is_same_v<Op, LayerNormalise> || std::is_same_v<Op, Interpolate>) {
            unite_all(made, sets_[node.inputs[0]]);
          } else {  // element by element
            for (const std::size_t input : node.inputs) {
              for (std::size_t i = 0; i < made.size(); ++i) unite(made[i], sets_[input][widths_[input] == 1 ? 0 : i]);
            }
          }
        },
        node.operation);
  }

  void unite_all(std::vector<Set>& made, const std::vector<Set>& read) const {
    Set all(words_);
    for (const Set& set : read) unite(all, set);
    for (Set& set : made) set = all;
  }

  const Graph& graph_;
  CountedWeights counted_;
  std::vector<std::size_t> widths_;
  std::size_t words_ = 0;
  std::vector<std::vector<Set>> sets_;  // [value][feature]
};

}  // namespace

std::vector<std::vector<std::size_t>> dependencies(const Graph& graph, CountedWeights counted) {
  const Dependencies found(graph, counted);
  std::vector<std::vector<std::size_t>> result;
  for (const Set& set : found.of(graph.outputs[0].value)) {
    std::vector<std::size_t>& row = result.emplace_back();
    for (std::size_t feature = 0; feature < 64 * set.size(); ++feature) {
      if ((set[feature / 64] >> (feature % 64)) & 1) row.push_back(feature);
    }
  }
  return result;
}

}  // namespace lockstep::graph
