// The engine cuda_gemm's work for one number of columns: rounds of matrix products and the kernels round them, queued
// on any stream, captured or not. For the CUDA component alone.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/ode/cuda/gemm/gemm_kernels.h"
#include "lockstep/ode/cuda/gemm/gemm_launch.h"
#include "lockstep/ode/cuda/gemm/product.cuh"

namespace lockstep::ode::cuda {

Fault fault_of(cudaError_t error, std::string where);

class GemmPass {
 public:
  // `launch` is a GemmLaunch<float> or <double>, as the program says, of which so many columns are in use; own_advance
  // a kernel that came as text, null without one. Queues the copy that its kernels read, number `level` of the launch's
  // own. Chooses how products are made; `fault` receives what went wrong.
  GemmPass(cublasLtHandle_t handle, cudaStream_t stream, const GemmProgram& program, const void* launch,
           std::int32_t columns, std::size_t level, const void* own_advance, Fault& fault);

  std::int32_t columns() const { return columns_; }
  std::int32_t* busy() const;
  unsigned long long* counter() const;
  std::string description() const;

  // Each only queues, and gives what went wrong first.
  Fault start(cudaStream_t stream) const;
  Fault start(cudaStream_t stream, const void* launch) const;  // with the ensemble of another launch
  Fault rounds(cudaStream_t stream) const;
  Fault compact(cudaStream_t stream, std::int32_t target) const;
  // The ends of a pass, and what comes before a repetition: see gemm_kernels.h.
  Fault count(cudaStream_t stream) const;
  Fault enter(cudaStream_t stream, std::int32_t floor, cudaGraphConditionalHandle again) const;
  Fault repeat(cudaStream_t stream, std::int32_t floor, cudaGraphConditionalHandle again) const;

  // Columns of a launch, and trajectories of its ensemble.
  static std::int32_t columns_of(const GemmProgram& program, const void* launch);
  static std::int64_t count_of(const GemmProgram& program, const void* launch);

 private:
  using Launch = std::variant<GemmLaunch<float>, GemmLaunch<double>>;
  static Launch copy(const GemmProgram& program, const void* launch);
  GemmKernels kernels() const { return program_.float64 ? gemm_kernels<double>() : gemm_kernels<float>(); }
  Fault launch_columns(cudaStream_t stream, const void* kernel, void* argument, std::int32_t columns) const;
  Fault activate(cudaStream_t stream, const Product& product) const;

  GemmProgram program_;
  Launch launch_;
  void* on_device_ = nullptr;  // its copy
  std::int32_t columns_;
  const void* own_advance_;
  std::vector<std::unique_ptr<Product>> products_;
};

}  // namespace lockstep::ode::cuda
