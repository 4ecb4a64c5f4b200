// The compiled evaluation kernels as the CUDA component launches them.
#pragma once

#include <vector>

#include "lockstep/kernels/cuda/evaluation_runtime.h"

namespace lockstep::cuda {

struct EvaluateKernel {
  EvaluationMode mode;
  int tile;  // samples
  const void* function;
};

void add_evaluate_kernels_f32(std::vector<EvaluateKernel>& kernels);
void add_evaluate_kernels_f64(std::vector<EvaluateKernel>& kernels);
void add_tensor_kernels(std::vector<EvaluateKernel>& kernels);
void add_graph_kernels_f32(std::vector<EvaluateKernel>& kernels);
void add_graph_kernels_f64(std::vector<EvaluateKernel>& kernels);

}  // namespace lockstep::cuda
