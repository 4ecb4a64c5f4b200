// Problems whose right-hand sides exist twice, in the library and plainly over any number type; for the tests of
// gradients.
#pragma once

#include <cmath>
#include <cstddef>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "lockstep/kernels/mlp/parameters.h"
#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/test_tile.h"
#include "lockstep/ode/testing/graph_maker.h"
#include "lockstep/ode/testing/replay.h"
#include "lockstep/ode/trained_parameters.h"

namespace lockstep::ode::testing {

using Numbers = std::vector<double>;

// A right-hand side twice: as the library's, and plainly over any number type, f(t, u, p, w).
struct Case {
  const char* name;
  Rhs rhs;
  Numbers u0, parameters;
};

template <class N>
std::vector<N> plain_lorenz(const std::vector<N>& u, const std::vector<N>& p) {
  return {p[0] * (u[1] - u[0]), u[0] * (p[1] - u[2]) - u[1], u[0] * u[1] - p[2] * u[2]};
}
// inputs-5-outputs with tanh: test_tile.h's small_net, its numbers in the order of weights().
template <class N>
std::vector<N> plain_net(const std::vector<N>& in, const N* w, std::size_t outputs) {
  using std::tanh;
  std::vector<N> hidden, out;
  for (std::size_t j = 0; j < 5; ++j) {
    N sum = w[5 * in.size() + j];
    for (std::size_t k = 0; k < in.size(); ++k) sum = sum + w[j * in.size() + k] * in[k];
    hidden.push_back(tanh(sum));
  }
  w += 5 * in.size() + 5;
  for (std::size_t j = 0; j < outputs; ++j) {
    N sum = w[5 * outputs + j];
    for (std::size_t k = 0; k < 5; ++k) sum = sum + w[j * 5 + k] * hidden[k];
    out.push_back(sum);
  }
  return out;
}

inline Case lorenz_case() { return {"lorenz", system("lorenz"), {1, 0.5, 2}, {10, 28, 8.0 / 3}}; }
inline Case net_case() { return {"net", net(small_net(5, 3), {.with_time = true}), {0.3, -0.2, 0.5}, {0.7}}; }
inline Case hybrid_case() {
  return {"lorenz + net", sum(system("lorenz"), net(small_net(3, 3))), {1, 0.5, 2}, {10, 28, 8.0 / 3}};
}
inline Case pendulum_case() {
  return {"pendulum",
          differentiable_function<2, 1>("pendulum",
                                        [](auto t, const auto& u, const auto& p, auto& du) {
                                          using lockstep::math::sin;
                                          du[0] = u[1];
                                          du[1] = -p[0] * sin(u[0]) + 0.25 * t;
                                        }),
          {0.5, 0.1},
          {3}};
}

inline Case driven_case() { return {"driven pendulum", system("pendulum"), {0.5, 0.1}, {2, 1.5, 0.7}}; }

inline Case closure_case() {
  return {"closure",
          differentiable_function_with_net<2, 1>(
              "closure", small_net(2, 1),
              [](auto t, const auto& u, const auto& p, const auto& in) {
                in[0] = u[0] * u[1];
                in[1] = p[0] + 0.5 * t;
              },
              [](auto, const auto& u, const auto& p, const auto& net, auto& du) {
                du[0] = u[1] + net[0] * u[0];
                du[1] = -p[0] * u[0] + net[0];
              }),
          {0.5, 0.1},
          {1.5}};
}

// Of what may stand beside a trained net in one graph: a net that is kept, the trained one called twice, parameters
// that are trained by either law, one that is not.
//   x' = v + kept(x),  v' = c (net(x, v) - net(v, x)) - k x - m v,  p = (k, c, m), k and m trained.
inline Case trained_case() {
  GraphMaker made({{"u", 0, 2}, {"p", 1, 3}});
  const auto call = [&](const Mlp& mlp, std::size_t value) {
    for (const DenseLayer& layer : mlp.layers) {
      value = made.node(graph::Dense{layer.inputs, layer.outputs, layer.weights, layer.bias}, {value});
      if (layer.activation.kind != ActivationKind::identity)
        value = made.node(graph::Activate{layer.activation}, {value});
    }
    return value;
  };
  using enum graph::BinaryKind;
  const std::size_t x = made.column(0, 0), v = made.column(0, 1), swapped = made.node(graph::Columns{{1, 0}}, {0});
  const std::size_t kept = call(small_net(1, 1), x);
  const std::size_t one = call(small_net(2, 1), 0), other = call(small_net(2, 1), swapped);
  const std::size_t pair = made.binary(multiply, made.column(1, 1), made.binary(subtract, one, other));
  const std::size_t force = made.binary(subtract, pair, made.binary(multiply, made.column(1, 0), x));
  const std::size_t last = made.binary(subtract, force, made.binary(multiply, made.column(1, 2), v));
  made.outputs = {{"du", made.node(graph::Concatenate{}, {made.binary(add, v, kept), last}), 2}};
  constexpr std::size_t kFirstLayer = 5 * 2 + 5;
  const graph::WeightPlaces places{graph::kKept, graph::kKept, 0, kFirstLayer, 0, kFirstLayer};
  return {"trained",
          train_parameters(net(made, {.weight_places = places}),
                           {{.parameter = 2, .start = 0.4, .law = ParameterLaw::positive},
                            {.parameter = 0, .start = -1.5, .scale = 2}}),
          {0.5, -0.3},
          {0.8}};
}
template <class N>
std::vector<N> plain_trained(const std::vector<N>& u, const std::vector<N>& p, const std::vector<N>& w) {
  using std::exp;
  const std::vector<double> numbers = gather_parameters<double>(small_net(1, 1));
  const std::vector<N> kept(numbers.begin(), numbers.end());
  const N m = N(0.4) * exp(w[w.size() - 2]), k = N(2) * w[w.size() - 1];
  const N pair = plain_net<N>(u, w.data(), 1)[0] - plain_net<N>({u[1], u[0]}, w.data(), 1)[0];
  return {u[1] + plain_net<N>({u[0]}, kept.data(), 1)[0], p[0] * pair - k * u[0] - m * u[1]};
}

template <class N, class Time>
std::vector<N> plain_rhs(const Case& c, const Time& t, const std::vector<N>& u, const std::vector<N>& p,
                         const std::vector<N>& w) {
  using std::cos;
  using std::sin;
  const std::string name = c.name;
  if (name == "lorenz") return plain_lorenz(u, p);
  if (name == "trained") return plain_trained(u, p, w);
  if (name == "net") return plain_net<N>({u[0], u[1], u[2], p[0], N(t)}, w.data(), 3);
  if (name == "closure") {
    const N net = plain_net<N>({u[0] * u[1], p[0] + N(0.5) * N(t)}, w.data(), 1)[0];
    return {u[1] + net * u[0], net - p[0] * u[0]};
  }
  if (name == "pendulum") return {u[1], N(0.25) * N(t) - p[0] * sin(u[0])};
  if (name == "driven pendulum") return {u[1], p[1] * cos(p[2] * N(t)) - u[1] / p[0] - sin(u[0])};
  auto du = plain_lorenz(u, p);
  const auto more = plain_net<N>(u, w.data(), 3);
  for (std::size_t i = 0; i < 3; ++i) du[i] = du[i] + more[i];
  return du;
}

inline std::vector<Case> all_cases() {
  return {lorenz_case(), net_case(), hybrid_case(), pendulum_case(), driven_case(), closure_case()};
}

// Trajectories whose initial states and parameters differ a little.
inline Problem ensemble(const Case& c, std::size_t trajectories) {
  Problem problem;
  problem.rhs = c.rhs;
  for (std::size_t i = 0; i < trajectories; ++i) {
    const double shift = 0.01 * static_cast<double>(i);
    for (const double u : c.u0) problem.initial_states.push_back(u + shift);
    for (const double p : c.parameters) problem.parameters.push_back(p * (1 + 0.1 * shift));
  }
  problem.end_times = {0.6};
  problem.save_times = {0, 0.05, 0.06, 0.2, 0.31, 0.6};
  return problem;
}

// L = sum of coefficients of every saved number, fixed for each: its gradient by states is known exactly.
inline double coefficient(std::size_t trajectory, std::size_t i) {
  return std::sin(1.0 + static_cast<double>(3 * trajectory + 7 * i));
}
inline double linear_loss(std::size_t trajectory, std::span<const double> states, std::span<double> gradient) {
  double sum = 0;
  for (std::size_t i = 0; i < states.size(); ++i) {
    gradient[i] = coefficient(trajectory, i);
    sum += gradient[i] * states[i];
  }
  return sum;
}

inline Options f64(std::string method, StepControl control) {
  Options options;
  options.method = std::move(method);
  options.control = control;
  options.precision = Precision::f64;
  options.threads = 1;  // threads that wait for each other are slow on a busy machine
  options.rtol = options.atol = 1e-5;
  if (control == StepControl::fixed) options.dt = 0.027;
  return options;
}

// Loss of every trajectory through plain arithmetic, at numbers shifted by `scale` times a random direction.
struct Direction {
  Numbers u, p, w;
  explicit Direction(const Problem& problem, unsigned seed)
      : u(problem.initial_states.size()), p(problem.parameters.size()), w(problem.rhs->weights().size()) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> number(-1, 1);
    for (Numbers* part : {&u, &p, &w}) {
      for (double& x : *part) x = number(random);
    }
  }
  double along(const Gradients& gradients, double& magnitude) const {
    double sum = 0;
    const auto add = [&](const Numbers& direction, const Numbers& gradient) {
      for (std::size_t i = 0; i < direction.size(); ++i) {
        sum += direction[i] * gradient[i];
        magnitude += std::fabs(direction[i] * gradient[i]);
      }
    };
    add(u, gradients.initial_states);
    add(p, gradients.parameters);
    add(w, gradients.weights);
    return sum;
  }
};

