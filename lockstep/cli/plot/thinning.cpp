#include "lockstep/cli/plot/thinning.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/cli/plot/axis.h"
#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

// Calls use(first, end) for each of `bins` ranges of about the same size.
template <class Use>
void for_each_bin(std::size_t total, std::size_t bins, const Use& use) {
  for (std::size_t bin = 0; bin < bins; ++bin) use(bin * total / bins, (bin + 1) * total / bins);
}

}  // namespace

std::size_t bins_of(std::size_t points, std::size_t most) {
  return points <= most ? 0 : std::max<std::size_t>(most / 4, 1);
}

std::vector<std::size_t> thinned(const std::vector<std::vector<double>>& columns, std::size_t bins) {
  const std::size_t total = columns.front().size();
  std::vector<std::size_t> chosen;
  if (bins == 0 || total <= bins) {
    for (std::size_t i = 0; i < total; ++i) chosen.push_back(i);
    return chosen;
  }
  for_each_bin(total, bins, [&](std::size_t first, std::size_t end) {
    std::vector<std::size_t> kept{first};
    if (columns.size() == 1 || end == total) kept.push_back(end - 1);
    for (const std::vector<double>& column : columns) {
      std::size_t least = end, greatest = end, none = end;
      for (std::size_t i = first; i < end; ++i) {
        if (!std::isfinite(column[i])) {
          none = std::min(none, i);
          continue;
        }
        if (least == end || column[i] < column[least]) least = i;
        if (greatest == end || column[i] > column[greatest]) greatest = i;
      }
      for (const std::size_t i : {least, greatest, none}) {
        if (i < end) kept.push_back(i);
      }
    }
    std::ranges::sort(kept);
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    chosen.insert(chosen.end(), kept.begin(), kept.end());
  });
  return chosen;
}

Bands thinned_bands(Bands bands, std::size_t most) {
  const std::size_t total = bands.times.size(), bins = bins_of(total, most);
  if (bins == 0) return bands;
  const std::size_t columns = bands.quantiles.size() / total;
  Bands drawn;
  for_each_bin(total, bins, [&](std::size_t first, std::size_t end) {
    std::vector<double> row;
    for (std::size_t q = 0; q < columns; ++q) {
      Extent values;
      for (std::size_t i = first; i < end; ++i) values.cover(bands.quantiles[i * columns + q]);
      const double extreme = 2 * q < columns ? values.low : values.high;
      row.push_back(std::isfinite(extreme) ? extreme : std::numeric_limits<double>::quiet_NaN());
    }
    for (const std::size_t i : {first, end - 1}) {
      drawn.times.push_back(bands.times[i]);
      drawn.quantiles.insert(drawn.quantiles.end(), row.begin(), row.end());
    }
  });
  return drawn;
}

std::vector<std::size_t> unevenly_chosen(std::size_t total, std::size_t wanted) {
  constexpr double kGoldenSection = 0.6180339887498949;  // whose multiples are spread evenly over 0 to 1
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < std::min(total, wanted); ++i) {
    double whole = 0;
    const double part = total <= wanted ? 0 : std::modf(static_cast<double>(i) * kGoldenSection, &whole);
    const double step = total <= wanted ? 1 : static_cast<double>(total) / static_cast<double>(wanted);
    const auto place = static_cast<std::size_t>((static_cast<double>(i) + part) * step);
    chosen.push_back(std::min(place, total - 1));
  }
  if (!chosen.empty()) chosen.back() = total - 1;
  return chosen;
}

std::vector<std::size_t> sampled_times(std::size_t total, std::size_t numbers) {
  constexpr std::size_t kMostNumbers = 40'000'000, kFewestTimes = 400;
  return unevenly_chosen(total, std::max(kMostNumbers / numbers, kFewestTimes));
}

std::string times_text(std::size_t total, std::size_t chosen, std::size_t bins) {
  const std::string times = (chosen < total ? count_text(chosen) + " of " : "") + count_text(total) + " times";
  if (bins > 0) return times + " in " + counted_text(bins, "bin");
  return chosen < total ? times : std::string();
}

}  // namespace lockstep::cli
