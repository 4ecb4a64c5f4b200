// For tests of the C interface: nets, and handles of them.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "bindings/c/lockstep.h"

namespace lockstep::testing::c {

inline const std::string kOcean = std::string(LOCKSTEP_TEST_DATA) + "/ocean_relu_32_128_128_31.safetensors";
inline const std::string kQlknn = std::string(LOCKSTEP_TEST_DATA) + "/qlknn_7_11_tanh_10_133x5_8.safetensors";
inline const std::string kExported = std::string(LOCKSTEP_TEST_DATA) + "/exported/";
inline constexpr std::size_t kSamples = 77;

inline lockstep_model* load(const std::string& path) {
  lockstep_model* model = nullptr;
  EXPECT_EQ(lockstep_model_load(path.c_str(), nullptr, &model), LOCKSTEP_OK) << lockstep_last_error();
  return model;
}

inline lockstep_plan* compile(const std::string& path, lockstep_precision precision, const char* target = nullptr) {
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

}  // namespace lockstep::testing::c
