// Derivatives as models: their numbers against those of NetDerivatives, in plans of the CPU; names; what is refused.
#include "lockstep/nn/derivative_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/nn/net_derivatives.h"
#include "lockstep/nn/net_plan.h"
#include "lockstep/nn/testing/graph_models.h"

namespace lockstep::nn {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kSamples = 35;  // a tile and three

// A stack with scaling on both sides, wide inside.
Model scaled_stack(const std::vector<std::size_t>& widths, Activation activation) {
  Mlp mlp = mlp::random_mlp(widths, activation, 4);
  for (std::size_t i = 0; i < widths.front(); ++i) {
    mlp.input_scaling.shift.push_back(0.25 * static_cast<double>(i));
    mlp.input_scaling.scale.push_back(0.7 + static_cast<double>(i));
  }
  for (std::size_t i = 0; i < widths.back(); ++i) {
    mlp.output_scaling.scale.push_back(1.3 + static_cast<double>(i));
    mlp.output_scaling.shift.push_back(-0.1);
  }
  return Model::from_mlp(mlp);
}

std::vector<Model> nets() {
  std::vector<Model> models = {scaled_stack({3, 100, 3}, {ActivationKind::tanh}),
                               scaled_stack({2, 33, 33, 7}, {ActivationKind::gelu}),
                               scaled_stack({9, 20, 2}, {ActivationKind::relu})};
  for (unsigned seed = 0; seed < 100; ++seed) models.push_back(testing::random_net(seed));
  return models;
}

// Numbers of ports, [sample][feature] each.
template <class T>
struct Arrays {
  explicit Arrays(const std::vector<Port>& ports) {
    for (const Port& port : ports) numbers.emplace_back(kSamples * port.features.size());
  }
  Arrays(const std::vector<Port>& ports, std::mt19937& random) : Arrays(ports) {
    std::normal_distribution<double> normal;
    for (std::vector<T>& port : numbers)
      for (T& number : port) number = static_cast<T>(normal(random));
  }
  std::vector<MatrixView<const T>> read() const {
    std::vector<MatrixView<const T>> views;
    for (const std::vector<T>& port : numbers)
      views.push_back(MatrixView<const T>::row_major(port.data(), kSamples, port.size() / kSamples));
    return views;
  }
  std::vector<MatrixView<T>> made() {
    std::vector<MatrixView<T>> views;
    for (std::vector<T>& port : numbers)
      views.push_back(MatrixView<T>::row_major(port.data(), kSamples, port.size() / kSamples));
    return views;
  }
  std::vector<std::vector<T>> numbers;
};

template <class T>
Arrays<T> evaluated(const Model& model, Arrays<T> in, const Arrays<T>& more, CpuTarget target = best_cpu_target()) {
  in.numbers.insert(in.numbers.end(), more.numbers.begin(), more.numbers.end());
  Arrays<T> out(model.outputs);
  NetPlan<T>::compile(model, target).evaluate(in.read(), out.made());
  return out;
}

template <class T>
void expect_same_bits(const std::vector<T>& found, const std::vector<T>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(T)), 0);
}

template <class T>
void expect_products(const Model& model) {
  std::mt19937 random(11);
  const auto products = NetDerivatives<T>::compile(model);
  const Arrays<T> x(model.inputs, random), x_dot(model.inputs, random), y_bar(model.outputs, random);
  Arrays<T> y(model.outputs), y_dot(model.outputs), x_bar(model.inputs);
  products.jvp(x.read(), x_dot.read(), y.made(), y_dot.made());
  products.vjp(x.read(), y_bar.read(), y.made(), x_bar.made());
  for (const CpuTarget target : available_cpu_targets()) {
    const Arrays<T> forward = evaluated<T>(derivative_model(model, Derivative::jvp), x, x_dot, target);
    const Arrays<T> reverse = evaluated<T>(derivative_model(model, Derivative::vjp), x, y_bar, target);
    for (std::size_t port = 0; port < model.outputs.size(); ++port) {
      expect_same_bits(forward.numbers[port], y.numbers[port]);
      expect_same_bits(forward.numbers[model.outputs.size() + port], y_dot.numbers[port]);
      expect_same_bits(reverse.numbers[port], y.numbers[port]);
    }
    for (std::size_t port = 0; port < model.inputs.size(); ++port)
      expect_same_bits(reverse.numbers[model.outputs.size() + port], x_bar.numbers[port]);
  }
}

TEST(DerivativeModel, has_the_bits_of_the_products) {
  for (const Model& model : nets()) {
    SCOPED_TRACE(model.digest());
    expect_products<float>(model);
    expect_products<double>(model);
  }
}

std::size_t features(const std::vector<Port>& ports) {
  std::size_t count = 0;
  for (const Port& port : ports) count += port.features.size();
  return count;
}

