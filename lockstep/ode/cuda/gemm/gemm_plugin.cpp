// The CUDA component's side of gemm_runtime.h: products by cuBLASLt, rounds that a CUDA graph repeats on the device.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "lockstep/ode/cuda/gemm/gemm_kernels.h"
#include "lockstep/ode/cuda/gemm/product.cuh"
#include "lockstep/ode/cuda/gemm/round_launch.h"

namespace lockstep::ode::cuda {
namespace {

Fault fault_of(cudaError_t error, std::string where) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();  // leaves nothing behind for the next call
  return {true, error == cudaErrorMemoryAllocation, std::move(where),
          std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")"};
}

class CudaGemmStream : public GemmStream {
 public:
  CudaGemmStream(int device, cudaStream_t stream, cublasLtHandle_t handle)
      : device_(device), stream_(stream), handle_(handle) {}
  ~CudaGemmStream() override {
    cudaSetDevice(device_);
    cudaStreamSynchronize(stream_);
    forget_graph();
    products_.clear();
    if (library_ != nullptr) cudaLibraryUnload(library_);
    cublaslt().destroy(handle_);
    cudaFreeHost(busy_on_host_);
    cudaStreamDestroy(stream_);
    cudaGetLastError();
  }

  void* native() override { return stream_; }

  Fault add_advance(const KernelImage& image) override {
    cudaSetDevice(device_);
    const std::string where = "kernel that came as text";
    Fault fault =
        fault_of(cudaLibraryLoadData(&library_, image.code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0), where);
    cudaKernel_t function = nullptr;
    if (!fault.happened) fault = fault_of(cudaLibraryGetKernel(&function, library_, image.entry.c_str()), where);
    if (!fault.happened) own_advance_ = reinterpret_cast<const void*>(function);
    return fault;
  }

  Fault prepare(const GemmProgram& program, const void* launch) override {
    cudaSetDevice(device_);
    forget_graph();
    products_.clear();
    program_ = program;
    if (program.float64) {
      f64_ = *static_cast<const GemmLaunch<double>*>(launch);
      columns_ = f64_.columns;
      pitch_ = f64_.pitch;
      busy_ = f64_.busy;
    } else {
      f32_ = *static_cast<const GemmLaunch<float>*>(launch);
      columns_ = f32_.columns;
      pitch_ = f32_.pitch;
      busy_ = f32_.busy;
    }
    if (busy_on_host_ == nullptr) {
      void* memory = nullptr;
      const Fault fault = fault_of(cudaMallocHost(&memory, sizeof *busy_on_host_), "pinned memory");
      if (fault.happened) return fault;
      busy_on_host_ = static_cast<std::int32_t*>(memory);
    }
    for (const DenseProduct& product : program.products) {
      Fault fault;
      products_.push_back(std::make_unique<Product>(handle_, program_, product, columns_, pitch_, fault));
      if (fault.happened) return fault;
    }
    return {};
  }

  void start() override { launch_on_columns(kernels().start, nullptr, columns_); }

  void run(std::int32_t floor) override {
    // Once as it is, which loads every kernel; then as a graph.
    enqueue_pass([&] { end_pass(); });
    if (repeat_by_graph(floor)) return;
    // A driver without graphs that repeat themselves: the host asks after every pass.
    for (;;) {
      std::int32_t busy = 0;
      Fault fault = wait(busy);
      if (fault.happened) keep(std::move(fault));
      if (fault_.happened || busy <= floor) return;
      enqueue_pass([&] { end_pass(); });
    }
  }

  void compact(std::int32_t target) override {
    launch_one(kernels().plan, &target, 1, kCompactionThreads);
    launch_on_columns(kernels().move, nullptr, target);
  }

  Fault wait(std::int32_t& busy) override {
    cudaSetDevice(device_);
    keep(fault_of(
        cudaMemcpyAsync(busy_on_host_, busy_ + kBusyLast, sizeof *busy_on_host_, cudaMemcpyDeviceToHost, stream_),
        "copy from the device"));
    keep(fault_of(cudaStreamSynchronize(stream_), "kernels of the engine cuda_gemm"));
    busy = *busy_on_host_;
    return std::exchange(fault_, {});
  }

