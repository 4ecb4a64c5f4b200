#include "lockstep/nn/table_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "lockstep/core/error.h"
#include "lockstep/kernels/graph/testing/reference.h"
#include "lockstep/nn/equations.h"
#include "lockstep/nn/guarded_calls.h"

namespace lockstep::nn {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

FunctionTable one_column(std::vector<double> knots, std::vector<double> values, Interpolation interpolation) {
  return {{"t", "s"}, std::move(knots), {{"rain", "mm"}}, std::move(values), interpolation};
}

std::vector<double> at(const Model& model, std::vector<double> numbers) {
  std::vector<double> values;
  for (const double x : numbers) values.push_back(graph::testing::reference<double>(to_graph(model), {{x}})[0][0]);
  return values;
}

TEST(TableModel, linear_and_previous_values_and_the_ends_beyond_them) {
  const std::vector<double> where = {-9, 0, 0.5, 1, 2.5, 3, 99};
  EXPECT_THAT(at(table_model(one_column({0, 1, 3}, {2, 4, 8}, Interpolation::linear)), where),
              ElementsAre(2, 2, 3, 4, 7, 8, 8));
  EXPECT_THAT(at(table_model(one_column({0, 1, 3}, {2, 4, 8}, Interpolation::previous)), where),
              ElementsAre(2, 2, 2, 4, 4, 8, 8));
  EXPECT_EQ(table_model(one_column({0, 1}, {2, 4}, Interpolation::linear)).inputs[0].features[0].maximum, 1);
  EXPECT_EQ(table_model(one_column({0, 1}, {2, 4}, Interpolation::previous)).inputs[0].features[0].maximum, INFINITY);
  EXPECT_THAT(at(table_model(one_column({1}, {5}, Interpolation::pchip)), where), ElementsAre(5, 5, 5, 5, 5, 5, 5));
}

// scipy.interpolate.PchipInterpolator([0, 1, 1.5, 3, 4, 6], [0, 1, 1, 4, 3.5, 3.75]) of SciPy 1.17 at these numbers.
TEST(TableModel, pchip_is_that_of_scipy) {
  const Model model = table_model(one_column({0, 1, 1.5, 3, 4, 6}, {0, 1, 1, 4, 3.5, 3.75}, Interpolation::pchip));
  EXPECT_THAT(
      at(model, {0, 0.25, 0.9, 1.2, 1.6, 2.5, 3.5, 4.5, 5.9}),
      Pointwise(DoubleNear(1e-14), std::vector<double>{0.0, 0.39062500000000006, 0.987, 1.0, 1.0382222222222222,
                                                       3.2222222222222223, 3.75, 3.50390625, 3.7143437500000003}));
}

// scipy.interpolate.CubicSpline of SciPy 1.17, of six, three and four knots.
TEST(TableModel, spline_is_that_of_scipy) {
  const auto expect = [](std::vector<double> knots, std::vector<double> values, const std::vector<double>& where,
                         const std::vector<double>& expected) {
    const Model model = table_model(one_column(std::move(knots), std::move(values), Interpolation::spline));
    EXPECT_THAT(at(model, where), Pointwise(DoubleNear(4e-15), expected));
  };
  expect({0, 1, 1.5, 3, 4, 6}, {0, 1, 1, 4, 3.5, 3.75}, {0, 0.25, 0.9, 1.2, 1.6, 2.5, 3.5, 4.5, 5.9},
         {0.0, 0.7206182065217391, 1.0396304347826086, 0.9338260869565218, 1.0991143317230274, 3.0790056360708538,
          4.060235507246377, 2.7540760869565215, 3.3784963768115945});
  expect({0, 1, 3}, {0, 2, -1}, {0.5, 2, 2.9}, {1.2916666666666667, 1.6666666666666667, -0.6283333333333339});
  expect({0, 1, 3, 4}, {0, 2, -1, 0.5}, {0.5, 2, 3.9}, {1.6302083333333335, 0.5833333333333334, 0.11862499999999954});
  expect({0, 2}, {1, 5}, {0, 0.5, 2}, {1, 2, 5});
  // A cubic is itself.
  expect({-1, 0, 0.5, 2, 3}, {-1, 0, 0.125, 8, 27}, {-0.5, 0.25, 1, 2.5}, {-0.125, 0.015625, 1, 15.625});
}

TEST(TableModel, is_called_by_equations_like_a_net) {
  Equations system;
  system.equations = {{"water", "weather(t).rain - 0.1 * weather(t).heat * water", ""}};
  FunctionTable weather{{"t"}, {0, 10}, {{"rain"}, {"heat"}}, {1, 20, 3, 30}, Interpolation::linear};
  system.nets = {{"weather", table_model(weather)}};
  const Model model = equations(system);
  EXPECT_THAT(graph::testing::reference<double>(to_graph(model), {{2.0}, {5.0}})[0], ElementsAre(2 - 0.1 * 25 * 2));
  const WatchedInputs watched = watched_inputs(model, Watch::state_and_parameters);
  ASSERT_EQ(watched.times.size(), 1u);
  EXPECT_EQ(watched.times[0].name, "weather");
  EXPECT_EQ(watched.times[0].maximum, 10);
  EXPECT_TRUE(watched.other.empty());
}

TEST(TableModel, says_what_is_wrong_with_the_numbers) {
  const auto message = [](const FunctionTable& table) -> std::string {
    try {
      table_model(table);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_THAT(message(one_column({0, 2, 1}, {1, 2, 3}, Interpolation::linear)),
              HasSubstr("at[2]: found 1 after 2, expected ascending numbers, none twice; sort the rows by it"));
  EXPECT_THAT(message(one_column({0, 2, 2}, {1, 2, 3}, Interpolation::linear)), HasSubstr("keep one of the two"));
  EXPECT_THAT(message(one_column({0, 2, NAN}, {1, 2, 3}, Interpolation::linear)), HasSubstr("at[2]: found nan"));
  EXPECT_THAT(message(one_column({0, 2, 3}, {1, NAN, 3}, Interpolation::linear)),
              HasSubstr("values[1], rain: found nan, expected a finite number; leave the row out"));
  EXPECT_THAT(message(one_column({0, 2, 3}, {1, 2}, Interpolation::linear)), HasSubstr("values: found 2 numbers"));
  EXPECT_THAT(message(one_column({}, {}, Interpolation::linear)), HasSubstr("at: found none"));
  EXPECT_THAT(message(one_column({0, 1e-300}, {0, 1e300}, Interpolation::linear)), HasSubstr("too steep"));
}

}  // namespace
}  // namespace lockstep::nn
