// The CUDA component's side of gemm_runtime.h: products by cuBLASLt, rounds that a CUDA graph repeats on the device.
#include <cuda_runtime_api.h>

#include <memory>
#include <utility>
#include <vector>

#include "lockstep/kernels/cuda/current_device.cuh"
#include "lockstep/ode/cuda/gemm/gemm_pass.cuh"

namespace lockstep::ode::cuda {
namespace {

using lockstep::cuda::CurrentDevice;

class CudaGemmStream : public GemmStream {
 public:
  // `building` and `body` are its own, to capture graphs on.
  CudaGemmStream(int device, cudaStream_t stream, bool borrowed, cudaStream_t building, cudaStream_t body,
                 cublasLtHandle_t handle)
      : device_(device), stream_(stream), borrowed_(borrowed), building_(building), body_(body), handle_(handle) {}
  ~CudaGemmStream() override {
    const CurrentDevice current(device_);
    cudaStreamSynchronize(stream_);
    forget_graph();
    forget_levels();
    pass_.reset();
    if (library_ != nullptr) cudaLibraryUnload(library_);
    cublaslt().destroy(handle_);
    cudaFreeHost(busy_on_host_);
    cudaStreamDestroy(body_);
    cudaStreamDestroy(building_);
    if (!borrowed_) cudaStreamDestroy(stream_);
    cudaGetLastError();
  }

  void* native() override { return stream_; }

  Fault add_advance(const KernelImage& image) override {
    const CurrentDevice current(device_);
    const std::string where = "kernel that came as text";
    Fault fault =
        fault_of(cudaLibraryLoadData(&library_, image.code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0), where);
    cudaKernel_t function = nullptr;
    if (!fault.happened) fault = fault_of(cudaLibraryGetKernel(&function, library_, image.entry.c_str()), where);
    if (!fault.happened) own_advance_ = reinterpret_cast<const void*>(function);
    return fault;
  }

  Fault prepare(const GemmProgram& program, const void* launch) override {
    const CurrentDevice current(device_);
    forget_graph();
    if (busy_on_host_ == nullptr) {
      void* memory = nullptr;
      const Fault fault = fault_of(cudaMallocHost(&memory, sizeof *busy_on_host_), "pinned memory");
      if (fault.happened) return fault;
      busy_on_host_ = static_cast<std::int32_t*>(memory);
    }
    Fault fault;
    pass_ = std::make_unique<GemmPass>(handle_, stream_, program, launch, GemmPass::columns_of(program, launch), 0,
                                       own_advance_, fault);
    return fault;
  }

  void start() override {
    const CurrentDevice current(device_);
    keep(pass_->start(stream_));
  }

  void run(std::int32_t floor) override {
    const CurrentDevice current(device_);
    // Once as it is, which loads every kernel; then as a graph.
    one_pass();
    if (repeat_by_graph(floor)) return;
    // A driver without graphs that repeat themselves: the host asks after every pass.
    for (;;) {
      std::int32_t busy = 0;
      keep(wait(busy));
      if (fault_.happened || busy <= floor) return;
      one_pass();
    }
  }

  void compact(std::int32_t target) override {
    const CurrentDevice current(device_);
    keep(pass_->compact(stream_, target));
  }

  Fault wait(std::int32_t& busy) override {
    const CurrentDevice current(device_);
    keep(fault_of(cudaMemcpyAsync(busy_on_host_, pass_->busy() + kBusyLast, sizeof *busy_on_host_,
                                  cudaMemcpyDeviceToHost, stream_),
                  "copy from the device"));
    keep(fault_of(cudaStreamSynchronize(stream_), "kernels of the engine cuda_gemm"));
    busy = *busy_on_host_;
    return std::exchange(fault_, {});
  }

