#include "lockstep/core/matrix_batch_overlap.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "lockstep/core/testing/message_of.h"

namespace lockstep {
namespace {

// Counted out element by element.
std::multiset<std::ptrdiff_t> elements_of(const BatchPlaces& batch) {
  std::multiset<std::ptrdiff_t> elements;
  for (std::size_t s = 0; s < batch.samples; ++s) {
    for (std::size_t r = 0; r < batch.rows; ++r) {
      for (std::size_t c = 0; c < batch.columns; ++c) {
        elements.insert(static_cast<std::ptrdiff_t>(batch.address / batch.bytes) +
                        static_cast<std::ptrdiff_t>(s) * batch.sample_stride +
                        static_cast<std::ptrdiff_t>(r) * batch.row_stride +
                        static_cast<std::ptrdiff_t>(c) * batch.column_stride);
      }
    }
  }
  return elements;
}

TEST(MatrixBatchOverlap, is_what_counting_elements_finds) {
  constexpr unsigned kSeed = 20261128;
  std::mt19937 random(kSeed);
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  int shared = 0, own = 0, met = 0, apart = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const BatchPlaces batch{std::uintptr_t(1000 + draw(0, 30)) * 8,
                            8,
                            std::size_t(draw(0, 4)),
                            std::size_t(draw(1, 3)),
                            std::size_t(draw(1, 3)),
                            draw(-12, 12),
                            draw(-6, 6),
                            draw(-6, 6)};
    const auto elements = elements_of(batch);
    const bool expected = std::set(elements.begin(), elements.end()).size() < elements.size();
    ASSERT_EQ(shares_places(batch), expected) << "trial " << trial << " of seed " << kSeed;
    (expected ? shared : own)++;
    if (expected) continue;
    const Places view{std::uintptr_t(1000 + draw(0, 30)) * 8,
                      8,
                      std::size_t(draw(1, 4)),
                      std::size_t(draw(1, 4)),
                      draw(-9, 9),
                      draw(-5, 5)};
    bool meets = false;
    for (const std::ptrdiff_t element :
         elements_of({view.address, 8, 1, view.rows, view.columns, 0, view.row_stride, view.column_stride})) {
      meets = meets || elements.contains(element);
    }
    ASSERT_EQ(share_memory(batch, view), meets) << "trial " << trial << " of seed " << kSeed;
    (meets ? met : apart)++;
  }
  for (const int count : {shared, own, met, apart}) EXPECT_GT(count, 1000);
}

TEST(MatrixBatchOverlap, what_no_memory_can_hold_shares_places) {
  double number = 0;
  const MatrixBatchView<double> huge{&number, ~std::size_t(0), 3, 2};
  EXPECT_TRUE(shares_places(places_of(huge)));
  EXPECT_EQ(message_of([&] { refuse_batch("jacobian", places_of(huge)); }),
            "jacobian: found strides 6, 2 and 1 for 18446744073709551615 x 3 x 2, expected a "
            "place for each result, within memory; give the strides of an array of three dimensions, in elements");
}

TEST(MatrixBatchOverlap, views_of_either_layout_find_their_elements) {
  double numbers[24];
  const MatrixBatchView<double> by_rows{numbers, 2, 3, 4};
  const auto by_columns = MatrixBatchView<double>::column_major(numbers, 2, 3, 4);
  EXPECT_EQ(&by_rows(1, 2, 3), numbers + 23);
  EXPECT_EQ(&by_rows(1, 2, 1), numbers + 12 + 8 + 1);
  EXPECT_EQ(&by_columns(1, 2, 1), numbers + 12 + 2 + 3);
  EXPECT_EQ(&by_columns[1](2, 1), &by_columns(1, 2, 1));
  EXPECT_FALSE(shares_places(places_of(by_rows)));
  EXPECT_FALSE(shares_places(places_of(by_columns)));
}

}  // namespace
}  // namespace lockstep
