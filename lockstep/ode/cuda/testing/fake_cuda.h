// The CUDA runtime's functions that the component calls, on the host: kernels are the listed ones, run in a loop. Every
// call is counted and may be told to fail, so that tests see what the component does with a device that no test has.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace lockstep::ode::cuda::testing {

struct FakeCuda {
  int driver = 13000, devices = 1, major = 9;  // versions as CUDA writes them; compute capability
  std::size_t memory = std::size_t{1} << 30;   // of the device, and as much that may be pinned
  int device_blocks = 0, pinned_blocks = 0, streams = 0, libraries = 0;  // that are there now
  std::size_t used = 0, pinned = 0;
  std::map<std::string, int> calls;   // by function
  std::map<const void*, int> shared_percent;  // of a multiprocessor's memory, preferred by kernel
  std::vector<std::string> sequence;  // of those that queue, wait, or take memory
  std::vector<void*> queued_on;       // the stream of each call that queues
  int current_device = 0;
  // The call of that number, from 0, fails with the error, and every later one where `lasting`. -1: none.
  int failing_call = -1;
  int error = 0;  // a cudaError_t
  bool lasting = false;
  int calls_so_far = 0;
};

// The one that the functions work on; reset by assigning a new one.
FakeCuda& fake_cuda();

}  // namespace lockstep::ode::cuda::testing
