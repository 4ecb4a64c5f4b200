// A device that is the host: evaluation kernels run in the simulator of blocks. It can be told what to refuse.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "lockstep/kernels/cuda/evaluate_kernel.cuh"
#include "lockstep/kernels/cuda/evaluation_runtime.h"
#include "lockstep/kernels/cuda/graph_kernel.cuh"
#include "lockstep/kernels/cuda/testing/simulate_tensor.h"

namespace lockstep::cuda::testing {

class SimulatedEvaluationRuntime : public EvaluationRuntime {
 public:
  int multiprocessors = 2;
  std::size_t shared_memory = 232448;  // an H200's
  std::string upload_failure, launch_failure;
  int allocations = 0, launches = 0, last_tile = 0;
  EvaluationMode last_mode = EvaluationMode::f32;
  std::size_t last_shared_bytes = 0;

  std::string count_multiprocessors(int device, int& count) override {
    count = multiprocessors;
    return device == 0 ? "" : "no such device among 1";
  }
  std::string upload(int, const void* host, std::size_t bytes, void*& memory) override {
    if (!upload_failure.empty()) return upload_failure;
    ++allocations;
    memory = std::malloc(bytes);
    std::memcpy(memory, host, bytes);
    return {};
  }
  std::string allocate(int, std::size_t bytes, void*& memory) override {
    if (!upload_failure.empty()) return upload_failure;
    ++allocations;
    memory = std::malloc(bytes);
    std::memset(memory, 0xff, bytes);  // NaN
    return {};
  }
  std::string download(int, void* host, const void* memory, std::size_t bytes) override {
    std::memcpy(host, memory, bytes);
    return {};
  }
  void release(int, void* memory) override {
    --allocations;
    std::free(memory);
  }
  std::string prepare(int, EvaluationMode, int, std::size_t shared_bytes, int& blocks) override {
    blocks = static_cast<int>(std::min<std::size_t>(shared_memory / shared_bytes, 2048 / kBlockThreads));
    return {};
  }
  std::string enqueue(int, void*, EvaluationMode mode, int tile, unsigned blocks, std::size_t shared_bytes,
                      const void* launch) override {
    if (!launch_failure.empty()) return launch_failure;
    ++launches;
    last_tile = tile;
    last_shared_bytes = shared_bytes;
    const auto& tensor_launch = *static_cast<const TensorLaunch*>(launch);  // where the mode is one
    switch (mode) {
      case EvaluationMode::f32:
        run<float>(tile, blocks, shared_bytes, launch);
        break;
      case EvaluationMode::f64:
        run<double>(tile, blocks, shared_bytes, launch);
        break;
      case EvaluationMode::tf32:
        run_tensor<Tf32, WeightPlace::global>(tile, blocks, tensor_launch);
        break;
      case EvaluationMode::bf16:
        run_tensor<Bf16, WeightPlace::global>(tile, blocks, tensor_launch);
        break;
      case EvaluationMode::fp16:
        run_tensor<Fp16, WeightPlace::global>(tile, blocks, tensor_launch);
        break;
      case EvaluationMode::tf32_shared:
        run_tensor<Tf32, WeightPlace::shared>(tile, blocks, tensor_launch);
        break;
      case EvaluationMode::bf16_shared:
        run_tensor<Bf16, WeightPlace::shared>(tile, blocks, tensor_launch);
        break;
      case EvaluationMode::fp16_shared:
        run_tensor<Fp16, WeightPlace::shared>(tile, blocks, tensor_launch);
        break;
      case EvaluationMode::graph_f32:
        run_graph<float>(tile, blocks, shared_bytes, launch);
        break;
      case EvaluationMode::graph_f64:
        run_graph<double>(tile, blocks, shared_bytes, launch);
        break;
    }
    last_mode = mode;
    return {};
  }

 private:
  template <class T>
  static void run(int tile, unsigned blocks, std::size_t shared_bytes, const void* launch) {
    for_each_tile_size<T>([&]<int samples, int widest>() {
      if (samples != tile) return;
      simulate({.blocks = blocks, .threads = kBlockThreads, .shared_bytes = shared_bytes}, [&](unsigned char* shared) {
        evaluate_tiles<T, samples, widest>(*static_cast<const EvaluateLaunch<T>*>(launch), shared);
      });
    });
  }

  template <class T>
  static void run_graph(int tile, unsigned blocks, std::size_t shared_bytes, const void* launch) {
    for_each_graph_tile<T>([&]<int samples>() {
      if (samples != tile) return;
      simulate({.blocks = blocks, .threads = kBlockThreads, .shared_bytes = shared_bytes}, [&](unsigned char* shared) {
        evaluate_graph_tiles<T, samples>(*static_cast<const GraphLaunch<T>*>(launch), shared);
      });
    });
  }

  template <class Format, WeightPlace place>
  static void run_tensor(int tile, unsigned blocks, const TensorLaunch& launch) {
    simulate({.blocks = blocks, .threads = kBlockThreads, .shared_bytes = launch.layout.shared_bytes()},
             [&](unsigned char* shared) { run_tensor_block<Format, place>(tile, launch, shared); });
  }
};

}  // namespace lockstep::cuda::testing
