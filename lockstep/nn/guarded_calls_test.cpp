// Training ranges of nets that equations call, in the model that the equations become.
#include "lockstep/nn/guarded_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/hdf5.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/nn/equations.h"
#include "lockstep/nn/hdf5_model.h"
#include "lockstep/nn/net_plan.h"
#include "lockstep/nn/plan_file.h"
#include "lockstep/nn/safetensors.h"
#include "lockstep/nn/table_model.h"

namespace lockstep::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// tanh(0.5 a - b), trained on -1 <= a <= 2 and b <= 3.
Model pull() {
  Mlp mlp;
  mlp.layers.push_back({2, 1, {0.5, -1}, {0.25}, {ActivationKind::tanh, 0}});
  Model net = Model::from_mlp(mlp);
  net.inputs[0].features = {{"a", "m", -1, 2}, {"b", "", -kInfinity, 3}};
  return net;
}

Equations system_of(const std::string& x, const std::string& y, Model net = pull()) {
  Equations system;
  system.equations = {{"x", x, ""}, {"y", y, ""}};
  system.parameters = {{"k", 2.0}};
  system.nets = {{"pull", std::move(net)}};
  return system;
}

Equations with_clamped_nets(Equations system) {
  for (Equations::Net& net : system.nets) net.model = with_clamped_inputs(net.model);
  return system;
}

// du/dt at these states and k = 2, t = 0.25, flat.
std::vector<double> derivatives(const Model& model) {
  const std::vector<double> u{0.5, 0.5, -3, 4, 5, -2, 1.75, 3.5, std::nan(""), 0}, k(5, 2.0), t(5, 0.25);
  std::vector<double> du(10);
  std::vector<MatrixView<const double>> in;
  for (const Port& port : model.inputs) {
    const double* from = port.name == "u" ? u.data() : port.name == "p" ? k.data() : t.data();
    in.push_back(MatrixView<const double>::row_major(from, 5, port.features.size()));
  }
  const std::vector<MatrixView<double>> out{MatrixView<double>::row_major(du.data(), 5, 2)};
  NetPlan<double>::compile(model).evaluate(in, out);
  return du;
}

void expect_same(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) << i;
}

TEST(GuardedCalls, equations_keep_what_the_nets_were_trained_on) {
  const Model model = equations(system_of("pull(x, y) + pull(y, k)", "pull(x^2, y) - pull(x, y)"));
  ASSERT_EQ(model.calls.size(), 3u);  // what is written twice is one
  EXPECT_EQ(model.calls[0].net, "pull");
  EXPECT_EQ(model.calls[0].name, "pull");
  EXPECT_EQ(model.calls[0].inputs[0].value, "u");
  EXPECT_EQ(model.calls[1].name, "pull#2");
  EXPECT_EQ(model.calls[2].inputs[0].features[0].name, "x^2");
  EXPECT_EQ(model.calls[2].inputs[0].features[0].unit, "m");
  EXPECT_EQ(model.calls[2].inputs[0].features[0].maximum, 2);
  Model untold = pull();
  untold.inputs[0].features = std::vector<Feature>(2);
  EXPECT_THAT(equations(system_of("pull(x, y)", "x", untold)).calls, IsEmpty());
  // Ranges do not decide what is computed.
  EXPECT_EQ(equations(system_of("pull(x, y)", "x", untold)).digest(), equations(system_of("pull(x, y)", "x")).digest());
}

TEST(GuardedCalls, components_and_parameters_that_are_read_as_they_are_are_watched) {
  const Model model = equations(system_of("pull(x, y) + pull(y, k)", "pull(x^2, t) + pull(x, pull(x, y))"));
  const WatchedInputs watched = watched_inputs(model, Watch::state_and_parameters);
  EXPECT_EQ(watched.inputs[0].features[0].minimum, -1);
  EXPECT_EQ(watched.inputs[0].features[0].maximum, 2);
  EXPECT_EQ(watched.inputs[0].features[1].minimum, -1);  // of one call
  EXPECT_EQ(watched.inputs[0].features[1].maximum, 2);   // of both
  EXPECT_EQ(watched.inputs[1].features[0].minimum, -kInfinity);
  EXPECT_EQ(watched.inputs[1].features[0].maximum, 3);
  EXPECT_EQ(watched.inputs[2].features[0].maximum, kInfinity);
  EXPECT_THAT(watched.other, ElementsAre("training range of pull's input x ...",
                                         "training range of pull's input that holds what it returns"));
  ASSERT_EQ(watched.times.size(), 1u);
  EXPECT_EQ(watched.times[0].name, "pull");
  EXPECT_EQ(watched.times[0].maximum, 3);
  EXPECT_EQ(watched_inputs(model, Watch::all_inputs).inputs[2].features[0].maximum, 3);
  // The model's own range counts, too.
  Model narrower = model;
  narrower.inputs[0].features[0].maximum = 1;
  EXPECT_EQ(watched_inputs(narrower, Watch::all_inputs).inputs[0].features[0].maximum, 1);
}

