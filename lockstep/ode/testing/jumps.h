// Right-hand sides that jump at known times: tables, exact solutions between jumps, and solutions compared by bits.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/kernels/graph/graph.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/solution.h"

namespace lockstep::ode::testing {

// One output: a value from each knot on, or lines between them.
inline graph::Interpolate table(const std::vector<double>& knots, const std::vector<double>& values, bool steps) {
  graph::Interpolate made{knots, 1, {}};
  if (!steps) {
    for (std::size_t i = 0; i < knots.size(); ++i) {
      const bool last = i + 1 == knots.size();
      made.coefficients.push_back(last ? 0 : (values[i + 1] - values[i]) / (knots[i + 1] - knots[i]));
    }
  }
  made.coefficients.insert(made.coefficients.end(), values.begin(), values.end());
  return made;
}

inline const std::vector<double> kKnots{0.5, 1.25, 1.3, 2.7};
inline const std::vector<double> kValues{0, 3, -2, 1};

// The exact solution for the steps above, from u at time t: between jumps u -> s / p + (u - s / p) exp(-p h).
inline double exact(double u, double t, double end, double p) {
  const double sign = end < t ? -1 : 1;
  while (t != end) {
    std::size_t i = 0;  // the piece that holds the time just ahead
    while (i + 1 < kKnots.size() && (sign > 0 ? kKnots[i + 1] <= t : kKnots[i + 1] < t)) ++i;
    double next = end;
    for (const double knot : kKnots) {
      if ((knot - t) * sign > 0 && (next - knot) * sign > 0) next = knot;
    }
    const double level = kValues[i] / p;
    u = level + (u - level) * std::exp(-p * (next - t));
    t = next;
  }
  return u;
}

inline Options tight(Precision precision = Precision::f64) {
  Options options;
  options.precision = precision;
  options.rtol = options.atol = precision == Precision::f64 ? 1e-11 : 1e-6;
  return options;
}

// A loss in which every saved number has a weight of its own.
inline double weight(std::size_t at) { return 1 + 0.3 * static_cast<double>(at); }
inline double weighted_sum(std::size_t, std::span<const double> states, std::span<double> bar) {
  double sum = 0;
  for (std::size_t at = 0; at < states.size(); ++at) {
    bar[at] = weight(at);
    sum += bar[at] * states[at];
  }
  return sum;
}

// The derivative of value() by a number that it reads, by central differences.
inline double slope(double& number, const std::function<double()>& value, double h) {
  const double kept = number;
  number = kept + h;
  const double above = value();
  number = kept - h;
  const double below = value();
  number = kept;
  return (above - below) / (2 * h);
}

inline void expect_same(const Solution& a, const Solution& b, const std::string& what) {
  ASSERT_EQ(a.trajectories(), b.trajectories());
  for (std::size_t i = 0; i < a.trajectories(); ++i) {
    SCOPED_TRACE(what + ", trajectory " + std::to_string(i));
    ASSERT_EQ(a.record(i).status, b.record(i).status);
    ASSERT_EQ(a.record(i).accepted, b.record(i).accepted);
    ASSERT_EQ(a.record(i).rejected, b.record(i).rejected);
    ASSERT_EQ(a.record(i).evaluations, b.record(i).evaluations);
    ASSERT_EQ(a.record(i).end_time, b.record(i).end_time);
    ASSERT_EQ(a.keeps_events(), b.keeps_events());
    if (a.keeps_events()) {
      ASSERT_TRUE(std::ranges::equal(a.events(i), b.events(i)));
    }
    const auto same = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
    for (std::size_t c = 0; c < a.components(); ++c) {
      ASSERT_PRED2(same, a.end_state(i, c), b.end_state(i, c));
      for (std::size_t k = 0; k < a.save_points(); ++k)
        ASSERT_PRED2(same, a.state(i, k, c), b.state(i, k, c)) << "save point " << k;
    }
  }
}

}  // namespace lockstep::ode::testing
