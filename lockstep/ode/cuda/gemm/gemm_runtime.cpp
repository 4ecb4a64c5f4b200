#include "lockstep/ode/cuda/gemm/gemm_runtime.h"

#include "lockstep/kernels/cuda/component.h"

namespace lockstep::ode::cuda {
namespace {

GemmRuntime* replacement = nullptr;

}  // namespace

GemmRuntime* load_gemm_runtime() {
  if (replacement != nullptr) return replacement;
  const auto entry = reinterpret_cast<GemmRuntimeEntry>(lockstep::cuda::component_entry(kGemmRuntimeEntry));
  return entry == nullptr ? nullptr : entry(kGemmRuntimeVersion);
}

void replace_gemm_runtime(GemmRuntime* other) { replacement = other; }

}  // namespace lockstep::ode::cuda
