// L-BFGS: a quasi-Newton method for losses that are the same function in every call, as full batches are.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep::train {

// The loss at `parameters`, its derivative into `gradient` (as many numbers). A loss that is not finite makes the line
// search take a shorter step.
template <class T>
using Objective = std::function<double(std::span<const T> parameters, std::span<T> gradient)>;

struct LbfgsOptions {
  std::size_t history = 20;           // pairs of steps and gradient changes kept, >= 1
  double sufficient_decrease = 1e-4;  // c1 and
  double curvature = 0.9;             // c2 of the strong Wolfe conditions, 0 < c1 < c2 < 1
  int max_evaluations = 20;           // of the objective in one line search, >= 1

  // Throws Error (invalid_argument).
  void validate() const;
};

enum class LbfgsStatus {
  advanced,   // the loss fell
  converged,  // the gradient is zero
  stalled,    // no step along the direction, nor along the steepest descent, lowers the loss by what is no rounding: in
              // float32 by 2^-24 of it; or as many pairs as there are parameters foretell that none does
};
std::string_view to_string(LbfgsStatus status);

struct LbfgsReport {
  LbfgsStatus status = LbfgsStatus::advanced;
  double loss = 0;           // at the parameters now
  double gradient_norm = 0;  // there
  double step = 0;           // accepted, relative to the quasi-Newton step
  int evaluations = 0;       // of the objective
};

// One pair of a step and what it did to the gradient.
template <class T>
struct LbfgsPair {
  std::vector<T> step;       // x' - x
  std::vector<T> change;     // g' - g
  double inverse_curvature;  // 1 / (step . change)
};

template <class T>
struct LbfgsState {
  std::deque<LbfgsPair<T>> pairs;  // oldest first
  double loss = 0;
  std::vector<T> gradient;  // at the current parameters; empty before the first iteration
};

// Nocedal & Wright, "Numerical Optimization", 2nd ed.: algorithms 7.4 (two loops over the history, scaled by eq. 7.20),
// 3.5 and 3.6 (line search for the strong Wolfe conditions). T is float or double; products of vectors are float64
// sums in a fixed tree (sums.h), so that the same objective gives the same bits.
template <class T>
class Lbfgs {
 public:
  // Throws like validate().
  explicit Lbfgs(const LbfgsOptions& options = {});

  // One iteration: a direction and a line search along it. `parameters` are moved in place and never to a larger loss.
  // The objective is evaluated at them first when nothing is known there: on the first call, and after restart().
  // What the objective throws passes through; the parameters are then as before. Throws Error (invalid_argument) when
  // the loss or its gradient at the parameters given is not finite.
  LbfgsReport step(std::span<T> parameters, const Objective<T>& objective);

  // To be called when the objective or the parameters were changed from outside; forgets everything.
  void restart() { state_ = {}; }

  const LbfgsState<T>& state() const noexcept { return state_; }
  void restore(LbfgsState<T> state) { state_ = std::move(state); }

 private:
  LbfgsOptions options_;
  LbfgsState<T> state_;
};

extern template class Lbfgs<float>;
extern template class Lbfgs<double>;

}  // namespace lockstep::train
