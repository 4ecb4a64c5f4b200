// Solves by the engine cuda_gemm that are only queued: for ensembles that lie on the device already. What the engine of
// solve() asks the device between passes is decided beforehand: the columns are halved whenever half of them are idle.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "lockstep/ode/cuda/gemm/gemm_engine.h"
#include "lockstep/ode/cuda/gemm/gemm_workspace.h"

namespace lockstep::ode::cuda {

template <class T>
class DeviceGemm {
 public:
  // On a cudaStream_t of target.device, which must outlive it; waits for it. Columns are halved until they fit into the
  // device's memory. Throws Error (unsupported) where this engine cannot run the problem, the device fails, or its
  // driver has no graphs that repeat themselves.
  DeviceGemm(const Problem& problem, const Options& options, const GemmTarget& target, void* stream);

  // Queues a solve, or adds it to the graph that the stream is captured in. Parameters lie side by side. Throws Error
  // (unsupported) where that failed.
  void enqueue(const Ensemble<T>& ensemble);

  std::string description() const { return description_; }

 private:
  LoweredGemm<T> lowered_;
  std::unique_ptr<GemmStream> gemm_;
  std::unique_ptr<Stream> stream_;
  GemmWorkspace<T> workspace_;
  StopArrays stops_;
  std::size_t columns_ = 0;
  std::string description_;
};

extern template class DeviceGemm<float>;
extern template class DeviceGemm<double>;

}  // namespace lockstep::ode::cuda
