// How the threads of a block share out trajectories, in the simulator of blocks.
#include "lockstep/ode/cuda/advance.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

namespace lockstep::ode::cuda {
namespace {

constexpr unsigned kThreads = 64, kBlocks = 2;

struct Sharing {
  std::vector<int> taken;                                      // how often, [trajectory]
  std::map<std::pair<unsigned, int>, std::vector<int>> began;  // by (warp, round)
};

// Threads that take as many rounds for trajectory i as rounds(i), or end it at once.
template <class Rounds>
Sharing share_out(std::int64_t count, unsigned seed, const Rounds& rounds) {
  Sharing sharing;
  sharing.taken.resize(static_cast<std::size_t>(count));
  unsigned long long counter = 0;
  lockstep::cuda::testing::simulate({.blocks = kBlocks, .threads = kThreads, .seed = seed}, [&](unsigned char*) {
    WarpQueue queue(&counter, count);
    int left = 0;
    for (int round = 0;; ++round) {
      const std::int64_t next = queue(left > 0);
      if (next == kNoneAnyMore) return;
      if (next != kNoneNow) {
        ASSERT_EQ(left, 0) << "a busy thread was given a trajectory";
        ASSERT_LT(next, count);
        ++sharing.taken[static_cast<std::size_t>(next)];
        sharing.began[{blockIdx.x * kThreads / 32 + threadIdx.x / 32, round}].push_back(static_cast<int>(next));
        left = rounds(static_cast<int>(next));
      }
      if (left > 0) --left;
    }
  });
  return sharing;
}

TEST(WarpQueue, gives_every_trajectory_to_one_thread) {
  for (const int count : {0, 1, 31, 32, 33, 64, 127, 129, 997, 1025, 1061, 4999}) {
    const Sharing sharing = share_out(count, static_cast<unsigned>(count), [](int i) { return i * 7 % 13; });
    EXPECT_EQ(sharing.taken, std::vector<int>(static_cast<std::size_t>(count), 1));
  }
}

TEST(WarpQueue, lets_a_warp_begin_several_at_once) {
  // In the first all are near the end, and none is kept; in the second what a warp kept may be fewer when there are no
  // more, and as old as a few rounds.
  for (const int count : {251, 4999}) {
    const int last = count < kFarFromTheEnd * kThreads * kBlocks ? 1 : int{kFarFromTheEnd * kThreads * kBlocks};
    const Sharing sharing = share_out(count, 1, [](int i) { return 1 + i * 7 % 13; });
    for (const auto& [place, trajectories] : sharing.began) {
      const int largest = *std::max_element(trajectories.begin(), trajectories.end());  // threads run in any order
      EXPECT_TRUE(largest + last >= count || trajectories.size() >= kIdleThreads)
          << trajectories.size() << " began, up to " << largest << " of " << count;
    }
  }
}

TEST(WarpQueue, leaves_the_rest_to_other_warps_where_few_threads_wait) {
  const Sharing sharing = share_out(300, 0, [](int i) { return i < 29 ? 500 : 3; });
  EXPECT_EQ(sharing.taken, std::vector<int>(300, 1));
  for (const auto& [place, trajectories] : sharing.began) EXPECT_LT(place.second, 400);
}

}  // namespace
}  // namespace lockstep::ode::cuda
