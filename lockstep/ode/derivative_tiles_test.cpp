// What derivatives of solves hand to a right-hand side, and what the lanes of a tile leave to each other.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "lockstep/kernels/graph/graph.h"
#include "lockstep/ode/detail/knots_of_inner.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/sensitivity.h"
#include "lockstep/ode/testing/gradient_cases.h"

namespace lockstep::ode {
namespace {

using testing::f64;

// Counts arrays that do not begin at 64 bytes: registers are loaded from them.
class WatchedTile final : public DifferentiableTile<double> {
 public:
  WatchedTile(std::shared_ptr<DifferentiableTile<double>> inner, std::atomic<int>& crooked)
      : inner_(std::move(inner)), crooked_(crooked) {}

  void evaluate(const TileView<double>& tile, std::byte* workspace) const override {
    watch({tile.in, tile.parameters, tile.out, workspace});
    inner_->evaluate(tile, workspace);
  }
  void evaluate_recording(const TileView<double>& tile, std::byte* record, std::byte* workspace) const override {
    watch({tile.in, tile.parameters, tile.out, record, workspace});
    inner_->evaluate_recording(tile, record, workspace);
  }
  void reverse(const ReverseTileView<double>& tile, std::byte* workspace) const override {
    watch({tile.in, tile.parameters, tile.out_bar, tile.in_bar, tile.parameter_bar, tile.record, tile.cotangents,
           workspace});
    inner_->reverse(tile, workspace);
  }
  std::size_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  std::size_t reverse_workspace_bytes() const override { return inner_->reverse_workspace_bytes(); }
  std::size_t record_bytes() const override { return inner_->record_bytes(); }
  std::size_t cotangent_bytes() const override { return inner_->cotangent_bytes(); }

 private:
  void watch(std::initializer_list<const void*> arrays) const {
    for (const void* array : arrays) crooked_ += reinterpret_cast<std::uintptr_t>(array) % 64 != 0 ? 1 : 0;
  }
  std::shared_ptr<DifferentiableTile<double>> inner_;
  std::atomic<int>& crooked_;
};

class Watched final : public detail::KnotsOfInner {
 public:
  Watched(Rhs inner, std::atomic<int>& crooked) : KnotsOfInner(std::move(inner)), crooked_(crooked) {}

  std::size_t components() const override { return inner_->components(); }
  std::size_t parameters() const override { return inner_->parameters(); }
  std::string description() const override { return "watched"; }
  std::string digest() const override { return inner_->digest(); }
  std::shared_ptr<const TileFunction<float>> lower_f32(CpuTarget target) const override {
    return inner_->lower_f32(target);
  }
  std::shared_ptr<const TileFunction<double>> lower_f64(CpuTarget target) const override {
    return inner_->lower_f64(target);
  }
  std::shared_ptr<DifferentiableTile<double>> differentiable_f64(CpuTarget target) const override {
    return std::make_shared<WatchedTile>(inner_->differentiable_f64(target), crooked_);
  }

 private:
  std::atomic<int>& crooked_;
};

TEST(DerivativeTiles, arrays_begin_at_registers) {
  for (const testing::Case& c : testing::all_cases()) {
    SCOPED_TRACE(c.name);
    std::atomic<int> crooked{0};
    Problem problem = testing::ensemble(c, 40);
    problem.rhs = std::make_shared<Watched>(problem.rhs, crooked);
    problem.impulses = {{.time = 0.2, .component = 0, .change = 0.1, .factor = 0.9},
                        {.time = 0.37, .component = 1, .change = -0.2}};
    const Options options = f64("tsit5", StepControl::per_trajectory);
    solve_with_gradients(problem, options, TrajectoryLoss(testing::linear_loss));
    solve_with_sensitivities(problem, options);
    EXPECT_EQ(crooked, 0);
  }
}

// u' = exp(800 - 800 ((t - 0.05) / 1e-6)^2) - p u: what is infinite at one time alone, which a step of 0.5 from 0 meets
// in a stage that only its interpolant needs (c = 0.1).
Rhs with_a_spike() {
  graph::Graph g;
  g.inputs = {{"u", 0, 1}, {"p", 1, 1}, {"t", 2, 1}};
  const auto add = [&](graph::Operation operation, std::vector<std::size_t> inputs) {
    g.nodes.push_back({"n" + std::to_string(g.nodes.size()), std::move(operation), std::move(inputs)});
    return g.inputs.size() + g.nodes.size() - 1;
  };
  const std::size_t from = add(graph::Dense{1, 1, {1e6}, {-0.05e6}}, {2});
  const std::size_t square = add(graph::Binary{graph::BinaryKind::multiply}, {from, from});
  const std::size_t spike =
      add(graph::Unary{graph::UnaryKind::exp}, {add(graph::Dense{1, 1, {-800}, {800}}, {square})});
  g.outputs = {{"du",
                add(graph::Binary{graph::BinaryKind::subtract},
                    {spike, add(graph::Binary{graph::BinaryKind::multiply}, {1, 0})}),
                1}};
  return net(g);
}

// Lane 1 gives up a step in whose interpolant it meets the spike; lane 0 needs that of its own step, elsewhere in time.
TEST(DerivativeTiles, a_lane_that_gives_up_a_step_is_not_hurt_by_what_it_met_there) {
  Problem problem;
  problem.rhs = with_a_spike();
  problem.initial_states = {1, 1};
  problem.parameters = {1, 60};
  problem.start_times = {1, 0};
  problem.end_times = {2, 0.04};
  problem.save_times = {1.3, 2, 0.03, 0.04};
  problem.save_times_per_trajectory = true;
  Options options = f64("dop853", StepControl::per_trajectory);
  options.initial_step = 0.5;
  const Gradients both = solve_with_gradients(problem, options, TrajectoryLoss(testing::linear_loss));
  ASSERT_EQ(both.records[1].status, Status::success);
  EXPECT_GT(both.records[1].rejected, 0);
  EXPECT_EQ(both.records[0].rejected, 0);
  const double exact = testing::coefficient(1, 0) * std::exp(-60 * 0.03) + testing::coefficient(1, 1) * std::exp(-2.4);
  EXPECT_NEAR(both.initial_states[1], exact, 1e-4);
}

}  // namespace
}  // namespace lockstep::ode
