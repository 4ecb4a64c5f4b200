#include "lockstep/agreement/spread.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

#include "lockstep/agreement/detail/rounded_nets.h"
#include "lockstep/agreement/detail/suspects.h"
#include "lockstep/core/text.h"

namespace lockstep::agreement {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A normal variable exceeds 3.09 standard deviations once in a thousand. Growth over a time is a product of many
// factors, so spreads are nearly log-normal over trajectories; a sample of 64 cannot show the 99.9 % quantile of all.
constexpr double kTailDeviations = 3.0902;
// The farthest of many trajectories lies above that quantile, more so where a few pass close to a saddle: 54 times
// for one in a thousand of Lorenz' at t = 2.5. Beyond this no right trajectory goes.
constexpr double kFarthest = 1e4;
constexpr double kGross = 0.1;  // of the size: where more than this is allowed, nothing is known of single trajectories

double quantile(std::vector<double>& values, double level) {
  const double place = level * static_cast<double>(values.size() - 1);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::llround(place));
  std::ranges::nth_element(values, at);
  return *at;
}

// "1e-06, 1e-09" as numbers.
std::vector<double> numbers_in(const std::string& text) {
  std::vector<double> numbers;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view word = trimmed(std::string_view(text).substr(begin, end - begin));
    double number = 0;
    std::from_chars(word.data(), word.data() + word.size(), number);
    numbers.push_back(number);
    begin = end + 1;
  }
  return numbers;
}

// One step accepted here and rejected there changes a solution by the tolerance, not by rounding. It is rare (the
// probability is rounding over tolerance for each step), so that members need not show it.
// As a multiple of rounding; 0 with fixed steps.
double another_step(const Ensemble& reference, const Scale& scale, double epsilon) {
  double rtol = 0;
  std::vector<double> atol;  // one for all components, or one for each
  for (const auto& [name, value] : reference.provenance()) {
    if (name == "rtol" && !numbers_in(value).empty()) rtol = numbers_in(value).front();
    if (name == "atol") atol = numbers_in(value);
  }
  if (atol.empty()) atol = {0};
  // Of a file with some of the components nobody knows which tolerance belongs to which.
  const bool each = atol.size() == scale.size.size();
  const double largest = std::ranges::max(atol);
  double absolute = 0;
  for (std::size_t c = 0; c < scale.size.size(); ++c) {
    absolute = std::max(absolute, (each ? atol[c] : largest) / scale.size[c]);
  }
  const double tolerance = rtol * scale.typical_magnitude() + absolute;
  return 10 * tolerance / (4 * epsilon * std::max(scale.typical_magnitude(), 1e-300));
}

double deviation_of(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (const double y : values) {
    sum += y;
    squares += y * y;
  }
  const auto n = static_cast<double>(std::max<std::size_t>(values.size(), 1));
  return std::sqrt(std::max(0.0, squares / n - sum / n * sum / n));
}

// Least squares of ln(median) over the times where it lies between its beginning and 1e-2.
std::optional<double> fit_growth(const std::vector<double>& times, const Spread& spread) {
  double n = 0, t_sum = 0, y_sum = 0, tt = 0, ty = 0;
  double least = kInfinity, most = -kInfinity;
  for (std::size_t k = 0; k < times.size(); ++k) {
    const double median = spread.at[k][kMedian];
    if (times[k] <= 0 || !(median > 0) || median > 1e-2) continue;
    const double y = std::log(median);
    n += 1;
    t_sum += times[k];
    y_sum += y;
    tt += times[k] * times[k];
    ty += times[k] * y;
    least = std::min(least, y);
    most = std::max(most, y);
  }
  if (n < 3 || most - least < 3) return std::nullopt;
  const double slope = (n * ty - t_sum * y_sum) / (n * tt - t_sum * t_sum);
  return slope > 0 ? std::optional(slope) : std::nullopt;
}

}  // namespace

double epsilon_of(Precision precision) { return precision == Precision::f32 ? 0x1p-23 : 0x1p-52; }

std::vector<double> elapsed_times(const Ensemble& ensemble) {
  if (ensemble.trajectories() == 0) return {};
  std::vector<double> times = ensemble.times(0);
  const double start = ensemble.start_time();
  for (double& t : times) t = std::abs(t - start);
  return times;
}

