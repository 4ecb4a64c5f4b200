// Linearly implicit solves of many equations that depend on few each: the order and the band that their pattern gives,
// bits of the plain reference, and derivatives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/jacobian_tile.h"
#include "lockstep/ode/linear_layout.h"
#include "lockstep/ode/reference.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/sensitivity.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/test_tile.h"
#include "lockstep/ode/testing/jumps.h"

namespace lockstep::ode {
namespace {

using testing::expect_same;
using Pattern = std::vector<std::vector<std::size_t>>;

Pattern tridiagonal(std::size_t n) {
  Pattern pattern(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i - std::min<std::size_t>(i, 1); j < std::min(n, i + 2); ++j) pattern[i].push_back(j);
  }
  return pattern;
}

// u_1 .. u_n, v_1 .. v_n, each beside its neighbours and its partner.
Pattern two_species(std::size_t cells) {
  Pattern pattern(2 * cells);
  for (std::size_t i = 0; i < 2 * cells; ++i) {
    const std::size_t cell = i % cells, first = i - cell;
    if (cell > 0) pattern[i].push_back(i - 1);
    pattern[i].push_back(i);
    if (cell + 1 < cells) pattern[i].push_back(i + 1);
    pattern[i].push_back(first == 0 ? cells + cell : cell);
  }
  return pattern;
}

// Circles of three that know nothing of each other, one in three without a diagonal.
Pattern circles(std::size_t count) {
  Pattern pattern;
  for (std::size_t i = 0; i < 3 * count; ++i) {
    pattern.push_back({i / 3 * 3 + (i + 1) % 3});
    if (i % 3 != 0) pattern.back().push_back(i);
  }
  return pattern;
}

// Two diagonals below the main one and one above: rows change places over a distance.
Pattern lopsided(std::size_t n) {
  Pattern pattern(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i - std::min<std::size_t>(i, 2); j < std::min(n, i + 2); ++j) pattern[i].push_back(j);
  }
  return pattern;
}

std::vector<std::size_t> shuffled(std::size_t n) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < n; ++i) order.push_back(i);
  std::mt19937 random(5);
  for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

Pattern in_order(const Pattern& pattern, const std::vector<std::size_t>& name) {
  Pattern result(pattern.size());
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    for (const std::size_t j : pattern[i]) result[name[i]].push_back(name[j]);
  }
  return result;
}

// Every entry has a place of its own.
void expect_room(const Pattern& pattern) {
  const LinearLayout layout = LinearLayout::of(pattern);
  ASSERT_EQ(layout.size(), pattern.size());
  std::set<std::size_t> components(layout.order().begin(), layout.order().end()), used;
  EXPECT_EQ(components.size(), pattern.size());
  for (std::size_t i = 0; i < layout.size(); ++i) {
    EXPECT_EQ(layout.place(layout.order()[i]), i);
    for (std::size_t j = layout.columns_begin(i); j < layout.columns_end(i); ++j) {
      EXPECT_LT(layout.at(i, j), layout.entries());
      EXPECT_TRUE(used.insert(layout.at(i, j)).second) << i << ", " << j;
    }
    for (const std::size_t component : pattern[layout.order()[i]]) {
      const std::size_t j = layout.place(component);
      EXPECT_GE(j, layout.columns_begin(i));
      EXPECT_LT(j, layout.columns_end(i));
      EXPECT_LT(i, layout.rows_end(j));
      EXPECT_GE(i, layout.rows_begin(j));
    }
  }
}

std::size_t row_of(const Pattern& pattern) { return LinearLayout::of(pattern).entries() / pattern.size(); }

