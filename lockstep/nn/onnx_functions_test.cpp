// ONNX's functions of each element over their whole range, in both precisions: how near they come, and what they make
// of zeros, infinities and NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <tuple>
#include <vector>

#include "lockstep/nn/net_derivatives.h"
#include "lockstep/nn/onnx.h"
#include "lockstep/nn/testing/onnx_graph.h"

namespace lockstep::nn {
namespace {

using Graph = testing::OnnxGraph;
using testing::outputs;

Model of_each_element(const std::string& op) {
  Graph graph;
  graph.node(op, {"x"}, "y");
  return read_onnx(graph.save());
}

// Of an even number of x, two a sample.
template <class T>
MatrixView<const T> pairs(const std::vector<T>& x) {
  return MatrixView<const T>::row_major(x.data(), x.size() / 2, 2);
}

template <class T>
std::vector<T> values(const Model& model, const std::vector<T>& x) {
  std::vector<T> y(x.size());
  NetPlan<T>::compile(model).evaluate(pairs(x), MatrixView<T>::row_major(y.data(), y.size() / 2, 2));
  return y;
}

template <class T>
std::vector<T> derivatives(const Model& model, const std::vector<T>& x) {
  std::vector<T> y(x.size()), dy(x.size());
  const std::vector<T> one(x.size(), 1);
  NetDerivatives<T>::compile(model).jvp(pairs(x), pairs(one), MatrixView<T>::row_major(y.data(), y.size() / 2, 2),
                                        MatrixView<T>::row_major(dy.data(), dy.size() / 2, 2));
  return dy;
}

// In units of the last place of the exact value, which overflows where T does.
template <class T>
double ulps(T found, long double exact) {
  const T nearest = static_cast<T>(exact);
  if (std::isinf(nearest) || std::isinf(found)) return found == nearest ? 0 : std::numeric_limits<double>::infinity();
  const T size = std::max(std::fabs(nearest), std::numeric_limits<T>::min());
  const long double last_place = std::ldexp(1.0L, std::ilogb(size) - (std::numeric_limits<T>::digits - 1));
  return static_cast<double>(std::fabs(static_cast<long double>(found) - exact) / last_place);
}

// From the least subnormal to the last x before `end`, of both signs.
template <class T>
std::vector<T> over_the_range(T end) {
  std::vector<T> x;
  for (T a = std::numeric_limits<T>::denorm_min(); a < end; a *= T(1.003)) {
    if (a == a * T(1.003)) a = std::nextafter(a, end);
    x.push_back(a), x.push_back(-a);
  }
  x.push_back(std::nextafter(end, T(0))), x.push_back(-x.back());
  return x;
}

template <class T>
class OnnxFunctions : public ::testing::Test {
 protected:
  // The last x whose sinh and cosh are finite, or one before it.
  static constexpr T kLast = sizeof(T) == 4 ? T(89.41598L) : T(710.4758600739439L);
};
using Precisions = ::testing::Types<float, double>;
TYPED_TEST_SUITE(OnnxFunctions, Precisions);

TYPED_TEST(OnnxFunctions, hyperbolic_functions_are_within_a_few_ulp_wherever_they_are_finite) {
  using T = TypeParam;
  using Exact = long double (*)(long double);
  const Exact sine = [](long double x) { return std::sinh(x); }, cosine = [](long double x) { return std::cosh(x); };
  const std::vector<T> x = over_the_range(this->kLast);
  for (const auto& [op, function, derivative] : {std::tuple("Sinh", sine, cosine), std::tuple("Cosh", cosine, sine)}) {
    const Model model = of_each_element(op);
    const std::vector<T> y = values(model, x), dy = derivatives(model, x);
    double worst = 0, worst_derivative = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double exact_derivative = derivative(x[i]);
      worst = std::max(worst, ulps(y[i], function(x[i])));
      // d cosh cancels near 0: relative to 1 there
      const long double last_place = std::max(1.0L, std::fabs(exact_derivative)) * std::numeric_limits<T>::epsilon();
      const long double error = std::fabs(dy[i] - exact_derivative);
      worst_derivative = std::max(worst_derivative, static_cast<double>(error / last_place));
    }
    EXPECT_LE(worst, 5) << op;
    EXPECT_LE(worst_derivative, 4) << op;
  }
}

TYPED_TEST(OnnxFunctions, hyperbolic_functions_keep_zeros_infinities_and_nan) {
  using T = TypeParam;
  const T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> x{T(0), -T(0), infinity, -infinity, nan, nan};
  const std::vector<T> sine = values(of_each_element("Sinh"), x), cosine = values(of_each_element("Cosh"), x);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(sine[i], x[i]);
    EXPECT_EQ(std::signbit(sine[i]), std::signbit(x[i])) << x[i];
    EXPECT_EQ(cosine[i], i < 2 ? T(1) : infinity);
  }
  EXPECT_TRUE(std::isnan(sine[4]) && std::isnan(cosine[4]));
  const std::vector<T> zeros{T(0), -T(0)};
  EXPECT_EQ(derivatives(of_each_element("Sinh"), zeros), (std::vector<T>{1, 1}));
  EXPECT_EQ(derivatives(of_each_element("Cosh"), zeros), (std::vector<T>{0, 0}));
}

