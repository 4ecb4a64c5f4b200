// Work captured in a CUDA graph on a card and launched from it: for tests with one, by the driver's own functions,
// looked up when they are needed.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace lockstep::cuda::testing {

// On the device that is current in this thread, where something has run already. Throws std::runtime_error where a call
// fails, also one made while it captures: a graph takes neither allocations nor waits.
class CardGraph {
 public:
  CardGraph() : library_(dlopen("libcuda.so.1", RTLD_NOW)) {
    if (library_ == nullptr) throw std::runtime_error(dlerror());
    call("cuStreamCreate", &stream_, 1u);  // not in order with the default stream
  }
  ~CardGraph() {
    try {
      if (execution_ != nullptr) call("cuGraphExecDestroy", execution_);
      if (graph_ != nullptr) call("cuGraphDestroy", graph_);
      call("cuStreamDestroy_v2", stream_);
    } catch (const std::runtime_error&) {  // the test has failed before
    }
  }
  CardGraph(const CardGraph&) = delete;
  CardGraph& operator=(const CardGraph&) = delete;

  void* stream() const { return stream_; }  // a cudaStream_t

  template <class Work>
  void capture(const Work& work) {
    call("cuStreamBeginCapture_v2", stream_, 0);  // 0: nothing unsafe by any thread
    work();
    call("cuStreamEndCapture", stream_, &graph_);
    call("cuGraphInstantiateWithFlags", &execution_, graph_, 0ull);
  }
  void launch() { call("cuGraphLaunch", execution_, stream_); }
  void wait() { call("cuStreamSynchronize", stream_); }
  void launch_and_wait() {
    launch();
    wait();
  }

 private:
  template <class... Arguments>
  void call(const char* name, Arguments... arguments) {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, name));
    const int error = function == nullptr ? -1 : function(arguments...);
    if (error != 0) throw std::runtime_error(std::string(name) + ": error " + std::to_string(error));
  }

  void* library_;
  void* stream_ = nullptr;
  void* graph_ = nullptr;
  void* execution_ = nullptr;
};

}  // namespace lockstep::cuda::testing
