// Where values lie: against a search through all that live at the same time.
#include "lockstep/kernels/graph/detail/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace lockstep::graph {
namespace {

struct Area {
  std::size_t rows, first, last;
  std::size_t row = 0;
};

// Each area, in the order of their first times, at the first rows that no other has taken which still lives.
std::size_t place_one_by_one(std::vector<Area>& areas) {
  std::size_t most = 0;
  for (std::size_t i = 0; i < areas.size(); ++i) {
    Area& mine = areas[i];
    const auto is_taken = [&](std::size_t row) {
      return std::any_of(areas.begin(), areas.begin() + static_cast<std::ptrdiff_t>(i), [&](const Area& other) {
        return other.last >= mine.first && row < other.row + other.rows && other.row < row + mine.rows;
      });
    };
    while (is_taken(mine.row)) ++mine.row;
    most = std::max(most, mine.row + mine.rows);
  }
  return most;
}

TEST(Layout, areas_get_the_first_rows_that_are_free_while_they_live) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t count) { return random() % count; };
    const std::size_t count = 1 + below(120), longest = 1 + below(60), widest = 1 + below(12);
    std::vector<Area> expected;
    Layout layout;
    for (std::size_t time = 0, i = 0; i < count; ++i) {
      time += below(2);
      const Area& area = expected.emplace_back(Area{1 + below(widest), time, time + below(longest)});
      ASSERT_EQ(layout.add(area.rows, area.first), i);
      layout.extend(i, area.last);
    }
    ASSERT_EQ(layout.allocate(), place_one_by_one(expected)) << "seed " << seed;
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(layout.row({i, 0}), expected[i].row) << "seed " << seed << ", area " << i;
    }
  }
}

}  // namespace
}  // namespace lockstep::graph