TYPED_TEST(OnnxFunctions, angles_are_within_a_few_ulp_and_their_derivatives_too) {
  using T = TypeParam;
  using Exact = long double (*)(long double);
  const Exact of_tangent = [](long double x) { return 1 / (1 + x * x); };
  const Exact of_sine = [](long double x) { return 1 / std::sqrt((1 - x) * (1 + x)); };
  const Exact of_cosine = [](long double x) { return -1 / std::sqrt((1 - x) * (1 + x)); };
  std::vector<T> up_to_1 = over_the_range(T(1));
  for (T gap = T(0.25); gap > std::numeric_limits<T>::epsilon(); gap /= 2) {
    up_to_1.push_back(1 - gap), up_to_1.push_back(gap - 1);
  }
  const std::vector<T> all = over_the_range(std::sqrt(std::numeric_limits<T>::max()));
  for (const auto& [op, function, derivative, x] :
       {std::tuple<std::string, Exact, Exact, std::vector<T>>(
            "Atan", [](long double v) { return std::atan(v); }, of_tangent, all),
        {"Asin", [](long double v) { return std::asin(v); }, of_sine, up_to_1},
        {"Acos", [](long double v) { return std::acos(v); }, of_cosine, up_to_1}}) {
    const Model model = of_each_element(op);
    const std::vector<T> y = values(model, x), dy = derivatives(model, x);
    double worst = 0, worst_derivative = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      worst = std::max(worst, ulps(y[i], function(x[i])));
      worst_derivative = std::max(worst_derivative, ulps(dy[i], derivative(x[i])));
    }
    EXPECT_LE(worst, op == "Atan" ? 2 : 3) << op;
    EXPECT_LE(worst_derivative, 5) << op;
  }
}

TYPED_TEST(OnnxFunctions, angles_keep_zeros_and_know_their_ends) {
  using T = TypeParam;
  const T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const T half_pi = std::numbers::pi_v<T> / 2;
  const std::vector<T> x{T(0), -T(0), 1, -1, T(1.5), -infinity, infinity, nan};
  const std::vector<T> tangent = values(of_each_element("Atan"), x), sine = values(of_each_element("Asin"), x),
                       cosine = values(of_each_element("Acos"), x);
  for (const std::vector<T>* of_zeros : {&tangent, &sine}) {
    for (const std::size_t i : {0, 1}) {
      EXPECT_EQ((*of_zeros)[i], 0);
      EXPECT_EQ(std::signbit((*of_zeros)[i]), i == 1);
    }
  }
  EXPECT_EQ(tangent[5], -half_pi);
  EXPECT_EQ(tangent[6], half_pi);
  EXPECT_LE(ulps(sine[2], half_pi), 1);
  EXPECT_EQ(sine[3], -sine[2]);
  EXPECT_LE(ulps(cosine[0], half_pi), 1);
  EXPECT_EQ(cosine[2], 0);
  EXPECT_EQ(cosine[3], 2 * half_pi);
  EXPECT_TRUE(std::isnan(tangent[7]));
  for (const std::size_t i : {4, 5, 6, 7}) EXPECT_TRUE(std::isnan(sine[i]) && std::isnan(cosine[i])) << x[i];
  EXPECT_EQ(derivatives(of_each_element("Asin"), std::vector<T>{1, -1}), (std::vector<T>{infinity, infinity}));
}

