// Counts of distances on a logarithmic scale: quantiles of any number of them in 2.3 kB, of a few in less.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace lockstep::agreement {

// Eight bins an octave between 2^-64 and 2^8.
class Histogram {
 public:
  void add(double distance) {
    const std::size_t at = bin(distance);
    if (!counts_.empty()) {
      ++counts_[at];
    } else if (bins_.size() < kFew) {
      bins_.push_back(static_cast<std::uint16_t>(at));
    } else {
      counts_.resize(kBins);
      for (const std::uint16_t one : bins_) ++counts_[one];
      bins_ = {};
      ++counts_[at];
    }
  }
  std::size_t total() const {
    std::size_t sum = bins_.size();
    for (const std::uint32_t count : counts_) sum += count;
    return sum;
  }
  // Within 5 %: the middle of the bin; zero for distances below the first.
  double quantile(double level) const {
    const auto place =
        static_cast<std::size_t>(std::llround(level * static_cast<double>(std::max<std::size_t>(total(), 1) - 1)));
    if (!bins_.empty()) {
      std::vector<std::uint16_t> bins = bins_;
      const auto there = bins.begin() + static_cast<std::ptrdiff_t>(place);
      std::ranges::nth_element(bins, there);
      return value(*there);
    }
    std::size_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen > place) return value(i);
    }
    return 0;
  }

 private:
  static constexpr std::size_t kBins = 1 + 72 * 8 + 1;
  static constexpr std::size_t kFew = 256;
  static std::size_t bin(double distance) {
    if (!(distance >= 0x1p-64)) return 0;
    if (distance >= 0x1p8) return kBins - 1;
    return 1 + static_cast<std::size_t>((std::bit_cast<std::uint64_t>(distance) >> 49) - ((1023 - 64) << 3));
  }
  static double value(std::size_t bin) {
    if (bin == 0) return 0;
    if (bin == kBins - 1) return std::numeric_limits<double>::infinity();
    const std::size_t step = bin - 1;
    return std::ldexp(1 + (static_cast<double>(step % 8) + 0.5) / 8, static_cast<int>(step / 8) - 64);
  }
  std::vector<std::uint16_t> bins_;    // of each distance, while they are few
  std::vector<std::uint32_t> counts_;  // [bin] afterwards
};

}  // namespace lockstep::agreement
