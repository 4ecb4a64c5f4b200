// Reverse mode: forward bits are Plan's, gradients are the transpose of forward-mode duals, bits are the same on every
// instruction set.
#include "lockstep/kernels/mlp/reverse.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/error.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/kernels/mlp/detail/packed.h"
#include "lockstep/kernels/mlp/parameters.h"
#include "lockstep/kernels/mlp/plan.h"
#include "lockstep/kernels/mlp/testing/reference.h"

extern std::atomic<int> allocations;

namespace lockstep {
namespace {

using mlp::random_mlp;

// What one pass over some tiles (or samples one by one) gives.
template <class T>
struct Pass {
  std::vector<T> out, in_bar;  // [tile][component][kTileLanes], or [sample][component]
  std::vector<T> gradient;
};

template <class T>
AlignedBuffer<T> random_numbers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  AlignedBuffer<T> numbers(count);
  for (T& number : numbers.span()) number = static_cast<T>(normal(random));
  return numbers;
}

template <class T>
Pass<T> run_tiles(const TrainablePlan<T>& plan, std::size_t tiles, int lanes, const AlignedBuffer<T>& in,
                  const AlignedBuffer<T>& out_bar) {
  const std::size_t inputs = plan.inputs() * kTileLanes, outputs = plan.outputs() * kTileLanes;
  Pass<T> pass{std::vector<T>(tiles * outputs), std::vector<T>(tiles * inputs), std::vector<T>(plan.parameter_count())};
  AlignedBuffer<T> activations(tiles * plan.tile_activation_numbers()), bars(tiles * plan.tile_cotangent_numbers());
  AlignedBuffer<T> workspace(plan.workspace_numbers()), out(outputs), in_bar(inputs);
  std::vector<RecordedTile<T>> records;
  for (std::size_t i = 0; i < tiles; ++i) {
    T* const record = activations.data() + i * plan.tile_activation_numbers();
    T* const cotangents = bars.data() + i * plan.tile_cotangent_numbers();
    const TileView<T> tile{nullptr, in.data() + i * inputs, nullptr, out.data(), lanes};
    plan.evaluate_tile(tile, record, workspace.data());
    plan.reverse_tile(record, out_bar.data() + i * outputs, in_bar.data(), cotangents, lanes, workspace.data());
    for (std::size_t c = 0; c < plan.outputs(); ++c) {
      for (int lane = 0; lane < lanes; ++lane) {
        const std::size_t at = c * kTileLanes + static_cast<std::size_t>(lane);
        pass.out[i * outputs + at] = out[at];
      }
    }
    for (std::size_t c = 0; c < plan.inputs(); ++c) {
      for (int lane = 0; lane < lanes; ++lane) {
        const std::size_t at = c * kTileLanes + static_cast<std::size_t>(lane);
        pass.in_bar[i * inputs + at] = in_bar[at];
      }
    }
    records.push_back({record, cotangents, lanes});
  }
  plan.accumulate_tiles(records, pass.gradient.data());
  return pass;
}

template <class T>
Pass<T> run_samples(const TrainablePlan<T>& plan, std::size_t samples, const AlignedBuffer<T>& in,
                    const AlignedBuffer<T>& out_bar) {
  const std::size_t inputs = plan.inputs(), outputs = plan.outputs();
  Pass<T> pass{std::vector<T>(samples * outputs), std::vector<T>(samples * inputs),
               std::vector<T>(plan.parameter_count())};
  AlignedBuffer<T> activations(samples * plan.sample_activation_numbers());
  AlignedBuffer<T> bars(samples * plan.sample_cotangent_numbers());
  AlignedBuffer<T> workspace(plan.workspace_numbers()), sum(plan.sample_gradient_numbers());
  std::vector<RecordedSample<T>> records;
  for (std::size_t i = 0; i < samples; ++i) {
    T* const record = activations.data() + i * plan.sample_activation_numbers();
    T* const cotangents = bars.data() + i * plan.sample_cotangent_numbers();
    plan.evaluate_sample(in.data() + i * inputs, pass.out.data() + i * outputs, record, workspace.data());
    plan.reverse_sample(record, out_bar.data() + i * outputs, pass.in_bar.data() + i * inputs, cotangents,
                        workspace.data());
    records.push_back({record, cotangents});
  }
  plan.accumulate_samples(records, sum.data());
  plan.add_sample_gradient(sum.data(), pass.gradient.data());
  return pass;
}

// All hidden layers and the last one with the activation; scaling on both sides.
// But for nets of one hidden layer, whose last layer is linear, as in right-hand sides.
Mlp test_net(const std::vector<std::size_t>& widths, const Activation& activation, unsigned seed) {
  Mlp mlp = random_mlp(widths, activation, seed);
  if (widths.size() != 3) mlp.layers.back().activation = activation;
  mlp::give_scaling(mlp);
  return mlp;
}

struct Dual {
  double value = 0, slope = 0;
};

// The net at one sample with tangents of inputs and parameters, every operation differentiated by hand.
std::vector<Dual> evaluate_dual(const Mlp& mlp, std::vector<Dual> x, const double* parameter_slopes) {
  for (std::size_t c = 0; c < x.size(); ++c) {
    const double scale = mlp.input_scaling.scale[c];
    x[c] = {(x[c].value - mlp.input_scaling.shift[c]) / scale, x[c].slope / scale};
  }
  for (const DenseLayer& layer : mlp.layers) {
    std::vector<Dual> y(layer.outputs);
    for (std::size_t j = 0; j < layer.outputs; ++j) {
      Dual sum{layer.bias[j], parameter_slopes[layer.outputs * layer.inputs + j]};
      for (std::size_t k = 0; k < layer.inputs; ++k) {
        const double w = layer.weights[j * layer.inputs + k];
        sum.value = std::fma(w, x[k].value, sum.value);
        sum.slope += w * x[k].slope + parameter_slopes[j * layer.inputs + k] * x[k].value;
      }
      y[j] = {activate(layer.activation, sum.value), activate_derivative(layer.activation, sum.value) * sum.slope};
    }
    parameter_slopes += layer.outputs * (layer.inputs + 1);
    x = y;
  }
  for (std::size_t c = 0; c < x.size(); ++c) {
    const double scale = mlp.output_scaling.scale[c];
    x[c] = {std::fma(x[c].value, scale, mlp.output_scaling.shift[c]), x[c].slope * scale};
  }
  return x;
}

struct Sum {
  double value = 0, size = 0;
  void add(double a, double b) {
    value += a * b;
    size += std::fabs(a * b);
  }
};

// <out_bar, J v> = <in_bar, v_in> + <gradient, v_parameters>. Both sides are sums of a few thousand products whose
// factors carry a few hundred roundings of 2^-53: 1e-12 of the sum of their sizes is some thirty times what these add
// up to at random, and a wrong term is of relative size 1e-4 or more.
TEST(Reverse, is_the_transpose_of_forward_duals) {
  const std::vector<std::size_t> shapes[] = {{3, 37, 3}, {4, 17, 4}, {1, 9, 1}, {2, 20, 5, 1}, {11, 19, 26, 7}, {1, 1}};
  unsigned seed = 1;
  for (const Activation& activation : all_activations()) {
    for (const auto& widths : shapes) {
      const Mlp mlp = test_net(widths, activation, ++seed);
      const auto plan = TrainablePlan<double>::compile(mlp);
      const std::size_t inputs = mlp.inputs(), outputs = mlp.outputs();
      for (const int lanes : {32, 5}) {
        constexpr std::size_t kTiles = 3;
        const auto in = random_numbers<double>(kTiles * inputs * kTileLanes, seed + 100);
        const auto out_bar = random_numbers<double>(kTiles * outputs * kTileLanes, seed + 200);
        const auto in_slope = random_numbers<double>(in.size(), seed + 300);
        const auto slopes = random_numbers<double>(mlp.parameter_count(), seed + 400);
        const Pass<double> pass = run_tiles(plan, kTiles, lanes, in, out_bar);
        Sum forward, backward;
        for (std::size_t i = 0; i < kTiles; ++i) {
          for (std::size_t lane = 0; lane < static_cast<std::size_t>(lanes); ++lane) {
            std::vector<Dual> x(inputs);
            for (std::size_t c = 0; c < inputs; ++c) {
              const std::size_t at = (i * inputs + c) * kTileLanes + lane;
              x[c] = {in[at], in_slope[at]};
              backward.add(pass.in_bar[at], in_slope[at]);
            }
            const std::vector<Dual> y = evaluate_dual(mlp, x, slopes.data());
            for (std::size_t c = 0; c < outputs; ++c) {
              forward.add(out_bar[(i * outputs + c) * kTileLanes + lane], y[c].slope);
            }
          }
        }
        for (std::size_t p = 0; p < slopes.size(); ++p) backward.add(pass.gradient[p], slopes[p]);
        EXPECT_NEAR(forward.value, backward.value, 1e-12 * (forward.size + backward.size))
            << to_string(activation) << " " << lanes << " lanes";
      }
      constexpr std::size_t kSamples = 7;
      const auto in = random_numbers<double>(kSamples * inputs, seed + 100);
      const auto out_bar = random_numbers<double>(kSamples * outputs, seed + 200);
      const auto in_slope = random_numbers<double>(in.size(), seed + 300);
      const auto slopes = random_numbers<double>(mlp.parameter_count(), seed + 400);
      const Pass<double> pass = run_samples(plan, kSamples, in, out_bar);
      Sum forward, backward;
      for (std::size_t i = 0; i < kSamples; ++i) {
        std::vector<Dual> x(inputs);
        for (std::size_t c = 0; c < inputs; ++c) {
          x[c] = {in[i * inputs + c], in_slope[i * inputs + c]};
          backward.add(pass.in_bar[i * inputs + c], in_slope[i * inputs + c]);
        }
        const std::vector<Dual> y = evaluate_dual(mlp, x, slopes.data());
        for (std::size_t c = 0; c < outputs; ++c) forward.add(out_bar[i * outputs + c], y[c].slope);
      }
      for (std::size_t p = 0; p < slopes.size(); ++p) backward.add(pass.gradient[p], slopes[p]);
      EXPECT_NEAR(forward.value, backward.value, 1e-12 * (forward.size + backward.size))
          << to_string(activation) << " one sample";
    }
  }
}

template <class T>
void expect_forward_bits() {
  const std::vector<std::size_t> shapes[] = {{3, 100, 3}, {4, 17, 9}, {1, 64, 1}, {2, 20, 5, 1}, {32, 41, 31}, {1, 1}};
  std::size_t turn = 0;
  for (const CpuTarget target : available_cpu_targets()) {
    for (const Activation& activation : all_activations()) {
      for (const auto& widths : shapes) {
        if (!is_tried(turn++, 5)) continue;
        const Mlp mlp = test_net(widths, activation, 3);
        const auto plan = Plan<T>::compile(mlp, target);
        const auto trainable = TrainablePlan<T>::compile(mlp, target);
        AlignedBuffer<std::byte> workspace(plan.workspace_bytes());
        AlignedBuffer<T> expected(mlp.outputs() * kTileLanes);
        for (const int lanes : {1, 8, 17, 32}) {
          const auto in = random_numbers<T>(mlp.inputs() * kTileLanes, 5);
          const auto out_bar = random_numbers<T>(mlp.outputs() * kTileLanes, 6);
          plan.evaluate_tile({nullptr, in.data(), nullptr, expected.data(), lanes}, workspace.data());
          const Pass<T> pass = run_tiles(trainable, 1, lanes, in, out_bar);
          for (std::size_t c = 0; c < mlp.outputs(); ++c) {
            EXPECT_EQ(std::memcmp(&pass.out[c * kTileLanes], &expected[c * kTileLanes],
                                  static_cast<std::size_t>(lanes) * sizeof(T)),
                      0)
                << to_string(activation) << " " << to_string(target) << " " << lanes << " lanes";
          }
        }
        const auto in = random_numbers<T>(5 * mlp.inputs(), 5);
        const auto out_bar = random_numbers<T>(5 * mlp.outputs(), 6);
        AlignedBuffer<T> rows(5 * mlp.outputs());
        plan.evaluate(MatrixView<const T>::row_major(in.data(), 5, mlp.inputs()),
                      MatrixView<T>::row_major(rows.data(), 5, mlp.outputs()), workspace.span());
        const Pass<T> pass = run_samples(trainable, 5, in, out_bar);
        EXPECT_EQ(std::memcmp(pass.out.data(), rows.data(), rows.size() * sizeof(T)), 0)
            << to_string(activation) << " " << to_string(target) << " one sample";
      }
    }
  }
}
TEST(Reverse, records_without_changing_the_bits_of_a_plan_f32) { expect_forward_bits<float>(); }
TEST(Reverse, records_without_changing_the_bits_of_a_plan_f64) { expect_forward_bits<double>(); }

template <class T>
void expect_same_bits(const Pass<T>& a, const Pass<T>& b, const std::string& what) {
  const auto same = [](const std::vector<T>& x, const std::vector<T>& y) {
    return std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0;
  };
  EXPECT_TRUE(same(a.out, b.out)) << what;
  EXPECT_TRUE(same(a.in_bar, b.in_bar)) << what;
  EXPECT_TRUE(same(a.gradient, b.gradient)) << what;
}

template <class T>
void expect_same_bits_on_every_target() {
  const std::vector<std::size_t> shapes[] = {{3, 100, 3}, {4, 17, 9}, {1, 64, 1}, {2, 20, 5, 1}, {13, 41, 31}, {1, 1}};
  std::size_t turn = 0;
  for (const Activation& activation : all_activations()) {
    for (const auto& widths : shapes) {
      if (!is_tried(turn++, 11)) continue;
      const Mlp mlp = test_net(widths, activation, 3);
      const auto in = random_numbers<T>(5 * mlp.inputs() * kTileLanes, 5);
      const auto out_bar = random_numbers<T>(5 * mlp.outputs() * kTileLanes, 6);
      for (const int lanes : {3, 16, 29, 32}) {
        const auto first = run_tiles(TrainablePlan<T>::compile(mlp, available_cpu_targets()[0]), 5, lanes, in, out_bar);
        for (const CpuTarget target : available_cpu_targets().subspan(1)) {
          expect_same_bits(first, run_tiles(TrainablePlan<T>::compile(mlp, target), 5, lanes, in, out_bar),
                           to_string(activation) + " " + std::string(to_string(target)));
        }
      }
      const auto first = run_samples(TrainablePlan<T>::compile(mlp, available_cpu_targets()[0]), 9, in, out_bar);
      for (const CpuTarget target : available_cpu_targets().subspan(1)) {
        expect_same_bits(first, run_samples(TrainablePlan<T>::compile(mlp, target), 9, in, out_bar),
                         to_string(activation) + " one sample " + std::string(to_string(target)));
      }
    }
  }
}
TEST(Reverse, gives_the_same_bits_on_every_target_f32) { expect_same_bits_on_every_target<float>(); }
TEST(Reverse, gives_the_same_bits_on_every_target_f64) { expect_same_bits_on_every_target<double>(); }

template <class T>
void expect_bits_of_a_tile() {
  const std::vector<std::size_t> widths = {17, 230, 333, 19};
  const Mlp mlp = test_net(widths, {ActivationKind::tanh}, 3);
  constexpr std::size_t kSamples = 3;
  const auto in = random_numbers<T>(mlp.inputs() * kTileLanes, 5);
  const auto out_bar = random_numbers<T>(mlp.outputs() * kTileLanes, 6);
  const auto of_samples = [](const auto& lanes) {
    AlignedBuffer<T> samples(lanes.size() / kTileLanes * kSamples);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::size_t components = samples.size() / kSamples;
      samples[i] = lanes[i % components * kTileLanes + i / components];
    }
    return samples;
  };
  const auto sample_in = of_samples(in), sample_out_bar = of_samples(out_bar);
  for (const CpuTarget target : available_cpu_targets()) {
    const auto& kernels = mlp::kernels_for<T>(target);
    ASSERT_LT(mlp::row_panel(kernels, 230, 333) * kernels.lanes, 333u) << "the layer is not in panels";
    ASSERT_LT(mlp::row_panel(kernels, 333, 230) * kernels.lanes, 230u) << "its transpose is not in panels";
    const auto plan = TrainablePlan<T>::compile(mlp, target);
    const Pass<T> tile = run_tiles(plan, 1, kSamples, in, out_bar);
    const Pass<T> samples = run_samples(plan, kSamples, sample_in, sample_out_bar);
    EXPECT_EQ(std::memcmp(samples.out.data(), of_samples(tile.out).data(), samples.out.size() * sizeof(T)), 0)
        << to_string(target);
    EXPECT_EQ(std::memcmp(samples.in_bar.data(), of_samples(tile.in_bar).data(), samples.in_bar.size() * sizeof(T)), 0)
        << to_string(target);
  }
}
TEST(Reverse, wide_layers_in_panels_give_samples_the_bits_of_a_tile_f32) { expect_bits_of_a_tile<float>(); }
TEST(Reverse, wide_layers_in_panels_give_samples_the_bits_of_a_tile_f64) { expect_bits_of_a_tile<double>(); }