// Entry [row][column] for each sample is that of the product with a unit vector, from the side that is narrower.
template <class T>
void expect_jacobian(const Model& model) {
  std::mt19937 random(12);
  const auto products = NetDerivatives<T>::compile(model);
  const Arrays<T> x(model.inputs, random);
  const Arrays<T> made = evaluated<T>(derivative_model(model, Derivative::jacobian), x, Arrays<T>({}));
  const std::size_t rows = features(model.outputs), columns = features(model.inputs);
  const std::vector<T>& jacobian = made.numbers.back();
  ASSERT_EQ(jacobian.size(), kSamples * rows * columns);
  const bool forward = columns <= rows;
  const std::vector<Port>& given = forward ? model.inputs : model.outputs;
  const std::vector<Port>& taken = forward ? model.outputs : model.inputs;
  std::size_t of = 0;  // the column, or the row
  for (std::size_t port = 0; port < given.size(); ++port) {
    for (std::size_t feature = 0; feature < given[port].features.size(); ++feature, ++of) {
      Arrays<T> unit(given), product(taken);
      for (std::size_t s = 0; s < kSamples; ++s) unit.numbers[port][s * given[port].features.size() + feature] = 1;
      if (forward) {
        products.jvp(x.read(), unit.read(), {}, product.made());
      } else {
        products.vjp(x.read(), unit.read(), {}, product.made());
      }
      std::size_t along = 0;
      for (std::size_t other = 0; other < taken.size(); ++other) {
        const std::size_t width = taken[other].features.size();
        for (std::size_t i = 0; i < width; ++i, ++along) {
          for (std::size_t s = 0; s < kSamples; ++s) {
            const std::size_t row = forward ? along : of, column = forward ? of : along;
            const T found = jacobian[(s * rows + row) * columns + column];
            const T expected = product.numbers[other][s * width + i];
            ASSERT_TRUE(found == expected || (std::isnan(found) && std::isnan(expected)))
                << row << ", " << column << ": " << found << ", expected " << expected;
          }
        }
      }
    }
  }
}

TEST(DerivativeModel, of_the_jacobian_has_the_products_with_unit_vectors) {
  for (const Model& model : nets()) {
    SCOPED_TRACE(model.digest());
    expect_jacobian<float>(model);
    expect_jacobian<double>(model);
  }
}

TEST(DerivativeModel, keeps_names_units_and_ranges) {
  Model model = scaled_stack({2, 4, 1}, {ActivationKind::tanh});
  model.name = "closure";
  model.inputs[0].features = {{.name = "T", .unit = "K", .minimum = 0, .maximum = 30}, {.name = "S", .unit = "g/kg"}};
  model.outputs[0].features = {{.name = "flux", .unit = "W/m^2"}};
  const Model jvp = derivative_model(model, Derivative::jvp);
  EXPECT_EQ(jvp.name, "closure, jvp");
  ASSERT_EQ(jvp.inputs.size(), 2u);
  EXPECT_EQ(jvp.inputs[0].features[0].maximum, 30);
  EXPECT_EQ(jvp.inputs[1].name, "x_dot");
  EXPECT_EQ(jvp.inputs[1].features[1].name, "S_dot");
  EXPECT_EQ(jvp.inputs[1].features[1].unit, "g/kg");
  ASSERT_EQ(jvp.outputs.size(), 2u);
  EXPECT_EQ(jvp.outputs[1].name, "y_dot");
  const Model vjp = derivative_model(model, Derivative::vjp);
  EXPECT_EQ(vjp.inputs[1].name, "y_bar");
  EXPECT_EQ(vjp.outputs[1].features[0].name, "T_bar");
  EXPECT_EQ(vjp.outputs[1].features[0].unit, "");
  const Model jacobian = derivative_model(model, Derivative::jacobian);
  ASSERT_EQ(jacobian.outputs.size(), 2u);
  EXPECT_EQ(jacobian.outputs[1].name, "jacobian");
  EXPECT_EQ(jacobian.outputs[1].features[1].name, "flux_by_S");
}

TEST(DerivativeModel, refuses_what_has_none) {
  const Model net = testing::random_net(5);
  const auto made = [](const Model& model, Derivative derivative) {
    return message_of([&] { derivative_model(model, derivative); });
  };
  EXPECT_THAT(made(derivative_model(net, Derivative::jvp), Derivative::jvp), HasSubstr("a derivative already"));
  const Model wide = Model::from_mlp(mlp::random_mlp({200, 500, 200}, {ActivationKind::tanh}, 1));
  EXPECT_THAT(made(wide, Derivative::jacobian), HasSubstr("jacobian: found 200 products of 200000 weights"));
  graph::testing::Builder many;
  std::size_t last = many.input(1100);
  for (int i = 0; i < 1000; ++i) last = many.add(Unary{UnaryKind::exp}, {last});
  many.output(last);
  EXPECT_THAT(made(testing::named(many.graph), Derivative::jacobian), HasSubstr("1100 products of 1000 operations"));
  EXPECT_NO_THROW(derivative_model(wide, Derivative::jvp));
  Model clash = scaled_stack({2, 4, 1}, {ActivationKind::tanh});
  clash.outputs.push_back(clash.outputs[0]);
  clash.outputs[1].name = "y_dot";
  EXPECT_THAT(made(clash, Derivative::jvp), HasSubstr("y_dot"));
  EXPECT_EQ(parse_derivative("hessian"), std::nullopt);
}

}  // namespace
}  // namespace lockstep::nn
