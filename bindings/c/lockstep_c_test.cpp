// The C interface: the library's bits through the host's strides, and every misuse answered by a status and words.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bindings/c/lockstep.h"
#include "bindings/c/testing/handles.h"
#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/nn/compile.h"
#include "lockstep/nn/equations.h"
#include "lockstep/nn/hdf5_model.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/net_plan.h"
#include "lockstep/nn/plan_file.h"

namespace {

using namespace lockstep::testing::c;
using testing::HasSubstr;

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

// What scripts/thread_check.sh watches: loading, lowering, evaluating, derivatives and failures side by side.
TEST(CInterface, threads_disturb_neither_each_others_answers_nor_messages) {
  const std::vector<float> x = inputs<float>(kSamples * 10), bar = inputs<float>(kSamples * 8);
  constexpr int kThreads = 8;
  std::vector<std::vector<float>> answers(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      lockstep_model* model = load(kQlknn);
      const lockstep_compile_options options{sizeof options, LOCKSTEP_FLOAT32, nullptr, 1};
      lockstep_plan* plan = nullptr;
      EXPECT_EQ(lockstep_compile(model, &options, &plan), LOCKSTEP_OK);
      std::vector<float>& mine = answers[static_cast<std::size_t>(i)];
      mine.resize(kSamples * (8 + 8 + 10));
      float *y = mine.data(), *y_dot = y + kSamples * 8, *x_bar = y_dot + kSamples * 8;
      const std::string missing = "no/such/file" + std::to_string(i);
      for (int repeat = 0; repeat < 3; ++repeat) {
        EXPECT_EQ(lockstep_evaluate_f32(plan, kSamples, x.data(), 10, 1, y, 8, 1, nullptr, 0), LOCKSTEP_OK);
        EXPECT_EQ(
            lockstep_jvp_f32(plan, kSamples, x.data(), 10, 1, x.data(), 10, 1, nullptr, 0, 0, y_dot, 8, 1, nullptr, 0),
            LOCKSTEP_OK);
        EXPECT_EQ(lockstep_vjp_f32(plan, kSamples, x.data(), 10, 1, bar.data(), 8, 1, nullptr, 0, 0, x_bar, 10, 1,
                                   nullptr, 0),
                  LOCKSTEP_OK);
        lockstep_model* none = nullptr;
        EXPECT_EQ(lockstep_model_load(missing.c_str(), nullptr, &none), LOCKSTEP_BAD_FILE);
        EXPECT_THAT(lockstep_last_error(), HasSubstr(missing + ":"));
      }
      lockstep_plan_free(plan);
      lockstep_model_free(model);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : answers) EXPECT_EQ(mine, answers.front());
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
  // More samples than any memory holds: -1, as a size.
  for (const std::size_t samples : {SIZE_MAX, SIZE_MAX / 31 / 4 + 1}) {
    EXPECT_EQ(lockstep_evaluate_f32(plan, samples, x, 32, 1, y, 31, 1, nullptr, 0), LOCKSTEP_INVALID_ARGUMENT);
    EXPECT_THAT(lockstep_last_error(), HasSubstr("expected an array that fits into memory"));
    EXPECT_EQ(lockstep_evaluate_f32(plan, samples, x, 32, 1, x, 32, 1, nullptr, 0), LOCKSTEP_INVALID_ARGUMENT);
    const lockstep_input_f32 in{x, 32, 1};
    const lockstep_output_f32 out{y, 31, 1};
    EXPECT_EQ(lockstep_evaluate_ports_f32(plan, samples, &in, 1, &out, 1, nullptr, 0), LOCKSTEP_INVALID_ARGUMENT);
  }
  EXPECT_EQ(lockstep_plan_ports(plan, static_cast<lockstep_direction>(1)), 1u);
  lockstep_direction none = LOCKSTEP_INPUT;
  const int seven = 7;  // as a foreign call may give it
  std::memcpy(&none, &seven, sizeof none);
  EXPECT_EQ(lockstep_plan_ports(plan, none), 0u);
  EXPECT_EQ(lockstep_model_ports(model, none), 0u);
  // No samples are nothing to do, by ports too.
  EXPECT_EQ(lockstep_evaluate_ports_f32(plan, 0, nullptr, 1, nullptr, 1, nullptr, 0), LOCKSTEP_OK);
  EXPECT_EQ(lockstep_evaluate_ports_f32(plan, 0, nullptr, 2, nullptr, 1, nullptr, 0), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(lockstep_evaluate_slices_f32(plan, 0, 5, nullptr, 0, 32, 1, nullptr, 0, 31, 1, nullptr, 0), LOCKSTEP_OK);
  lockstep_plan_free(plan);
  lockstep_model_free(model);
  lockstep_model_free(nullptr);
  lockstep_plan_free(nullptr);
}

// As thread-locals with a destructor would not: registering that takes memory, which may be what ran out.
TEST(CInterface, a_threads_last_error_outlives_its_thread_locals) {
  static pthread_key_t key;
  static std::string seen;
  ASSERT_EQ(pthread_key_create(&key, [](void*) { seen = lockstep_last_error(); }), 0);
  std::thread([] {
    pthread_setspecific(key, &key);
    EXPECT_EQ(lockstep_model_inputs(nullptr), 0u);
    EXPECT_EQ(lockstep_compile(nullptr, nullptr, nullptr), LOCKSTEP_INVALID_ARGUMENT);
  }).join();
  EXPECT_EQ(seen, "model: found a null pointer, expected a handle; check the status of lockstep_model_load");
  pthread_key_delete(key);
}

TEST(CInterface, long_messages_end_at_a_whole_character) {
  for (const std::size_t shift : {0u, 1u}) {
    std::string path(shift, 'x');
    while (path.size() < 2000) path += "\u00f6";
    lockstep_model* model = nullptr;
    EXPECT_EQ(lockstep_model_load(path.c_str(), nullptr, &model), LOCKSTEP_BAD_FILE);
    const std::string message = lockstep_last_error();
    const std::size_t kept = 1019 - (1019 - shift) % 2;
    EXPECT_EQ(message, path.substr(0, kept) + " ...");
  }
}

TEST(CInterface, names_of_files_and_activations_that_cannot_be_are_the_callers) {
  lockstep_model* model = nullptr;
  lockstep_plan* plan = nullptr;
  EXPECT_EQ(lockstep_model_load("", nullptr, &model), LOCKSTEP_BAD_FILE);
  EXPECT_STREQ(lockstep_last_error(), "path: found \"\", expected the name of a file");
  EXPECT_EQ(lockstep_plan_load("", &plan), LOCKSTEP_BAD_FILE);
  EXPECT_STREQ(lockstep_last_error(), "path: found \"\", expected the name of a file");
  for (const char* activations : {"bogus", "relu,linear", "relu,relu,linearr", "tanh,tanh,linear"}) {
    const lockstep_load_options options{sizeof options, activations, nullptr};
    EXPECT_EQ(lockstep_model_load(kOcean.c_str(), &options, &model), LOCKSTEP_INVALID_ARGUMENT) << activations;
    EXPECT_THAT(lockstep_last_error(), HasSubstr("options.activations"));
  }
  const lockstep_load_options options{sizeof options, nullptr, "bogus"};
  EXPECT_EQ(lockstep_model_load(kOcean.c_str(), &options, &model), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("expected one of identity, linear, relu, "));
}

// The inner points of a field with halos, features first: in[feature][row][column].
TEST(CInterface, slices_have_the_bits_of_single_evaluations) {
  lockstep_plan* plan = compile(kOcean, LOCKSTEP_FLOAT32);
  constexpr std::ptrdiff_t kRows = 5, kColumns = 40, kRow = kColumns + 2, kField = kRow * (kRows + 2);
  const std::vector<float> in = inputs<float>(32 * kField);
  std::vector<float> out(31 * kField, -7.0F), expected(out);
  const float* const from = in.data() + kRow + 1;
  for (std::ptrdiff_t row = 0; row < kRows; ++row) {
    ASSERT_EQ(lockstep_evaluate_f32(plan, kColumns, from + row * kRow, 1, kField,
                                    expected.data() + kRow + 1 + row * kRow, 1, kField, nullptr, 0),
              LOCKSTEP_OK);
  }
  lockstep::AlignedBuffer<std::byte> workspace(lockstep_plan_workspace_bytes(plan));
  EXPECT_EQ(lockstep_evaluate_slices_f32(plan, kRows, kColumns, from, kRow, 1, kField, out.data() + kRow + 1, kRow, 1,
                                         kField, workspace.data(), workspace.size()),
            LOCKSTEP_OK)
      << lockstep_last_error();
  EXPECT_EQ(out, expected);
  // Slices that meet each other.
  std::vector<float> both(33 * kField);
  float* const at = both.data() + kRow + 1;
  EXPECT_EQ(lockstep_evaluate_slices_f32(plan, kRows, kColumns, at, kRow, 1, kField, at, kRow, 1, kField, nullptr, 0),
            LOCKSTEP_OK);
  EXPECT_EQ(
      lockstep_evaluate_slices_f32(plan, kRows, kColumns, at, kRow, 1, kField, at + kRow, kRow, 1, kField, nullptr, 0),
      LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("out: found memory that overlaps another slice of in"));
  EXPECT_EQ(lockstep_evaluate_slices_f32(plan, kRows, kColumns, from, kRow, 1, kField, at, 8, 1, kField, nullptr, 0),
            LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("out: found memory that overlaps another slice of out"));
  EXPECT_EQ(lockstep_evaluate_slices_f32(plan, SIZE_MAX, 1, from, 0, 1, 1, at, kRow, 1, 1, nullptr, 0),
            LOCKSTEP_INVALID_ARGUMENT);
  lockstep_plan_free(plan);
}

// A refusal leaves all results as they were, those of slices that fit as well.
TEST(CInterface, every_slice_is_looked_at_before_the_first_is_computed) {
  lockstep_plan* plan = compile(kOcean, LOCKSTEP_FLOAT64);
  constexpr std::ptrdiff_t kWide = 5 * 32;  // a slice
  for (const std::ptrdiff_t place : {std::ptrdiff_t{0}, kWide, 3 * kWide + 5}) {
    std::vector<double> both = inputs<double>(20 * kWide);
    const std::vector<double> before = both;
    // In place at first and an element on in the next; a slice after its own and on it; after it, and on its last row.
    const std::ptrdiff_t step = place == 0 ? 2 * kWide + 1 : kWide + 20;
    EXPECT_EQ(lockstep_evaluate_slices_f64(plan, 3, 5, both.data(), 2 * kWide, 32, 1, both.data() + place, step, 32, 1,
                                           nullptr, 0),
              LOCKSTEP_INVALID_ARGUMENT)
        << place;
    EXPECT_THAT(lockstep_last_error(), HasSubstr("out"));
    EXPECT_EQ(both, before) << place;
  }
  std::vector<double> both = inputs<double>(20 * kWide);
  EXPECT_EQ(lockstep_evaluate_slices_f64(plan, 2, 5, both.data(), 2 * kWide, 32, 1, both.data(), 2 * kWide + 1, 32, 1,
                                         nullptr, 0),
            LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(),
              HasSubstr("out (slice 1, counted from 0): found memory that overlaps in (slice 1, counted from 0)"));
  lockstep_plan_free(plan);
}

TEST(CInterface, arrays_that_overlap_are_answered_in_words) {
  lockstep_plan* plan = compile(kOcean, LOCKSTEP_FLOAT32);
  std::vector<float> table(kSamples * 63 + 1);  // 32 columns to read, 31 to write
  const auto evaluate = [&](std::size_t place, std::ptrdiff_t stride) {
    return lockstep_evaluate_f32(plan, kSamples, table.data(), 63, 1, table.data() + place, stride, 1, nullptr, 0);
  };
  EXPECT_EQ(evaluate(32, 63), LOCKSTEP_OK) << lockstep_last_error();
  EXPECT_EQ(evaluate(0, 63), LOCKSTEP_OK) << lockstep_last_error();
  EXPECT_EQ(evaluate(33, 63), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("out: found memory that overlaps in"));
  EXPECT_EQ(evaluate(0, 62), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(evaluate(32, 30), LOCKSTEP_INVALID_ARGUMENT);  // rows of 31 results that overlap each other
  EXPECT_THAT(lockstep_last_error(), HasSubstr("out: found strides 30 (row) and 1 (column)"));
  const lockstep_input_f32 in{table.data(), 63, 1};
  const lockstep_output_f32 out{table.data() + 31, 63, 1};
  EXPECT_EQ(lockstep_evaluate_ports_f32(plan, kSamples, &in, 1, &out, 1, nullptr, 0), LOCKSTEP_INVALID_ARGUMENT);
  lockstep_plan_free(plan);
}

TEST(CInterface, scratch_that_holds_what_a_call_reads_or_writes_is_refused_before_the_first_slice) {
  lockstep_plan* plan = compile(kOcean, LOCKSTEP_FLOAT32);
  const std::size_t bytes = lockstep_plan_workspace_bytes(plan);
  constexpr std::size_t kNumbers = 3 * 5 * 40;
  lockstep::AlignedBuffer<float> memory(kNumbers + bytes / sizeof(float));
  float* const scratch = memory.data() + kNumbers - kNumbers % 16;  // aligned
  const std::vector<float> x = inputs<float>(3 * 5 * 32);
  std::vector<float> y(3 * 5 * 31, 7);
  const std::vector<float> before = y;
  EXPECT_EQ(lockstep_evaluate_f32(plan, 5, x.data(), 32, 1, scratch, 31, 1, scratch, bytes), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(),
              HasSubstr("workspace: found memory that overlaps out, expected memory of its own"));
  const lockstep_input_f32 in{scratch + 8, 32, 1};
  const lockstep_output_f32 out{y.data(), 31, 1};
  EXPECT_EQ(lockstep_evaluate_ports_f32(plan, 5, &in, 1, &out, 1, scratch, bytes), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("workspace: found memory that overlaps in"));
  // Of three slices the last reaches into it.
  float* const last = scratch - 2 * 5 * 32;
  EXPECT_EQ(lockstep_evaluate_slices_f32(plan, 3, 5, last, 5 * 32, 32, 1, y.data(), 5 * 31, 31, 1, scratch, bytes),
            LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("workspace: found memory that overlaps in"));
  EXPECT_EQ(y, before);
  std::fill_n(last, 2 * 5 * 32, 7.0F);
  EXPECT_EQ(lockstep_evaluate_slices_f32(plan, 3, 5, x.data(), 5 * 32, 32, 1, last, 5 * 32, 31, 1, scratch, bytes),
            LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("workspace: found memory that overlaps out"));
  EXPECT_EQ(std::count(last, last + 2 * 5 * 32, 7.0F), 2 * 5 * 32);
  EXPECT_EQ(lockstep_evaluate_slices_f32(plan, 2, 5, last, 5 * 32, 32, 1, y.data(), 5 * 31, 31, 1, scratch, bytes),
            LOCKSTEP_OK)
      << lockstep_last_error();
  lockstep_plan_free(plan);
}

TEST(CInterface, loading_and_compiling_raise_no_flags_and_keep_the_hosts) {
  std::feclearexcept(FE_ALL_EXCEPT);
  std::feraiseexcept(FE_DIVBYZERO);
  for (const std::string& name : {kOcean, kQlknn}) lockstep_plan_free(compile(name, LOCKSTEP_FLOAT64));
  EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), FE_DIVBYZERO);
  std::feclearexcept(FE_ALL_EXCEPT);
}

TEST(CInterface, loads_where_the_host_traps_every_exception) {
  lockstep_model* model = nullptr;
  lockstep_plan* plan = nullptr;
  feenableexcept(FE_ALL_EXCEPT);
  const int asked = fegetexcept();  // nothing on processors that trap none
  const lockstep_status loaded = lockstep_model_load(kOcean.c_str(), nullptr, &model);
  const lockstep_status compiled = lockstep_compile(model, nullptr, &plan);
  lockstep_model* none = nullptr;
  const lockstep_status missing = lockstep_model_load("no/such/file", nullptr, &none);
  const int trapped = fegetexcept();
  fedisableexcept(FE_ALL_EXCEPT);
  EXPECT_EQ(loaded, LOCKSTEP_OK);
  EXPECT_EQ(compiled, LOCKSTEP_OK);
  EXPECT_EQ(missing, LOCKSTEP_BAD_FILE);
  EXPECT_EQ(trapped, asked);
  lockstep_plan_free(plan);
  lockstep_model_free(model);
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
  options.cpu_target = nullptr;
  const int no_precision = 9;  // as a C program may put it
  std::memcpy(&options.precision, &no_precision, sizeof no_precision);
  EXPECT_EQ(lockstep_compile(model, &options, &plan), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("compile_options.precision: found 9"));
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
            LOCKSTEP_UNSUPPORTED);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("peaks_relu_2_20_5_1.golden.h5"));
}

