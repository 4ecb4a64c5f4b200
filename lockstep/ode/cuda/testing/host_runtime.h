// A device that is the host: the kernels' own source in a loop over threads, for tests without a card. It can be given
// little memory, and launches that fail.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/ode/cuda/kernel_body.h"
#include "lockstep/ode/cuda/runtime.h"
#include "lockstep/ode/cuda/testing/host_tiles.h"

namespace lockstep::ode::cuda {

struct HostDevice {
  std::int64_t threads = 3;                          // each takes every third trajectory
  std::size_t memory = std::size_t{1} << 30;         // bytes that device allocations may take
  int failing_launches = 0;                          // the first so many fail,
  bool failures_are_memory = true;                   // for want of memory or otherwise
  std::map<std::string, int, std::less<>> launches;  // by kernel
  std::size_t used = 0;
  // Kernels that came as text: what stands in for each, by name.
  std::map<std::string, std::function<void(HostDevice&, const void* launch)>, std::less<>> sources;
  std::vector<std::string> images;   // names of those whose machine code was handed over
  std::vector<std::size_t> batches;  // trajectories of each launch
  std::function<void()> arrival;     // called when a copy to the host arrives
};

// What a launch of a body does on the device.
template <class Body>
void run_body(HostDevice& device, std::string_view name, const void* arguments) {
  const auto& launch = *static_cast<const Launch<typename Body::T>*>(arguments);
  ++device.launches[std::string(name)];
  device.batches.push_back(static_cast<std::size_t>(launch.ensemble.count));
  const SharedWeights shared = Body::Derivative::shared_weights(launch);
  for (std::int64_t thread = 0; thread < device.threads; ++thread) {
    std::int64_t next = thread;
    Body::run(launch, launch.weights + shared.first, [&](bool busy) {
      if (busy) return kNoneNow;
      ++*launch.counter;
      return next < launch.ensemble.count ? std::exchange(next, next + device.threads) : kNoneAnyMore;
    });
  }
}

// The kernel of kernel_list.h with that name, if there is one; in host_runtime.cpp, which takes long to compile.
void run_listed_kernel(HostDevice& device, std::string_view name, const void* launch);

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
    arrive();
    for (void* block : blocks_) std::free(block);
    blocks_.clear();
    device_.used -= std::exchange(used_, 0);
  }
  void upload(void* device, const void* pinned, std::size_t bytes) override {
    arrive();
    std::memcpy(device, pinned, bytes);
  }
  // As late as a device may: before the next work of this stream, or when somebody waits.
  void download(void* pinned, const void* device, std::size_t bytes) override {
    downloads_.push_back({pinned, device, bytes});
  }
  void clear(void* device, std::size_t bytes) override {
    arrive();
    std::memset(device, 0, bytes);
  }
  void launch(std::string_view kernel, const void* launch) override {
    arrive();
    if (fault_.happened) return;
    if (device_.failing_launches > 0) {
      --device_.failing_launches;
      fault_ = {true, device_.failures_are_memory, "kernel " + std::string(kernel),
                device_.failures_are_memory ? "out of memory" : "an illegal memory access was encountered"};
      return;
    }
    if (const auto source = device_.sources.find(kernel); source != device_.sources.end()) {
      source->second(device_, launch);
      return;
    }
    if (std::size_t trajectories = 0; run_tile_kernel(kernel, launch, trajectories)) {
      ++device_.launches[std::string(kernel)];
      device_.batches.push_back(trajectories);
      return;
    }
    run_listed_kernel(device_, kernel, launch);
  }
  Fault add_kernel(std::string_view name, const KernelImage& image) override {
    if (image.code.empty() || device_.sources.find(name) == device_.sources.end())
      return {true, false, "kernel " + std::string(name), "no such function"};
    device_.images.emplace_back(name);
    return {};
  }
  Fault prepare(std::string_view, const void*) override { return {}; }
  Fault wait() override {
    arrive();
    return std::exchange(fault_, {});
  }
  Fault take_fault() override { return std::exchange(fault_, {}); }

 private:
  struct Download {
    void* to;
    const void* from;
    std::size_t bytes;
  };

  void arrive() {
    for (const Download& download : std::exchange(downloads_, {})) {
      std::memcpy(download.to, download.from, download.bytes);
      if (device_.arrival) device_.arrival();
    }
  }

  HostDevice& device_;
  std::vector<Download> downloads_;
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
  std::unique_ptr<Stream> borrow_stream(int, void*, Fault&) override { return std::make_unique<HostStream>(device_); }

 private:
  HostDevice& device_;
};

}  // namespace lockstep::ode::cuda
