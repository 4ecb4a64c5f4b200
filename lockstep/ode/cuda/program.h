// A problem and options made into what a kernel is launched with, and the kernel chosen.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/ode/cuda/block_launch.h"
#include "lockstep/ode/cuda/kernel_source.h"
#include "lockstep/ode/detail/stops.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"

namespace lockstep::ode::cuda {

// A problem and options in that form, the ensemble left out, and the kernel to run it.
template <class T>
struct Lowered {
  BlockLaunch<T> launch{};  // kernels that are none of blocks take its first part, a Launch<T>
  std::vector<T> weights;
  detail::Stops stops;
  std::string kernel;                  // a name of kernel_list.h, or the source's
  std::optional<KernelSource> source;  // of a kernel that is compiled when the program runs
  // The same solve by a kernel for its one shape, where `kernel` is a general one: faster, but it has to be compiled.
  std::optional<KernelSource> special;
};

// Why a problem cannot run in these kernels, for people, with what to do; nullopt when it can.
struct Obstacle {
  std::string field, found, expected, remedy;
};
std::optional<Obstacle> obstacle(const Problem& problem, const Options& options);
// Its event where that comes as text, which belongs to the problem.
std::optional<SourcePart> event_source(const Problem& problem);
// Whether its kernel has to be compiled when the program runs: where the right-hand side or the event comes as text,
// with resets, and for a linearly implicit method.
bool comes_as_text(const Problem& problem, const Options& options);
// What holds for every engine on a GPU: its step control and method; its number of parts and components; its event.
// (Resets and linearly implicit methods are cuda_fused's alone.)
std::optional<Obstacle> method_obstacle(const Options& options);
std::optional<Obstacle> size_obstacle(const Problem& problem);
std::optional<Obstacle> event_obstacle(const Problem& problem);

// The rules of the steps, the event and the method; of the program no more than the sizes.
template <class T>
void lower_rules(const Problem& problem, const Options& options, Launch<T>& launch);

// A part whose parameters begin with number `first_parameter`, and its system; nets (kNetPart) are left to the engine.
// `compiles`: a kernel that comes as text holds the systems.
PartProgram begin_part(const FunctionPart& from, bool compiles, std::int32_t first_parameter);

// Throws Error (unsupported) where there is an obstacle, (model) for weights that do not fit in T.
template <class T>
Lowered<T> lower_problem(const Problem& problem, const Options& options);

extern template Lowered<float> lower_problem<float>(const Problem&, const Options&);
extern template Lowered<double> lower_problem<double>(const Problem&, const Options&);

}  // namespace lockstep::ode::cuda
