// Whole Jacobians: the bits of products with unit vectors, whatever the target, the batch and the layout.
#include "lockstep/nn/net_derivatives.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/nn/net_plan.h"
#include "lockstep/nn/testing/graph_models.h"

extern std::atomic<int> allocations;  // count_allocations.cpp

namespace lockstep::nn {
namespace {

using graph::testing::Builder;
using mlp::random_numbers;

Model stack(const std::vector<std::size_t>& widths, ActivationKind activation, unsigned seed) {
  Mlp mlp = mlp::random_mlp(widths, {activation}, seed);
  mlp::give_scaling(mlp);
  return Model::from_mlp(mlp);
}

// A residual net: x + layers(x), and a layer to `outputs`.
Model residual(std::size_t inputs, std::size_t outputs) {
  Builder b;
  const std::size_t x = b.input(inputs);
  const std::size_t hidden = b.add(Activate{{ActivationKind::tanh}}, {b.add(b.dense(inputs, 19), {x})});
  const std::size_t sum = b.add(Binary{BinaryKind::add}, {x, b.add(b.dense(19, inputs), {hidden})});
  b.output(b.add(b.dense(inputs, outputs), {b.add(Activate{{ActivationKind::silu}}, {sum})}));
  return testing::named(b.graph);
}

// Two inputs of 3 and 2 features; outputs of 4 and of `last`.
Model two_ports(std::size_t last) {
  Builder b;
  const std::size_t x = b.input(3), y = b.input(2);
  const std::size_t both = b.add(Concatenate{}, {x, y});
  const std::size_t hidden = b.add(Activate{{ActivationKind::tanh}}, {b.add(b.dense(5, 11), {both})});
  b.output(b.add(b.dense(11, 4), {hidden}));
  b.output(b.add(b.dense(5, last), {b.add(Binary{BinaryKind::multiply}, {both, both})}));
  return testing::named(b.graph);
}

struct Case {
  std::string name;
  Model model;
};
// With more outputs than inputs, as many, and fewer; some of more than a tile of unit vectors.
std::vector<Case> cases() {
  return {{"stack 3-37-7", stack({3, 37, 7}, ActivationKind::tanh, 1)},
          {"stack 5-9-5", stack({5, 9, 5}, ActivationKind::relu, 2)},
          {"stack 11-19-26-8", stack({11, 19, 26, 8}, ActivationKind::gelu, 3)},
          {"stack 40-17-35", stack({40, 17, 35}, ActivationKind::tanh, 4)},
          {"stack 1-4-1", stack({1, 4, 1}, ActivationKind::silu, 5)},
          {"residual 4-6", residual(4, 6)},
          {"residual 7-3", residual(7, 3)},
          {"residual 36-37", residual(36, 37)},
          {"two ports, 5 to 6", two_ports(2)},
          {"two ports, 5 to 5", two_ports(1)}};
}

std::size_t features(auto ports) {
  std::size_t sum = 0;
  for (const auto& port : ports) sum += port.width;
  return sum;
}

// Views of the ports' features, one port after another in each row.
template <class T>
std::vector<MatrixView<T>> by_port(auto ports, T* data, std::size_t rows, std::ptrdiff_t row_stride,
                                   std::ptrdiff_t column_stride) {
  std::vector<MatrixView<T>> views;
  for (const auto& port : ports) {
    views.push_back({data, rows, port.width, row_stride, column_stride});
    data += static_cast<std::ptrdiff_t>(port.width) * column_stride;
  }
  return views;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
struct Jacobian {
  std::vector<T> out, numbers;  // [sample][output], [sample][output][input]
};

template <class T>
Jacobian<T> jacobian(const NetDerivatives<T>& net, const std::vector<T>& in, std::size_t samples) {
  const std::size_t inputs = features(net.inputs()), outputs = features(net.outputs());
  Jacobian<T> made{std::vector<T>(samples * outputs), std::vector<T>(samples * outputs * inputs)};
  net.jacobian(by_port(net.inputs(), in.data(), samples, static_cast<std::ptrdiff_t>(inputs), 1),
               by_port(net.outputs(), made.out.data(), samples, static_cast<std::ptrdiff_t>(outputs), 1),
               {made.numbers.data(), samples, outputs, inputs});
  return made;
}

// A column after another by jvp where inputs are not more than outputs, else a row after another by vjp.
template <class T>
Jacobian<T> by_products(const NetDerivatives<T>& net, const std::vector<T>& in, std::size_t samples) {
  const std::size_t inputs = features(net.inputs()), outputs = features(net.outputs());
  const auto all_inputs = static_cast<std::ptrdiff_t>(inputs), all_outputs = static_cast<std::ptrdiff_t>(outputs);
  Jacobian<T> made{std::vector<T>(samples * outputs), std::vector<T>(samples * outputs * inputs)};
  const auto x = by_port(net.inputs(), in.data(), samples, all_inputs, 1);
  const auto y = by_port(net.outputs(), made.out.data(), samples, all_outputs, 1);
  const bool forward = inputs <= outputs;
  for (std::size_t i = 0; i < (forward ? inputs : outputs); ++i) {
    std::vector<T> unit(forward ? inputs : outputs);
    unit[i] = 1;
    if (forward) {
      net.jvp(x, by_port<const T>(net.inputs(), unit.data(), samples, 0, 1), y,
              by_port(net.outputs(), made.numbers.data() + i, samples, all_outputs * all_inputs, all_inputs));
    } else {
      net.vjp(x, by_port<const T>(net.outputs(), unit.data(), samples, 0, 1), y,
              by_port(net.inputs(), made.numbers.data() + i * inputs, samples, all_outputs * all_inputs, 1));
    }
  }
  return made;
}

template <class T>
void expect_products() {
  for (const auto& [name, model] : cases()) {
    const auto reference = NetDerivatives<T>::compile(model, available_cpu_targets()[0]);
    for (const std::size_t samples : {1, 2, 3, 4, 9, 31, 32, 33, 1000}) {
      const std::string what = name + ", " + std::to_string(samples) + " samples";
      const auto in = random_numbers<T>(samples * features(reference.inputs()), 7);
      const Jacobian<T> expected = by_products(reference, in, samples);
      for (const CpuTarget target : available_cpu_targets()) {
        const Jacobian<T> found = jacobian(NetDerivatives<T>::compile(model, target), in, samples);
        EXPECT_TRUE(same_bits(found.numbers, expected.numbers)) << what << " on " << to_string(target);
        EXPECT_TRUE(same_bits(found.out, expected.out)) << what << " on " << to_string(target);
      }
    }
  }
}
TEST(Jacobian, has_the_bits_of_products_with_unit_vectors_on_every_target_f32) { expect_products<float>(); }
TEST(Jacobian, has_the_bits_of_products_with_unit_vectors_on_every_target_f64) { expect_products<double>(); }

TEST(Jacobian, is_the_same_for_every_batch_and_layout) {
  constexpr std::size_t kSamples = 300;  // more than are taken together
  for (const auto& [title, model] : cases()) {
    const auto& name = title;  // lambdas may not take parts of a binding, says Clang 14
    const auto net = NetDerivatives<double>::compile(model);
    const std::size_t inputs = features(net.inputs()), outputs = features(net.outputs());
    const auto in = random_numbers<double>(kSamples * inputs, 9);
    const Jacobian<double> expected = jacobian(net, in, kSamples);
    const auto expect = [&](const MatrixBatchView<double>& found, std::size_t first, const std::string& what) {
      std::vector<double> numbers;
      for (std::size_t s = 0; s < found.samples; ++s) {
        for (std::size_t j = 0; j < outputs; ++j) {
          for (std::size_t i = 0; i < inputs; ++i) numbers.push_back(found(s, j, i));
        }
      }
      const auto begin = expected.numbers.begin() + static_cast<std::ptrdiff_t>(first * outputs * inputs);
      const std::vector<double> wanted(begin, begin + static_cast<std::ptrdiff_t>(numbers.size()));
      EXPECT_TRUE(same_bits(numbers, wanted)) << name << ", " << what;
    };
    for (const std::size_t first : {0, 1, 150, 299}) {  // alone
      std::vector<double> one(outputs * inputs);
      const MatrixBatchView<double> view{one.data(), 1, outputs, inputs};
      net.jacobian(by_port<const double>(net.inputs(), in.data() + first * inputs, 1, 0, 1), {}, view);
      expect(view, first, "sample " + std::to_string(first));
    }
    std::vector<double> numbers(3 * kSamples * outputs * inputs);
    const auto samples = static_cast<std::ptrdiff_t>(kSamples), rows = static_cast<std::ptrdiff_t>(outputs),
               columns = static_cast<std::ptrdiff_t>(inputs);
    const auto end = static_cast<std::ptrdiff_t>(numbers.size()) - 1;
    const std::vector<MatrixBatchView<double>> layouts = {
        MatrixBatchView<double>::column_major(numbers.data(), kSamples, outputs, inputs),
        {numbers.data(), kSamples, outputs, inputs, 1, samples, samples * rows},            // samples innermost
        {numbers.data(), kSamples, outputs, inputs, columns, samples * columns, 1},         // between the others
        {numbers.data() + 2, kSamples, outputs, inputs, 3 * rows * columns, 3, 3 * rows},   // every third number
        {numbers.data() + end, kSamples, outputs, inputs, -rows * columns, -columns, -1}};  // backwards
    std::vector<double> columns_of_in(in.size());
    for (std::size_t s = 0; s < kSamples; ++s) {
      for (std::size_t i = 0; i < inputs; ++i) columns_of_in[i * kSamples + s] = in[s * inputs + i];
    }
    const auto from = by_port<const double>(net.inputs(), columns_of_in.data(), kSamples, 1, samples);
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      net.jacobian(from, {}, layouts[i]);
      expect(layouts[i], 0, "layout " + std::to_string(i));
    }
  }
}

// Of x and out in one place, and of fewer outputs than there are.
TEST(Jacobian, gives_the_nets_values_where_they_are_wanted) {
  for (const std::size_t samples : {1, 2, 5, 31, 40, 300}) {
    for (const Model& model : {stack({5, 9, 5}, ActivationKind::tanh, 2), residual(4, 4), residual(40, 40)}) {
      const auto net = NetDerivatives<double>::compile(model);
      const std::size_t width = features(net.inputs());
      const auto in = random_numbers<double>(samples * width, 11);
      std::vector<double> values(in.size()), jacobians(in.size() * width), x = in;
      const auto rows = MatrixView<const double>::row_major(in.data(), samples, width);
      NetPlan<double>::compile(model).evaluate(rows, MatrixView<double>::row_major(values.data(), samples, width), 1);
      const Jacobian<double> expected = jacobian(net, in, samples);
      EXPECT_EQ(expected.out, values);
      net.jacobian(MatrixView<const double>::row_major(x.data(), samples, width),
                   MatrixView<double>::row_major(x.data(), samples, width), {jacobians.data(), samples, width, width});
      EXPECT_EQ(x, values);
      EXPECT_EQ(jacobians, expected.numbers);
    }
    const auto net = NetDerivatives<float>::compile(two_ports(2));
    const auto in = random_numbers<float>(samples * 5, 12);
    const Jacobian<float> expected = jacobian(net, in, samples);
    std::vector<float> last(samples * 2), jacobians(samples * 30);
    const std::vector<MatrixView<float>> out = {{}, MatrixView<float>::row_major(last.data(), samples, 2)};
    net.jacobian(by_port<const float>(net.inputs(), in.data(), samples, 5, 1), out, {jacobians.data(), samples, 6, 5});
    EXPECT_EQ(jacobians, expected.numbers);
    for (std::size_t s = 0; s < samples; ++s) EXPECT_EQ(last[2 * s + 1], expected.out[6 * s + 5]);
  }
}

TEST(Jacobian, allocates_nothing_with_a_workspace) {
  for (const auto& [name, model] : cases()) {
    const auto net = NetDerivatives<float>::compile(model);
    const std::size_t inputs = features(net.inputs()), outputs = features(net.outputs());
    AlignedBuffer<std::byte> workspace(net.workspace_bytes());
    const auto in = random_numbers<float>(300 * inputs, 13);
    std::vector<float> out(300 * outputs), jacobians(300 * outputs * inputs);
    int made = -1;
    std::thread([&] {  // one that has not called before
      made = 0;
      for (const std::size_t samples : {1, 33, 300}) {
        const auto from = by_port(net.inputs(), in.data(), samples, static_cast<std::ptrdiff_t>(inputs), 1);
        const auto to = by_port(net.outputs(), out.data(), samples, static_cast<std::ptrdiff_t>(outputs), 1);
        const int before = allocations;
        net.jacobian(from, to, {jacobians.data(), samples, outputs, inputs}, workspace.span());
        made += allocations - before;
      }
    })
        .join();
    EXPECT_EQ(made, 0) << name;
  }
}

TEST(Jacobian, is_made_by_many_threads_at_once) {
  const auto net = NetDerivatives<double>::compile(residual(7, 3));
  const auto in = random_numbers<double>(64 * 7, 14);
  const Jacobian<double> expected = jacobian(net, in, 64);
  std::vector<Jacobian<double>> found(4);
  std::vector<std::thread> threads;
  for (auto& one : found) threads.emplace_back([&] { one = jacobian(net, in, 64); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& one : found) EXPECT_EQ(one.numbers, expected.numbers);
}

// Central differences with step h = 1e-5 differ from the derivative by h^2 / 6 times a third derivative of some ten,
// and by the values' rounding, some 1e-15 / h: together below 1e-9.
TEST(Jacobian, is_the_limit_of_differences) {
  constexpr double kStep = 1e-5;
  for (const Model& model : {stack({3, 37, 7}, ActivationKind::tanh, 1), residual(7, 3), residual(4, 6)}) {
    const auto net = NetDerivatives<double>::compile(model);
    const auto plan = NetPlan<double>::compile(model);
    const std::size_t inputs = features(net.inputs()), outputs = features(net.outputs());
    const auto in = random_numbers<double>(inputs, 15);
    const Jacobian<double> found = jacobian(net, in, 1);
    for (std::size_t i = 0; i < inputs; ++i) {
      std::vector<double> above = in, below = in, high(outputs), low(outputs);
      above[i] += kStep;
      below[i] -= kStep;
      plan.evaluate(MatrixView<const double>::row_major(above.data(), 1, inputs),
                    MatrixView<double>::row_major(high.data(), 1, outputs), 1);
      plan.evaluate(MatrixView<const double>::row_major(below.data(), 1, inputs),
                    MatrixView<double>::row_major(low.data(), 1, outputs), 1);
      for (std::size_t j = 0; j < outputs; ++j) {
        EXPECT_NEAR(found.numbers[j * inputs + i], (high[j] - low[j]) / (above[i] - below[i]), 1e-9);
      }
    }
  }
}

TEST(Jacobian, misuse_is_refused_by_name_before_anything_is_written) {
  for (const Model& model : {stack({3, 5, 2}, ActivationKind::tanh, 1), residual(3, 2)}) {
    const auto net = NetDerivatives<float>::compile(model);
    const std::string x = '"' + net.inputs()[0].name + '"', y = '"' + net.outputs()[0].name + '"';
    std::vector<float> in(4 * 3, 0.5F), out(4 * 2, -1), numbers(4 * 6, -1);
    using In = MatrixView<const float>;
    using Out = MatrixView<float>;
    using Batch = MatrixBatchView<float>;
    const In from = In::row_major(in.data(), 4, 3);
    const Out to = Out::row_major(out.data(), 4, 2);
    const Batch jacobian{numbers.data(), 4, 2, 3};
    AlignedBuffer<std::byte> workspace(net.workspace_bytes() + 64);
    const auto refused = [&](In read, Out write, const Batch& made, std::span<std::byte> scratch) {
      return message_of([&] { net.jacobian({&read, 1}, {&write, 1}, made, scratch); }, ErrorKind::invalid_argument);
    };
    const auto starts = [](const std::string& message, const std::string& beginning) {
      EXPECT_EQ(message.substr(0, beginning.size()), beginning);
    };
    const auto all = workspace.span();
    starts(refused(In::row_major(in.data(), 4, 2), to, jacobian, all), "in " + x + ".columns: found 2, expected 3");
    starts(refused(from, Out::row_major(out.data(), 3, 2), jacobian, all), "out " + y + ".rows: found 3, expected 4");
    starts(refused({nullptr, 4, 3, 3, 1}, to, jacobian, all), "in " + x + ".data: found a null pointer");
    starts(refused(from, to, {numbers.data(), 3, 2, 3}, all), "jacobian.samples: found 3, expected 4");
    starts(refused(from, to, {numbers.data(), 4, 3, 3}, all), "jacobian.rows: found 3, expected 2");
    starts(refused(from, to, {numbers.data(), 4, 2, 2}, all), "jacobian.columns: found 2, expected 3");
    starts(refused(from, to, {nullptr, 4, 2, 3}, all), "jacobian.data: found a null pointer");
    starts(refused(from, to, {numbers.data(), 4, 2, 3, 5, 3, 1}, all),
           "jacobian: found strides 5, 3 and 1 for 4 x 2 x 3");
    starts(refused(from, to, {numbers.data(), 4, 2, 3, 0, 3, 1}, all),
           "jacobian: found strides 0, 3 and 1 for 4 x 2 x 3");
    starts(refused(In::row_major(numbers.data() + 12, 4, 3), to, jacobian, all),
           "jacobian: found memory that overlaps in " + x + ", expected memory of its own");
    starts(refused(from, {numbers.data() + 23, 4, 2, 2, 1}, jacobian, all),
           "jacobian: found memory that overlaps out " + y);
    starts(refused(from, {in.data(), 4, 2, 2, 1}, jacobian, all), "out " + y + ": found memory that overlaps in " + x);
    starts(refused(from, {out.data(), 4, 2, 1, 1}, jacobian, all), "out " + y + ": found strides 1 (row)");
    starts(refused(from, to, jacobian, all.first(64)), "workspace: found 64, expected ");
    starts(refused(from, to, jacobian, all.subspan(4)), "workspace alignment: found 4, expected 0");
    float* const scratch = reinterpret_cast<float*>(workspace.data());
    starts(refused(from, to, {scratch, 4, 2, 3}, all), "workspace: found memory that overlaps jacobian");
    starts(refused(In::row_major(scratch, 4, 3), to, jacobian, all), "workspace: found memory that overlaps in " + x);
    starts(refused(from, Out::row_major(scratch, 4, 2), jacobian, all),
           "workspace: found memory that overlaps out " + y);
    starts(message_of([&] { net.jacobian(std::span<const In>(), {}, jacobian); }, ErrorKind::invalid_argument),
           "in: found 0 views, expected 1, one for each port");
    EXPECT_EQ(out, std::vector<float>(4 * 2, -1));
    EXPECT_EQ(numbers, std::vector<float>(4 * 6, -1));
    // Columns side by side in one array share nothing; no samples write nothing.
    std::vector<float> together(4 * 11, 0.5F);
    EXPECT_EQ(refused({together.data(), 4, 3, 11, 1}, {together.data() + 3, 4, 2, 11, 1},
                      {together.data() + 5, 4, 2, 3, 11, 3, 1}, all),
              "no error");
    EXPECT_EQ(refused(from, to, jacobian, all), "no error");
    for (std::size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(together[i / 6 * 11 + 5 + i % 6], numbers[i]);
    EXPECT_EQ(refused({nullptr, 0, 3, 3, 1}, {nullptr, 0, 2, 2, 1}, {nullptr, 0, 2, 3}, all), "no error");
  }
}

}  // namespace
}  // namespace lockstep::nn
