// What lowering decides of a graph's values before it makes steps: which are needed and until when, which activations
// their layers make themselves, which layers are one.
#pragma once

#include <cstddef>
#include <map>
#include <variant>
#include <vector>

#include "lockstep/kernels/graph/graph.h"

namespace lockstep::graph {

class Analysis {
 public:
  static constexpr std::size_t kNone = ~std::size_t(0);

  explicit Analysis(const Graph& graph);

  std::size_t inputs() const { return graph_.inputs.size(); }
  const Node& node(std::size_t value) const { return graph_.nodes[value - inputs()]; }
  std::size_t time(std::size_t value) const { return value - inputs() + 1; }  // of the step that makes it
  template <class Op>
  const Op* as(std::size_t value) const {
    return value < inputs() ? nullptr : std::get_if<Op>(&node(value).operation);
  }
  bool needed(std::size_t value) const { return readers[value] > 0; }
  // The value whose rows a layer writes.
  std::size_t made_by(std::size_t layer) const { return fused[layer] == kNone ? layer : fused[layer]; }
  Activation activation_of(std::size_t layer) const;

  std::vector<std::size_t> widths;
  std::vector<std::size_t> readers;  // how many, output ports included; 0 for what nobody needs
  std::vector<std::size_t> last;     // the time of the last step that needs it, through other names of its rows too
  std::vector<std::size_t> fused;    // of a layer: the activation's value that it makes instead of its own
  std::vector<bool> constant_only;   // a constant that is read as numbers, never as rows
  std::map<std::size_t, std::vector<std::size_t>> groups;  // layers merged, by the first of them
  std::size_t fused_activations = 0, merged_layers = 0, merged_into = 0, dropped_nodes = 0;

 private:
  void find_readers();
  void fuse_activations();
  void find_lifetimes();
  void merge_layers();

  const Graph& graph_;
};

}  // namespace lockstep::graph
