// A Runge-Kutta method on given steps, written plainly over any number type: duals, complex or long double numbers go
// through it and show what the derivative of a solve must be. For tests.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "lockstep/ode/gradient.h"
#include "lockstep/ode/tableau.h"

namespace lockstep::ode::testing {

// States [time][component] at the save times (within the steps, ascending or descending as they are).
// f(t, u, p) returns du.
template <class Number, class F>
std::vector<Number> replay(const Tableau& tableau, const F& f, std::vector<Number> u, const std::vector<Number>& p,
                           std::span<const AcceptedStep> steps, std::span<const double> saves) {
  const std::size_t n = u.size();
  const int total = tableau.stages + tableau.interpolant_stages;
  std::vector<Number> states;
  std::size_t next = 0;
  const double start = steps.empty() ? (saves.empty() ? 0 : saves[0]) : steps[0].t;
  while (next < saves.size() && saves[next] == start) states.insert(states.end(), u.begin(), u.end()), ++next;
  for (const AcceptedStep& step : steps) {
    std::vector<std::vector<Number>> k;
    std::vector<Number> y1;
    for (int i = 0; i < total; ++i) {
      std::vector<Number> y = u;
      for (std::size_t c = 0; c < n; ++c) {
        for (int j = 0; j < i; ++j) {
          y[c] = y[c] + Number(step.h * tableau.a_at(i, j)) * k[static_cast<std::size_t>(j)][c];
        }
      }
      if (i == tableau.stages - 1) y1 = y;
      const double t =
          i == 0 ? step.t
                 : (i == tableau.stages - 1 ? step.t_new
                                            : std::fma(tableau.c[static_cast<std::size_t>(i)], step.h, step.t));
      k.push_back(f(t, y, p));
    }
    for (; next < saves.size() && (step.t_new - saves[next]) * step.h >= 0; ++next) {
      if (saves[next] == step.t_new) {
        states.insert(states.end(), y1.begin(), y1.end());
        continue;
      }
      const double theta = (saves[next] - step.t) / step.h;
      std::vector<Number> y = u;
      for (int j = 0; j < total; ++j) {
        double weight = 0;
        for (int m = tableau.interpolant_degree; m-- > 0;) {
          const auto at = static_cast<std::size_t>(j * tableau.interpolant_degree + m);
          weight = (weight + tableau.interpolant[at]) * theta;
        }
        for (std::size_t c = 0; c < n; ++c) y[c] = y[c] + Number(step.h * weight) * k[static_cast<std::size_t>(j)][c];
      }
      states.insert(states.end(), y.begin(), y.end());
    }
    u = y1;
  }
  return states;
}

}  // namespace lockstep::ode::testing
