// The step of a training that follows a gradient, told beforehand to those who compute it: their threads can then take
// it too, each for itself.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace lockstep {

// How a caller moves parameters by a gradient.
template <class T>
class Stepper {
 public:
  virtual ~Stepper() = default;
  // The gradient may be changed: clipped.
  virtual void step(std::span<T> parameters, std::span<T> gradient, double rate) = 0;
  // Makes the same steps from here on.
  virtual std::unique_ptr<Stepper> copy() const = 0;
};

// The step that a caller is about to take with the gradient it asks for.
template <class T>
struct StepAhead {
  const Stepper<T>* stepper = nullptr;  // as it is before the step
  double rate = 0;
  // One more than at the gradient before, if the step then announced is all that has happened since to parameters and
  // stepper, and not one more otherwise.
  std::uint64_t number = 0;
};

}  // namespace lockstep
