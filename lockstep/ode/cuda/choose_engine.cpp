#include "lockstep/ode/cuda/choose_engine.h"

#include <algorithm>

#include "lockstep/ode/cuda/compile.h"
#include "lockstep/ode/cuda/gemm/gemm_program.h"
#include "lockstep/ode/cuda/gemm/gemm_runtime.h"
#include "lockstep/ode/cuda/load.h"

namespace lockstep::ode::cuda {
namespace {

std::size_t widest_layer(const Problem& problem) {
  std::size_t width = 0;
  for (const FunctionPart& part : problem.rhs->parts()) {
    const auto* net = std::get_if<NetPart>(&part.what);
    if (net == nullptr) continue;
    for (const DenseLayer& layer : net->mlp->layers) width = std::max({width, layer.inputs, layer.outputs});
  }
  return width;
}

// What cuda_gemm lacks on this machine; empty when nothing.
std::string missing_for_gemm() {
  GemmRuntime* const runtime = load_gemm_runtime();
  return runtime == nullptr ? "this build of the CUDA component has no cuda_gemm" : runtime->missing();
}

std::vector<DeviceInfo> devices_of(const Options& options) {
  std::vector<DeviceInfo> devices = load_runtime().devices;
  if (options.device.is_automatic()) {
    devices.resize(std::min<std::size_t>(devices.size(), 1));
  } else {
    std::erase_if(devices, [&](const DeviceInfo& device) {
      return std::none_of(options.device.shares.begin(), options.device.shares.end(), [&](const DeviceShare& share) {
        return share.kind == DeviceShare::Kind::cuda && share.index == device.index;
      });
    });
  }
  return devices;
}

// Why the kernels that come as text cannot be had on this machine, for either engine.
std::optional<Obstacle> cannot_compile(const std::optional<KernelSource>& source, const Options& options) {
  return source ? compiler_obstacle(*source, devices_of(options)) : std::nullopt;
}

std::optional<KernelSource> fused_source(const Problem& problem, const Options& options) {
  if (!comes_as_text(problem, options)) return std::nullopt;
  return options.precision == Precision::f32 ? lower_problem<float>(problem, options).source
                                             : lower_problem<double>(problem, options).source;
}

EngineDecision by_cuda_fused(const Problem& problem, const Options& options, bool on_a_device,
                             std::optional<Obstacle> found, std::string note = {}) {
  if (!found && on_a_device) found = cannot_compile(fused_source(problem, options), options);
  return {EngineChoice::cuda_fused, std::move(found), std::move(note)};
}

}  // namespace

EngineDecision decide_engine(const Problem& problem, const Options& options, bool on_a_device) {
  if (options.engine == EngineChoice::cuda_fused)
    return by_cuda_fused(problem, options, on_a_device, obstacle(problem, options));
  auto for_fused = obstacle(problem, options);
  auto for_gemm = gemm_obstacle(problem, options);
  const bool asked = options.engine == EngineChoice::cuda_gemm;
  // The bits must not depend on how the ensemble is cut: several shares take the engine that has the same everywhere.
  const bool better = widest_layer(problem) > kWidestForFused && options.device.shares.size() <= 1;
  const bool wanted = asked || (!for_gemm && (for_fused || better));
  if (!wanted) return by_cuda_fused(problem, options, on_a_device, std::move(for_fused));
  if (on_a_device && !for_gemm) {
    if (std::string missing = missing_for_gemm(); !missing.empty()) {
      if (!asked && !for_fused)
        return by_cuda_fused(problem, options, on_a_device, std::nullopt, "no cuda_gemm: " + missing);
      for_gemm = Obstacle{asked ? "options.engine" : "problem.rhs",
                          asked ? "cuda_gemm" : "a net for cuda_gemm alone, without cuBLASLt",
                          "cuBLASLt, which cuda_gemm needs: " + missing,
                          "pip install nvidia-cublas in the active environment, or set LOCKSTEP_CUBLASLT_LIBRARY"};
    } else {
      for_gemm = cannot_compile(gemm_source(problem, options), options);
    }
  }
  return {EngineChoice::cuda_gemm, std::move(for_gemm), ""};
}

}  // namespace lockstep::ode::cuda
