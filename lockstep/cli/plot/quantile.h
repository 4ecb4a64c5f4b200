// Order statistics for figures.
#pragma once

#include <vector>

namespace lockstep::cli {

// Linear between order statistics; NaN for an empty sample. Reorders the sample.
double quantile(std::vector<double>& sample, double part);

}  // namespace lockstep::cli
