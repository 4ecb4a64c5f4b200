// What the engine needs of a device: memory, copies and launches in order on a stream. The CUDA component implements it
// (plugin.cu); so do the tests, on the host (testing/host_runtime.h).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::ode::cuda {

struct DeviceInfo {
  int index = 0;
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  double clock_ghz = 0;
  std::size_t memory = 0, free_memory = 0;  // bytes
};

// What went wrong on a device. `where` is a kernel or a call, `text` the driver's own words.
struct Fault {
  bool happened = false;
  bool out_of_memory = false;
  std::string where, text;
};

// A queue of work on one device. Calls return at once; the first failure stays and is reported by wait().
class Stream {
 public:
  virtual ~Stream() = default;

  // Device memory and host memory that copies run from in the background; null when there is too little. Freed with
  // the stream, or by free_all(), which waits first.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void* allocate_pinned(std::size_t bytes) = 0;
  virtual void free_all() = 0;

  virtual void upload(void* device, const void* pinned, std::size_t bytes) = 0;
  virtual void clear(void* device, std::size_t bytes) = 0;
  virtual void download(void* pinned, const void* device, std::size_t bytes) = 0;
  // A kernel of kernel_list.h by name, with a Launch<float> or Launch<double> as its name says.
  virtual void launch(std::string_view kernel, const void* launch) = 0;
  // Until all that was queued is done. Clears the failure it reports.
  virtual Fault wait() = 0;
};

class Runtime {
 public:
  virtual ~Runtime() = default;
  // Those that the kernels can run on. On failure none, and why.
  virtual std::vector<DeviceInfo> devices(Fault& fault) = 0;
  virtual std::unique_ptr<Stream> open_stream(int device, Fault& fault) = 0;
};

// The component's one entry, by which a program finds it at run time. Null when it was built for another version.
inline constexpr int kRuntimeVersion = 1;
inline constexpr const char* kRuntimeEntry = "lockstep_cuda_runtime";
using RuntimeEntry = Runtime* (*)(int version);

}  // namespace lockstep::ode::cuda
