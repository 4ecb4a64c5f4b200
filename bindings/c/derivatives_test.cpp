// The C interface's products with a net's Jacobian and its transpose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <thread>
#include <vector>

#include "bindings/c/lockstep.h"
#include "bindings/c/testing/handles.h"
#include "lockstep/core/aligned_buffer.h"
#include "lockstep/nn/compile.h"
#include "lockstep/nn/load.h"

extern std::atomic<int> allocations;  // count_allocations.cpp

namespace {

using namespace lockstep::testing::c;
using testing::HasSubstr;

// Ten input columns and eight outputs in columns, kSamples apart: what the C++ plan answers, through other strides.
TEST(CDerivatives, jacobian_products_have_the_librarys_bits) {
  lockstep_model* model = load(kQlknn);
  const lockstep_compile_options options{sizeof options, LOCKSTEP_FLOAT64, nullptr, 1};
  lockstep_plan *plan = nullptr, *plain = compile(kQlknn, LOCKSTEP_FLOAT64);
  ASSERT_EQ(lockstep_compile(model, &options, &plan), LOCKSTEP_OK) << lockstep_last_error();
  const std::vector<double> x = inputs<double>(kSamples * 10), dot = inputs<double>(kSamples * 10);
  const std::vector<double> bar = inputs<double>(kSamples * 8);
  std::vector<double> y(kSamples * 8), y_dot(y), x_bar(x), expected_dot(y), expected_bar(x), expected(y);
  const auto cpp = lockstep::nn::compile_derivatives<double>(lockstep::nn::load(kQlknn));
  using In = lockstep::MatrixView<const double>;
  using Out = lockstep::MatrixView<double>;
  cpp.jvp(In::column_major(x.data(), kSamples, 10), In::column_major(dot.data(), kSamples, 10),
          Out::column_major(expected.data(), kSamples, 8), Out::column_major(expected_dot.data(), kSamples, 8));
  cpp.vjp(In::column_major(x.data(), kSamples, 10), In::column_major(bar.data(), kSamples, 8), {},
          Out::column_major(expected_bar.data(), kSamples, 10));
  lockstep::AlignedBuffer<std::byte> work(lockstep_plan_derivative_workspace_bytes(plan));
  EXPECT_GT(work.size(), 0u);
  const ptrdiff_t n = kSamples;
  EXPECT_EQ(lockstep_jvp_f64(plan, kSamples, x.data(), 1, n, dot.data(), 1, n, y.data(), 1, n, y_dot.data(), 1, n,
                             work.data(), work.size()),
            LOCKSTEP_OK);
  EXPECT_EQ(
      lockstep_vjp_f64(plan, kSamples, x.data(), 1, n, bar.data(), 1, n, nullptr, 0, 0, x_bar.data(), 1, n, nullptr, 0),
      LOCKSTEP_OK);
  EXPECT_EQ(y, expected);
  EXPECT_EQ(y_dot, expected_dot);
  EXPECT_EQ(x_bar, expected_bar);
  // With the scratch of an evaluation, which is less.
  EXPECT_EQ(lockstep_jvp_f64(plan, kSamples, x.data(), 1, n, dot.data(), 1, n, nullptr, 0, 0, y_dot.data(), 1, n,
                             work.data(), lockstep_plan_workspace_bytes(plan)),
            LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("give what lockstep_plan_derivative_workspace_bytes(plan) says"));
  // Without derivatives, and with the wrong precision.
  EXPECT_EQ(lockstep_plan_derivative_workspace_bytes(plain), 0u);
  EXPECT_EQ(
      lockstep_jvp_f64(plain, 1, x.data(), 10, 1, dot.data(), 10, 1, nullptr, 0, 0, y_dot.data(), 8, 1, nullptr, 0),
      LOCKSTEP_UNSUPPORTED);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("lockstep_compile_options.derivatives = 1"));
  float narrow[10] = {};
  EXPECT_EQ(lockstep_vjp_f32(plan, 1, narrow, 10, 1, narrow, 8, 1, nullptr, 0, 0, narrow, 10, 1, nullptr, 0),
            LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(lockstep_vjp_f64(plan, 1, x.data(), 10, 1, nullptr, 8, 1, nullptr, 0, 0, x_bar.data(), 10, 1, nullptr, 0),
            LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("out_bar: found a null pointer"));
  lockstep_plan_free(plan);
  lockstep_plan_free(plain);
  lockstep_model_free(model);
}

TEST(CDerivatives, whole_jacobians_have_the_librarys_bits_by_rows_and_by_columns) {
  lockstep_model* model = load(kQlknn);
  const lockstep_compile_options options{sizeof options, LOCKSTEP_FLOAT64, nullptr, 1};
  lockstep_plan *plan = nullptr, *plain = compile(kQlknn, LOCKSTEP_FLOAT64);
  ASSERT_EQ(lockstep_compile(model, &options, &plan), LOCKSTEP_OK) << lockstep_last_error();
  const std::vector<double> x = inputs<double>(kSamples * 10);
  std::vector<double> y(kSamples * 8), expected_y(y), rows(kSamples * 80), columns(rows), expected(rows), vjp(rows);
  y.reserve(8 + kSamples * 80);  // x lies beyond a Jacobian that begins within y
  using In = lockstep::MatrixView<const double>;
  using Out = lockstep::MatrixView<double>;
  const auto cpp = lockstep::nn::compile_derivatives<double>(lockstep::nn::load(kQlknn));
  cpp.jacobian(In::row_major(x.data(), kSamples, 10), Out::row_major(expected_y.data(), kSamples, 8),
               {expected.data(), kSamples, 8, 10});
  lockstep::AlignedBuffer<std::byte> work(lockstep_plan_derivative_workspace_bytes(plan));
  EXPECT_EQ(lockstep_jacobian_f64(plan, kSamples, x.data(), 10, 1, y.data(), 8, 1, rows.data(), 80, 10, 1, work.data(),
                                  work.size()),
            LOCKSTEP_OK)
      << lockstep_last_error();
  EXPECT_EQ(lockstep_jacobian_f64(plan, kSamples, x.data(), 10, 1, nullptr, 0, 0, columns.data(), 80, 1, 8, nullptr, 0),
            LOCKSTEP_OK)
      << lockstep_last_error();
  EXPECT_EQ(rows, expected);
  EXPECT_EQ(y, expected_y);
  for (std::size_t i = 0; i < 8; ++i) {  // outputs are fewer
    std::vector<double> unit(8);
    unit[i] = 1;
    EXPECT_EQ(lockstep_vjp_f64(plan, kSamples, x.data(), 10, 1, unit.data(), 0, 1, nullptr, 0, 0, vjp.data() + 10 * i,
                               80, 1, nullptr, 0),
              LOCKSTEP_OK);
  }
  EXPECT_EQ(rows, vjp);
  bool same = true;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    same = same && rows[i] == columns[i / 80 * 80 + i % 10 * 8 + i % 80 / 10];
  }
  EXPECT_TRUE(same);
  const auto refused = [&](lockstep_status status, const lockstep_plan* made, const double* in, double* jacobian,
                           ptrdiff_t sample, std::size_t bytes, const char* message) {
    EXPECT_EQ(
        lockstep_jacobian_f64(made, kSamples, in, 10, 1, y.data(), 8, 1, jacobian, sample, 10, 1, work.data(), bytes),
        status);
    EXPECT_THAT(lockstep_last_error(), HasSubstr(message));
  };
  rows.assign(rows.size(), -1);
  const auto all = work.size();
  refused(LOCKSTEP_UNSUPPORTED, plain, x.data(), rows.data(), 80, all, "lockstep_compile_options.derivatives = 1");
  refused(LOCKSTEP_INVALID_ARGUMENT, nullptr, x.data(), rows.data(), 80, all, "plan");
  refused(LOCKSTEP_INVALID_ARGUMENT, plan, nullptr, rows.data(), 80, all, "in \"x\".data: found a null pointer");
  refused(LOCKSTEP_INVALID_ARGUMENT, plan, x.data(), nullptr, 80, all, "jacobian: found a null pointer");
  refused(LOCKSTEP_INVALID_ARGUMENT, plan, x.data(), rows.data(), 79, all, "jacobian: found strides 79, 10 and 1");
  refused(LOCKSTEP_INVALID_ARGUMENT, plan, x.data(), y.data() + 8, 80, all, "jacobian: found memory that overlaps out");
  refused(LOCKSTEP_INVALID_ARGUMENT, plan, rows.data(), rows.data(), 80, all,
          "jacobian: found memory that overlaps in");
  refused(LOCKSTEP_INVALID_ARGUMENT, plan, x.data(), rows.data(), 80, lockstep_plan_workspace_bytes(plan),
          "give what lockstep_plan_derivative_workspace_bytes(plan) says");
  float narrow[80] = {};
  EXPECT_EQ(lockstep_jacobian_f32(plan, 1, narrow, 10, 1, nullptr, 0, 0, narrow, 80, 10, 1, nullptr, 0),
            LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(rows, std::vector<double>(rows.size(), -1));
  EXPECT_EQ(lockstep_jacobian_f64(plan, 0, nullptr, 10, 1, nullptr, 8, 1, nullptr, 80, 10, 1, nullptr, 0), LOCKSTEP_OK);
  lockstep_plan_free(plan);
  lockstep_plan_free(plain);
  lockstep_model_free(model);
}

#ifdef LOCKSTEP_ONNX
TEST(CDerivatives, jacobian_products_of_several_ports_are_transposes_of_each_other) {
  lockstep_model* model = load(kExported + "graph_ports_dynamo.onnx");
  const lockstep_compile_options options{sizeof options, LOCKSTEP_FLOAT64, nullptr, 1};
  lockstep_plan* plan = nullptr;
  ASSERT_EQ(lockstep_compile(model, &options, &plan), LOCKSTEP_OK) << lockstep_last_error();
  const std::size_t in_width = lockstep_plan_inputs(plan), out_width = lockstep_plan_outputs(plan);
  const std::vector<double> x = inputs<double>(kSamples * in_width), bar = inputs<double>(kSamples * out_width);
  const std::vector<double> dot(x.rbegin(), x.rend());
  std::vector<double> y_dot(bar.size()), x_bar(x.size()), y(bar.size());
  const auto in_stride = static_cast<std::ptrdiff_t>(in_width), out_stride = static_cast<std::ptrdiff_t>(out_width);
  std::vector<lockstep_input_f64> ins, in_dots, out_bars;
  std::vector<lockstep_output_f64> outs, out_dots, in_bars;
  lockstep_port port{};
  for (std::size_t i = 0; lockstep_model_port(model, LOCKSTEP_INPUT, i, &port) == LOCKSTEP_OK; ++i) {
    ins.push_back({x.data() + port.first_feature, in_stride, 1});
    in_dots.push_back({dot.data() + port.first_feature, in_stride, 1});
    in_bars.push_back({x_bar.data() + port.first_feature, in_stride, 1});
  }
  for (std::size_t i = 0; lockstep_model_port(model, LOCKSTEP_OUTPUT, i, &port) == LOCKSTEP_OK; ++i) {
    outs.push_back({i == 1 ? nullptr : y.data() + port.first_feature, out_stride, 1});
    out_dots.push_back({y_dot.data() + port.first_feature, out_stride, 1});
    out_bars.push_back({bar.data() + port.first_feature, out_stride, 1});
  }
  ASSERT_EQ(ins.size(), 2u);
  ASSERT_EQ(outs.size(), 3u);
  lockstep::AlignedBuffer<std::byte> work(lockstep_plan_derivative_workspace_bytes(plan));
  ASSERT_EQ(lockstep_jvp_ports_f64(plan, kSamples, ins.data(), in_dots.data(), outs.data(), out_dots.data(), 2, 3,
                                   work.data(), work.size()),
            LOCKSTEP_OK)
      << lockstep_last_error();
  ASSERT_EQ(
      lockstep_vjp_ports_f64(plan, kSamples, ins.data(), out_bars.data(), nullptr, in_bars.data(), 2, 3, nullptr, 0),
      LOCKSTEP_OK)
      << lockstep_last_error();
  // On a thread that has not called before, with scratch of the caller's, nothing is allocated.
  lockstep::AlignedBuffer<std::byte> small(lockstep_plan_workspace_bytes(plan));
  std::vector<double> values(bar.size());
  std::vector<lockstep_output_f64> all;
  for (std::size_t i = 0; lockstep_plan_port(plan, LOCKSTEP_OUTPUT, i, &port) == LOCKSTEP_OK; ++i) {
    all.push_back({values.data() + port.first_feature, out_stride, 1});
  }
  std::vector<double> jacobian(kSamples * in_width * out_width), one(in_width * out_width);
  const auto size = static_cast<std::ptrdiff_t>(one.size());
  int made = -1;
  std::thread([&] {
    const int before = allocations;
    EXPECT_EQ(lockstep_evaluate_ports_f64(plan, kSamples, ins.data(), 2, all.data(), 3, small.data(), small.size()),
              LOCKSTEP_OK);
    EXPECT_EQ(lockstep_jvp_ports_f64(plan, kSamples, ins.data(), in_dots.data(), outs.data(), out_dots.data(), 2, 3,
                                     work.data(), work.size()),
              LOCKSTEP_OK);
    EXPECT_EQ(lockstep_vjp_ports_f64(plan, kSamples, ins.data(), out_bars.data(), nullptr, in_bars.data(), 2, 3,
                                     work.data(), work.size()),
              LOCKSTEP_OK);
    EXPECT_EQ(lockstep_jacobian_ports_f64(plan, kSamples, ins.data(), 2, outs.data(), 3, jacobian.data(), size,
                                          in_stride, 1, work.data(), work.size()),
              LOCKSTEP_OK);
    made = allocations - before;
  }).join();
  EXPECT_EQ(made, 0);
  double left = 0, right = 0, sizes = 0;
  for (std::size_t i = 0; i < bar.size(); ++i) left += bar[i] * y_dot[i], sizes += std::abs(bar[i] * y_dot[i]);
  for (std::size_t i = 0; i < x.size(); ++i) right += dot[i] * x_bar[i], sizes += std::abs(dot[i] * x_bar[i]);
  EXPECT_GT(sizes, 1);
  // Two sums of kSamples times some ten products, each of some hundred rounded operations: below 1e-12 of their size.
  EXPECT_NEAR(left, right, 1e-12 * sizes);
  // The whole Jacobian, features counted one port after another, is those products' with unit vectors.
  for (std::size_t i = 0; i < std::min(in_width, out_width); ++i) {
    std::vector<double> unit(std::min(in_width, out_width));
    unit[i] = 1;
    const bool forward = in_width <= out_width;
    std::vector<lockstep_input_f64> units;
    std::vector<lockstep_output_f64> products;
    for (std::size_t p = 0;
         lockstep_plan_port(plan, forward ? LOCKSTEP_INPUT : LOCKSTEP_OUTPUT, p, &port) == LOCKSTEP_OK; ++p) {
      units.push_back({unit.data() + port.first_feature, 0, 1});
    }
    for (std::size_t p = 0;
         lockstep_plan_port(plan, forward ? LOCKSTEP_OUTPUT : LOCKSTEP_INPUT, p, &port) == LOCKSTEP_OK; ++p) {
      products.push_back(forward ? lockstep_output_f64{one.data() + port.first_feature * in_width + i, 0, in_stride}
                                 : lockstep_output_f64{one.data() + i * in_width + port.first_feature, 0, 1});
    }
    EXPECT_EQ(
        forward ? lockstep_jvp_ports_f64(plan, 1, ins.data(), units.data(), nullptr, products.data(), 2, 3, nullptr, 0)
                : lockstep_vjp_ports_f64(plan, 1, ins.data(), units.data(), nullptr, products.data(), 2, 3, nullptr, 0),
        LOCKSTEP_OK)
        << lockstep_last_error();
  }
  EXPECT_EQ(one, std::vector<double>(jacobian.begin(), jacobian.begin() + size));
  EXPECT_EQ(lockstep_jacobian_f64(plan, 1, x.data(), 1, 1, nullptr, 0, 0, one.data(), 1, in_stride, 1, nullptr, 0),
            LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("in: found 1 array, expected 2, one for each port"));
  EXPECT_NE(y[0], 0);
  EXPECT_EQ(
      lockstep_vjp_ports_f64(plan, kSamples, ins.data(), out_bars.data(), nullptr, in_bars.data(), 2, 2, nullptr, 0),
      LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("out_bar: found 2 arrays, expected 3"));
  lockstep_plan_free(plan);
  lockstep_model_free(model);
}
#endif

}  // namespace
