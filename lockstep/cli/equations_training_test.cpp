// Nets trained inside equations.
#include "lockstep/cli/equations_training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/cli/trained_values.h"
#include "lockstep/kernels/graph/weights.h"
#include "lockstep/nn/fit.h"
#include "lockstep/nn/guarded_calls.h"
#include "lockstep/nn/net_plan.h"
#include "lockstep/ode/fit.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep::cli {
namespace {

constexpr const char* kFile = R"toml(
[net]
hidden = [6]
[data]
file = "pendulum.h5"
normalise = "standard"
[rhs]
parameters = { g = 2 }
[rhs.equations]
x = "v"
v = "-g * sin(x) + net(v)"
[method]
precision = "f64"
name = "rk4"
dt = 0.1
[training]
optimiser = "lbfgs"
iterations = 120
[output]
file = "closure"
)toml";

TrainingFile file_of(const std::string& text) { return parse_training_file(text, "folder/train.toml"); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

// Pendulums that air slows: -0.3 v |v| is what the net must find.
TrajectoryTable pendulums() {
  nn::Equations system;
  system.equations = {{"x", "v", ""}, {"v", "-2 * sin(x) - 0.3 * v * abs(v)", ""}};
  ode::Problem problem;
  problem.rhs = ode::net(nn::to_graph(nn::equations(system)));
  TrajectoryTable table;
  table.component_names = {"x", "v"};
  constexpr std::size_t kPoints = 21;
  table.lengths.assign(4, kPoints);
  for (std::size_t i = 0; i < kPoints; ++i) problem.save_times.push_back(0.1 * static_cast<double>(i));
  problem.end_times = {problem.save_times.back()};
  problem.initial_states = {1.5, -1, -2, 0, 0.5, 2, 1, -2};
  const ode::Solution solution = ode::solve(problem, {.rtol = 1e-9, .atol = 1e-9, .precision = Precision::f64});
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t k = 0; k < kPoints; ++k) {
      table.times.push_back(problem.save_times[k]);
      for (std::size_t c = 0; c < 2; ++c) table.states.push_back(solution.state(i, k, c));
    }
  }
  return table;
}

TEST(EquationsTraining, recovers_a_closure_from_trajectories) {
  const TrainingFile file = file_of(kFile);
  const TrajectoryTable table = pendulums();
  EquationsToTrain equations = equations_to_train(file, table);
  EXPECT_EQ(equations.parameters, std::vector<double>{2});
  EXPECT_EQ(equations.rhs->weights(), graph::gather_weights(nn::to_graph(equations.nets[0])));
  ode::FitOptions options;
  options.solve = file.options;
  options.phases[0].segment = 5;
  options.phases[0].training.rule = train::LbfgsOptions{};
  options.phases[0].training.iterations = 120;
  const ode::TrajectoryData data{4, table.times, table.states, equations.parameters, {}};
  const ode::FitResult result = ode::fit(equations.rhs, data, options);
  nn::set_parameters<double>(equations.nets[0], result.weights);
  const auto plan = nn::NetPlan<double>::compile(equations.nets[0]);
  const nn::Feature& range = equations.nets[0].inputs[0].features[0];
  EXPECT_EQ(range.name, "v");
  for (int i = 0; i <= 20; ++i) {
    const double v = range.minimum + (range.maximum - range.minimum) * i / 20;
    double found = 0;
    plan.evaluate(MatrixView<const double>::row_major(&v, 1, 1), MatrixView<double>::row_major(&found, 1, 1));
    EXPECT_NEAR(found, -0.3 * v * std::abs(v), 0.03) << v;  // of up to 1.2
  }
}

