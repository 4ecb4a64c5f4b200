#include "lockstep/train/initialise.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/hash.h"

namespace lockstep::train {
namespace {

using I = Initialisation;

constexpr std::size_t kOutputs = 200, kInputs = 300;
constexpr double kCount = kOutputs * kInputs;

std::vector<double> weights(I initialisation, std::uint64_t seed = 1, std::uint32_t layer = 0) {
  std::vector<double> w(kOutputs * kInputs);
  initialise(w, kOutputs, kInputs, initialisation, seed, layer);
  return w;
}

double expected_variance(I initialisation) {
  const bool glorot = initialisation == I::glorot_uniform || initialisation == I::glorot_normal;
  const bool he = initialisation == I::he_uniform || initialisation == I::he_normal;
  return glorot ? 2.0 / (kOutputs + kInputs) : he ? 2.0 / kInputs : 1.0 / kInputs;
}

TEST(Initialise, weights_follow_the_law_of_their_name) {
  for (const I initialisation :
       {I::glorot_uniform, I::glorot_normal, I::he_uniform, I::he_normal, I::lecun_uniform, I::lecun_normal}) {
    const bool uniform = to_string(initialisation).ends_with("uniform");
    double sum = 0, squares = 0, fourth = 0, largest = 0;
    for (const double w : weights(initialisation)) {
      sum += w;
      squares += w * w;
      fourth += w * w * w * w;
      largest = std::max(largest, std::fabs(w));
    }
    const double variance = expected_variance(initialisation);
    const double kurtosis = uniform ? 9.0 / 5 : 3;
    // Five standard deviations of each estimate: mean sqrt(var/n), mean square var sqrt((kurtosis - 1)/n); the fourth
    // moment's variance is at most (m8 - m4^2)/n = (105 - 9) var^4/n.
    EXPECT_NEAR(sum / kCount, 0, 5 * std::sqrt(variance / kCount)) << to_string(initialisation);
    EXPECT_NEAR(squares / kCount / variance, 1, 5 * std::sqrt((kurtosis - 1) / kCount)) << to_string(initialisation);
    EXPECT_NEAR(fourth / kCount / (variance * variance), kurtosis, 5 * std::sqrt(96 / kCount));
    if (uniform) {
      EXPECT_LE(largest, std::sqrt(3 * variance));
    }
  }
}

TEST(Initialise, orthogonal_weights_are_orthonormal_along_the_shorter_side) {
  for (const auto& [outputs, inputs] : {std::pair<std::size_t, std::size_t>{7, 7}, {20, 50}, {50, 20}, {1, 3}}) {
    std::vector<double> w(outputs * inputs);
    initialise(w, outputs, inputs, I::orthogonal, 5, 2);
    const std::size_t vectors = std::min(outputs, inputs), length = std::max(outputs, inputs);
    for (std::size_t a = 0; a < vectors; ++a) {
      for (std::size_t b = 0; b <= a; ++b) {
        double product = 0;
        for (std::size_t e = 0; e < length; ++e) {
          product += outputs <= inputs ? w[a * inputs + e] * w[b * inputs + e] : w[e * inputs + a] * w[e * inputs + b];
        }
        // A few roundings of each of up to 50 products of numbers below 1 in each of 20 subtractions.
        EXPECT_NEAR(product, a == b ? 1 : 0, 1000 * 0x1p-53);
      }
    }
  }
}

TEST(Initialise, seed_and_layer_decide_the_weights_and_nothing_else_does) {
  EXPECT_EQ(weights(I::glorot_uniform, 1, 0), weights(I::glorot_uniform, 1, 0));
  EXPECT_NE(weights(I::glorot_uniform, 1, 0), weights(I::glorot_uniform, 2, 0));
  EXPECT_NE(weights(I::glorot_uniform, 1, 0), weights(I::glorot_uniform, 1, 1));
}

TEST(Initialise, weights_have_the_bits_recorded) {
  const auto digest = [](I initialisation) {
    const std::vector<double> w = weights(initialisation);
    return ContentHash().add(std::span<const double>(w)).hex();
  };
  // Recorded on x86-64; every other machine must find them.
  EXPECT_EQ(digest(I::glorot_uniform), "948d8a15b1c1dbcc6260ad09ba5fb207");
  EXPECT_EQ(digest(I::he_normal), "50fdf17c4c84a2363779e31636755e0b");
  EXPECT_EQ(digest(I::orthogonal), "384b59c76c84fcd906f1c1e4d7236e8e");
}

TEST(Initialise, a_net_gets_weights_for_every_layer_and_no_bias) {
  Mlp mlp;
  mlp.layers = {{.inputs = 3, .outputs = 100}, {.inputs = 100, .outputs = 3}};
  mlp.layers[0].bias.assign(100, 7);
  initialise(mlp, I::glorot_uniform, 4);
  mlp.validate();
  EXPECT_EQ(mlp.parameter_count(), 703u);
  EXPECT_EQ(mlp.layers[0].bias, std::vector<double>(100));
  EXPECT_NE(mlp.layers[0].weights, mlp.layers[1].weights);
}

TEST(Initialise, an_unknown_name_is_told_the_nearest) {
  try {
    parse_initialisation("net.initialisation", "glorot");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("expected one of zeros, glorot_uniform"));
  }
}

}  // namespace
}  // namespace lockstep::train