TEST(GuardedCalls, clamped_calls_are_calls_of_clamped_nets) {
  for (const auto& [x, y] :
       std::vector<std::pair<std::string, std::string>>{{"pull(x, y)", "y"},
                                                        {"x * pull(x, y) + pull(y, x)", "pull(x^2 + y, 4) - y"},
                                                        {"pull(pull(x, y), x)", "pull(x, y) * t + pull(k * t, t)"}}) {
    SCOPED_TRACE(x);
    const Equations system = system_of(x, y);
    const Model clamped = with_clamped_calls(equations(system)), expected = equations(with_clamped_nets(system));
    EXPECT_EQ(clamped.digest(), expected.digest());
    EXPECT_THAT(clamped.calls, IsEmpty());
    EXPECT_THAT(expected.calls, IsEmpty());
    expect_same(derivatives(clamped), derivatives(expected));
    EXPECT_NE(derivatives(clamped)[2], derivatives(equations(system))[2]);
  }
}

// a from one port and b from another, both of which may read the same value, and a itself as a second output.
Model two_ports() {
  Model net;
  net.inputs = {{"a", "", {{"", "", 0, 1}}}, {"b", "", {{"", "", 2, 3}}}};
  net.nodes = {{"twice", Binary{BinaryKind::add}, {"b", "b"}}, {"y", Binary{BinaryKind::multiply}, {"a", "twice"}}};
  net.outputs = {{"y", "y", {{}}}, {"same", "a", {{}}}};
  return net;
}

TEST(GuardedCalls, ports_that_read_one_value_are_clamped_each_to_its_own_range) {
  for (const std::string x : {"pull(x, x).y", "pull(x, y).same + pull(y, y).same", "pull(u2, u2).y + u2"}) {
    SCOPED_TRACE(x);
    Equations system = system_of(x, "x", two_ports());
    system.definitions = {{"u2", "x * x", ""}};
    const Model model = equations(system);
    expect_same(derivatives(with_clamped_calls(model)), derivatives(equations(with_clamped_nets(system))));
    EXPECT_EQ(watched_inputs(model, Watch::all_inputs).other.empty(), x != "pull(u2, u2).y + u2");
  }
  const auto du = derivatives(with_clamped_calls(equations(system_of("pull(x, x).y", "x", two_ports()))));
  EXPECT_EQ(du[0], 0.5 * 4);
  EXPECT_EQ(du[4], 1 * 6);
  EXPECT_EQ(du[5], 5);  // the equations outside see the state as it is
}

TEST(GuardedCalls, tables_keep_their_ends_without_being_clamped) {
  Equations system = system_of("pull(x, y) + rain(t) + rain(k * t)", "pull(x, y)");
  system.nets.push_back({"rain", table_model({.input = {}, .at = {0, 0.3, 2}, .outputs = {{}}, .values = {3, 5, 4}})});
  const Model model = equations(system), clamped = with_clamped_calls(model);
  EXPECT_EQ(model.calls.size(), 3u);
  for (const Node& node : clamped.nodes)
    EXPECT_FALSE(std::holds_alternative<Clip>(node.operation) && !node.name.starts_with("pull")) << node.name;
  system.nets[0].model = with_clamped_inputs(system.nets[0].model);
  expect_same(derivatives(clamped), derivatives(equations(system)));
}