TEST(EquationsTraining, scales_inputs_by_what_the_equations_hand_over) {
  const EquationsToTrain equations = equations_to_train(
      file_of(replaced(kFile, "net(v)", "net(v^2, 3 + t).drag - net(v*v, 3 + t).lift")), pendulums());
  ASSERT_EQ(equations.nets[0].inputs[0].features.size(), 2u);
  EXPECT_EQ(equations.nets[0].inputs[0].features[0].name, "v^2");
  EXPECT_EQ(equations.nets[0].inputs[0].features[1].name, "3 + t");
  EXPECT_DOUBLE_EQ(equations.nets[0].inputs[0].features[1].minimum, 2.98);  // a hundredth of the width beyond 3
  EXPECT_DOUBLE_EQ(equations.nets[0].inputs[0].features[1].maximum, 5.02);
  EXPECT_GE(equations.nets[0].inputs[0].features[0].minimum, -0.01 * equations.nets[0].inputs[0].features[0].maximum);
  EXPECT_EQ(equations.nets[0].outputs[0].features[0].name, "drag");
  EXPECT_EQ(equations.nets[0].outputs[0].features[1].name, "lift");
  const auto& scaling = std::get<nn::Standardise>(equations.nets[0].nodes[0].operation);
  EXPECT_NEAR(scaling.shift[1], 4, 1e-12);
}

constexpr const char* kParts = R"toml(
[net.production]
hidden = [3]
[net.loss]
hidden = [4]
[data]
file = "pendulum.h5"
normalise = "standard"
[rhs.models]
known = "known.h5"
[rhs.parameters]
k = { start = "8/3", positive = true }
c = 0.5
m = { start = -2 }
[rhs.equations]
x = "v + m * known(x)"
v = "production(x) - production(v) - k * loss(x, c) + loss(production(x), v)"
[method]
precision = "f64"
name = "rk4"
dt = 0.1
[training]
iterations = 2
[output]
file = "parts"
)toml";

TrainingFile parts_file() {
  TrainingFile file = file_of(kParts);
  Mlp known;
  known.layers.push_back({1, 1, {0.25}, {0.5}, {}});
  file.ode->equations->nets.at(0).loaded = std::make_shared<nn::Model>(nn::Model::from_mlp(known));
  return file;
}

TEST(EquationsTraining, trains_nets_and_parameters_beside_nets_that_are_kept) {
  const TrainingFile file = parts_file();
  const TrajectoryTable table = pendulums();
  const EquationsToTrain equations = equations_to_train(file, table);
  ASSERT_EQ(equations.nets.size(), 2u);
  EXPECT_EQ(equations.nets[0].name, "production");
  EXPECT_EQ(equations.parameters, std::vector<double>{0.5});
  std::vector<double> expected;
  for (const nn::Model& net : equations.nets) {
    const std::vector<double> weights = graph::gather_weights(nn::to_graph(net));
    expected.insert(expected.end(), weights.begin(), weights.end());
  }
  expected.insert(expected.end(), {0, -1});  // 8/3 exp(0), 2 times -1
  EXPECT_EQ(equations.rhs->weights(), expected);
  // Of all that its two calls read, x and v.
  const nn::Feature& read = equations.nets[0].inputs[0].features[0];
  EXPECT_EQ(read.name, "x ...");
  const auto [low, high] = std::ranges::minmax(table.states);
  EXPECT_DOUBLE_EQ(read.minimum, low - 0.01 * (high - low));
  EXPECT_DOUBLE_EQ(read.maximum, high + 0.01 * (high - low));
  // One of its calls is not known: no range, the other's scaling.
  EXPECT_EQ(equations.nets[1].inputs[0].features[0].maximum, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::holds_alternative<nn::Standardise>(equations.nets[1].nodes[0].operation));

  const std::vector<double> numbers{std::log(1.5), 0.75};
  const std::vector<TrainedValue> values =
      trained_values<double>(equations.parameter_names(), equations.trained, numbers);
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(values[0].name, "k");
  EXPECT_NEAR(values[0].value, 4, 1e-15);
  EXPECT_EQ(values[1].value, 1.5);
  EXPECT_EQ(values[1].start, -2);
  const nn::Model whole = trained_equations(file, equations, equations.nets, values);
  EXPECT_EQ(nn::parameter_defaults(whole), (std::vector<std::optional<double>>{values[0].value, 0.5, 1.5}));
  // What the production was trained on, in both of its calls; the loss has no range.
  ASSERT_EQ(whole.calls.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(whole.calls[i].net, "production");
    EXPECT_EQ(whole.calls[i].inputs[0].features[0].name, i == 0 ? "x" : "v");
    EXPECT_EQ(whole.calls[i].inputs[0].features[0].minimum, read.minimum);
    EXPECT_EQ(whole.calls[i].inputs[0].features[0].maximum, read.maximum);
  }
}

