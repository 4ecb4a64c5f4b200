#include "lockstep/core/equal_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep {
namespace {

struct Dose {
  double time;
  int amount;
};

TEST(EqualPart, has_the_elements_of_one_key_in_their_order) {
  const std::vector<Dose> doses = {{0, 1}, {2, 5}, {2, 3}, {4, 7}};
  const std::span<const Dose> at_two = equal_part(doses, 2.0, &Dose::time);
  ASSERT_EQ(at_two.size(), 2u);
  EXPECT_EQ(&at_two[0], &doses[1]);
  EXPECT_EQ(at_two[1].amount, 3);
  for (const double absent : {-1.0, 3.0, 5.0}) EXPECT_TRUE(equal_part(doses, absent, &Dose::time).empty()) << absent;
  EXPECT_TRUE(equal_part(std::vector<Dose>(), 2.0, &Dose::time).empty());
}

}  // namespace
}  // namespace lockstep