TEST(LinearLayout, has_room_for_what_a_pattern_tells) {
  for (const std::size_t n : {1u, 2u, 8u, 33u, 100u}) {
    for (const Pattern& pattern : {tridiagonal(n), two_species(n), circles(n), lopsided(n), Pattern(n)}) {
      expect_room(pattern);
      expect_room(in_order(pattern, shuffled(pattern.size())));
    }
  }
  std::mt19937 random(11);
  for (int repeat = 0; repeat < 50; ++repeat) {
    Pattern pattern(2 + random() % 60);
    for (auto& row : pattern) {
      for (std::size_t count = random() % 3; count > 0; --count) row.push_back(random() % pattern.size());
    }
    expect_room(pattern);
  }
}

TEST(LinearLayout, a_band_is_found_in_any_order) {
  for (const std::size_t n : {8u, 100u}) {
    EXPECT_EQ(row_of(tridiagonal(n)), 4u);
    EXPECT_EQ(row_of(in_order(tridiagonal(n), shuffled(n))), 4u);
  }
  EXPECT_EQ(LinearLayout::of(tridiagonal(50)).order()[7], 7u) << "a good order stays";
  EXPECT_LE(row_of(two_species(100)), 7u);
  EXPECT_LE(row_of(in_order(two_species(100), shuffled(200))), 10u);
  EXPECT_LE(row_of(in_order(circles(30), shuffled(90))), 7u);
  EXPECT_EQ(row_of(Pattern(20)), 1u);
}

// A triangle needs no exchanges, whichever it is.
TEST(LinearLayout, what_depends_one_way_is_solved_from_its_end) {
  Pattern chain(20);
  for (std::size_t i = 1; i < 20; ++i) chain[i] = {i - 1, i};
  EXPECT_EQ(row_of(chain), 2u);
}

TEST(LinearLayout, is_dense_where_a_band_is_no_narrower) {
  Pattern arrow(40);
  for (std::size_t i = 0; i < 40; ++i) arrow[i] = {i, 20};
  for (std::size_t j = 0; j < 40; ++j) arrow[20].push_back(j);
  EXPECT_FALSE(LinearLayout::of(arrow).is_band());
  EXPECT_FALSE(LinearLayout::of(tridiagonal(7)).is_band());
  EXPECT_FALSE(LinearLayout::of({}).is_band());
  EXPECT_TRUE(LinearLayout::of(tridiagonal(8)).is_band());
}

// du_i = sum of c_ij sin(u_j + p) over the pattern: entries differ from lane to lane, and rows are exchanged.
Rhs coupled(const Pattern& pattern, double size = 40) {
  graph::Graph graph;
  const std::size_t n = pattern.size();
  graph.inputs = {{"u", 0, n}, {"p", 1, 1}};
  const auto add = [&](graph::Operation operation, std::vector<std::size_t> inputs) {
    graph.nodes.push_back({"n" + std::to_string(graph.nodes.size()), std::move(operation), std::move(inputs)});
    return graph.inputs.size() + graph.nodes.size() - 1;
  };
  const std::size_t moved = add(graph::Binary{graph::BinaryKind::add}, {0, 1});
  const std::size_t waves = add(graph::Activate{{ActivationKind::sin}}, {moved});
  std::vector<std::size_t> rows;
  std::mt19937 random(3);
  for (const std::vector<std::size_t>& columns : pattern) {
    std::size_t sum = add(graph::Constant{{0.25}}, {});
    for (const std::size_t column : columns) {
      const double coefficient = size * (static_cast<double>(random() % 2001) / 1000 - 1);
      const std::size_t one = add(graph::Columns{{column}}, {waves});
      const std::size_t factor = add(graph::Constant{{coefficient}}, {});
      sum = add(graph::Binary{graph::BinaryKind::add},
                {sum, add(graph::Binary{graph::BinaryKind::multiply}, {one, factor})});
    }
    rows.push_back(sum);
  }
  graph.outputs = {{"du", add(graph::Concatenate{}, rows), n}};
  return net(std::move(graph));
}

