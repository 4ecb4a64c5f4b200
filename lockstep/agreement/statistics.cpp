#include "lockstep/agreement/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/agreement/difference.h"
#include "lockstep/core/random.h"

namespace lockstep::agreement {
namespace {

constexpr std::size_t kSampledTrajectories = 1000;
constexpr std::size_t kSampledTimes = 32;
constexpr std::uint32_t kPermutations = 100;
// A comparison; every chaotic one asks, so that few false alarms of this kind add up to no visible rate.
constexpr double kFalseAlarms = 1e-6;

// The mean of n values in units of its standard error, to which `rounding` adds: where pairs differ in their last
// places alone (trajectories that never parted), a bias of rounding is no other attractor.
double z_score(double sum, double squares, double n, double rounding) {
  const double mean = sum / n;
  const double variance = (squares / n - mean * mean) / (n - 1) + rounding * rounding;
  if (variance > 0) return mean / std::sqrt(variance);
  return mean == 0 ? 0 : std::copysign(std::numeric_limits<double>::infinity(), mean);
}

struct Value {
  double value;
  std::uint32_t trajectory;
  int side;  // +1 in a, -1 in b
};

// Integral of |F_a - F_b|, the files exchanged for trajectories of negative sign.
double wasserstein(const std::vector<Value>& sorted, const std::vector<int>& sign) {
  double distance = 0;
  int excess = 0;
  for (std::size_t i = 0; i + 1 < sorted.size(); ++i) {
    excess += sorted[i].side * sign[sorted[i].trajectory];
    distance += std::abs(excess) * (sorted[i + 1].value - sorted[i].value);
  }
  return distance / (static_cast<double>(sorted.size()) / 2);
}

void compare_distributions(const std::vector<double>& a, const std::vector<double>& b, std::size_t times,
                           ComponentStatistics& out) {
  const std::size_t trajectories = a.size() / times;
  std::vector<Value> sorted;
  sorted.reserve(2 * a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    sorted.push_back({a[i], static_cast<std::uint32_t>(i / times), 1});
    sorted.push_back({b[i], static_cast<std::uint32_t>(i / times), -1});
  }
  std::ranges::sort(sorted, {}, &Value::value);
  out.wasserstein = wasserstein(sorted, std::vector<int>(trajectories, 1));
  const Random random(20240711);
  std::vector<int> sign(trajectories);
  double sum = 0, squares = 0;
  for (std::uint32_t p = 0; p < kPermutations; ++p) {
    for (std::size_t i = 0; i < trajectories; ++i) sign[i] = (random.bits(i, p) >> 63) != 0 ? 1 : -1;
    const double distance = wasserstein(sorted, sign);
    sum += distance;
    squares += distance * distance;
  }
  const double mean = sum / kPermutations;
  const double deviation = std::sqrt(std::max(0.0, squares / kPermutations - mean * mean));
  out.wasserstein_z = deviation > 0 ? (out.wasserstein - mean) / deviation : 0;
}

}  // namespace

bool Statistics::agree() const {
  return std::ranges::all_of(components, [&](const ComponentStatistics& c) {
    return std::abs(c.mean_z) <= z_limit && std::abs(c.variance_z) <= z_limit && c.wasserstein_z <= wasserstein_limit;
  });
}

StatisticsCollector::StatisticsCollector(std::size_t trajectories, const Scale& scale, const Spread& spread)
    : scale_(scale), points_(spread.at.size()), rounding_(4 * spread.epsilon * scale.typical_magnitude()) {
  // From where typical trajectories have parted. Before, the pairs differ by rounding, whose bias is no statistic. A
  // rounded net is another net, whose attractor may be another by as much: there is nothing to ask then.
  std::size_t first = points_;
  while (spread.matrix_precision == MatrixPrecision::f32 && first > 0 && spread.at[first - 1][kMedian] > kDiverged)
    --first;
  const std::size_t components = scale.components();
  result_.first_time = first;
  result_.times = points_ - first;
  result_.components.resize(components);
  if (result_.times == 0) return;
  stride_ = (trajectories + kSampledTrajectories - 1) / kSampledTrajectories;
  time_stride_ = (result_.times + kSampledTimes - 1) / kSampledTimes;
  sampled_times_ = (result_.times + time_stride_ - 1) / time_stride_;
  means_.resize(components);
  variances_.resize(components);
  sample_a_.resize(components);
  sample_b_.resize(components);
}

template <class T>
void StatisticsCollector::add(std::size_t trajectory, std::span<const T> a, std::span<const T> b) {
  const std::size_t components = scale_.components();
  const std::size_t begin = result_.first_time * components;
  if (result_.times == 0) return;
  bool finite = true;
  for (std::size_t i = begin; i < a.size(); ++i) {
    finite &= std::abs(a[i]) <= std::numeric_limits<T>::max() && std::abs(b[i]) <= std::numeric_limits<T>::max();
  }
  if (!finite) return;
  ++result_.trajectories;
  for (std::size_t c = 0; c < components; ++c) {
    const double inverse_size = 1 / scale_.size[c];
    // Squares about one place for both files, near the mean: the first trajectory's means would do as well.
    double mean_a = 0, mean_b = 0, square_a = 0, square_b = 0;
    for (std::size_t i = begin + c; i < a.size(); i += components) {
      const double x = static_cast<double>(a[i]) * inverse_size;
      const double y = static_cast<double>(b[i]) * inverse_size;
      mean_a += x;
      mean_b += y;
      square_a += x * x;
      square_b += y * y;
    }
    const auto n = static_cast<double>(result_.times);
    const double mean = (mean_b - mean_a) / n;
    const double square = (square_b - square_a) / n;
    means_[c].sum += mean;
    means_[c].squares += mean * mean;
    variances_[c].sum += square;
    variances_[c].squares += square * square;
    if (trajectory % stride_ != 0) continue;
    for (std::size_t k = 0; k < result_.times; k += time_stride_) {
      sample_a_[c].push_back(static_cast<double>(a[begin + k * components + c]) * inverse_size);
      sample_b_[c].push_back(static_cast<double>(b[begin + k * components + c]) * inverse_size);
    }
  }
}

template void StatisticsCollector::add(std::size_t, std::span<const float>, std::span<const float>);
template void StatisticsCollector::add(std::size_t, std::span<const double>, std::span<const double>);

Statistics StatisticsCollector::finish() && {
  if (!result_.asked()) return std::move(result_);
  const auto n = static_cast<double>(result_.trajectories);
  const auto tests = static_cast<double>(2 * result_.components.size());
  result_.z_limit = normal_quantile(1 - kFalseAlarms / (2 * tests));
  for (std::size_t c = 0; c < result_.components.size(); ++c) {
    ComponentStatistics& out = result_.components[c];
    out.mean_z = z_score(means_[c].sum, means_[c].squares, n, rounding_);
    // d(x^2) = 2 x dx
    const double rounding_of_squares = 2 * scale_.typical_magnitude() * rounding_;
    out.variance_z = z_score(variances_[c].sum, variances_[c].squares, n, rounding_of_squares);
    compare_distributions(sample_a_[c], sample_b_[c], sampled_times_, out);
    out.values_a = std::move(sample_a_[c]);
    out.values_b = std::move(sample_b_[c]);
    std::ranges::sort(out.values_a);
    std::ranges::sort(out.values_b);
  }
  return std::move(result_);
}

}  // namespace lockstep::agreement