// Every format holds the same weights here: the bits must be the same.
TEST(CInterface, activations_beside_a_files_own_must_be_the_same) {
  const std::string hdf5 = ::testing::TempDir() + "/lockstep_c_own.h5";
  lockstep::nn::write_hdf5_model(hdf5, lockstep::nn::load(kOcean), lockstep::Existing::replace);
  for (const std::string& path : {std::string(kOcean), hdf5}) {
    lockstep_load_options options{sizeof(lockstep_load_options), "relu,relu,linear", nullptr};
    lockstep_model* model = nullptr;
    EXPECT_EQ(lockstep_model_load(path.c_str(), &options, &model), LOCKSTEP_OK) << lockstep_last_error();
    lockstep_model_free(model);
    options = {sizeof(lockstep_load_options), nullptr, "tanh"};
    EXPECT_EQ(lockstep_model_load(path.c_str(), &options, &model), LOCKSTEP_INVALID_ARGUMENT);
    EXPECT_THAT(lockstep_last_error(), HasSubstr("options.hidden_activation: found \"tanh,tanh,identity\", expected "
                                                 "\"relu,relu,identity\", the activations that " +
                                                 path));
  }
}

TEST(CInterface, what_inputs_tell_of_the_ranges_of_called_nets_is_theirs) {
  lockstep::nn::Equations system;
  system.equations = {{"x", "pull(x) + pull(x * y)", ""}, {"y", "x", ""}};
  lockstep::Mlp mlp;
  mlp.layers.push_back({1, 1, {-1}, {0}, {}});
  system.nets = {{"pull", lockstep::nn::Model::from_mlp(mlp)}};
  system.nets[0].model.inputs[0].features[0].maximum = 3;
  const std::string path = ::testing::TempDir() + "/lockstep_c_called.h5";
  lockstep::nn::write_hdf5_model(path, lockstep::nn::equations(system), lockstep::Existing::replace);
  lockstep_model* model = load(path.c_str());
  lockstep_feature feature{};
  ASSERT_EQ(lockstep_model_input(model, 0, &feature), LOCKSTEP_OK);
  EXPECT_EQ(feature.maximum, 3);
  ASSERT_EQ(lockstep_model_input(model, 1, &feature), LOCKSTEP_OK);
  EXPECT_TRUE(std::isinf(feature.maximum));
  lockstep_model_free(model);
}

