#include "lockstep/kernels/activation.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace lockstep {
namespace {

TEST(Activation, every_kind_is_listed_once_in_order) {
  const auto all = all_activations();
  ASSERT_EQ(all.size(), static_cast<std::size_t>(ActivationKind::square) + 1);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(static_cast<std::size_t>(all[i].kind), i);
}

TEST(Activation, what_is_written_is_read_again) {
  for (const Activation& activation : all_activations()) {
    EXPECT_EQ(parse_activation(to_string(activation)), activation) << to_string(activation);
  }
  for (const ActivationKind kind : {ActivationKind::leaky_relu, ActivationKind::elu, ActivationKind::celu}) {
    for (const double alpha : {0.1, 1.0 / 3, -2.5, 1e-300, 5e-324}) {
      EXPECT_EQ(parse_activation(to_string({kind, alpha})), (Activation{kind, alpha}));
    }
  }
}

TEST(Activation, alpha_stands_in_the_name_where_it_is_not_the_default) {
  EXPECT_EQ(to_string({ActivationKind::leaky_relu, 0.01}), "leaky_relu");
  EXPECT_EQ(to_string({ActivationKind::leaky_relu, 0.2}), "leaky_relu(0.2)");
  EXPECT_EQ(to_string({ActivationKind::tanh, 7}), "tanh");
}

TEST(Activation, other_tools_spellings_are_known) {
  const auto kind = [](std::string_view name) { return parse_activation(name).value().kind; };
  EXPECT_EQ(kind("linear"), ActivationKind::identity);
  EXPECT_EQ(kind("none"), ActivationKind::identity);
  EXPECT_EQ(kind("Tanh"), ActivationKind::tanh);
  EXPECT_EQ(kind("ReLU()"), ActivationKind::relu);
  EXPECT_EQ(kind("swish"), ActivationKind::silu);
  EXPECT_EQ(kind("SiLU"), ActivationKind::silu);
  EXPECT_EQ(kind("hardswish"), ActivationKind::hard_swish);
  EXPECT_EQ(kind("Hardsigmoid"), ActivationKind::hard_sigmoid);
  EXPECT_EQ(kind("gelu_new"), ActivationKind::gelu_tanh);
  EXPECT_EQ(parse_activation("LeakyReLU"), (Activation{ActivationKind::leaky_relu, 0.01}));
  EXPECT_EQ(parse_activation("LeakyReLU(negative_slope=0.2)"), (Activation{ActivationKind::leaky_relu, 0.2}));
  EXPECT_EQ(parse_activation("prelu(0.25)"), (Activation{ActivationKind::leaky_relu, 0.25}));
  EXPECT_EQ(parse_activation("ELU(alpha=2)"), (Activation{ActivationKind::elu, 2}));
}

TEST(Activation, what_is_not_understood_is_not_guessed) {
  for (const char* name :
       {"", "tan", "prelu", "prelu()", "leaky_relu(", "leaky_relu(x)", "leaky_relu(0.1 )", "elu(nan)", "elu(inf)",
        "celu(0)", "tanh(2)", "GELU(approximate='tanh')", "softplus(beta=2)", "softmax"}) {
    EXPECT_EQ(parse_activation(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace lockstep
