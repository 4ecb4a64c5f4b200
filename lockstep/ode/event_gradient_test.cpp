// Derivatives through terminal events: of the time at which they strike and of the state there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/kernels/graph/graph.h"
#include "lockstep/ode/differentiable_event.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/sensitivity.h"
#include "lockstep/ode/testing/gradient_cases.h"

namespace lockstep::ode {
namespace {

using namespace testing;

// A ball thrown upwards: h' = v, v' = -g until the floor, which rises at the speed s: h = s t.
Problem thrown(std::size_t trajectories) {
  Problem problem{.rhs = differentiable_function<2, 2>("thrown",
                                                       [](auto, const auto& u, const auto& p, auto& du) {
                                                         du[0] = u[1];
                                                         du[1] = -p[0];
                                                       }),
                  .end_times = {10}};
  for (std::size_t i = 0; i < trajectories; ++i) {
    const double x = static_cast<double>(i);
    for (const double u : {1 + 0.01 * x, 3 - 0.02 * x}) problem.initial_states.push_back(u);
    for (const double p : {9.81 + 0.1 * x, 0.5}) problem.parameters.push_back(p);
  }
  problem.save_times = {0.1, 0.4, 5};
  problem.event = TerminalEvent{differentiable_event_function<2, 2>(
      "floor", [](auto t, const auto& u, const auto& p) { return u[0] - p[1] * t; })};
  return problem;
}

// L = 2 t* + 3 v*: with w = v0 - s, t* = (w + r) / g, r = sqrt(w^2 + 2 g h0), and v* = v0 - g t*. A parabola is solved
// exactly, so that only rounding is left, and the event's 2^-52 of a step of some seconds: 1e-12.
TEST(EventGradient, is_the_derivative_of_the_time_of_impact) {
  const Problem problem = thrown(40);
  const EndLoss loss = [](std::size_t, std::span<const double> states, const TrajectoryEnd& end, EndSlopes& slopes) {
    EXPECT_TRUE(end.terminated);
    EXPECT_TRUE(std::isfinite(states[2]));
    EXPECT_TRUE(std::isnan(states[4]));  // t = 5 never came
    slopes.end_time = 2;
    slopes.end_state[1] = 3;
    return 2 * end.time + 3 * end.state[1];
  };
  for (const auto& [method, control] : {std::pair{"tsit5", StepControl::per_trajectory},
                                        {"dop853", StepControl::per_trajectory},
                                        {"tsit5", StepControl::common},
                                        {"rk4", StepControl::fixed}}) {
    const Gradients gradients = solve_with_gradients(problem, f64(method, control), loss);
    const Sensitivities sensitivities = solve_with_sensitivities(problem, f64(method, control));
    EXPECT_EQ(gradients.left_out, 0u);
    double sum = 0;
    for (std::size_t i = 0; i < problem.trajectories(); ++i) {
      const double h0 = problem.initial_states[2 * i], v0 = problem.initial_states[2 * i + 1];
      const double g = problem.parameters[2 * i], s = problem.parameters[2 * i + 1], w = v0 - s;
      const double r = std::sqrt(w * w + 2 * g * h0), time = (w + r) / g, by_w = (1 + w / r) / g;
      sum += 2 * time + 3 * (v0 - g * time);
      const double by_g = h0 / (r * g) - time / g;  // of the time
      const auto expect = [&, method = method](double ours, double by_time, double direct, const char* what) {
        EXPECT_NEAR(ours, (2 - 3 * g) * by_time + direct, 1e-12 * 30) << method << " " << i << " " << what;
      };
      // The same forwards: column d of the time's derivative, then of the end state's (h*, v*), where h* = s t*.
      const auto forwards = [&, method = method](std::size_t d, double by_time, double of_height, double of_speed) {
        const std::size_t j = d % 2;
        const auto& by = d < 2 ? sensitivities.end_state_by_initial_state : sensitivities.end_state_by_parameter;
        const auto& time_by = d < 2 ? sensitivities.end_time_by_initial_state : sensitivities.end_time_by_parameter;
        EXPECT_NEAR(time_by[2 * i + j], by_time, 1e-12 * 30) << method << " " << i << " column " << d;
        EXPECT_NEAR(by[4 * i + j], s * by_time + of_height, 1e-12 * 30) << method << " " << i << " column " << d;
        EXPECT_NEAR(by[4 * i + 2 + j], -g * by_time + of_speed, 1e-12 * 30) << method << " " << i << " column " << d;
      };
      forwards(0, 1 / r, 0, 0);
      forwards(1, by_w, 0, 1);
      forwards(2, by_g, 0, -time);
      forwards(3, -by_w, time, 0);
      EXPECT_NEAR(sensitivities.end_states[2 * i + 1], v0 - g * time, 1e-12 * 30);
      EXPECT_EQ(sensitivities.records[i].end_time, gradients.records[i].end_time);
      EXPECT_EQ(gradients.records[i].status, Status::terminated);
      expect(gradients.initial_states[2 * i], 1 / r, 0, "height");
      expect(gradients.initial_states[2 * i + 1], by_w, 3, "speed");
      expect(gradients.parameters[2 * i], by_g, -3 * time, "gravity");
      expect(gradients.parameters[2 * i + 1], -by_w, 0, "floor");
    }
    EXPECT_NEAR(gradients.loss, sum, 1e-12 * 40 * 30) << method;
  }
}

// The same floor as a graph: the same operations, and 0 and 1 for what dual numbers say of them. Many threads at once
// ask for its first derivative.
TEST(EventGradient, of_an_event_that_is_a_graph_is_that_of_the_same_function) {
  Problem problem = thrown(400);
  const EndLoss loss = [](std::size_t, std::span<const double>, const TrajectoryEnd& end, EndSlopes& slopes) {
    slopes.end_time = 2;
    slopes.end_state[1] = 3;
    return 2 * end.time + 3 * end.state[1];
  };
  Options options = f64("tsit5", StepControl::per_trajectory);
  options.threads = 4;
  const Gradients expected = solve_with_gradients(problem, options, loss);
  using graph::Binary, graph::BinaryKind, graph::Columns;
  graph::Graph floor;
  floor.inputs = {{"u", 0, 2}, {"p", 1, 2}, {"t", 2, 1}};
  floor.nodes = {{"height", Columns{{0}}, {0}},
                 {"speed", Columns{{1}}, {1}},
                 {"floor", Binary{BinaryKind::multiply}, {4, 2}},
                 {"above", Binary{BinaryKind::subtract}, {3, 5}}};
  floor.outputs = {{"above", 6, 1}};
  problem.event = TerminalEvent{graph_function(floor, 2, "above")};
  const Gradients found = solve_with_gradients(problem, options, loss);
  EXPECT_EQ(found.loss, expected.loss);
  EXPECT_EQ(found.initial_states, expected.initial_states);
  EXPECT_EQ(found.parameters, expected.parameters);
}

// Without an event the end is a save point like any other, whatever decides about the steps.
TEST(EventGradient, of_an_end_state_is_that_of_a_state_saved_at_the_end) {
  const Case c = lorenz_case();
  const Problem problem = ensemble(c, 34);
  const std::size_t last = problem.save_points() - 1;  // at the end
  const EndLoss end_loss = [](std::size_t i, std::span<const double>, const TrajectoryEnd& end, EndSlopes& slopes) {
    EXPECT_FALSE(end.terminated);
    slopes.end_state[1] = coefficient(i, 1);
    return slopes.end_state[1] * end.state[1];
  };
  const TrajectoryLoss saved_loss = [last](std::size_t i, std::span<const double> states, std::span<double> slopes) {
    slopes[3 * last + 1] = coefficient(i, 1);
    return slopes[3 * last + 1] * states[3 * last + 1];
  };
  for (const StepControl control : {StepControl::common, StepControl::per_trajectory, StepControl::fixed}) {
    const Options options = f64("tsit5", control);
    const Gradients end = solve_with_gradients(problem, options, end_loss);
    const Gradients saved = solve_with_gradients(problem, options, saved_loss);
    EXPECT_EQ(end.loss, saved.loss) << static_cast<int>(control);
    EXPECT_EQ(end.initial_states, saved.initial_states) << static_cast<int>(control);
  }
}

// Saved states before the event count as without it; a squared error leaves out those behind it.
TEST(EventGradient, counts_the_states_that_were_reached) {
  Problem problem = thrown(3);
  const Options options = f64("tsit5", StepControl::fixed);
  const Gradients stopped = solve_with_gradients(problem, options, SquaredError{.targets = Numbers(3 * 3 * 2, 0.25)});
  problem.event.reset();
  problem.save_times.pop_back();
  const Gradients free = solve_with_gradients(problem, options, SquaredError{.targets = Numbers(3 * 2 * 2, 0.25)});
  EXPECT_NEAR(stopped.loss, free.loss, 1e-12 * free.loss);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(stopped.initial_states[i], free.initial_states[i], 1e-12 * 100) << i;
  }
}

// Through a net and adaptive steps: the plain replay in long double, its root by bisection on the interpolant, and
// central differences with e = 1e-6: their error is e^2 times third derivatives, some 1e-11, and 1e-19 / 1e-6.
TEST(EventGradient, agrees_with_long_double_differences_of_a_nets_event) {
  const Case c = hybrid_case();
  Problem problem = ensemble(c, 3);
  problem.event = TerminalEvent{differentiable_event_function<3, 3>(
      "height", [](auto t, const auto& u, const auto& p) { return u[0] * u[0] + t * p[2] - 1.05 * p[0]; })};
  const EndLoss end_loss = [](std::size_t trajectory, std::span<const double>, const TrajectoryEnd& end,
                              EndSlopes& slopes) {
    EXPECT_TRUE(end.terminated);
    slopes.end_time = 1.5;
    double sum = 1.5 * end.time;
    for (std::size_t i = 0; i < 3; ++i) {
      slopes.end_state[i] = coefficient(trajectory, i);
      sum += slopes.end_state[i] * end.state[i];
    }
    return sum;
  };
  const Gradients gradients = solve_with_gradients(problem, f64("tsit5", StepControl::per_trajectory), end_loss,
                                                   {.keep = GradientOptions::Keep::steps});
  const Direction direction(problem, 8);
  using Long = long double;
  const auto at = [&](Long e) {
    Long sum = 0;
    std::vector<Long> w;
    const Numbers weights = problem.rhs->weights();
    for (std::size_t i = 0; i < weights.size(); ++i) w.push_back(weights[i] + e * direction.w[i]);
    const auto f = [&](double t, const std::vector<Long>& y, const std::vector<Long>& q) {
      return plain_rhs<Long>(c, t, y, q, w);
    };
    for (std::size_t i = 0; i < 3; ++i) {
      std::vector<Long> u, p;
      for (std::size_t k = 3 * i; k < 3 * i + 3; ++k) {
        u.push_back(problem.initial_states[k] + e * direction.u[k]);
        p.push_back(problem.parameters[k] + e * direction.p[k]);
      }
      const std::vector<AcceptedStep>& steps = gradients.steps[i];
      const auto state = [&](double t) {
        return replay<Long>(method("tsit5"), f, u, p, steps, std::span<const double>(&t, 1));
      };
      const auto event = [&](double t) {
        const auto y = state(t);
        return y[0] * y[0] + t * p[2] - 1.05L * p[0];
      };
      double low = steps.back().t, high = steps.back().t_new;
      while (std::nextafter(low, high) < high) {
        const double middle = 0.5 * (low + high);
        (event(middle) >= 0 ? high : low) = middle;
      }
      // Times are float64 in a replay: the root in long double lies on the line through both of the last values.
      const Long a = event(low), b = event(high), part = a / (a - b), width = Long(high) - Long(low);
      const auto before = state(low), after = state(high);
      sum += 1.5L * (low + part * width);
      for (std::size_t k = 0; k < 3; ++k) sum += coefficient(i, k) * (before[k] + part * (after[k] - before[k]));
    }
    return sum;
  };
  const auto difference = static_cast<double>((at(1e-6L) - at(-1e-6L)) / 2e-6L);
  double magnitude = 0;
  const double along = direction.along(gradients, magnitude);
  EXPECT_NEAR(along, difference, 1e-8 * magnitude);
  EXPECT_NEAR(gradients.loss, static_cast<double>(at(0)), 1e-10 * std::fabs(gradients.loss));
}

TEST(EventGradient, has_the_same_bits_for_any_threads_targets_and_memory) {
  const Problem problem = thrown(70);
  const EndLoss loss = [](std::size_t, std::span<const double>, const TrajectoryEnd& end, EndSlopes& slopes) {
    slopes.end_time = 1;
    slopes.end_state[1] = -2;
    return end.time - 2 * end.state[1];
  };
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    Options options = f64("tsit5", StepControl::fixed);
    options.precision = precision;
    const Gradients one = solve_with_gradients(problem, options, loss);
    for (const CpuTarget target : available_cpu_targets()) {
      options.cpu_target = target;
      options.threads = 2;
      const Gradients other = solve_with_gradients(problem, options, loss, {.memory_bytes = 20000});
      EXPECT_EQ(other.loss, one.loss) << to_string(target);
      EXPECT_EQ(other.initial_states, one.initial_states) << to_string(target);
      EXPECT_EQ(other.parameters, one.parameters) << to_string(target);
    }
  }
}