Problem problem_of(Rhs rhs, std::size_t count) {
  Problem problem;
  const std::size_t n = rhs->components();
  problem.rhs = std::move(rhs);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t c = 0; c < n; ++c) problem.initial_states.push_back(std::sin(static_cast<double>(7 * i + c * c)));
    problem.parameters.push_back(std::cos(static_cast<double>(i)));
  }
  problem.end_times = {0.1};
  problem.save_times = {0.03, 0.1};
  return problem;
}

Options options_for(Precision precision, StepControl control = StepControl::per_trajectory) {
  Options options{.method = "rodas5p", .control = control, .precision = precision, .threads = 1};
  options.rtol = options.atol = precision == Precision::f64 ? 1e-6 : 1e-3;
  if (control == StepControl::fixed) options.dt = 0.02;
  return options;
}

void expect_the_bits_of_the_reference(const Problem& problem) {
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    for (const StepControl control : {StepControl::per_trajectory, StepControl::fixed}) {
      Options options = options_for(precision, control);
      const Solution expected = solve_reference(problem, options);
      EXPECT_EQ(expected.record(0).status, Status::success);
      for (const CpuTarget target : available_cpu_targets()) {
        options.cpu_target = target;
        expect_same(expected, solve(problem, options), std::string(to_string(target)));
      }
    }
  }
}

TEST(BandedSystems, have_the_bits_of_the_reference) {
  for (const Pattern& pattern : {tridiagonal(21), lopsided(24), circles(8), two_species(12),
                                 in_order(tridiagonal(21), shuffled(21)), in_order(two_species(16), shuffled(32))}) {
    SCOPED_TRACE(pattern.size());
    ASSERT_TRUE(LinearLayout::of(pattern).is_band());
    expect_the_bits_of_the_reference(problem_of(coupled(pattern), 5));
  }
  expect_the_bits_of_the_reference(problem_of(coupled(lopsided(17)), 37));
}

TEST(BandedSystems, with_rows_and_columns_that_are_empty_or_full_have_the_bits_of_the_reference) {
  Pattern empty = tridiagonal(20);
  empty[4].clear();
  empty[11] = {3};
  for (auto& row : empty) std::erase(row, 15u);
  ASSERT_TRUE(LinearLayout::of(empty).is_band());
  expect_the_bits_of_the_reference(problem_of(coupled(empty), 3));
  Pattern full = tridiagonal(20);
  full[7] = {};
  for (std::size_t i = 0; i < 20; ++i) {
    full[7].push_back(i);
    if (i != 7) full[i].push_back(2);
  }
  expect_the_bits_of_the_reference(problem_of(coupled(full), 3));
}

// What is not finite spreads as far as in the reference, and ends the same trajectories.
TEST(BandedSystems, trajectories_that_are_not_finite_end_as_in_the_reference) {
  Problem problem = problem_of(coupled(tridiagonal(16)), 6);
  problem.initial_states[16 + 3] = 1e300;
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    const Options options = options_for(precision);
    expect_same(solve_reference(problem, options), solve(problem, options), "not finite");
  }
}

