// Derivatives along a few directions of many components: what they are, and that they take no more transposes for more
// components.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/kernels/graph/graph.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/sensitivity.h"
#include "lockstep/ode/testing/gradient_cases.h"
#include "lockstep/ode/testing/watched_derivatives.h"

namespace lockstep::ode {
namespace {

using testing::f64;

// du_i = p_0 (u_i-1 - 2 u_i + u_i+1) + p_1 u_i (1 - u_i), of the first two cells a net of them and the time beside it.
graph::Graph ring(std::size_t cells) {
  graph::Graph g;
  g.inputs = {{"u", 0, cells}, {"p", 1, 2}, {"t", 2, 1}};
  const auto add = [&](graph::Operation operation, std::vector<std::size_t> inputs) {
    g.nodes.push_back({"n" + std::to_string(g.nodes.size()), std::move(operation), std::move(inputs)});
    return g.inputs.size() + g.nodes.size() - 1;
  };
  const auto both = [&](graph::BinaryKind kind, std::size_t a, std::size_t b) {
    return add(graph::Binary{kind}, {a, b});
  };
  const auto plus = graph::BinaryKind::add, times = graph::BinaryKind::multiply, minus = graph::BinaryKind::subtract;
  std::vector<std::size_t> u, rates;
  for (std::size_t i = 0; i < cells; ++i) u.push_back(add(graph::Columns{{i}}, {0}));
  const std::size_t spread = add(graph::Columns{{0}}, {1}), growth = add(graph::Columns{{1}}, {1});
  const std::size_t one = add(graph::Constant{{1}}, {}), two = add(graph::Constant{{2}}, {});
  const std::size_t layer = add(graph::Dense{3, 2, {0.3, -0.2, 0.5, 0.1, 0.4, -0.6}, {0.05, -0.1}},
                                {add(graph::Concatenate{}, {u[0], u[1], 2})});
  const std::size_t net = add(graph::Activate{{ActivationKind::tanh}}, {layer});
  for (std::size_t i = 0; i < cells; ++i) {
    const std::size_t around = both(plus, u[(i + cells - 1) % cells], u[(i + 1) % cells]);
    const std::size_t diffusion = both(times, spread, both(minus, around, both(times, two, u[i])));
    const std::size_t reaction = both(times, growth, both(times, u[i], both(minus, one, u[i])));
    rates.push_back(both(plus, diffusion, reaction));
    if (i < 2) rates[i] = both(plus, rates[i], add(graph::Columns{{i}}, {net}));
  }
  g.outputs = {{"du", add(graph::Concatenate{}, rates), cells}};
  return g;
}

Problem ring_problem(std::size_t cells, std::size_t trajectories) {
  Problem problem;
  problem.rhs = net(ring(cells));
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(0.2, 0.8);
  for (std::size_t i = 0; i < trajectories * cells; ++i) problem.initial_states.push_back(uniform(random));
  for (std::size_t i = 0; i < trajectories * 2; ++i) problem.parameters.push_back(uniform(random));
  problem.end_times = {1};
  problem.save_times = {0, 0.35, 1};
  return problem;
}

// A change of starts and a parameter, a parameter alone, starts alone; of each trajectory its own.
Directions some_directions(const Problem& problem) {
  Directions directions{{1, 0, Directions::kNoParameter}, {}};
  for (std::size_t i = 0; i < problem.initial_states.size(); ++i) {
    const auto at = static_cast<double>(i);
    directions.initial_states.insert(directions.initial_states.end(), {std::sin(at), 0.0, std::cos(3 * at)});
  }
  return directions;
}

// With L a sum of all saved states, each with a weight, dL along a direction is the sum of these derivatives, and that
// of the gradient's numbers over it. Some 20 steps of seven stages: 1e-12 of the terms' size is some 40 times what
// their roundings of 1.1e-16 add up to.
TEST(ManyComponents, along_directions_derivatives_are_those_of_gradients) {
  for (const std::size_t cells : {5u, 80u}) {  // by transposes, and by the derivative itself
    const Problem problem = ring_problem(cells, 3);
    const Options options = f64("tsit5", StepControl::per_trajectory);
    const Directions directions = some_directions(problem);
    const DirectionalDerivatives found = solve_along(problem, directions, options);
    const auto weight = [](std::size_t i) { return 1 + 0.5 * std::sin(static_cast<double>(7 * i)); };
    const Gradients gradients = solve_with_gradients(
        problem, options, TrajectoryLoss([&](std::size_t, std::span<const double> states, std::span<double> slopes) {
          for (std::size_t i = 0; i < states.size(); ++i) slopes[i] = weight(i);
          return 0.0;
        }));
    const std::size_t row = problem.save_points() * cells, count = directions.count();
    for (std::size_t trajectory = 0; trajectory < 3; ++trajectory) {
      for (std::size_t d = 0; d < count; ++d) {
        double forward = 0, backward = 0, size = 0;
        for (std::size_t i = 0; i < row; ++i) {
          const double term = weight(i) * found.by_direction[(trajectory * row + i) * count + d];
          forward += term;
          size += std::fabs(term);
        }
        for (std::size_t c = trajectory * cells; c < (trajectory + 1) * cells; ++c) {
          const double term = gradients.initial_states[c] * directions.initial_states[c * count + d];
          backward += term;
          size += std::fabs(term);
        }
        backward += directions.along(d, std::span(gradients.parameters).subspan(trajectory * 2, 2));
        EXPECT_NEAR(forward, backward, 1e-12 * size) << cells << " cells, direction " << d;
        EXPECT_GT(std::fabs(forward), 1e-6 * size);
      }
    }
  }
}

// Along directions, 32 of which share a tile where there is one trajectory.
TEST(ManyComponents, of_one_trajectory_they_have_the_bits_of_many) {
  for (const std::size_t cells : {40u, 70u}) {
    const Problem problem = ring_problem(cells, 17);
    for (const char* method : {"tsit5", "rodas5p"}) {
      const Options options = f64(method, StepControl::per_trajectory);
      const Sensitivities all = solve_with_sensitivities(problem, options);
      const Sensitivities one = solve_with_sensitivities(problem.part(16, 1), options);
      const std::size_t row = problem.save_points() * cells;
      for (std::size_t i = 0; i < row * cells; ++i)
        ASSERT_EQ(one.by_initial_state[i], all.by_initial_state[16 * row * cells + i]) << method << " " << i;
      for (std::size_t i = 0; i < row * 2; ++i)
        ASSERT_EQ(one.by_parameter[i], all.by_parameter[16 * row * 2 + i]) << method << " " << i;
    }
  }
}

TEST(ManyComponents, a_direction_along_one_number_is_its_column_to_the_bit) {
  for (const std::size_t cells : {5u, 70u}) {
    const Problem problem = ring_problem(cells, 2);
    const Options options = f64("tsit5", StepControl::per_trajectory);
    const Sensitivities all = solve_with_sensitivities(problem, options);
    Directions directions{{1, Directions::kNoParameter}, std::vector<double>(2 * cells, 0.0)};
    directions.initial_states[2 * 3 + 1] = 1;
    const DirectionalDerivatives some = solve_along(problem, directions, options);
    EXPECT_EQ(some.states, all.states);
    for (std::size_t i = 0; i < all.states.size(); ++i) {
      ASSERT_EQ(some.by_direction[2 * i], all.by_parameter[2 * i + 1]) << i;
      ASSERT_EQ(some.by_direction[2 * i + 1], all.by_initial_state[i * cells + 3]) << i;
    }
  }
}

struct Calls {
  std::atomic<int> forward{0}, reverse{0};
};

// What is asked of the derivatives of `inner`.
class CountedTile final : public DifferentiableTile<double> {
 public:
  CountedTile(std::shared_ptr<DifferentiableTile<double>> inner, Calls& calls)
      : inner_(std::move(inner)), calls_(calls) {}

