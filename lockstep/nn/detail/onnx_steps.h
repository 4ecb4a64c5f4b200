// Builds steps, and recognises activations that exporters spell out in primitives.
#pragma once

#include <optional>
#include <utility>

#include "lockstep/nn/detail/onnx_graph.h"

namespace lockstep::nn::detail {

// Of one value; as kernels/graph has it.
inline constexpr std::size_t kMostFeatures = std::size_t{1} << 20;

// Is `found` the number that spelled-out functions and attributes have for `expected` in float32? Rounded to it, or
// made of two rounded ones (1 / sqrt(2)), it is off by at most one spacing; other constants are other functions.
bool is_float32_of(double found, double expected);

class StepBuilder {
 public:
  explicit StepBuilder(StepGraph& graph) : graph_(graph) {}

  // Finds out the width where it follows from the steps that are read; throws Error (model) where theirs do not fit.
  std::size_t append(Step step);
  std::size_t activation(std::size_t x, Activation activation, const std::string& where);
  std::size_t piece(std::size_t x, StepKind kind, const std::string& where);
  std::size_t constant(std::vector<double> values, const std::string& where);
  // 1 where x is not 0, else 0; x itself where that is what it holds.
  std::size_t truth(std::size_t x, const std::string& where);
  std::size_t operation(Operation operation, std::vector<std::size_t> from, const std::string& where);
  // x op constant; neighbouring scalar factors are united.
  std::size_t with_constant(std::size_t x, StepKind kind, std::vector<double> constant, const std::string& where);
  // Recognises x^2, silu, hard swish, mish and both gelus.
  std::size_t product(std::size_t a, std::size_t b, const std::string& where);
  std::size_t sum(std::size_t a, std::size_t b, const std::string& where);

  std::size_t width(std::size_t step) const { return at(step).width; }
  // Many small nodes may each ask for a copy of one large constant: their sum is kept within what a net may hold.
  void count(std::size_t numbers, const std::string& where);
  // As much work on reading: numbers selected, whether or not anything new comes of it, and products of constants.
  // Throws Error (unsupported) beyond 2^28, whose reading takes seconds.
  void work(std::size_t numbers, const std::string& where);

 private:
  const Step& at(std::size_t step) const { return graph_.steps[step]; }
  std::size_t width_of(const Step& step) const;
  bool is_activation(std::size_t step, ActivationKind kind) const;
  // The step without scalar factors, and their product.
  std::pair<std::size_t, double> without_factors(std::size_t step) const;
  // What `step` is erf or tanh of, where it is 1 + that.
  std::optional<std::size_t> one_plus(std::size_t step, StepKind kind) const;
  std::optional<std::size_t> gelu(std::size_t a, std::size_t b, const std::string& where);

  StepGraph& graph_;
  std::size_t numbers_ = 0;  // held so far
  std::size_t work_ = 0;
};

}  // namespace lockstep::nn::detail
