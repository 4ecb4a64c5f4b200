// What DevicePlan and DeviceGraphPlan need of a device. The CUDA component implements it; so do tests, on the host.
#pragma once

#include <cstddef>
#include <string>

namespace lockstep::cuda {

// Which kernel: of dense nets, by the arithmetic of all numbers or of the matrix products of float32 nets, these from
// weights in global memory or in shared memory; of graphs.
enum class EvaluationMode { f32, f64, tf32, bf16, fp16, tf32_shared, bf16_shared, fp16_shared, graph_f32, graph_f64 };

// Every call may come from any thread, and leaves the thread's current device as it was. What is returned as text is
// empty, or says what failed in the driver's words.
class EvaluationRuntime {
 public:
  virtual ~EvaluationRuntime() = default;

  virtual std::string count_multiprocessors(int device, int& count) = 0;
  virtual std::string upload(int device, const void* host, std::size_t bytes, void*& memory) = 0;
  virtual std::string allocate(int device, std::size_t bytes, void*& memory) = 0;
  virtual std::string download(int device, void* host, const void* memory, std::size_t bytes) = 0;
  virtual void release(int device, void* memory) = 0;

  // Loads the kernel for tiles of that many samples; how many of its blocks a multiprocessor holds at once.
  virtual std::string prepare(int device, EvaluationMode mode, int tile, std::size_t shared_bytes, int& blocks) = 0;
  // Queues what the mode's kernel takes, an EvaluateLaunch, TensorLaunch or GraphLaunch, on a cudaStream_t of that
  // device (null: its default stream).
  virtual std::string enqueue(int device, void* stream, EvaluationMode mode, int tile, unsigned blocks,
                              std::size_t shared_bytes, const void* launch) = 0;
};

// The component's entry; null when it was built for another version.
inline constexpr int kEvaluationVersion = 4;
inline constexpr const char* kEvaluationEntry = "lockstep_cuda_evaluation";
using EvaluationEntry = EvaluationRuntime* (*)(int version);

// The component's, or null with why there is none, for people.
EvaluationRuntime* load_evaluation_runtime(std::string& missing);
// Gives load_evaluation_runtime() another answer, for tests; null restores the machine's own.
void replace_evaluation_runtime(EvaluationRuntime* other);

}  // namespace lockstep::cuda