// A budget that does not hold a sample's records sends few trajectories the way of tiles: the sums of each number are
// those of some thousand products in another order.
TEST(EventGradient, few_trajectories_keep_to_a_small_budget) {
  const Case c = net_case();
  const Problem problem = ensemble(c, 2);
  const Options options = f64("tsit5", StepControl::per_trajectory);
  const TrajectoryLoss loss = linear_loss;
  const Gradients plenty = solve_with_gradients(problem, options, loss);
  const Gradients little = solve_with_gradients(problem, options, loss, {.memory_bytes = 100'000});
  EXPECT_EQ(little.loss, plenty.loss);
  double largest = 0;
  for (const double w : plenty.weights) largest = std::max(largest, std::fabs(w));
  for (std::size_t i = 0; i < plenty.weights.size(); ++i) {
    EXPECT_NEAR(little.weights[i], plenty.weights[i], 1e-12 * largest) << i;
  }
  EXPECT_THAT(GradientSolver(problem, options, loss).explain()[0], ::testing::HasSubstr("one by one"));
  EXPECT_THAT(GradientSolver(problem, options, loss, {.memory_bytes = 100'000}).explain()[0],
              ::testing::Not(::testing::HasSubstr("one by one")));
}

TEST(EventGradient, refuses_what_it_cannot_differentiate) {
  Problem problem = thrown(2);
  const SquaredError loss{.targets = Numbers(12)};
  problem.event->function = event_function<2, 2>("opaque", [](auto, const auto& u, const auto&) { return u[0]; });
  try {
    solve_with_gradients(problem, f64("tsit5", StepControl::fixed), loss);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.field(), "problem.event");
    EXPECT_THAT(error.what(), ::testing::HasSubstr("differentiable_event_function"));
  }
}

}  // namespace
}  // namespace lockstep::ode
