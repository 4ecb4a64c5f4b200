// A device that is the host: the kernels' own source in a loop over threads, for tests without a card. It can be given
// little memory, and launches that fail.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/ode/cuda/kernel_list.h"
#include "lockstep/ode/cuda/runtime.h"

namespace lockstep::ode::cuda {

struct HostDevice {
  std::int64_t threads = 3;                          // each takes every third trajectory
  std::size_t memory = std::size_t{1} << 30;         // bytes that device allocations may take
  int failing_launches = 0;                          // the first so many fail,
  bool failures_are_memory = true;                   // for want of memory or otherwise
  std::map<std::string, int, std::less<>> launches;  // by kernel
  std::size_t used = 0;
  std::vector<std::size_t> batches;  // trajectories of each launch
};

class HostStream : public Stream {
 public:
  explicit HostStream(HostDevice& device) : device_(device) {}
  ~HostStream() override { free_all(); }

  void* allocate(std::size_t bytes) override {
    if (device_.used + bytes > device_.memory) return nullptr;
    device_.used += bytes;
    used_ += bytes;
    return allocate_pinned(bytes);
  }
  void* allocate_pinned(std::size_t bytes) override {
    blocks_.push_back(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
    std::memset(blocks_.back(), 0xa5, bytes);  // a device's memory is not zero
    return blocks_.back();
  }
  void free_all() override {
    for (void* block : blocks_) std::free(block);
    blocks_.clear();
    device_.used -= std::exchange(used_, 0);
  }
  void upload(void* device, const void* pinned, std::size_t bytes) override { std::memcpy(device, pinned, bytes); }
  void download(void* pinned, const void* device, std::size_t bytes) override { std::memcpy(pinned, device, bytes); }
  void clear(void* device, std::size_t bytes) override { std::memset(device, 0, bytes); }
  void launch(std::string_view kernel, const void* launch) override {
    if (fault_.happened) return;
    if (device_.failing_launches > 0) {
      --device_.failing_launches;
      fault_ = {true, device_.failures_are_memory, "kernel " + std::string(kernel),
                device_.failures_are_memory ? "out of memory" : "an illegal memory access was encountered"};
      return;
    }
    run<float>(kernel, launch);
    run<double>(kernel, launch);
  }
  Fault wait() override { return std::exchange(fault_, {}); }

 private:
  template <class T>
  void run(std::string_view wanted, const void* arguments) {
    for_each_kernel<T>([&]<class Body>(std::string_view name) {
      if (name != wanted) return;
      const auto& launch = *static_cast<const Launch<T>*>(arguments);
      ++device_.launches[std::string(name)];
      device_.batches.push_back(static_cast<std::size_t>(launch.ensemble.count));
      const SharedWeights shared = Body::Derivative::shared_weights(launch);
      for (std::int64_t thread = 0; thread < device_.threads; ++thread) {
        std::int64_t next = thread;
        Body::run(launch, launch.weights + shared.first, [&] {
          ++*launch.counter;
          return std::exchange(next, next + device_.threads);
        });
      }
    });
  }

  HostDevice& device_;
  std::vector<void*> blocks_;
  std::size_t used_ = 0;
  Fault fault_;
};

class HostRuntime : public Runtime {
 public:
  explicit HostRuntime(HostDevice& device) : device_(device) {}
  std::vector<DeviceInfo> devices(Fault&) override {
    return {{.index = 0,
             .name = "the host",
             .major = 9,
             .minor = 0,
             .multiprocessors = 132,
             .clock_ghz = 1.7,
             .memory = device_.memory,
             .free_memory = device_.memory - device_.used}};
  }
  std::unique_ptr<Stream> open_stream(int, Fault&) override { return std::make_unique<HostStream>(device_); }

 private:
  HostDevice& device_;
};

}  // namespace lockstep::ode::cuda
