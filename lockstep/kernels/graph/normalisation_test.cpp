// Layer normalisation of features that lie near each other and far from 0: it is of their spread, and errs by no more.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "lockstep/kernels/graph/derivative.h"
#include "lockstep/kernels/graph/plan.h"
#include "lockstep/kernels/graph/testing/random_graph.h"

namespace lockstep::graph {
namespace {

using testing::Builder;

constexpr double kEpsilon = 1e-5;
constexpr std::size_t kWidths[] = {1, 2, 4, 32, 128, 1000};
constexpr double kOffsets[] = {0, 1, 30, 300, 3e4, 3e6, -3e6};

Graph normalisation(std::size_t width, double scale = 1, double shift = 0) {
  Builder b;
  b.input(width);
  b.output(b.add(LayerNormalise{std::vector<double>(width, scale), std::vector<double>(width, shift), kEpsilon}, {0}));
  return b.graph;
}

template <class T>
using Rows = std::vector<std::vector<T>>;

// The last output port's row for each sample.
template <class T>
std::vector<T> last_output(const Graph& graph, const Rows<T>& in, std::size_t samples, CpuTarget target) {
  const auto plan = GraphPlan<T>::compile(graph, target);
  std::vector<MatrixView<const T>> from;
  std::vector<MatrixView<T>> to;
  for (std::size_t p = 0; p < in.size(); ++p)
    from.push_back(MatrixView<const T>::row_major(in[p].data(), samples, graph.inputs[p].width));
  for (const Port& port : graph.outputs) to.push_back(MatrixView<T>::row_major(nullptr, samples, port.width));
  std::vector<T> out(samples * graph.outputs.back().width);
  to.back() = MatrixView<T>::row_major(out.data(), samples, graph.outputs.back().width);
  plan.evaluate(from, to);
  return out;
}

// Exact but for long double's rounding, which 300 +- 1 does not reach either: differences from the first are exact.
struct Exact {
  std::vector<long double> normal;
  long double deviation = 0, farthest = 0;  // sqrt(variance + epsilon); |x - x[0]| at most, over that

