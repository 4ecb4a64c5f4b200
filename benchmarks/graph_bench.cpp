// Any model file evaluated in batches: nanoseconds a sample, and the share of the core's fused multiply-add peak that
// its layers alone take. Usage: graph_bench MODEL BATCH... ; prints a JSON line for each batch.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <variant>
#include <vector>

#include "benchmarks/fma_peak.h"
#include "lockstep/core/error.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/net_plan.h"

namespace {

using namespace lockstep;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void measure(const nn::NetPlan<float>& plan, double multiplications, std::size_t batch) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> x, y;
  std::vector<MatrixView<const float>> in;
  std::vector<MatrixView<float>> out;
  for (const auto& port : plan.inputs()) {
    x.emplace_back(batch * port.width);
    for (float& value : x.back()) value = normal(random);
  }
  for (const auto& port : plan.outputs()) y.emplace_back(batch * port.width);
  for (std::size_t i = 0; i < x.size(); ++i) {
    in.push_back(MatrixView<const float>::row_major(x[i].data(), batch, plan.inputs()[i].width));
  }
  for (std::size_t i = 0; i < y.size(); ++i) {
    out.push_back(MatrixView<float>::row_major(y[i].data(), batch, plan.outputs()[i].width));
  }
  plan.evaluate(in, out);
  double best = std::numeric_limits<double>::infinity();
  const double begin = now();
  while (now() - begin < 1.0) {
    const double start = now();
    plan.evaluate(in, out);
    best = std::min(best, now() - start);
  }
  const double peak = benchmarks::fma_peak(Precision::f32, plan.cpu_target());
  const double each = best * 1e9 / static_cast<double>(batch);
  std::printf("{\"batch\": %zu, \"ns\": %.1f, \"share_of_peak\": %.3f}\n", batch, each,
              2 * multiplications / each / peak);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: graph_bench MODEL BATCH...\n");
    return 2;
  }
  try {
    const nn::Model model = nn::load(argv[1]);
    double multiplications = 0;
    for (const nn::Node& node : model.nodes) {
      if (const auto* dense = std::get_if<nn::Dense>(&node.operation)) {
        multiplications += static_cast<double>(dense->weights.size());
      }
    }
    const auto plan = nn::NetPlan<float>::compile(model);
    std::fprintf(stderr, "%s\n", plan.description().c_str());
    for (int i = 2; i < argc; ++i) measure(plan, multiplications, std::strtoull(argv[i], nullptr, 10));
  } catch (const Error& error) {
    std::fprintf(stderr, "graph_bench: %s\n", error.what());
    return 1;
  }
}
