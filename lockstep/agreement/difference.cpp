#include "lockstep/agreement/difference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

#include "lockstep/core/error.h"

namespace lockstep::agreement {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
constexpr std::size_t kDepartures = 3;

// Counts of distances on a logarithmic scale, eight bins an octave between 2^-64 and 2^8.
class Histogram {
 public:
  void add(double distance) {
    ++counts_[bin(distance)];
    ++total_;
  }
  std::size_t total() const { return total_; }
  // Within 5 %: the middle of the bin; zero for distances below the first.
  double quantile(double level) const {
    const auto place =
        static_cast<std::size_t>(std::llround(level * static_cast<double>(std::max<std::size_t>(total_, 1) - 1)));
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
  std::size_t total_ = 0;
};

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

bool fits_float32(std::span<const double> row) {
  return std::ranges::all_of(
      row, [](double x) { return !(static_cast<double>(static_cast<float>(x)) != x) || std::isnan(x); });
}

class Measurement {
 public:
  Measurement(const Ensemble& a, const Scale& scale, const Spread& spread)
      : scale_(scale),
        spread_(spread),
        components_(scale.components()),
        points_(a.save_points()),
        histograms_(points_) {
    result_.at.resize(points_);
    certified_.resize(points_);
  }

  void add(std::size_t trajectory, std::span<const double> a, std::span<const double> b) {
    if (result_.a_is_float32) result_.a_is_float32 = fits_float32(a);
    if (result_.b_is_float32) result_.b_is_float32 = fits_float32(b);
    const bool same_bytes = std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
    const std::size_t before = result_.different;
    bool departed = false;
    bool diverged = false;
    bool all_finite = true;
    const bool certified = std::ranges::binary_search(spread_.trajectories, trajectory);
    for (std::size_t k = 0; k < points_; ++k) {
      double distance = 0;
      bool finite_a = true;
      bool finite_b = true;
      for (std::size_t c = 0; c < components_; ++c) {
        const double x = a[k * components_ + c];
        const double y = b[k * components_ + c];
        finite_a = finite_a && std::isfinite(x);
        finite_b = finite_b && std::isfinite(y);
        if (same_bytes || same_bits(x, y)) continue;
        ++result_.different;
        distance = std::max(distance, std::abs(y - x) / scale_.size[c]);
      }
      all_finite = all_finite && finite_a && finite_b;
      if (!finite_a && !finite_b) continue;  // ended in both
      TimeDifference& at = result_.at[k];
      if (finite_a != finite_b) {
        ++at.one_finite;
        distance = std::numeric_limits<double>::infinity();
      }
      histograms_[k].add(distance);
      if (certified) certified_[k].push_back(distance);
      if (distance > at.largest) {
        at.largest = distance;
        at.largest_trajectory = trajectory;
      }
      if (!diverged && distance > kDiverged) {
        diverged = true;
        ++at.departed;
      }
      const double allowed = std::min(10 * spread_.at[k][kTail], kDiverged);
      if (!departed && distance > allowed) {
        departed = true;
        note({trajectory, k, distance, allowed});
      }
    }
    if (result_.different != before) ++result_.trajectories;
    if (!all_finite) ++result_.not_finite;
  }

  void leave_out() { ++result_.left_out; }
  void another_status() { ++result_.statuses; }

  Difference finish(Statistics statistics) {
    for (std::size_t k = 0; k < points_; ++k) {
      result_.at[k].compared = histograms_[k].total();
      TimeDifference& at = result_.at[k];
      const auto of_all = [&](double level) { return std::min(histograms_[k].quantile(level), at.largest); };
      at.quantile = {of_all(kDistanceQuantile[kMedian]), of_all(kDistanceQuantile[kMost]), 0};
      at.tail_of_all = of_all(kDistanceQuantile[kTail]);
      std::vector<double>& certified = certified_[k];
      if (certified.empty()) continue;
      const double level = spread_.adaptive ? kAdaptiveTail : kDistanceQuantile[kTail];
      const auto place = std::llround(level * static_cast<double>(certified.size() - 1));
      std::ranges::nth_element(certified, certified.begin() + place);
      at.quantile[kTail] = certified[static_cast<std::size_t>(place)];
    }
    result_.statistics = std::move(statistics);
    return std::move(result_);
  }

 private:
  void note(const Departure& departure) {
    auto& first = result_.first;
    const auto sooner = [](const Departure& x, const Departure& y) {
      return x.time != y.time ? x.time < y.time : x.distance > y.distance;
    };
    if (first.size() == kDepartures && !sooner(departure, first.back())) return;
    first.insert(std::ranges::upper_bound(first, departure, sooner), departure);
    if (first.size() > kDepartures) first.pop_back();
  }

  const Scale& scale_;
  const Spread& spread_;
  std::size_t components_;
  std::size_t points_;
  std::vector<Histogram> histograms_;           // [time]
  std::vector<std::vector<double>> certified_;  // [time][certified trajectory] distances
  Difference result_;
};

}  // namespace

double Difference::median_divergence(const std::vector<double>& times) const {
  std::size_t compared = 0;
  for (const TimeDifference& difference : at) compared = std::max(compared, difference.compared);
  std::size_t departed = 0;
  for (std::size_t k = 0; k < at.size(); ++k) {
    departed += at[k].departed;
    if (2 * departed > compared) return times[k];
  }
  return std::numeric_limits<double>::infinity();
}

Difference measure_difference(const Ensemble& a, const Ensemble& b, const Scale& scale, const Spread& spread,
                              const RunControl& control) {
  const std::size_t trajectories = a.trajectories();
  const std::size_t row = a.save_points() * scale.components();
  Measurement measurement(a, scale, spread);
  StatisticsCollector statistics(trajectories, scale, spread);
  const std::size_t rows = std::clamp<std::size_t>(kPieceBytes / std::max<std::size_t>(row * 8, 1), 1, 1 << 16);
  for (std::size_t first = 0; first < trajectories; first += rows) {
    if (control.cancelled()) throw Error(ErrorKind::cancelled, {"comparison", "a request to stop", {}, {}});
    const std::size_t count = std::min(rows, trajectories - first);
    const std::vector<double> states_a = a.states(first, count);
    const std::vector<double> states_b = b.states(first, count);
    const auto records_a = a.records(first, count);
    const auto records_b = b.records(first, count);
    for (std::size_t i = 0; i < count; ++i) {
      if (records_a[i].status == ode::Status::cancelled || records_b[i].status == ode::Status::cancelled) {
        measurement.leave_out();
        continue;
      }
      if (records_a[i].status != records_b[i].status) measurement.another_status();
      const std::span<const double> row_a = std::span(states_a).subspan(i * row, row);
      const std::span<const double> row_b = std::span(states_b).subspan(i * row, row);
      measurement.add(first + i, row_a, row_b);
      statistics.add(first + i, row_a, row_b);
    }
    if (control.progress) control.progress(first + count, trajectories);
  }
  return measurement.finish(std::move(statistics).finish());
}

}  // namespace lockstep::agreement