// Equations whose net is equations that call a net.
TEST(GuardedCalls, nets_within_nets_keep_their_ranges) {
  Model inner = equations(system_of("pull(x, y) + x", "pull(y, k) * y"));
  for (const double own : {kInfinity, 1.5}) {
    inner.inputs[0].features[1].maximum = own;
    const Equations system = system_of("pull(x, y, k)[0]", "pull(x, x + y, k)[1]", inner);
    const Model model = equations(system);
    EXPECT_EQ(model.calls.size(), std::isinf(own) ? 4u : 6u);
    const WatchedInputs watched = watched_inputs(model, Watch::state_and_parameters);
    EXPECT_EQ(watched.inputs[0].features[0].maximum, 2);
    EXPECT_EQ(watched.inputs[0].features[1].maximum, std::min(own, 2.0));
    EXPECT_EQ(watched.inputs[1].features[0].maximum, 3);
    EXPECT_THAT(watched.other,
                ::testing::Contains(std::isinf(own) ? "training range of pull.pull's input y ..."
                                                    : "training range of pull's and pull.pull's input y ..."));
    const Model clamped = with_clamped_calls(model);
    expect_same(derivatives(clamped), derivatives(equations(with_clamped_nets(system))));
    EXPECT_NE(derivatives(clamped)[2], derivatives(model)[2]);
  }
}

TEST(GuardedCalls, files_keep_them) {
  const std::string path = ::testing::TempDir() + "/lockstep-guarded-" + std::to_string(::getpid()) + ".h5";
  const Model model = equations(system_of("pull(x, y) + pull(y, k)", "pull(x^2, y)"));
  write_hdf5_model(path, model, Existing::replace);
  EXPECT_EQ(hdf5::File::open(path).integer_attribute("lockstep_model"), 3);
  const Model stored = read_hdf5_model(path), planned = read_plan(plan_bytes({model}), "a plan").model;
  for (const Model* again : {&stored, &planned}) {
    EXPECT_EQ(again->digest(), model.digest());
    ASSERT_EQ(again->calls.size(), 3u);
    EXPECT_EQ(again->calls[2].name, "pull#3");
    EXPECT_EQ(again->calls[2].inputs[0].value, model.calls[2].inputs[0].value);
    EXPECT_EQ(again->calls[2].inputs[0].features[0].name, "x^2");
    EXPECT_EQ(again->calls[2].inputs[0].features[0].maximum, 2);
    EXPECT_EQ(with_clamped_calls(*again).digest(), with_clamped_calls(model).digest());
  }
  // One that is a plain stack keeps them, too; safetensors has no place for them.
  Equations plain = system_of("pull(x, y)", "0");
  plain.equations.pop_back();
  plain.equations.front().text = "wide(x)";
  plain.parameters.clear();
  Mlp mlp;
  mlp.layers.push_back({1, 1, {0.5}, {0.25}, {}});
  plain.nets = {{"wide", Model::from_mlp(mlp)}};
  plain.nets[0].model.inputs[0].features[0].maximum = 1;
  const Model stack = equations(plain);
  ASSERT_TRUE(is_stack(stack));
  EXPECT_THAT(message_of([&] { to_safetensors(stack); }),
              HasSubstr("model: found calls of nets with training ranges, expected a model without"));
  write_hdf5_model(path, stack, Existing::replace);
  EXPECT_EQ(read_hdf5_model(path).calls.size(), 1u);
  plain.nets[0].model.inputs[0].features[0].maximum = kInfinity;
  write_hdf5_model(path, equations(plain), Existing::replace);
  EXPECT_EQ(hdf5::File::open(path).integer_attribute("lockstep_model"), 1);
  std::filesystem::remove(path);
}

TEST(GuardedCalls, those_that_do_not_fit_the_model_are_refused) {
  Model model = equations(system_of("pull(x, y)", "y"));
  const auto refused = [&](const auto& spoil) {
    Model spoilt = model;
    spoil(spoilt.calls[0]);
    return message_of([&] { spoilt.validate(); });
  };
  EXPECT_THAT(refused([](GuardedCall& call) { call.inputs[0].value = "nothing"; }),
              HasSubstr("call \"pull\" input \"x\": found \"nothing\" to read"));
  EXPECT_THAT(refused([](GuardedCall& call) { call.inputs[0].features.pop_back(); }),
              HasSubstr("1 features, expected 2"));
  EXPECT_THAT(refused([](GuardedCall& call) { call.inputs[0].features[0].minimum = 7; }),
              HasSubstr("a range from 7 to 2"));
  EXPECT_THAT(refused([](GuardedCall& call) { call.name.clear(); }), HasSubstr("no name of its own"));
  EXPECT_THAT(refused([](GuardedCall& call) { call.name = "pul"; }),
              HasSubstr("call \"pul\": found no node \"pul.*\""));
}

}  // namespace
}  // namespace lockstep::nn
