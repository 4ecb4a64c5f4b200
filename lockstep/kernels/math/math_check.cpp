// Measures the errors and speed of every elementary function; writes the tables of docs/accuracy.md as Markdown.
//
//   math_check float32 [STRIDE] [NAME]   every STRIDE-th float32 (default 1: all 2^32), AVX-512 against AVX2 bit for
//   bit math_check float64 [COUNT] [NAME]    COUNT random float64 (default 1e7) math_check time operations an element,
//   and nanoseconds an element on each instruction set
//
// The truth for float32 is our own float64 function, vectorised, whose errors `float64` measures against long double;
// at every 61st argument it is the standard library's, and the scalar code's bits are compared. Exit code 1 when bits
// differ or a bound is not met.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "lockstep/core/parallel.h"
#include "lockstep/kernels/math/detail/counting_lane.h"
#include "lockstep/kernels/math/detail/function_table.h"
#include "lockstep/kernels/math/detail/reference.h"
#include "lockstep/kernels/math/detail/samples.h"

using namespace lockstep;
using namespace lockstep::math;

namespace {

struct Findings {
  double ulps = 0, at = 0;               // the largest error and its argument
  double absolute = 0, absolute_at = 0;  // the largest error in 2^-p max(1, |x|), p = 24 or 53, where beyond entry.ulps
  uint64_t arguments = 0, over_one_ulp = 0, different_bits = 0, over_bound = 0;

  void add(const Findings& other) {
    if (other.ulps > ulps) ulps = other.ulps, at = other.at;
    if (other.absolute > absolute) absolute = other.absolute, absolute_at = other.absolute_at;
    arguments += other.arguments;
    over_one_ulp += other.over_one_ulp;
    different_bits += other.different_bits;
    over_bound += other.over_bound;
  }
};

template <class T, class R>
void note(const Entry& entry, T x, T y, R truth, double error, Findings& f) {
  if (error > f.ulps) f.ulps = error, f.at = double(x);
  if (error <= entry.ulps) return;
  if (!within_bound<T, R>(entry, x, y, truth, error)) ++f.over_bound;
  const double scale = std::fmax(1.0, std::fabs(double(x))) * double(std::numeric_limits<T>::epsilon()) / 2;
  const double absolute = std::fabs(double(R(y) - truth)) / scale;
  if (absolute > f.absolute) f.absolute = absolute, f.absolute_at = double(x);
}

uint64_t different(const std::vector<float>& a, const std::vector<float>& b) {
  if (std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0) return 0;
  uint64_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    count += std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i]) && (a[i] == a[i] || b[i] == b[i]);
  }
  return count;
}

Findings check_float32(const Entry& entry, uint64_t stride) {
  Findings all;
  std::mutex lock;
  const auto targets = available_cpu_targets();
  const CpuTarget best = best_cpu_target();
  const std::size_t block = 8192;
  const uint64_t blocks = (((uint64_t(1) << 32) + stride - 1) / stride + block - 1) / block;
  const int threads = available_threads();
  Entry wide = entry;
  wide.activation.alpha = double(float(entry.activation.alpha));
  run_on_threads(threads, [&](int thread) {
    Findings mine;
    std::vector<float> x(block), y(block), other(block);
    std::vector<double> wide_x(block), truth(block), error(block);
    for (uint64_t b = uint64_t(thread); b < blocks; b += uint64_t(threads)) {
      const uint64_t first = b * block, count = ((uint64_t(1) << 32) + stride - 1) / stride;
      const std::size_t n = std::size_t(std::min<uint64_t>(block, count - first));
      for (std::size_t i = 0; i < n; ++i) {
        x[i] = std::bit_cast<float>(uint32_t(first + i) * uint32_t(stride));
        wide_x[i] = double(x[i]);
      }
      std::fill(x.begin() + std::ptrdiff_t(n), x.end(), 0.0f);
      evaluate(entry, best, x.data(), y.data(), block);
      for (const CpuTarget target : targets) {
        if (target == best || target == CpuTarget::scalar) continue;
        evaluate(entry, target, x.data(), other.data(), block);
        mine.different_bits += different(y, other);
      }
      evaluate(wide, best, wide_x.data(), truth.data(), n);
      const ErrorSummary summary = float_errors(best, y.data(), truth.data(), error.data(), n);
      mine.arguments += n;
      mine.over_one_ulp += summary.over_one;
      if (summary.largest > std::min(mine.ulps, entry.ulps)) {
        for (std::size_t i = 0; i < n; ++i) {
          if (error[i] > std::min(mine.ulps, entry.ulps))
            note<float, double>(entry, x[i], y[i], truth[i], error[i], mine);
        }
      }
      for (std::size_t i = b % 61; i < n; i += 61) {
        float scalar;
        evaluate_scalar(entry, &x[i], &scalar, 1);
        mine.different_bits += std::bit_cast<uint32_t>(scalar) != std::bit_cast<uint32_t>(y[i]) && scalar == scalar;
        const double exact = reference<float, double>(entry, x[i]);
        const double e = ulp_error<float, double>(y[i], exact);
        note<float, double>(entry, x[i], y[i], exact, e, mine);
      }
    }
    const std::scoped_lock guard(lock);
    all.add(mine);
  });
  return all;
}

