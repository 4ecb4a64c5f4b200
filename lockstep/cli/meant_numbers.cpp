#include "lockstep/cli/meant_numbers.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::cli {

MeantNumbers::MeantNumbers(hdf5::Dataset dataset) : dataset_(std::move(dataset)) {
  if (dataset_.has_attribute("scale_factor")) scale_ = dataset_.number_attribute("scale_factor");
  if (dataset_.has_attribute("add_offset")) offset_ = dataset_.number_attribute("add_offset");
  for (const char* const name : {"_FillValue", "missing_value"}) {
    if (!dataset_.has_attribute(name)) continue;
    for (const double value : dataset_.number_list_attribute(name)) {
      if (!std::isnan(value)) missing_.push_back(value);  // NaN says itself what it means
    }
  }
}

template <class Number>
std::vector<Number> MeantNumbers::meant(const std::vector<double>& stored) const {
  std::vector<Number> values;
  values.reserve(stored.size());
  for (const double x : stored) {
    const bool is_missing = std::ranges::find(missing_, x) != missing_.end();
    values.push_back(is_missing ? std::numeric_limits<Number>::quiet_NaN() : static_cast<Number>(x * scale_ + offset_));
  }
  return values;
}

template std::vector<float> MeantNumbers::meant(const std::vector<double>&) const;
template std::vector<double> MeantNumbers::meant(const std::vector<double>&) const;

}  // namespace lockstep::cli