TEST(BandedSystems, jacobians_are_limits_of_differences) {
  const Pattern pattern = in_order(two_species(10), shuffled(20));
  const Rhs rhs = coupled(pattern, 1);
  const CpuTarget target = available_cpu_targets().back();
  const auto jacobian = lower_jacobian<double>(*rhs, target);
  const LinearLayout& layout = jacobian->layout();
  ASSERT_TRUE(layout.is_band());
  for (const int lanes : {1, 9, 32}) {
    Tile<double> tile(*rhs), before(*rhs), after(*rhs);
    AlignedBuffer<double> by_state(layout.entries() * kTileLanes), by_time(20 * kTileLanes);
    std::ranges::fill(by_state.span(), 77);  // of an evaluation before
    AlignedBuffer<std::byte> workspace(jacobian->workspace_bytes());
    jacobian->evaluate({tile.t.data(), tile.in.data(), tile.parameters.data(), nullptr, lanes}, by_state.data(),
                       by_time.data(), workspace.data());
    constexpr double kStep = 1e-5;  // the error: kStep^2 / 6 of third derivatives of size 1, 1e-16 / kStep of rounding
    for (std::size_t column = 0; column < 20; ++column) {
      for (std::size_t lane = 0; lane < kTileLanes; ++lane) {
        before.in[column * kTileLanes + lane] = tile.in[column * kTileLanes + lane] - kStep;
        after.in[column * kTileLanes + lane] = tile.in[column * kTileLanes + lane] + kStep;
      }
      before.evaluate(*rhs, target);
      after.evaluate(*rhs, target);
      for (std::size_t row = 0; row < 20; ++row) {
        const std::size_t i = layout.place(row), j = layout.place(column);
        const bool stored = j >= layout.columns_begin(i) && j < layout.columns_end(i);
        for (int lane = 0; lane < lanes; ++lane) {
          const double slope = (after.output(row, lane) - before.output(row, lane)) / (2 * kStep);
          const double entry = stored ? by_state[layout.at(i, j) * kTileLanes + static_cast<std::size_t>(lane)] : 0;
          ASSERT_NEAR(entry, slope, 1e-9) << row << ", " << column;
        }
      }
      before = Tile<double>(*rhs);
      after = Tile<double>(*rhs);
    }
  }
}

constexpr std::size_t kCells = 12;

// Diffusion with a reaction a cell, with a band or, behind a layer whose weights happen to be zero, with a matrix.
Rhs diffusion(bool has_band) {
  graph::Graph graph;
  graph.inputs = {{"u", 0, kCells}, {"p", 1, 1}};
  const auto add = [&](graph::Operation operation, std::vector<std::size_t> inputs) {
    graph.nodes.push_back({"n" + std::to_string(graph.nodes.size()), std::move(operation), std::move(inputs)});
    return 2 + graph.nodes.size() - 1;
  };
  std::vector<std::size_t> left, right;
  for (std::size_t i = 0; i < kCells; ++i) {
    left.push_back(i == 0 ? 0 : i - 1);
    right.push_back(std::min(kCells - 1, i + 1));
  }
  using graph::Binary;
  using graph::BinaryKind;
  const std::size_t around =
      add(Binary{BinaryKind::add}, {add(graph::Columns{left}, {0}), add(graph::Columns{right}, {0})});
  const std::size_t bent = add(Binary{BinaryKind::subtract}, {around, add(Binary{BinaryKind::add}, {0, 0})});
  const std::size_t flows = add(Binary{BinaryKind::multiply}, {bent, 1});
  std::size_t made = add(Binary{BinaryKind::subtract}, {flows, add(Binary{BinaryKind::multiply}, {0, 0})});
  if (!has_band) {
    const std::size_t nothing =
        add(graph::Dense{kCells, kCells, std::vector<double>(kCells * kCells), std::vector<double>(kCells)}, {0});
    made = add(Binary{BinaryKind::add}, {made, nothing});
  }
  graph.outputs = {{"du", made, kCells}};
  return net(std::move(graph));
}

// Two ways of some 1e4 rounded operations each; the band is solved transposed on the way back.
TEST(BandedSystems, derivatives_are_those_of_the_dense_system) {
  Problem problem = problem_of(diffusion(true), 3);
  for (double& p : problem.parameters) p = 30 + p;
  const Options options = options_for(Precision::f64, StepControl::fixed);
  ASSERT_TRUE(lower_jacobian<double>(*problem.rhs, CpuTarget::scalar)->layout().is_band());
  const SquaredError loss{std::vector<double>(3 * 2 * kCells, 0.25), {}, 1};
  const Gradients band = solve_with_gradients(problem, options, loss);
  const Sensitivities band_forward = solve_with_sensitivities(problem, options);
  problem.rhs = diffusion(false);
  ASSERT_FALSE(lower_jacobian<double>(*problem.rhs, CpuTarget::scalar)->layout().is_band());
  const Gradients dense = solve_with_gradients(problem, options, loss);
  const Sensitivities dense_forward = solve_with_sensitivities(problem, options);
  const auto near = [](const std::vector<double>& a, const std::vector<double>& b) {
    double largest = 0;
    for (const double number : b) largest = std::max(largest, std::abs(number));
    ASSERT_EQ(a.size(), b.size());
    ASSERT_GT(largest, 1e-4);
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-12 * largest) << i;
  };
  near(band.initial_states, dense.initial_states);
  near(band.parameters, dense.parameters);
  near(band_forward.by_initial_state, dense_forward.by_initial_state);
  near(band_forward.by_parameter, dense_forward.by_parameter);
}

