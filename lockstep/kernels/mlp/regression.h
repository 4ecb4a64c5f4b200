// Loss and gradient of a net over a batch of samples with known answers: the inner loop of regression.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/matrix_view.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/kernels/mlp/mlp.h"
#include "lockstep/kernels/step_ahead.h"
#include "lockstep/kernels/tile.h"

namespace lockstep {

// What a residual r = output - target costs.
enum class Residual {
  squared,   // r^2
  absolute,  // |r|, with derivative 0 at 0
  huber,     // r^2 / 2 where |r| <= delta, else delta (|r| - delta / 2): Huber, Ann. Math. Stat. 35 (1964) 73
};
std::string_view to_string(Residual residual);

struct ResidualCost {
  Residual residual = Residual::squared;
  double delta = 1;                  // of huber, > 0
  std::vector<double> weights = {};  // [output], not negative; empty: all 1
  std::vector<double> deltas = {};   // [output], each > 0, instead of `delta`; empty: that for all

  double delta_of(std::size_t output) const { return deltas.empty() ? delta : deltas[output]; }

  // Throws Error (invalid_argument).
  void validate(std::size_t outputs) const;
};

// Samples laid out for the kernels: [tile][component][kTileLanes], lanes past the last sample zero. Inputs are already
// scaled as the net scales them. Made by RegressionPlan.
template <class T>
struct TiledSamples {
  AlignedBuffer<T> inputs;
  AlignedBuffer<T> targets;
  // What each residual is multiplied by before it costs anything: 1 / sigma, or 0 where there is no target. Empty: 1.
  AlignedBuffer<T> factors = {};
  std::size_t samples = 0;
};
enum class ResidualFactors { none, given };

// Shapes, activations and scaling come from an Mlp and stay, weights change between calls. T is float or double.
//
// Bits are the same on every instruction set and for any number of threads: tiles of 32 samples are grouped into chunks
// of chunk_tiles(), each summed as TrainablePlan sums tiles, chunks are added in order into at most 64 groups of
// neighbours, and groups in halves (i and i + half). The loss is the sum over outputs in T, then over tiles for each
// lane and in halves over lanes in float64.
template <class T>
class RegressionPlan {
 public:
  // Throws Error as Plan::compile, and (invalid_argument) for the cost.
  static RegressionPlan compile(const Mlp& mlp, const ResidualCost& cost = {}, CpuTarget target = best_cpu_target());

  RegressionPlan(RegressionPlan&&) noexcept;
  RegressionPlan& operator=(RegressionPlan&&) noexcept;
  ~RegressionPlan();

  std::size_t inputs() const;
  std::size_t outputs() const;
  std::size_t parameter_count() const;
  std::size_t chunk_tiles() const;

  // Room for that many samples.
  TiledSamples<T> make_samples(std::size_t capacity, ResidualFactors factors = ResidualFactors::none) const;
  // inputs [sample][input], targets [sample][output], as the net's users see them. `rows` picks and orders samples (all
  // when empty); there must be room for them. factors [sample][output], finite, where the tiles have room for them.
  // Does not allocate.
  void assign(TiledSamples<T>& tiles, MatrixView<const T> inputs, MatrixView<const T> targets,
              std::span<const std::uint32_t> rows = {}, MatrixView<const T> factors = {}) const;

  // In the order of gather_parameters. Throws Error (invalid_argument) on another size.
  void set_parameters(std::span<const T> parameters);

  // scale times the sum of weight cost(factor (output - target)) over samples and outputs.
  double loss(const TiledSamples<T>& tiles, double scale, int threads = 1);
  // The same, and its derivative in gradient [parameter]. Allocates for the first batch of a size only.
  double loss_and_gradient(const TiledSamples<T>& tiles, double scale, std::span<T> gradient, int threads = 1);
  // set_parameters() and this in one. In a row of steps with a small net on several threads, each thread takes the
  // steps for itself, with parameters and a stepper of its own, which costs less than waiting for one that does it for
  // all.
  double loss_and_gradient(std::span<const T> parameters, const TiledSamples<T>& tiles, double scale,
                           std::span<T> gradient, int threads, const StepAhead<T>& ahead);

 private:
  struct State;
  explicit RegressionPlan(std::unique_ptr<State> state);
  double run(const TiledSamples<T>& tiles, double scale, T* gradient, int threads);
  std::unique_ptr<State> state_;
};

extern template class RegressionPlan<float>;
extern template class RegressionPlan<double>;

}  // namespace lockstep
