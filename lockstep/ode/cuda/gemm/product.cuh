// A matrix product of the engine cuda_gemm as cuBLASLt makes it, with bias and activation in the product where cuBLASLt
// has them as we mean them, else by a kernel of ours behind it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "lockstep/ode/cuda/gemm/cublaslt.cuh"
#include "lockstep/ode/cuda/gemm/gemm_runtime.h"

namespace lockstep::ode::cuda {

// What the product leaves to a kernel.
enum class Remainder {
  nothing,
  activation,           // the bias is in
  bias_and_activation,  // or the rounding to the mode's numbers alone
};

class Product {
 public:
  // Chooses an algorithm, by cuBLASLt's own advice, for `columns` of `pitch`. `fault` receives what went wrong.
  Product(cublasLtHandle_t handle, const GemmProgram& program, const DenseProduct& product, std::int64_t columns,
          std::int64_t pitch, Fault& fault);
  ~Product();
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  // Queues it; may be captured. Into GemmProgram::plain where a kernel follows, else to its place.
  cublasStatus_t enqueue(cudaStream_t stream) const;
  Remainder remainder() const { return remainder_; }
  const DenseProduct& what() const { return product_; }

 private:
  bool choose(Remainder remainder, Fault& fault);
  void forget();

  cublasLtHandle_t handle_;
  GemmProgram program_;  // without products
  DenseProduct product_;
  std::int64_t columns_, pitch_;
  Remainder remainder_ = Remainder::nothing;
  void* out_ = nullptr;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t weights_ = nullptr, in_ = nullptr, out_layout_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace lockstep::ode::cuda
