// Balls that bounce, and where they are by hand.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/function.h"
#include "lockstep/ode/problem.h"

namespace lockstep::ode::testing {

inline constexpr double kGravity = 9.81;

// A ball above the floor: height, speed, bounces so far, time of the last one; p0: the share of speed that is left.
inline Rhs falling() {
  return differentiable_function<4, 1>("falling", [](auto, const auto& u, const auto&, auto& du) {
    du[0] = u[1];
    du[1] = -kGravity;
    du[2] = 0 * u[2];
    du[3] = 0 * u[3];
  });
}
inline Rhs height(double of = 0) {
  return event_function<4, 1>("height", [of](auto, const auto& u, const auto&) { return u[0] - of; });
}
inline Reset floor_reset(bool onto = true) {
  const Rhs state = function<4, 1>("bounce", [onto](auto t, const auto& u, const auto& p, auto& next) {
    next[0] = onto ? 0 * u[0] : u[0];
    next[1] = -p[0] * u[1];
    next[2] = u[2] + 1;
    next[3] = 0 * u[3] + t;
  });
  return {height(), state, TerminalEvent::Direction::falling};
}
inline Reset ceiling(double of) {
  const Rhs state = function<4, 1>("ceiling", [](auto, const auto& u, const auto&, auto& next) {
    for (std::size_t c = 0; c < 4; ++c) next[c] = u[c];
    next[1] = -u[1];
  });
  return {height(of), state, TerminalEvent::Direction::rising};
}

inline Problem balls(std::size_t count = 77) {
  Problem problem;
  problem.rhs = falling();
  for (std::size_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(i);
    for (const double u : {0.5 + 0.03 * x, std::sin(x), 0.0, -1.0}) problem.initial_states.push_back(u);
    problem.parameters.push_back(0.8 + 0.002 * x);
  }
  problem.end_times = {2};
  problem.save_times = {0, 0.3, 0.7, 1.1, 1.9, 2};
  problem.resets = {floor_reset()};
  return problem;
}

inline std::vector<double> flown(const Problem& problem, std::size_t i, double t) {
  double x = problem.initial_states[4 * i], v = problem.initial_states[4 * i + 1], now = 0, count = 0, last = -1;
  while (true) {
    const double flight = (v + std::sqrt(v * v + 2 * kGravity * x)) / kGravity;
    if (now + flight >= t) break;
    now += flight;
    v = problem.parameters[i] * (kGravity * flight - v);
    x = 0;
    ++count;
    last = now;
  }
  const double h = t - now;
  return {x + v * h - kGravity / 2 * h * h, v - kGravity * h, count, last};
}

}  // namespace lockstep::ode::testing
