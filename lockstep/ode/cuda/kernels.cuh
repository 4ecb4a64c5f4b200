// A kernel round each body of kernel_list.h.
#pragma once

#include "lockstep/ode/cuda/advance.cuh"
#include "lockstep/ode/cuda/kernel_list.h"
#include "lockstep/ode/cuda/kernels.h"

namespace lockstep::ode::cuda {

template <class Body>
__global__ void __launch_bounds__(Body::kThreads, Body::kBlocks)
    advance_kernel(const __grid_constant__ Launch<typename Body::T> launch) {
  extern __shared__ __align__(128) unsigned char advance_shared[];
  advance<Body>(launch, advance_shared);
}

// Never launched: sass_test.py looks whether the compiler contracted the two roundings into one.
template <class T>
__global__ void contraction_probe(const T* a, const T* b, const T* c, T* out) {
  out[threadIdx.x] = a[threadIdx.x] * b[threadIdx.x] + c[threadIdx.x];
}

template <class Body>
CompiledKernel describe_kernel(std::string_view name) {
  using T = typename Body::T;
  return {name, reinterpret_cast<const void*>(advance_kernel<Body>), Body::kThreads,
          [](const void* launch) {
            const auto wanted = Body::Derivative::shared_weights(*static_cast<const Launch<T>*>(launch));
            return static_cast<std::size_t>(wanted.count) * sizeof(T);
          },
          [](const void* launch) { return static_cast<const Launch<T>*>(launch)->ensemble.count; }};
}

struct AddKernel {
  std::vector<CompiledKernel>& kernels;
  template <class Body>
  void operator()(std::string_view name) const {
    kernels.push_back(describe_kernel<Body>(name));
  }
};

}  // namespace lockstep::ode::cuda
