#include "lockstep/nn/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lockstep/core/testing/message_of.h"
#include "lockstep/kernels/graph/weights.h"
#include "lockstep/nn/compile.h"
#include "lockstep/nn/net_plan.h"
#include "lockstep/nn/testing/small_model.h"

namespace lockstep::nn {
namespace {

using ::testing::HasSubstr;
using testing::small_model;

template <class Edit>
std::string after(Edit edit) {
  Model model = small_model();
  edit(model);
  return message_of([&] { model.validate(); });
}

template <class Operation>
Operation& operation(Model& model, std::size_t node) {
  return std::get<Operation>(model.nodes.at(node).operation);
}

TEST(Model, a_bias_of_zeros_counts_as_the_weights_that_a_training_changes) {
  Model model = small_model();
  const std::size_t count = model.parameter_count();
  for (Node& node : model.nodes) {
    if (auto* const dense = std::get_if<Dense>(&node.operation)) std::ranges::fill(dense->bias, 0.0);
  }
  EXPECT_EQ(model.parameter_count(), count);
  EXPECT_EQ(model.parameter_count(), graph::gather_weights(to_graph(model)).size());
}

TEST(Model, a_stack_becomes_a_graph_and_a_stack_again) {
  const Model model = small_model();
  ASSERT_EQ(model.nodes.size(), 5u);
  EXPECT_EQ(model.nodes[2].name, "layers.0.activation");
  EXPECT_EQ(model.nodes[4].name, "output_scaling");
  EXPECT_EQ(model.outputs[0].value, "output_scaling");
  EXPECT_EQ(model.parameter_count(), 13u);
  const Mlp mlp = to_mlp(model);
  ASSERT_EQ(mlp.layers.size(), 2u);
  EXPECT_EQ(mlp.layers[0].weights, (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(mlp.layers[0].activation.kind, ActivationKind::tanh);
  EXPECT_EQ(mlp.layers[1].bias, std::vector<double>{2});
  EXPECT_EQ(mlp.layers[1].activation, Activation{});
  EXPECT_EQ(mlp.input_scaling.shift, (std::vector<double>{1, 2}));
  EXPECT_EQ(mlp.input_scaling.scale, (std::vector<double>{3, 4}));
  EXPECT_EQ(mlp.output_scaling.scale, std::vector<double>{10});
  EXPECT_EQ(mlp.output_scaling.shift, std::vector<double>{20});
  EXPECT_EQ(Model::from_mlp(mlp).digest(), model.digest());
}

TEST(Model, half_a_scaling_is_completed) {
  Mlp mlp = to_mlp(small_model());
  mlp.input_scaling.shift.clear();
  mlp.output_scaling.scale.clear();
  const Mlp whole = to_mlp(Model::from_mlp(mlp));
  EXPECT_EQ(whole.input_scaling.shift, (std::vector<double>{0, 0}));
  EXPECT_EQ(whole.output_scaling.scale, std::vector<double>{1});
}

TEST(Model, the_digest_is_that_of_what_is_computed) {
  const std::string digest = small_model().digest();
  Model model = small_model();
  model.name = model.nodes[1].name = "renamed";
  model.nodes[2].inputs[0] = "renamed";
  model.inputs[0].features[0].name = "p";
  EXPECT_EQ(model.digest(), digest);
  operation<Dense>(model, 1).weights[4] = std::nextafter(5, 6);
  EXPECT_NE(model.digest(), digest);
  model = small_model();
  operation<Activate>(model, 2).activation.kind = ActivationKind::sigmoid;
  EXPECT_NE(model.digest(), digest);
  model = small_model();
  model.outputs[0].value = "layers.1";
  EXPECT_NE(model.digest(), digest);
  model = small_model();
  std::swap(operation<Standardise>(model, 0).shift, operation<Standardise>(model, 0).scale);
  EXPECT_NE(model.digest(), digest);
}

TEST(Model, faults_are_named) {
  EXPECT_EQ(after([](Model&) {}), "no error");
  EXPECT_EQ(after([](Model& m) { operation<Dense>(m, 1).weights[5] = NAN; }),
            "layers.0.weight[2][1]: found nan, expected a finite number");
  EXPECT_EQ(after([](Model& m) { operation<Dense>(m, 3).bias[0] = INFINITY; }),
            "layers.1.bias[0]: found infinity, expected a finite number");
  EXPECT_EQ(after([](Model& m) { operation<Dense>(m, 3).weights.pop_back(); }),
            "layers.1.weight: found 2 numbers, expected 1 x 3");
  EXPECT_EQ(after([](Model& m) { operation<Dense>(m, 1).bias.clear(); }),
            "layers.0.bias: found 0 numbers, expected 3 (one for each output)");
  EXPECT_EQ(after([](Model& m) { operation<Dense>(m, 3).inputs = 4; }),
            "layers.1: found 4 inputs, expected 3, the width of what it reads");
  EXPECT_EQ(after([](Model& m) { operation<Standardise>(m, 0).scale[1] = 0; }),
            "input_scaling.scale[1]: found 0, expected a number other than 0");
  EXPECT_EQ(after([](Model& m) { operation<Rescale>(m, 4).shift.push_back(0); }),
            "output_scaling.shift: found 2 numbers, expected 1 (the width of what it reads)");
  EXPECT_THAT(after([](Model& m) { m.nodes[3].inputs[0] = "absent"; }),
              HasSubstr("layers.1: found \"absent\" to read, expected the name of an input port or an earlier node"));
  EXPECT_THAT(after([](Model& m) { m.nodes[3].inputs.clear(); }), HasSubstr("layers.1: found 0 values to read"));
  EXPECT_THAT(after([](Model& m) { m.nodes[1].name = "x"; }), HasSubstr("found the name \"x\" a second time"));
  EXPECT_THAT(after([](Model& m) { m.outputs[0].value = "absent"; }),
              HasSubstr("output port \"y\": found \"absent\" to show"));
  EXPECT_THAT(after([](Model& m) { m.outputs[0].features.resize(2); }),
              HasSubstr("output port \"y\": found 2 features, expected 1"));
  EXPECT_THAT(after([](Model& m) { m.inputs[0].features[1].name = "pressure"; }),
              HasSubstr("input port \"x\" feature 1: found the name \"pressure\" a second time"));
  EXPECT_THAT(after([](Model& m) { m.inputs[0].features[1].minimum = 500; }),
              HasSubstr("input port \"x\" feature 1: found a range from 500"));
  EXPECT_THAT(after([](Model& m) { m.inputs.clear(); }), HasSubstr("found no input port"));
  EXPECT_THAT(after([](Model& m) { m.outputs.clear(); }), HasSubstr("found no output port"));
}

TEST(Model, what_is_no_stack_is_refused_by_node) {
  const auto lowering = [](auto edit) {
    Model model = small_model();
    edit(model);
    EXPECT_EQ(message_of([&] { model.validate(); }), "no error");
    return message_of([&] { to_mlp(model); });
  };
  EXPECT_THAT(lowering([](Model& m) { m.outputs[0].value = "layers.1"; }),
              HasSubstr("output port \"y\": found \"layers.1\" to show, expected \"output_scaling\", the last value"));
  EXPECT_THAT(lowering([](Model& m) {
                m.nodes.push_back({"more", Activate{{ActivationKind::relu, 0}}, {"output_scaling"}});
                m.outputs[0].value = "more";
              }),
              HasSubstr("more: found a node after the output scaling"));
  EXPECT_THAT(lowering([](Model& m) {
                m.nodes[0].operation = Activate{{ActivationKind::relu, 0}};
              }),
              HasSubstr("input_scaling: found an activation, expected a dense layer before it"));
  EXPECT_THAT(lowering([](Model& m) {
                m.nodes[4].operation = Standardise{{1}, {1}};
              }),
              HasSubstr("output_scaling: found a standardisation, expected it before the first layer only"));
  EXPECT_THAT(lowering([](Model& m) {
                m.inputs.push_back({"z", "", {Feature{}}});
              }),
              HasSubstr("found 2 input ports, expected one"));
  EXPECT_THAT(lowering([](Model& m) {
                m.nodes.push_back({"side", Activate{{ActivationKind::relu, 0}}, {"layers.1"}});
                m.outputs[0].value = "side";
              }),
              HasSubstr("side: found \"layers.1\" to read, expected \"output_scaling\", the value before it"));
}

TEST(Model, ports_are_found_by_name_in_models_and_plans) {
  Model model = small_model();
  model.outputs.push_back(model.outputs.front());
  model.outputs[0].name = "tendency";
  model.outputs[1].name = "flux";
  const auto plan = NetPlan<float>::compile(model);
  const auto derivatives = compile_derivatives<double>(model);
  EXPECT_EQ(port_index(model.outputs, "flux"), 1u);
  EXPECT_EQ(port_index(plan.outputs(), "flux"), 1u);
  EXPECT_EQ(port_index(plan.outputs(), "tendency"), 0u);
  EXPECT_EQ(port_index(derivatives.outputs(), "flux"), 1u);
  EXPECT_EQ(message_of([&] { port_index(plan.outputs(), "fluxes"); }, ErrorKind::invalid_argument),
            "port: found \"fluxes\", expected one of tendency, flux; did you mean \"flux\"?");
}

TEST(Model, that_is_no_stack_is_sent_to_what_compiles_any_net) {
  Model two = small_model();
  two.outputs.push_back({"z", two.outputs[0].value, two.outputs[0].features});
  EXPECT_EQ(
      message_of([&] { compile<float>(two); }),
      "model: found 2 output ports, expected one; compile it by nn::NetPlan<T>::compile(model), which takes any net; "
      "compile() is for plain stacks of dense layers");
}

}  // namespace
}  // namespace lockstep::nn