Findings check_float64(const Entry& entry, uint64_t count) {
  Findings all;
  std::mutex lock;
  const int threads = available_threads();
  const uint64_t block = 30000, blocks = (count + block - 1) / block;
  run_on_threads(threads, [&](int thread) {
    Findings mine;
    for (uint64_t b = uint64_t(thread); b < blocks; b += uint64_t(threads)) {
      const std::vector<double> x = double_samples(block, 1000 + b);
      std::vector<double> y(x.size()), other(x.size());
      evaluate(entry, best_cpu_target(), x.data(), y.data(), x.size());
      for (const CpuTarget target : available_cpu_targets()) {
        if (target == best_cpu_target() || (target == CpuTarget::scalar && b % 16 != 0)) continue;
        evaluate(entry, target, x.data(), other.data(), x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
          mine.different_bits += std::bit_cast<uint64_t>(y[i]) != std::bit_cast<uint64_t>(other[i]) &&
                                 (y[i] == y[i] || other[i] == other[i]);
        }
      }
      mine.arguments += x.size();
      for (std::size_t i = 0; i < x.size(); ++i) {
        const long double truth = reference<double, long double>(entry, x[i]);
        const double error = ulp_error<double, long double>(y[i], truth);
        mine.over_one_ulp += error > 1;
        note<double, long double>(entry, x[i], y[i], truth, error, mine);
      }
    }
    const std::scoped_lock guard(lock);
    all.add(mine);
  });
  return all;
}

// Entries that call what another entry measures.
bool repeats_another(const Entry& entry) {
  using Kind = ActivationKind;
  const Kind kind = entry.activation.kind;
  if (entry.kind == Entry::Kind::activation) {
    return kind == Kind::tanh || kind == Kind::sigmoid || kind == Kind::softplus || kind == Kind::sin;
  }
  return entry.kind == Entry::Kind::derivative && (kind == Kind::sin || kind == Kind::softplus);
}

template <class F>
bool check(const std::string& only, F&& measure) {
  std::printf(
      "| function | largest error, ulp | at x | share above 1 ulp | bound, ulp | beyond it: largest absolute error, "
      "2^-p max(1, abs x) | at x | arguments | bits differ |\n|---|---|---|---|---|---|---|---|---|\n");
  bool good = true;
  for (const Entry& entry : function_table()) {
    if (only.empty() ? repeats_another(entry) : entry.name != only) continue;
    const Findings f = measure(entry);
    std::printf("| %s | %.3f | %.9g | %.1e | %g%s | ", entry.name.c_str(), f.ulps, f.at,
                double(f.over_one_ulp) / double(f.arguments), entry.ulps, f.over_bound ? " **not met**" : "");
    if (f.absolute > 0) {
      std::printf("%.2f (bound %g) | %.9g", f.absolute, entry.absolute, f.absolute_at);
    } else {
      std::printf(" | ");
    }
    std::printf(" | %" PRIu64 " | %" PRIu64 " |\n", f.arguments, f.different_bits);
    std::fflush(stdout);
    good = good && f.over_bound == 0 && f.different_bits == 0;
  }
  return good;
}

// Nanoseconds an element over 4,096 numbers that lie in L1.
template <class T>
double nanoseconds(const Entry& entry, CpuTarget target) {
  constexpr std::size_t n = 4096;
  std::vector<T> x(n), y(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = T(-6 + 12 * (double(i) + 0.5) / n);
  const bool positive = entry.name.starts_with("log") || entry.name.starts_with("pow(x");
  if (positive) {
    for (T& v : x) v = std::exp(v);
  }
  double best = 1e30;
  for (int repeat = 0; repeat < 30; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < 4; ++k) evaluate(entry, target, x.data(), y.data(), n);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best / 4 / n * 1e9;
}

void time_all() {
  std::printf("| function | operations, of them divisions, float32 |");
  for (const CpuTarget t : available_cpu_targets()) std::printf(" %s, ns |", std::string(to_string(t)).c_str());
  std::printf(" operations, of them divisions, float64 |");
  for (const CpuTarget t : available_cpu_targets()) std::printf(" %s, ns |", std::string(to_string(t)).c_str());
  std::printf("\n|---|---|");
  for (std::size_t i = 0; i < 2 * available_cpu_targets().size() + 1; ++i) std::printf("---|");
  std::printf("\n");
  for (const Entry& entry : function_table()) {
    const auto f32 = count_operations<float>(entry), f64 = count_operations<double>(entry);
    std::printf("| %s | %d, %d |", entry.name.c_str(), f32.all, f32.divisions);
    for (const CpuTarget t : available_cpu_targets()) std::printf(" %.3f |", nanoseconds<float>(entry, t));
    std::printf(" %d, %d |", f64.all, f64.divisions);
    for (const CpuTarget t : available_cpu_targets()) std::printf(" %.3f |", nanoseconds<double>(entry, t));
    std::printf("\n");
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const std::string only = argc > 3 ? argv[3] : "";
  if (what == "time") {
    time_all();
    return 0;
  }
  if (what == "float32") {
    const uint64_t stride = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
    return check(only, [&](const Entry& entry) { return check_float32(entry, std::max<uint64_t>(stride, 1)); }) ? 0 : 1;
  }
  if (what == "float64") {
    const uint64_t count = argc > 2 ? uint64_t(std::strtod(argv[2], nullptr)) : 10000000;
    return check(only, [&](const Entry& entry) { return check_float64(entry, count); }) ? 0 : 1;
  }
  std::fprintf(stderr, "usage: math_check float32 [STRIDE] [NAME] | float64 [COUNT] [NAME] | time\n");
  return 2;
}