// AVX-512 alone takes them at once.
TEST(Reverse, two_thin_layers_at_once_have_the_bits_of_one_after_the_other) {
  std::vector<std::vector<std::size_t>> shapes = {{3, 9, 2, 6, 3}, {3, 4, 4, 3}, {4, 5, 4, 13, 1}};
  for (std::size_t inputs = 1; inputs <= 5; ++inputs) {
    for (std::size_t outputs = 1; outputs <= 5; ++outputs)
      shapes.push_back({inputs, 4 + 3 * outputs + inputs, outputs});
  }
  for (const auto& widths : shapes) {
    const Mlp mlp = test_net(widths, {ActivationKind::tanh}, 3);
    const auto in = random_numbers<float>(3 * mlp.inputs() * kTileLanes, 5);
    const auto out_bar = random_numbers<float>(3 * mlp.outputs() * kTileLanes, 6);
    for (const int lanes : {11, 32}) {
      const auto first =
          run_tiles(TrainablePlan<float>::compile(mlp, available_cpu_targets()[0]), 3, lanes, in, out_bar);
      for (const CpuTarget target : available_cpu_targets().subspan(1)) {
        expect_same_bits(first, run_tiles(TrainablePlan<float>::compile(mlp, target), 3, lanes, in, out_bar),
                         std::to_string(mlp.inputs()) + " inputs, " + std::to_string(mlp.outputs()) + " outputs, " +
                             std::string(to_string(target)));
      }
    }
  }
}

