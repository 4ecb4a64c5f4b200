#include "lockstep/agreement/difference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>

#include "lockstep/agreement/detail/histogram.h"
#include "lockstep/agreement/detail/same_number.h"
#include "lockstep/agreement/detail/suspects.h"
#include "lockstep/core/error.h"
#include "lockstep/core/read_ahead.h"

namespace lockstep::agreement {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
constexpr std::size_t kDepartures = 3;

bool fits_float32(std::span<const float>) { return true; }
bool fits_float32(std::span<const double> row) {
  return std::ranges::all_of(
      row, [](double x) { return !(static_cast<double>(static_cast<float>(x)) != x) || std::isnan(x); });
}

// How a trajectory ended in the two solutions.
struct Ending {
  std::optional<ode::Status> status;          // where both say the same
  std::optional<std::array<double, 2>> time;  // where both tell it

  // Whether rounding may decide that only one of them has a state at `t` (NaN: not known when that is). A solution has
  // one until it ends, so that the two must have it alike at any time but between their ends.
  bool leaves_open(double t, double epsilon) const {
    if (!status) return true;
    if (*status == ode::Status::success) return false;
    if (!time) return true;
    const auto [first, last] = std::minmax((*time)[0], (*time)[1]);
    const double roundings = 10 * epsilon * std::max(std::abs(first), std::abs(last));
    return std::isnan(t) ? last - first > 0 : t >= first - roundings && t <= last + roundings;
  }
};

class Measurement {
 public:
  Measurement(const Ensemble& a, const Scale& scale, const Spread& spread)
      : spread_(spread),
        times_(a.own_times() || a.trajectories() == 0 ? std::vector<double>{} : a.times(0)),
        components_(scale.components()),
        points_(a.save_points()),
        distances_(points_ * components_),
        largest_(points_),
        largest_trajectory_(points_),
        histograms_(points_),
        certified_(points_),
        suspects_(spread),
        of_one_(points_) {
    result_.at.resize(points_);
    for (std::size_t k = 0; k < points_; ++k) {
      for (const double size : scale.size) inverse_size_.push_back(1 / size);
      allowed_.push_back(std::min(10 * spread.at[k][kTail], kDiverged));
    }
  }

  // Trajectories come in ascending order.
  template <class T>
  void add(std::size_t trajectory, std::span<const T> a, std::span<const T> b, const Ending& ending) {
    if (result_.a_is_float32) result_.a_is_float32 = fits_float32(a);
    if (result_.b_is_float32) result_.b_is_float32 = fits_float32(b);
    // Number by number first, in a loop that the compiler can vectorise.
    std::size_t different = 0;
    bool finite = true;
    for (std::size_t j = 0; j < a.size(); ++j) {
      using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
      const auto x = static_cast<double>(a[j]);
      const auto y = static_cast<double>(b[j]);
      distances_[j] = std::abs(y - x) * inverse_size_[j];
      different += std::bit_cast<Bits>(a[j]) != std::bit_cast<Bits>(b[j]) ? 1 : 0;
      finite &= std::abs(x) + std::abs(y) < std::numeric_limits<double>::infinity();
    }
    const bool certified = is_certified(trajectory);
    bool departed = false;
    bool diverged = false;
    if (finite) {
      for (std::size_t k = 0; k < points_; ++k) {
        double distance = distances_[k * components_];
        for (std::size_t c = 1; c < components_; ++c) distance = std::max(distance, distances_[k * components_ + c]);
        note(trajectory, k, distance, certified, departed, diverged);
        of_one_[k] = distance;
      }
    } else {
      different = add_not_finite(trajectory, a, b, certified, ending);
    }
    result_.different += different;
    if (different == 0) return;
    ++result_.trajectories;
    suspects_.add(trajectory, of_one_);
  }

  void leave_out(bool unfinished_a, bool unfinished_b) {
    ++result_.left_out;
    result_.unfinished_a += unfinished_a ? 1 : 0;
    result_.unfinished_b += unfinished_b ? 1 : 0;
  }
  void another_status() { ++result_.statuses; }

