// Right-hand sides written as text.
#include "lockstep/nn/equations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/core/testing/message_of.h"
#include "lockstep/nn/net_derivatives.h"
#include "lockstep/nn/net_plan.h"

namespace lockstep::nn {
namespace {

// The value of one expression of x, y and the parameter k.
double value_of(const std::string& text, double x = 0.5, double y = -2, double k = 3, double t = 0.25) {
  Equations system;
  system.equations = {{"x", text, ""}, {"y", "x", ""}};
  system.parameters = {{"k", {}}};
  const Model model = equations(system);
  const auto plan = NetPlan<double>::compile(model);
  const std::vector<double> u{x, y};
  std::vector<double> du(2);
  std::vector<MatrixView<const double>> in;
  for (const Port& port : model.inputs) {
    const double* from = port.name == "u" ? u.data() : port.name == "p" ? &k : &t;
    in.push_back(MatrixView<const double>::row_major(from, 1, port.features.size()));
  }
  const std::vector<MatrixView<double>> out{MatrixView<double>::row_major(du.data(), 1, 2)};
  plan.evaluate(in, out);
  return du[0];
}

ExpressionError error_of(const std::string& text) {
  try {
    value_of(text);
  } catch (const ExpressionError& error) {
    return error;
  }
  ADD_FAILURE() << "no error in " << text;
  return {{}, "", 0};
}

TEST(Equations, follow_the_precedence_of_mathematics) {
  EXPECT_EQ(value_of("1 + 2 * x"), 2);
  EXPECT_EQ(value_of("-x^2"), -0.25);
  EXPECT_EQ(value_of("2^x^2"), value_of("2^(x^2)"));
  EXPECT_EQ(value_of("2^-x"), value_of("2^(-x)"));
  EXPECT_EQ(value_of("x - y - k"), -0.5);
  EXPECT_EQ(value_of("k / x / y"), -3);
  EXPECT_EQ(value_of("-y * k"), 6);
  EXPECT_EQ(value_of("y % k"), 1);
  EXPECT_EQ(value_of("-k % y"), -1);
  EXPECT_EQ(value_of("10 * x % k * 2"), 4);
  EXPECT_EQ(value_of("x + 7 % k"), 1.5);
  EXPECT_EQ(value_of("x + 1 < k * 2"), 1);
  EXPECT_EQ(value_of("x >= k"), 0);
}

TEST(Equations, small_whole_powers_are_products_of_numbers_as_well) {
  for (int i = 1; i <= 100; ++i) {
    const double x = i / 7.0;
    std::ostringstream number;
    number << std::setprecision(17) << x;
    for (const char* power : {"^2", "^3", "^4"}) {
      EXPECT_EQ(value_of(number.str() + power), value_of(std::string("x") + power, x)) << x << power;
    }
  }
}

TEST(Equations, call_the_functions_that_nets_are_made_of) {
  for (const auto& [text, expected] :
       std::vector<std::pair<std::string, double>>{{"exp(x)", std::exp(0.5)},
                                                   {"log(x)", std::log(0.5)},
                                                   {"sqrt(x)", std::sqrt(0.5)},
                                                   {"abs(y)", 2},
                                                   {"sin(x)", std::sin(0.5)},
                                                   {"cos(x)", std::cos(0.5)},
                                                   {"tan(x)", std::tan(0.5)},
                                                   {"asin(x)", std::asin(0.5)},
                                                   {"acos(x)", std::acos(0.5)},
                                                   {"asinh(x)", std::asinh(0.5)},
                                                   {"acosh(x + 1)", std::acosh(1.5)},
                                                   {"atanh(x)", std::atanh(0.5)},
                                                   {"atan(y)", std::atan(-2.0)},
                                                   {"atan2(x, y)", std::atan2(0.5, -2.0)},
                                                   {"atan2(1, -2)", std::atan2(1.0, -2.0)},
                                                   {"tanh(x)", std::tanh(0.5)},
                                                   {"erf(x)", std::erf(0.5)},
                                                   {"expm1(x)", std::expm1(0.5)},
                                                   {"expm1(y)", std::expm1(-2.0)},
                                                   {"log1p(x)", std::log1p(0.5)},
                                                   {"log2(k)", std::log2(3.0)},
                                                   {"log10(k)", std::log10(3.0)},
                                                   {"sign(y) + sign(0) + trunc(-1.5) + trunc(1.5)", -1},
                                                   {"sign(x) - 2 * sign(-x)", 3},
                                                   {"min(x, y)", -2},
                                                   {"max(x, y)", 0.5},
                                                   {"max(x, y, k, 1)", 3},
                                                   {"min(x, y, k, 1, -3)", -3},
                                                   {"k^x", std::sqrt(3.0)},
                                                   {"pow(k, y)", 1.0 / 9},
                                                   {"y^3", -8},
                                                   {"y^4", 16},
                                                   {"square(y)", 4},
                                                   {"relu(y)", 0},
                                                   {"clamp(y, -1, 1)", -1},
                                                   {"clamp(x, y, -1)", -1},
                                                   {"if(x < y, 1, k)", 3},
                                                   {"if(1 < 2, x, y)", 0.5},
                                                   {"softplus(x)", std::log1p(std::exp(0.5))},
                                                   {"sigmoid(x)", 1 / (1 + std::exp(-0.5))}}) {
    EXPECT_NEAR(value_of(text), expected, 4e-16 * std::abs(expected)) << text;
  }
}

TEST(Equations, join_comparisons_by_words) {
  for (const auto& [text, expected] : std::vector<std::pair<std::string, double>>{{"x > 0 and y < 0", 1},
                                                                                  {"x > 0 and y > 0", 0},
                                                                                  {"x > 0 or y > 0", 1},
                                                                                  {"x < 0 or y > 0", 0},
                                                                                  {"not x > 0", 0},
                                                                                  {"not x < 0 and not y > 0", 1},
                                                                                  {"not (x < 0 or y < 0)", 0},
                                                                                  {"1 == 1 or 1 == 1 and 1 == 2", 1},
                                                                                  {"x != 0.5", 0},
                                                                                  {"x != y", 1},
                                                                                  {"3 + (x + 1 > y and k)", 4},
                                                                                  {"k or y", 1},
                                                                                  {"k and y and 0 * x", 0},
                                                                                  {"not y", 0},
                                                                                  {"not not k", 1},
                                                                                  {"2 and not 0", 1},
                                                                                  {"if(x > 0 and y < 0, k, x)", 3}}) {
    EXPECT_EQ(value_of(text), expected) << text;
  }
  const double nan = std::nan("");
  EXPECT_EQ(value_of("x != y", nan), 1);  // as IEEE has it
  EXPECT_EQ(value_of("x < y or x > y or x == y", nan), 0);
  Equations system;  // names of old
  system.equations = {{"and", "not * or - (and > 1 and not > 1)", ""}};
  system.parameters = {{"not", {}}, {"or", {}}};
  EXPECT_EQ(equations(system).inputs.size(), 2u);
}

TEST(Equations, know_expm1_and_log1p_without_cancellation_or_early_overflow) {
  for (const double x : {1e-300, 1e-9, -1e-9, 0.3, -0.3, 709.7, -800.0}) {
    EXPECT_NEAR(value_of("expm1(x)", x), std::expm1(x), 1.5e-15 * std::abs(std::expm1(x))) << x;
  }
  for (const double x : {1e-300, 1e-9, -1e-9, -0.999, 1e300}) {
    EXPECT_NEAR(value_of("log1p(x)", x), std::log1p(x), 1.5e-15 * std::abs(std::log1p(x))) << x;
  }
}

TEST(Equations, round_down_up_and_to_the_nearest_and_take_remainders) {
  const auto value = [](const std::string& text, double x) { return value_of(text, x); };
  EXPECT_EQ(value("floor(x)", -1.5), -2);
  EXPECT_EQ(value("ceil(x)", -1.5), -1);
  EXPECT_EQ(value("ceil(x)", 1.25), 2);
  EXPECT_TRUE(std::signbit(value("ceil(x)", -0.5)));
  EXPECT_FALSE(std::signbit(value("ceil(x)", 0)));
  EXPECT_EQ(value("round(x)", 2.5), 2);  // halves to even
  EXPECT_EQ(value("round(x)", 3.5), 4);
  EXPECT_EQ(value("round(x)", -0.51), -1);
  EXPECT_EQ(value("mod(x, 24)", -1), 23);
  EXPECT_EQ(value("mod(x, -24)", 1), -23);
  EXPECT_EQ(value("x % 0.25", 1), 0);
  EXPECT_EQ(value("floor(7 / 2) + ceil(2.5) + round(2.5) + 7 % -4", 0), 3 + 3 + 2 - 1);  // of numbers alone
  EXPECT_EQ(value_of("if(t % 24 < 2, 1, 0)", 0, 0, 3, 49), 1);
  EXPECT_EQ(value_of("if(t % 24 < 2, 1, 0)", 0, 0, 3, 50), 0);
}

TEST(Equations, know_sinh_and_cosh_without_cancellation_or_early_overflow) {
  for (const double x : {1e-300, 1e-7, -1e-7, 0.5, -3.0, 710.4}) {
    EXPECT_NEAR(value_of("sinh(x)", x), std::sinh(x), 1.5e-15 * std::abs(std::sinh(x))) << x;
    EXPECT_NEAR(value_of("cosh(x)", x), std::cosh(x), 1.5e-15 * std::cosh(x)) << x;
  }
  EXPECT_NEAR(value_of("sinh(2)"), std::sinh(2.0), 1.5e-15 * std::sinh(2.0));  // on reading
}

TEST(Equations, know_the_angles_of_sines_and_cosines_up_to_1_and_none_beyond) {
  for (const double x : {0.0, 1e-300, 1e-7, 0.3, 0.5, 0.999, 1 - 1e-15, 1.0}) {
    for (const double signed_x : {x, -x}) {
      EXPECT_NEAR(value_of("asin(x)", signed_x), std::asin(signed_x), 4e-16 * std::abs(std::asin(signed_x))) << x;
      EXPECT_NEAR(value_of("acos(x)", signed_x), std::acos(signed_x), 5e-16 * std::acos(signed_x)) << x;
    }
  }
  for (const double x : {1 + 1e-15, -2.0, HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    EXPECT_TRUE(std::isnan(value_of("asin(x)", x))) << x;
    EXPECT_TRUE(std::isnan(value_of("acos(x)", x))) << x;
  }
}

TEST(Equations, know_the_angle_of_two_numbers_in_the_quadrants_of_c) {
  for (const double x : {0.0, 1e-300, 1e-3, 0.9, 1.0, 1.1, 7.0, 1e300}) {
    for (const double y : {0.0, 1e-300, 1e-3, 0.9, 1.0, 1.1, 7.0, 1e300}) {
      for (const auto& [a, b] : {std::pair{y, x}, {y, -x}, {-y, x}, {-y, -x}}) {
        // a zero counts as +0
        const double expected = std::atan2(a == 0 ? 0.0 : a, b == 0 ? 0.0 : b);
        EXPECT_NEAR(value_of("atan2(y, x)", b, a), expected, 6e-16 * std::abs(expected)) << a << ", " << b;
      }
    }
  }
  EXPECT_EQ(value_of("atan2(y, x)", 0, 0), 0);
  EXPECT_EQ(value_of("atan2(0, 0)"), 0);  // on reading
  EXPECT_EQ(value_of("atan2(y, x)", 2, HUGE_VAL), std::atan2(HUGE_VAL, 2));
  EXPECT_EQ(value_of("atan2(y, x)", -HUGE_VAL, 2), std::atan2(2, -HUGE_VAL));
  EXPECT_TRUE(std::isnan(value_of("atan2(y, x)", std::nan(""), 1)));
  EXPECT_TRUE(std::isnan(value_of("atan2(y, x)", 1, std::nan(""))));
}

// d atan2(y, x) = (x dy - y dx) / (x^2 + y^2), on the axes and where the quotient turns over too.
TEST(Equations, give_the_angle_of_two_numbers_a_derivative_in_every_direction) {
  Equations system;
  system.equations = {{"x", "atan2(y, x)", ""}, {"y", "0", ""}};
  const auto plan = NetDerivatives<double>::compile(equations(system));
  const auto in = [](const std::vector<double>& row) { return MatrixView<const double>::row_major(row.data(), 1, 2); };
  const auto out = [](std::vector<double>& row) { return MatrixView<double>::row_major(row.data(), 1, 2); };
  for (const auto& [x, y] : std::vector<std::pair<double, double>>{{1, 0},
                                                                   {0, 1},
                                                                   {-1, 0},
                                                                   {0, -1},
                                                                   {1, 1},
                                                                   {-1, 1},
                                                                   {-2, -2},
                                                                   {3, -3},
                                                                   {0.5, 7},
                                                                   {-1e-200, 1e-3},
                                                                   {4, -0.25}}) {
    const std::vector<double> u{x, y}, bar{1, 0};
    std::vector<double> du(2), gradient(2);
    plan.vjp(in(u), in(bar), out(du), out(gradient));
    const double square = x * x + y * y;
    EXPECT_NEAR(gradient[0], -y / square, 1e-15 * std::abs(y / square)) << x << ", " << y;
    EXPECT_NEAR(gradient[1], x / square, 1e-15 * std::abs(x / square)) << x << ", " << y;
    for (const auto& [a, b] : {std::pair{1.0, 0.0}, {0.0, 1.0}}) {
      const std::vector<double> v{a, b};
      std::vector<double> along(2);
      plan.jvp(in(u), in(v), out(du), out(along));
      EXPECT_NEAR(along[0], (x * b - y * a) / square, 1e-15 * std::abs((x * b - y * a) / square)) << x << ", " << y;
    }
  }
}

TEST(Equations, know_time_pi_and_e) {
  EXPECT_EQ(value_of("t"), 0.25);
  EXPECT_EQ(value_of("2 * pi * t"), 2 * 3.141592653589793 * 0.25);
  EXPECT_EQ(value_of("e"), 2.718281828459045);
}

TEST(Equations, evaluate_numbers_once_and_all_else_as_written) {
  EXPECT_EQ(value_of("0.1 + 0.2 + x"), (0.1 + 0.2) + 0.5);
  EXPECT_EQ(value_of("x + 0.1 + 0.2"), (0.5 + 0.1) + 0.2);
  EXPECT_EQ(constant_expression({"beta", "8/3", ""}), 8.0 / 3);
  Equations system;
  system.equations = {{"x", "0.1 + 0.2 + exp(1) + x", ""}};
  EXPECT_EQ(equations(system).nodes.size(), 2u);  // a constant and one sum
}

TEST(Equations, compute_once_what_is_written_twice) {
  Equations system;
  system.equations = {{"x", "(x - y)^2 + r", ""}, {"y", "(x - y)^2 - r", ""}};
  system.definitions = {{"r", "2 * s", ""}, {"s", "x - y", ""}};
  // Two columns, their difference, its square, a constant, r, a sum, a difference, and both together.
  EXPECT_EQ(equations(system).nodes.size(), 9u);
}

Model closure() {
  Mlp mlp;
  mlp.layers = {{2, 2, {1, 0, 0, 2}, {0.5, 0}, {ActivationKind::identity}}};
  Model model = Model::from_mlp(mlp);
  model.outputs[0].features[0].name = "heat";
  return model;
}

Model with_net(const std::string& text) {
  Equations system;
  system.equations = {{"x", text, ""}, {"y", "x", ""}};
  system.nets.push_back({"closure", closure()});
  return equations(system);
}

double first_of(const Model& model, double x, double y) {
  const std::vector<double> u{x, y};
  std::vector<double> du(2);
  NetPlan<double>::compile(model).evaluate(std::vector{MatrixView<const double>::row_major(u.data(), 1, 2)},
                                           std::vector{MatrixView<double>::row_major(du.data(), 1, 2)});
  return du[0];
}

TEST(Equations, call_nets_and_take_outputs_by_name_or_index) {
  EXPECT_EQ(first_of(with_net("closure(x, y).heat"), 3, 5), 3.5);
  EXPECT_EQ(first_of(with_net("2 * closure(y, x * 2)[1]"), 3, 5), 24);
  EXPECT_EQ(first_of(with_net("closure(1, 2)[0] + x"), 3, 5), 4.5);
  EXPECT_EQ(first_of(with_net("closure(x, y)[0] + closure(x, y)[1] + closure(y, x)[0]"), 3, 5), 3.5 + 10 + 5.5);
}

TEST(Equations, evaluate_a_net_once_for_each_set_of_inputs) {
  const auto layers = [](const Model& model) {
    return std::ranges::count_if(model.nodes, [](const Node& n) { return std::holds_alternative<Dense>(n.operation); });
  };
  EXPECT_EQ(layers(with_net("closure(x, y)[0] * closure(x, y)[1]")), 1);
  EXPECT_EQ(layers(with_net("closure(x, y)[0] * closure(y, x)[1]")), 2);
}

TEST(Equations, several_expressions_over_the_names_make_one_model) {
  Equations system;
  system.equations = {{"x", "", ""}, {"v", "", ""}};
  system.definitions = {{"speed", "abs(v)", ""}};
  system.parameters = {{"bounce", {}}};
  const Model model = expressions(
      std::vector<Equation>{{"x", "0", ""}, {"v", "bounce * speed", ""}, {"last", "t", ""}, {"below", "x < 0", ""}},
      system);
  ASSERT_EQ(model.inputs.size(), 3u);
  EXPECT_EQ(model.inputs[1].name, "p");
  EXPECT_EQ(model.outputs[0].features.size(), 4u);
  const std::vector<double> u{-1, -3}, p{0.5}, t{7};
  std::vector<double> values(4);
  const auto row = [](const std::vector<double>& of) {
    return MatrixView<const double>::row_major(of.data(), 1, of.size());
  };
  NetPlan<double>::compile(model).evaluate(std::vector{row(u), row(p), row(t)},
                                           std::vector{MatrixView<double>::row_major(values.data(), 1, 4)});
  EXPECT_THAT(values, ::testing::ElementsAre(0, 1.5, 7, 1));
}

TEST(Equations, keep_the_defaults_of_their_parameters) {
  Equations system;
  system.equations = {{"x", "a * x + b", ""}};
  system.parameters = {{"a", 8.0 / 3}, {"b", {}}};
  const auto defaults = parameter_defaults(equations(system));
  ASSERT_EQ(defaults.size(), 2u);
  EXPECT_EQ(defaults[0], 8.0 / 3);
  EXPECT_FALSE(defaults[1].has_value());
}

TEST(Equations, say_where_a_text_goes_wrong) {
  const ExpressionError error = error_of("x + 2 * yy");
  EXPECT_EQ(error.excerpt(), "x + 2 * yy\n        ^");
  EXPECT_NE(std::string(error.what()).find("column 9: found \"yy\""), std::string::npos) << error.what();
  EXPECT_EQ(error_of("\xcf\x83 + x").excerpt(), "\xcf\x83 + x\n^");
  EXPECT_EQ(error_of("x * \xcf\x83").excerpt(), "x * \xcf\x83\n    ^");
  EXPECT_EQ(error_of("x +\n 2 y").excerpt(), " 2 y\n   ^");
  std::string sum;
  for (int i = 0; i < 100; ++i) sum += "x + ";
  EXPECT_EQ(error_of(sum + "yy + " + sum).excerpt(),
            sum.substr(0, 80) + "yy + " + sum.substr(0, 75) + '\n' + std::string(80, ' ') + '^');
  try {
    constant_expression({"beta", "sqrt(2) * t", ""});
    ADD_FAILURE() << "time is no constant";
  } catch (const ExpressionError& of_time) {
    EXPECT_EQ(of_time.excerpt(), "sqrt(2) * t\n          ^");
  }
}

TEST(Equations, refuse_what_is_no_expression_and_say_what_to_write) {
  for (const auto& [text, remedy] :
       std::vector<std::pair<std::string, std::string>>{{"", "a number, a name"},
                                                        {"x +", "a number, a name"},
                                                        {"(x", "\")\""},
                                                        {"x)", "an operator, or the end"},
                                                        {"2x", "write 2 * ..."},
                                                        {"x y", "write * for products"},
                                                        {"x < 1 && y < 1", "write a and b"},
                                                        {"x < 1 || y < 1", "write a or b"},
                                                        {"x < 1 and", "a number, a name"},
                                                        {"and x", "one of x, y, k"},
                                                        {"|x|", "write abs(x)"},
                                                        {"!x", "write not c"},
                                                        {"x > 0 ? 1 : 2", "write if(c, a, b)"},
                                                        {"x ** 2", "x^2"},
                                                        {"x = 2", "write == to compare"},
                                                        {"1 < x < 2", "write a < b and b < c"},
                                                        {"x(y + 1)", "x * (...)"},
                                                        {"\u2212x", "write - for \u2212"},
                                                        {"x \u2212 1", "write - for \u2212"},
                                                        {"x\u00b7y", "write * for \u00b7"},
                                                        {"x\u00b2", "write ^2 for \u00b2"},
                                                        {"\u03c0 * x", "write pi for \u03c0"},
                                                        {"x \u2264 y", "write <= for \u2264"},
                                                        {"x\u2260y", "write a != b for a \u2260 b"},
                                                        {"x <> y", "write a != b for a <> b"},
                                                        {"x // y", "write floor(a / b) for a // b"},
                                                        {"2 * \u0445", "it has the character U+0445"},
                                                        {"x\u200b + 1", "it has the character U+200B"},
                                                        {"x\u00a0+ 1", "it has the character U+00A0"},
                                                        {"coss(x)", "did you mean \"cos\"?"},
                                                        {"ln(x)", "write log(x), the natural logarithm"},
                                                        {"sgn(x)", "write sign(x)"},
                                                        {"fmod(x, y)", "write mod(x, y), which has the sign of y"},
                                                        {"fix(x)", "write trunc(x)"},
                                                        {"x % 0 % 2 + 5 % 0", "a finite number"},
                                                        {"sin", "call it"},
                                                        {"sin(x, y)", "expected 1"},
                                                        {"x $ y", "an operator"},
                                                        {"1 / 0", "a finite number"},
                                                        {"1e999", "found \"1e999\", expected a number that float64"},
                                                        {"arctan(x)", "write atan(x)"},
                                                        {"arctan2(x, y)", "write atan2(y, x)"},
                                                        {"atan(x, y)", "atan of 2 arguments, expected 1"},
                                                        {"atan2(x)", "atan2 of 1 argument, expected 2"},
                                                        {"max(x)", "max of 1 argument, expected 2 or more"},
                                                        {"arcsinh(x)", "write asinh(x)"},
                                                        {"clamp(x, 2, 1)", "the lower one first"},
                                                        {std::string(300, '('), "nesting"},
                                                        {std::string(300, '-') + "x", "nesting"},
                                                        {std::string(9000, '1'), "at most 8192"}}) {
    EXPECT_NE(std::string(error_of(text).what()).find(remedy), std::string::npos)
        << text << ": " << error_of(text).what();
  }
}

std::string net_error(const std::string& text) {
  try {
    with_net(text);
  } catch (const ExpressionError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Equations, tell_letters_apart_that_look_the_same) {
  const auto message = [](const std::string& parameter, const std::string& text) {
    Equations system;
    system.parameters = {{parameter, 2.0}};
    system.equations = {{"x", text, ""}};
    try {
      equations(system);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const auto found = [](const std::string& text, const char* part) { return text.find(part) != text.npos; };
  const std::string micro = "k_\u00b5", mu = "k_\u03bc";
  EXPECT_TRUE(found(message(micro, "-" + mu + " * x"), "it has the character U+03BC where the known name has U+00B5"));
  EXPECT_TRUE(found(message(mu, "-" + micro + " * x"), "it has the character U+00B5 where the known name has U+03BC"));
  EXPECT_TRUE(found(message("A", "\u0391 * x"), "it has the character U+0391 where the known name has U+0041"));
  EXPECT_EQ(message(micro, "-" + micro + " * x"), "no error");
  EXPECT_FALSE(found(message("l", "\u03bb * x"), "looks the same"));
}

TEST(Equations, refuse_calls_that_do_not_fit_the_net) {
  EXPECT_NE(net_error("closure(x)").find("closure of 1 argument, expected 2"), std::string::npos);
  EXPECT_NE(net_error("closure(x, y)").find("write closure(...)[0]"), std::string::npos);
  EXPECT_NE(net_error("closure(x, y)[2]").find("from 0 to 1"), std::string::npos);
  EXPECT_NE(net_error("closure(x, y).haet").find("did you mean \"heat\"?"), std::string::npos);
  EXPECT_NE(net_error("closur(x, y)[0]").find("did you mean \"closure\"?"), std::string::npos);
  EXPECT_NE(net_error("closure + 1").find("call it"), std::string::npos);
}

TEST(Equations, refuse_definitions_in_a_circle_and_names_that_clash) {
  Equations circle;
  circle.equations = {{"x", "a", ""}};
  circle.definitions = {{"a", "b + 1", ""}, {"b", "2 * a", ""}};
  EXPECT_THROW(equations(circle), ExpressionError);
  for (const char* name : {"x", "t", "2x", "", "a b"}) {
    Equations clash;
    clash.equations = {{"x", "1", ""}};
    clash.definitions = {{name, "1", ""}};
    EXPECT_THROW(equations(clash), Error) << name;
  }
}

// pair is called for two neighbours and once more for what scale returns; kept is a net of the system.
Equations with_open_nets() {
  Mlp mlp;
  mlp.layers.push_back({1, 1, {3}, {0.5}, {}});
  Equations system;
  system.equations = {{"x", "pair(y - x, t) + pair(k, 2*t)", ""},
                      {"y", "kept(x) + pair(scale(x)[1], 0) + pair(y-x, t)", ""}};
  system.parameters = {{"k", 2.0}};
  system.nets = {{"kept", Model::from_mlp(mlp)}};
  return system;
}

TEST(Equations, say_how_nets_are_called_that_are_yet_to_be_made) {
  const std::vector<NetCalls> calls = net_calls(with_open_nets(), std::vector<std::string>{"scale", "pair"});
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].calls, 1u);
  EXPECT_EQ(calls[0].inputs, std::vector<std::string>{"x"});
  EXPECT_EQ(calls[0].outputs.size(), 2u);
  EXPECT_FALSE(calls[0].reads_nets);
  EXPECT_EQ(calls[1].calls, 2u);
  EXPECT_EQ(calls[1].inputs, (std::vector<std::string>{"y - x ...", "t ..."}));
  EXPECT_TRUE(calls[1].reads_nets);
  const double u[] = {1, 4}, k = 2, t = 0.5;
  std::vector<MatrixView<const double>> in;
  for (const Port& port : calls[1].read.inputs) {
    const double* from = port.name == "u" ? u : port.name == "p" ? &k : &t;
    in.push_back(MatrixView<const double>::row_major(from, 1, port.features.size()));
  }
  std::vector<double> read(4);
  const std::vector<MatrixView<double>> out{MatrixView<double>::row_major(read.data(), 1, 4)};
  NetPlan<double>::compile(calls[1].read).evaluate(in, out);
  EXPECT_EQ(read, (std::vector<double>{3, 0.5, 2, 1}));
}

TEST(Equations, share_the_weights_of_a_nets_calls) {
  Equations system = with_open_nets();
  const auto net = [](std::size_t inputs, std::size_t outputs) {
    Mlp mlp;
    mlp.layers.push_back({inputs, 3, std::vector<double>(3 * inputs), std::vector<double>(3), {ActivationKind::tanh}});
    mlp.layers.push_back({3, outputs, std::vector<double>(3 * outputs), std::vector<double>(outputs), {}});
    return Model::from_mlp(mlp);
  };
  system.nets.push_back({"scale", net(1, 2)});
  system.nets.push_back({"pair", net(2, 1)});
  // pair (9 + 4 numbers) is called twice, then kept, scale (6 + 8), and pair again.
  EXPECT_EQ(weight_places(equations(system), system, std::vector<std::string>{"scale", "pair"}),
            (graph::WeightPlaces{14, 23, 14, 23, graph::kKept, 0, 6, 14, 23}));
  EXPECT_EQ(weight_places(equations(system), system, std::vector<std::string>{"kept"})[4], 0u);
}

TEST(Equations, refuse_open_nets_that_differ_in_their_calls) {
  const auto message = [](const char* text, const char* name = "net") {
    Equations system = with_open_nets();
    system.equations[1].text = text;
    try {
      net_calls(system, std::vector<std::string>{"pair", "scale", name});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_PRED2(has, message("scale(x)"), "no call of \"net\"");
  EXPECT_PRED2(has, message("net(x) + net(x, y) + scale(1)"), "net of 2 arguments, expected 1, as in its first call");
  EXPECT_PRED2(has, message("net(x)[0] + net(y).a + scale(1)"), "either");
  for (const char* name : {"kept", "pair", "x", "k", "sin", "2"}) {
    EXPECT_PRED2(has, message("net(x) + scale(1)", name), "a name of letters, digits and _ that nothing else has");
  }
}

TEST(Equations, take_long_sums) {
  std::string text = "x";
  while (text.size() < 8000) text += "+x*y";
  EXPECT_EQ(value_of(text), 0.5 - static_cast<double>(text.size() / 4));
}

TEST(Equations, name_numbers_that_float32_has_not) {
  Equations system = with_open_nets();
  system.nets.clear();
  system.equations = {{"x", "1e39 * x", ""}, {"y", "-2e38 * y", ""}};
  const Model model = equations(system);
  EXPECT_EQ(message_of([&] { NetPlan<float>::compile(model); }),
            "number 1e+39: found 1e+39, expected a number that fits in float32; compute in float64: precision f64");
  EXPECT_EQ(message_of([&] { NetPlan<double>::compile(model); }), "no error");
}

}  // namespace
}  // namespace lockstep::nn