TYPED_TEST(OnnxFunctions, inverse_hyperbolic_functions_are_within_a_few_ulp_and_their_derivatives_too) {
  using T = TypeParam;
  using Exact = long double (*)(long double);
  const Exact of_sine = [](long double x) { return 1 / std::sqrt(1 + x * x); };
  const Exact of_cosine = [](long double x) { return 1 / (std::sqrt(x - 1) * std::sqrt(x + 1)); };
  const Exact of_tangent = [](long double x) { return 1 / ((1 - x) * (1 + x)); };
  const std::vector<T> all = over_the_range(std::numeric_limits<T>::max());
  std::vector<T> up_to_1 = over_the_range(T(1)), from_1;
  for (T gap = T(0.25); gap >= std::numeric_limits<T>::epsilon(); gap /= T(1.01)) {
    up_to_1.push_back(1 - gap), up_to_1.push_back(gap - 1), from_1.push_back(1 + gap);
  }
  for (const T x : all) {
    if (x > T(1.25)) from_1.push_back(x);
  }
  if (from_1.size() % 2 != 0) from_1.push_back(2);
  for (const auto& [op, function, derivative, x] :
       {std::tuple<std::string, Exact, Exact, std::vector<T>>(
            "Asinh", [](long double v) { return std::asinh(v); }, of_sine, all),
        {"Acosh", [](long double v) { return std::acosh(v); }, of_cosine, from_1},
        {"Atanh", [](long double v) { return std::atanh(v); }, of_tangent, up_to_1}}) {
    const Model model = of_each_element(op);
    const std::vector<T> y = values(model, x), dy = derivatives(model, x);
    double worst = 0, worst_derivative = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_FALSE(std::isnan(y[i]) || std::isnan(dy[i])) << op << " of " << x[i];
      worst = std::max(worst, ulps(y[i], function(x[i])));
      worst_derivative = std::max(worst_derivative, ulps(dy[i], derivative(x[i])));
    }
    EXPECT_LE(worst, 5) << op;
    EXPECT_LE(worst_derivative, 7) << op;
  }
}

TYPED_TEST(OnnxFunctions, inverse_hyperbolic_functions_keep_zeros_and_know_their_ends) {
  using T = TypeParam;
  const T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> x{T(0), -T(0), 1, -1, infinity, -infinity, T(-1.5), T(-1e9), nan, T(0.5)};
  const std::vector<T> sine = values(of_each_element("Asinh"), x), cosine = values(of_each_element("Acosh"), x),
                       tangent = values(of_each_element("Atanh"), x);
  for (const std::vector<T>* of_zeros : {&sine, &tangent}) {
    for (const std::size_t i : {0, 1}) {
      EXPECT_EQ((*of_zeros)[i], 0);
      EXPECT_EQ(std::signbit((*of_zeros)[i]), i == 1);
    }
  }
  EXPECT_EQ(sine[4], infinity);
  EXPECT_EQ(sine[5], -infinity);
  EXPECT_TRUE(std::isnan(sine[8]));
  EXPECT_EQ(cosine[2], 0);
  EXPECT_EQ(cosine[4], infinity);
  for (const std::size_t i : {0, 1, 3, 5, 6, 7, 8, 9}) EXPECT_TRUE(std::isnan(cosine[i])) << x[i];
  EXPECT_EQ(tangent[2], infinity);
  EXPECT_EQ(tangent[3], -infinity);
  for (const std::size_t i : {4, 5, 6, 7, 8}) EXPECT_TRUE(std::isnan(tangent[i])) << x[i];
  const std::vector<T> zeros{T(0), -T(0)};
  EXPECT_EQ(derivatives(of_each_element("Asinh"), zeros), (std::vector<T>{1, 1}));
  EXPECT_EQ(derivatives(of_each_element("Atanh"), zeros), (std::vector<T>{1, 1}));
}

