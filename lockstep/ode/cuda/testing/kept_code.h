// Kernels that come as text, where no compiler is: what the cache keeps for one.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/ode/cuda/compile.h"

namespace lockstep::ode::cuda {

// A cache of its own while it lives.
class KeptCode {
 public:
  KeptCode() { setenv("XDG_CACHE_HOME", folder_.c_str(), 1); }
  ~KeptCode() {
    unsetenv("XDG_CACHE_HOME");
    std::filesystem::remove_all(folder_);
  }
  KeptCode(const KeptCode&) = delete;
  KeptCode& operator=(const KeptCode&) = delete;

  // From now on `code` is what a text was compiled to for the runtime's first device.
  void keep(Runtime& runtime, const KernelSource& source, const std::string& code) {
    Fault fault;
    keep_kernel(kept_kernel_path(source, runtime.devices(fault).front()), std::vector<char>(code.begin(), code.end()));
  }

 private:
  std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / ("lockstep_kept_code_" + std::to_string(::getpid()));
};

}  // namespace lockstep::ode::cuda