TEST(Reverse, replaced_parameters_act_like_a_net_compiled_from_them) {
  const Activation activation{ActivationKind::tanh};
  for (const std::vector<std::size_t>& widths : {std::vector<std::size_t>{13, 41, 31}, {3, 41, 4}, {3, 230, 333, 4}}) {
    const Mlp other = test_net(widths, activation, 8);
    auto plan = TrainablePlan<float>::compile(test_net(widths, activation, 3));
    const auto in = random_numbers<float>(2 * plan.inputs() * kTileLanes, 5);
    const auto out_bar = random_numbers<float>(2 * plan.outputs() * kTileLanes, 6);
    plan.set_parameters(gather_parameters<float>(other));
    const auto fresh = TrainablePlan<float>::compile(other);
    expect_same_bits(run_tiles(plan, 2, 32, in, out_bar), run_tiles(fresh, 2, 32, in, out_bar), "tiles");
    expect_same_bits(run_samples(plan, 5, in, out_bar), run_samples(fresh, 5, in, out_bar), "samples");
    // Without a record the replaced weights count as well.
    AlignedBuffer<float> workspace(plan.workspace_numbers()), out(plan.outputs() * kTileLanes);
    plan.evaluate_tile({nullptr, in.data(), nullptr, out.data(), 32}, nullptr, workspace.data());
    const auto expected = run_tiles(fresh, 1, 32, in, out_bar).out;
    EXPECT_EQ(std::memcmp(out.data(), expected.data(), out.size() * sizeof(float)), 0);
    EXPECT_THROW(plan.set_parameters(std::vector<float>(plan.parameter_count() - 1)), Error);
  }
}

