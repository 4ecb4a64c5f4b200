// Regression: a net trained on samples with known answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "lockstep/core/matrix_view.h"
#include "lockstep/core/precision.h"
#include "lockstep/core/run_control.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/kernels/graph/regression.h"
#include "lockstep/kernels/mlp/regression.h"
#include "lockstep/nn/model.h"
#include "lockstep/train/training.h"

namespace lockstep::nn {

// Somebody else's numbers; rows are samples.
struct RegressionData {
  MatrixView<const double> inputs;   // [sample][input]
  MatrixView<const double> targets;  // [sample][output]
  // [sample][output], or none: the standard deviation of each target, greater than 0 where there is one. Residuals
  // count in units of it, whatever their cost.
  MatrixView<const double> sigma = {};
};

enum class MissingTargets {
  refuse,
  skip,  // NaN: not in the loss, nor among the numbers that a mean is of
};

// What the cost's sum over samples and outputs is divided by.
enum class Reduction {
  // Samples times outputs: with squared residuals, the mean squared error. Where targets are missing, times the share
  // of them that all training (or validation) samples have: a mean over those that are there, and over a mini-batch a
  // sum whose expectation is that.
  mean,
  sum,  // nothing
};

struct FitOptions {
  ResidualCost cost;  // squared residuals; a delta is in the unit of the targets, or with sigma in units of that
  Reduction reduction = Reduction::mean;
  // Losses are computed of residuals in this unit, a power of two, and told in the data's: see residual_unit(). What
  // RegressionLoss sets as gradient is that of loss / loss_unit().
  double residual_unit = 1;
  // One iteration is one batch; its loss is that of the batch, before the step. L-BFGS takes all samples.
  std::vector<train::Phase> phases{train::Phase{}};
  std::size_t batch = 0;   // samples; 0: all of them
  std::uint64_t seed = 0;  // of shuffling: each epoch has an order of its own, a function of seed and epoch alone
  MissingTargets missing = MissingTargets::refuse;
  std::optional<RegressionData> validation;  // watched for the best parameters and for patience
  // In [0, 1), when there is no `validation`: this part of the samples, drawn by the seed, is kept for it.
  double validation_fraction = 0;
  std::int64_t validate_every = 1;  // iterations
  Precision precision = Precision::f32;
  int threads = 1;                      // 0: every thread this process may use; the bits do not depend on it
  std::optional<CpuTarget> cpu_target;  // nor on this

  // Throws Error (invalid_argument) naming the field.
  void validate() const;
};

// The unit that suits a net by the scaling of its outputs, which says how large targets are: 1 where it has none, or
// one near 1. With it the course of a training does not depend on the targets' unit. nn::fit() takes it where
// options have 1 and data no sigma, in units of which residuals are of about 1 anyway.
double residual_unit(const Model& model);

// Whether a net scales its outputs, as one of a training with normalised targets does.
bool scales_outputs(const Model& model);

// The loss of a regression as train::Training wants it, for callers that run the training themselves: to write
// checkpoints, or losses of their own beside it. T is float or double.
template <class T>
class RegressionLoss {
 public:
  // Copies what it needs of the data. Throws Error (invalid_argument) naming the sample when a number is not finite or
  // does not fit into T, or when shapes are not the net's.
  RegressionLoss(const Mlp& mlp, const RegressionData& data, const FitOptions& options);
  // Of a net that is no plain stack, of one input and one output port; a stack's are quicker as an Mlp.
  RegressionLoss(const graph::Graph& graph, const RegressionData& data, const FitOptions& options);

  std::size_t samples() const { return training_.size(); }  // without those kept for validation
  std::size_t validation_samples() const { return validation_.samples; }
  std::int64_t iterations_per_epoch() const;
  // For Training::measure_in().
  double loss_unit() const { return loss_unit_; }

  // Of the batch that belongs to `place` (its total: batches continue from phase to phase).
  double operator()(const train::Place& place, std::span<const T> parameters, std::span<T> gradient);
  // The calls above will come from this training, which stays where it is: threads can then be told of each step.
  void follow(const train::Training<T>& training) { followed_ = &training; }
  // Of all training samples.
  double loss(std::span<const T> parameters);
  double validation_loss(std::span<const T> parameters);

 private:
  using Plan = std::variant<RegressionPlan<T>, GraphRegressionPlan<T>>;
  RegressionLoss(Plan plan, const RegressionData& data, const FitOptions& options);
  // What the data are once they have been looked at: rows of numbers of type T.
  struct Rounded {
    AlignedBuffer<T> inputs, targets;  // [sample][feature]
    AlignedBuffer<T> factors;          // of residuals, as targets; empty: 1
    std::size_t samples = 0;
  };
  Rounded rounded(const char* name, const RegressionData& data) const;
  TiledSamples<T> make_samples(std::size_t capacity, const Rounded& of) const;
  void assign(TiledSamples<T>& tiles, const Rounded& from, std::span<const std::uint32_t> rows) const;
  // The share of targets that the samples have.
  double share_of_targets(const Rounded& of, std::span<const std::uint32_t> rows) const;
  double loss(const TiledSamples<T>& samples, std::span<const T> parameters);
  void fill_batch(std::int64_t iteration);
  double scale(const TiledSamples<T>& samples) const;

  FitOptions options_;
  double loss_unit_ = 1;
  const train::Training<T>* followed_ = nullptr;
  Plan plan_;
  std::size_t input_count_ = 0, output_count_ = 0;
  Rounded data_;                             // all samples
  double share_ = 1, validation_share_ = 1;  // of targets that are there
  std::vector<std::uint32_t> training_;      // rows for training
  TiledSamples<T> all_, batch_, validation_;
  std::vector<std::uint32_t> order_;  // of the epoch in order_epoch_
  std::int64_t order_epoch_ = -1;
};

struct FitReport {
  bool cancelled = false;
  std::int64_t iterations = 0;
  double loss = 0;                        // of the parameters in the model, over all training samples
  std::optional<double> validation_loss;  // the same over the validation samples
};

struct FitControl {
  const CancelToken* cancel = nullptr;  // looked at between iterations
  std::function<void(const train::IterationReport&)> progress;
};

// Trains the model's weights in place: layers of the same numbers as one, and no bias of a layer without one, as
// SharedWeights has it. It ends with the best parameters of the last phase by the watched loss:
// validation's, or the training loss of full batches. With mini-batches and no validation it ends with the last
// parameters, since a batch's loss does not tell. Throws Error: (model) for an invalid net, (unsupported) for one
// without a derivative, (invalid_argument) for one of several ports, for options and data, and where a loss or gradient
// is not finite, naming the iteration; the model then has the best parameters so far.
FitReport fit(Model& model, const RegressionData& data, const FitOptions& options = {}, const FitControl& control = {});

// Replaces the numbers of the dense nodes, in the order of graph::gather_weights(to_graph(model)); of a plain stack, of
// gather_parameters(to_mlp(model)). Throws Error (invalid_argument) when there are not as many.
template <class T>
void set_parameters(Model& model, std::span<const T> parameters);

extern template class RegressionLoss<float>;
extern template class RegressionLoss<double>;
extern template void set_parameters<float>(Model&, std::span<const float>);
extern template void set_parameters<double>(Model&, std::span<const double>);

}  // namespace lockstep::nn