// As torch.onnx spells torch.atan2.
TYPED_TEST(OnnxFunctions, the_angle_of_two_numbers_is_read_as_pytorch_writes_it) {
  using T = TypeParam;
  Graph graph;
  graph.tensor("pi", {}, {std::numbers::pi_v<float>}), graph.tensor("zero", {}, {0});
  graph.tensor("first", {1}, {0}), graph.tensor("second", {1}, {1});
  for (const std::string name : {"first", "second"}) {
    Graph::set(graph.node("Gather", {"x", name}, "x_" + name), "axis", std::int64_t{1});
  }
  graph.node("Div", {"x_first", "x_second"}, "slope"), graph.node("Atan", {"slope"}, "angle");
  graph.node("Greater", {"x_first", "zero"}, "above"), graph.node("Less", {"x_second", "zero"}, "left");
  graph.node("Add", {"angle", "pi"}, "more"), graph.node("Sub", {"angle", "pi"}, "less");
  graph.node("Where", {"above", "more", "less"}, "turned"), graph.node("Where", {"left", "turned", "angle"}, "one");
  Graph::set(graph.node("Concat", {"one", "x_first"}, "y"), "axis", std::int64_t{1});
  const std::vector<T> x{1, 2, 1, -2, -1, 2, -1, -2, T(0.25), T(1e-3)};
  const std::vector<T> y = values(read_onnx(graph.save()), x);
  for (std::size_t i = 0; i < x.size(); i += 2) {
    EXPECT_NEAR(y[i], std::atan2(x[i], x[i + 1]), 4e-7) << x[i] << ", " << x[i + 1];  // pi is a float32 in the file
  }
}

TYPED_TEST(OnnxFunctions, sign_of_nan_is_nan) {
  using T = TypeParam;
  const T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const T least = std::numeric_limits<T>::denorm_min();
  const std::vector<T> x{T(0), -T(0), least, -least, infinity, -infinity, T(-3), nan};
  const Model model = of_each_element("Sign");
  const std::vector<T> y = values(model, x), dy = derivatives(model, x);
  const std::vector<T> expected{0, 0, 1, -1, 1, -1, -1};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(y[i], expected[i]) << x[i];
    EXPECT_EQ(dy[i], T(0)) << x[i];
  }
  EXPECT_TRUE(std::isnan(y.back()));
}

TYPED_TEST(OnnxFunctions, whole_parts_are_those_of_c) {
  using T = TypeParam;
  using Exact = T (*)(T);
  std::vector<T> x = over_the_range(T(1e10));
  for (T half = -40.5; half < 40; half += T(0.5)) x.push_back(half), x.push_back(std::nextafter(half, T(0)));
  for (const auto& [op, function] : {std::tuple<std::string, Exact>("Floor", [](T v) { return std::floor(v); }),
                                     {"Ceil", [](T v) { return std::ceil(v); }},
                                     {"Round", [](T v) { return std::nearbyint(v); }}}) {
    const Model model = of_each_element(op);
    const std::vector<T> y = values(model, x), dy = derivatives(model, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(y[i], function(x[i])) << op << " of " << x[i];
      ASSERT_EQ(std::signbit(y[i]), std::signbit(function(x[i]))) << op << " of " << x[i];
      ASSERT_EQ(dy[i], 0);
    }
  }
}

TYPED_TEST(OnnxFunctions, mod_of_floats_is_cs_fmod) {
  using T = TypeParam;
  const std::vector<T> x = over_the_range(T(1e5));
  for (const float divisor : {0.75F, -3.0F, 1e-3F}) {
    for (const bool of_constant : {false, true}) {
      Graph graph;
      graph.tensor("c", {}, {divisor});
      auto* const node =
          graph.node("Mod", of_constant ? std::vector<std::string>{"c", "x"} : std::vector<std::string>{"x", "c"}, "y");
      Graph::set(node, "fmod", std::int64_t{1});
      const std::vector<T> y = values(read_onnx(graph.save()), x);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const T a = of_constant ? T(divisor) : x[i], b = of_constant ? x[i] : T(divisor);
        if (std::fabs(a / b) >= 1 / std::numeric_limits<T>::epsilon()) continue;
        ASSERT_EQ(y[i], std::fmod(a, b)) << a << " and " << b;
      }
    }
  }
}

