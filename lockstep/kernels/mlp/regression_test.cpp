// Loss and gradient over batches: those of the tile path's pieces, and the same bits whatever computes them.
#include "lockstep/kernels/mlp/regression.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/kernels/mlp/parameters.h"
#include "lockstep/kernels/mlp/plan.h"
#include "lockstep/kernels/mlp/reverse.h"
#include "lockstep/kernels/mlp/testing/reference.h"

namespace lockstep {
namespace {

using mlp::random_mlp;
using mlp::random_numbers;

// 1009: a prime past two chunks; 17 and 512 end with a part of a tile and a whole chunk.
constexpr std::size_t kBatches[] = {1, 17, 32, 512, 1009};

Mlp test_net(const std::vector<std::size_t>& widths, const Activation& activation) {
  Mlp mlp = random_mlp(widths, activation, 4);
  for (std::size_t c = 0; c < mlp.inputs(); ++c) {
    mlp.input_scaling.shift.push_back(0.25);
    mlp.input_scaling.scale.push_back(2);
  }
  for (std::size_t c = 0; c < mlp.outputs(); ++c) {
    mlp.output_scaling.scale.push_back(1.5);
    mlp.output_scaling.shift.push_back(0.1);
  }
  return mlp;
}

// With factors from 0, which leaves targets out, to below 1.
template <class T>
struct Samples {
  std::vector<T> x, y, f;
  MatrixView<const T> in, targets, factors = {};
  Samples(const Mlp& mlp, std::size_t count, ResidualFactors with = ResidualFactors::none)
      : x(random_numbers<T>(count * mlp.inputs(), 1)), y(random_numbers<T>(count * mlp.outputs(), 2)) {
    in = MatrixView<const T>::row_major(x.data(), count, mlp.inputs());
    targets = MatrixView<const T>::row_major(y.data(), count, mlp.outputs());
    if (with == ResidualFactors::none) return;
    for (const T number : random_numbers<T>(y.size(), 3)) {
      f.push_back(std::max<T>(0, number - std::floor(number) - T(0.2)));
    }
    factors = MatrixView<const T>::row_major(f.data(), count, mlp.outputs());
  }
};

template <class T>
struct Result {
  double loss;
  std::vector<T> gradient;
};

template <class T>
Result<T> run(RegressionPlan<T>& plan, const Samples<T>& samples, int threads = 1,
              std::span<const std::uint32_t> rows = {}) {
  const ResidualFactors with = samples.f.empty() ? ResidualFactors::none : ResidualFactors::given;
  TiledSamples<T> tiles = plan.make_samples(samples.in.rows, with);
  plan.assign(tiles, samples.in, samples.targets, rows, samples.factors);
  Result<T> result{0, std::vector<T>(plan.parameter_count())};
  result.loss = plan.loss_and_gradient(tiles, 1 / static_cast<double>(samples.in.rows), result.gradient, threads);
  EXPECT_EQ(plan.loss(tiles, 1 / static_cast<double>(samples.in.rows), threads), result.loss);
  return result;
}

template <class T>
void expect_same_bits(const Result<T>& a, const Result<T>& b, const std::string& what) {
  EXPECT_EQ(a.loss, b.loss) << what;
  EXPECT_EQ(std::memcmp(a.gradient.data(), b.gradient.data(), a.gradient.size() * sizeof(T)), 0) << what;
}

// Cost and derivative of one residual, in float64.
double cost_of(const ResidualCost& cost, std::size_t c, double r) {
  if (cost.residual == Residual::squared) return r * r;
  if (cost.residual == Residual::absolute) return std::fabs(r);
  const double delta = cost.delta_of(c);
  return std::fabs(r) <= delta ? r * r / 2 : delta * (std::fabs(r) - delta / 2);
}
double slope_of(const ResidualCost& cost, std::size_t c, double r) {
  if (cost.residual == Residual::squared) return 2 * r;
  if (cost.residual == Residual::absolute) return r > 0 ? 1 : r < 0 ? -1 : 0;
  return std::fabs(r) <= cost.delta_of(c) ? r : std::copysign(cost.delta_of(c), r);
}

// Against the tile path with costs written out here. Sums of up to 1,009 x 7 terms, in whatever order, differ by a
// random walk of some 100 roundings of 2^-53: 1e-13 of the sum of sizes leaves a factor of ten.
TEST(Regression, is_the_cost_through_the_tile_path_for_every_residual) {
  const std::vector<std::size_t> shapes[] = {{3, 37, 3}, {2, 20, 5, 1}, {19, 26, 7}};
  for (const auto& widths : shapes) {
    for (const Activation& activation : all_activations()) {
      const Mlp mlp = test_net(widths, activation);
      for (int turn = 0; turn < 6; ++turn) {
        const Residual residual = std::array{Residual::squared, Residual::absolute, Residual::huber}[turn % 3];
        ResidualCost cost{residual, 0.75, std::vector<double>(mlp.outputs(), 1)};
        cost.weights[0] = 0.5;
        for (std::size_t c = 0; turn == 5 && c < mlp.outputs(); ++c)
          cost.deltas.push_back(0.25 + 0.5 * static_cast<double>(c));
        auto plan = RegressionPlan<double>::compile(mlp, cost);
        const std::size_t count = 43;
        const Samples<double> samples(mlp, count, turn < 3 ? ResidualFactors::none : ResidualFactors::given);
        const Result<double> found = run(plan, samples);

        const auto trainable = TrainablePlan<double>::compile(mlp);
        AlignedBuffer<double> in(mlp.inputs() * 32), out(mlp.outputs() * 32), bar(mlp.outputs() * 32);
        AlignedBuffer<double> record(trainable.tile_activation_numbers()), bars(trainable.tile_cotangent_numbers());
        AlignedBuffer<double> workspace(trainable.workspace_numbers());
        std::vector<double> gradient(mlp.parameter_count());
        double loss = 0;
        for (std::size_t first = 0; first < count; first += 32) {
          const int lanes = static_cast<int>(std::min<std::size_t>(32, count - first));
          for (std::size_t lane = 0; lane < static_cast<std::size_t>(lanes); ++lane) {
            for (std::size_t c = 0; c < mlp.inputs(); ++c) in[c * 32 + lane] = samples.in(first + lane, c);
          }
          trainable.evaluate_tile({nullptr, in.data(), nullptr, out.data(), lanes}, record.data(), workspace.data());
          for (std::size_t lane = 0; lane < static_cast<std::size_t>(lanes); ++lane) {
            for (std::size_t c = 0; c < mlp.outputs(); ++c) {
              const double factor = turn < 3 ? 1 : samples.factors(first + lane, c);
              const double r = (out[c * 32 + lane] - samples.targets(first + lane, c)) * factor;
              loss += cost.weights[c] * cost_of(cost, c, r) / count;
              bar[c * 32 + lane] = cost.weights[c] * slope_of(cost, c, r) * factor / count;
            }
          }
          trainable.reverse_tile(record.data(), bar.data(), nullptr, bars.data(), lanes, workspace.data());
          const RecordedTile<double> tile{record.data(), bars.data(), lanes};
          trainable.accumulate_tiles({&tile, 1}, gradient.data());
        }
        const std::string what =
            to_string(activation) + " " + std::string(to_string(residual)) + (turn < 3 ? "" : " with factors");
        EXPECT_NEAR(found.loss, loss, 1e-13 * loss) << what;
        for (std::size_t p = 0; p < gradient.size(); ++p) {
          // The sizes summed are at most those of cotangents below 4 and values below 10 for each sample.
          EXPECT_NEAR(found.gradient[p], gradient[p], 1e-13 * 40) << what << " parameter " << p;
        }
      }
    }
  }
}

template <class T>
void expect_same_bits_everywhere() {
  const std::vector<std::size_t> shapes[] = {{3, 100, 3}, {2, 20, 5, 1}, {32, 41, 31}, {1, 1}};
  std::size_t turn = 0;
  for (const auto& widths : shapes) {
    for (const ActivationKind kind : {ActivationKind::relu, ActivationKind::tanh, ActivationKind::silu}) {
      const Mlp mlp = test_net(widths, {kind});
      for (const std::size_t batch : kBatches) {
        if (!is_tried(turn++, 13)) continue;
        const Samples<T> samples(mlp, batch, turn % 2 == 0 ? ResidualFactors::none : ResidualFactors::given);
        auto first = RegressionPlan<T>::compile(mlp, {}, available_cpu_targets()[0]);
        const Result<T> expected = run(first, samples);
        EXPECT_TRUE(std::isfinite(expected.loss));
        for (const CpuTarget target : available_cpu_targets()) {
          auto plan = RegressionPlan<T>::compile(mlp, {}, target);
          for (const int threads : {1, 2, 5}) {
            if (threads > 1 && batch < 1000) continue;  // one chunk, one thread
            expect_same_bits(run(plan, samples, threads), expected,
                             std::string(to_string(target)) + " batch " + std::to_string(batch) + ", " +
                                 std::to_string(threads) + " threads");
          }
        }
      }
    }
  }
}
TEST(Regression, gives_the_same_bits_on_every_target_and_number_of_threads_f32) {
  expect_same_bits_everywhere<float>();
}
TEST(Regression, gives_the_same_bits_on_every_target_and_number_of_threads_f64) {
  expect_same_bits_everywhere<double>();
}

TEST(Regression, takes_the_rows_asked_for_in_their_order) {
  const Mlp mlp = test_net({3, 10, 2}, {ActivationKind::tanh});
  auto plan = RegressionPlan<float>::compile(mlp);
  Samples<float> samples(mlp, 40);
  std::vector<std::uint32_t> rows(40);
  std::iota(rows.rbegin(), rows.rend(), 0u);
  const Result<float> found = run(plan, samples, 1, rows);
  Samples<float> turned = samples;
  for (std::size_t i = 0; i < 40; ++i) {
    for (std::size_t c = 0; c < 3; ++c) turned.x[i * 3 + c] = samples.x[(39 - i) * 3 + c];
    for (std::size_t c = 0; c < 2; ++c) turned.y[i * 2 + c] = samples.y[(39 - i) * 2 + c];
  }
  turned.in.data = turned.x.data();
  turned.targets.data = turned.y.data();
  expect_same_bits(found, run(plan, turned), "rows turned round");
}

// Widths below, at and past the pieces in which picked samples are copied; the last tile is a part of one.
template <class T>
void expect_samples_in_their_lanes(std::size_t inputs, std::size_t outputs, CpuTarget target) {
  constexpr std::size_t kCount = 41;
  const Mlp mlp = test_net({inputs, outputs}, {ActivationKind::identity});
  const auto plan = RegressionPlan<T>::compile(mlp, {}, target);
  Samples<T> samples(mlp, kCount);
  samples.targets = MatrixView<const T>::column_major(samples.y.data(), kCount, outputs);
  std::vector<std::uint32_t> rows(kCount);
  for (std::size_t i = 0; i < kCount; ++i) rows[i] = static_cast<std::uint32_t>(i * 17 % kCount);
  for (const bool picked : {false, true}) {
    TiledSamples<T> tiles = plan.make_samples(kCount);
    std::fill_n(tiles.inputs.data(), tiles.inputs.size(), T(7));
    plan.assign(tiles, samples.in, samples.targets, picked ? std::span(rows) : std::span<std::uint32_t>());
    ASSERT_EQ(tiles.samples, kCount);
    for (std::size_t i = 0; i < 2 * kTileLanes; ++i) {
      const std::size_t row = i >= kCount ? 0 : picked ? rows[i] : i, tile = i / kTileLanes, lane = i % kTileLanes;
      for (std::size_t c = 0; c < inputs; ++c) {
        ASSERT_EQ(tiles.inputs[(tile * inputs + c) * kTileLanes + lane],
                  i < kCount ? (samples.in(row, c) - T(0.25)) / T(2) : T(0))
            << i << ", " << c;
      }
      for (std::size_t c = 0; c < outputs; ++c) {
        ASSERT_EQ(tiles.targets[(tile * outputs + c) * kTileLanes + lane], i < kCount ? samples.targets(row, c) : T(0))
            << i << ", " << c;
      }
    }
  }
}
TEST(Regression, puts_each_sample_into_its_lane) {
  for (const CpuTarget target : available_cpu_targets()) {
    for (const auto& [inputs, outputs] : {std::pair<std::size_t, std::size_t>{2, 1}, {8, 70}, {64, 7}, {129, 9}}) {
      expect_samples_in_their_lanes<float>(inputs, outputs, target);
      expect_samples_in_their_lanes<double>(inputs, outputs, target);
    }
  }
}

TEST(Regression, no_sample_costs_nothing) {
  const Mlp mlp = test_net({3, 10, 2}, {ActivationKind::tanh});
  auto plan = RegressionPlan<float>::compile(mlp);
  const TiledSamples<float> none = plan.make_samples(0);
  std::vector<float> gradient(plan.parameter_count(), 7);
  EXPECT_EQ(plan.loss_and_gradient(none, 1, gradient), 0);
  EXPECT_EQ(gradient, std::vector<float>(plan.parameter_count()));
}

TEST(Regression, refuses_what_does_not_fit) {
  const Mlp mlp = test_net({3, 10, 2}, {ActivationKind::tanh});
  EXPECT_THROW(RegressionPlan<float>::compile(mlp, {Residual::huber, 0}), Error);
  EXPECT_THROW(RegressionPlan<float>::compile(mlp, {Residual::squared, 1, {1}}), Error);
  EXPECT_THROW(RegressionPlan<float>::compile(mlp, {Residual::huber, 1, {}, {1}}), Error);
  EXPECT_THROW(RegressionPlan<float>::compile(mlp, {Residual::huber, 1, {}, {1, 0}}), Error);
  EXPECT_THROW(RegressionPlan<float>::compile(mlp, {Residual::squared, 1, {1, -1}}), Error);
  auto plan = RegressionPlan<float>::compile(mlp);
  const Samples<float> samples(mlp, 40);
  TiledSamples<float> small = plan.make_samples(20);
  EXPECT_THROW(plan.assign(small, samples.in, samples.targets), Error);
  EXPECT_THROW(plan.set_parameters(std::vector<float>(3)), Error);
  std::vector<float> gradient(3);
  EXPECT_THROW(plan.loss_and_gradient(small, 1, gradient), Error);
}

}  // namespace
}  // namespace lockstep
