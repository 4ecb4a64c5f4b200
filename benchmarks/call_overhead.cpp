// What a call costs beside its arithmetic: a net of one weight, evaluated for one sample, from C++ and through the C
// interface, and beside it 32-128-128-31 relu. Prints JSON lines for call_overhead.py: {"net", "way", "batch", "ns"},
// ns a call, the least of many short runs.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <vector>

#include "bindings/c/lockstep.h"
#include "lockstep/core/aligned_buffer.h"
#include "lockstep/nn/compile.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/safetensors.h"

namespace {

using namespace lockstep;

template <class Call>
double least_ns(Call call) {
  using Clock = std::chrono::steady_clock;
  int calls = 1;
  double best = 1e30;
  for (int run = 0; run < 200;) {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    const double ns = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
    if (ns < 1e5 && calls < 1 << 20) {  // runs of at least 0.1 ms, so that the clock does not count
      calls *= 2;
      continue;
    }
    best = std::min(best, ns / calls);
    ++run;
    if (ns > 1e7) run += 20;
  }
  return best;
}

void print(const char* net, const char* way, std::size_t batch, double ns) {
  std::printf("{\"net\": \"%s\", \"way\": \"%s\", \"batch\": %zu, \"ns\": %.4g}\n", net, way, batch, ns);
  std::fflush(stdout);
}

void measure(const char* name, const nn::Model& model, const char* path, const std::vector<std::size_t>& batches) {
  const auto plan = nn::compile<float>(model);
  lockstep_model* c_model = nullptr;
  lockstep_plan* c_plan = nullptr;
  const bool has_c = !lockstep_model_load(path, nullptr, &c_model) && !lockstep_compile(c_model, nullptr, &c_plan);
  AlignedBuffer<std::byte> workspace(plan.workspace_bytes());
  for (const std::size_t batch : batches) {
    const std::size_t inputs = plan.inputs(), outputs = plan.outputs();
    std::vector<float> x(batch * inputs, 0.5f), y(batch * outputs);
    const MatrixView<const float> in{x.data(), batch, inputs, static_cast<std::ptrdiff_t>(inputs), 1};
    const auto out = MatrixView<float>::row_major(y.data(), batch, outputs);
    print(name, "C++", batch, least_ns([&] { plan.evaluate(in, out); }));
    print(name, "C++, own workspace", batch,
          least_ns([&] { plan.evaluate(in, out, std::span(workspace.data(), workspace.size())); }));
    if (!has_c) continue;
    const auto wide = static_cast<std::ptrdiff_t>(inputs), narrow = static_cast<std::ptrdiff_t>(outputs);
    print(name, "C", batch,
          least_ns([&] { lockstep_evaluate_f32(c_plan, batch, x.data(), wide, 1, y.data(), narrow, 1, nullptr, 0); }));
  }
  lockstep_plan_free(c_plan);
  lockstep_model_free(c_model);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: call_overhead OCEAN_MODEL SCRATCH_FILE\n");
    return 2;
  }
  Mlp one;
  one.layers.push_back(
      {.inputs = 1, .outputs = 1, .weights = {0.5}, .bias = {0.25}, .activation = {ActivationKind::relu}});
  const nn::Model model = nn::Model::from_mlp(one);
  nn::write_safetensors(argv[2], model, Existing::replace);
  measure("one weight", model, argv[2], {1});
  measure("32-128-128-31 relu", nn::load(argv[1]), argv[1], {1, 32, 4096});
}
