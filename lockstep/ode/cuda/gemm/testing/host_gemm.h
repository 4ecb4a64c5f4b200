// The engine cuda_gemm's device as the host plays it: its kernels in the block simulator, matrix products by the CPU in
// the contract's order (bias first, then inputs ascending), so that a whole solve has the bits of the CPU engine.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "lockstep/ode/cuda/gemm/gemm_program.h"
#include "lockstep/ode/cuda/gemm/gemm_runtime.h"

namespace lockstep::ode::cuda {

struct HostGemm {
  bool epilogues = true;  // false: products alone, then a kernel for bias and activation, as for most activations
  int failing_prepares = 0;
  bool failures_are_memory = true;
  bool graphs = true;  // that repeat themselves
  std::int64_t rounds = 0, compactions = 0;
  std::int32_t fewest_columns = 1 << 30;
  // What stands in for a kernel that came as text, by its machine code; `launch` is a GemmLaunch.
  std::map<std::string, std::function<void(const void* launch, bool counts)>> sources;
};

class HostGemmRuntime : public GemmRuntime {
 public:
  explicit HostGemmRuntime(HostGemm& host) : host_(host) {}
  std::string missing() override { return missing_text; }
  std::unique_ptr<GemmStream> open(int device, Fault& fault) override;
  std::unique_ptr<GemmStream> borrow(int device, void* stream, Fault& fault) override;
  std::string missing_text;

 private:
  HostGemm& host_;
};

// One product as the runtime above makes it, for launch.columns of a GemmLaunch with room for `pitch`.
template <class T>
void multiply_on_host(const GemmProgram& program, const DenseProduct& product, std::int64_t columns, std::int64_t pitch,
                      bool epilogue);

// The kernel that plans moves, alone: see plan_moves in round.cuh.
template <class T>
void plan_moves_on_host(const GemmLaunch<T>& launch, std::int32_t target, unsigned seed);

}  // namespace lockstep::ode::cuda
