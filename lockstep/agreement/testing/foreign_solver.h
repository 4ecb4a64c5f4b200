// Somebody else's solver, as a port of ours would be: plain loops, rounding of their own, and mistakes on request.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "lockstep/agreement/ensemble.h"
#include "lockstep/ode/problem.h"

namespace lockstep::agreement::testing {

enum class Rounding { plain, contracted, reversed };

struct Mistakes {
  double weight = 0;     // relative, in RK4's first weight
  double parameter = 0;  // absolute, added to parameter 1
  int late_by = 0;       // save points
};

// f(u, p, du): x y z with parameters sigma rho beta.
template <class T, Rounding rounding>
struct ForeignLorenz {
  static constexpr std::size_t kComponents = 3;
  static void evaluate(const T* u, const T* p, T* du) {
    if constexpr (rounding == Rounding::contracted) {
      du[0] = std::fma(p[0], u[1], -(p[0] * u[0]));
      du[1] = std::fma(u[0], p[1] - u[2], -u[1]);
      du[2] = std::fma(-p[2], u[2], u[0] * u[1]);
    } else if constexpr (rounding == Rounding::reversed) {
      du[0] = p[0] * u[1] - p[0] * u[0];
      du[1] = u[0] * p[1] - (u[0] * u[2] + u[1]);
      du[2] = u[1] * u[0] - u[2] * p[2];
    } else {
      du[0] = p[0] * (u[1] - u[0]);
      du[1] = u[0] * (p[1] - u[2]) - u[1];
      du[2] = u[0] * u[1] - p[2] * u[2];
    }
  }
};

// Prey and predators: x' = a x - b x y, y' = d x y - c y.
template <class T, Rounding rounding>
struct ForeignLotkaVolterra {
  static constexpr std::size_t kComponents = 2;
  static void evaluate(const T* u, const T* p, T* du) {
    if constexpr (rounding == Rounding::plain) {
      du[0] = u[0] * (p[0] - p[1] * u[1]);
      du[1] = u[1] * (p[3] * u[0] - p[2]);
    } else {
      du[0] = std::fma(p[0], u[0], -(p[1] * (u[0] * u[1])));
      du[1] = std::fma(p[3], u[0] * u[1], -(p[2] * u[1]));
    }
  }
};

// Fixed steps of RK4 on every trajectory; save points are multiples of dt. Returns [trajectory][time][component].
template <class T, Rounding rounding, template <class, Rounding> class System>
Numbers solve_rk4(const ode::Problem& problem, double dt, const Mistakes& mistakes = {}) {
  using Rhs = System<T, rounding>;
  constexpr std::size_t n = Rhs::kComponents;
  using State = std::array<T, n>;
  Numbers numbers;
  numbers.name = "foreign";
  numbers.precision = kPrecisionOf<T>;
  const auto h = static_cast<T>(dt);
  const T first_weight = static_cast<T>(1 + mistakes.weight);
  const std::size_t points = problem.save_points();
  for (std::size_t i = 0; i < problem.trajectories(); ++i) {
    State u;
    for (std::size_t c = 0; c < n; ++c) u[c] = static_cast<T>(problem.initial_states[i * n + c]);
    std::array<T, 8> p{};
    for (std::size_t q = 0; q < problem.rhs->parameters(); ++q) {
      p[q] = static_cast<T>(problem.parameters_of(i)[q] + (q == 1 ? mistakes.parameter : 0));
    }
    long step = 0;
    for (std::size_t k = 0; k < points; ++k) {
      const long target = std::lround(problem.save_times_of(i)[k] / dt) +
                          mistakes.late_by * std::lround(problem.save_times_of(i)[1] / dt);
      for (; step < target; ++step) {
        State k1, k2, k3, k4, v;
        const auto stage = [&](T factor, const State& slope) {
          for (std::size_t c = 0; c < n; ++c) {
            v[c] = rounding == Rounding::contracted ? std::fma(factor, slope[c], u[c]) : u[c] + factor * slope[c];
          }
        };
        Rhs::evaluate(u.data(), p.data(), k1.data());
        stage(h / 2, k1);
        Rhs::evaluate(v.data(), p.data(), k2.data());
        stage(h / 2, k2);
        Rhs::evaluate(v.data(), p.data(), k3.data());
        stage(h, k3);
        Rhs::evaluate(v.data(), p.data(), k4.data());
        for (std::size_t c = 0; c < n; ++c) {
          if constexpr (rounding == Rounding::reversed) {
            u[c] = u[c] + (h / 6 * k4[c] + h / 3 * (k3[c] + k2[c]) + h / 6 * first_weight * k1[c]);
          } else {
            u[c] = u[c] + h / 6 * (first_weight * k1[c] + 2 * k2[c] + 2 * k3[c] + k4[c]);
          }
        }
      }
      for (std::size_t c = 0; c < n; ++c) numbers.states.push_back(static_cast<double>(u[c]));
    }
  }
  return numbers;
}

}  // namespace lockstep::agreement::testing
