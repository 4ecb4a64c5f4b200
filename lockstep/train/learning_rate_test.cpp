#include "lockstep/train/learning_rate.h"

#include <gmock/gmock.h>

#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"

namespace lockstep::train {
namespace {

using testing::HasSubstr;

TEST(LearningRate, a_constant_rate_is_constant) {
  const LearningRate rate({.rate = 0.01});
  EXPECT_EQ(rate.rate(0), 0.01);
  EXPECT_EQ(rate.rate(1'000'000), 0.01);
}

TEST(LearningRate, the_warm_up_is_linear_and_ends_at_the_rate) {
  const LearningRate rate({.rate = 0.5, .warm_up = 4});
  EXPECT_EQ(rate.rate(0), 0.125);
  EXPECT_EQ(rate.rate(1), 0.25);
  EXPECT_EQ(rate.rate(3), 0.5);
  EXPECT_EQ(rate.rate(4), 0.5);
}

TEST(LearningRate, a_cosine_goes_from_the_rate_to_its_final_fraction_and_stays) {
  const LearningRate rate({.schedule = Schedule::cosine, .rate = 2, .total = 100, .final_fraction = 0.25});
  EXPECT_EQ(rate.rate(0), 2);
  // Our cosine is within 2 ulp of the true one; rate and fraction are exact in binary.
  EXPECT_NEAR(rate.rate(50), 2 * (0.25 + 0.75 * 0.5), 1e-15);
  EXPECT_NEAR(rate.rate(25), 2 * (0.25 + 0.75 * 0.5 * (1 + std::sqrt(0.5))), 2e-15);
  EXPECT_EQ(rate.rate(100), 0.5);
  EXPECT_EQ(rate.rate(1000), 0.5);
}

TEST(LearningRate, steps_multiply_by_the_factor) {
  const LearningRate rate({.schedule = Schedule::step, .rate = 1, .factor = 0.5, .every = 10, .floor = 0.1});
  EXPECT_EQ(rate.rate(9), 1);
  EXPECT_EQ(rate.rate(10), 0.5);
  EXPECT_EQ(rate.rate(35), 0.125);
  EXPECT_EQ(rate.rate(45), 0.1);  // the floor
}

TEST(LearningRate, a_plateau_lowers_the_rate_when_the_loss_stops_falling) {
  LearningRate rate({.schedule = Schedule::plateau, .rate = 1, .factor = 0.5, .patience = 3, .improvement = 0.01});
  for (const double loss : {10.0, 9.0, 8.99, 8.98}) rate.observe(loss);  // two in a row are no better by 1 %
  EXPECT_EQ(rate.rate(4), 1);
  rate.observe(8.95);
  EXPECT_EQ(rate.rate(5), 0.5);
  LearningRate other({.schedule = Schedule::plateau, .rate = 1, .factor = 0.5, .patience = 3, .improvement = 0.01});
  other.restore(rate.state());
  for (int i = 0; i < 3; ++i) other.observe(8.95);
  EXPECT_EQ(other.rate(8), 0.25);
}

TEST(LearningRate, options_that_cannot_be_are_refused_by_name) {
  const auto message = [](const LearningRateOptions& options) -> std::string {
    return message_of([&] { LearningRate rate(options); });
  };
  EXPECT_THAT(message({.rate = 0}), HasSubstr("learning_rate.rate: found 0"));
  EXPECT_THAT(message({.schedule = Schedule::cosine}), HasSubstr("learning_rate.total"));
  EXPECT_THAT(message({.schedule = Schedule::step, .factor = 1}), HasSubstr("learning_rate.factor"));
  EXPECT_THAT(message({.schedule = Schedule::cosine, .warm_up = 10, .total = 10}), HasSubstr("warm_up"));
  try {
    parse_schedule("training.schedule", "cosin");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean \"cosine\""));
  }
}

}  // namespace
}  // namespace lockstep::train
