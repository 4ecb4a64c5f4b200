#include "lockstep/ode/gradient.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <mutex>
#include <random>

#include "lockstep/core/error.h"
#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/test_tile.h"
#include "lockstep/ode/testing/replay.h"

namespace lockstep::ode {
namespace {

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

Case lorenz_case() { return {"lorenz", system("lorenz"), {1, 0.5, 2}, {10, 28, 8.0 / 3}}; }
Case net_case() { return {"net", net(small_net(5, 3), {.with_time = true}), {0.3, -0.2, 0.5}, {0.7}}; }
Case hybrid_case() {
  return {"lorenz + net", sum(system("lorenz"), net(small_net(3, 3))), {1, 0.5, 2}, {10, 28, 8.0 / 3}};
}
Case pendulum_case() {
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

template <class N>
std::vector<N> plain_rhs(const Case& c, double t, const std::vector<N>& u, const std::vector<N>& p,
                         const std::vector<N>& w) {
  using std::sin;
  const std::string name = c.name;
  if (name == "lorenz") return plain_lorenz(u, p);
  if (name == "net") return plain_net<N>({u[0], u[1], u[2], p[0], N(t)}, w.data(), 3);
  if (name == "pendulum") return {u[1], N(0.25 * t) - p[0] * sin(u[0])};
  auto du = plain_lorenz(u, p);
  const auto more = plain_net<N>(u, w.data(), 3);
  for (std::size_t i = 0; i < 3; ++i) du[i] = du[i] + more[i];
  return du;
}

std::vector<Case> all_cases() { return {lorenz_case(), net_case(), hybrid_case(), pendulum_case()}; }

// Trajectories whose initial states and parameters differ a little.
Problem ensemble(const Case& c, std::size_t trajectories) {
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
double coefficient(std::size_t trajectory, std::size_t i) {
  return std::sin(1.0 + static_cast<double>(3 * trajectory + 7 * i));
}
double linear_loss(std::size_t trajectory, std::span<const double> states, std::span<double> gradient) {
  double sum = 0;
  for (std::size_t i = 0; i < states.size(); ++i) {
    gradient[i] = coefficient(trajectory, i);
    sum += gradient[i] * states[i];
  }
  return sum;
}

Options f64(std::string method, StepControl control) {
  Options options;
  options.method = std::move(method);
  options.control = control;
  options.precision = Precision::f64;
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
    const auto f = [&](double t, const std::vector<N>& y, const std::vector<N>& q) {
      return plain_rhs<N>(c, t, y, q, w);
    };
    const auto states = testing::replay<N>(method(method_name), f, u, p, gradients.steps[trajectory],
                                           {problem.save_times_of(trajectory), problem.save_points()});
    for (std::size_t i = 0; i < states.size(); ++i) loss = loss + N(coefficient(trajectory, i)) * states[i];
  }
  return loss;
}

struct Mode {
  std::string method;
  StepControl control;
};
std::vector<Mode> all_modes() {
  std::vector<Mode> modes;
  for (const auto name : method_names()) {
    modes.push_back({std::string(name), StepControl::fixed});
    if (method(name).error_order == 0) continue;
    modes.push_back({std::string(name), StepControl::per_trajectory});
    modes.push_back({std::string(name), StepControl::common});
  }
  return modes;
}

// Both sides are sums of rounded float64 products along some 1e3 operations a trajectory that grow perturbations by
// less than e^5: 1e-12 of the sum of magnitudes is 4,500 roundings.
TEST(Gradient, agrees_with_dual_numbers_for_every_method_and_control) {
  for (const Case& c : all_cases()) {
    for (const Mode& mode : all_modes()) {
      const Problem problem = ensemble(c, 35);
      const Gradients gradients = solve_with_gradients(
          problem, f64(mode.method, mode.control), TrajectoryLoss(linear_loss), {.keep = GradientOptions::Keep::steps});
      ASSERT_EQ(gradients.left_out, 0u);
      const Direction direction(problem, 11);
      const auto loss = plain_loss<Dual<double>>(c, problem, mode.method, gradients, direction,
                                                 [](double x, double d) { return Dual<double>(x, d); });
      double magnitude = 0;
      const double along = direction.along(gradients, magnitude);
      EXPECT_NEAR(along, loss.slope, 1e-12 * magnitude)
          << c.name << ", " << mode.method << ", control " << static_cast<int>(mode.control);
      EXPECT_NEAR(gradients.loss, loss.value, 1e-12 * (1 + std::fabs(loss.value)) * 35) << c.name << mode.method;
    }
  }
}

// The complex step has no cancellation: Im L(x + i e d) / e with e = 1e-30 is exact to rounding.
TEST(Gradient, agrees_with_the_complex_step_through_adaptive_solves) {
  for (const Case& c : all_cases()) {
    const Problem problem = ensemble(c, 3);
    const Gradients gradients =
        solve_with_gradients(problem, f64("tsit5", StepControl::per_trajectory), TrajectoryLoss(linear_loss),
                             {.keep = GradientOptions::Keep::steps});
    const Direction direction(problem, 5);
    using Complex = std::complex<double>;
    const auto loss = plain_loss<Complex>(c, problem, "tsit5", gradients, direction,
                                          [](double x, double d) { return Complex(x, 1e-30 * d); });
    double magnitude = 0;
    const double along = direction.along(gradients, magnitude);
    EXPECT_NEAR(along, loss.imag() / 1e-30, 1e-12 * magnitude) << c.name;
  }
}

// Central differences with e = 1e-6 in 64-bit mantissas: error e^2 |L'''| / 6, up to 1e-12 times third derivatives
// that chaos makes some 100 times the first, and rounding 1e-19 / 1e-6.
TEST(Gradient, agrees_with_long_double_differences_through_adaptive_solves) {
  const Case c = hybrid_case();
  const Problem problem = ensemble(c, 3);
  const Gradients gradients = solve_with_gradients(problem, f64("dopri5", StepControl::per_trajectory),
                                                   TrajectoryLoss(linear_loss), {.keep = GradientOptions::Keep::steps});
  const Direction direction(problem, 6);
  const auto at = [&](long double e) {
    return plain_loss<long double>(c, problem, "dopri5", gradients, direction,
                                   [e](double x, double d) { return static_cast<long double>(x) + e * d; });
  };
  const auto difference = static_cast<double>((at(1e-6L) - at(-1e-6L)) / 2e-6L);
  double magnitude = 0;
  const double along = direction.along(gradients, magnitude);
  EXPECT_NEAR(along, difference, 1e-9 * magnitude);
}

template <class T>
Numbers saved_states(const Problem& problem, const Options& options) {
  Numbers all(problem.trajectories() * problem.save_points() * problem.rhs->components());
  std::mutex mutex;
  const TrajectoryLoss keep = [&](std::size_t trajectory, std::span<const double> states, std::span<double>) {
    const std::lock_guard lock(mutex);
    std::copy(states.begin(), states.end(), all.begin() + static_cast<std::ptrdiff_t>(trajectory * states.size()));
    return 0.0;
  };
  solve_with_gradients(problem, options, keep);
  return all;
}

TEST(Gradient, states_have_the_bits_of_solve) {
  for (const Case& c : all_cases()) {
    for (const Mode& mode : all_modes()) {
      for (const Precision precision : {Precision::f32, Precision::f64}) {
        const Problem problem = ensemble(c, 35);
        Options options = f64(mode.method, mode.control);
        options.precision = precision;
        const Numbers states = precision == Precision::f32 ? saved_states<float>(problem, options)
                                                           : saved_states<double>(problem, options);
        const Solution solution = solve(problem, options);
        std::size_t at = 0;
        for (std::size_t i = 0; i < problem.trajectories(); ++i) {
          for (std::size_t k = 0; k < problem.save_points(); ++k) {
            for (std::size_t d = 0; d < problem.rhs->components(); ++d, ++at) {
              ASSERT_EQ(states[at], solution.state(i, k, d)) << c.name << " " << mode.method << " trajectory " << i;
            }
          }
        }
      }
    }
  }
}

void expect_same_bits(const Gradients& a, const Gradients& b, const std::string& what) {
  EXPECT_EQ(a.loss, b.loss) << what;
  EXPECT_EQ(a.weights, b.weights) << what;
  EXPECT_EQ(a.initial_states, b.initial_states) << what;
  EXPECT_EQ(a.parameters, b.parameters) << what;
}

TEST(Gradient, has_the_same_bits_on_any_threads_targets_and_memory) {
  for (const Case& c : all_cases()) {
    for (const StepControl control : {StepControl::per_trajectory, StepControl::common, StepControl::fixed}) {
      for (const Precision precision : {Precision::f32, Precision::f64}) {
        Problem problem = ensemble(c, 101);
        problem.parameters = c.parameters;  // shared: summed over trajectories
        Options options = f64("dop853", control);
        options.precision = precision;
        options.threads = 1;
        const Gradients one = solve_with_gradients(problem, options, TrajectoryLoss(linear_loss));
        for (const int threads : {2, 5}) {
          options.threads = threads;
          expect_same_bits(one, solve_with_gradients(problem, options, TrajectoryLoss(linear_loss)), "threads");
        }
        options.threads = 1;
        for (const std::size_t bytes : {std::size_t{0}, std::size_t{40'000}, std::size_t{200'000}}) {
          expect_same_bits(one,
                           solve_with_gradients(problem, options, TrajectoryLoss(linear_loss), {.memory_bytes = bytes}),
                           std::to_string(bytes) + " bytes, " + c.name);
        }
        for (const CpuTarget target : available_cpu_targets()) {
          options.cpu_target = target;
          expect_same_bits(one, solve_with_gradients(problem, options, TrajectoryLoss(linear_loss)),
                           std::string(to_string(target)) + " " + c.name);
        }
      }
    }
  }
}

TEST(Gradient, checkpoints_thinned_out_give_the_same_bits) {
  const Case c = lorenz_case();
  Problem problem = ensemble(c, 2);
  problem.end_times = {3};
  Options options = f64("rk4", StepControl::fixed);
  options.dt = 0.003;
  const Gradients plenty = solve_with_gradients(problem, options, TrajectoryLoss(linear_loss));
  const Gradients little =
      solve_with_gradients(problem, options, TrajectoryLoss(linear_loss), {.memory_bytes = 16'000});
  expect_same_bits(plenty, little, "1,000 steps within 16 kB");
}

TEST(Gradient, squared_error_and_ensemble_loss_are_what_they_say) {
  const Case c = net_case();
  const Problem problem = ensemble(c, 40);
  const Options options = f64("tsit5", StepControl::per_trajectory);
  const std::size_t count = 40 * 6 * 3;
  SquaredError squares{.targets = Numbers(count), .weights = {1, 2, 0.5}, .scale = 0.25};
  for (std::size_t i = 0; i < count; ++i) squares.targets[i] = coefficient(0, i);
  const Gradients built_in = solve_with_gradients(problem, options, squares);
  const EnsembleLoss by_hand = [&](std::span<const double> states, std::span<double> gradient) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double difference = states[i] - squares.targets[i];
      sum += 0.25 * squares.weights[i % 3] * difference * difference;
      gradient[i] = 2 * (0.25 * squares.weights[i % 3]) * difference;
    }
    return sum;
  };
  const Gradients all_at_once = solve_with_gradients(problem, options, by_hand);
  EXPECT_NEAR(built_in.loss, all_at_once.loss, 1e-13 * built_in.loss);  // sums of 720 positive terms
  EXPECT_EQ(built_in.weights, all_at_once.weights);
  EXPECT_EQ(built_in.initial_states, all_at_once.initial_states);
}

TEST(Gradient, a_transpose_by_hand_equals_dual_numbers) {
  const auto f = [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = p[0] * (u[1] - u[0]);
    du[1] = u[0] * (p[1] - u[2]) - u[1];
    du[2] = u[0] * u[1] - p[2] * u[2];
  };
  const auto transpose = [](auto, const auto& u, const auto& p, const auto& bar, auto& u_bar, auto& p_bar) {
    u_bar[0] += -p[0] * bar[0] + (p[1] - u[2]) * bar[1] + u[1] * bar[2];
    u_bar[1] += p[0] * bar[0] - bar[1] + u[0] * bar[2];
    u_bar[2] += -u[0] * bar[1] - p[2] * bar[2];
    p_bar[0] += (u[1] - u[0]) * bar[0];
    p_bar[1] += u[0] * bar[1];
    p_bar[2] -= u[2] * bar[2];
  };
  Problem problem = ensemble(lorenz_case(), 33);
  const Options options = f64("tsit5", StepControl::per_trajectory);
  problem.rhs = differentiable_function<3, 3>("lorenz", f);
  const Gradients duals = solve_with_gradients(problem, options, TrajectoryLoss(linear_loss));
  problem.rhs = function_with_transpose<3, 3>("lorenz", f, transpose);
  const Gradients hand = solve_with_gradients(problem, options, TrajectoryLoss(linear_loss));
  for (std::size_t i = 0; i < duals.parameters.size(); ++i) {
    // Rounding of some 100 steps, amplified less than e^5.
    EXPECT_NEAR(duals.parameters[i], hand.parameters[i], 1e-12 * (1 + std::fabs(hand.parameters[i])));
    EXPECT_NEAR(duals.initial_states[i], hand.initial_states[i], 1e-12 * (1 + std::fabs(hand.initial_states[i])));
  }
}

// u' = u^2 from u0 blows up at t = 1 / u0.
Rhs blow_up() {
  return differentiable_function<1>("blow_up", [](auto, const auto& u, const auto&, auto& du) { du[0] = u[0] * u[0]; });
}

TEST(Gradient, failed_trajectories_are_left_out_or_stop_the_run) {
  Problem problem{.rhs = blow_up(), .initial_states = {0.5, 5, 0.25}, .end_times = {1}, .save_times = {0.5, 1}};
  const Options options = f64("tsit5", StepControl::per_trajectory);
  const Gradients gradients = solve_with_gradients(problem, options, TrajectoryLoss(linear_loss));
  EXPECT_EQ(gradients.left_out, 1u);
  EXPECT_NE(gradients.records[1].status, Status::success);
  EXPECT_EQ(gradients.initial_states[1], 0);
  Problem alone = problem;
  alone.initial_states = {0.5};
  EXPECT_EQ(gradients.initial_states[0],
            solve_with_gradients(alone, options, TrajectoryLoss(linear_loss)).initial_states[0]);
  try {
    solve_with_gradients(problem, options, TrajectoryLoss(linear_loss), {.failed = FailedTrajectories::stop});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.field(), "trajectory 1");
    EXPECT_THAT(error.what(), ::testing::HasSubstr("at t = "));
  }
}

TEST(Gradient, refuses_what_it_cannot_differentiate) {
  Problem problem = ensemble(lorenz_case(), 1);
  problem.rhs =
      function<3, 3>("opaque", [](auto, const auto& u, const auto&, auto& du) { du[0] = du[1] = du[2] = u[0]; });
  EXPECT_THROW(solve_with_gradients(problem, f64("tsit5", StepControl::per_trajectory), TrajectoryLoss(linear_loss)),
               Error);
  problem = ensemble(lorenz_case(), 1);
  problem.event = TerminalEvent{event_function<3, 3>("x", [](auto, const auto& u, const auto&) { return u[0]; })};
  EXPECT_THROW(solve_with_gradients(problem, f64("tsit5", StepControl::per_trajectory), TrajectoryLoss(linear_loss)),
               Error);
  problem.event.reset();
  try {
    solve_with_gradients(problem, f64("tsit5", StepControl::per_trajectory), SquaredError{.targets = {1, 2}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "loss.targets: found 2 numbers, expected 18: 1 trajectories x 6 save points x 3 components");
  }
}

TEST(Gradient, trajectories_with_spans_and_save_times_of_their_own) {
  const Case c = lorenz_case();
  Problem problem = ensemble(c, 3);
  problem.start_times = {0, 1, 0.5};
  problem.end_times = {0.4, 0.8, 0.5};  // one runs backwards, one is over at once
  problem.save_times_per_trajectory = true;
  problem.save_times = {0.4, 0.81, 0.5};
  const Gradients gradients = solve_with_gradients(problem, f64("tsit5", StepControl::per_trajectory),
                                                   TrajectoryLoss(linear_loss), {.keep = GradientOptions::Keep::steps});
  const Direction direction(problem, 3);
  const auto loss = plain_loss<Dual<double>>(c, problem, "tsit5", gradients, direction,
                                             [](double x, double d) { return Dual<double>(x, d); });
  double magnitude = 0;
  const double along = direction.along(gradients, magnitude);
  EXPECT_NEAR(along, loss.slope, 1e-12 * magnitude);
}

}  // namespace
}  // namespace lockstep::ode
