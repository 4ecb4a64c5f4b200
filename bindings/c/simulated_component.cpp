// A liblockstep_cuda.so whose device is the host, for tests of programs that open one.
#include "lockstep/kernels/cuda/testing/simulated_evaluation_runtime.h"

namespace lockstep::cuda {

extern "C" __attribute__((visibility("default"))) EvaluationRuntime* lockstep_cuda_evaluation(int version) {
  static testing::SimulatedEvaluationRuntime runtime;
  return version == kEvaluationVersion ? &runtime : nullptr;
}

}  // namespace lockstep::cuda