TEST(Reverse, flat_parameters_return_to_the_net_they_came_from) {
  const Mlp mlp = random_mlp({3, 7, 2}, {ActivationKind::tanh}, 1);
  const std::vector<double> flat = gather_parameters<double>(mlp);
  ASSERT_EQ(flat.size(), mlp.parameter_count());
  EXPECT_EQ(flat[3], mlp.layers[0].weights[3]);
  EXPECT_EQ(flat[21], mlp.layers[0].bias[0]);
  EXPECT_EQ(flat.back(), mlp.layers[1].bias[1]);
  Mlp copy = random_mlp({3, 7, 2}, {ActivationKind::tanh}, 2);
  scatter_parameters<double>(flat, copy);
  EXPECT_EQ(gather_parameters<double>(copy), flat);
  EXPECT_THROW(scatter_parameters<double>(std::vector<double>(3), copy), Error);
}

TEST(Reverse, allocates_nothing_after_compiling) {
  auto plan = TrainablePlan<float>::compile(random_mlp({3, 100, 3}, {ActivationKind::tanh}, 1));
  AlignedBuffer<float> in(96), out(96), record(plan.tile_activation_numbers()), bars(plan.tile_cotangent_numbers());
  AlignedBuffer<float> workspace(plan.workspace_numbers()), gradient(plan.parameter_count());
  AlignedBuffer<float> sum(plan.sample_gradient_numbers()), parameters(plan.parameter_count());
  const RecordedTile<float> tile{record.data(), bars.data(), 32};
  const RecordedSample<float> sample{record.data(), bars.data()};
  const int before = allocations;
  plan.set_parameters(parameters.span());
  plan.evaluate_tile({nullptr, in.data(), nullptr, out.data(), 32}, record.data(), workspace.data());
  plan.reverse_tile(record.data(), out.data(), in.data(), bars.data(), 32, workspace.data());
  plan.accumulate_tiles({&tile, 1}, gradient.data());
  plan.evaluate_sample(in.data(), out.data(), record.data(), workspace.data());
  plan.reverse_sample(record.data(), out.data(), in.data(), bars.data(), workspace.data());
  plan.accumulate_samples({&sample, 1}, sum.data());
  plan.add_sample_gradient(sum.data(), gradient.data());
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace lockstep
