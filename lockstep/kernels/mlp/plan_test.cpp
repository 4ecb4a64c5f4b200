// Plans give the bits of the plain reference: every target, width, batch size, layout, split and number of threads.
#include "lockstep/kernels/mlp/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/kernels/mlp/detail/packed.h"
#include "lockstep/kernels/mlp/testing/reference.h"

namespace lockstep {
namespace {

using mlp::evaluate_reference;
using mlp::random_mlp;

// 1009: a prime well past the lane counts.
constexpr std::size_t kBatches[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 63, 97, 1009};

template <class T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// Samples in row-major order, and what the reference makes of them.
template <class T>
struct Samples {
  std::size_t count;
  std::vector<T> in, out;

  Samples(const Mlp& mlp, std::size_t samples, unsigned seed = 7) : count(samples) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<T> x(mlp.inputs());
      for (T& value : x) value = static_cast<T>(normal(random));
      in.insert(in.end(), x.begin(), x.end());
      const std::vector<T> y = evaluate_reference(mlp, x);
      out.insert(out.end(), y.begin(), y.end());
    }
  }
};

// The first sample and output that differ, as text; empty when all bits agree.
template <class T>
std::string difference(const MatrixView<const T>& found, const T* expected) {
  for (std::size_t row = 0; row < found.rows; ++row) {
    for (std::size_t column = 0; column < found.columns; ++column) {
      if (same_bits(found(row, column), expected[row * found.columns + column])) continue;
      return "sample " + std::to_string(row) + " of " + std::to_string(found.rows) + ", output " +
             std::to_string(column) + ": " + std::to_string(found(row, column)) + " against " +
             std::to_string(expected[row * found.columns + column]);
    }
  }
  return "";
}

// Strided storage: guard elements between and around must stay as they were.
template <class T>
struct Guarded {
  static constexpr T kGuard = T(-12345);
  std::vector<T> storage;
  MatrixView<T> view;

  Guarded(std::size_t rows, std::size_t columns, std::ptrdiff_t row_stride, std::ptrdiff_t column_stride)
      : storage(1 + rows * row_stride + columns * column_stride, kGuard),
        view{storage.data() + 1, rows, columns, row_stride, column_stride} {}
  Guarded(std::size_t rows, std::size_t columns, std::ptrdiff_t row_stride, std::ptrdiff_t column_stride, const T* from)
      : Guarded(rows, columns, row_stride, column_stride) {
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) view(i, j) = from[i * columns + j];
    }
  }
  std::size_t guards() const { return static_cast<std::size_t>(std::count(storage.begin(), storage.end(), kGuard)); }
};

struct Layout {
  bool by_column;
  std::ptrdiff_t gap;       // elements between neighbours
  std::ptrdiff_t line_gap;  // elements between rows (columns)
};
constexpr Layout kLayouts[] = {{false, 0, 0}, {false, 0, 5}, {false, 2, 3}, {true, 0, 0}, {true, 0, 3}, {true, 1, 1}};

template <class T>
Guarded<T> laid_out(const Layout& layout, std::size_t rows, std::size_t columns, const T* from = nullptr) {
  const auto near = 1 + layout.gap;
  const auto far = near * static_cast<std::ptrdiff_t>(layout.by_column ? rows : columns) + layout.line_gap;
  const auto row_stride = layout.by_column ? near : far, column_stride = layout.by_column ? far : near;
  return from == nullptr ? Guarded<T>(rows, columns, row_stride, column_stride)
                         : Guarded<T>(rows, columns, row_stride, column_stride, from);
}

template <class T>
class PlanBits : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(PlanBits, Precisions);

TYPED_TEST(PlanBits, every_target_width_and_batch_size_matches_the_reference) {
  using T = TypeParam;
  const std::vector<std::vector<std::size_t>> stacks = {
      {1, 1},   {3, 5},     {5, 3, 1},     {31, 32, 33},          {32, 31},           {3, 100, 3}, {128, 4},
      {4, 133}, {133, 128}, {2, 20, 5, 1}, {7, 1, 12, 13, 25, 2}, {10, 49, 64, 65, 8}};
  unsigned seed = 0;
  std::size_t turn = 0;
  for (const auto& widths : stacks) {
    const Mlp mlp = random_mlp(widths, {ActivationKind::tanh}, ++seed);
    const std::size_t most = kSanitized ? 97 : 1009;
    const Samples<T> samples(mlp, most);
    for (const CpuTarget target : available_cpu_targets()) {
      const auto plan = Plan<T>::compile(mlp, target);
      for (const std::size_t batch : kBatches) {
        if (batch > most || !is_tried(turn++, 11)) continue;
        std::vector<T> out(batch * mlp.outputs());
        plan.evaluate(MatrixView<const T>::row_major(samples.in.data(), batch, mlp.inputs()),
                      MatrixView<T>::row_major(out.data(), batch, mlp.outputs()));
        EXPECT_EQ("", difference(MatrixView<const T>::row_major(out.data(), batch, mlp.outputs()), samples.out.data()))
            << plan.description();
      }
    }
  }
}