// The range of each state that trained_equations() stores, "x" where it stores one, and of those that a solve watches.
std::pair<std::string, std::string> ranges_of(const std::string& text, const TrajectoryTable& table) {
  const TrainingFile file = file_of(text);
  const EquationsToTrain equations = equations_to_train(file, table);
  const nn::Model whole = trained_equations(file, equations, equations.nets, {});
  const nn::WatchedInputs watched = nn::watched_inputs(whole, nn::Watch::state_and_parameters);
  std::pair<std::string, std::string> names;
  for (std::size_t i = 0; i < table.component_names.size(); ++i) {
    if (nn::is_bounded(whole.inputs[0].features[i])) names.first += table.component_names[i];
    if (nn::is_bounded(watched.inputs[0].features[i])) names.second += table.component_names[i];
  }
  return names;
}

TEST(EquationsTraining, states_have_a_range_of_their_own_where_nets_do_not_know_it) {
  using Names = std::pair<std::string, std::string>;
  const TrajectoryTable table = pendulums();
  EXPECT_EQ(ranges_of(kFile, table), Names("", "v"));
  EXPECT_EQ(ranges_of(replaced(kFile, "net(v)", "net(x, v)"), table), Names("", "xv"));
  EXPECT_EQ(ranges_of(replaced(kFile, "net(v)", "net(v^2)"), table), Names("v", "v"));
  EXPECT_EQ(ranges_of(replaced(kFile, "net(v)", "net(v, x - v)"), table), Names("xv", "xv"));
  EXPECT_EQ(ranges_of(replaced(kFile, "net(v)", "net(v, t)"), table), Names("", "v"));
  const std::string two = replaced(kFile, "[net]\nhidden = [6]", "[net.a]\nhidden = [6]\n[net.b]\nhidden = [6]");
  EXPECT_EQ(ranges_of(replaced(two, "net(v)", "a(v) + b(x)"), table), Names("", "xv"));
  EXPECT_EQ(ranges_of(replaced(two, "net(v)", "a(b(x)) * v"), table), Names("xv", "xv"));  // a's is not known
}

// Diffusion with a net for what each cell makes: all cells are within what the net has seen of any, none alone.
TEST(EquationsTraining, a_net_at_every_cell_knows_what_it_saw_in_all) {
  TrajectoryTable table;
  table.component_names = {"a", "b", "c"};
  table.lengths = {3};
  table.times = {0, 0.1, 0.2};
  table.states = {0.1, 0.4, 0.9, 0.2, 0.5, 1.0, 0.3, 0.6, 0.8};
  const TrainingFile file = file_of(
      replaced(kFile, "x = \"v\"\nv = \"-g * sin(x) + net(v)\"",
               "a = \"g * (b - a) + net(a)\"\nb = \"g * (a - 2 * b + c) + net(b)\"\nc = \"g * (b - c) + net(c)\""));
  const EquationsToTrain equations = equations_to_train(file, table);
  const nn::Model whole = trained_equations(file, equations, equations.nets, {});
  const nn::WatchedInputs watched = nn::watched_inputs(whole, nn::Watch::state_and_parameters);
  for (const nn::Feature& cell : watched.inputs[0].features) {
    EXPECT_DOUBLE_EQ(cell.minimum, 0.1 - 0.009) << cell.name;  // a hundredth of the width more
    EXPECT_DOUBLE_EQ(cell.maximum, 1.0 + 0.009) << cell.name;
  }
  EXPECT_TRUE(watched.other.empty());
}

