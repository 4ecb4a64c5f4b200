// A Runge-Kutta method as data: explicit, or linearly implicit (Rosenbrock).
#pragma once

#include <span>
#include <string_view>

namespace lockstep::ode {

// One formula for every method: its last stage is evaluated at (t + h, y1), so that it serves as the next step's first
// ("first same as last"; Hairer, Norsett & Wanner I, II.5). Methods without that property gain one stage with zero
// weight, which costs nothing: the next step needs that evaluation anyway.
//
//   k_1 = f(t, y0) is given;  k_i = f(t + c_i h, Y_i),  Y_i = y0 + h sum_{j<i} a_ij k_j;  y1 = Y_s
//   error   = h sum_j e_j k_j                      (e = b - b_hat; no e: fixed steps only)
//   y(t + theta h) = y0 + h sum_j k_j sum_{m>=1} p_jm theta^m      (the interpolant; y1 exactly at theta = 1)
//
// Sums run over j ascending and skip zero coefficients: acc = coefficient * k, then acc = fma(coefficient, k, acc),
// at last Y_i = fma(h, acc, y0). That order is part of the same-bits contract (docs/numerics.md).
//
// A linearly implicit method solves linear equations with the Jacobian J = f_u(t, y0) for k_2 .. k_{s-1}:
//
//   (1/gamma - h J) k_i = f(t + c_i h, Y_i) + sum_{1<j<i} g_ij k_j + d_i h f_t(t, y0)
//
// and k_1, which only these equations read, is f(t, Y_2) = f(t, y0) for the first of them. This is Hairer & Wanner II,
// IV.7, equation 7.25, with u_i = h k_i of our k_{i+1}.
//
// Where a component decays within a small part of h its embedded error vanishes, as 1/(h lambda), whatever the state
// does between the step's ends. Adaptive steps therefore look at the interpolant u in their middle too (Steinebach
// 2024, Rodas5Pr): with the defect d = f(t + h/2, u) - u' there,
//
//   (1/gamma - h J) x = h d
//
// is the other error, and the larger of the two norms counts. An interpolant that is off by e has d = J e - e': of what
// decays fast x is -e, of the rest some gamma h e', both in the state's units and of the same order in h as the error.
struct Tableau {
  std::string_view name;       // "tsit5": how options name it
  std::string_view title;      // "Tsitouras 5(4)", for people
  std::string_view source;     // paper, equation, table
  int order = 0;               // of y1
  int error_order = 0;         // of the embedded formula, 0 without one
  int stages = 0;              // s, the evaluation at (t + h, y1) included
  int interpolant_stages = 0;  // further stages that only the interpolant needs (k_{s+1} ..)
  int interpolant_degree = 0;  // of theta
  int interpolant_order = 0;   // its error is O(h^(order + 1)) in the local sense

  std::span<const double> a;      // [stages + interpolant_stages][stages + interpolant_stages], row i, column j < i
  std::span<const double> c;      // [stages + interpolant_stages]
  std::span<const double> error;  // [stages], empty without an embedded formula
  // A second error estimate, combined as |error|^2 / sqrt(|error|^2 + 0.01 |error3|^2) (DOP853: Hairer's code); else
  // empty.
  std::span<const double> error3;
  std::span<const double> interpolant;  // [stages + interpolant_stages][interpolant_degree], p_jm with m = 1 first

  // Of a linearly implicit method; 0 and empty of an explicit one.
  double gamma = 0;
  std::span<const double> coupling;      // [stages][stages], g_ij
  std::span<const double> time_weights;  // [stages], d_i

  bool is_linearly_implicit() const { return gamma != 0; }
  // Of the right-hand side, by an attempted step: a linearly implicit one looks at its middle where it is adaptive.
  int evaluations(bool adaptive) const { return stages - (is_linearly_implicit() && !adaptive ? 2 : 1); }
  double a_at(int i, int j) const {
    return a[static_cast<std::size_t>(i) * static_cast<std::size_t>(stages + interpolant_stages) +
             static_cast<std::size_t>(j)];
  }
};

}  // namespace lockstep::ode
