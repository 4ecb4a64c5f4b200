// Counts of distances on a logarithmic scale: quantiles of any number of them in 2.3 kB.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace lockstep::agreement {

// Eight bins an octave between 2^-64 and 2^8.
class Histogram {
 public:
  void add(double distance) { ++counts_[bin(distance)]; }
  std::size_t total() const {
    std::size_t sum = 0;
    for (const std::uint32_t count : counts_) sum += count;
    return sum;
  }
  // Within 5 %: the middle of the bin; zero for distances below the first.
  double quantile(double level) const {
    const auto place =
        static_cast<std::size_t>(std::llround(level * static_cast<double>(std::max<std::size_t>(total(), 1) - 1)));
    std::size_t seen = 0;
    for (std::size_t i = 0; i < kBins; ++i) {
      seen += counts_[i];
      if (seen > place) return value(i);
    }
    return 0;
  }

 private:
  static constexpr std::size_t kBins = 1 + 72 * 8 + 1;
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
  std::array<std::uint32_t, kBins> counts_{};
};

}  // namespace lockstep::agreement
