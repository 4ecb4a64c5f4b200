// CUDA graphs on the host, for fake_cublaslt.h: what a stream is given is run at once, or kept while it is captured.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "lockstep/ode/cuda/gemm/testing/fake_cublaslt.h"

namespace lockstep::ode::cuda::testing {

// Conditions of repetitions, by handle.
inline std::vector<bool>& conditions() {
  static std::vector<bool> all;
  return all;
}

// Nodes one after another: here a graph is what one stream captured.
struct FakeGraph {
  struct Node {
    std::function<void()> work;
    std::shared_ptr<FakeGraph> body;  // of one that repeats itself, with its condition's handle
    cudaGraphConditionalHandle again = 0;
  };
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<std::unique_ptr<Node>> ahead;  // added, and not yet what the capture goes on after

  void run() const {
    for (const auto& node : nodes) {
      if (node->work) node->work();
      while (node->body != nullptr && conditions()[node->again]) {
        ++fake_cublaslt().passes_by_graph;
        node->body->run();
      }
    }
  }
};

// What is queued is run at once, or kept while the stream is captured.
struct FakeStream {
  FakeGraph* capturing = nullptr;
  bool into_body = false;                      // of a node that repeats itself
  bool broken = false;                         // the capture
  std::shared_ptr<FakeGraph>* made = nullptr;  // a cudaGraph_t
  cudaGraphNode_t last = nullptr;              // of the graph that is captured
};
inline FakeStream& of(cudaStream_t stream) {
  static FakeStream by_default;
  return stream == nullptr ? by_default : *reinterpret_cast<FakeStream*>(stream);
}
inline cudaGraph_t capturing_graph(cudaStream_t stream) { return reinterpret_cast<cudaGraph_t>(of(stream).made); }
inline void queue(cudaStream_t stream, std::function<void()> work) {
  if (FakeGraph* const graph = of(stream).capturing) {
    if (!graph->ahead.empty()) std::abort();  // the stream would not wait for that node
    graph->nodes.push_back(std::make_unique<FakeGraph::Node>(FakeGraph::Node{std::move(work), nullptr, 0}));
    of(stream).last = reinterpret_cast<cudaGraphNode_t>(graph->nodes.back().get());
  } else {
    work();
  }
}
inline cudaError_t called(const char* name) {
  ++fake_cublaslt().calls[name];
  return cudaSuccess;
}

}  // namespace lockstep::ode::cuda::testing
