// Finds the CUDA component (liblockstep_cuda.so) when it is first asked for: nothing of CUDA is linked or loaded
// before.
#pragma once

#include <string>

#include "lockstep/ode/cuda/runtime.h"

namespace lockstep::ode::cuda {

struct LoadedRuntime {
  Runtime* runtime = nullptr;  // null: see `missing`
  std::vector<DeviceInfo> devices;
  std::string missing;  // what is not there, for people: "no CUDA driver on this machine"
};

// Looked for once, as kernels/cuda/component.h says. runtime is set only where devices has an entry.
const LoadedRuntime& load_runtime();

// Gives load_runtime() another answer, for tests; null restores the machine's own.
void replace_runtime(const LoadedRuntime* other);

}  // namespace lockstep::ode::cuda