  Fault prepare_all(const GemmProgram& program, const void* launch, const std::vector<std::int32_t>& columns) override {
    const CurrentDevice current(device_);
    program_ = program;
    forget_levels();
    Fault fault;
    for (const std::int32_t count : columns) {
      levels_.push_back(
          {std::make_unique<GemmPass>(handle_, stream_, program, launch, count, levels_.size(), own_advance_, fault)});
      if (fault.happened) return fault;
    }
    // Loads every kernel, which a graph may not have to do, and shows whether the products run.
    keep(clear(*levels_.front().pass));
    keep(levels_.front().pass->start(stream_));
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      keep(levels_[i].pass->rounds(stream_));
      keep(levels_[i].pass->count(stream_));
      if (i + 1 < levels_.size()) keep(levels_[i].pass->compact(stream_, levels_[i + 1].pass->columns()));
    }
    keep(fault_of(cudaStreamSynchronize(stream_), "kernels of the engine cuda_gemm"));
    return std::exchange(fault_, {});
  }

  Fault prepare_graphs() override {
    const CurrentDevice current(device_);
    load_graph_kernels();
    for (std::size_t i = 0; i < levels_.size() && !fault_.happened; ++i) {
      keep(make_graph(
          *levels_[i].pass, [&] { queue_level(building_, i); }, levels_[i].graph));
      if (!fault_.happened) keep(fault_of(cudaGraphUpload(levels_[i].graph.ready, building_), "graph"));
    }
    keep(fault_of(cudaStreamSynchronize(building_), "graph"));
    return std::exchange(fault_, {});
  }

  Fault enqueue(const void* launch) override {
    const CurrentDevice current(device_);
    const std::int64_t count = GemmPass::count_of(program_, launch);
    std::size_t first = 0;
    while (first + 1 < levels_.size() && levels_[first + 1].pass->columns() >= count) ++first;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    keep(fault_of(cudaStreamIsCapturing(stream_, &status), "stream"));
    keep(clear(*levels_[first].pass));
    if (!fault_.happened) keep(levels_[first].pass->start(stream_, launch));
    for (std::size_t i = first; i < levels_.size() && !fault_.happened; ++i) {
      if (status == cudaStreamCaptureStatusNone) {
        keep(fault_of(cudaGraphLaunch(levels_[i].graph.ready, stream_), "graph of the engine cuda_gemm"));
      } else {  // a graph cannot be launched into another, nor be a part of one when it has conditional nodes
        queue_level(stream_, i);
      }
    }
    return std::exchange(fault_, {});
  }

  std::string description() const override {
    const GemmPass& pass = levels_.empty() ? *pass_ : *levels_.front().pass;
    return pass.description() +
           (polled_ ? ", rounds counted by the host (" + why_polled_ + ")" : ", rounds repeated by a graph");
  }

 private:
  // `graph` stays as long as what was made of it: conditions belong to it.
  struct Graph {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
  };
  // A number of columns, and what repeats its passes and then leaves fewer.
  struct Level {
    std::unique_ptr<GemmPass> pass;
    Graph graph;
  };

  void keep(Fault fault) {
    if (fault.happened && !fault_.happened) fault_ = std::move(fault);
  }
  bool check(cudaError_t error, const char* where) {
    keep(fault_of(error, where));
    return !fault_.happened;
  }

  void one_pass() {
    if (!fault_.happened) keep(pass_->rounds(stream_));
    if (!fault_.happened) keep(pass_->count(stream_));
  }

  Fault clear(const GemmPass& pass) {
    Fault fault = fault_of(cudaMemsetAsync(pass.counter(), 0, sizeof *pass.counter(), stream_), "clearing memory");
    if (fault.happened) return fault;
    return fault_of(cudaMemsetAsync(pass.busy(), 0, kBusyNumbers * sizeof *pass.busy(), stream_), "clearing memory");
  }

  // False where that cannot be had; then nothing is queued.
  bool repeat_by_graph(std::int32_t floor) {
    if (polled_ || fault_.happened) return !polled_;
    if (graph_.ready == nullptr || floor != floor_) {
      forget_graph();
      load_graph_kernels();
      floor_ = floor;
      if (!fault_.happened)
        keep(make_graph(
            *pass_, [&] { queue_repetition(building_, *pass_, floor); }, graph_));
      if (fault_.happened) {
        why_polled_ = std::exchange(fault_, {}).text;
        polled_ = true;
        return false;
      }
    }
    keep(fault_of(cudaGraphLaunch(graph_.ready, stream_), "graph of the engine cuda_gemm"));
    return true;
  }

