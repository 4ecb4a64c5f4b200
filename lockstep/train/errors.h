// How far computed numbers lie from data, column by column, in the data's own units.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace lockstep::train {

// Of those numbers of a column whose errors lie within a threshold, as Huber's loss has one.
struct ErrorsWithin {
  double rms = 0;           // NaN where there are none
  double spread = 0;        // of the data, without the numbers beyond the threshold
  std::size_t numbers = 0;  // within
};

struct ColumnErrors {
  double rms = 0;               // root of the mean square; NaN where nothing was compared
  double largest = 0;           // of the absolute values
  double spread = 0;            // what they are to be compared with: the standard deviation of the data
  std::size_t numbers = 0;      // compared
  std::size_t largest_row = 0;  // where the largest stands
  std::optional<double> in_sigma = {};  // rms of errors each over the standard deviation of its measurement, if known
  std::optional<ErrorsWithin> within = {};  // where the loss had a threshold
  // 0: exact; 1: no better than the mean of the data. NaN where these do not vary.
  double relative() const;
  // Of the numbers within the threshold, where these are at least half; else relative(). What a few that are far off do
  // to both is not in it.
  double usual() const;
};

// Takes rows one after another. A number counts where the data have it and what was found is finite.
class ErrorSums {
 public:
  explicit ErrorSums(std::size_t columns);
  // [column] each: the next row; sigma for all rows or for none.
  void add(std::span<const double> found, std::span<const double> data, std::span<const double> sigma = {});
  // `spreads` [column], of the data that the errors are to be compared with. Sums in float64, rows ascending.
  std::vector<ColumnErrors> errors(std::span<const double> spreads) const;

 private:
  std::vector<ColumnErrors> columns_;  // rms: the sum of squares so far
  std::size_t rows_ = 0;
};

// The standard deviation of each column of data [row][column]; NaNs are passed over.
std::vector<double> column_spreads(std::span<const double> data, std::size_t columns);

}  // namespace lockstep::train