TEST(Onnx, mod_of_integers_has_the_sign_of_the_divisor_and_of_floats_wants_fmod) {
  for (const bool integers : {true, false}) {
    Graph graph;
    graph.tensor("a", {3}, {-7, 7, 7}), graph.tensor("b", {3}, {3, -3, 4});
    const auto type = std::int64_t{integers ? onnx::TensorProto::INT64 : onnx::TensorProto::FLOAT};
    for (const std::string name : {"a", "b"}) Graph::set(graph.node("Cast", {name}, name + "_cast"), "to", type);
    auto* const node = graph.node("Mod", {"a_cast", "b_cast"}, "c");
    if (!integers) Graph::set(node, "fmod", std::int64_t{1});
    Graph::set(graph.node("Cast", {"c"}, "w"), "to", std::int64_t{onnx::TensorProto::FLOAT});
    graph.tensor("zero", {2, 3}, {0, 0, 0, 0, 0, 0});
    Graph::set(graph.node("Gemm", {"x", "zero", "w"}, "y"), "transB", std::int64_t{0});
    EXPECT_EQ(outputs(read_onnx(graph.save()), {1, 0}),
              integers ? (std::vector<double>{2, -2, 3}) : (std::vector<double>{-1, 1, 3}));
  }
  Graph graph;
  graph.tensor("b", {}, {2});
  graph.node("Mod", {"x", "b"}, "y");
  const std::string message = testing::refusal_of(graph);
  EXPECT_NE(message.find("fmod = 0 of floats, expected fmod = 1"), std::string::npos) << message;
  EXPECT_NE(message.find("write x - y * Floor(x / y)"), std::string::npos) << message;
}

// The standard's words: the reduction does nothing, all else that the operator does is done.
TEST(Onnx, reductions_over_no_axes_take_each_number_for_itself) {
  const std::vector<std::pair<std::string, std::vector<double>>> expected{
      {"ReduceSum", {1.5, -2}},       {"ReduceMean", {1.5, -2}},
      {"ReduceMin", {1.5, -2}},       {"ReduceMax", {1.5, -2}},
      {"ReduceProd", {1.5, -2}},      {"ReduceLogSumExp", {1.5, -2}},
      {"ReduceL1", {1.5, 2}},         {"ReduceL2", {1.5, 2}},
      {"ReduceSumSquare", {2.25, 4}}, {"ReduceLogSum", {std::log(1.5), 0}}};
  for (const auto& [op, y] : expected) {
    for (const std::string kind : {"of samples", "of constants", "of three dimensions", "with an empty list"}) {
      Graph graph;
      graph.proto().mutable_opset_import(0)->set_version(18);
      graph.tensor("c", {2}, {1.5F, -2}), graph.tensor("none", {0}, {});
      const std::string from = kind == "of constants" ? "c" : kind == "of three dimensions" ? "wide" : "x";
      if (from == "wide") testing::shaped(graph, "Unsqueeze", "x", {2}, "wide");
      auto* const node = graph.node(op, {from}, "r");
      if (kind == "with an empty list") node->add_input("none");
      Graph::set(node, "noop_with_empty_axes", std::int64_t{1});
      if (from == "wide") {
        testing::shaped(graph, "Squeeze", "r", {2}, "y");
      } else if (from == "c") {
        graph.node("Mul", {"x", "r"}, "y");
      } else {
        graph.node("Identity", {"r"}, "y");
      }
      if (from == "c" && op == "ReduceLogSum") continue;  // nan, which is no constant
      const std::vector<double> x = from == "c" ? std::vector<double>{1, 1} : std::vector<double>{1.5, -2};
      const std::vector<double> found = outputs(read_onnx(graph.save()), x);
      EXPECT_DOUBLE_EQ(found[0], y[0]) << op << ' ' << kind;
      if (op != "ReduceLogSum") {
        EXPECT_DOUBLE_EQ(found[1], y[1]) << op << ' ' << kind;
      }
    }
  }
}

// ---- infinities: bounds that are none, and masks

