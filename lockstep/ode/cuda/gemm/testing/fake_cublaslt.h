// cuBLASLt and the few CUDA functions that the engine cuda_gemm's runtime calls, on the host, as their documentation
// has them: matrices in columns with a leading dimension, biases along the rows of a result, graphs that repeat
// themselves.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace lockstep::ode::cuda::testing {

struct FakeCublasLt {
  bool graphs = true;     // conditional nodes are known
  bool epilogues = true;  // any at all
  bool any_algorithm = true;
  bool captured = true;              // products may be captured; else one breaks a capture off
  int other_biases = 0;              // descriptions whose bias was of another type than the result: refused
  int cut_factors = 0;               // of products in tf32, which had more bits than that has
  std::map<std::string, int> calls;  // by function
  int passes_by_graph = 0;  // one or more rounds each, repeated without the host
  // What stands in for a kernel that came as text; `launch` is a GemmLaunch<float>. Without one no code is taken.
  std::function<void(const void* launch, bool counts)> source;
  int open = 0;  // handles, descriptions, streams, graphs, pinned memory, libraries that are there now
};

// The one that the functions work on; reset by assigning a new one.
FakeCublasLt& fake_cublaslt();

// A stream of the user's, and a graph captured on it.
class UserStream {
 public:
  UserStream();
  ~UserStream();
  UserStream(const UserStream&) = delete;
  UserStream& operator=(const UserStream&) = delete;
  void* native() const { return stream_; }  // a cudaStream_t
  // False where the capture was broken off.
  bool capture(const std::function<void()>& work);
  bool launch();

 private:
  void* stream_ = nullptr;
  void* graph_ = nullptr;
};

}  // namespace lockstep::ode::cuda::testing