  // Those that run in graphs alone, which an older driver does not take: loading one may not be left to the capture.
  void load_graph_kernels() {
    cudaFuncAttributes attributes;
    for (const void* kernel : {gemm_enter_kernel(), gemm_repeat_kernel()})
      check(cudaFuncGetAttributes(&attributes, kernel), "kernel of the engine cuda_gemm");
  }

  // What `work` queues on building_, as a graph.
  template <class Work>
  Fault capture_graph(const Work& work, cudaGraph_t& graph) {
    // Relaxed: nothing here waits for other streams, and other threads may do what they like.
    Fault fault = fault_of(cudaStreamBeginCapture(building_, cudaStreamCaptureModeRelaxed), "capture");
    if (fault.happened) return fault;
    work();
    keep(fault_of(cudaStreamEndCapture(building_, &graph), "capture"));  // also after a failure, which stays the first
    return std::exchange(fault_, {});
  }
  // A graph of `work`, which repeats the pass.
  template <class Work>
  Fault make_graph(const GemmPass& pass, const Work& work, Graph& made) {
    // First the rounds alone, and thrown away: where cuBLASLt does what breaks a capture off, ending that of a
    // repetition's body would crash in the driver (NVIDIA/cuda-python issue 2918, CUDA 13).
    Fault fault = capture_graph([&] { keep(pass.rounds(building_)); }, made.graph);
    forget(made);
    if (!fault.happened) fault = capture_graph(work, made.graph);
    if (!fault.happened) fault = fault_of(cudaGraphInstantiate(&made.ready, made.graph, 0), "graph");
    if (fault.happened) forget(made);
    return fault;
  }
  static void forget(Graph& made) {
    if (made.ready != nullptr) cudaGraphExecDestroy(made.ready);
    if (made.graph != nullptr) cudaGraphDestroy(made.graph);
    made = {};
  }

  // Level i's passes until the next one's columns do, and the move to those.
  void queue_level(cudaStream_t stream, std::size_t i) {
    const std::int32_t fewer = i + 1 < levels_.size() ? levels_[i + 1].pass->columns() : 0;
    queue_repetition(stream, *levels_[i].pass, fewer);
    if (fewer != 0 && !fault_.happened) keep(levels_[i].pass->compact(stream, fewer));
  }

  // Passes while more than `floor` columns have work: a node that repeats itself (CUDA 12.4), in the graph that
  // `stream` is captured in.
  void queue_repetition(cudaStream_t stream, const GemmPass& pass, std::int32_t floor) {
    Capture capture;
    cudaGraphConditionalHandle again{};
    if (!look(stream, capture) ||
        !check(cudaGraphConditionalHandleCreate(&again, capture.graph, 0, cudaGraphCondAssignDefault),
               "conditional node"))
      return;
    keep(pass.enter(stream, floor, again));
    if (fault_.happened || !look(stream, capture)) return;
    cudaGraphNodeParams node{};
    node.type = cudaGraphNodeTypeConditional;
    node.conditional.handle = again;
    node.conditional.type = cudaGraphCondTypeWhile;
    node.conditional.size = 1;
    cudaGraphNode_t added = nullptr;
#if CUDART_VERSION >= 13000
    const cudaError_t error =
        cudaGraphAddNode(&added, capture.graph, capture.after, capture.edges, capture.count, &node);
#else
    const cudaError_t error = cudaGraphAddNode(&added, capture.graph, capture.after, capture.count, &node);
#endif
    if (!check(error, "conditional node")) return;
    cudaGraph_t body = node.conditional.phGraph_out[0];
    if (!check(cudaStreamBeginCaptureToGraph(body_, body, nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed),
               "capture"))
      return;
    keep(pass.rounds(body_));
    if (!fault_.happened) keep(pass.repeat(body_, floor, again));
    check(cudaStreamEndCapture(body_, &body), "capture");
#if CUDART_VERSION >= 13000
    check(cudaStreamUpdateCaptureDependencies(stream, &added, nullptr, 1, cudaStreamSetCaptureDependencies), "capture");
#else
    check(cudaStreamUpdateCaptureDependencies(stream, &added, 1, cudaStreamSetCaptureDependencies), "capture");
#endif
  }