// More weights than caches hold: strips go side by side. With scalings, and samples that fill no strip.
TYPED_TEST(PlanBits, nets_whose_weights_come_from_memory_match_the_reference) {
  using T = TypeParam;
  const std::size_t width = sizeof(T) == 4 ? 2520 : 1790;
  Mlp mlp = random_mlp({3, width, width, 2}, {ActivationKind::relu}, 5);
  mlp.layers[0].activation.kind = ActivationKind::tanh;
  mlp.input_scaling = {{0.1, 0, -0.2}, {2, 1, 0.5}};
  mlp.output_scaling = {{3, 0.5}, {1, -2}};
  const std::size_t most = kSanitized ? 17 : sizeof(T) == 4 ? 50 : 75;
  const Samples<T> samples(mlp, most);
  for (const CpuTarget target : available_cpu_targets()) {
    const auto plan = Plan<T>::compile(mlp, target);
    for (const std::size_t batch : {std::size_t{17}, most}) {
      const Layout layout = kLayouts[batch == 17 ? 3 : 1];
      auto in = laid_out(layout, batch, mlp.inputs(), samples.in.data());
      auto out = laid_out<T>(layout, batch, mlp.outputs());
      const std::size_t guards = out.guards();
      plan.evaluate(in.view, out.view);
      EXPECT_EQ("", difference(MatrixView<const T>(out.view), samples.out.data())) << plan.description();
      EXPECT_EQ(out.guards() + batch * mlp.outputs(), guards);
    }
  }
}

TYPED_TEST(PlanBits, few_inputs_and_outputs_around_a_layer_of_any_width_match_the_reference) {
  using T = TypeParam;
  constexpr ActivationKind kKinds[] = {ActivationKind::identity, ActivationKind::relu, ActivationKind::tanh,
                                       ActivationKind::sigmoid};
  unsigned seed = 0;
  std::size_t turn = 0;
  const auto check = [&](const std::vector<std::size_t>& widths, ActivationKind hidden, ActivationKind last) {
    Mlp mlp = random_mlp(widths, {hidden}, ++seed);
    mlp.layers.back().activation.kind = last;
    const Samples<T> samples(mlp, 65);
    for (const CpuTarget target : available_cpu_targets()) {
      const auto plan = Plan<T>::compile(mlp, target);
      for (const std::size_t batch : {65, 42}) {  // one sample more than whole strips of any width; one register more
        std::vector<T> out(batch * mlp.outputs());
        plan.evaluate(MatrixView<const T>::row_major(samples.in.data(), batch, mlp.inputs()),
                      MatrixView<T>::row_major(out.data(), batch, mlp.outputs()));
        EXPECT_EQ("", difference(MatrixView<const T>::row_major(out.data(), batch, mlp.outputs()), samples.out.data()))
            << plan.description();
      }
    }
  };
  for (std::size_t inputs = 1; inputs <= 5; ++inputs) {
    for (std::size_t outputs = 1; outputs <= 9; ++outputs) {
      for (const std::size_t width : {1, 2, 3, 4, 5, 8, 9, 20, 21}) {
        const ActivationKind last = kKinds[++turn % 4];
        if (!is_tried(turn, 7)) continue;
        check({inputs, width, outputs}, ActivationKind::tanh, last);
        check({inputs, width, outputs}, ActivationKind::relu, last);
      }
    }
  }
  // Three thin layers in a row, and after layers that would leave their tanh to the next.
  for (const ActivationKind kind : {ActivationKind::tanh, ActivationKind::relu}) {
    check({3, 4, 4, 4, 2}, kind, ActivationKind::identity);
    check({9, 4, 30, 3, 20, 2, 17}, kind, ActivationKind::identity);
    check({9, 30, 3, 30, 3, 5}, kind, ActivationKind::tanh);
    // Inputs that stay in registers; layers of one block and of several beside the tanh before them.
    check({4, 32, 16, 4}, kind, ActivationKind::identity);
    for (std::size_t inputs = 6; inputs <= 9; ++inputs) {
      check({inputs, 17, 24, inputs, 9, 4}, kind, ActivationKind::tanh);
      check({inputs, 1, 10, 2, 40, 5}, kind, ActivationKind::identity);
    }
  }
}

