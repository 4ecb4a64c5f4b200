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
  std::string driver;                       // the CUDA version that the driver knows: "13.0"
};

// What went wrong on a device. `where` is a kernel or a call, `text` the driver's own words.
struct Fault {
  bool happened = false;
  bool out_of_memory = false;
  std::string where, text;
};

// Machine code of a kernel that came as text, for one kind of device.
struct KernelImage {
  std::vector<char> code;
  std::string entry;  // the kernel's name within
  int threads = 128;  // a block
  bool float64 = false;
  std::size_t shared_bytes = 0;  // of dynamic shared memory
  int threads_a_trajectory = 1;
};

// A queue of work on one device. Calls return at once; the first failure stays and is reported by wait().
class Stream {
 public:
  virtual ~Stream() = default;

  // Device memory and host memory that copies run from in the background; null when there is too little, or the device
  // failed otherwise, which take_fault() tells. Freed with the stream, or by free_all(), which waits first.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void* allocate_pinned(std::size_t bytes) = 0;
  virtual void free_all() = 0;

  virtual void upload(void* device, const void* pinned, std::size_t bytes) = 0;
  virtual void clear(void* device, std::size_t bytes) = 0;
  virtual void download(void* pinned, const void* device, std::size_t bytes) = 0;
  // Makes a kernel known to launch() of this stream under a name of its own.
  virtual Fault add_kernel(std::string_view name, const KernelImage& image) = 0;
  // What the first launch of a kernel would have to ask the device for, so that launches like this one only queue.
  virtual Fault prepare(std::string_view kernel, const void* launch) = 0;
  // A kernel of kernel_list.h, or one added, by name, with a Launch<float> or Launch<double> as its name says.
  virtual void launch(std::string_view kernel, const void* launch) = 0;
  // Until all that was queued is done. Clears the failure it reports.
  virtual Fault wait() = 0;
  // The same without waiting: failures to queue.
  virtual Fault take_fault() = 0;
};

class Runtime {
 public:
  virtual ~Runtime() = default;
  // Those that the kernels can run on. On failure none, and why.
  virtual std::vector<DeviceInfo> devices(Fault& fault) = 0;
  virtual std::unique_ptr<Stream> open_stream(int device, Fault& fault) = 0;
  // Somebody else's cudaStream_t of that device (null: its default stream), which must outlive the result.
  virtual std::unique_ptr<Stream> borrow_stream(int device, void* stream, Fault& fault) = 0;
};

// The component's one entry, by which a program finds it at run time. Null when it was built for another version.
inline constexpr int kRuntimeVersion = 4;
inline constexpr const char* kRuntimeEntry = "lockstep_cuda_runtime";
using RuntimeEntry = Runtime* (*)(int version);

}  // namespace lockstep::ode::cuda
