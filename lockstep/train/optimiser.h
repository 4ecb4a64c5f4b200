// Gradient descent and its adaptive kin: from a gradient to the next parameters, the same bits everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/kernels/cpu_target.h"

namespace lockstep::train {

// With gradient g, parameters x, rate a; powers of the decay rates are running products in float64.
enum class Rule {
  sgd,       // m = momentum m + g, x -= a m (Polyak, USSR Comp. Math. 4, 1964)
  nesterov,  // x -= a (g + momentum m), m as above (Sutskever et al., ICML 2013, eq. 7, in the usual shifted variables)
  adam,      // Kingma & Ba, ICLR 2015, algorithm 1
  adamw,     // adam with decay apart from the gradient: Loshchilov & Hutter, ICLR 2019, algorithm 2
  adamax,    // Kingma & Ba, algorithm 2, with epsilon added to |g|
  radam,     // Liu et al., ICLR 2020, algorithm 2, with the rectified step from rho > 5 on
};

std::string_view to_string(Rule rule);
// Throws Error (invalid_argument) that lists the rules and suggests the nearest.
Rule parse_rule(const std::string& field, std::string_view name);
std::span<const std::string_view> rule_names();

struct OptimiserOptions {
  Rule rule = Rule::adam;
  double momentum = 0.9;                // of sgd and nesterov, in [0, 1)
  double beta1 = 0.9;                   // decay of the mean, in [0, 1)
  double beta2 = 0.999;                 // decay of the mean square (adamax: of the largest), in [0, 1)
  double epsilon = 1e-8;                // > 0: bounds the step where gradients vanish
  double weight_decay = 0;              // >= 0: adds weight_decay x to g; adamw: takes a weight_decay x from x instead
  std::optional<CpuTarget> cpu_target;  // otherwise the best of this machine; the bits do not depend on it

  // Throws Error (invalid_argument, or unsupported for a target this machine lacks).
  void validate() const;
};

// All that decides the next steps beside parameters, gradients, rates and options.
template <class T>
struct OptimiserState {
  std::int64_t steps = 0;
  double beta1_power = 1;  // beta1^steps
  double beta2_power = 1;
  std::vector<T> first;   // m, [parameter]
  std::vector<T> second;  // v, [parameter]; empty for sgd and nesterov
};

// T is float or double. All arithmetic on parameters is in T, element by element.
template <class T>
class Optimiser {
 public:
  // Throws like validate().
  explicit Optimiser(const OptimiserOptions& options, std::size_t parameter_count);

  // Moves the parameters, in place, by one step at this learning rate (finite, not negative). Both spans hold
  // parameter_count() numbers and do not overlap. Does not allocate. Throws Error (invalid_argument) for other sizes.
  // Numbers that are not finite are not looked for: they end up in the parameters.
  void step(std::span<T> parameters, std::span<const T> gradient, double learning_rate);

  std::size_t parameter_count() const noexcept { return first_.size(); }
  const OptimiserOptions& options() const noexcept { return options_; }

  // A restored optimiser takes the same steps, to the bit. restore() throws Error (invalid_argument) when the sizes
  // are not this optimiser's.
  OptimiserState<T> state() const;
  void restore(const OptimiserState<T>& state);

 private:
  OptimiserOptions options_;
  std::int64_t steps_ = 0;
  double beta1_power_ = 1;
  double beta2_power_ = 1;
  AlignedBuffer<T> first_;
  AlignedBuffer<T> second_;
};

extern template class Optimiser<float>;
extern template class Optimiser<double>;

}  // namespace lockstep::train