TYPED_TEST(PlanBits, the_schedules_of_all_kinds_of_processor_match_the_reference) {
  using T = TypeParam;
  for (const auto& widths : {std::vector<std::size_t>{4, 19, 130, 3}, {32, 128, 31}, {2, 20, 5, 1}}) {
    const Mlp mlp = random_mlp(widths, {ActivationKind::relu}, 5);
    const Samples<T> samples(mlp, mlp::kMostLanes);
    for (const CpuTarget target : available_cpu_targets()) {
      auto net = mlp::pack<T>(mlp, target);
      for (const mlp::WidePipes pipes : {mlp::WidePipes::one, mlp::WidePipes::two, mlp::WidePipes::two_far}) {
        net.most_rows = mlp::schedule_rests(net, pipes);
        AlignedBuffer<T> workspace(net.workspace());
        for (std::size_t batch = 1; batch < net.kernels->strip(); ++batch) {
          std::vector<T> out(batch * mlp.outputs());
          net.kernels->evaluate(net, MatrixView<const T>::row_major(samples.in.data(), batch, mlp.inputs()),
                                MatrixView<T>::row_major(out.data(), batch, mlp.outputs()), workspace.data());
          EXPECT_EQ("",
                    difference(MatrixView<const T>::row_major(out.data(), batch, mlp.outputs()), samples.out.data()))
              << to_string(target) << ", " << batch << " samples";
        }
      }
    }
  }
}

TYPED_TEST(PlanBits, large_layers_by_rows_match_the_reference) {
  using T = TypeParam;
  const Mlp mlp = random_mlp({150, 230, 5}, {ActivationKind::tanh}, 6);
  const Samples<T> samples(mlp, 31);
  for (const CpuTarget target : available_cpu_targets()) {
    auto net = mlp::pack<T>(mlp, target);
    ASSERT_LT(net.layers[0].row_panel * net.kernels->lanes, net.layers[0].outputs) << "not in panels";
    net.most_rows = 31;
    for (std::size_t batch = 1; batch < net.kernels->strip(); ++batch) {
      net.rest[batch] = {0, static_cast<std::uint8_t>(batch)};
    }
    AlignedBuffer<T> workspace(net.workspace());
    for (const std::size_t batch : {1, 2, 3, 5, 7, 8, 9, 15, 31}) {
      if (batch >= net.kernels->strip()) continue;
      std::vector<T> out(batch * mlp.outputs());
      net.kernels->evaluate(net, MatrixView<const T>::row_major(samples.in.data(), batch, mlp.inputs()),
                            MatrixView<T>::row_major(out.data(), batch, mlp.outputs()), workspace.data());
      EXPECT_EQ("", difference(MatrixView<const T>::row_major(out.data(), batch, mlp.outputs()), samples.out.data()))
          << to_string(target) << ", " << batch << " samples";
    }
  }
}

TYPED_TEST(PlanBits, every_activation_matches_the_reference) {
  using T = TypeParam;
  for (const Activation& activation : all_activations()) {
    Mlp mlp = random_mlp({4, 37, 14, 3}, activation, 3);
    for (double& weight : mlp.layers[0].weights) weight *= 10;  // into the saturated ranges
    mlp.layers.back().activation = mlp.layers.front().activation;
    const Samples<T> samples(mlp, 97);
    for (const CpuTarget target : available_cpu_targets()) {
      const auto plan = Plan<T>::compile(mlp, target);
      for (const std::size_t batch : {std::size_t(1), std::size_t(5), std::size_t(97)}) {
        std::vector<T> out(batch * mlp.outputs());
        plan.evaluate(MatrixView<const T>::row_major(samples.in.data(), batch, mlp.inputs()),
                      MatrixView<T>::row_major(out.data(), batch, mlp.outputs()));
        EXPECT_EQ("", difference(MatrixView<const T>::row_major(out.data(), batch, mlp.outputs()), samples.out.data()))
            << plan.description() << " " << to_string(activation);
      }
    }
  }
}

