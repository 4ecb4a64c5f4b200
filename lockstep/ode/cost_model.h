// How long a solve takes on each engine: a latency, then work over throughput, from built-in figures or from those that
// `lockstep calibrate` measured. Good for the choice between engines, where they differ by factors; not a promise.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lockstep/core/matrix_precision.h"
#include "lockstep/core/precision.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/ode/calibration.h"
#include "lockstep/ode/cuda/runtime.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"

namespace lockstep::ode {

// The kernels of cuda_fused, as far as their speed differs (docs/cuda.md).
enum class CudaKernel {
  one_shape,  // compiled for the problem's shape: everything in registers
  general,    // methods from a table, arrays in local memory
  tiles,      // blocks of threads evaluate nets together
};
std::string_view to_string(CudaKernel kernel);  // for people

// What a solve has to do.
struct Work {
  double trajectories = 0;
  double steps = 0;           // of one trajectory
  double operations = 0;      // of one step: about as many as fused multiply-adds would take the time
  double net_operations = 0;  // those of them that nets take
  double output_bytes = 0;    // of one trajectory
  Precision precision = Precision::f32;
  CudaKernel cuda_kernel = CudaKernel::one_shape;
  double evaluations = 1;  // of the right-hand side, of one step
  double components = 0;
  double layers = 0, neurons = 0;  // of all nets
};

// `steps`: of a trajectory where known (a pilot's), else counted for fixed steps and guessed for adaptive ones.
Work estimate_work(const Problem& problem, const Options& options, double steps = 0);

// `measured`: used where it has the instruction set, or the card with its driver; otherwise the built-in figures.
double predict_cpu_seconds(const Work& work, CpuTarget target, int threads, const Calibration* measured = nullptr);
double predict_cuda_seconds(const Work& work, const cuda::DeviceInfo& device, const Calibration* measured = nullptr);
// The same by matrix products, a layer of all trajectories at a time (cuda_gemm): built-in figures alone.
double predict_gemm_seconds(const Work& work, const cuda::DeviceInfo& device,
                            MatrixPrecision matrix_precision = MatrixPrecision::f32);

// Which figures those would be, for people: "measured 2026-11-21" or "built in, not measured".
std::string cpu_figures_text(CpuTarget target, Precision precision, const Calibration* measured);
std::string cuda_figures_text(const cuda::DeviceInfo& device, Precision precision, const Calibration* measured);

// Below this much time on the CPU no GPU is asked for: waking one takes longer.
inline constexpr double kLeastSecondsForCuda = 0.2;

}  // namespace lockstep::ode
