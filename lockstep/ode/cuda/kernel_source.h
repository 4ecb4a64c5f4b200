// The text of a kernel for one problem, to be compiled when the program runs.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/core/matrix_precision.h"
#include "lockstep/core/precision.h"
#include "lockstep/kernels/activation.h"
#include "lockstep/ode/event_direction.h"
#include "lockstep/ode/function_part.h"
#include "lockstep/ode/jacobian_source.h"

namespace lockstep::ode::cuda {

struct KernelSource {
  std::string name;  // for people: "source lorenz, tsit5, f64"
  std::string text;  // CUDA C++; defines kSourceKernel for a Launch<float> or Launch<double>
  int threads = 128;
  bool float64 = false;
  std::size_t shared_bytes = 0;  // of dynamic shared memory
  int threads_a_trajectory = 1;
};

inline constexpr const char* kSourceKernel = "lockstep_source_kernel";

// The integrator of a method round du = f(t, u, p) as the part's text has it.
KernelSource make_kernel_source(const SourcePart& part, std::string_view method, Precision precision);

// A reset as bodies of functions: `function` returns a number, `state` sets du to what the state becomes, or returns it
// where the state is one number.
struct ResetSource {
  std::string function, state;
  bool state_returns = false;
  EventDirection direction = EventDirection::either;
};

// The same round a sum, its terms but nets compiled in as the program's kOwnTerm, and round an event that comes as
// text. For a BlockLaunch where `tiles`, whose shared memory the caller fills in.
struct SumForm {
  std::span<const FunctionPart> parts;
  std::size_t components = 0, parameters = 0;
  std::size_t width = 0;              // of the widest net; 0: there is none
  const SourcePart* event = nullptr;  // null: none, or one that the launch describes
  std::span<const ResetSource> resets = {};  // not in tiles
  const JacobianSource* jacobian = nullptr;  // of the only part, code as text, for a linearly implicit method
  bool tiles = false;                 // blocks of threads evaluate the nets together,
  MatrixPrecision matrices = MatrixPrecision::f32;  // in tiles, on tensor cores but for f32
};
KernelSource make_sum_source(const SumForm& form, std::string_view method, Precision precision);

// Of the engine cuda_gemm, whose products evaluate the nets: in place of the kernel that takes each trajectory on, with
// the form's terms and event compiled in. For a GemmLaunch and a bool; any method.
KernelSource make_gemm_source(const SumForm& form, Precision precision);

// The same for a built-in system ("kepler").
KernelSource make_system_source(std::string_view system, std::size_t components, std::string_view method,
                                Precision precision);

// The same for a net n - width - n with one hidden layer (see thread_net.h), whose weights take `weight_bytes`; round
// an event that comes as text, if there is one, and resets.
KernelSource make_folded_net_source(int n, ActivationKind activation, std::size_t weight_bytes, std::string_view method,
                                    Precision precision, const SourcePart* event = nullptr,
                                    std::span<const ResetSource> resets = {});

// The library's own headers that such a text includes, and their contents.
struct EmbeddedHeader {
  const char* name;
  const char* text;
};
const std::vector<EmbeddedHeader>& embedded_headers();

}  // namespace lockstep::ode::cuda