// A tile may take a layer's tanh among the products of the next layer (detail/tile_kernel-inl.h).
TYPED_TEST(PlanBits, tanh_before_and_after_every_activation_matches_the_reference) {
  using T = TypeParam;
  for (const Activation& activation : all_activations()) {
    Mlp mlp = random_mlp({4, 3, 26, 30, 5, 17, 2}, {ActivationKind::tanh}, 5);
    mlp.layers[2].activation = mlp.layers[5].activation = activation;
    Samples<T> samples(mlp, 64);
    for (const CpuTarget target : available_cpu_targets()) {
      const auto plan = Plan<T>::compile(mlp, target);
      std::vector<T> out(samples.out.size());
      plan.evaluate(MatrixView<const T>::row_major(samples.in.data(), 64, 4),
                    MatrixView<T>::row_major(out.data(), 64, 2));
      EXPECT_EQ("", difference(MatrixView<const T>::row_major(out.data(), 64, 2), samples.out.data()))
          << plan.description() << " " << to_string(activation);
    }
  }
}

TYPED_TEST(PlanBits, every_layout_gives_the_same_bits_and_gaps_stay_untouched) {
  using T = TypeParam;
  for (const auto& widths :
       std::vector<std::vector<std::size_t>>{{9, 14, 7}, {3, 8, 3}, {2, 5, 1}, {4, 12, 4}, {33, 4}, {1, 8, 2}}) {
    Mlp mlp = random_mlp(widths, {ActivationKind::relu}, 11);
    const Samples<T> samples(mlp, 97);
    for (const CpuTarget target : available_cpu_targets()) {
      const auto plan = Plan<T>::compile(mlp, target);
      for (const std::size_t batch : {std::size_t(2), std::size_t(16), std::size_t(97)}) {
        for (const Layout& from : kLayouts) {
          for (const Layout& to : kLayouts) {
            const Guarded<T> in = laid_out<T>(from, batch, mlp.inputs(), samples.in.data());
            Guarded<T> out = laid_out<T>(to, batch, mlp.outputs());
            plan.evaluate(in.view, out.view);
            EXPECT_EQ("", difference<T>(out.view, samples.out.data())) << plan.description();
            EXPECT_EQ(out.guards(), out.storage.size() - batch * mlp.outputs()) << plan.description();
          }
        }
      }
    }
  }
}

TYPED_TEST(PlanBits, a_view_may_be_replaced_by_its_results) {
  using T = TypeParam;
  for (const std::size_t width : {1, 3, 4, 17}) {
    const Mlp mlp = random_mlp({width, 30, width}, {ActivationKind::tanh}, 5);
    const Samples<T> samples(mlp, 97);
    for (const CpuTarget target : available_cpu_targets()) {
      const auto plan = Plan<T>::compile(mlp, target);
      for (const Layout& layout : kLayouts) {
        for (const std::size_t batch : {std::size_t(1), std::size_t(6), std::size_t(97)}) {
          Guarded<T> both = laid_out<T>(layout, batch, width, samples.in.data());
          plan.evaluate(both.view, both.view);
          EXPECT_EQ("", difference<T>(both.view, samples.out.data())) << plan.description();
        }
      }
    }
  }
}