TEST(EquationsTraining, makes_nets_of_one_shape_differ_at_the_start) {
  const TrainingFile file = file_of(replaced(
      replaced(kFile, "[net]\nhidden = [6]", "[net.a]\nhidden = [6]\n[net.b]\nhidden = [6]"), "net(v)", "a(v) - b(v)"));
  const EquationsToTrain equations = equations_to_train(file, pendulums());
  EXPECT_NE(equations.nets[0].digest(), equations.nets[1].digest());
}

std::string message(const std::string& text, TrajectoryTable table = pendulums()) {
  try {
    equations_to_train(file_of(text), table);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(EquationsTraining, refuses_what_it_could_not_train) {
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_PRED2(has, message(replaced(kFile, "net(v)", "v")), "no call of \"net\"");
  EXPECT_PRED2(has, message(replaced(kFile, "net(v)", "net(v) + net(x, v)")), "as in its first call");
  EXPECT_PRED2(has, message(replaced(kFile, "net(v)", "net()")), "the net's inputs");
  EXPECT_PRED2(has, message(replaced(kFile, "[net]", "[net.rhs]")), "net.rhs: found a net called rhs");
  EXPECT_PRED2(has, message(replaced(kFile, "[net]", "[net.a]")), "\"net\", expected one of a, ");
  EXPECT_PRED2(has, message(replaced(kFile, "[net]", "[net.x]")), "\"x\", expected a name of letters");
  EXPECT_PRED2(has, message(replaced(kFile, "[net]", "[net]\nhidden = [2]\n[net.a]")), "hidden beside nets by name");
  EXPECT_PRED2(has, message(replaced(kFile, "g = 2", "g = { start = -1, positive = true }")),
               "rhs.parameters.g.start: found -1");
  EXPECT_PRED2(has, message(replaced(kFile, "g = 2", "g = { begin = 1 }")), "rhs.parameters.g");
  EXPECT_PRED2(has, message(replaced(kFile, "g = 2", "g = { positive = true }")), "no start");
  EXPECT_PRED2(has, message(replaced(kFile, "g = 2", "g = { start = 3, min = 0, max = 2 }")),
               "g.start: found 3, expected a number between min and max, 0 and 2");
  EXPECT_PRED2(has, message(replaced(kFile, "g = 2", "g = { start = 1, min = 2, max = 2 }")),
               "g.min: found 2, expected less than max, 2");
  EXPECT_PRED2(has, message(replaced(kFile, "g = 2", "g = { start = 1, min = 0, positive = true }")),
               "min beside positive = true");
  EXPECT_PRED2(has, message(replaced(kFile, "g = 2", "g = { start = 1, max = 2, scale = 1 }")), "g.scale");
  EXPECT_PRED2(has, message(replaced(kFile, "parameters = ", "models = { a = \"a.h5\" }\nparameters = ")),
               "rhs.models.a");
  EXPECT_PRED2(has, message(replaced(kFile, "net(v)", "net(v)[0] + net(v).a")), "either");
  EXPECT_PRED2(has, message(replaced(kFile, "net(v)", "net(log(x))")), "not finite at a point of the data");
  EXPECT_PRED2(has, message(replaced(kFile, "{ g = 2 }", "[\"g\"]")), "no value for g");
  EXPECT_PRED2(has, message(replaced(kFile, "[method]", "[ode]\nsystem = \"lorenz\"\n[method]")), "beside a system");
  TrajectoryTable turned = pendulums();
  turned.component_names = {"v", "x"};
  EXPECT_PRED2(has, message(kFile, turned), "the order of the equations");
}

}  // namespace
}  // namespace lockstep::cli
