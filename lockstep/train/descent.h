// A step of gradient descent with all that belongs to it: the gradient is clipped, then the optimiser moves.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "lockstep/kernels/step_ahead.h"
#include "lockstep/train/clip.h"
#include "lockstep/train/optimiser.h"

namespace lockstep::train {

template <class T>
struct Descent final : Stepper<T> {
  ClipOptions clipping;
  Optimiser<T> optimiser;

  // Throws as Optimiser.
  Descent(const OptimiserOptions& options, const ClipOptions& clip, std::size_t parameter_count)
      : clipping(clip), optimiser(options, parameter_count) {}

  void step(std::span<T> parameters, std::span<T> gradient, double rate) override {
    if (clipping.norm || clipping.value) clip(gradient, clipping);
    optimiser.step(parameters, gradient, rate);
  }
  std::unique_ptr<Stepper<T>> copy() const override {
    auto same = std::make_unique<Descent>(optimiser.options(), clipping, optimiser.parameter_count());
    same->optimiser.restore(optimiser.state());
    return same;
  }
};

}  // namespace lockstep::train
