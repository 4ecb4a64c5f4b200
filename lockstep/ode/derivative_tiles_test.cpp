// What derivatives of solves hand to a right-hand side, and what the lanes of a tile leave to each other.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "lockstep/kernels/mlp/mlp.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/sensitivity.h"
#include "lockstep/ode/testing/gradient_cases.h"
#include "lockstep/ode/testing/watched_derivatives.h"

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

TEST(DerivativeTiles, arrays_begin_at_registers) {
  for (const testing::Case& c : testing::all_cases()) {
    SCOPED_TRACE(c.name);
    std::atomic<int> crooked{0};
    Problem problem = testing::ensemble(c, 40);
    problem.rhs = std::make_shared<testing::WatchedDerivatives>(
        problem.rhs, [&](auto inner) { return std::make_shared<WatchedTile>(std::move(inner), crooked); });
    problem.impulses = {{.time = 0.2, .component = 0, .change = 0.1, .factor = 0.9},
                        {.time = 0.37, .component = 1, .change = -0.2}};
    const Options options = f64("tsit5", StepControl::per_trajectory);
    solve_with_gradients(problem, options, TrajectoryLoss(testing::linear_loss));
    solve_with_sensitivities(problem, options);
    EXPECT_EQ(crooked, 0);
  }
}

// u' = -u - 60 max(u - 10, 0) + 1e400 max(1 - |t - 0.05| / 1e-6, 0), for positive u: a net that is infinite around one
// time alone, which a step of 0.5 from 0 meets in a stage that only its interpolant needs (c = 0.1).
Rhs with_a_spike() {
  const Activation relu{ActivationKind::relu};
  Mlp mlp;
  mlp.layers = {
      {.inputs = 2,
       .outputs = 4,
       .weights = {1, 0, 1, 0, 0, 1e6, 0, -1e6},
       .bias = {0, -10, -0.05e6, 0.05e6},
       .activation = relu},
      {.inputs = 4,
       .outputs = 3,
       .weights = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, -1, -1},
       .bias = {0, 0, 1},
       .activation = relu},
      {.inputs = 3, .outputs = 3, .weights = {1, 0, 0, 0, 1, 0, 0, 0, 1e200}, .bias = {0, 0, 0}, .activation = relu},
      {.inputs = 3, .outputs = 3, .weights = {1, 0, 0, 0, 1, 0, 0, 0, 1e200}, .bias = {0, 0, 0}, .activation = relu},
      {.inputs = 3, .outputs = 1, .weights = {-1, -60, 1}, .bias = {0}, .activation = {}}};
  return net(mlp, {.name = "net", .with_time = true});
}

// Every other lane gives up a step in whose interpolant it meets the spike; its neighbours need that of their own
// steps, elsewhere in time.
TEST(DerivativeTiles, a_step_that_a_lane_gives_up_hurts_no_gradient) {
  Problem problem;
  problem.rhs = with_a_spike();
  problem.start_times.clear();
  problem.save_times_per_trajectory = true;
  for (int i = 0; i < 40; ++i) {
    const bool gives_up = i % 2 == 1;
    problem.initial_states.push_back(gives_up ? 20 : 1);
    problem.start_times.push_back(gives_up ? 0 : 1);
    problem.end_times.push_back(gives_up ? 0.6 : 2);
    for (const double t : {gives_up ? 0.3 : 1.3, gives_up ? 0.6 : 2.0}) problem.save_times.push_back(t);
  }
  Options options = f64("dop853", StepControl::per_trajectory);
  options.initial_step = 0.5;
  const Gradients made = solve_with_gradients(problem, options, TrajectoryLoss(testing::linear_loss));
  ASSERT_EQ(made.records[1].status, Status::success);
  EXPECT_GT(made.records[1].rejected, 0);
  EXPECT_EQ(made.records[0].rejected, 0);
  for (const double slope : made.weights) EXPECT_TRUE(std::isfinite(slope));
  const double decay = testing::coefficient(0, 0) * std::exp(-0.3) + testing::coefficient(0, 1) * std::exp(-1.0);
  EXPECT_NEAR(made.initial_states[0], decay, 1e-4);
}

}  // namespace
}  // namespace lockstep::ode
