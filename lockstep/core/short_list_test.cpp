#include "lockstep/core/short_list.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>

namespace lockstep {
namespace {

TEST(ShortList, holds_what_was_put_there_short_or_long) {
  for (const int count : {0, 1, 3, 4, 5, 97}) {
    ShortList<std::array<double, 2>, 4> list;
    for (int i = 0; i < count; ++i) list.push_back({1.0 * i, 0.5 * i});
    const auto copy = list;
    for (const auto& span : {std::as_const(list).span(), copy.span()}) {
      ASSERT_EQ(span.size(), static_cast<std::size_t>(count));
      for (int i = 0; i < count; ++i) EXPECT_EQ(span[static_cast<std::size_t>(i)][1], 0.5 * i);
    }
  }
}

}  // namespace
}  // namespace lockstep
