// The C interface: the library's bits through the host's strides, and every misuse answered by a status and words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "bindings/c/lockstep.h"
#include "lockstep/core/aligned_buffer.h"
#include "lockstep/nn/compile.h"
#include "lockstep/nn/hdf5_model.h"
#include "lockstep/nn/load.h"

namespace {

using testing::HasSubstr;

const std::string kOcean = std::string(LOCKSTEP_TEST_DATA) + "/ocean_relu_32_128_128_31.safetensors";
const std::string kQlknn = std::string(LOCKSTEP_TEST_DATA) + "/qlknn_7_11_tanh_10_133x5_8.safetensors";
constexpr std::size_t kSamples = 77;

lockstep_model* load(const std::string& path) {
  lockstep_model* model = nullptr;
  EXPECT_EQ(lockstep_model_load(path.c_str(), nullptr, &model), LOCKSTEP_OK) << lockstep_last_error();
  return model;
}

lockstep_plan* compile(const std::string& path, lockstep_precision precision, const char* target = nullptr) {
  lockstep_model* model = load(path);
  const lockstep_compile_options options{sizeof options, precision, target};
  lockstep_plan* plan = nullptr;
  EXPECT_EQ(lockstep_compile(model, &options, &plan), LOCKSTEP_OK) << lockstep_last_error();
  lockstep_model_free(model);
  return plan;
}

template <class T>
std::vector<T> inputs(std::size_t count) {
  std::vector<T> x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<T>(static_cast<int>(i * 7919 % 2001) - 1000) / 500;
  return x;
}

TEST(CInterface, says_its_versions) {
  EXPECT_EQ(lockstep_abi_version(), LOCKSTEP_ABI_VERSION);
  EXPECT_THAT(lockstep_version(), HasSubstr("."));
}

TEST(CInterface, gives_the_librarys_bits_for_either_layout) {
  const std::vector<float> x = inputs<float>(kSamples * 32);
  std::vector<float> expected(kSamples * 31), rows(kSamples * 31), columns(kSamples * 31), x_columns(x.size());
  const auto plan = lockstep::nn::compile<float>(lockstep::nn::load(kOcean));
  plan.evaluate(lockstep::MatrixView<const float>{x.data(), kSamples, 32, 32, 1},
                lockstep::MatrixView<float>::row_major(expected.data(), kSamples, 31));
  for (std::size_t i = 0; i < kSamples; ++i)
    for (std::size_t k = 0; k < 32; ++k) x_columns[k * kSamples + i] = x[i * 32 + k];

  lockstep_plan* handle = compile(kOcean, LOCKSTEP_FLOAT32);
  EXPECT_EQ(lockstep_plan_inputs(handle), 32u);
  EXPECT_EQ(lockstep_plan_outputs(handle), 31u);
  EXPECT_EQ(lockstep_plan_precision(handle), LOCKSTEP_FLOAT32);
  EXPECT_THAT(lockstep_plan_description(handle), HasSubstr("32-128-128-31"));
  lockstep::AlignedBuffer<std::byte> workspace(lockstep_plan_workspace_bytes(handle));
  EXPECT_EQ(lockstep_evaluate_f32(handle, kSamples, x.data(), 32, 1, rows.data(), 31, 1, nullptr, 0), LOCKSTEP_OK);
  EXPECT_EQ(lockstep_evaluate_f32(handle, kSamples, x_columns.data(), 1, kSamples, columns.data(), 1, kSamples,
                                  workspace.data(), workspace.size()),
            LOCKSTEP_OK);
  EXPECT_EQ(std::memcmp(rows.data(), expected.data(), rows.size() * sizeof(float)), 0);
  for (std::size_t i = 0; i < kSamples; ++i)
    for (std::size_t j = 0; j < 31; ++j) ASSERT_EQ(columns[j * kSamples + i], expected[i * 31 + j]);
  lockstep_plan_free(handle);
}

TEST(CInterface, float64_plans_and_every_target_agree) {
  const std::vector<double> x = inputs<double>(kSamples * 10);
  std::vector<double> best(kSamples * 8), scalar(kSamples * 8);
  lockstep_plan* a = compile(kQlknn, LOCKSTEP_FLOAT64);
  lockstep_plan* b = compile(kQlknn, LOCKSTEP_FLOAT64, "scalar");
  EXPECT_EQ(lockstep_evaluate_f64(a, kSamples, x.data(), 10, 1, best.data(), 8, 1, nullptr, 0), LOCKSTEP_OK);
  EXPECT_EQ(lockstep_evaluate_f64(b, kSamples, x.data(), 10, 1, scalar.data(), 8, 1, nullptr, 0), LOCKSTEP_OK);
  EXPECT_EQ(std::memcmp(best.data(), scalar.data(), best.size() * sizeof(double)), 0);
  lockstep_plan_free(a);
  lockstep_plan_free(b);
}

TEST(CInterface, features_tell_name_and_range) {
  lockstep_model* model = load(kQlknn);
  ASSERT_EQ(lockstep_model_inputs(model), 10u);
  ASSERT_EQ(lockstep_model_outputs(model), 8u);
  lockstep_feature feature{};
  EXPECT_EQ(lockstep_model_input(model, 0, &feature), LOCKSTEP_OK);
  EXPECT_LT(feature.minimum, feature.maximum);
  EXPECT_LT(feature.maximum, std::numeric_limits<double>::infinity());
  EXPECT_EQ(lockstep_model_output(model, 8, &feature), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("index: found 8, expected less than 8"));
  lockstep_model_free(model);
}

TEST(CInterface, one_plan_serves_many_threads) {
  lockstep_plan* plan = compile(kOcean, LOCKSTEP_FLOAT32);
  const std::vector<float> x = inputs<float>(kSamples * 32);
  std::vector<std::vector<float>> y(4, std::vector<float>(kSamples * 31));
  std::vector<std::thread> threads;
  for (auto& mine : y) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i)
        EXPECT_EQ(lockstep_evaluate_f32(plan, kSamples, x.data(), 32, 1, mine.data(), 31, 1, nullptr, 0), LOCKSTEP_OK);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : y) EXPECT_EQ(mine, y.front());
  lockstep_plan_free(plan);
}

