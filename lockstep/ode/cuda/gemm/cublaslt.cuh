// cuBLASLt (half a gigabyte), opened when a solve first needs it: nothing links it. For the CUDA component alone.
#pragma once

#include <cublasLt.h>

#include <string>

namespace lockstep::ode::cuda {

struct CublasLt {
  std::string missing;  // what is not there, for people; empty: the rest is set
  std::string version;  // "13.1"
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtGetStatusString) status_text = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) find_algorithms = nullptr;
  decltype(&cublasLtMatmulDescCreate) create_operation = nullptr;
  decltype(&cublasLtMatmulDescDestroy) destroy_operation = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set_operation = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) create_layout = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
};

// Looked for once: the file that LOCKSTEP_CUBLASLT_LIBRARY names, else where the loader looks, the toolkit's folder,
// and pip's nvidia-cublas in an active environment. The major version must be the one this was compiled with.
const CublasLt& cublaslt();

}  // namespace lockstep::ode::cuda
