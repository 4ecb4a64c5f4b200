// Regression trains, in the same way whatever the threads, and says what is wrong with data and options.
#include "lockstep/nn/fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/kernels/graph/weights.h"
#include "lockstep/kernels/mlp/parameters.h"
#include "lockstep/nn/net_plan.h"
#include "lockstep/train/initialise.h"

namespace lockstep::nn {
namespace {

// y = sin(3 x0) x1 on random points of the square, and the same again for validation.
struct Toy {
  std::vector<double> x, y;
  explicit Toy(std::size_t count, std::uint64_t seed = 1) {
    const Random random(seed);
    for (std::size_t i = 0; i < count; ++i) {
      x.push_back(2 * random.uniform(i, 0) - 1);
      x.push_back(2 * random.uniform(i, 1) - 1);
      y.push_back(std::sin(3 * x[2 * i]) * x[2 * i + 1]);
    }
  }
  RegressionData data() const {
    return {MatrixView<const double>::row_major(x.data(), y.size(), 2),
            MatrixView<const double>::row_major(y.data(), y.size(), 1)};
  }
};

Model net(const std::vector<std::size_t>& widths, ActivationKind kind, std::uint64_t seed = 1) {
  Mlp mlp;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    DenseLayer layer{.inputs = widths[i], .outputs = widths[i + 1]};
    layer.weights.resize(layer.inputs * layer.outputs);
    layer.bias.resize(layer.outputs);
    if (i + 2 < widths.size()) layer.activation = {kind};
    mlp.layers.push_back(layer);
  }
  train::initialise(mlp, train::Initialisation::glorot_uniform, seed);
  return Model::from_mlp(mlp);
}

FitOptions adam(std::int64_t iterations, double rate) {
  FitOptions options;
  options.phases[0].iterations = iterations;
  options.phases[0].learning_rate.rate = rate;
  return options;
}

std::vector<double> numbers(const Model& model) { return gather_parameters<double>(to_mlp(model)); }

TEST(Fit, learns_a_smooth_function_by_adam_and_then_lbfgs) {
  const Toy toy(500);
  Model model = net({2, 20, 1}, ActivationKind::tanh);
  FitOptions options = adam(300, 0.02);
  options.precision = Precision::f64;
  options.phases.push_back({.iterations = 200, .rule = train::LbfgsOptions{}});
  const FitReport report = fit(model, toy.data(), options);
  // The targets' variance is 0.17: a net that learned nothing leaves that.
  EXPECT_LT(report.loss, 1e-4);
  EXPECT_EQ(report.iterations, 500);
  // What is reported is what the model does.
  FitOptions none = options;
  RegressionLoss<double> loss(to_mlp(model), toy.data(), none);
  EXPECT_EQ(loss.loss(numbers(model)), report.loss);
}

// y = net(x) + a x0 + b x1 + c: a branch beside the layers.
Model with_branch() {
  Model model = net({2, 12, 1}, ActivationKind::tanh);
  model.nodes.push_back({"branch", Dense{2, 1, {0.1, 0.2}, {0}}, {model.inputs[0].name}});
  model.nodes.push_back({"sum", Binary{graph::BinaryKind::add}, {model.outputs[0].value, "branch"}});
  model.outputs[0].value = "sum";
  return model;
}

TEST(Fit, trains_nets_that_are_no_plain_stacks) {
  const Toy toy(300), check(200, 2);
  FitOptions options = adam(50, 0.02);
  options.precision = Precision::f64;
  options.batch = 100;
  options.validation = check.data();
  options.phases.push_back({.iterations = 80, .rule = train::LbfgsOptions{}});
  std::string expected;
  for (const int threads : {1, 3}) {
    options.threads = threads;
    Model model = with_branch();
    const FitReport report = fit(model, toy.data(), options);
    EXPECT_LT(report.loss, 1e-3);  // of 0.17, as above
    EXPECT_LT(*report.validation_loss, 1e-3);
    if (expected.empty()) expected = model.digest();
    EXPECT_EQ(model.digest(), expected);
    const auto plan = NetPlan<double>::compile(model);
    std::vector<double> made(check.y.size());
    plan.evaluate(check.data().inputs, MatrixView<double>::row_major(made.data(), made.size(), 1));
    double sum = 0;
    for (std::size_t i = 0; i < made.size(); ++i) sum += (made[i] - check.y[i]) * (made[i] - check.y[i]);
    EXPECT_NEAR(sum / 200, *report.validation_loss, 1e-15);
  }
}

TEST(Fit, gives_the_same_bits_for_any_number_of_threads) {
  const Toy toy(2000);
  for (const std::size_t batch : {0, 600, 1100}) {
    std::vector<double> expected;
    std::vector<double> expected_curve;
    for (const int threads : {1, 2, 5}) {
      Model model = net({2, 20, 5, 1}, ActivationKind::relu);
      FitOptions options = adam(40, 0.01);
      options.threads = threads;
      options.batch = batch;
      options.validation_fraction = 0.1;
      // Steps with a look at the validation samples after each, then after some.
      options.validate_every = batch == 600 ? 1 : 9;
      options.phases.push_back(options.phases[0]);
      options.phases[1].learning_rate = {.schedule = train::Schedule::plateau, .rate = 0.02, .patience = 3};
      options.phases[1].clip.norm = 0.05;
      std::vector<double> curve;
      fit(model, toy.data(), options, {.progress = [&](const train::IterationReport& report) {
            curve.push_back(report.loss);
            curve.push_back(report.watched);
            curve.push_back(report.gradient_norm);
          }});
      if (threads == 1) {
        expected = numbers(model);
        expected_curve = curve;
      }
      EXPECT_EQ(numbers(model), expected) << threads;
      EXPECT_EQ(curve, expected_curve) << threads;
    }
  }
}

TEST(Fit, every_epoch_visits_each_sample_once_in_an_order_of_its_own) {
  // One weight, no bias to speak of: with the sum of residuals' absolute values the gradient is the sum of inputs.
  std::vector<double> x, y(10, 1e9);
  for (int i = 0; i < 10; ++i) x.push_back(1 << i);
  const RegressionData data{MatrixView<const double>::row_major(x.data(), 10, 1),
                            MatrixView<const double>::row_major(y.data(), 10, 1)};
  FitOptions options = adam(1, 0.1);
  options.cost.residual = Residual::absolute;
  options.reduction = Reduction::sum;
  options.batch = 3;
  const Model model = net({1, 1}, ActivationKind::identity);
  RegressionLoss<double> loss(to_mlp(model), data, options);
  ASSERT_EQ(loss.iterations_per_epoch(), 4);
  const std::vector<double> parameters(2);
  std::set<std::vector<double>> orders;
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
    std::vector<double> batches(4);
    double all = 0;
    for (std::int64_t i = 0; i < 4; ++i) {
      std::vector<double> gradient(2);
      loss({.total = 4 * epoch + i}, parameters, gradient);
      batches[static_cast<std::size_t>(i)] = gradient[0];
      all += gradient[0];
      EXPECT_EQ(gradient[1], i < 3 ? -3 : -1);  // as many samples
    }
    EXPECT_EQ(all, -1023);
    orders.insert(batches);
  }
  EXPECT_GE(orders.size(), 4u);
}