  void evaluate(const TileView<double>& tile, std::byte* workspace) const override {
    inner_->evaluate(tile, workspace);
  }
  std::size_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  void reverse(const ReverseTileView<double>& tile, std::byte* workspace) const override {
    ++calls_.reverse;
    inner_->reverse(tile, workspace);
  }
  std::size_t reverse_workspace_bytes() const override { return inner_->reverse_workspace_bytes(); }
  std::size_t cotangent_bytes() const override { return inner_->cotangent_bytes(); }
  void prepare_forward() override { inner_->prepare_forward(); }
  bool pushes_forward() const override { return inner_->pushes_forward(); }
  void forward(const ForwardTileView<double>& tile, std::byte* workspace) const override {
    ++calls_.forward;
    inner_->forward(tile, workspace);
  }
  std::size_t forward_workspace_bytes() const override { return inner_->forward_workspace_bytes(); }

 private:
  std::shared_ptr<DifferentiableTile<double>> inner_;
  Calls& calls_;
};

// A tenth of the span by Euler's method: ten steps, whose ends are evaluated as well, and two directions. Two
// trajectories leave 30 lanes free, and directions share an evaluation; 17 leave none to a second direction.
TEST(ManyComponents, a_step_takes_one_derivative_for_each_direction_that_fills_a_tile) {
  for (const std::size_t cells : {100u, 200u}) {
    for (const auto& [trajectories, each] : {std::pair<std::size_t, int>{2, 1}, {17, 2}}) {
      Problem problem = ring_problem(cells, trajectories);
      Calls calls;
      problem.rhs = std::make_shared<testing::WatchedDerivatives>(
          problem.rhs, [&](auto inner) { return std::make_shared<CountedTile>(std::move(inner), calls); });
      Options options = f64("euler", StepControl::fixed);
      options.dt = 0.1;
      solve_along(problem, {{0, 1}, {}}, options);
      EXPECT_EQ(calls.forward, each * 11) << cells;
      EXPECT_EQ(calls.reverse, 0) << cells;
    }
  }
}

TEST(ManyComponents, refuses_directions_of_another_problem) {
  const Problem problem = ring_problem(4, 2);
  EXPECT_THROW(solve_along(problem, {{2}, {}}), Error);
  EXPECT_THROW(solve_along(problem, {{0}, std::vector<double>(3)}), Error);
  EXPECT_NO_THROW(solve_along(problem, {{0}, std::vector<double>(8)}));
}

}  // namespace
}  // namespace lockstep::ode
