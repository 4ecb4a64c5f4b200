#include "lockstep/core/read_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "lockstep/core/testing/no_threads.h"

namespace lockstep {
namespace {

TEST(read_ahead, uses_every_piece_once_and_in_order) {
  for (const std::size_t pieces : {0, 1, 2, 3, 101}) {
    std::vector<std::size_t> seen;
    read_ahead<std::vector<std::size_t>>(
        pieces, [](std::size_t i, auto& buffer) { buffer.assign(1000, i); },
        [&](std::size_t i, const auto& buffer) {
          ASSERT_EQ(buffer, std::vector<std::size_t>(1000, i));
          seen.push_back(i);
        });
    ASSERT_EQ(seen.size(), pieces);
    for (std::size_t i = 0; i < pieces; ++i) EXPECT_EQ(seen[i], i);
  }
}

TEST(read_ahead, reads_the_next_piece_while_one_is_used) {
  std::promise<void> second_read;
  read_ahead<int>(
      2,
      [&](std::size_t i, int&) {
        if (i == 1) second_read.set_value();
      },
      // Would wait forever for a reader that comes after it.
      [&](std::size_t i, const int&) {
        if (i == 0) second_read.get_future().wait();
      });
}

TEST(read_ahead, goes_on_where_the_system_gives_no_thread) {
  std::vector<int> used;
  const NoThreads none;
  read_ahead<int>(
      4, [](std::size_t i, int& piece) { piece = static_cast<int>(i); },
      [&](std::size_t, const int& piece) { used.push_back(piece); });
  EXPECT_EQ(used, (std::vector<int>{0, 1, 2, 3}));
}

TEST(read_ahead, passes_on_what_either_side_throws) {
  const auto run = [](std::size_t bad_read, std::size_t bad_use) {
    std::atomic<std::size_t> used{0};
    EXPECT_THROW(read_ahead<int>(
                     5,
                     [&](std::size_t i, int&) {
                       if (i == bad_read) throw std::runtime_error("read");
                     },
                     [&](std::size_t i, const int&) {
                       if (i == bad_use) throw std::runtime_error("use");
                       ++used;
                     }),
                 std::runtime_error);
    return used.load();
  };
  EXPECT_EQ(run(0, 9), 0u);
  EXPECT_EQ(run(3, 9), 3u);
  EXPECT_EQ(run(9, 2), 2u);
  EXPECT_EQ(run(3, 2), 2u);
}

}  // namespace
}  // namespace lockstep