  std::string description() const override {
    int fused = 0;
    for (const auto& product : products_) fused += product->remainder() == Remainder::nothing ? 1 : 0;
    std::string text = "cuBLASLt " + cublaslt().version + " in " + std::string(to_string(program_.mode));
    if (program_.float64) text = "cuBLASLt " + cublaslt().version + " in f64";
    text += ", " + std::to_string(fused) + " of " + std::to_string(products_.size()) + " layers in one kernel, ";
    return text + (polled_ ? "rounds counted by the host (" + why_polled_ + ")" : "rounds repeated by a graph");
  }

 private:
  void keep(Fault fault) {
    if (fault.happened && !fault_.happened) fault_ = std::move(fault);
  }

  void launch_kernel(const void* kernel, int blocks, int threads, void** arguments, const char* name) {
    keep(fault_of(cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads)),
                                   arguments, 0, stream_),
                  std::string("kernel ") + name));
  }
  GemmKernels kernels() const { return program_.float64 ? gemm_kernels<double>() : gemm_kernels<float>(); }
  // One of those that take a GemmLaunch and perhaps one argument more.
  void launch_one(const void* kernel, void* argument, int blocks, int threads) {
    cudaSetDevice(device_);
    void* arguments[] = {program_.float64 ? static_cast<void*>(&f64_) : &f32_, argument};
    launch_kernel(kernel, blocks, threads, arguments, "of the engine cuda_gemm");
  }
  void launch_on_columns(const void* kernel, void* argument, std::int32_t columns) {
    launch_one(kernel, argument, (columns + kGemmThreads - 1) / kGemmThreads, kGemmThreads);
  }

  template <class T>
  void enqueue_remainder(const Product& product) {
    const DenseProduct& what = product.what();
    ActivationLaunch<T> launch{
        .in = static_cast<const T*>(program_.plain),
        .bias = product.remainder() == Remainder::bias_and_activation ? static_cast<const T*>(what.bias) : nullptr,
        .out = what.out,
        .columns = columns_,
        .pitch = what.out_pitch,
        .activation = static_cast<std::int32_t>(what.activation.kind),
        .alpha = what.activation.alpha,
        .mode = what.last ? MatrixPrecision::f32 : program_.mode};
    const std::int64_t numbers = std::int64_t{columns_} * what.out_pitch;
    // A few numbers a thread, and no more blocks than a large GPU holds a few times.
    const std::int64_t blocks = std::min<std::int64_t>((numbers + kGemmThreads * 4 - 1) / (kGemmThreads * 4), 8192);
    void* arguments[] = {&launch};
    launch_kernel(gemm_kernels<T>().activate, static_cast<int>(blocks), kGemmThreads, arguments, "gemm_activate");
  }

  template <class End>
  void enqueue_pass(const End& end) {
    for (int round = 0; round < program_.rounds; ++round) {
      for (const auto& product : products_) {
        const cublasStatus_t status = product->enqueue(stream_);
        if (status != CUBLAS_STATUS_SUCCESS) {
          keep({true, status == CUBLAS_STATUS_ALLOC_FAILED, "cuBLASLt " + cublaslt().version,
                cublaslt().status_text(status)});
          return;
        }
        if (product->remainder() == Remainder::nothing) continue;
        if (program_.float64) {
          enqueue_remainder<double>(*product);
        } else {
          enqueue_remainder<float>(*product);
        }
      }
      bool counts = round + 1 == program_.rounds;
      launch_on_columns(own_advance_ != nullptr ? own_advance_ : kernels().advance, &counts, columns_);
    }
    end();
  }
  void end_pass() {
    void* arguments[] = {&busy_};
    launch_kernel(gemm_count_kernel(), 1, 1, arguments, "gemm_count");
  }

  // False where that cannot be had; then nothing is queued.
  bool repeat_by_graph(std::int32_t floor) {
    if (polled_ || fault_.happened) return !polled_;
    if (graph_ == nullptr || floor != floor_) {
      forget_graph();
      if (const Fault fault = make_graph(floor); fault.happened) {
        forget_graph();
        polled_ = true;
        why_polled_ = fault.text;
        return false;
      }
    }
    keep(fault_of(cudaGraphLaunch(graph_, stream_), "graph of the engine cuda_gemm"));
    return true;
  }

  // A graph of one node that repeats a pass while more than `floor` columns have work (CUDA 12.4).
  Fault make_graph(std::int32_t floor) {
    cudaGraph_t graph = nullptr;
    Fault fault = fault_of(cudaGraphCreate(&graph, 0), "graph");
    if (fault.happened) return fault;
    const auto then = [&](cudaError_t error, const char* where) {
      if (!fault.happened) fault = fault_of(error, where);
      return !fault.happened;
    };
    cudaGraphConditionalHandle again{};
    cudaGraphNodeParams node{};
    cudaGraphNode_t added = nullptr;
    if (then(cudaGraphConditionalHandleCreate(&again, graph, 1, cudaGraphCondAssignDefault), "conditional node")) {
      node.type = cudaGraphNodeTypeConditional;
      node.conditional.handle = again;
      node.conditional.type = cudaGraphCondTypeWhile;
      node.conditional.size = 1;
#if CUDART_VERSION >= 13000
      then(cudaGraphAddNode(&added, graph, nullptr, nullptr, 0, &node), "conditional node");
#else
      then(cudaGraphAddNode(&added, graph, nullptr, 0, &node), "conditional node");
#endif
    }
    if (!fault.happened) {
      cudaGraph_t body = node.conditional.phGraph_out[0];
      // Relaxed: nothing here waits for other streams, and other threads may do what they like.
      if (then(cudaStreamBeginCaptureToGraph(stream_, body, nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed),
               "capture")) {
        enqueue_pass([&] {
          void* arguments[] = {&busy_, &floor, &again};
          launch_kernel(gemm_repeat_kernel(), 1, 1, arguments, "gemm_repeat");
        });
        then(cudaStreamEndCapture(stream_, &body), "capture");
        if (fault_.happened) fault = std::exchange(fault_, {});
      }
    }
    if (!fault.happened) then(cudaGraphInstantiate(&graph_, graph, 0), "graph");
    cudaGraphDestroy(graph);
    floor_ = floor;
    return fault;
  }

  void forget_graph() {
    if (graph_ == nullptr) return;
    cudaStreamSynchronize(stream_);
    cudaGraphExecDestroy(graph_);
    graph_ = nullptr;
  }

  int device_;
  cudaStream_t stream_;
  cublasLtHandle_t handle_;
  cudaLibrary_t library_ = nullptr;    // of a kernel that came as text,
  const void* own_advance_ = nullptr;  // which it is
  GemmProgram program_;
  GemmLaunch<float> f32_{};
  GemmLaunch<double> f64_{};
  std::int32_t columns_ = 0;
  std::int64_t pitch_ = 0;
  std::int32_t* busy_ = nullptr;
  std::int32_t* busy_on_host_ = nullptr;
  std::vector<std::unique_ptr<Product>> products_;
  cudaGraphExec_t graph_ = nullptr;
  std::int32_t floor_ = 0;
  bool polled_ = false;
  std::string why_polled_;
  Fault fault_;
};

class CudaGemmRuntime : public GemmRuntime {
 public:
  std::string missing() override { return cublaslt().missing; }

  std::unique_ptr<GemmStream> open(int device, Fault& fault) override {
    const CublasLt& lt = cublaslt();
    if (!lt.missing.empty()) {
      fault = {true, false, "cuBLASLt", lt.missing};
      return nullptr;
    }
    fault = fault_of(cudaSetDevice(device), "device " + std::to_string(device));
    cudaStream_t stream = nullptr;
    if (!fault.happened) fault = fault_of(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    if (fault.happened) return nullptr;
    cublasLtHandle_t handle = nullptr;
    if (const cublasStatus_t status = lt.create(&handle); status != CUBLAS_STATUS_SUCCESS) {
      fault = {true, status == CUBLAS_STATUS_ALLOC_FAILED, "cuBLASLt " + lt.version, lt.status_text(status)};
      cudaStreamDestroy(stream);
      return nullptr;
    }
    return std::make_unique<CudaGemmStream>(device, stream, handle);
  }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) GemmRuntime* lockstep_cuda_gemm(int version) {
  static CudaGemmRuntime runtime;
  return version == kGemmRuntimeVersion ? &runtime : nullptr;
}

}  // namespace lockstep::ode::cuda