#ifdef LOCKSTEP_ONNX
TEST(CInterface, reads_a_classifier_without_its_labels) {
  lockstep_model* model = load(std::string(LOCKSTEP_TEST_DATA) + "/exported/sklearn_classifier.onnx");
  lockstep_port port{};
  EXPECT_EQ(lockstep_model_ports(model, LOCKSTEP_OUTPUT), 1u);
  EXPECT_EQ(lockstep_model_port(model, LOCKSTEP_OUTPUT, 0, &port), LOCKSTEP_OK);
  EXPECT_STREQ(port.name, "probabilities");
  EXPECT_EQ(port.features, 3u);
  lockstep_model_free(model);
}
#endif

#ifdef LOCKSTEP_TEST_LIBRARY
// A copy of the library that has no readers beside it.
TEST(CInterface, without_readers_a_way_for_any_net_is_named) {
  const std::string folder = ::testing::TempDir() + "/lockstep_c_alone";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(LOCKSTEP_TEST_LIBRARY, folder + "/alone.so",
                             std::filesystem::copy_options::overwrite_existing);
  void* const library = dlopen((folder + "/alone.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto load = reinterpret_cast<decltype(&lockstep_model_load)>(dlsym(library, "lockstep_model_load"));
  const auto last_error = reinterpret_cast<decltype(&lockstep_last_error)>(dlsym(library, "lockstep_last_error"));
  const std::string path = kExported + "graph_ports_dynamo.onnx";
  lockstep_model* model = nullptr;
  EXPECT_EQ(load(path.c_str(), nullptr, &model), LOCKSTEP_UNSUPPORTED);
  EXPECT_THAT(last_error(), HasSubstr("or turn the model into a plan file, lockstep compile " + path +
                                      " -o net.plan, and give that to lockstep_plan_load"));
  std::filesystem::remove_all(folder);
}
#endif

TEST(CInterface, names_a_plan_file_where_none_is_found) {
  lockstep_plan* plan = nullptr;
  EXPECT_EQ(lockstep_plan_load("absent.plan", &plan), LOCKSTEP_BAD_FILE);
  EXPECT_STREQ(lockstep_last_error(),
               "absent.plan: found no such file, expected a plan file, as lockstep compile writes it; check the path");
}

TEST(CInterface, reads_onnx_and_keras_through_its_companion) {
  const std::string folder = LOCKSTEP_TEST_DATA;
  const std::vector<float> x = inputs<float>(kSamples * 3);
  std::vector<std::vector<float>> answers;
  for (const std::string& path : {folder + "/lorenz_tanh_3_100_3.safetensors",
#ifdef LOCKSTEP_ONNX
                                  folder + "/lorenz_tanh_3_100_3.onnx",
#endif
                                  folder + "/keras/lorenz_tanh_3_100_3.keras.h5"}) {
    lockstep_plan* plan = compile(path, LOCKSTEP_FLOAT32);
    answers.emplace_back(kSamples * 3);
    EXPECT_EQ(lockstep_evaluate_f32(plan, kSamples, x.data(), 3, 1, answers.back().data(), 3, 1, nullptr, 0),
              LOCKSTEP_OK);
    EXPECT_EQ(answers.back(), answers.front()) << path;
    lockstep_plan_free(plan);
  }
  lockstep_model* model = load(folder + "/keras/keras3_scaled.keras");
  EXPECT_EQ(lockstep_model_outputs(model), 2u);
  lockstep_model_free(model);
}

// A net of eight output ports, as published, through its ONNX file and through a plan file: the bits of the library.
#ifdef LOCKSTEP_ONNX
const std::string kPublished = kExported + "graph_qlknn_7_11.onnx";

TEST(CInterface, nets_of_several_ports_have_the_librarys_bits) {
  const std::string path = testing::TempDir() + "c_interface_ports.plan";
  const lockstep::nn::Model published = lockstep::nn::load(kPublished);
  lockstep::nn::write_plan(path, {published, lockstep::Precision::f64, lockstep::best_cpu_target()},
                           lockstep::Existing::replace);
  lockstep_plan *loaded = nullptr, *compiled = compile(kPublished, LOCKSTEP_FLOAT64);
  ASSERT_EQ(lockstep_plan_load(path.c_str(), &loaded), LOCKSTEP_OK) << lockstep_last_error();
  const auto plan = lockstep::nn::NetPlan<double>::compile(published);
  const std::size_t in_width = plan.inputs()[0].width, outs = plan.outputs().size();
  ASSERT_GT(outs, 1u);
  ASSERT_EQ(lockstep_plan_ports(loaded, LOCKSTEP_INPUT), 1u);
  ASSERT_EQ(lockstep_plan_ports(loaded, LOCKSTEP_OUTPUT), outs);
  // Within its training range, out of which it answers 0.
  const std::vector<double> x = lockstep::hdf5::File::open(kExported + "graph_qlknn_7_11.graph.h5")
                                    .group("inputs")
                                    .dataset("input")
                                    .read<double>();
  const std::size_t samples = x.size() / in_width;
  std::vector<std::vector<double>> expected, found;
  std::vector<lockstep::MatrixView<double>> views;
  std::vector<lockstep_output_f64> arrays;
  std::size_t first = 0;
  for (std::size_t i = 0; i < outs; ++i) {
    lockstep_port port{};
    ASSERT_EQ(lockstep_plan_port(loaded, LOCKSTEP_OUTPUT, i, &port), LOCKSTEP_OK);
    std::size_t index = outs;
    EXPECT_EQ(lockstep_plan_port_index(loaded, LOCKSTEP_OUTPUT, port.name, &index), LOCKSTEP_OK);
    EXPECT_EQ(index, i);
    EXPECT_EQ(port.name, plan.outputs()[i].name);
    EXPECT_EQ(port.features, plan.outputs()[i].width);
    EXPECT_EQ(port.first_feature, first);
    first += port.features;
    expected.emplace_back(samples * port.features);
    found.emplace_back(samples * port.features);
  }
  EXPECT_EQ(lockstep_plan_outputs(loaded), first);
  for (std::size_t i = 0; i < outs; ++i) {  // outputs by feature here, by sample there
    const std::size_t width = plan.outputs()[i].width;
    views.push_back(lockstep::MatrixView<double>::column_major(expected[i].data(), samples, width));
    arrays.push_back({found[i].data(), 1, static_cast<std::ptrdiff_t>(samples)});
  }
  const lockstep::MatrixView<const double> in =
      lockstep::MatrixView<const double>::row_major(x.data(), samples, in_width);
  plan.evaluate(std::span(&in, 1), views, 1);
  const lockstep_input_f64 from{x.data(), static_cast<std::ptrdiff_t>(in_width), 1};
  lockstep::AlignedBuffer<std::byte> workspace(lockstep_plan_workspace_bytes(loaded));
  for (const auto& [handle, work] :
       {std::pair<lockstep_plan*, std::byte*>{loaded, workspace.data()}, {compiled, nullptr}}) {
    for (auto& one : found) std::fill(one.begin(), one.end(), -77.0);
    ASSERT_EQ(lockstep_evaluate_ports_f64(handle, samples, &from, 1, arrays.data(), outs, work, workspace.size()),
              LOCKSTEP_OK)
        << lockstep_last_error();
    EXPECT_EQ(found, expected);
    EXPECT_NE(found[1][3], 0);
  }
  // What does not fit is named.
  double y[8] = {};
  EXPECT_EQ(lockstep_evaluate_f64(loaded, 1, x.data(), 1, 1, y, 1, 1, nullptr, 0), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("lockstep_evaluate_ports_f32"));
  EXPECT_THAT(lockstep_last_error(), HasSubstr(plan.outputs()[1].name));
  EXPECT_EQ(lockstep_evaluate_ports_f64(loaded, 1, &from, 1, arrays.data(), 1, nullptr, 0), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("out: found 1 array, expected"));
  const lockstep_output_f64 first_array = arrays[1];
  arrays[1] = arrays[0];
  EXPECT_EQ(lockstep_evaluate_ports_f64(loaded, samples, &from, 1, arrays.data(), outs, nullptr, 0),
            LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("out \"" + plan.outputs()[1].name +
                                               "\": found memory that overlaps out \"" + plan.outputs()[0].name + '"'));
  arrays[1] = first_array;
  arrays[1].data = nullptr;
  EXPECT_EQ(lockstep_evaluate_ports_f64(loaded, 1, &from, 1, arrays.data(), outs, nullptr, 0),
            LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("out \"" + plan.outputs()[1].name + "\".data: found a null pointer"));
  EXPECT_EQ(lockstep_evaluate_ports_f64(loaded, 1, nullptr, 1, arrays.data(), outs, nullptr, 0),
            LOCKSTEP_INVALID_ARGUMENT);
  lockstep_port port{};
  EXPECT_EQ(lockstep_plan_port(loaded, LOCKSTEP_INPUT, 1, &port), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("index: found 1, expected less than 1"));
  std::size_t index = 99;
  EXPECT_EQ(lockstep_plan_port_index(loaded, LOCKSTEP_INPUT, plan.outputs()[0].name.c_str(), &index),
            LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(lockstep_last_error())
                .rfind("port: found \"" + plan.outputs()[0].name + "\", expected one of " + plan.inputs()[0].name, 0),
            0u);
  EXPECT_EQ(index, 99u);
  EXPECT_EQ(lockstep_plan_port_index(loaded, LOCKSTEP_INPUT, nullptr, &index), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(lockstep_plan_port_index(loaded, LOCKSTEP_INPUT, "x", nullptr), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(lockstep_plan_port_index(nullptr, LOCKSTEP_INPUT, "x", &index), LOCKSTEP_INVALID_ARGUMENT);
  lockstep_plan_free(loaded);
  lockstep_plan_free(compiled);
}
#endif

TEST(CInterface, plan_files_load_with_the_same_bits_or_are_refused) {
  const std::string path = testing::TempDir() + "c_interface.plan";
  lockstep::nn::PlanFile file{lockstep::nn::load(kOcean), lockstep::Precision::f32, lockstep::best_cpu_target()};
  lockstep::nn::write_plan(path, file, lockstep::Existing::replace);
  lockstep_plan *loaded = nullptr, *compiled = compile(kOcean, LOCKSTEP_FLOAT32);
  ASSERT_EQ(lockstep_plan_load(path.c_str(), &loaded), LOCKSTEP_OK) << lockstep_last_error();
  EXPECT_STREQ(lockstep_plan_description(loaded), lockstep_plan_description(compiled));
  const std::vector<float> x = inputs<float>(kSamples * 32);
  std::vector<float> a(kSamples * 31), b(kSamples * 31);
  EXPECT_EQ(lockstep_evaluate_f32(loaded, kSamples, x.data(), 32, 1, a.data(), 31, 1, nullptr, 0), LOCKSTEP_OK);
  EXPECT_EQ(lockstep_evaluate_f32(compiled, kSamples, x.data(), 32, 1, b.data(), 31, 1, nullptr, 0), LOCKSTEP_OK);
  EXPECT_EQ(a, b);
  lockstep_plan_free(loaded);
  loaded = nullptr;
  file.target = lockstep::CpuTarget::scalar;
  file.made_for = lockstep::nn::PlanFor::any_machine;
  lockstep::nn::write_plan(path, file, lockstep::Existing::replace);
  ASSERT_EQ(lockstep_plan_load(path.c_str(), &loaded), LOCKSTEP_OK) << lockstep_last_error();
  EXPECT_STREQ(lockstep_plan_description(loaded), lockstep_plan_description(compiled));
  lockstep_plan_free(loaded);
  lockstep_plan_free(compiled);
  loaded = nullptr;
  file.made_for = lockstep::nn::PlanFor::target;
  file.target =
      lockstep::best_cpu_target() == lockstep::CpuTarget::neon ? lockstep::CpuTarget::avx2 : lockstep::CpuTarget::neon;
  lockstep::nn::write_plan(path, file, lockstep::Existing::replace);
  EXPECT_EQ(lockstep_plan_load(path.c_str(), &loaded), LOCKSTEP_UNSUPPORTED);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("c_interface.plan: found a plan for "));
  EXPECT_THAT(lockstep_last_error(), HasSubstr("expected one this machine runs"));
  EXPECT_THAT(lockstep_last_error(), HasSubstr("make it again from the model"));
  EXPECT_EQ(lockstep_plan_load(kOcean.c_str(), &loaded), LOCKSTEP_BAD_MODEL);
  EXPECT_EQ(loaded, nullptr);
}

TEST(CInterface, a_machine_without_a_gpu_is_a_status) {
  setenv("LOCKSTEP_CUDA_LIBRARY", "/nowhere/liblockstep_cuda.so", 1);
  lockstep_model* model = load(kOcean);
  lockstep_device_plan* plan = nullptr;
  EXPECT_EQ(lockstep_device_compile(model, nullptr, &plan), LOCKSTEP_UNSUPPORTED);
  EXPECT_EQ(plan, nullptr);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("cuda:0: found this installation has no CUDA component"));
  EXPECT_THAT(lockstep_last_error(), HasSubstr("install the CUDA component, or evaluate on the CPU"));
  lockstep_model_free(model);
}

TEST(CInterface, files_that_cannot_be_read_are_statuses) {
  lockstep_model* model = nullptr;
  EXPECT_EQ(lockstep_model_load("no/such.safetensors", nullptr, &model), LOCKSTEP_BAD_FILE);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("no/such.safetensors"));
  const std::string readme = std::string(LOCKSTEP_TEST_DATA) + "/README.md";
  EXPECT_EQ(lockstep_model_load(readme.c_str(), nullptr, &model), LOCKSTEP_UNSUPPORTED);
  EXPECT_THAT(lockstep_last_error(), HasSubstr("Keras, safetensors or a Lockstep model in HDF5"));
#ifdef LOCKSTEP_ONNX
  EXPECT_THAT(lockstep_last_error(), HasSubstr("expected ONNX, Keras"));
#endif
  EXPECT_EQ(lockstep_model_load(nullptr, nullptr, &model), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(model, nullptr);
}

}  // namespace
