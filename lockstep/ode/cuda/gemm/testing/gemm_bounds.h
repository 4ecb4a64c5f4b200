// A bound on the error of solves by matrix products that holds whatever the order in which a product sums, mode by
// mode.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/kernels/cuda/tensor_number.h"
#include "lockstep/kernels/mlp/mlp.h"
#include "lockstep/ode/cuda/gemm/gemm_engine.h"
#include "lockstep/ode/cuda/testing/solve_on.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::ode::cuda {

// The relative error of rounding a factor to the mode's numbers, or of float32, and of sums.
inline double factor_unit(MatrixPrecision mode) {
  switch (mode) {
    case MatrixPrecision::bf16:
      return lockstep::cuda::Bf16::kUnit;
    case MatrixPrecision::fp16:
      return lockstep::cuda::Fp16::kUnit;
    case MatrixPrecision::tf32:
      return lockstep::cuda::Tf32::kUnit;
    case MatrixPrecision::f32:
      break;
  }
  return 0;
}

// And the absolute one below the mode's normal numbers, which only fp16 reaches.
constexpr double factor_tiny(MatrixPrecision mode) {
  return mode == MatrixPrecision::fp16 ? lockstep::cuda::Fp16::kTiny : 0;
}

struct Bounded {
  std::vector<double> value, error;
};

// A net with 1-Lipschitz activations, evaluated in float64, and how far a product's result may lie from it where
// factors are rounded with `unit` and sums have `sum_unit`, in any order: for each output
//   sum |w| e + ((1 + unit)^2 - 1) sum |w| (|x| + e) + (K + 2) sum_unit (sum |w| (|x| + e) (1 + unit)^2 + |b|).
// The last term holds for sums in any order (Higham 2002, section 3.1), with a factor of two to spare for second
// orders, and the activation's own error of a few units.
inline Bounded evaluate(const Mlp& mlp, Bounded x, MatrixPrecision mode, double sum_unit) {
  const double unit = factor_unit(mode), tiny = factor_tiny(mode);
  for (const DenseLayer& layer : mlp.layers) {
    Bounded y;
    for (std::size_t j = 0; j < layer.outputs; ++j) {
      double sum = layer.bias[j], error = 0, size = 0;
      for (std::size_t k = 0; k < layer.inputs; ++k) {
        const double w = layer.weights[j * layer.inputs + k];
        sum += w * x.value[k];
        error += std::abs(w) * x.error[k];
        size += std::abs(w) * (std::abs(x.value[k]) + x.error[k]);
        error += tiny * (std::abs(w) + std::abs(x.value[k]) + x.error[k] + tiny);
      }
      const double factors = (1 + unit) * (1 + unit);
      error += (factors - 1) * size;
      error += 2 * (static_cast<double>(layer.inputs) + 2) * sum_unit * (size * factors + std::abs(layer.bias[j]));
      const double value = activate(layer.activation, sum);
      y.value.push_back(value);
      y.error.push_back(error + 8 * sum_unit * std::abs(value));
    }
    x = std::move(y);
  }
  return x;
}

// u + h f(u), `steps` times, with the same bounds. An addition and a product of float32, or of float64, more.
inline Bounded euler(const Mlp& mlp, Bounded u, double h, int steps, MatrixPrecision mode, double sum_unit) {
  for (int i = 0; i < steps; ++i) {
    const Bounded du = evaluate(mlp, u, mode, sum_unit);
    for (std::size_t c = 0; c < u.value.size(); ++c) {
      u.value[c] += h * du.value[c];
      u.error[c] += h * du.error[c] + 3 * sum_unit * (std::abs(u.value[c]) + std::abs(h * du.value[c]));
    }
  }
  return u;
}

// Trajectories of many lengths by Euler's method on that runtime, each end state held to its bound.
inline void expect_within_bounds(const Mlp& mlp, std::size_t count, MatrixPrecision mode, Precision precision,
                                 Runtime* runtime, GemmRuntime* products) {
  SCOPED_TRACE(std::to_string(count) + " trajectories, " + std::string(to_string(mode)) + ", " +
               std::string(to_string(precision)));
  constexpr double h = 0x1p-5;  // exact in every precision
  Problem problem;
  problem.rhs = net(mlp);
  problem.start_times = {0};
  const std::size_t n = mlp.outputs();
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t c = 0; c < n; ++c)
      problem.initial_states.push_back(0x1p-4 * static_cast<double>((7 * i + c) % 13));
    problem.end_times.push_back(h * static_cast<double>(1 + i % 9 * (i % 9 == 8 ? 5 : 1)));  // a few are much longer
  }
  Options options;
  options.method = "euler";
  options.control = StepControl::fixed;
  options.dt = h;
  options.precision = precision;
  options.matrix_precision = mode;
  GemmTarget target{runtime, products};
  target.most_columns = 64;
  target.least_columns = 32;
  Solution solution(precision, count, n, {}, false);
  MemorySink sink(solution);
  precision == Precision::f32 ? advance_gemm<float>(problem, options, target, sink, {})
                              : advance_gemm<double>(problem, options, target, sink, {});
  const double sum_unit = precision == Precision::f32 ? 0x1p-24 : 0x1p-53;
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(solution.record(i).status, Status::success) << i;
    Bounded u{{}, std::vector<double>(n, 0)};
    for (std::size_t c = 0; c < n; ++c) u.value.push_back(problem.initial_states[i * n + c]);
    const int steps = static_cast<int>(solution.record(i).accepted);
    ASSERT_EQ(steps, static_cast<int>(std::lround(problem.end_times[i] / h))) << i;
    u = euler(mlp, std::move(u), h, steps, mode, sum_unit);
    for (std::size_t c = 0; c < n; ++c)
      ASSERT_LE(std::abs(solution.end_state(i, c) - u.value[c]), u.error[c]) << i << ", " << c;
  }
}

}  // namespace lockstep::ode::cuda