TEST(Fit, keeps_the_best_parameters_by_validation_and_stops_early) {
  const Toy toy(40), other(200, 2);
  const std::size_t width = kSanitized ? 20 : 50;
  Model model = net({2, width, width, 1}, ActivationKind::tanh);
  FitOptions options = adam(5000, 0.01);
  options.validation = other.data();
  options.phases[0].patience = 100;
  double best = 1e30;
  const FitReport report =
      fit(model, toy.data(), options,
          {.progress = [&](const train::IterationReport& iteration) { best = std::min(best, iteration.watched); }});
  ASSERT_TRUE(report.validation_loss);
  EXPECT_LE(*report.validation_loss, best);
  EXPECT_LT(report.iterations, 5000);
  EXPECT_LT(report.loss, *report.validation_loss);
}

// Rows of one output without their target teach nothing: the rest are in the order they had, the sums of tiles in
// another. Adam's steps of 0.01 then differ by roundings that 20 of them hardly let grow.
TEST(Fit, missing_targets_are_as_rows_left_out) {
  Toy all(300), rest(0);
  for (std::size_t i = 0; i < 300; ++i) {
    if (i % 3 == 1) {
      all.y[i] = std::nan("");
      continue;
    }
    rest.x.insert(rest.x.end(), {all.x[2 * i], all.x[2 * i + 1]});
    rest.y.push_back(all.y[i]);
  }
  FitOptions options = adam(20, 0.01);
  options.precision = Precision::f64;
  Model skipped = net({2, 7, 1}, ActivationKind::tanh), left_out = skipped;
  const FitReport expected = fit(left_out, rest.data(), options);
  options.missing = MissingTargets::skip;
  const FitReport found = fit(skipped, all.data(), options);
  EXPECT_NEAR(found.loss, expected.loss, 1e-12 * expected.loss);
  const std::vector<double> a = numbers(skipped), b = numbers(left_out);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-10) << i;
}

