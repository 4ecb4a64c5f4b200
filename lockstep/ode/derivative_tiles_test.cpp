// What derivatives of solves hand to a right-hand side, and what the lanes of a tile leave to each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/kernels/graph/graph.h"
#include "lockstep/kernels/mlp/mlp.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/guard.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/sensitivity.h"
#include "lockstep/ode/testing/gradient_cases.h"
#include "lockstep/ode/testing/graph_maker.h"
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

// What a tile's sweeps leave, of the lanes that are wanted.
template <class T>
struct Swept {
  std::vector<T> in_bar, parameter_bar, time_bar, gradient;
};

// Two evaluations of `lanes` lanes, of which the first `wanted` count, taken back one after the other.
enum class Others { copies, garbage };  // what stands in lanes that do not count
template <class T>
Swept<T> swept(const DifferentiableTile<T>& tile, std::size_t inputs, std::size_t outputs, std::size_t parameters,
               int lanes, int wanted, Others others) {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const auto filled = [&](std::size_t rows, double shift, auto other) {
    AlignedBuffer<T> made(rows * kTileLanes);
    for (std::size_t at = 0; at < made.size(); ++at) {
      const auto number = [&](std::size_t i) { return static_cast<T>(0.9 + 0.3 * testing::coefficient(i, 5) + shift); };
      const auto lane = static_cast<int>(at % kTileLanes);
      made[at] = lane < wanted ? number(at) : other(number(at - at % kTileLanes));
    }
    return made;
  };
  const auto unused_bytes = [](std::size_t count) {
    AlignedBuffer<std::byte> made(count);
    std::ranges::fill(made.span(), std::byte{0xff});  // NaN
    return made;
  };
  const auto input = [&](T copy) { return others == Others::copies ? copy : nan; };
  const auto cotangent = [&](T) { return others == Others::copies ? T(0) : nan; };
  const AlignedBuffer<T> p = filled(parameters, 0.5, input);
  AlignedBuffer<T> in_bar(inputs * kTileLanes), parameter_bar(parameters * kTileLanes), time_bar(kTileLanes);
  AlignedBuffer<T> out(outputs * kTileLanes), gradient(tile.weights());
  AlignedBuffer<std::byte> workspace = unused_bytes(std::max(tile.workspace_bytes(), tile.reverse_workspace_bytes()));
  std::vector<AlignedBuffer<std::byte>> records, cotangents;
  std::vector<RecordedEvaluation> evaluations;
  for (const double shift : {0.0, 0.25}) {
    const AlignedBuffer<T> in = filled(inputs, shift, input), out_bar = filled(outputs, -shift, cotangent);
    AlignedBuffer<double> t(kTileLanes);
    for (int lane = 0; lane < kTileLanes; ++lane) {
      const double other = others == Others::copies ? 0.1 : std::numeric_limits<double>::quiet_NaN();
      t[static_cast<std::size_t>(lane)] = lane < wanted ? 0.1 + 0.01 * lane : other;
    }
    records.push_back(unused_bytes(tile.record_bytes()));
    cotangents.push_back(unused_bytes(tile.cotangent_bytes()));
    const T* const parameters_of = parameters == 0 ? nullptr : p.data();
    tile.evaluate_recording({t.data(), in.data(), parameters_of, out.data(), lanes}, records.back().data(),
                            workspace.data());
    tile.reverse({.t = t.data(),
                  .in = in.data(),
                  .parameters = parameters_of,
                  .out_bar = out_bar.data(),
                  .in_bar = in_bar.data(),
                  .parameter_bar = parameters == 0 ? nullptr : parameter_bar.data(),
                  .record = records.back().data(),
                  .cotangents = cotangents.back().data(),
                  .time_bar = tile.knows_time() ? time_bar.data() : nullptr,
                  .lanes = lanes},
                 workspace.data());
    evaluations.push_back({.record = records.back().data(), .cotangents = cotangents.back().data(), .lanes = lanes});
  }
  tile.accumulate(evaluations, gradient.data());
  const auto wanted_of = [wanted](const AlignedBuffer<T>& rows) {
    std::vector<T> numbers;
    for (std::size_t at = 0; at < rows.size(); ++at) {
      if (static_cast<int>(at % kTileLanes) < wanted) numbers.push_back(rows[at]);
    }
    return numbers;
  };
  const std::span<const T> slopes = gradient.span();
  return {wanted_of(in_bar), wanted_of(parameter_bar), wanted_of(time_bar), {slopes.begin(), slopes.end()}};
}