TEST(OnnxInfinities, bounds_and_masks_do_what_the_standard_says) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto made = [](const std::function<void(Graph&)>& build, const std::vector<double>& x) {
    Graph graph;
    graph.tensor("low", {}, {-kInfinity}), graph.tensor("high", {}, {kInfinity}), graph.tensor("half", {}, {0.5F});
    graph.tensor("mask", {2}, {0, -kInfinity}), graph.tensor("first", {2}, {1, 0});
    build(graph);
    return outputs(read_onnx(graph.save()), x);
  };
  using List = std::vector<double>;
  EXPECT_EQ(made([](Graph& g) { g.node("Clip", {"x", "low", "half"}, "y"); }, {-7, 7}), (List{-7, 0.5}));
  EXPECT_EQ(made([](Graph& g) { g.node("Clip", {"x", "low", "high"}, "y"); }, {-7, 7}), (List{-7, 7}));
  EXPECT_EQ(made([](Graph& g) { g.node("Max", {"x", "low"}, "y"); }, {-7, 7}), (List{-7, 7}));
  EXPECT_EQ(made([](Graph& g) { g.node("Min", {"high", "x"}, "y"); }, {-7, 7}), (List{-7, 7}));
  EXPECT_EQ(made(
                [](Graph& g) {
                  g.node("Add", {"x", "mask"}, "s"), g.node("Softmax", {"s"}, "y");
                },
                {3, 4}),
            (List{1, 0}));
  EXPECT_EQ(made(
                [](Graph& g) {
                  g.node("Where", {"first", "x", "low"}, "s"), g.node("Softmax", {"s"}, "y");
                },
                {3, 4}),
            (List{1, 0}));
  const auto layer = [](Graph& g) {  // the mask is no bias, and no part of a scaling
    g.tensor("w", {2, 2}, {1, 2, 3, 4});
    g.node("MatMul", {"x", "w"}, "p"), g.node("Mul", {"p", "half"}, "q"), g.node("Add", {"q", "mask"}, "s");
    g.node("Softmax", {"s"}, "y");
  };
  EXPECT_EQ(made(layer, {3, 4}), (List{1, 0}));
  const auto padded = [](Graph& g) {
    testing::shaped(g, "Pad", "x", {0, 0, 0, 1}, "wide")->add_input("low");
    auto* axes = g.node("ReduceMax", {"wide"}, "y")->add_attribute();
    axes->set_name("axes"), axes->add_ints(1);
  };
  EXPECT_EQ(made(padded, {-3, -4}), (List{-3}));
}

TEST(OnnxInfinities, bounds_that_leave_nothing_are_refused) {
  Graph graph;
  graph.tensor("high", {}, {std::numeric_limits<float>::infinity()});
  graph.node("Clip", {"x", "high"}, "y");
  EXPECT_NE(testing::refusal_of(graph).find("bounds that no finite number lies in"), std::string::npos);
}

TEST(OnnxInfinities, numbers_computed_with_them_are_kept_unless_they_are_nan) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto build = [](const std::string& factor) {
    Graph graph;
    graph.tensor("low", {}, {-kInfinity}), graph.tensor("zero", {2}, {0, 1}), graph.tensor("two", {2}, {2, 1});
    graph.node("Mul", {"low", factor}, "c");
    graph.node("Max", {"x", "c"}, "y");
    return graph;
  };
  EXPECT_EQ(outputs(read_onnx(build("two").save()), {-3, 4}), (std::vector<double>{-3, 4}));
  EXPECT_NE(
      testing::refusal_of(build("zero")).find("node \"/c\" (Mul, opset 17): found constants that are, or give, nan"),
      std::string::npos);
}

TEST(OnnxInfinities, weights_of_layers_may_not_be_infinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Graph graph;
  graph.tensor("w", {2, 1}, {1, kInfinity});
  graph.node("MatMul", {"x", "w"}, "y");
  EXPECT_EQ(testing::refusal_of(graph), (testing::own_folder() / "graph.onnx").string() +
                                            ": node \"/y\" (MatMul, opset 17): \"w\": found infinity, expected "
                                            "finite numbers; train or export the net again");
}

}  // namespace
}  // namespace lockstep::nn
