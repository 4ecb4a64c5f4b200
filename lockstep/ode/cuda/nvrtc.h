// NVIDIA's compiler inside a program (NVRTC), opened when it is first needed: nothing links it.
#pragma once

#include <string>
#include <vector>

#include "lockstep/ode/cuda/kernel_source.h"

namespace lockstep::ode::cuda {

struct Nvrtc {
  std::string version;  // "13.0"
  std::string missing;  // not empty: it is not there, and what was tried

  // Machine code for a compute capability such as 90, from CUDA C++ that may include embedded_headers(). Throws Error
  // (invalid_argument) with the first lines of the compiler's log where the text does not compile, (unsupported) where
  // the compiler is missing or does not know the architecture.
  std::vector<char> compile(const KernelSource& source, int architecture) const;
};

// Looked for once: the file that LOCKSTEP_NVRTC_LIBRARY names, else where the loader looks, in the toolkit's usual
// folders, and among the Python packages of the environment that VIRTUAL_ENV or CONDA_PREFIX names.
const Nvrtc& load_nvrtc();
// A test's own while that is set; null: the machine's again.
void replace_nvrtc(const Nvrtc* other);

// What to do where it is missing.
inline constexpr const char* kNvrtcRemedy =
    "install the CUDA toolkit, or pip install nvidia-cuda-nvrtc in an active environment, or name the file in "
    "LOCKSTEP_NVRTC_LIBRARY";

// The options that every text is compiled with: those of the same bits.
const std::vector<std::string>& nvrtc_options();

}  // namespace lockstep::ode::cuda
