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