// The best constant for targets 0 and 3 of sigma 1 and 2 is their mean weighed by 1 / sigma^2, 0.6, where the mean of
// ((y - 0) / 1)^2 and ((3 - y) / 2)^2 is 0.9. Mini-batches have the same on average, so that small steps end near it.
TEST(Fit, targets_count_in_units_of_their_error) {
  std::vector<double> x(200, 1.0), y(200), sigma(200);
  for (std::size_t i = 0; i < 200; ++i) {
    y[i] = i % 2 == 0 ? 0 : 3;
    sigma[i] = i % 2 == 0 ? 1 : 2;
  }
  const auto view = [](const std::vector<double>& of) {
    return MatrixView<const double>::row_major(of.data(), 200, 1);
  };
  const RegressionData data{view(x), view(y), view(sigma)};
  for (const std::size_t batch : {0, 64}) {
    FitOptions options = adam(2000, batch == 0 ? 0.01 : 0.001);
    options.precision = Precision::f64;
    options.batch = batch;
    Model model = net({1, 1}, ActivationKind::identity);
    const FitReport report = fit(model, data, options);
    const std::vector<double> found = numbers(model);
    EXPECT_NEAR(found[0] + found[1], 0.6, batch == 0 ? 1e-6 : 0.02) << batch;
    EXPECT_NEAR(report.loss, 0.9, batch == 0 ? 1e-9 : 1e-3) << batch;
  }
}

TEST(Fit, weights_of_outputs_decide_what_is_learned) {
  const Toy toy(200);
  std::vector<double> targets;
  for (const double y : toy.y) {
    targets.push_back(y);
    targets.push_back(-5);
  }
  const RegressionData data{toy.data().inputs, MatrixView<const double>::row_major(targets.data(), 200, 2)};
  Model model = net({2, 10, 2}, ActivationKind::tanh);
  const std::vector<double> before = to_mlp(model).layers[1].weights;
  FitOptions options = adam(50, 0.01);
  options.cost.weights = {1, 0};
  fit(model, data, options);
  const DenseLayer last = to_mlp(model).layers[1];
  EXPECT_EQ(last.bias[1], 0);
  for (std::size_t k = 0; k < 10; ++k) {
    EXPECT_EQ(static_cast<float>(before[10 + k]), last.weights[10 + k]);
    EXPECT_NE(static_cast<float>(before[k]), last.weights[k]);
  }
}

TEST(Fit, a_loss_that_is_not_finite_names_the_iteration_and_keeps_the_last_good_parameters) {
  const Toy toy(100);
  Model model = net({2, 10, 1}, ActivationKind::square);
  FitOptions options = adam(1000, 1e18);
  options.phases[0].rule = train::OptimiserOptions{.rule = train::Rule::sgd, .momentum = 0};
  std::int64_t last = -1;
  try {
    fit(model, toy.data(), options,
        {.progress = [&](const train::IterationReport& report) { last = report.place.total; }});
    FAIL() << "a step of 1e18 went well";
  } catch (const Error& error) {
    EXPECT_EQ(error.field(), "iteration " + std::to_string(last + 1));
  }
  EXPECT_GE(last, 0);
  EXPECT_NO_THROW(to_mlp(model));  // finite
}

TEST(Fit, stops_when_asked_and_keeps_what_it_has) {
  const Toy toy(100);
  Model model = net({2, 10, 1}, ActivationKind::tanh);
  CancelToken cancel;
  const FitReport report = fit(model, toy.data(), adam(1000, 0.01),
                               {.cancel = &cancel, .progress = [&](const train::IterationReport& iteration) {
                                  if (iteration.place.total == 9) cancel.request();
                                }});
  EXPECT_TRUE(report.cancelled);
  EXPECT_EQ(report.iterations, 10);
}

std::string field_of(const RegressionData& data, const FitOptions& options) {
  Model model = net({2, 3, 1}, ActivationKind::tanh);
  try {
    fit(model, data, options);
  } catch (const Error& error) {
    return error.field();
  }
  return "";
}

