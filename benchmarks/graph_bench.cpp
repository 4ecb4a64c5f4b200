// Any model file evaluated in batches: nanoseconds a sample, and the share of the core's fused multiply-add peak that
// its layers alone take. Usage: graph_bench MODEL [--precision f64] [--seconds 0.5] BATCH... ; prints a JSON line for
// each batch.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <variant>
#include <vector>

#include "benchmarks/fma_peak.h"
#include "lockstep/core/error.h"
#include "lockstep/core/precision.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/net_plan.h"

namespace {

using namespace lockstep;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <class T>
void measure(const nn::NetPlan<T>& plan, double multiplications, std::size_t batch, double seconds) {
  std::mt19937 random(1);
  std::normal_distribution<T> normal;
  std::vector<std::vector<T>> x, y;
  std::vector<MatrixView<const T>> in;
  std::vector<MatrixView<T>> out;
  for (const auto& port : plan.inputs()) {
    x.emplace_back(batch * port.width);
    for (T& value : x.back()) value = normal(random);
  }
  for (const auto& port : plan.outputs()) y.emplace_back(batch * port.width);
  for (std::size_t i = 0; i < x.size(); ++i) {
    in.push_back(MatrixView<const T>::row_major(x[i].data(), batch, plan.inputs()[i].width));
  }
  for (std::size_t i = 0; i < y.size(); ++i) {
    out.push_back(MatrixView<T>::row_major(y[i].data(), batch, plan.outputs()[i].width));
  }
  plan.evaluate(in, out);
  double best = std::numeric_limits<double>::infinity();
  const double begin = now();
  while (now() - begin < seconds) {
    const double start = now();
    plan.evaluate(in, out);
    best = std::min(best, now() - start);
  }
  const double peak = benchmarks::fma_peak(kPrecisionOf<T>, plan.cpu_target());
  const double each = best * 1e9 / static_cast<double>(batch);
  std::printf("{\"batch\": %zu, \"ns\": %.1f, \"share_of_peak\": %.3f}\n", batch, each,
              2 * multiplications / each / peak);
}

template <class T>
void measure_all(const nn::Model& model, const std::vector<std::size_t>& batches, double seconds) {
  double multiplications = 0;
  for (const nn::Node& node : model.nodes) {
    if (const auto* dense = std::get_if<nn::Dense>(&node.operation)) {
      multiplications += static_cast<double>(dense->weights.size());
    }
  }
  const auto plan = nn::NetPlan<T>::compile(model);
  std::fprintf(stderr, "%s\n", plan.description().c_str());
  for (const std::size_t batch : batches) measure(plan, multiplications, batch, seconds);
}

}  // namespace

int main(int argc, char** argv) {
  const char* precision = "f32";
  double seconds = 1;
  std::vector<std::size_t> batches;
  for (int i = 2; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (more && std::strcmp(argv[i], "--precision") == 0) {
      precision = argv[++i];
    } else if (more && std::strcmp(argv[i], "--seconds") == 0) {
      seconds = std::strtod(argv[++i], nullptr);
    } else {
      batches.push_back(std::strtoull(argv[i], nullptr, 10));
    }
  }
  const bool f64 = std::strcmp(precision, "f64") == 0;
  if (batches.empty() || (!f64 && std::strcmp(precision, "f32") != 0)) {
    std::fprintf(stderr, "usage: graph_bench MODEL [--precision f32|f64] [--seconds SECONDS] BATCH...\n");
    return 2;
  }
  try {
    const nn::Model model = nn::load(argv[1]);
    (f64 ? measure_all<double> : measure_all<float>)(model, batches, seconds);
  } catch (const Error& error) {
    std::fprintf(stderr, "graph_bench: %s\n", error.what());
    return 1;
  }
}