  template <class T>
  explicit Exact(const T* x, std::size_t width) {
    long double mean = 0, squares = 0;
    for (std::size_t i = 0; i < width; ++i) {
      normal.push_back(static_cast<long double>(x[i]) - x[0]);
      farthest = std::max(farthest, std::fabs(normal[i]));
      mean += normal[i] / static_cast<long double>(width);
    }
    for (long double& d : normal) d -= mean, squares += d * d;
    deviation = std::sqrt(squares / static_cast<long double>(width) + static_cast<long double>(kEpsilon));
    for (long double& d : normal) d /= deviation;
    farthest /= deviation;
  }
};

// In units u = epsilon / 2, of a normal z, n features, and D the farthest from the first, all over the deviation:
// x - x[0] is off by D at most, what is subtracted from all of them (the mean, and then what it left) by the n
// roundings of a sum of n terms of mean size 1, each d by |z| for either difference; the sum of squares relatively by
// n, and by 2 (D + 1) for the d in it, of which the root has half; ten more for the quotients, the root and the last
// two products.
long double bound_of_normal(long double z, std::size_t width, long double farthest) {
  const auto n = static_cast<long double>(width);
  return n + farthest + 3 + std::fabs(z) * (n / 2 + farthest + 10);
}

template <class T>
std::vector<T> rows_around(double offset, std::size_t samples, std::size_t width, std::mt19937& random) {
  std::normal_distribution<double> normal;
  std::vector<T> x(samples * width);
  for (T& v : x) v = static_cast<T>(offset + normal(random));
  return x;
}

template <class T>
void expect_errors_of_the_spread(std::size_t samples, double odd_first) {
  const long double u = std::numeric_limits<T>::epsilon() / 2;
  std::mt19937 random(5);
  for (const std::size_t width : kWidths) {
    for (const double offset : kOffsets) {
      SCOPED_TRACE(std::to_string(width) + " features around " + std::to_string(offset));
      std::vector<T> x = rows_around<T>(offset, samples, width, random);
      for (std::size_t s = 0; s < samples; ++s) x[s * width] += static_cast<T>(odd_first);
      const auto y = last_output<T>(normalisation(width), {x}, samples, best_cpu_target());
      for (std::size_t s = 0; s < samples; ++s) {
        const Exact exact(&x[s * width], width);
        for (std::size_t i = 0; i < width; ++i) {
          const long double z = exact.normal[i];
          ASSERT_LE(std::fabs(y[s * width + i] - z), u * bound_of_normal(z, width, exact.farthest))
              << "sample " << s << ", feature " << i << ": " << y[s * width + i] << " for " << z;
        }
      }
    }
  }
}

TEST(Normalisation, errs_by_roundings_of_the_spread_whatever_the_offset) {
  for (const std::size_t samples : {1, 8, 40}) {  // by sample and by tile
    expect_errors_of_the_spread<float>(samples, 0);
    expect_errors_of_the_spread<double>(samples, 0);
  }
}

TEST(Normalisation, errs_no_more_where_the_first_feature_is_the_odd_one) {
  for (const std::size_t samples : {1, 40}) {
    expect_errors_of_the_spread<float>(samples, 1e3);
    expect_errors_of_the_spread<double>(samples, 1e3);
  }
}

TEST(Normalisation, equal_features_are_the_shift_exactly) {
  for (const std::size_t width : kWidths) {
    for (const std::size_t samples : {1, 40}) {
      const std::vector<float> x(samples * width, 3000000.25F);
      for (const float y : last_output<float>(normalisation(width, 2, 0.3125), {x}, samples, best_cpu_target()))
        ASSERT_EQ(y, 0.3125F) << width << " features";
    }
  }
}

// As in every implementation: a mean of an infinity is one, and no difference from it is a number.
TEST(Normalisation, rows_that_hold_no_numbers_are_nan_and_their_neighbours_are_not) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const std::size_t width : {2, 5, 33}) {
    for (const std::size_t samples : {3, 40}) {
      for (const CpuTarget target : available_cpu_targets()) {
        for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
          for (const std::size_t at : {std::size_t{0}, width / 2, width - 1}) {
            std::mt19937 random(6);
            std::vector<float> x = rows_around<float>(300, samples, width, random);
            x[width + at] = bad;
            const auto y = last_output<float>(normalisation(width), {x}, samples, target);
            for (std::size_t i = 0; i < y.size(); ++i)
              ASSERT_EQ(std::isnan(y[i]), i / width == 1) << bad << " at " << at << " of " << width << ": " << y[i];
          }
        }
      }
    }
  }
}

// r (t - mean(t) - z mean(z t)) with z and r as above but without what the mean left, so that z is off by n (1 + D)
// there. Each of the three terms is at most |t| (1, 1, |z|), and off by as much as z or by its own n roundings.
TEST(Normalisation, derivatives_err_by_roundings_of_the_spread_whatever_the_offset) {
  constexpr std::size_t kSamples = 40;
  const long double u = std::numeric_limits<float>::epsilon() / 2;
  std::mt19937 random(7);
  for (const bool reverse : {false, true}) {
    for (const std::size_t width : kWidths) {
      for (const double offset : kOffsets) {
        SCOPED_TRACE(std::to_string(width) + " features around " + std::to_string(offset));
        const Graph graph = normalisation(width);
        const auto x = rows_around<float>(offset, kSamples, width, random);
        const auto t = rows_around<float>(0, kSamples, width, random);
        const auto out =
            last_output<float>(reverse ? vjp_graph(graph) : jvp_graph(graph), {x, t}, kSamples, best_cpu_target());
        for (std::size_t s = 0; s < kSamples; ++s) {
          const Exact exact(&x[s * width], width);
          const auto n = static_cast<long double>(width);
          long double mean = 0, along = 0, largest = 0;
          for (std::size_t i = 0; i < width; ++i) {
            mean += t[s * width + i] / n, along += exact.normal[i] * t[s * width + i] / n;
            largest = std::max(largest, std::fabs(static_cast<long double>(t[s * width + i])));
          }
          for (std::size_t i = 0; i < width; ++i) {
            const long double z = exact.normal[i];
            const long double expected = (t[s * width + i] - mean - z * along) / exact.deviation;
            const long double of_z = n * (1 + exact.farthest) + bound_of_normal(z, width, exact.farthest);
            ASSERT_LE(std::fabs(out[s * width + i] - expected),
                      u * largest * (4 + 3 * std::fabs(z)) * of_z / exact.deviation)
                << "sample " << s << ", feature " << i << ": " << out[s * width + i] << " for " << expected;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::graph