// A net in each cell: u_i and p, 5 neurons, one number.
graph::Graph with_nets(double weight) {
  graph::Graph graph;
  graph.inputs = {{"u", 0, kCells}, {"p", 1, 1}};
  const auto add = [&](graph::Operation operation, std::vector<std::size_t> inputs) {
    graph.nodes.push_back({"n" + std::to_string(graph.nodes.size()), std::move(operation), std::move(inputs)});
    return 2 + graph.nodes.size() - 1;
  };
  std::vector<double> hidden, output;
  for (std::size_t i = 0; i < 10; ++i) hidden.push_back(weight + std::sin(static_cast<double>(i)));
  for (std::size_t i = 0; i < 5; ++i) output.push_back(3 * std::cos(static_cast<double>(i)));
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < kCells; ++i) {
    const std::size_t inputs = add(graph::Concatenate{}, {add(graph::Columns{{i}}, {0}), 1});
    const std::size_t neurons =
        add(graph::Activate{{ActivationKind::tanh}}, {add(graph::Dense{2, 5, hidden, {0.1, 0, 0, 0, 0.2}}, {inputs})});
    const std::size_t before = add(graph::Columns{{i == 0 ? 0 : i - 1}}, {0});
    const std::size_t made = add(graph::Dense{5, 1, output, {0.5}}, {neurons});
    const std::size_t decay = add(graph::Binary{graph::BinaryKind::subtract}, {made, add(graph::Columns{{i}}, {0})});
    rows.push_back(add(graph::Binary{graph::BinaryKind::add}, {decay, before}));
  }
  graph.outputs = {{"du", add(graph::Concatenate{}, rows), kCells}};
  return graph;
}

TEST(BandedSystems, of_nets_have_the_bits_of_the_reference_and_in_gradients_those_of_solves) {
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    const Options options = options_for(precision);
    Problem problem = problem_of(net(with_nets(0.3)), 5);
    ASSERT_TRUE(lower_jacobian<double>(*problem.rhs, CpuTarget::scalar)->layout().is_band());
    const Solution first = solve(problem, options);
    expect_same(solve_reference(problem, options), first, "a net a cell");
    std::vector<double> states(5 * 2 * kCells);
    const TrajectoryLoss keep = [&](std::size_t trajectory, std::span<const double> of, std::span<double> gradient) {
      std::ranges::copy(of, states.begin() + static_cast<std::ptrdiff_t>(trajectory * of.size()));
      std::ranges::fill(gradient, 1.0);
      return 0.0;
    };
    const auto expect_states = [&](const Solution& solution) {
      for (std::size_t i = 0; i < states.size(); ++i) {
        const std::size_t c = i % kCells, row = i / kCells;
        ASSERT_EQ(states[i], static_cast<double>(solution.state(row / 2, row % 2, c))) << i;
      }
    };
    GradientSolver solver(problem, options, keep);
    solver.evaluate();
    expect_states(first);
    problem.rhs = net(with_nets(0.7));
    const Solution other = solve(problem, options);
    EXPECT_NE(other.state(0, 1, 0), first.state(0, 1, 0));
    solver.evaluate(problem.rhs->weights());
    expect_states(other);
  }
}

}  // namespace
}  // namespace lockstep::ode