  // The graph that a stream is captured in, and what its next work comes after.
  struct Capture {
    cudaGraph_t graph = nullptr;
    const cudaGraphNode_t* after = nullptr;
    const cudaGraphEdgeData* edges = nullptr;
    std::size_t count = 0;
  };
  bool look(cudaStream_t stream, Capture& capture) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
#if CUDART_VERSION >= 13000
    const cudaError_t error = cudaStreamGetCaptureInfo(stream, &status, nullptr, &capture.graph, &capture.after,
                                                       &capture.edges, &capture.count);
#else
    const cudaError_t error =
        cudaStreamGetCaptureInfo_v2(stream, &status, nullptr, &capture.graph, &capture.after, &capture.count);
#endif
    if (!check(error, "capture")) return false;
    if (status != cudaStreamCaptureStatusActive) keep({true, false, "capture", "the stream's capture was broken off"});
    return !fault_.happened;
  }

  void forget_graph() {
    if (graph_.ready == nullptr) return;
    cudaStreamSynchronize(stream_);
    forget(graph_);
  }
  void forget_levels() {
    for (Level& level : levels_) forget(level.graph);
    levels_.clear();
  }

  int device_;
  cudaStream_t stream_;
  bool borrowed_;
  cudaStream_t building_, body_;
  cublasLtHandle_t handle_;
  cudaLibrary_t library_ = nullptr;    // of a kernel that came as text,
  const void* own_advance_ = nullptr;  // which it is
  std::unique_ptr<GemmPass> pass_;     // between the host's questions
  Graph graph_;
  std::int32_t floor_ = 0;
  bool polled_ = false;
  std::string why_polled_;
  std::int32_t* busy_on_host_ = nullptr;
  GemmProgram program_;  // of the levels
  std::vector<Level> levels_;
  Fault fault_;
};

class CudaGemmRuntime : public GemmRuntime {
 public:
  std::string missing() override { return cublaslt().missing; }

  std::unique_ptr<GemmStream> open(int device, Fault& fault) override { return make(device, nullptr, false, fault); }
  std::unique_ptr<GemmStream> borrow(int device, void* stream, Fault& fault) override {
    return make(device, static_cast<cudaStream_t>(stream), true, fault);
  }

 private:
  static std::unique_ptr<GemmStream> make(int device, cudaStream_t stream, bool borrowed, Fault& fault) {
    const CublasLt& lt = cublaslt();
    if (!lt.missing.empty()) {
      fault = {true, false, "cuBLASLt", lt.missing};
      return nullptr;
    }
    const CurrentDevice current(device);
    fault = fault_of(current.error, "device " + std::to_string(device));
    cudaStream_t streams[3] = {stream, nullptr, nullptr};
    int made = borrowed ? 1 : 0;
    for (; made < 3 && !fault.happened; made += fault.happened ? 0 : 1)
      fault = fault_of(cudaStreamCreateWithFlags(&streams[made], cudaStreamNonBlocking), "stream");
    cublasLtHandle_t handle = nullptr;
    if (!fault.happened) {
      if (const cublasStatus_t status = lt.create(&handle); status != CUBLAS_STATUS_SUCCESS)
        fault = {true, status == CUBLAS_STATUS_ALLOC_FAILED, "cuBLASLt " + lt.version, lt.status_text(status)};
    }
    if (!fault.happened)
      return std::make_unique<CudaGemmStream>(device, streams[0], borrowed, streams[1], streams[2], handle);
    for (int i = borrowed ? 1 : 0; i < made; ++i) cudaStreamDestroy(streams[i]);
    return nullptr;
  }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) GemmRuntime* lockstep_cuda_gemm(int version) {
  static CudaGemmRuntime runtime;
  return version == kGemmRuntimeVersion ? &runtime : nullptr;
}

}  // namespace lockstep::ode::cuda
