// The compiled kernels as the device component launches them: defined by kernels_f32.cu and kernels_f64.cu.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace lockstep::ode::cuda {

struct CompiledKernel {
  std::string_view name;
  const void* function;
  int threads;                                       // a block
  std::size_t (*shared_bytes)(const void* launch);   // of dynamic shared memory
  std::int64_t (*trajectories)(const void* launch);  // as many threads have work
};

void add_kernels_f32(std::vector<CompiledKernel>& kernels);
void add_kernels_f64(std::vector<CompiledKernel>& kernels);
void add_tile_kernel_f32(std::vector<CompiledKernel>& kernels);
void add_tile_kernel_f64(std::vector<CompiledKernel>& kernels);
void add_tensor_tile_kernels(std::vector<CompiledKernel>& kernels);

}  // namespace lockstep::ode::cuda
