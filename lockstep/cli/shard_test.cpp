#include "lockstep/cli/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::cli {
namespace {

using ::testing::HasSubstr;

ProblemSetup setup_of(std::size_t trajectories) {
  ProblemSetup setup;
  setup.problem.rhs = ode::system("lorenz");
  for (std::size_t i = 0; i < 3 * trajectories; ++i) setup.problem.initial_states.push_back(static_cast<double>(i));
  setup.problem.parameters = {10, 28, 8.0 / 3};
  setup.problem.end_times = {1};
  return setup;
}

TEST(Shards, are_read_as_index_and_count) {
  EXPECT_EQ(parse_shard("3/16").index, 3u);
  EXPECT_EQ(parse_shard("3/16").count, 16u);
  for (const char* wrong : {"0/4", "5/4", "3", "3/", "/3", "a/b", "1/2/3", "-1/3", "1/0", "", " 1/2"}) {
    EXPECT_THAT(message_of([&] { parse_shard(wrong); }),
                HasSubstr("--shard: found \"" + std::string(wrong) + "\", expected I/N with I from 1 to N"));
  }
}

TEST(Shards, have_file_names_that_sort_as_numbers) {
  EXPECT_EQ(shard_path("runs/lorenz.h5", {3, 16}), "runs/lorenz.shard-03-of-16.h5");
  EXPECT_EQ(shard_path("lorenz.v2.h5", {10, 10}), "lorenz.v2.shard-10-of-10.h5");
  EXPECT_EQ(shard_path("lorenz", {1, 2}), "lorenz.shard-1-of-2");
}

TEST(Shards, cover_the_ensemble_once_and_evenly) {
  for (const std::size_t total : {1, 2, 31, 100, 1009}) {
    for (std::size_t count = 1; count <= std::min<std::size_t>(total, 40); ++count) {
      std::size_t next = 0, smallest = total, largest = 0;
      for (std::size_t index = 1; index <= count; ++index) {
        ProblemSetup setup = setup_of(total);
        keep_shard(setup, {index, count});
        const auto place = setup.part_of.value();
        ASSERT_EQ(place.first_trajectory, next);
        ASSERT_EQ(place.trajectories, total);
        ASSERT_EQ(setup.problem.initial_states[0], 3.0 * static_cast<double>(next));
        const std::size_t size = setup.problem.trajectories();
        smallest = std::min(smallest, size);
        largest = std::max(largest, size);
        next += size;
      }
      ASSERT_EQ(next, total);
      ASSERT_LE(largest - smallest, 1u);
    }
  }
}

TEST(Shards, that_cannot_keep_their_bits_are_refused) {
  ProblemSetup few = setup_of(3);
  EXPECT_THAT(message_of([&] { keep_shard(few, {1, 4}); }), HasSubstr("--shard: found 1/4 of 3 trajectories"));
  ProblemSetup common = setup_of(8);
  common.options.control = ode::StepControl::common;
  EXPECT_THAT(message_of([&] { keep_shard(common, {1, 4}); }), HasSubstr("an ensemble with one common step"));
}

}  // namespace
}  // namespace lockstep::cli
