// Builds steps, and recognises activations that exporters spell out in primitives.
#pragma once

#include <optional>
#include <utility>

#include "lockstep/nn/detail/onnx_graph.h"

namespace lockstep::nn::detail {

class StepBuilder {
 public:
  explicit StepBuilder(StepGraph& graph) : graph_(graph) {}

  std::size_t append(Step step);
  std::size_t activation(std::size_t x, Activation activation, const std::string& where);
  std::size_t piece(std::size_t x, StepKind kind, const std::string& where);
  // x op constant; neighbouring scalar factors are united.
  std::size_t with_constant(std::size_t x, StepKind kind, std::vector<double> constant, const std::string& where);
  // Recognises x^2, silu, hard swish, mish and both gelus.
  std::size_t product(std::size_t a, std::size_t b, const std::string& where);
  std::size_t sum(std::size_t a, std::size_t b, const std::string& where);

 private:
  const Step& at(std::size_t step) const { return graph_.steps[step]; }
  bool is_activation(std::size_t step, ActivationKind kind) const;
  // The step without scalar factors, and their product.
  std::pair<std::size_t, double> without_factors(std::size_t step) const;
  // What `step` is erf or tanh of, where it is 1 + that.
  std::optional<std::size_t> one_plus(std::size_t step, StepKind kind) const;
  std::optional<std::size_t> gelu(std::size_t a, std::size_t b, const std::string& where);

  StepGraph& graph_;
};

}  // namespace lockstep::nn::detail
