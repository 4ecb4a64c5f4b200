#include "lockstep/ode/cuda/gemm/testing/fake_graphs.h"

#include <utility>

using namespace lockstep::ode::cuda::testing;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  ++fake_cublaslt().open;
  *stream = reinterpret_cast<cudaStream_t>(new FakeStream);
  return called("cudaStreamCreateWithFlags");
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  --fake_cublaslt().open;
  delete &of(stream);
  return called("cudaStreamDestroy");
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (of(stream).capturing != nullptr) std::abort();
  return called("cudaStreamSynchronize");
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  --fake_cublaslt().open;
  delete reinterpret_cast<std::shared_ptr<FakeGraph>*>(graph);
  return called("cudaGraphDestroy");
}
cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph, unsigned,
                                             unsigned) {
  if (graph == nullptr || !fake_cublaslt().graphs) return cudaErrorNotSupported;
  *handle = conditions().size();
  conditions().push_back(false);
  return called("cudaGraphConditionalHandleCreate");
}
#if CUDART_VERSION >= 13000
cudaError_t cudaGraphAddNode(cudaGraphNode_t* added, cudaGraph_t graph, const cudaGraphNode_t* after,
                             const cudaGraphEdgeData*, size_t count, cudaGraphNodeParams* node) {
#else
cudaError_t cudaGraphAddNode(cudaGraphNode_t* added, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                             cudaGraphNodeParams* node) {
#endif
  FakeGraph& fake = **reinterpret_cast<std::shared_ptr<FakeGraph>*>(graph);
  if (node->type != cudaGraphNodeTypeConditional || node->conditional.type != cudaGraphCondTypeWhile || count != 1 ||
      reinterpret_cast<FakeGraph::Node*>(*after) != fake.nodes.back().get())
    return cudaErrorInvalidValue;
  auto made = std::make_unique<FakeGraph::Node>();
  made->body = std::make_shared<FakeGraph>();
  made->again = node->conditional.handle;
  static cudaGraph_t body[1];
  body[0] = reinterpret_cast<cudaGraph_t>(&made->body);  // belongs to the node
  node->conditional.phGraph_out = body;
  *added = reinterpret_cast<cudaGraphNode_t>(made.get());
  fake.ahead.push_back(std::move(made));
  return called("cudaGraphAddNode");
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = of(stream).capturing != nullptr ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return called("cudaStreamIsCapturing");
}
#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long*,
                                     cudaGraph_t* graph, const cudaGraphNode_t** after, const cudaGraphEdgeData** edges,
                                     size_t* count) {
  *edges = nullptr;
#else
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long*,
                                        cudaGraph_t* graph, const cudaGraphNode_t** after, size_t* count) {
#endif
  cudaStreamIsCapturing(stream, status);
  if (*status != cudaStreamCaptureStatusActive) return cudaSuccess;
  *graph = capturing_graph(stream);
  *after = &of(stream).last;
  *count = of(stream).last != nullptr ? 1 : 0;
  return called("cudaStreamGetCaptureInfo");
}
#if CUDART_VERSION >= 13000
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* after, const cudaGraphEdgeData*,
                                                size_t count, unsigned flags) {
#else
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* after, size_t count,
                                                unsigned flags) {
#endif
  FakeGraph& graph = *of(stream).capturing;
  if (count != 1 || flags != cudaStreamSetCaptureDependencies || graph.ahead.size() != 1 ||
      reinterpret_cast<FakeGraph::Node*>(*after) != graph.ahead.front().get())
    return cudaErrorInvalidValue;
  graph.nodes.push_back(std::move(graph.ahead.front()));
  graph.ahead.clear();
  of(stream).last = *after;
  return called("cudaStreamUpdateCaptureDependencies");
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (stream == nullptr || of(stream).capturing != nullptr) return cudaErrorStreamCaptureUnsupported;
  ++fake_cublaslt().open;
  of(stream).made = new std::shared_ptr<FakeGraph>(std::make_shared<FakeGraph>());
  of(stream).capturing = of(stream).made->get();
  return called("cudaStreamBeginCapture");
}
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t*,
                                          const cudaGraphEdgeData*, size_t, cudaStreamCaptureMode) {
  if (stream == nullptr || of(stream).capturing != nullptr) return cudaErrorStreamCaptureUnsupported;
  of(stream).made = reinterpret_cast<std::shared_ptr<FakeGraph>*>(graph);
  of(stream).into_body = true;
  of(stream).capturing = of(stream).made->get();
  return called("cudaStreamBeginCaptureToGraph");
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = capturing_graph(stream);
  const FakeStream ended = std::exchange(of(stream), {});
  if (ended.broken) {
    if (ended.into_body) std::abort();  // so does the driver
    cudaGraphDestroy(std::exchange(*graph, nullptr));
    return cudaErrorStreamCaptureInvalidated;
  }
  return called("cudaStreamEndCapture");
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  ++fake_cublaslt().open;
  *made = reinterpret_cast<cudaGraphExec_t>(
      new std::shared_ptr<FakeGraph>(*reinterpret_cast<std::shared_ptr<FakeGraph>*>(graph)));
  return called("cudaGraphInstantiate");
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return called("cudaGraphUpload"); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  --fake_cublaslt().open;
  delete reinterpret_cast<std::shared_ptr<FakeGraph>*>(graph);
  return called("cudaGraphExecDestroy");
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  if (of(stream).capturing != nullptr) return cudaErrorStreamCaptureUnsupported;
  (*reinterpret_cast<std::shared_ptr<FakeGraph>*>(graph))->run();
  return called("cudaGraphLaunch");
}

}  // extern "C"

namespace lockstep::ode::cuda::testing {

UserStream::UserStream() {
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  stream_ = stream;
}
UserStream::~UserStream() {
  if (graph_ != nullptr) cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph_));
  cudaStreamDestroy(static_cast<cudaStream_t>(stream_));
}
bool UserStream::capture(const std::function<void()>& work) {
  const auto stream = static_cast<cudaStream_t>(stream_);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  work();
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(stream, &graph) != cudaSuccess || graph == nullptr) return false;
  cudaGraphExec_t ready = nullptr;
  cudaGraphInstantiate(&ready, graph, 0);
  graph_ = ready;
  return cudaGraphDestroy(graph) == cudaSuccess;
}
bool UserStream::launch() {
  return cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph_), static_cast<cudaStream_t>(stream_)) == cudaSuccess;
}

}  // namespace lockstep::ode::cuda::testing