TEST(Fit, refuses_bad_data_and_options_by_name) {
  Toy toy(20);
  FitOptions options = adam(2, 0.1);
  EXPECT_EQ(field_of(toy.data(), options), "");
  RegressionData data = toy.data();
  data.inputs.columns = 1;
  EXPECT_EQ(field_of(data, options), "data.inputs");
  data = toy.data();
  data.targets.rows = 19;
  EXPECT_EQ(field_of(data, options), "data.targets");
  data.inputs.rows = data.targets.rows = 0;
  EXPECT_EQ(field_of(data, options), "data");
  toy.x[7] = std::nan("");
  EXPECT_EQ(field_of(toy.data(), options), "inputs of sample 3, column 1");
  toy.x[7] = 1e300;
  EXPECT_EQ(field_of(toy.data(), options), "inputs of sample 3, column 1");
  toy.x[7] = 0;
  for (const double fraction : {1.0, -0.1, 0.01}) {
    options.validation_fraction = fraction;
    EXPECT_EQ(field_of(toy.data(), options), "fit.validation_fraction");
  }
  options.validation_fraction = 0;
  std::vector<double> sigma(20, 1.0);
  data = toy.data();
  data.sigma = MatrixView<const double>::row_major(sigma.data(), 19, 1);
  EXPECT_EQ(field_of(data, options), "data.sigma");
  data.sigma.rows = 20;
  EXPECT_EQ(field_of(data, options), "");
  for (const double bad : {0.0, -1.0, static_cast<double>(NAN), static_cast<double>(INFINITY), 1e-320}) {
    sigma[6] = bad;
    EXPECT_EQ(field_of(data, options), "sigma of sample 6, column 0");
  }
  toy.y[4] = std::nan("");
  EXPECT_EQ(field_of(toy.data(), options), "targets of sample 4, column 0");
  toy.y[4] = 0;
  for (const int bad : {-1, 4097}) {
    options.threads = bad;
    EXPECT_EQ(field_of(toy.data(), options), "fit.threads");
  }
  options.threads = 0;  // all
  EXPECT_EQ(field_of(toy.data(), options), "");
  options.threads = 1;
  options.phases.clear();
  EXPECT_EQ(field_of(toy.data(), options), "fit.phases");
}

// A net whose outputs are scaled as its targets are, in units of any size: the same weights, to the bit.
TEST(Fit, does_not_depend_on_the_unit_of_the_targets) {
  const Toy toy(100);
  const auto trained = [&](double unit, FitOptions options, bool is_graph) {
    std::vector<double> y = toy.y;
    for (double& each : y) each *= unit;
    Mlp mlp = to_mlp(net({2, 8, 1}, ActivationKind::tanh));
    mlp.output_scaling = {{0.4 * unit}, {0.1 * unit}};
    Model model = is_graph ? with_branch() : Model::from_mlp(mlp);
    if (is_graph) {
      model.nodes.push_back({"rescaled", Rescale{{0.4 * unit}, {0.1 * unit}}, {model.outputs[0].value}});
      model.outputs[0].value = "rescaled";
    }
    RegressionData data = toy.data();
    data.targets = MatrixView<const double>::row_major(y.data(), y.size(), 1);
    const FitReport report = fit(model, data, options);
    return std::pair(graph::gather_weights(to_graph(model)), report.loss);
  };
  FitOptions options = adam(30, 0.02);
  options.batch = 32;
  options.phases.push_back({.iterations = 20, .rule = train::LbfgsOptions{}});
  for (const Residual residual : {Residual::squared, Residual::absolute}) {
    options.cost.residual = residual;
    for (const bool is_graph : {false, true}) {
      options.precision = Precision::f32;
      const auto [weights, loss] = trained(1, options, is_graph);
      for (const double unit : {0x1p-16, 0x1p-80, 0x1p64}) {
        const auto [others, other_loss] = trained(unit, options, is_graph);
        EXPECT_EQ(others, weights) << unit << ' ' << is_graph;
        EXPECT_EQ(other_loss, loss * (residual == Residual::absolute ? unit : unit * unit)) << unit;
      }
    }
  }
  options.residual_unit = 3;
  EXPECT_THROW(trained(1, options, false), Error);
}

}  // namespace
}  // namespace lockstep::nn
