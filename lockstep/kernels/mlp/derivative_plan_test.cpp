// Jacobian products: each the other's transpose, the limit of differences in long double, the same bits everywhere.
#include "lockstep/kernels/mlp/derivative_plan.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/kernels/mlp/plan.h"
#include "lockstep/kernels/mlp/testing/reference.h"

extern std::atomic<int> allocations;

namespace lockstep {
namespace {

using mlp::random_numbers;

Mlp test_net(const std::vector<std::size_t>& widths, const Activation& activation, unsigned seed) {
  Mlp mlp = mlp::random_mlp(widths, activation, seed);
  if (widths.size() == 4) mlp.layers.back().activation = activation;
  mlp::give_scaling(mlp);
  return mlp;
}

template <class T>
MatrixView<const T> rows(const std::vector<T>& values, std::size_t count) {
  return MatrixView<const T>::row_major(values.data(), count, values.size() / count);
}
template <class T>
MatrixView<T> rows(std::vector<T>& values, std::size_t count) {
  return MatrixView<T>::row_major(values.data(), count, values.size() / count);
}

template <class T>
struct Products {
  std::vector<T> out, out_dot, in_bar;
};

template <class T>
Products<T> products(const DerivativePlan<T>& plan, std::size_t samples, const std::vector<T>& in,
                     const std::vector<T>& in_dot, const std::vector<T>& out_bar) {
  const std::size_t outputs = samples * plan.outputs();
  Products<T> result{std::vector<T>(outputs), std::vector<T>(outputs), std::vector<T>(in.size())};
  std::vector<T> again(outputs);
  plan.jvp(rows(in, samples), rows(in_dot, samples), rows(result.out, samples), rows(result.out_dot, samples));
  plan.vjp(rows(in, samples), rows(out_bar, samples), rows(again, samples), rows(result.in_bar, samples));
  EXPECT_EQ(std::memcmp(again.data(), result.out.data(), outputs * sizeof(T)), 0);
  return result;
}

const std::vector<std::vector<std::size_t>> kShapes = {{3, 37, 3}, {1, 9, 1}, {2, 20, 5, 1}, {11, 19, 26, 7}, {1, 1}};

// <out_bar, J v> = <J^T out_bar, v>: both are sums of at most a few hundred products whose factors carry a few hundred
// roundings of 2^-53; 1e-12 of the sum of their sizes is some thirty times what these add up to at random, and a wrong
// term is of relative size 1e-4 or more.
TEST(DerivativePlan, jvp_and_vjp_are_each_others_transpose) {
  constexpr std::size_t kSamples = 37;
  unsigned seed = 1;
  for (const Activation& activation : all_activations()) {
    for (const auto& widths : kShapes) {
      const Mlp mlp = test_net(widths, activation, ++seed);
      const auto in = random_numbers<double>(kSamples * mlp.inputs(), seed + 100);
      const auto in_dot = random_numbers<double>(in.size(), seed + 200);
      const auto out_bar = random_numbers<double>(kSamples * mlp.outputs(), seed + 300);
      const auto [out, out_dot, in_bar] = products(DerivativePlan<double>::compile(mlp), kSamples, in, in_dot, out_bar);
      double forward = 0, backward = 0, size = 0;
      for (std::size_t i = 0; i < out_dot.size(); ++i) forward += out_bar[i] * out_dot[i];
      for (std::size_t i = 0; i < in_bar.size(); ++i) {
        backward += in_bar[i] * in_dot[i];
        size += std::fabs(in_bar[i] * in_dot[i]);
      }
      EXPECT_NEAR(forward, backward, 1e-12 * size) << to_string(activation) << ", seed " << seed;
    }
  }
}

using Wide = long double;

Wide activate_wide(const Activation& activation, Wide x) {
  switch (activation.kind) {
    case ActivationKind::tanh:
      return std::tanh(x);
    case ActivationKind::silu:
      return x / (1 + std::exp(-x));
    case ActivationKind::gelu:
      return x / 2 * (1 + std::erf(x / std::sqrt(Wide(2))));
    case ActivationKind::softplus:
      return std::log1p(std::exp(x));
    case ActivationKind::elu:
      return x < 0 ? static_cast<Wide>(activation.alpha) * std::expm1(x) : x;
    case ActivationKind::relu:
      return x < 0 ? 0 : x;
    default:
      return x;
  }
}

std::vector<Wide> evaluate_wide(const Mlp& mlp, std::vector<Wide> x) {
  for (std::size_t c = 0; c < x.size(); ++c) x[c] = (x[c] - mlp.input_scaling.shift[c]) / mlp.input_scaling.scale[c];
  for (const DenseLayer& layer : mlp.layers) {
    std::vector<Wide> y(layer.bias.begin(), layer.bias.end());
    for (std::size_t j = 0; j < layer.outputs; ++j) {
      for (std::size_t k = 0; k < layer.inputs; ++k) y[j] += layer.weights[j * layer.inputs + k] * x[k];
      y[j] = activate_wide(layer.activation, y[j]);
    }
    x = std::move(y);
  }
  for (std::size_t c = 0; c < x.size(); ++c) x[c] = x[c] * mlp.output_scaling.scale[c] + mlp.output_scaling.shift[c];
  return x;
}

// Central differences in long double with step h = 1e-6 differ from the derivative by h^2 / 6 times the third
// derivative along v, here below 1e3, so 2e-10; the values' rounding (2^-64 of some 10) adds 2^-61 / h = 4e-13.
TEST(DerivativePlan, jvp_is_the_limit_of_differences_in_long_double) {
  if constexpr (sizeof(Wide) == sizeof(double)) GTEST_SKIP() << "long double is no wider than double here";
  constexpr std::size_t kSamples = 5;
  constexpr Wide kStep = 1e-6L;
  for (const char* name : {"tanh", "silu", "gelu", "softplus", "elu", "relu", "identity"}) {
    const Mlp mlp = test_net({4, 17, 9, 3}, *parse_activation(name), 3);
    const auto in = random_numbers<double>(kSamples * 4, 5), in_dot = random_numbers<double>(kSamples * 4, 6);
    const auto [out, out_dot, in_bar] =
        products(DerivativePlan<double>::compile(mlp), kSamples, in, in_dot, random_numbers<double>(kSamples * 3, 7));
    for (std::size_t i = 0; i < kSamples; ++i) {
      std::vector<Wide> above, below;
      for (std::size_t c = 0; c < 4; ++c) {
        above.push_back(in[i * 4 + c] + kStep * in_dot[i * 4 + c]);
        below.push_back(in[i * 4 + c] - kStep * in_dot[i * 4 + c]);
      }
      const std::vector<Wide> high = evaluate_wide(mlp, above), low = evaluate_wide(mlp, below);
      for (std::size_t j = 0; j < 3; ++j) {
        const Wide slope = (high[j] - low[j]) / (2 * kStep);
        EXPECT_NEAR(out_dot[i * 3 + j], static_cast<double>(slope), 2.1e-10) << name << ", sample " << i;
      }
    }
  }
}

template <class T>
void expect_same_bits() {
  const std::size_t samples = 67;
  for (const char* name : {"tanh", "relu", "gelu", "mish"}) {
    for (const auto& widths : kShapes) {
      const Mlp mlp = test_net(widths, *parse_activation(name), 3);
      const std::size_t inputs = mlp.inputs(), outputs = mlp.outputs();
      const auto in = random_numbers<T>(samples * inputs, 5), in_dot = random_numbers<T>(samples * inputs, 6);
      const auto out_bar = random_numbers<T>(samples * outputs, 7);
      const auto reference = DerivativePlan<T>::compile(mlp, available_cpu_targets()[0]);
      const Products<T> expected = products(reference, samples, in, in_dot, out_bar);
      const auto same = [](const std::vector<T>& a, const std::vector<T>& b) {
        return std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
      };
      std::vector<T> values(samples * outputs);
      Plan<T>::compile(mlp).evaluate(rows(in, samples), rows(values, samples));
      EXPECT_TRUE(same(values, expected.out)) << name;
      for (const CpuTarget target : available_cpu_targets()) {
        const auto plan = DerivativePlan<T>::compile(mlp, target);
        const Products<T> found = products(plan, samples, in, in_dot, out_bar);
        EXPECT_TRUE(same(found.out_dot, expected.out_dot)) << name << " on " << to_string(target);
        EXPECT_TRUE(same(found.in_bar, expected.in_bar)) << name << " on " << to_string(target);
        // Each sample alone, from columns, into columns.
        for (std::size_t i = 0; i < samples; i += 13) {
          std::vector<T> x(3 * inputs), x_dot(3 * inputs), y_bar(3 * outputs), y_dot(3 * outputs), x_bar(3 * inputs);
          for (std::size_t c = 0; c < inputs; ++c) x[3 * c] = in[i * inputs + c], x_dot[3 * c] = in_dot[i * inputs + c];
          for (std::size_t c = 0; c < outputs; ++c) y_bar[3 * c] = out_bar[i * outputs + c];
          plan.jvp({x.data(), 1, inputs, 1, 3}, {x_dot.data(), 1, inputs, 1, 3}, {}, {y_dot.data(), 1, outputs, 1, 3});
          plan.vjp({x.data(), 1, inputs, 1, 3}, {y_bar.data(), 1, outputs, 1, 3}, {}, {x_bar.data(), 1, inputs, 1, 3});
          for (std::size_t c = 0; c < outputs; ++c) EXPECT_EQ(y_dot[3 * c], expected.out_dot[i * outputs + c]);
          for (std::size_t c = 0; c < inputs; ++c) EXPECT_EQ(x_bar[3 * c], expected.in_bar[i * inputs + c]);
        }
      }
    }
  }
}
TEST(DerivativePlan, gives_the_same_bits_on_every_target_batch_and_layout_f32) { expect_same_bits<float>(); }
TEST(DerivativePlan, gives_the_same_bits_on_every_target_batch_and_layout_f64) { expect_same_bits<double>(); }

// Few samples are taken with registers over neurons, more in tiles.
template <class T>
void expect_the_rows_of_more() {
  for (const char* name : {"tanh", "identity", "softplus"}) {
    for (const auto& widths : kShapes) {
      const Mlp mlp = test_net(widths, *parse_activation(name), 4);
      const std::size_t inputs = mlp.inputs(), outputs = mlp.outputs();
      const auto in = random_numbers<T>(33 * inputs, 8), in_dot = random_numbers<T>(33 * inputs, 9);
      const auto out_bar = random_numbers<T>(33 * outputs, 10);
      const auto begin_with = [](const std::vector<T>& numbers, std::size_t count) {
        return std::vector<T>(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(count));
      };
      for (const CpuTarget target : available_cpu_targets()) {
        const auto plan = DerivativePlan<T>::compile(mlp, target);
        const Products<T> all = products(plan, 33, in, in_dot, out_bar);
        for (const std::size_t samples : {1, 2, 3, 4, 5, 7, 8, 9, 31, 32}) {
          const std::size_t numbers = samples * inputs, made = samples * outputs;
          const Products<T> few =
              products(plan, samples, begin_with(in, numbers), begin_with(in_dot, numbers), begin_with(out_bar, made));
          const std::string what = std::string(name) + ", " + std::to_string(samples) + " samples";
          EXPECT_EQ(few.out, begin_with(all.out, made)) << what;
          EXPECT_EQ(few.out_dot, begin_with(all.out_dot, made)) << what;
          EXPECT_EQ(few.in_bar, begin_with(all.in_bar, numbers)) << what;
        }
      }
    }
  }
}
TEST(DerivativePlan, few_samples_are_the_first_of_many_f32) { expect_the_rows_of_more<float>(); }
TEST(DerivativePlan, few_samples_are_the_first_of_many_f64) { expect_the_rows_of_more<double>(); }

// As views may be where they are the same.
TEST(DerivativePlan, results_may_take_the_place_of_what_was_read) {
  const Mlp mlp = test_net({3, 37, 3}, *parse_activation("tanh"), 5);
  const auto plan = DerivativePlan<double>::compile(mlp);
  for (const std::size_t samples : {1, 3, 4, 33}) {
    const auto in = random_numbers<double>(samples * 3, 11), vector = random_numbers<double>(samples * 3, 12);
    const Products<double> expected = products(plan, samples, in, vector, vector);
    auto x = in, w = vector;
    plan.vjp(rows(std::as_const(x), samples), rows(std::as_const(w), samples), rows(w, samples), rows(x, samples));
    EXPECT_EQ(w, expected.out) << samples;
    EXPECT_EQ(x, expected.in_bar) << samples;
    x = in, w = vector;
    plan.jvp(rows(std::as_const(x), samples), rows(std::as_const(w), samples), rows(x, samples), rows(w, samples));
    EXPECT_EQ(x, expected.out) << samples;
    EXPECT_EQ(w, expected.out_dot) << samples;
  }
}

// As docs/embedding.md has it: the state repeated by a stride of 0, unit vectors, one call.
TEST(DerivativePlan, a_whole_jacobian_comes_from_one_call_and_is_that_of_the_rows) {
  const auto plan = DerivativePlan<double>::compile(test_net({40, 17, 3}, {ActivationKind::tanh}, 3));
  const auto state = random_numbers<double>(40, 5);
  std::vector<double> units(40 * 40), columns(40 * 3), rows_of_outputs(3 * 3), bars(3 * 40);
  for (std::size_t i = 0; i < 40; ++i) units[i * 41] = 1;
  for (std::size_t j = 0; j < 3; ++j) rows_of_outputs[j * 4] = 1;
  plan.jvp({state.data(), 40, 40, 0, 1}, rows(std::as_const(units), 40), {}, rows(columns, 40));
  plan.vjp({state.data(), 3, 40, 0, 1}, rows(std::as_const(rows_of_outputs), 3), {}, rows(bars, 3));
  // Both are sums of 17 products of five roundings each.
  for (std::size_t j = 0; j < 3; ++j) {
    for (std::size_t i = 0; i < 40; ++i) EXPECT_NEAR(columns[i * 3 + j], bars[j * 40 + i], 1e-14);
  }
}

TEST(DerivativePlan, allocates_nothing_after_compiling) {
  const auto plan = DerivativePlan<float>::compile(test_net({3, 37, 3}, {ActivationKind::tanh}, 1));
  AlignedBuffer<std::byte> workspace(plan.workspace_bytes());
  std::vector<float> in(40 * 3), dot(40 * 3), out(40 * 3), result(40 * 3);
  const int before = allocations;
  plan.jvp(rows(std::as_const(in), 40), rows(std::as_const(dot), 40), rows(out, 40), rows(result, 40),
           workspace.span());
  plan.vjp(rows(std::as_const(in), 40), rows(std::as_const(dot), 40), rows(out, 40), rows(result, 40),
           workspace.span());
  EXPECT_EQ(allocations, before);
}

TEST(DerivativePlan, shapes_that_do_not_fit_are_refused_by_name) {
  const auto plan = DerivativePlan<float>::compile(test_net({3, 5, 2}, {ActivationKind::tanh}, 1));
  std::vector<float> three(3 * 4), two(2 * 4), fewer(2 * 3);
  const auto in = rows(std::as_const(three), 4);
  EXPECT_NE(
      message_of([&] { plan.jvp(rows(std::as_const(two), 4), in, {}, rows(two, 4)); }).find("in.columns: found 2"),
      std::string::npos);
  EXPECT_NE(message_of([&] { plan.jvp(in, in, {}, rows(fewer, 3)); }).find("out_dot.rows: found 3, expected 4"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              plan.jvp(in, {nullptr, 4, 3, 3, 1}, {}, rows(two, 4));
            }).find("in_dot.data: found a null"),
            std::string::npos);
  EXPECT_NE(message_of([&] { plan.vjp(in, in, {}, rows(three, 4)); }).find("out_bar.columns: found 3"),
            std::string::npos);
  std::vector<float> values(2 * 4), along(3 * 4);
  const auto dot = rows(std::as_const(along), 4);
  const auto overlaps = [&](auto call, const std::string& text) { return message_of(call).find(text) == 0; };
  EXPECT_TRUE(overlaps(
      [&] {
        plan.jvp(in, dot, rows(two, 4), {two.data(), 4, 2, 2, 1});
      },
      "out_dot: found memory that overlaps out"));
  EXPECT_TRUE(overlaps(
      [&] {
        plan.jvp(in, dot, {}, {along.data() + 1, 4, 2, 2, 1});
      },
      "out_dot: found memory that overlaps in_dot"));
  EXPECT_TRUE(overlaps(
      [&] {
        plan.vjp(in, rows(std::as_const(two), 4), {three.data(), 4, 2, 2, 1}, rows(along, 4));
      },
      "out: found memory that overlaps in,"));
  EXPECT_TRUE(overlaps(
      [&] {
        plan.jvp(in, dot, {}, {two.data(), 4, 2, 0, 1});
      },
      "out_dot: found strides 0 (row) and 1 (column) for 4 x 2 results"));
  EXPECT_TRUE(overlaps(
      [&] {
        plan.vjp(in, rows(std::as_const(two), 4), {values.data(), 4, 2, 1, 1}, rows(along, 4));
      },
      "out: found strides 1 (row) and 1 (column)"));
  EXPECT_EQ(message_of([&] {
              plan.jvp(in, dot, rows(values, 4), {along.data(), 4, 2, 3, 1});
            }),
            "no error");  // in place
  AlignedBuffer<std::byte> workspace(plan.workspace_bytes());
  float* const scratch = reinterpret_cast<float*>(workspace.data());
  const auto in_scratch = [&](std::size_t columns) { return MatrixView<float>{scratch, 4, columns, 3, 1}; };
  const std::pair<std::string, std::function<void()>> held[] = {
      {"in,", [&] { plan.jvp(in_scratch(3), dot, {}, rows(two, 4), workspace.span()); }},
      {"in_dot,", [&] { plan.jvp(in, in_scratch(3), {}, rows(two, 4), workspace.span()); }},
      {"out,", [&] { plan.jvp(in, dot, in_scratch(2), rows(two, 4), workspace.span()); }},
      {"out_dot,", [&] { plan.jvp(in, dot, {}, in_scratch(2), workspace.span()); }},
      {"in_bar,", [&] { plan.vjp(in, rows(std::as_const(two), 4), {}, in_scratch(3), workspace.span()); }}};
  for (const auto& [name, call] : held) {
    EXPECT_TRUE(overlaps(call, "workspace: found memory that overlaps " + name)) << message_of(call);
  }
  std::vector<std::byte> small(64);
  EXPECT_NE(message_of([&] { plan.jvp(in, in, {}, rows(two, 4), small); }).find("workspace"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
