// Which views share memory: compared with looking at every pair of bytes, over all kinds of layouts.
#include "lockstep/core/matrix_overlap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "lockstep/core/error.h"

namespace lockstep {
namespace {

TEST(MatrixView, without_strides_its_rows_lie_one_after_another) {
  std::vector<float> numbers(12);
  const MatrixView<float> view{numbers.data(), 3, 4};
  EXPECT_EQ(&view(2, 1), &MatrixView<float>::row_major(numbers.data(), 3, 4)(2, 1));
  EXPECT_EQ(view.row_stride, 4);
}

std::set<std::uintptr_t> bytes_of(const Places& view) {
  std::set<std::uintptr_t> bytes;
  for (std::size_t i = 0; i < view.rows; ++i) {
    for (std::size_t j = 0; j < view.columns; ++j) {
      const std::ptrdiff_t element =
          static_cast<std::ptrdiff_t>(i) * view.row_stride + static_cast<std::ptrdiff_t>(j) * view.column_stride;
      for (std::size_t byte = 0; byte < view.bytes; ++byte) {
        bytes.insert(view.address + static_cast<std::uintptr_t>(element * static_cast<std::ptrdiff_t>(view.bytes)) +
                     byte);
      }
    }
  }
  return bytes;
}

bool meet(const Places& a, const Places& b) {
  const auto in_a = bytes_of(a), in_b = bytes_of(b);
  for (const std::uintptr_t byte : in_a) {
    if (in_b.contains(byte)) return true;
  }
  return false;
}

std::string text_of(const Places& view) {
  return std::to_string(view.address) + ": " + std::to_string(view.rows) + " x " + std::to_string(view.columns) +
         " by " + std::to_string(view.row_stride) + ", " + std::to_string(view.column_stride);
}

TEST(MatrixOverlap, is_told_for_any_strides_as_by_looking_at_every_byte) {
  constexpr unsigned kSeed = 20;
  std::mt19937 random(kSeed);
  const auto below = [&](int n) { return static_cast<std::ptrdiff_t>(random() % static_cast<unsigned>(n)); };
  int shared = 0;
  for (int trial = 0; trial < 6000; ++trial) {
    const std::size_t rows = static_cast<std::size_t>(below(6));
    const auto view = [&] {
      return Places{static_cast<std::uintptr_t>(4000 + 4 * below(60)),
                    4,
                    rows,
                    static_cast<std::size_t>(below(6)),
                    below(41) - 20,
                    below(41) - 20};
    };
    Places a = view(), b = view();
    if (trial % 2 == 0) b.row_stride = a.row_stride;
    if (trial % 4 < 2) b.column_stride = a.column_stride;
    if (trial % 8 == 7) b.address += static_cast<std::uintptr_t>(below(4));  // between elements
    const bool expected = meet(a, b);
    shared += expected ? 1 : 0;
    ASSERT_EQ(share_memory(a, b), expected) << "seed " << kSeed << ", " << text_of(a) << "; " << text_of(b);
    ASSERT_EQ(share_memory(b, a), expected) << "seed " << kSeed << ", " << text_of(a) << "; " << text_of(b);
  }
  EXPECT_GT(shared, 1000);
  EXPECT_LT(shared, 5000);
}

TEST(MatrixOverlap, a_view_may_be_replaced_by_one_of_the_same_places_and_by_no_other) {
  std::vector<float> numbers(400);
  const auto may = [&](MatrixView<float> out, MatrixView<float> in) {
    return may_write_beside<float>(out, MatrixView<const float>(in));
  };
  float* const at = numbers.data() + 100;
  EXPECT_TRUE(may({at, 9, 3, 3, 1}, {at, 9, 3, 3, 1}));
  EXPECT_TRUE(may({at, 9, 2, 3, 1}, {at, 9, 3, 3, 1}));   // fewer columns of the same rows
  EXPECT_TRUE(may({at, 9, 2, 1, 9}, {at, 9, 3, 1, 9}));   // likewise, a feature after another
  EXPECT_TRUE(may({at, 9, 1, 1, 1}, {at, 9, 3, 1, 9}));   // one column, whose stride to a next one says nothing
  EXPECT_TRUE(may({at, 9, 3, 1, 9}, {at, 9, 1, 1, 0}));
  EXPECT_FALSE(may({at, 9, 1, 1, 9}, {at, 9, 3, 1, 2}));  // rows of three columns that overlap each other
  EXPECT_FALSE(may({at, 9, 1, 2, 9}, {at, 9, 3, 1, 9}));
  EXPECT_FALSE(may({at, 9, 1, 2, 1}, {at, 9, 3, 2, 1}));  // rows that overlap each other
  EXPECT_FALSE(may({at, 9, 3, 4, 1}, {at, 9, 3, 3, 1}));
  EXPECT_FALSE(may({at, 9, 3, 1, 9}, {at, 9, 3, 3, 1}));  // transposed
  EXPECT_TRUE(may({at, 4, 7, 5, 7}, {at, 4, 2, 5, 7}));   // rows interleave, each number at a place of its own
  EXPECT_TRUE(may({at, 4, 2, 5, 7}, {at, 4, 7, 5, 7}));   // 7 rows on lies what is 5 columns on
  EXPECT_FALSE(may({at, 8, 4, 5, 7}, {at, 8, 6, 5, 7}));  // and is here of both
  EXPECT_FALSE(may({at + 1, 9, 3, 3, 1}, {at, 9, 3, 3, 1}));
  EXPECT_FALSE(may({at + 24, 9, 3, -3, 1}, {at, 9, 3, 3, 1}));  // the rows in reverse
  EXPECT_TRUE(may({at + 27, 9, 3, 3, 1}, {at, 9, 3, 3, 1}));
  EXPECT_TRUE(may({at - 3, 1, 3, -3, 1}, {at, 9, 3, 3, 1}));
  EXPECT_TRUE(may({at + 3, 9, 2, 5, 1}, {at, 9, 3, 5, 1}));   // columns of one array, side by side
  EXPECT_FALSE(may({at + 2, 9, 3, 5, 1}, {at, 9, 3, 5, 1}));  // sharing one
  EXPECT_TRUE(may({at, 0, 3, 3, 1}, {at, 0, 3, 3, 1}));
  EXPECT_TRUE(may({at, 0, 3, 3, 1}, {at + 1, 0, 3, 3, 1}));
  EXPECT_FALSE(may({at, 2, 3, PTRDIFF_MAX, 1}, {at, 2, 3, PTRDIFF_MIN, 1}));  // in no memory
}

TEST(MatrixOverlap, within_one_view_is_told_for_any_strides_as_by_looking_at_every_byte) {
  constexpr unsigned kSeed = 21;
  std::mt19937 random(kSeed);
  const auto below = [&](int n) { return static_cast<std::ptrdiff_t>(random() % static_cast<unsigned>(n)); };
  std::vector<float> numbers(400);
  int shared = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const auto rows = static_cast<std::size_t>(below(8)), columns = static_cast<std::size_t>(below(8));
    const MatrixView<float> view{numbers.data() + 200, rows, columns, below(25) - 12, below(25) - 12};
    const Places places = places_of(view);
    const bool expected = bytes_of(places).size() != rows * columns * sizeof(float);
    shared += expected ? 1 : 0;
    ASSERT_EQ(shares_places(places), expected) << "seed " << kSeed << ", " << text_of(places);
    ASSERT_EQ(has_own_places(view), !expected) << "seed " << kSeed << ", " << text_of(places);
  }
  EXPECT_GT(shared, 500);
  EXPECT_LT(shared, 3000);
  float* const at = numbers.data();
  EXPECT_FALSE(has_own_places<float>({at, 2, 3, PTRDIFF_MAX, 2}));  // in no memory
  EXPECT_TRUE(has_own_places<float>({at, 1, 3, 0, 1}));
  EXPECT_TRUE(has_own_places<float>({at, 3, 1, 1, 0}));
}

TEST(MatrixOverlap, of_slices_is_told_for_any_strides_as_by_looking_at_every_byte) {
  constexpr unsigned kSeed = 22;
  std::mt19937 random(kSeed);
  const auto below = [&](int n) { return static_cast<std::ptrdiff_t>(random() % static_cast<unsigned>(n)); };
  int shared = 0, met = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const auto rows = static_cast<std::size_t>(below(5)), count = static_cast<std::size_t>(below(6));
    const auto slices = [&] {
      const Places first{static_cast<std::uintptr_t>(9000 + 4 * below(20)),
                         4,
                         rows,
                         static_cast<std::size_t>(below(5)),
                         below(25) - 12,
                         below(25) - 12};
      return Slices{first, count, below(31) - 15};
    };
    Slices a = slices(), b = slices();
    if (trial % 2 == 0) b.stride = a.stride;
    if (trial % 4 == 0) b = a;
    const auto slice = [](const Slices& all, std::size_t number) {
      Places one = all.first;
      one.address += number * 4 * static_cast<std::uintptr_t>(all.stride);
      return one;
    };
    bool expected = false;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < count; ++j) expected = expected || (i != j && meet(slice(a, i), slice(b, j)));
    }
    shared += expected ? 1 : 0;
    ASSERT_EQ(slices_share_memory(a, b), expected)
        << "seed " << kSeed << ", " << count << " of " << text_of(a.first) << " every " << a.stride << "; "
        << text_of(b.first) << " every " << b.stride;
    bool meets_one = false;
    for (std::size_t i = 0; i < count; ++i) meets_one = meets_one || meet(slice(a, i), b.first);
    met += meets_one ? 1 : 0;
    ASSERT_EQ(shares_memory(a, b.first), meets_one) << "seed " << kSeed << ", " << count << " of " << text_of(a.first)
                                                    << " every " << a.stride << "; " << text_of(b.first);
  }
  EXPECT_GT(shared, 500);
  EXPECT_LT(shared, 3500);
  EXPECT_GT(met, 500);
  EXPECT_LT(met, 3500);
}

