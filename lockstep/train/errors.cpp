#include "lockstep/train/errors.h"

#include <cmath>
#include <limits>

#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/train/table.h"

namespace lockstep::train {

double ColumnErrors::relative() const { return spread > 0 ? rms / spread : std::numeric_limits<double>::quiet_NaN(); }

double ColumnErrors::usual() const {
  if (!within || 2 * within->numbers < numbers || !(within->spread > 0)) return relative();
  return within->rms / within->spread;
}

ErrorSums::ErrorSums(std::size_t columns) : columns_(columns) {}

void ErrorSums::add(std::span<const double> found, std::span<const double> data, std::span<const double> sigma) {
  const StandardArithmetic arithmetic;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const double error = std::fabs(found[i] - data[i]);
    if (!std::isfinite(error)) continue;
    ColumnErrors& column = columns_[i];
    column.rms += error * error;
    if (!sigma.empty()) column.in_sigma = column.in_sigma.value_or(0) + error / sigma[i] * (error / sigma[i]);
    ++column.numbers;
    if (column.numbers > 1 && error <= column.largest) continue;
    column.largest = error;
    column.largest_row = rows_;
  }
  ++rows_;
}

std::vector<ColumnErrors> ErrorSums::errors(std::span<const double> spreads) const {
  const StandardArithmetic arithmetic;
  std::vector<ColumnErrors> result = columns_;
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i].rms = std::sqrt(result[i].rms / static_cast<double>(result[i].numbers));  // 0 / 0: NaN
    if (result[i].in_sigma)
      result[i].in_sigma = std::sqrt(*result[i].in_sigma / static_cast<double>(result[i].numbers));
    result[i].spread = spreads[i];
  }
  return result;
}

std::vector<double> column_spreads(std::span<const double> data, std::size_t columns) {
  const StandardArithmetic arithmetic;
  std::vector<double> spreads;
  for (std::size_t i = 0; i < columns; ++i) spreads.push_back(column_statistics(data, columns, i).deviation);
  return spreads;
}

}  // namespace lockstep::train