// Fewer outputs than inputs: the results stand in the first columns of what they were made from.
TYPED_TEST(PlanBits, other_overlaps_are_refused_and_write_nothing) {
  using T = TypeParam;
  const Mlp mlp = random_mlp({4, 30, 3}, {ActivationKind::tanh}, 5);
  const Samples<T> samples(mlp, 97);
  const auto plan = Plan<T>::compile(mlp);
  std::vector<T> table(98 * 8);  // four columns to read and four others, side by side
  for (std::size_t i = 0; i < 97; ++i) std::copy_n(&samples.in[i * 4], 4, &table[i * 8]);
  const std::vector<T> before = table;
  AlignedBuffer<std::byte> workspace(plan.workspace_bytes());
  const MatrixView<const T> in{table.data(), 97, 4, 8, 1};
  for (const std::ptrdiff_t place : {std::ptrdiff_t(1), std::ptrdiff_t(2), std::ptrdiff_t(3), std::ptrdiff_t(7)}) {
    const MatrixView<T> out{table.data() + place, 97, 3, 8, 1};
    EXPECT_EQ(message_of([&] { plan.evaluate(in, out); }).rfind("out: found memory that overlaps in, expected", 0), 0u);
    EXPECT_NE(message_of([&] { plan.evaluate(in, out, 4); }), "no error");
    EXPECT_NE(message_of([&] { plan.evaluate(in, out, workspace.span()); }), "no error");
    EXPECT_EQ(table, before);
  }
  for (const auto& [row, column] : {std::pair(0, 1), std::pair(8, 0), std::pair(2, 1), std::pair(-2, 2)}) {
    const MatrixView<T> out{table.data() + 97 * 8, 97, 3, row, column};
    EXPECT_NE(message_of([&] { plan.evaluate(in, out); }).find("results, some of which share a place"),
              std::string::npos);
    EXPECT_NE(message_of([&] { plan.evaluate(in, out, 4); }), "no error");
    EXPECT_NE(message_of([&] { plan.evaluate(in, out, workspace.span()); }), "no error");
    EXPECT_EQ(table, before);
  }
  const MatrixView<T> beside{table.data() + 4, 97, 3, 8, 1}, over{table.data(), 97, 3, 8, 1};
  plan.evaluate(in, beside);
  EXPECT_EQ("", difference<T>(beside, samples.out.data()));
  plan.evaluate(in, over);
  EXPECT_EQ("", difference<T>(over, samples.out.data()));
}

TYPED_TEST(PlanBits, a_workspace_that_holds_what_a_call_reads_or_writes_is_refused) {
  using T = TypeParam;
  const Mlp mlp = random_mlp({4, 30, 3}, {ActivationKind::tanh}, 5);
  const Samples<T> samples(mlp, 5);
  const auto plan = Plan<T>::compile(mlp);
  const std::size_t used = plan.workspace_bytes();
  AlignedBuffer<std::byte> memory(used + 5 * 8 * sizeof(T));
  T* const begin = reinterpret_cast<T*>(memory.data());
  T* const end = begin + used / sizeof(T);
  const MatrixView<const T> in{samples.in.data(), 5, 4, 4, 1};
  std::vector<T> y(5 * 3, 7);
  const std::vector<T> before = y;
  const MatrixView<T> out{y.data(), 5, 3, 3, 1};
  for (T* const inside : {begin, begin + 9, end - 1}) {
    const MatrixView<T> there{inside, 5, 3, 3, 1};
    EXPECT_EQ(message_of([&] { plan.evaluate(in, there, memory.span()); }),
              "workspace: found memory that overlaps out, expected memory of its own; give scratch apart from all "
              "arrays that "
              "the call reads or writes");
    EXPECT_EQ(message_of([&] {
                plan.evaluate({inside, 5, 4, 4, 1}, out, memory.span());
              }).rfind("workspace: found memory that overlaps in,", 0),
              0u);
    EXPECT_EQ(y, before);
  }
  // One block may hold both, results after what is used. No samples lie nowhere.
  plan.evaluate(in, MatrixView<T>{end, 5, 3, 3, 1}, memory.span());
  EXPECT_EQ(std::memcmp(end, samples.out.data(), y.size() * sizeof(T)), 0);
  EXPECT_EQ(message_of([&] { plan.evaluate({begin, 0, 4, 4, 1}, {begin, 0, 3, 3, 1}, memory.span()); }), "no error");
}

TYPED_TEST(PlanBits, scalings_are_one_subtraction_one_division_and_one_fma) {
  using T = TypeParam;
  Mlp mlp = random_mlp({5, 21, 6}, {ActivationKind::tanh}, 13);
  mlp.input_scaling = {{0.1, -2, 3, 0, 1e-3}, {3, 0.7, 11, 1, 1e-2}};
  mlp.output_scaling = {{1.7, -3, 1e3, 1, 0.1, 5}, {0.3, 0, -7, 1, 2, 1e-3}};
  const Samples<T> samples(mlp, 63);
  for (const CpuTarget target : available_cpu_targets()) {
    const auto plan = Plan<T>::compile(mlp, target);
    for (const std::size_t batch : {std::size_t(1), std::size_t(4), std::size_t(18), std::size_t(63)}) {
      std::vector<T> out(batch * 6);
      plan.evaluate(MatrixView<const T>::row_major(samples.in.data(), batch, 5),
                    MatrixView<T>::row_major(out.data(), batch, 6));
      EXPECT_EQ("", difference(MatrixView<const T>::row_major(out.data(), batch, 6), samples.out.data()))
          << plan.description();
    }
  }
}

