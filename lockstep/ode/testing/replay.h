// A Runge-Kutta method, explicit or linearly implicit, on given steps, written plainly over any number type: duals,
// complex or long double numbers go through it and show what the derivative of a solve must be. For tests.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "lockstep/ode/gradient.h"
#include "lockstep/ode/tableau.h"
#include "lockstep/ode/testing/jet.h"

namespace lockstep::ode::testing {

// The derivative of f at (t, u), by state and time, and solutions of (1/gamma - h J) x = b.
template <class Number>
struct PlainLinearisation {
  template <class F>
  PlainLinearisation(const F& f, double t, const std::vector<Number>& u, const std::vector<Number>& p) {
    using J = Jet<Number>;
    const std::vector<J> parameters(p.begin(), p.end());
    const std::size_t n = u.size();
    by_state.assign(n, std::vector<Number>(n));
    for (std::size_t column = 0; column <= n; ++column) {
      std::vector<J> at(u.begin(), u.end());
      if (column < n) at[column].slope = Number(1);
      const auto made = f(J(Number(t), Number(column == n ? 1 : 0)), at, parameters);
      for (std::size_t row = 0; row < n; ++row) {
        if (column < n) by_state[row][column] = made[row].slope;
        if (column == n) by_time.push_back(made[row].slope);
      }
    }
  }
  std::vector<Number> solve(double gamma, double h, std::vector<Number> b) const {
    const std::size_t n = b.size();
    auto w = by_state;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) w[i][j] = Number(i == j ? 1 / gamma : 0) - Number(h) * w[i][j];
    }
    for (std::size_t k = 0; k < n; ++k) {
      std::size_t pivot = k;
      for (std::size_t i = k + 1; i < n; ++i) {
        if (magnitude(w[i][k]) > magnitude(w[pivot][k])) pivot = i;
      }
      std::swap(w[k], w[pivot]);
      std::swap(b[k], b[pivot]);
      for (std::size_t i = k + 1; i < n; ++i) {
        const Number factor = w[i][k] / w[k][k];
        for (std::size_t j = k; j < n; ++j) w[i][j] = w[i][j] - factor * w[k][j];
        b[i] = b[i] - factor * b[k];
      }
    }
    for (std::size_t i = n; i-- > 0;) {
      for (std::size_t j = i + 1; j < n; ++j) b[i] = b[i] - w[i][j] * b[j];
      b[i] = b[i] / w[i][i];
    }
    return b;
  }

  std::vector<std::vector<Number>> by_state;  // [component][of component]
  std::vector<Number> by_time;
};

// k_i of tableau.h's linearly implicit methods, from f at the stage.
template <class Number>
std::vector<Number> solved_stage(const Tableau& tableau, const PlainLinearisation<Number>& linear, int i, double h,
                                 std::vector<Number> right, const std::vector<std::vector<Number>>& k) {
  for (std::size_t c = 0; c < right.size(); ++c) {
    for (int j = 1; j < i; ++j) {
      const auto at = static_cast<std::size_t>(i * tableau.stages + j);
      right[c] = right[c] + Number(tableau.coupling[at]) * k[static_cast<std::size_t>(j)][c];
    }
    right[c] = right[c] + Number(tableau.time_weights[static_cast<std::size_t>(i)] * h) * linear.by_time[c];
  }
  return linear.solve(tableau.gamma, h, std::move(right));
}

// States [time][component] at the save times (within the steps, ascending or descending as they are).
// f(t, u, p) returns du; for a linearly implicit method it is called with jets too.
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
    std::optional<PlainLinearisation<Number>> linear;
    if constexpr (requires(Jet<Number> s, std::vector<Jet<Number>> v) { f(s, v, v); }) {
      if (tableau.is_linearly_implicit()) linear.emplace(f, step.t, u, p);
    } else if (tableau.is_linearly_implicit()) {
      throw std::logic_error("a plain right-hand side that takes no jets");
    }
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
      if (linear && i > 0 && i < tableau.stages - 1)
        k.back() = solved_stage(tableau, *linear, i, step.h, std::move(k.back()), k);
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
