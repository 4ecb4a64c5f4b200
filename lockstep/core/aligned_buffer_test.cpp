#include "lockstep/core/aligned_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>

namespace lockstep {
namespace {

class AlignedBufferTest : public testing::TestWithParam<std::size_t> {};

TEST_P(AlignedBufferTest, holds_zeros_on_a_cache_line_and_can_be_written_to_its_end) {
  AlignedBuffer<double> buffer(GetParam());
  ASSERT_EQ(buffer.size(), GetParam());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % kAlignment, 0u);
  EXPECT_EQ(std::ranges::count(buffer.span(), 0.0), static_cast<std::ptrdiff_t>(GetParam()));
  std::ranges::fill(buffer.span(), 1.0);
  EXPECT_EQ(std::ranges::count(buffer.span(), 1.0), static_cast<std::ptrdiff_t>(GetParam()));
}

TEST_P(AlignedBufferTest, holds_zeros_again_where_memory_was_written_and_given_back) {
  for (int repeat = 0; repeat < 3; ++repeat) {
    AlignedBuffer<float> buffer(GetParam());
    ASSERT_EQ(std::ranges::count(buffer.span(), 0.0f), static_cast<std::ptrdiff_t>(GetParam()));
    std::ranges::fill(buffer.span(), 1.0f);
  }
}

TEST_P(AlignedBufferTest, moves_without_copying_and_leaves_nothing_behind) {
  AlignedBuffer<float> first(GetParam());
  const float* const data = first.data();
  AlignedBuffer<float> second(std::move(first));
  EXPECT_EQ(second.data(), data);
  AlignedBuffer<float> third(5);
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.size(), GetParam());
  EXPECT_TRUE(first.empty() && second.empty());  // NOLINT: what moving leaves is stated
}

// Around the size from which memory comes in pages: 4 MiB are 2^19 doubles.
INSTANTIATE_TEST_SUITE_P(Sizes, AlignedBufferTest, testing::Values(1, 63, 524287, 524288, 524289, 1200000));

TEST(AlignedBuffer, more_than_there_is_throws) {
  EXPECT_THROW(AlignedBuffer<float>(SIZE_MAX / 8), std::bad_alloc);
  EXPECT_THROW(AlignedBuffer<std::byte>(SIZE_MAX - 7), std::bad_alloc);
}

TEST(AlignedBuffer, none_takes_no_memory) {
  const AlignedBuffer<float> none(0);
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.data(), nullptr);
}

}  // namespace
}  // namespace lockstep
