// A net whose weights change between calls, evaluated with a record of what its transpose needs: reverse mode for
// training. Forward bits are those of Plan.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "lockstep/kernels/cpu_target.h"
#include "lockstep/kernels/mlp/mlp.h"
#include "lockstep/kernels/tile.h"

namespace lockstep {

namespace mlp {
template <class T>
struct ReverseNet;
}

// What one tile's evaluation left behind, for its weight gradients.
template <class T>
struct RecordedTile {
  const T* activations;  // of evaluate_tile
  const T* cotangents;   // of reverse_tile
  int lanes;             // as in the tile: 1 .. kTileLanes
  const T* later = nullptr;  // activations of a later call, a hint as reverse_tile's
};

// The same of one sample.
template <class T>
struct RecordedSample {
  const T* activations;
  const T* cotangents;
};

// What reverse_tile does with in_bar.
enum class InBar { set, add };

// One iteration: set_parameters; then for each tile evaluate_tile with a record, a loss that gives out_bar,
// reverse_tile; then accumulate_tiles over a chunk of tiles. Shapes, activations and scaling come from an Mlp and stay.
//
// The *_numbers() count elements of T; memory given is 64-byte aligned and used by one call at a time. Const members
// may be called by many threads at once, set_parameters by one alone. Nothing but compile allocates. T is float or
// double.
//
// Lanes of a tile past `lanes` are evaluated on zeros. A lane before it that must not count (its trajectory has ended)
// needs finite inputs, best zeros, and cotangents of zero.
//
// Bits are the same on every instruction set. The tile's x_bar[k] is w[0][k] z_bar[0] + 0, then fma over the outputs
// ascending. A weight's gradient over the tiles of one accumulate_tiles call has 16 slots in float32, 8 in float64;
// lane i adds fma(z_bar, x, slot) to slot i modulo their number, tiles in the order given and lanes ascending; slots
// are then added in halves (i to i + half), and the sum to the gradient. The call's tiles are thus the chunk to keep
// fixed.
template <class T>
class TrainablePlan {
 public:
  // Starts with the mlp's own weights. Throws Error as Plan::compile.
  static TrainablePlan compile(const Mlp& mlp, CpuTarget target = best_cpu_target());

  TrainablePlan(TrainablePlan&&) noexcept;
  TrainablePlan& operator=(TrainablePlan&&) noexcept;
  ~TrainablePlan();

  std::size_t inputs() const;
  std::size_t outputs() const;
  std::size_t parameter_count() const;
  CpuTarget cpu_target() const;

  // In the order of gather_parameters. Throws Error (invalid_argument) on another size. Where only one path is used,
  // naming it saves time: `tiles` is enough for tiles of 32 lanes and for tiles with a record, `samples` for the sample
  // path; the other then has the weights of before.
  enum class Paths { both, tiles, samples };
  void set_parameters(std::span<const T> parameters, Paths paths = Paths::both);

  // Scratch of evaluate_tile, reverse_tile and their sample forms.
  std::size_t workspace_numbers() const;

  // The tile path: vectorised over lanes.
  std::size_t tile_activation_numbers() const;
  std::size_t tile_cotangent_numbers() const;
  // tile.out as Plan's evaluate_tile, bit for bit. `activations` is written for reverse_tile and accumulate_tiles, or
  // null: nothing is recorded.
  void evaluate_tile(const TileView<T>& tile, T* activations, T* workspace) const;
  // out_bar [output][kTileLanes] is dL/d out; in_bar [input][kTileLanes] becomes dL/d in, or has it added (null: not
  // wanted); both only in the first `lanes` lanes. out_bar may not overlap in_bar. `cotangents` is written for
  // accumulate_tiles. `next_activations`, if not null, are those of the next call: a hint to bring them closer, without
  // effect on results.
  void reverse_tile(const T* activations, const T* out_bar, T* in_bar, T* cotangents, int lanes, T* workspace,
                    const T* next_activations = nullptr, InBar in_bar_is = InBar::set) const;
  // gradient [parameter] += dL/d parameters of the tiles.
  void accumulate_tiles(std::span<const RecordedTile<T>> tiles, T* gradient) const;

  // The latency path: one sample, vectorised over neurons. in, out and their cotangents are adjacent components.
  std::size_t sample_activation_numbers() const;
  std::size_t sample_cotangent_numbers() const;
  // out as the tile path's, bit for bit.
  void evaluate_sample(const T* in, T* out, T* activations, T* workspace) const;
  void reverse_sample(const T* activations, const T* out_bar, T* in_bar, T* cotangents, T* workspace) const;
  // sum [sample_gradient_numbers()], zero at first, in an order of its own: adds fma(z_bar, x, sum) sample by sample,
  // so that the bits do not depend on how many samples a call holds.
  std::size_t sample_gradient_numbers() const;
  void accumulate_samples(std::span<const RecordedSample<T>> samples, T* sum) const;
  // gradient [parameter] += sum.
  void add_sample_gradient(const T* sum, T* gradient) const;

 private:
  explicit TrainablePlan(std::unique_ptr<mlp::ReverseNet<T>> net);
  std::unique_ptr<mlp::ReverseNet<T>> net_;
};

extern template class TrainablePlan<float>;
extern template class TrainablePlan<double>;

}  // namespace lockstep