// x' = s (y - x), y' = x exp(r - y), as a graph without layers.
Rhs equations_rhs() {
  testing::GraphMaker made({{"u", 0, 2}, {"p", 1, 2}});
  using enum graph::BinaryKind;
  const std::size_t x = made.column(0, 0), y = made.column(0, 1);
  const std::size_t rise =
      made.node(graph::Unary{graph::UnaryKind::exp}, {made.binary(subtract, made.column(1, 1), y)});
  const std::size_t first = made.binary(multiply, made.column(1, 0), made.binary(subtract, y, x)),
                    second = made.binary(multiply, x, rise);
  made.outputs = {{"du", made.node(graph::Concatenate{}, {first, second}), 2}};
  return net(made);
}

template <class T>
void expect_lanes_apart(const std::string& name, const DifferentiableTile<T>& tile, std::size_t inputs,
                        std::size_t outputs, std::size_t parameters) {
  for (const int lanes : {1, 7, 8, 9, 15, 16, 17, 31, 32}) {
    const Swept<T> expected = swept(tile, inputs, outputs, parameters, kTileLanes, lanes, Others::copies);
    const Swept<T> found = swept(tile, inputs, outputs, parameters, lanes, lanes, Others::garbage);
    const std::string what = name + ", " + std::to_string(lanes) + " lanes";
    for (const T x : expected.in_bar) ASSERT_TRUE(std::isfinite(x)) << what;
    EXPECT_NE(expected.in_bar, std::vector<T>(expected.in_bar.size())) << what;
    EXPECT_EQ(found.in_bar, expected.in_bar) << what;
    EXPECT_EQ(found.parameter_bar, expected.parameter_bar) << what;
    EXPECT_EQ(found.time_bar, expected.time_bar) << what;
    EXPECT_EQ(found.gradient, expected.gradient) << what;
  }
}

// As lanes of a whole tile whose cotangents are zero do, with the same bits.
TEST(DerivativeTiles, garbage_in_lanes_that_are_not_wanted_changes_nothing) {
  std::vector<testing::Case> cases = testing::all_cases();
  cases.push_back(testing::trained_case());
  cases.push_back({"equations", equations_rhs(), {}, {}});
  Range range;
  range.minimum.assign(3, 0.8);
  range.maximum.assign(3, 1);
  cases.push_back({"clamped net", clamp_to_range(net(small_net(3, 3)), range), {}, {}});
  for (const testing::Case& c : cases) {
    for (const CpuTarget target : available_cpu_targets()) {
      const std::string name = std::string(c.name) + " on " + std::string(to_string(target));
      const std::size_t n = c.rhs->components(), m = c.rhs->parameters();
      expect_lanes_apart(name + ", f32", *lower_differentiable<float>(*c.rhs, target), n, n, m);
      expect_lanes_apart(name + ", f64", *lower_differentiable<double>(*c.rhs, target), n, n, m);
      if (const auto along = c.rhs->directional_f64(target))
        expect_lanes_apart(name + ", along a direction", *along, 2 * n + 1, n, m);
    }
  }
}

// What is compiled is kept with the right-hand side, and shared.
TEST(DerivativeTiles, what_is_made_ready_for_one_solve_is_not_for_another) {
  const Rhs rhs = equations_rhs();
  const auto one = lower_differentiable<double>(*rhs, best_cpu_target());
  const auto other = lower_differentiable<double>(*rhs, best_cpu_target());
  one->prepare_forward();
  EXPECT_TRUE(one->pushes_forward());
  EXPECT_FALSE(other->pushes_forward());
}

}  // namespace
}  // namespace lockstep::ode