  void add_end(std::size_t trajectory, const ode::TrajectoryRecord& record_a, const ode::TrajectoryRecord& record_b,
               std::span<const double> a, std::span<const double> b) {
    const double roundings = 10 * spread_.epsilon;
    const double time = std::abs(record_b.end_time - record_a.end_time);
    bool different = time > roundings * std::max(std::abs(record_a.end_time), std::abs(record_b.end_time));
    double distance = 0;
    for (std::size_t c = 0; c < components_; ++c) {
      if (same_number(a[c], b[c])) continue;
      const double apart = std::abs(b[c] - a[c]);
      if (!(apart * inverse_size_[c] <= distance)) distance = apart * inverse_size_[c];
      different = different || !(apart <= roundings * std::max(std::abs(a[c]), 1 / inverse_size_[c]));
    }
    if (!different) return;
    EndDifference& ends = result_.ends;
    ++ends.different;
    if (record_a.status != ode::Status::terminated) return;
    ++ends.by_event;
    if (time > ends.time) ends.time = time, ends.time_trajectory = trajectory;
    if (!(distance <= ends.distance)) ends.distance = distance, ends.distance_trajectory = trajectory;
  }

  Difference finish(Statistics statistics) {
    for (std::size_t k = 0; k < points_; ++k) {
      TimeDifference& at = result_.at[k];
      at.compared = histograms_[k].total();
      at.largest = largest_[k];
      at.largest_trajectory = largest_trajectory_[k];
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
    result_.suspects = suspects_.trajectories();
    result_.statistics = std::move(statistics);
    return std::move(result_);
  }

 private:
  double time_of(std::size_t k) const { return times_.empty() ? std::numeric_limits<double>::quiet_NaN() : times_[k]; }

  bool is_certified(std::size_t trajectory) {
    const std::vector<std::size_t>& all = spread_.trajectories;
    while (next_certified_ < all.size() && all[next_certified_] < trajectory) ++next_certified_;
    return next_certified_ < all.size() && all[next_certified_] == trajectory;
  }

  void note(std::size_t trajectory, std::size_t k, double distance, bool certified, bool& departed, bool& diverged) {
    histograms_[k].add(distance);
    if (certified) certified_[k].push_back(distance);
    if (distance > largest_[k]) {
      largest_[k] = distance;
      largest_trajectory_[k] = trajectory;
    }
    if (distance <= allowed_[k]) return;
    if (!diverged && distance > kDiverged) {
      diverged = true;
      ++result_.at[k].departed;
    }
    if (!departed) {
      departed = true;
      keep_first({trajectory, k, distance, allowed_[k]});
    }
  }

  // A trajectory with NaN or infinities somewhere. Returns how many numbers differ.
  template <class T>
  std::size_t add_not_finite(std::size_t trajectory, std::span<const T> a, std::span<const T> b, bool certified,
                             const Ending& ending) {
    std::size_t different = 0;
    bool departed = false;
    bool diverged = false;
    bool all_finite_a = true;
    bool all_finite_b = true;
    for (std::size_t k = 0; k < points_; ++k) {
      double distance = 0;
      bool both = false, one_alone = false;  // components finite in both solutions, or in one
      for (std::size_t j = k * components_; j < (k + 1) * components_; ++j) {
        const bool finite_a = std::isfinite(a[j]), finite_b = std::isfinite(b[j]);
        all_finite_a = all_finite_a && finite_a;
        all_finite_b = all_finite_b && finite_b;
        both = both || (finite_a && finite_b);
        one_alone = one_alone || finite_a != finite_b;
        if (same_number(a[j], b[j])) continue;
        ++different;
        if (finite_a && finite_b) distance = std::max(distance, distances_[j]);
      }
      of_one_[k] = both && !one_alone ? distance : -1;
      if (!both && !one_alone) continue;  // ended in both
      if (one_alone) {
        ++result_.at[k].one_finite;
        distance = std::numeric_limits<double>::infinity();
        if (!result_.one_sided && !ending.leaves_open(time_of(k), spread_.epsilon))
          result_.one_sided = Departure{trajectory, k, distance, distance};
      }
      note(trajectory, k, distance, certified, departed, diverged);
    }
    if (ending.status == ode::Status::terminated) return different;  // nothing is saved behind an event
    if (!all_finite_a) ++result_.not_finite_a;
    if (!all_finite_b) ++result_.not_finite_b;
    if (!all_finite_a || !all_finite_b) ++result_.not_finite;
    return different;
  }

  void keep_first(const Departure& departure) {
    auto& first = result_.first;
    const auto sooner = [](const Departure& x, const Departure& y) {
      return x.time != y.time ? x.time < y.time : x.distance > y.distance;
    };
    if (first.size() == kDepartures && !sooner(departure, first.back())) return;
    first.insert(std::ranges::upper_bound(first, departure, sooner), departure);
    if (first.size() > kDepartures) first.pop_back();
  }

  const Spread& spread_;
  std::vector<double> times_;  // [time], where all trajectories share them
  std::size_t components_;
  std::size_t points_;
  std::vector<double> inverse_size_;             // [time][component]
  std::vector<double> allowed_;                  // [time]; at most kDiverged
  std::vector<double> distances_;                // [time][component] of one trajectory
  std::vector<double> largest_;                  // [time]
  std::vector<std::size_t> largest_trajectory_;  // [time]
  std::vector<Histogram> histograms_;            // [time]
  std::vector<std::vector<double>> certified_;   // [time][certified trajectory] distances
  std::size_t next_certified_ = 0;
  Suspects suspects_;
  std::vector<double> of_one_;  // [time] distances of one trajectory
  Difference result_;
};

template <class T>
struct Piece {
  std::vector<T> a, b;
  std::vector<ode::TrajectoryRecord> records_a, records_b;
  std::vector<double> ends_a, ends_b;  // [trajectory][component]; empty where one does not say
};

template <class T>
Difference measure(const Ensemble& a, const Ensemble& b, const Scale& scale, const Spread& spread,
                   const RunControl& control) {
  const std::size_t trajectories = a.trajectories();
  const std::size_t row = a.save_points() * scale.components();
  Measurement measurement(a, scale, spread);
  StatisticsCollector statistics(trajectories, scale, spread);
  const std::size_t rows = std::clamp<std::size_t>(kPieceBytes / std::max<std::size_t>(row * sizeof(T), 1), 1, 1 << 16);
  const auto count_of = [&](std::size_t piece) { return std::min(rows, trajectories - piece * rows); };
  read_ahead<Piece<T>>((trajectories + rows - 1) / rows,
                       [&](std::size_t i, Piece<T>& piece) {
                         const std::size_t first = i * rows;
                         const std::size_t count = count_of(i);
                         piece.a.resize(count * row);
                         piece.b.resize(count * row);
                         a.read_states(first, count, std::span<T>(piece.a));
                         b.read_states(first, count, std::span<T>(piece.b));
                         piece.records_a = a.records(first, count);
                         piece.records_b = b.records(first, count);
                         piece.ends_a = a.end_states(first, count);
                         piece.ends_b = b.end_states(first, count);
                       },
                       [&](std::size_t piece_index, const Piece<T>& piece) {
                         if (control.cancelled())
                           throw Error(ErrorKind::cancelled, {"comparison", "a request to stop", {}, {}});
                         const std::size_t first = piece_index * rows;
                         const std::size_t count = count_of(piece_index);
                         for (std::size_t i = 0; i < count; ++i) {
                           const ode::Status status_a = piece.records_a[i].status;
                           const ode::Status status_b = piece.records_b[i].status;
                           const bool unfinished_a = status_a == ode::Status::cancelled;
                           const bool unfinished_b = status_b == ode::Status::cancelled;
                           if (unfinished_a || unfinished_b) {
                             measurement.leave_out(unfinished_a, unfinished_b);
                             continue;
                           }
                           if (status_a != status_b) {
                             measurement.another_status();
                           } else if (!piece.ends_a.empty() && !piece.ends_b.empty()) {
                             const std::size_t n = scale.components();
                             measurement.add_end(first + i, piece.records_a[i], piece.records_b[i],
                                                 std::span(piece.ends_a).subspan(i * n, n),
                                                 std::span(piece.ends_b).subspan(i * n, n));
                           }
                           const auto row_a = std::span<const T>(piece.a).subspan(i * row, row);
                           const auto row_b = std::span<const T>(piece.b).subspan(i * row, row);
                           Ending ending;
                           if (status_a == status_b) ending.status = status_a;
                           if (!piece.ends_a.empty() && !piece.ends_b.empty())
                             ending.time = {piece.records_a[i].end_time, piece.records_b[i].end_time};
                           measurement.add(first + i, row_a, row_b, ending);
                           statistics.add(first + i, row_a, row_b);
                         }
                         if (control.progress) control.progress(first + count, trajectories);
                       });
  return measurement.finish(std::move(statistics).finish());
}

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
  const bool narrow = a.precision() == Precision::f32 && b.precision() == Precision::f32;
  return narrow ? measure<float>(a, b, scale, spread, control) : measure<double>(a, b, scale, spread, control);
}

}  // namespace lockstep::agreement
