// A sum of squares in the unit of the data, of which columns of small spread have next to nothing.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace lockstep::cli {

struct NamedSpread {
  std::string name;
  double spread;  // standard deviation over the training data; 0, or NaN, of what does not vary
};

// From this ratio of spreads on the smaller has a tenth of the loss at first, and is learned visibly worse: one of two
// equally difficult targets, by 32 x 32 units and Adam, to 22 % of its spread where they count alike, and to 38 % where
// the other varies 3 times as much; to 93 % where 5 times.
inline constexpr double kUneven = 3;

// "y0 varies 5 times as much as y1, and ...; in [data] sigma = { y0 = 4.9, y1 = 0.98 } counts them alike"; nothing
// where the largest is less than `least_ratio` times the smallest.
std::optional<std::string> uneven_spreads_text(std::span<const NamedSpread> columns, double least_ratio = kUneven);

}  // namespace lockstep::cli