TEST(MatrixOverlap, views_that_no_memory_holds_are_never_apart) {
  std::vector<float> in(8), out(8);
  const MatrixView<const float> few{in.data(), 2, 2, 2, 1};
  for (const std::size_t rows :
       {SIZE_MAX, SIZE_MAX / 8, SIZE_MAX / 8 + 2, std::size_t{1} << 61, std::size_t{1} << 57}) {
    const MatrixView<float> many{out.data(), rows, 2, 2, 1};
    EXPECT_FALSE(may_write_beside(many, {in.data(), rows, 2, 2, 1})) << rows;
    EXPECT_FALSE(may_write_beside(many, {in.data(), rows, 2, 0, 1})) << rows;
    EXPECT_FALSE(may_write_beside(many, {out.data(), rows, 2, 2, 1})) << rows;  // the same view
    EXPECT_FALSE(may_write_beside(many, few)) << rows;
    EXPECT_FALSE(slices_share_memory({places_of(few), 2, 4}, {places_of(few), 2, 4}));
    EXPECT_TRUE(slices_share_memory({places_of(few), rows, 4}, {places_of(few), rows, 4}));
    EXPECT_TRUE(shares_memory({places_of(few), rows, 4}, places_of(MatrixView<float>{out.data(), 1, 2, 0, 1})));
  }
  const std::ptrdiff_t wide = std::ptrdiff_t{1} << 62;
  EXPECT_FALSE(may_write_beside({out.data(), 5, 2, 2, 1}, MatrixView<const float>{in.data(), 5, 2, wide, 1}));
  EXPECT_FALSE(may_write_beside({out.data(), 5, 2, 2, 1}, MatrixView<const float>{in.data(), 5, 2, 2, -wide}));
  try {
    refuse_overlap("out", places_of(few), "in", {4000, 4, SIZE_MAX, 3, 3, 1});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("in: found 18446744073709551615 x 3 elements with strides 3 (row)"));
  }
}

TEST(MatrixOverlap, says_what_was_written_where) {
  try {
    const Places places{4000, 4, 5, 3, 3, 1};
    refuse_overlap("out \"flux\"", places, "in \"state\"", places);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("out \"flux\": found memory that overlaps in \"state\", expected"));
  }
  try {
    refuse_shared_places("out", {4000, 4, 5, 3, 2, 1});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("out: found strides 2 (row) and 1 (column) for 5 x 3 results, some"));
  }
}

}  // namespace
}  // namespace lockstep
