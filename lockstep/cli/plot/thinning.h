// Long curves and bands in fewer points than they have: of each of many bins the extremes stay, so that a peak is as
// high as it was, and an oscillation too fast to be followed is a filled band.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep::cli {

inline constexpr std::size_t kMostDrawnPoints = 4000;  // more than a picture's pixels

// How many bins so many points are drawn in, 0 where all are drawn.
std::size_t bins_of(std::size_t points, std::size_t most = kMostDrawnPoints);

// Points of a curve to draw, in order: without bins all, otherwise of each bin the first, the least and the greatest of
// each column and one that is not finite, which leaves a gap. Of a single column the last of each bin as well, of
// several that of the last bin.
std::vector<std::size_t> thinned(const std::vector<std::vector<double>>& columns, std::size_t bins);

// Rows of quantiles over time, the lower ones first. In bins, each from its first time to its last, the lower half are
// the least of the bin and the upper half the greatest.
struct Bands {
  std::vector<double> times;
  std::vector<double> quantiles;  // [time][quantile]
};
Bands thinned_bands(Bands bands, std::size_t most = kMostDrawnPoints);

// `wanted` of `total`, first and last among them, at uneven distances, which no oscillation keeps step with.
std::vector<std::size_t> unevenly_chosen(std::size_t total, std::size_t wanted);
// As many times as samples of so many numbers each leave memory for, all as a rule.
std::vector<std::size_t> sampled_times(std::size_t total, std::size_t numbers);

// "20,001 times in 1,000 bins", "666 of 20,001 times"; "" where all are drawn.
std::string times_text(std::size_t total, std::size_t chosen, std::size_t bins);

}  // namespace lockstep::cli
