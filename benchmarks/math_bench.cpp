// Elementary functions and activations over 4,096 numbers in L1, in nanoseconds an element, beside the standard
// library's scalar functions. Names: PRECISION/TARGET/FUNCTION. Try --benchmark_filter='f32/.*/tanh$'.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "lockstep/core/precision.h"
#include "lockstep/kernels/math/detail/function_table.h"

namespace lockstep::benchmarks {
namespace {

constexpr std::size_t kCount = 4096;

// Evenly within +-6; their exponentials for functions of positive numbers.
template <class T>
std::vector<T> arguments(const std::string& name) {
  const bool positive = name.starts_with("log") || name.starts_with("pow(x");
  std::vector<T> x(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const double v = -6 + 12 * (static_cast<double>(i) + 0.5) / kCount;
    x[i] = static_cast<T>(positive ? std::exp(v) : v);
  }
  return x;
}

void report(benchmark::State& state) {
  state.counters["ns_per_element"] = benchmark::Counter(
      static_cast<double>(kCount) * 1e-9, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

template <class T>
void ours(benchmark::State& state, const math::Entry& entry, CpuTarget target) {
  const std::vector<T> x = arguments<T>(entry.name);
  std::vector<T> y(kCount);
  for (auto _ : state) {
    math::evaluate(entry, target, x.data(), y.data(), kCount);
    benchmark::ClobberMemory();
  }
  report(state);
}

template <class T>
void standard_library(benchmark::State& state, const std::string& name, T (*function)(T)) {
  const std::vector<T> x = arguments<T>(name);
  std::vector<T> y(kCount);
  for (auto _ : state) {
    for (std::size_t i = 0; i < kCount; ++i) y[i] = function(x[i]);
    benchmark::ClobberMemory();
  }
  report(state);
}

template <class T>
void register_standard_library(const std::string& precision) {
  struct Function {
    const char* name;
    T (*call)(T);
  };
  for (const Function f :
       {Function{"exp", std::exp}, Function{"expm1", std::expm1}, Function{"exp2", std::exp2},
        Function{"log", std::log}, Function{"log2", std::log2}, Function{"tanh", std::tanh}, Function{"erf", std::erf},
        Function{"sin", std::sin}, Function{"cos", std::cos}, Function{"atan", std::atan}}) {
    benchmark::RegisterBenchmark((precision + "/libm/" + f.name).c_str(),
                                 [f](benchmark::State& state) { standard_library<T>(state, f.name, f.call); });
  }
}

const int kRegistered = [] {
  for (const math::Entry& entry : math::function_table()) {
    for (const CpuTarget target : available_cpu_targets()) {
      const std::string name = std::string(to_string(target)) + "/" + entry.name;
      benchmark::RegisterBenchmark(("f32/" + name).c_str(),
                                   [&entry, target](benchmark::State& state) { ours<float>(state, entry, target); });
      benchmark::RegisterBenchmark(("f64/" + name).c_str(),
                                   [&entry, target](benchmark::State& state) { ours<double>(state, entry, target); });
    }
  }
  register_standard_library<float>("f32");
  register_standard_library<double>("f64");
  return 0;
}();

}  // namespace
}  // namespace lockstep::benchmarks
