// Keeping a gradient within bounds before an optimiser sees it.
#pragma once

#include <optional>
#include <span>

namespace lockstep::train {

struct ClipOptions {
  std::optional<double> norm;   // > 0: a longer gradient is shortened to this Euclidean norm, its direction kept
  std::optional<double> value;  // > 0: each element is then brought into [-value, value]

  // Throws Error (invalid_argument).
  void validate() const;
};

// Clips in place; returns the Euclidean norm the gradient came with. Where that is not finite nothing is changed.
// Pascanu, Mikolov & Bengio, "On the difficulty of training recurrent neural networks", ICML 2013, algorithm 1.
template <class T>
double clip(std::span<T> gradient, const ClipOptions& options);

extern template double clip<float>(std::span<float>, const ClipOptions&);
extern template double clip<double>(std::span<double>, const ClipOptions&);

}  // namespace lockstep::train