TYPED_TEST(PlanBits, tiles_of_every_lane_count_match_the_reference) {
  using T = TypeParam;
  for (const bool scaled : {false, true}) {
    Mlp mlp = random_mlp({3, 100, 3}, {ActivationKind::tanh}, 17);
    if (scaled) mlp.input_scaling = {{1, 2, 3}, {4, 5, 6}}, mlp.output_scaling = {{1, 2, 3}, {4, 5, 6}};
    const Samples<T> samples(mlp, kTileLanes);
    for (const CpuTarget target : available_cpu_targets()) {
      const auto plan = Plan<T>::compile(mlp, target);
      AlignedBuffer<std::byte> workspace(plan.workspace_bytes());
      for (int lanes = 1; lanes <= kTileLanes; ++lanes) {
        AlignedBuffer<T> in(3 * kTileLanes), out(3 * kTileLanes);
        for (std::size_t i = 0; i < in.size(); ++i) in[i] = std::numeric_limits<T>::quiet_NaN();
        for (int lane = 0; lane < lanes; ++lane) {
          for (int c = 0; c < 3; ++c) in[c * kTileLanes + lane] = samples.in[lane * 3 + c];
        }
        plan.evaluate_tile({nullptr, in.data(), nullptr, out.data(), lanes}, workspace.data());
        const MatrixView<const T> wanted{out.data(), static_cast<std::size_t>(lanes), 3, 1, kTileLanes};
        EXPECT_EQ("", difference(wanted, samples.out.data())) << plan.description() << " lanes " << lanes;
      }
    }
  }
}

TYPED_TEST(PlanBits, threads_and_splits_change_nothing) {
  using T = TypeParam;
  constexpr std::size_t kCount = kSanitized ? 1031 : 4099;
  const Mlp mlp = random_mlp({10, 64, 64, 4}, {ActivationKind::relu}, 19);
  const Samples<T> samples(mlp, kCount);
  const auto plan = Plan<T>::compile(mlp);
  const auto in = MatrixView<const T>::row_major(samples.in.data(), kCount, 10);
  for (const int threads : {1, 2, 5, 0}) {
    std::vector<T> out(kCount * 4);
    plan.evaluate(in, MatrixView<T>::row_major(out.data(), kCount, 4), threads);
    EXPECT_EQ("", difference(MatrixView<const T>::row_major(out.data(), kCount, 4), samples.out.data())) << threads;
  }
  for (const std::size_t piece : {1, 13, 16, 50, 1000}) {
    std::vector<T> out(kCount * 4);
    for (std::size_t first = 0; first < kCount; first += piece) {
      const std::size_t count = std::min(piece, kCount - first);
      plan.evaluate(MatrixView<const T>::row_major(samples.in.data() + first * 10, count, 10),
                    MatrixView<T>::row_major(out.data() + first * 4, count, 4));
    }
    EXPECT_EQ("", difference(MatrixView<const T>::row_major(out.data(), kCount, 4), samples.out.data())) << piece;
  }
}

TYPED_TEST(PlanBits, infinite_and_nan_samples_leave_the_others_alone) {
  using T = TypeParam;
  const Mlp mlp = random_mlp({6, 40, 3}, {ActivationKind::tanh}, 23);
  const Samples<T> samples(mlp, 50);
  const auto plan = Plan<T>::compile(mlp);
  for (const T bad : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity()}) {
    for (const std::size_t batch : {5, 20, 50}) {
      std::vector<T> in(samples.in.begin(), samples.in.begin() + static_cast<std::ptrdiff_t>(batch * 6));
      std::vector<T> out(batch * 3);
      in[3 * 6 + 2] = bad;
      plan.evaluate(MatrixView<const T>::row_major(in.data(), batch, 6),
                    MatrixView<T>::row_major(out.data(), batch, 3));
      for (std::size_t i = 0; i < out.size(); ++i) {
        if (i / 3 == 3) continue;
        EXPECT_TRUE(same_bits(out[i], samples.out[i])) << i;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