// shifted(x, d) makes a Number of value x and direction d.
template <class N, class Shifted>
N plain_loss(const Case& c, const Problem& problem, const std::string& method_name, const Gradients& gradients,
             const Direction& direction, const Shifted& shifted) {
  const std::size_t n = problem.rhs->components(), m = problem.rhs->parameters();
  const Numbers weights = problem.rhs->weights();
  std::vector<N> w;
  for (std::size_t i = 0; i < weights.size(); ++i) w.push_back(shifted(weights[i], direction.w[i]));
  N loss(0);
  for (std::size_t trajectory = 0; trajectory < problem.trajectories(); ++trajectory) {
    std::vector<N> u, p;
    for (std::size_t i = 0; i < n; ++i) {
      u.push_back(shifted(problem.initial_states[trajectory * n + i], direction.u[trajectory * n + i]));
    }
    for (std::size_t i = 0; i < m; ++i) {
      p.push_back(shifted(problem.parameters[trajectory * m + i], direction.p[trajectory * m + i]));
    }
    const auto f = [&]<class M>(const auto& t, const std::vector<M>& y, const std::vector<M>& q) {
      return plain_rhs<M>(c, t, y, q, std::vector<M>(w.begin(), w.end()));
    };
    const auto states = replay<N>(method(method_name), f, u, p, gradients.steps[trajectory],
                                  {problem.save_times_of(trajectory), problem.save_points()});
    for (std::size_t i = 0; i < states.size(); ++i) loss = loss + N(coefficient(trajectory, i)) * states[i];
  }
  return loss;
}

struct Mode {
  std::string method;
  StepControl control;
};
// Linearly implicit methods ask for second derivatives.
inline bool has_derivatives(const Case& c, const std::string& method_name) {
  return !method(method_name).is_linearly_implicit() || c.rhs->directional_f64(best_cpu_target()) != nullptr;
}
inline std::vector<Mode> all_modes() {
  std::vector<Mode> modes;
  for (const auto name : method_names()) {
    modes.push_back({std::string(name), StepControl::fixed});
    if (method(name).error_order == 0) continue;
    modes.push_back({std::string(name), StepControl::per_trajectory});
    modes.push_back({std::string(name), StepControl::common});
  }
  return modes;
}

}  // namespace lockstep::ode::testing