Spread spread_of(const Certificate& certificate, const Ensemble& reference, const Scale& scale, Precision claimed) {
  const std::size_t points = certificate.save_points;
  const std::size_t components = certificate.components;
  const double epsilon = epsilon_of(claimed);
  const double widening = std::max(1.0, epsilon / epsilon_of(certificate.precision));
  std::vector<double> base = certificate.base;  // [sample][time][component]
  if (base.empty()) {
    for (const std::size_t i : certificate.trajectories) {
      const std::vector<double> row = reference.states(i, 1);
      base.insert(base.end(), row.begin(), row.end());
    }
  }
  Spread spread;
  spread.epsilon = epsilon;
  spread.at.resize(points);
  spread.farthest.resize(points);
  spread.source = std::to_string(certificate.members) + " members of " + std::to_string(certificate.samples()) +
                  " trajectories started " + std::to_string(certificate.ulps) + " ulp or more away";
  spread.matrix_precision = certificate.matrix_precision;
  if (spread.matrix_precision != MatrixPrecision::f32)
    spread.source += " with weights moved as far as " + name_of(spread.matrix_precision) + " rounds products";
  spread.trajectories = certificate.trajectories;
  const double step = another_step(reference, scale, epsilon);
  spread.adaptive = step > 0;
  spread.another_step = step;
  const double factor = std::max(kFarthest, step);
  std::vector<double> distances;
  // Octaves of the distance above the median, by member and sample, for Suspects; those before are of the last time.
  std::vector<double> octaves_before(certificate.members * certificate.samples(), 0.0), all;
  for (std::size_t k = 0; k < points; ++k) {
    distances.clear();
    all.assign(octaves_before.size(), -1);
    for (std::size_t member = 0; member < certificate.members; ++member) {
      for (std::size_t s = 0; s < certificate.samples(); ++s) {
        const double* at = certificate.states_of(member, s) + k * components;
        const double* from = base.data() + (s * points + k) * components;
        double distance = 0;
        bool finite = false;
        for (std::size_t c = 0; c < components; ++c) {
          if (!std::isfinite(at[c]) || !std::isfinite(from[c])) continue;
          finite = true;
          const double floor = certificate.ulps * epsilon * scale.largest_so_far[k * components + c];
          distance = std::max(distance, std::max(std::abs(at[c] - from[c]) * widening, floor) / scale.size[c]);
        }
        if (!finite) continue;
        distances.push_back(distance);
        all[member * certificate.samples() + s] = distance;
      }
    }
    if (distances.empty()) {
      spread.at[k] = {kInfinity, kInfinity, kInfinity};
      spread.farthest[k] = kInfinity;
      spread.deviation.push_back(0);
      spread.jump_deviation.push_back(0);
      continue;
    }
    for (std::size_t level = 0; level < kLevels; ++level) {
      spread.at[k][level] = quantile(distances, kSpreadQuantile[level]);
    }
    std::vector<double> logarithms;
    for (const double distance : distances) logarithms.push_back(std::log(std::max(distance, 1e-300)));
    const double deviation = deviation_of(logarithms);
    const double tail = std::max(spread.at[k][kTail], spread.at[k][kMedian] * std::exp(kTailDeviations * deviation));
    std::vector<double> octaves, jumps;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i] < 0 || !(spread.at[k][kMedian] > 0)) continue;
      const double above = Suspects::log2(std::max(all[i] / spread.at[k][kMedian], Suspects::kFloor));
      octaves.push_back(above);
      jumps.push_back(above - octaves_before[i]);
      octaves_before[i] = above;
    }
    spread.deviation.push_back(deviation_of(octaves));
    spread.jump_deviation.push_back(deviation_of(jumps));
    spread.farthest[k] = factor * tail < kGross ? factor * tail : kInfinity;
  }
  // Rounded nets drive trajectories apart from the start, in proportion to time: no rate of growth can be told.
  if (spread.matrix_precision == MatrixPrecision::f32)
    spread.growth_rate = fit_growth(elapsed_times(reference), spread);
  return spread;
}

Spread spread_by_exponent(double lyapunov, const Ensemble& reference, const Scale& scale, Precision claimed) {
  const std::vector<double> times = elapsed_times(reference);
  Spread spread;
  spread.epsilon = epsilon_of(claimed);
  spread.farthest.assign(times.size(), kInfinity);
  spread.source = "4 ulp growing by a stated Lyapunov exponent of " + rounded_text(lyapunov, 4);
  for (std::size_t k = 0; k < times.size(); ++k) {
    const double median = 4 * spread.epsilon * scale.typical_magnitude() * std::exp(lyapunov * times[k]);
    spread.at.push_back({median, kInfinity, kInfinity});
    // Quantiles of growth are unknown; a million times the median is far beyond any of them while this is small.
    spread.farthest[k] = 1e6 * median < kGross ? 1e6 * median : kInfinity;
  }
  spread.another_step = another_step(reference, scale, spread.epsilon);
  if (lyapunov > 0) spread.growth_rate = lyapunov;
  return spread;
}

}  // namespace lockstep::agreement
