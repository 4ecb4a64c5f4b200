// What is asked of a solution that does not have it is refused by name.
#include "lockstep/ode/solution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"

namespace lockstep::ode {
namespace {

using ::testing::HasSubstr;

TEST(Solution, a_place_that_is_not_there_is_named) {
  const Solution solution(Precision::f64, 2, 3, {0, 1}, false);
  EXPECT_EQ(message_of([&] { solution.state(1, 1, 2), solution.end_state(1, 2); }), "no error");
  const auto state = [&](std::size_t i, std::size_t k, std::size_t c) {
    return message_of([&] { solution.state(i, k, c); }, ErrorKind::invalid_argument);
  };
  EXPECT_EQ(state(2, 0, 0), "trajectory: found 2, expected less than 2, the number of trajectories; count from 0");
  EXPECT_EQ(state(0, 2, 0), "time: found 2, expected less than 2, the number of save points; count from 0");
  EXPECT_EQ(state(0, 0, 3), "component: found 3, expected less than 3, the number of components; count from 0");
  EXPECT_THAT(message_of([&] { solution.end_state(2, 0); }), HasSubstr("trajectory: found 2"));
  EXPECT_THAT(message_of([&] { solution.end_state(0, 3); }), HasSubstr("component: found 3"));
}

TEST(Solution, without_save_points_has_ends_and_says_so) {
  const Solution solution(Precision::f32, 1, 1, {}, false);
  EXPECT_EQ(solution.end_state(0, 0), 0);
  EXPECT_THAT(message_of([&] { solution.state(0, 0, 0); }), HasSubstr("set Problem::save_times, or take end_state()"));
}

TEST(Solution, the_other_number_type_is_refused) {
  const Solution narrow(Precision::f32, 2, 3, {0, 1}, false), wide(Precision::f64, 2, 3, {0, 1}, false);
  EXPECT_EQ(narrow.states<float>().size(), 12u);
  EXPECT_EQ(wide.end_states<double>().size(), 6u);
  EXPECT_EQ(message_of([&] { narrow.states<double>(); }, ErrorKind::invalid_argument),
            "states<double>: found a solution of float32, expected float for T; solve with Options::precision = "
            "Precision::f64, or take numbers one by one: state() and end_state()");
  EXPECT_THAT(message_of([&] { wide.end_states<float>(); }),
              HasSubstr("end_states<float>: found a solution of float64"));
}

}  // namespace
}  // namespace lockstep::ode
