// Loss and gradient of a net that is no plain stack over a batch of samples: RegressionPlan's work by graphs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "lockstep/core/matrix_view.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/kernels/graph/graph.h"
#include "lockstep/kernels/mlp/regression.h"

namespace lockstep {

// As RegressionPlan, of a graph of one input and one output port; its parameters are graph::gather_weights(). Bits are
// the same on every instruction set and for any number of threads: chunks of 8 tiles are added in order into at most 64
// groups of neighbours, and groups in halves; the loss in float64, by tile, output and lane. They are not the bits that
// RegressionPlan gives a plain stack.
template <class T>
class GraphRegressionPlan {
 public:
  // Throws Error as TrainableGraphPlan::compile, (invalid_argument) for the cost, other ports, and where there is
  // nothing to train.
  static GraphRegressionPlan compile(const graph::Graph& graph, const ResidualCost& cost = {},
                                     CpuTarget target = best_cpu_target());
  GraphRegressionPlan(GraphRegressionPlan&&) noexcept;
  GraphRegressionPlan& operator=(GraphRegressionPlan&&) noexcept;
  ~GraphRegressionPlan();

  std::size_t inputs() const;
  std::size_t outputs() const;
  std::size_t parameter_count() const;

  // Room for that many samples; inputs [sample][input], targets [sample][output] put into it. `rows` picks and orders
  // samples (all when empty); factors [sample][output] where the tiles have room for them.
  TiledSamples<T> make_samples(std::size_t capacity, ResidualFactors factors = ResidualFactors::none) const;
  void assign(TiledSamples<T>& tiles, MatrixView<const T> inputs, MatrixView<const T> targets,
              std::span<const std::uint32_t> rows = {}, MatrixView<const T> factors = {}) const;

  void set_parameters(std::span<const T> parameters);

  // scale times the sum of weight cost(factor (output - target)) over samples and outputs; its derivative in gradient
  // [parameter].
  double loss(const TiledSamples<T>& tiles, double scale, int threads = 1);
  double loss_and_gradient(const TiledSamples<T>& tiles, double scale, std::span<T> gradient, int threads = 1);

 private:
  struct State;
  explicit GraphRegressionPlan(std::unique_ptr<State> state);
  double run(const TiledSamples<T>& tiles, double scale, T* gradient, int threads);
  std::unique_ptr<State> state_;
};

extern template class GraphRegressionPlan<float>;
extern template class GraphRegressionPlan<double>;

}  // namespace lockstep
