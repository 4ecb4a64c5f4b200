// A dataset's numbers as its netCDF attributes mean them.
#pragma once

#include <utility>
#include <vector>

#include "lockstep/core/hdf5.h"

namespace lockstep::cli {

// Packed numbers are unpacked, x scale_factor + add_offset in float64; those equal to _FillValue or to a missing_value
// before that are NaN (CF conventions 1.11, sections 8.1 and 2.5.1). A dataset without these attributes is read as it
// is. Throws Error (file) where one of them is no number.
class MeantNumbers {
 public:
  explicit MeantNumbers(hdf5::Dataset dataset);

  const hdf5::Dataset& dataset() const { return dataset_; }
  // Number: float or double.
  template <class Number>
  std::vector<Number> read() const {
    return is_plain() ? dataset_.read<Number>() : meant<Number>(dataset_.read<double>());
  }
  template <class Number>
  std::vector<Number> read(const hdf5::Shape& start, const hdf5::Shape& count) const {
    return is_plain() ? dataset_.read<Number>(start, count) : meant<Number>(dataset_.read<double>(start, count));
  }

 private:
  bool is_plain() const { return missing_.empty() && scale_ == 1 && offset_ == 0; }
  template <class Number>
  std::vector<Number> meant(const std::vector<double>& stored) const;

  hdf5::Dataset dataset_;
  double scale_ = 1, offset_ = 0;
  std::vector<double> missing_;
};

}  // namespace lockstep::cli
