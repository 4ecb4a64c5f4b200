// Nets on a GPU through the C interface, over a component whose device is the host: the CPU plan's bits, and statuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bindings/c/lockstep.h"

namespace {

using testing::HasSubstr;

const std::string kOcean = std::string(LOCKSTEP_TEST_DATA) + "/ocean_relu_32_128_128_31.safetensors";
constexpr std::size_t kSamples = 45;

class OnAStream : public testing::Test {
 protected:
  // The component is looked for once in a program.
  static void SetUpTestSuite() { setenv("LOCKSTEP_CUDA_LIBRARY", LOCKSTEP_SIMULATED_COMPONENT, 1); }
  void SetUp() override { ASSERT_EQ(lockstep_model_load(kOcean.c_str(), nullptr, &model_), LOCKSTEP_OK); }
  void TearDown() override { lockstep_model_free(model_); }
  lockstep_model* model_ = nullptr;
};

template <class T>
std::vector<T> inputs(std::size_t count) {
  std::vector<T> x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<T>(static_cast<int>(i * 7919 % 2001) - 1000) / 500;
  return x;
}

TEST_F(OnAStream, has_the_bits_of_the_cpu_plan_in_either_layout) {
  lockstep_device_plan* device = nullptr;
  lockstep_plan* cpu = nullptr;
  ASSERT_EQ(lockstep_device_compile(model_, nullptr, &device), LOCKSTEP_OK) << lockstep_last_error();
  ASSERT_EQ(lockstep_compile(model_, nullptr, &cpu), LOCKSTEP_OK);
  EXPECT_EQ(lockstep_device_plan_inputs(device), 32u);
  EXPECT_EQ(lockstep_device_plan_outputs(device), 31u);
  EXPECT_THAT(lockstep_device_plan_description(device), HasSubstr("cuda:0 f32 mlp 32-128-128-31"));
  const std::vector<float> x = inputs<float>(kSamples * 32);
  std::vector<float> expected(kSamples * 31), rows(kSamples * 31), columns(kSamples * 31);
  lockstep_evaluate_f32(cpu, kSamples, x.data(), 32, 1, expected.data(), 31, 1, nullptr, 0);
  ASSERT_EQ(lockstep_enqueue_f32(device, nullptr, kSamples, x.data(), 32, 1, rows.data(), 31, 1), LOCKSTEP_OK)
      << lockstep_last_error();
  EXPECT_EQ(rows, expected);
  ASSERT_EQ(lockstep_enqueue_f32(device, nullptr, kSamples, x.data(), 32, 1, columns.data(), 1, kSamples), LOCKSTEP_OK);
  for (std::size_t i = 0; i < kSamples; ++i) {
    for (std::size_t k = 0; k < 31; ++k) ASSERT_EQ(columns[k * kSamples + i], expected[i * 31 + k]);
  }
  EXPECT_EQ(lockstep_enqueue_f32(device, nullptr, 0, nullptr, 32, 1, nullptr, 31, 1), LOCKSTEP_OK);
  lockstep_device_plan_free(device);
  lockstep_plan_free(cpu);
}

TEST_F(OnAStream, takes_float64) {
  lockstep_device_plan* device = nullptr;
  lockstep_plan* cpu = nullptr;
  const lockstep_device_options options{sizeof options, LOCKSTEP_FLOAT64, 0, nullptr};
  const lockstep_compile_options on_cpu{sizeof on_cpu, LOCKSTEP_FLOAT64, nullptr, 0};
  ASSERT_EQ(lockstep_device_compile(model_, &options, &device), LOCKSTEP_OK) << lockstep_last_error();
  ASSERT_EQ(lockstep_compile(model_, &on_cpu, &cpu), LOCKSTEP_OK);
  const std::vector<double> x = inputs<double>(3 * 32);
  std::vector<double> expected(3 * 31), y(3 * 31);
  lockstep_evaluate_f64(cpu, 3, x.data(), 32, 1, expected.data(), 31, 1, nullptr, 0);
  ASSERT_EQ(lockstep_enqueue_f64(device, nullptr, 3, x.data(), 32, 1, y.data(), 31, 1), LOCKSTEP_OK);
  EXPECT_EQ(y, expected);
  float number = 0;
  EXPECT_EQ(lockstep_enqueue_f32(device, nullptr, 1, &number, 32, 1, &number, 31, 1), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("plan: found a float64 plan, expected a float32 plan"));
  lockstep_device_plan_free(device);
  lockstep_plan_free(cpu);
}

TEST_F(OnAStream, takes_a_mode_of_tensor_cores) {
  lockstep_device_plan* device = nullptr;
  const lockstep_device_options options{sizeof options, LOCKSTEP_FLOAT32, 0, "bf16"};
  ASSERT_EQ(lockstep_device_compile(model_, &options, &device), LOCKSTEP_OK) << lockstep_last_error();
  lockstep_plan* cpu = nullptr;
  ASSERT_EQ(lockstep_compile(model_, nullptr, &cpu), LOCKSTEP_OK);
  const std::vector<float> x = inputs<float>(5 * 32);
  std::vector<float> expected(5 * 31), y(5 * 31);
  lockstep_evaluate_f32(cpu, 5, x.data(), 32, 1, expected.data(), 31, 1, nullptr, 0);
  ASSERT_EQ(lockstep_enqueue_f32(device, nullptr, 5, x.data(), 32, 1, y.data(), 31, 1), LOCKSTEP_OK);
  EXPECT_NE(y, expected);  // or the mode was forgotten; how near it comes tensor_kernel_test bounds
  lockstep_device_plan_free(device);
  lockstep_plan_free(cpu);
}

// Products by the CPU's plan of derivatives, and by derivatives of the model, which are nets of two ports.
TEST_F(OnAStream, multiplies_with_jacobians_as_the_cpu_does) {
  const lockstep_device_options float64{sizeof float64, LOCKSTEP_FLOAT64, 0, nullptr};
  const lockstep_compile_options options{sizeof options, LOCKSTEP_FLOAT64, nullptr, 1};
  lockstep_plan* cpu = nullptr;
  ASSERT_EQ(lockstep_compile(model_, &options, &cpu), LOCKSTEP_OK);
  const std::vector<double> x = inputs<double>(kSamples * 32), x_dot(x.rbegin(), x.rend()),
                            y_bar = inputs<double>(kSamples * 31);
  std::vector<double> y(kSamples * 31), y_dot(y), x_bar(x), whole(kSamples * 31 * 32);
  ASSERT_EQ(lockstep_jvp_f64(cpu, kSamples, x.data(), 32, 1, x_dot.data(), 32, 1, y.data(), 31, 1, y_dot.data(), 31, 1,
                             nullptr, 0),
            LOCKSTEP_OK);
  ASSERT_EQ(lockstep_vjp_f64(cpu, kSamples, x.data(), 32, 1, y_bar.data(), 31, 1, nullptr, 0, 0, x_bar.data(), 32, 1,
                             nullptr, 0),
            LOCKSTEP_OK);
  ASSERT_EQ(
      lockstep_jacobian_f64(cpu, kSamples, x.data(), 32, 1, nullptr, 0, 0, whole.data(), 31 * 32, 32, 1, nullptr, 0),
      LOCKSTEP_OK);
  struct Product {
    lockstep_derivative which;
    const std::vector<double>* vector;  // none: of the Jacobian itself
    const std::vector<double>& expected;
  };
  for (const auto& [which, vector, expected] :
       {Product{LOCKSTEP_JVP, &x_dot, y_dot}, Product{LOCKSTEP_VJP, &y_bar, x_bar},
        Product{LOCKSTEP_JACOBIAN, nullptr, whole}}) {
    SCOPED_TRACE(which);
    lockstep_model* derivative = nullptr;
    lockstep_device_plan* plan = nullptr;
    ASSERT_EQ(lockstep_model_derivative(model_, which, &derivative), LOCKSTEP_OK) << lockstep_last_error();
    ASSERT_EQ(lockstep_device_compile(derivative, &float64, &plan), LOCKSTEP_OK) << lockstep_last_error();
    std::vector<lockstep_input_f64> in = {{x.data(), 32, 1}};
    const auto rows = [](const std::vector<double>& numbers) {
      return static_cast<std::ptrdiff_t>(numbers.size() / kSamples);
    };
    if (vector != nullptr) in.push_back({vector->data(), rows(*vector), 1});
    std::vector<double> values(y.size()), found(expected.size());
    const lockstep_output_f64 out[] = {{values.data(), 31, 1}, {found.data(), rows(expected), 1}};
    ASSERT_EQ(lockstep_enqueue_ports_f64(plan, nullptr, kSamples, in.data(), in.size(), out, 2), LOCKSTEP_OK)
        << lockstep_last_error();
    EXPECT_EQ(values, y);
    EXPECT_EQ(found, expected);
    lockstep_device_plan_free(plan);
    lockstep_model_free(derivative);
  }
  lockstep_plan_free(cpu);
}

TEST_F(OnAStream, answers_misuse_of_derivatives_by_a_status_and_words) {
  lockstep_model* made = nullptr;
  EXPECT_EQ(lockstep_model_derivative(nullptr, LOCKSTEP_JVP, &made), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(lockstep_model_derivative(model_, LOCKSTEP_JVP, nullptr), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(lockstep_model_derivative(model_, static_cast<lockstep_derivative>(3), &made), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_STREQ(lockstep_last_error(), "which: found 3, expected LOCKSTEP_JVP, LOCKSTEP_VJP or LOCKSTEP_JACOBIAN");
  EXPECT_EQ(made, nullptr);
  ASSERT_EQ(lockstep_model_derivative(model_, LOCKSTEP_VJP, &made), LOCKSTEP_OK);
  lockstep_model* again = nullptr;
  EXPECT_EQ(lockstep_model_derivative(made, LOCKSTEP_VJP, &again), LOCKSTEP_UNSUPPORTED);
  EXPECT_EQ(again, nullptr);
  lockstep_model_free(made);
}

#ifdef LOCKSTEP_ONNX
// Arrays for all ports of a plan, one port after another in one vector, samples after samples in each.
template <class T, class Array>
std::vector<Array> arrays_of(const lockstep_device_plan* plan, lockstep_direction direction, std::size_t samples,
                             bool by_column, std::vector<T>& numbers) {
  std::vector<Array> arrays;
  for (std::size_t i = 0; i < lockstep_device_plan_ports(plan, direction); ++i) {
    lockstep_port port{};
    EXPECT_EQ(lockstep_device_plan_port(plan, direction, i, &port), LOCKSTEP_OK);
    T* const data = numbers.data() + port.first_feature * samples;
    const auto width = static_cast<std::ptrdiff_t>(port.features), rows = static_cast<std::ptrdiff_t>(samples);
    arrays.push_back(by_column ? Array{data, 1, rows} : Array{data, width, 1});
  }
  return arrays;
}

template <class T>
void expect_same_numbers(const std::vector<T>& found, const std::vector<T>& expected) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool both_nan = found[i] != found[i] && expected[i] != expected[i];
    ASSERT_TRUE(both_nan || std::memcmp(&found[i], &expected[i], sizeof(T)) == 0)
        << "number " << i << ": " << found[i] << ", expected " << expected[i];
  }
}

TEST_F(OnAStream, takes_any_exported_net_with_all_its_ports) {
  for (const char* const name : {"qlknn_7_11", "ports_dynamo", "normalised_opset12", "mixture_opset14",
                                 "residual_dynamo", "concatenated_opset9", "physics_opset18"}) {
    SCOPED_TRACE(name);
    const std::string path = std::string(LOCKSTEP_TEST_DATA) + "/exported/graph_" + name + ".onnx";
    lockstep_model* model = nullptr;
    lockstep_device_plan *narrow = nullptr, *wide = nullptr;
    lockstep_plan *cpu = nullptr, *cpu_wide = nullptr;
    const lockstep_device_options float64{sizeof float64, LOCKSTEP_FLOAT64, 0, nullptr};
    const lockstep_compile_options on_cpu{sizeof on_cpu, LOCKSTEP_FLOAT64, nullptr, 0};
    ASSERT_EQ(lockstep_model_load(path.c_str(), nullptr, &model), LOCKSTEP_OK) << lockstep_last_error();
    ASSERT_EQ(lockstep_device_compile(model, nullptr, &narrow), LOCKSTEP_OK) << lockstep_last_error();
    ASSERT_EQ(lockstep_device_compile(model, &float64, &wide), LOCKSTEP_OK) << lockstep_last_error();
    ASSERT_EQ(lockstep_compile(model, nullptr, &cpu), LOCKSTEP_OK);
    ASSERT_EQ(lockstep_compile(model, &on_cpu, &cpu_wide), LOCKSTEP_OK);
    EXPECT_EQ(lockstep_device_plan_inputs(narrow), lockstep_plan_inputs(cpu));
    EXPECT_EQ(lockstep_device_plan_outputs(narrow), lockstep_plan_outputs(cpu));
    const bool large = lockstep_plan_inputs(cpu) == 10 && std::string(name) == "qlknn_7_11";
    for (const std::size_t samples : {0u, 1u, 31u, 33u, 257u}) {
      if (large && samples > 33) continue;
      SCOPED_TRACE(samples);
      std::vector<float> x = inputs<float>(samples * lockstep_plan_inputs(cpu));
      std::vector<float> y(samples * lockstep_plan_outputs(cpu), -77), expected = y;
      const auto in = arrays_of<float, lockstep_input_f32>(narrow, LOCKSTEP_INPUT, samples, samples == 33, x);
      const auto out = arrays_of<float, lockstep_output_f32>(narrow, LOCKSTEP_OUTPUT, samples, samples != 31, y);
      const auto there =
          arrays_of<float, lockstep_output_f32>(narrow, LOCKSTEP_OUTPUT, samples, samples != 31, expected);
      lockstep_evaluate_ports_f32(cpu, samples, in.data(), in.size(), there.data(), there.size(), nullptr, 0);
      ASSERT_EQ(lockstep_enqueue_ports_f32(narrow, nullptr, samples, in.data(), in.size(), out.data(), out.size()),
                LOCKSTEP_OK)
          << lockstep_last_error();
      expect_same_numbers(y, expected);
      std::vector<double> x64(x.begin(), x.end()), y64(y.size(), -77), expected64 = y64;
      const auto in64 = arrays_of<double, lockstep_input_f64>(wide, LOCKSTEP_INPUT, samples, false, x64);
      const auto out64 = arrays_of<double, lockstep_output_f64>(wide, LOCKSTEP_OUTPUT, samples, true, y64);
      const auto there64 = arrays_of<double, lockstep_output_f64>(wide, LOCKSTEP_OUTPUT, samples, true, expected64);
      lockstep_evaluate_ports_f64(cpu_wide, samples, in64.data(), in64.size(), there64.data(), there64.size(), nullptr,
                                  0);
      ASSERT_EQ(
          lockstep_enqueue_ports_f64(wide, nullptr, samples, in64.data(), in64.size(), out64.data(), out64.size()),
          LOCKSTEP_OK);
      expect_same_numbers(y64, expected64);
    }
    lockstep_device_plan_free(narrow);
    lockstep_device_plan_free(wide);
    lockstep_plan_free(cpu);
    lockstep_plan_free(cpu_wide);
    lockstep_model_free(model);
  }
}

TEST_F(OnAStream, answers_misuse_of_ports_by_a_status_and_words) {
  const std::string path = std::string(LOCKSTEP_TEST_DATA) + "/exported/graph_ports_dynamo.onnx";
  lockstep_model* model = nullptr;
  lockstep_device_plan* plan = nullptr;
  ASSERT_EQ(lockstep_model_load(path.c_str(), nullptr, &model), LOCKSTEP_OK) << lockstep_last_error();
  ASSERT_EQ(lockstep_device_compile(model, nullptr, &plan), LOCKSTEP_OK) << lockstep_last_error();
  std::vector<float> x(4 * lockstep_device_plan_inputs(plan)), y(4 * lockstep_device_plan_outputs(plan));
  auto in = arrays_of<float, lockstep_input_f32>(plan, LOCKSTEP_INPUT, 4, false, x);
  auto out = arrays_of<float, lockstep_output_f32>(plan, LOCKSTEP_OUTPUT, 4, false, y);
  ASSERT_GE(out.size(), 2u);
  const auto refused = [&](const char* words, std::size_t in_ports, std::size_t out_ports) {
    EXPECT_EQ(lockstep_enqueue_ports_f32(plan, nullptr, 4, in.data(), in_ports, out.data(), out_ports),
              LOCKSTEP_INVALID_ARGUMENT);
    EXPECT_THAT(lockstep_last_error(), HasSubstr(words));
  };
  refused("in: found", in.size() - 1, out.size());
  refused("out: found 1 array, expected", in.size(), 1);
  float* const first = out[0].data;
  out[0].data = nullptr;
  refused(".data: found a null pointer", in.size(), out.size());
  out[0].data = out[1].data;
  refused("found memory that overlaps out \"", in.size(), out.size());
  out[0].data = x.data();
  out[0].sample_stride += 1;
  refused("found memory that overlaps in \"", in.size(), out.size());
  out[0] = {first, 1, 4};
  EXPECT_EQ(lockstep_enqueue_ports_f32(plan, nullptr, 4, nullptr, in.size(), out.data(), out.size()),
            LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(lockstep_enqueue_ports_f32(nullptr, nullptr, 4, in.data(), in.size(), out.data(), out.size()),
            LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(lockstep_enqueue_ports_f64(plan, nullptr, 4, nullptr, in.size(), nullptr, out.size()),
            LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("plan: found a float32 plan"));
  EXPECT_EQ(lockstep_enqueue_f32(plan, nullptr, 4, x.data(), 1, 1, y.data(), 1, 1), LOCKSTEP_INVALID_ARGUMENT);
  lockstep_port port{};
  EXPECT_EQ(lockstep_device_plan_port(plan, LOCKSTEP_INPUT, 99, &port), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(lockstep_device_plan_ports(nullptr, LOCKSTEP_INPUT), 0u);
  std::size_t index = 99;
  EXPECT_EQ(lockstep_device_plan_port_index(plan, LOCKSTEP_INPUT, "nowhere", &index), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("port: found \"nowhere\", expected one of "));
  EXPECT_EQ(index, 99u);
  for (std::size_t i = 0; i < lockstep_device_plan_ports(plan, LOCKSTEP_OUTPUT); ++i) {
    EXPECT_EQ(lockstep_device_plan_port(plan, LOCKSTEP_OUTPUT, i, &port), LOCKSTEP_OK);
    EXPECT_EQ(lockstep_device_plan_port_index(plan, LOCKSTEP_OUTPUT, port.name, &index), LOCKSTEP_OK);
    EXPECT_EQ(index, i);
  }
  const lockstep_device_options tensor{sizeof tensor, LOCKSTEP_FLOAT32, 0, "bf16"};
  lockstep_device_plan* refused_plan = nullptr;
  EXPECT_EQ(lockstep_device_compile(model, &tensor, &refused_plan), LOCKSTEP_UNSUPPORTED);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("matrices: found bf16 for no plain stack, expected f32"));
  lockstep_device_plan_free(plan);
  lockstep_model_free(model);
}
#endif

TEST_F(OnAStream, answers_misuse_by_a_status_and_words) {
  lockstep_device_plan* device = nullptr;
  lockstep_device_options options{sizeof options, LOCKSTEP_FLOAT32, 3, nullptr};
  EXPECT_EQ(lockstep_device_compile(model_, &options, &device), LOCKSTEP_UNSUPPORTED);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("cuda:3: found no such device among 1"));
  options = {sizeof options, LOCKSTEP_FLOAT32, 0, "int8"};
  EXPECT_EQ(lockstep_device_compile(model_, &options, &device), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("matrix_precision: found \"int8\", expected f32, tf32, bf16 or fp16"));
  options = {sizeof options, LOCKSTEP_FLOAT32, 0, nullptr};
  const int no_precision = 9;  // as a C program may put it
  std::memcpy(&options.precision, &no_precision, sizeof no_precision);
  EXPECT_EQ(lockstep_device_compile(model_, &options, &device), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("device_options.precision: found 9, expected LOCKSTEP_FLOAT32 or"));
  options.size = 1;
  EXPECT_EQ(lockstep_device_compile(model_, &options, &device), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("device_options.size"));
  EXPECT_EQ(lockstep_device_compile(nullptr, nullptr, &device), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(lockstep_device_compile(model_, nullptr, nullptr), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(device, nullptr);
  EXPECT_EQ(lockstep_enqueue_f32(nullptr, nullptr, 1, nullptr, 1, 1, nullptr, 1, 1), LOCKSTEP_INVALID_ARGUMENT);
  ASSERT_EQ(lockstep_device_compile(model_, nullptr, &device), LOCKSTEP_OK);
  EXPECT_EQ(lockstep_enqueue_f32(device, nullptr, 1, nullptr, 1, 1, nullptr, 1, 1), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("in: found a null pointer"));
  lockstep_device_plan_free(device);
  lockstep_device_plan_free(nullptr);
  EXPECT_EQ(lockstep_device_plan_inputs(nullptr), 0u);
  EXPECT_STREQ(lockstep_device_plan_description(nullptr), "");
}

}  // namespace
