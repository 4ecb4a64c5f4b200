// A graph whose weights change between calls, with the transpose of its derivative: reverse mode for training nets that
// are no plain stacks. Forward bits are those of GraphPlan.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "lockstep/kernels/cpu_target.h"
#include "lockstep/kernels/graph/derivative.h"
#include "lockstep/kernels/graph/graph.h"
#include "lockstep/kernels/graph/weights.h"
#include "lockstep/kernels/tile.h"

namespace lockstep {

// One iteration: set_weights; then for each tile reverse_tile; then accumulate over some of them. Or, where a tile is
// taken back right after its evaluation: forward, the cotangents of what that made, back; then accumulate_values.
// Const members may be called by many threads at once, set_weights by one alone. All memory is 64-byte aligned. T is
// float or double.
//
// reverse_tile runs the net again: nothing of evaluate_tile is recorded. Bits are the same on every instruction set; a
// weight's gradient over the tiles of one accumulate call is summed as TrainablePlan sums those of its layer, at most
// 64 tiles at a time.
template <class T>
class TrainableGraphPlan {
 public:
  // What is made on the way back.
  enum class Gradients { of_weights, of_weights_and_inputs };

  // The weights are those at `places`, which gather_weights() takes. Throws Error as GraphPlan::compile, (unsupported)
  // where there is no derivative.
  static TrainableGraphPlan compile(graph::Graph graph, graph::WeightPlaces places,
                                    CpuTarget target = best_cpu_target(),
                                    Gradients gradients = Gradients::of_weights_and_inputs);
  // Of a graph's tangent, whose layers have that graph's weights, which are those at its `places`. What is made on the
  // way back is of the ports given, not of directions.
  static TrainableGraphPlan compile_tangent(const graph::Tangent& tangent, const graph::WeightPlaces& places,
                                            CpuTarget target = best_cpu_target());
  TrainableGraphPlan(TrainableGraphPlan&&) noexcept;
  TrainableGraphPlan& operator=(TrainableGraphPlan&&) noexcept;
  ~TrainableGraphPlan();

  std::size_t inputs() const;   // features of all input ports
  std::size_t outputs() const;  // of the output port, of which there is one
  std::size_t weights() const;
  std::string description() const;

  // Where evaluate_tile is not used, naming the other path saves time.
  enum class Paths { both, reverse };
  void set_weights(std::span<const T> weights, Paths paths = Paths::both);

  // tile.in [input][lane]; as GraphPlan::evaluate_tile.
  void evaluate_tile(const TileView<T>& tile, std::byte* workspace) const;
  std::size_t workspace_bytes() const;

  // `read` is the inputs [input][lane] and, after them, the outputs' cotangents [output][lane]: zeros in those of the
  // first `lanes` lanes that do not count; the others hold garbage, as in TileView. Returns the inputs' cotangents
  // [input][lane], in the workspace; `cotangents`, [cotangent_numbers()], is written for accumulate(). Of a plan with
  // Gradients::of_weights_and_inputs.
  const T* reverse_tile(const T* read, T* cotangents, std::byte* workspace, int lanes = kTileLanes) const;
  std::size_t cotangent_numbers() const;
  std::size_t reverse_workspace_bytes() const;

  // gradient[weight] += that of these tiles: what reverse_tile left of each.
  struct ReversedTile {
    const T* cotangents;
    int lanes = kTileLanes;
  };
  void accumulate(std::span<const ReversedTile> tiles, T* gradient) const;

  // The same in place: `values` [value_numbers()] holds all that a tile's evaluation makes, forth and back. forward
  // takes inputs [input][lane] of all 32 lanes and returns the outputs [output][lane]; before back, their cotangents
  // are to stand at out_bar(), zeros in lanes that do not count.
  std::size_t value_numbers() const;
  std::size_t scratch_bytes() const;
  const T* forward(const T* inputs, T* values, std::byte* scratch) const;
  T* out_bar(T* values) const;
  void back(T* values, std::byte* scratch) const;
  // gradient[weight] += that of these tiles: what back left of each.
  void accumulate_values(std::span<const T* const> values, T* gradient) const;

 private:
  struct State;
  explicit TrainableGraphPlan(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

extern template class TrainableGraphPlan<float>;
extern template class TrainableGraphPlan<double>;

}  // namespace lockstep
