// What the engine cuda_gemm needs of a device beside memory and copies: matrix products, its kernels, and rounds that
// repeat without the host. The CUDA component implements it over cuBLASLt and CUDA graphs (gemm_plugin.cu); so do the
// tests, on the host (testing/host_gemm.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/core/matrix_precision.h"
#include "lockstep/kernels/activation.h"
#include "lockstep/ode/cuda/runtime.h"

namespace lockstep::ode::cuda {

// out = activation(weights in + bias). Every pointer is the device's, at a multiple of 16 bytes. Padding is zero in
// weights and bias, and finite in `in`.
struct DenseProduct {
  int inputs, outputs;
  int in_pitch, out_pitch;  // padded to multiples of 8
  const void* weights;      // factors [out_pitch][in_pitch]
  const void* bias;         // numbers of the state's type [out_pitch]
  const void* in;           // factors: [in_pitch][columns there is room for] for a net's first, else [column][in_pitch]
  bool first;
  void* out;  // [column][out_pitch]: numbers of the state's type for a net's last, else factors
  bool last;
  Activation activation;
};

// What a round evaluates, and how often before somebody asks whether there is work left.
struct GemmProgram {
  bool float64 = false;
  MatrixPrecision mode = MatrixPrecision::f32;
  std::vector<DenseProduct> products;  // in order
  void* plain = nullptr;               // [column][widest out_pitch] of the state's type: before an activation
  void* workspace = nullptr;           // of the products themselves
  std::size_t workspace_bytes = 0;
  int rounds = 6;  // of a pass
};

// A queue of work on one device. Calls only queue, but for prepare() and wait(); the first failure stays until wait().
class GemmStream {
 public:
  virtual ~GemmStream() = default;

  // The cudaStream_t, for Runtime::borrow_stream: memory, copies.
  virtual void* native() = 0;
  // In place of the component's kernel that takes each trajectory on, from now on: one that came as text
  // (make_gemm_source).
  virtual Fault add_advance(const KernelImage& image) = 0;
  // For the launch's columns: chooses how products are made. Both are copied. `launch` is a GemmLaunch<float> or
  // <double>.
  virtual Fault prepare(const GemmProgram& program, const void* launch) = 0;
  // Every column takes up its first trajectory.
  virtual void start() = 0;
  // Passes of rounds until at most `floor` columns have work.
  virtual void run(std::int32_t floor) = 0;
  // Columns from `target` on move to idle ones before it; prepare() for so many follows.
  virtual void compact(std::int32_t target) = 0;
  // Until all of that is done; `busy` receives how many columns have work left.
  virtual Fault wait(std::int32_t& busy) = 0;

  // In place of the above, for whole solves that are only queued. First how products are made for each of these numbers
  // of columns, the launch's own first and each no more than the one before, tried on columns without work (zeros in
  // GemmLaunch::saved; the ensemble's count is 0). Waits.
  virtual Fault prepare_all(const GemmProgram& program, const void* launch,
                            const std::vector<std::int32_t>& columns) = 0;
  // Then the repetitions, as CUDA graphs. A failure other than of memory: this driver has no such graphs. Waits.
  virtual Fault prepare_graphs() = 0;
  // Queues a solve of the launch's ensemble, or adds it to the graph that the stream is captured in: no allocation on
  // the device, no wait. Of the launch nothing else is read.
  virtual Fault enqueue(const void* launch) = 0;

  // How it is done, for people and for files: "cuBLASLt 13.1, a graph that repeats itself".
  virtual std::string description() const = 0;
};

class GemmRuntime {
 public:
  virtual ~GemmRuntime() = default;
  // Opens cuBLASLt where that has not happened yet. Empty, or what is missing, for people.
  virtual std::string missing() = 0;
  virtual std::unique_ptr<GemmStream> open(int device, Fault& fault) = 0;
  // On somebody else's cudaStream_t of that device (null: its default stream), which must outlive the result.
  virtual std::unique_ptr<GemmStream> borrow(int device, void* stream, Fault& fault) = 0;
};

// The component's entry for this engine.
inline constexpr int kGemmRuntimeVersion = 5;
inline constexpr const char* kGemmRuntimeEntry = "lockstep_cuda_gemm";
using GemmRuntimeEntry = GemmRuntime* (*)(int version);

// The component's; null where there is none. A test's own while that is set.
GemmRuntime* load_gemm_runtime();
void replace_gemm_runtime(GemmRuntime* other);

}  // namespace lockstep::ode::cuda
