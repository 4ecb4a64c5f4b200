#include "lockstep/ode/cuda/load.h"

#include "lockstep/kernels/cuda/component.h"

namespace lockstep::ode::cuda {
namespace {

const LoadedRuntime* replacement = nullptr;

LoadedRuntime load() {
  LoadedRuntime result;
  result.missing = lockstep::cuda::component().missing;
  if (!result.missing.empty()) return result;
  const auto entry = reinterpret_cast<RuntimeEntry>(lockstep::cuda::component_entry(kRuntimeEntry));
  Runtime* const runtime = entry == nullptr ? nullptr : entry(kRuntimeVersion);
  if (runtime == nullptr) {
    result.missing = "liblockstep_cuda.so is of another version of Lockstep";
    return result;
  }
  Fault fault;
  result.devices = runtime->devices(fault);
  if (result.devices.empty()) {
    result.missing = fault.text.empty() ? "no CUDA device" : fault.text;
    return result;
  }
  result.runtime = runtime;
  return result;
}

}  // namespace

const LoadedRuntime& load_runtime() {
  if (replacement != nullptr) return *replacement;
  static const LoadedRuntime loaded = load();
  return loaded;
}

void replace_runtime(const LoadedRuntime* other) { replacement = other; }

}  // namespace lockstep::ode::cuda