TEST(CInterface, bad_handles_and_pointers_are_answered_in_words) {
  lockstep_model* model = load(kOcean);
  lockstep_plan* plan = nullptr;
  float x[32] = {}, y[31] = {};
  EXPECT_EQ(lockstep_compile(nullptr, nullptr, &plan), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("model: found a null pointer"));
  EXPECT_EQ(lockstep_compile(model, nullptr, nullptr), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(lockstep_evaluate_f32(nullptr, 1, x, 32, 1, y, 31, 1, nullptr, 0), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("plan: found a null pointer"));
  // A model where a plan is due: what a language without types lets happen.
  auto* wrong = reinterpret_cast<lockstep_plan*>(model);
  EXPECT_EQ(lockstep_evaluate_f32(wrong, 1, x, 32, 1, y, 31, 1, nullptr, 0), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("no such handle"));
  EXPECT_EQ(lockstep_plan_inputs(wrong), 0u);
  lockstep_plan_free(wrong);
  EXPECT_EQ(lockstep_model_inputs(model), 32u) << "freeing it as a plan did nothing";

  ASSERT_EQ(lockstep_compile(model, nullptr, &plan), LOCKSTEP_OK);
  EXPECT_EQ(lockstep_evaluate_f32(plan, 1, nullptr, 32, 1, y, 31, 1, nullptr, 0), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("in: found a null pointer"));
  EXPECT_EQ(lockstep_evaluate_f32(plan, 0, nullptr, 32, 1, nullptr, 31, 1, nullptr, 0), LOCKSTEP_OK);
  double wide[32] = {};
  EXPECT_EQ(lockstep_evaluate_f64(plan, 1, wide, 32, 1, wide, 31, 1, nullptr, 0), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("found a float32 plan, expected a float64 plan"));
  lockstep::AlignedBuffer<std::byte> workspace(64);
  EXPECT_EQ(lockstep_evaluate_f32(plan, 1, x, 32, 1, y, 31, 1, workspace.data(), 64), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("workspace: found 64"));
  lockstep_plan_free(plan);
  lockstep_model_free(model);
  lockstep_model_free(nullptr);
  lockstep_plan_free(nullptr);
}

TEST(CInterface, options_of_another_version_are_told_apart) {
  lockstep_model* model = load(kOcean);
  lockstep_plan* plan = nullptr;
  lockstep_compile_options options{0, LOCKSTEP_FLOAT32, nullptr};
  EXPECT_EQ(lockstep_compile(model, &options, &plan), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("sizeof(lockstep_compile_options)"));
  options.size = sizeof options + 8;
  EXPECT_EQ(lockstep_compile(model, &options, &plan), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("newer Lockstep"));
  options = {sizeof options, LOCKSTEP_FLOAT32, "mmx"};
  EXPECT_EQ(lockstep_compile(model, &options, &plan), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("\"mmx\""));
  EXPECT_EQ(plan, nullptr);
  lockstep_model_free(model);
}

TEST(CInterface, reads_hdf5_through_its_companion) {
  const std::string path = testing::TempDir() + "c_interface_model.h5";
  lockstep::nn::write_hdf5_model(path, lockstep::nn::load(kQlknn), lockstep::Existing::replace);
  lockstep_model* model = load(path);
  EXPECT_EQ(lockstep_model_inputs(model), 10u);
  lockstep_plan *from_hdf5 = nullptr, *from_safetensors = compile(kQlknn, LOCKSTEP_FLOAT32);
  ASSERT_EQ(lockstep_compile(model, nullptr, &from_hdf5), LOCKSTEP_OK);
  const std::vector<float> x = inputs<float>(kSamples * 10);
  std::vector<float> a(kSamples * 8), b(kSamples * 8);
  EXPECT_EQ(lockstep_evaluate_f32(from_hdf5, kSamples, x.data(), 10, 1, a.data(), 8, 1, nullptr, 0), LOCKSTEP_OK);
  EXPECT_EQ(lockstep_evaluate_f32(from_safetensors, kSamples, x.data(), 10, 1, b.data(), 8, 1, nullptr, 0),
            LOCKSTEP_OK);
  EXPECT_EQ(a, b);
  lockstep_plan_free(from_hdf5);
  lockstep_plan_free(from_safetensors);
  lockstep_model_free(model);
  EXPECT_EQ(lockstep_model_load(LOCKSTEP_TEST_DATA "/peaks_relu_2_20_5_1.golden.h5", nullptr, &model),
            LOCKSTEP_BAD_MODEL);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("peaks_relu_2_20_5_1.golden.h5"));
}

TEST(CInterface, files_that_cannot_be_read_are_statuses) {
  lockstep_model* model = nullptr;
  EXPECT_EQ(lockstep_model_load("no/such.safetensors", nullptr, &model), LOCKSTEP_BAD_FILE);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("no/such.safetensors"));
  const std::string readme = std::string(LOCKSTEP_TEST_DATA) + "/README.md";
  EXPECT_EQ(lockstep_model_load(readme.c_str(), nullptr, &model), LOCKSTEP_UNSUPPORTED);
  EXPECT_EQ(lockstep_model_load(nullptr, nullptr, &model), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(model, nullptr);
}

}  // namespace
