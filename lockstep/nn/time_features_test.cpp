#include "lockstep/nn/time_features.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/nn/equations.h"
#include "lockstep/nn/table_model.h"

namespace lockstep::nn {
namespace {

double width_of(std::vector<double> at, std::vector<double> values, Interpolation interpolation,
                const std::string& text = "doses(t)") {
  Equations system;
  system.equations = {{"x", text, ""}};
  system.nets = {{"doses", table_model({{"t"}, std::move(at), {{""}}, std::move(values), interpolation})}};
  const std::optional<TimeFeature> feature = shortest_time_feature(equations(system));
  if (!feature) return 0;
  EXPECT_EQ(feature->table, "doses");
  return feature->width;
}

TEST(TimeFeatures, are_peaks_and_valleys_of_lines_and_cubics) {
  for (const Interpolation lines : {Interpolation::linear, Interpolation::pchip}) {
    EXPECT_EQ(width_of({0, 8, 8.25, 8.5, 8.75, 24}, {0, 0, 1, 1, 0, 0}, lines), 0.75);  // a plateau
    EXPECT_EQ(width_of({0, 1, 2, 4}, {0, 3, 1, 5}, lines), 2);                          // up, down, up
    EXPECT_EQ(width_of({0, 1, 1.001, 4}, {0, 0, 1, 1}, lines), 0);                      // an edge stays
    EXPECT_EQ(width_of({0, 1}, {0, 1}, lines), 0);
    EXPECT_EQ(width_of({0}, {1}, lines), 0);
  }
}

TEST(TimeFeatures, are_steps_that_are_kept_for_a_while) {
  EXPECT_EQ(width_of({0, 8, 8.25, 24}, {0, 1, 0, 0}, Interpolation::previous), 0.25);
  EXPECT_EQ(width_of({0, 8, 9, 10}, {0, 1, 1, 2}, Interpolation::previous), 2);  // equal neighbours are one
  EXPECT_EQ(width_of({0, 8}, {0, 1}, Interpolation::previous), 0);
}

TEST(TimeFeatures, are_those_of_the_time_itself) {
  const std::vector<double> at = {0, 1, 2}, values = {0, 1, 0};
  const auto width = [&](const std::string& text) { return width_of(at, values, Interpolation::linear, text); };
  EXPECT_EQ(width("doses(t - 3)"), 2);
  EXPECT_EQ(width("doses(24 * t + 1)"), 2.0 / 24);
  EXPECT_EQ(width("doses((5 - t) / 4)"), 8);
  EXPECT_EQ(width("doses((2 * t + 1) % 24)"), 1);
  EXPECT_EQ(width("doses(x)"), 0);
  EXPECT_EQ(width("doses(t * t) + x"), 0);
  EXPECT_EQ(width("doses(t) + doses(3 * t)"), 2.0 / 3);
}

}  // namespace
}  // namespace lockstep::nn
