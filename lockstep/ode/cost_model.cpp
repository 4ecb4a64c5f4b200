#include "lockstep/ode/cost_model.h"

#include <algorithm>
#include <cmath>

#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/ode/detail/evaluation_cost.h"
#include "lockstep/ode/detail/fixed_steps.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/solution.h"

namespace lockstep::ode {
namespace {

constexpr double kStepControl = 60;    // in fused multiply-adds: error norm, logarithm, power
constexpr double kGuessedSteps = 200;  // of an adaptive solve nobody has tried

// Fused multiply-adds a nanosecond of one core, at a share of the peak that nets and steps reach.
double cpu_rate(CpuTarget target, Precision precision) {
  double lanes = 1.0 / 20;  // scalar std::fma
  if (target == CpuTarget::avx512) lanes = 16;
  if (target == CpuTarget::avx2) lanes = 8;
  if (target == CpuTarget::neon) lanes = 4;
  if (precision == Precision::f64) lanes /= 2;
  constexpr double kGigahertz = 3, kUnits = 2, kShare = 0.5;
  return lanes * kGigahertz * kUnits * kShare;
}

// Of one step of one trajectory, at rates in operations a nanosecond.
double step_nanoseconds(const Work& work, double net_rate, double step_rate) {
  return work.net_operations / net_rate + (work.operations - work.net_operations) / step_rate;
}

// Of a multiprocessor, a cycle (CUDA C++ Programming Guide, table "Throughput of Native Arithmetic Instructions").
double multiply_adds_a_cycle(const cuda::DeviceInfo& device, Precision precision) {
  const bool data_center = (device.major == 8 && device.minor == 0) || (device.major == 9 && device.minor == 0) ||
                           (device.major == 10 && device.minor == 0);
  if (precision == Precision::f32) return device.major == 8 && device.minor == 0 ? 64 : 128;
  return !data_center ? 2 : device.major == 8 ? 32 : 64;
}

// What the kernels of cuda_fused reach in proportion to one that is compiled for its shape: guesses, from the machine
// code. In tiles the loop over inputs is 92 % fma on operands from shared memory; local memory costs a general kernel a
// load and a store for almost every operation.
struct RelativeRates {
  double nets, steps;
};
RelativeRates relative_rates(CudaKernel kernel) {
  if (kernel == CudaKernel::tiles) return {0.8, 1.0 / 11};
  if (kernel == CudaKernel::general) return {1.0 / 11, 1.0 / 11};
  return {1, 1};
}

constexpr double kCudaLatency = 0.15;  // seconds: a context made, kernels loaded, memory pinned
constexpr double kPcieBytesASecond = 20e9;

double clock_of(const cuda::DeviceInfo& device) { return (device.clock_ghz > 0 ? device.clock_ghz : 1.5) * 1e9; }

// Seconds that one trajectory takes alone: a chain of results that wait for each other.
double seconds_alone(const Work& work, const cuda::DeviceInfo& device) {
  // 4 cycles for each result, and as many on addresses, conversions and control; through local memory three times that.
  constexpr double kCyclesAnOperation = 8;
  const double rest = work.operations - work.net_operations;
  double cycles = kCyclesAnOperation * work.operations;
  if (work.cuda_kernel == CudaKernel::general) cycles *= 3;
  if (work.cuda_kernel == CudaKernel::tiles) {
    // A block evaluates its whole tile, empty places too, on the units of one multiprocessor.
    const double samples = work.precision == Precision::f32 ? 64 : 32;
    cycles = 3 * kCyclesAnOperation * rest +
             work.net_operations * samples / (0.5 * multiply_adds_a_cycle(device, work.precision));
  }
  return work.steps * cycles / clock_of(device);
}

// Of memory, a second: from the data sheets of the A100, H100/H200 and B200; else of a good consumer card.
double memory_bytes_a_second(const cuda::DeviceInfo& device) {
  if (device.major == 8 && device.minor == 0) return 1.6e12;
  if (device.major == 9 && device.minor == 0) return 3.4e12;
  if (device.major == 10) return 7e12;
  return 0.8e12;
}

// How much faster matrix products are in a mode of tensor cores (data sheets, without sparsity): on the A100
// 156 and 312 TFLOP/s against 19.5, on the H100 495 and 989 against 67, on Ada cards about 1 and 2 times.
double matrix_speedup(const cuda::DeviceInfo& device, MatrixPrecision mode) {
  if (mode == MatrixPrecision::f32) return 1;
  const bool data_center = device.minor == 0 && device.major >= 8;
  const double tf32 = data_center ? 7.5 : 1;
  return mode == MatrixPrecision::tf32 ? tf32 : 2 * tf32;
}

// As cuda::lower_problem() chooses, where a kernel of the problem's own shape is compiled or can be.
CudaKernel kernel_of(const Problem& problem) {
  std::size_t width = 0;
  const auto parts = problem.rhs->parts();
  for (const FunctionPart& part : parts) {
    const auto* const net = std::get_if<NetPart>(&part.what);
    if (net == nullptr) continue;
    width = std::max(width, net->mlp->inputs());
    for (const DenseLayer& layer : net->mlp->layers) width = std::max(width, layer.outputs);
  }
  const std::size_t n = problem.rhs->components();
  if (parts.size() <= 1 && n <= 8) {
    const auto* const net = parts.empty() ? nullptr : std::get_if<NetPart>(&parts.front().what);
    if (net == nullptr) return CudaKernel::one_shape;
    const bool folded = net->mlp->layers.size() == 2 && net->mlp->inputs() == n && !net->with_time &&
                        net->range.minimum == nullptr &&
                        net->mlp->layers[1].activation.kind == ActivationKind::identity;
    if (folded) return CudaKernel::one_shape;
  }
  return width >= 32 && width <= 256 ? CudaKernel::tiles : CudaKernel::general;
}

}  // namespace

std::string_view to_string(CudaKernel kernel) {
  if (kernel == CudaKernel::tiles) return "nets by blocks of threads";
  return kernel == CudaKernel::general ? "general kernel" : "kernel of its own shape";
}

Work estimate_work(const Problem& problem, const Options& options, double steps) {
  const StandardArithmetic arithmetic;
  const Tableau& tableau = method(options.method);
  const double n = static_cast<double>(problem.rhs->components());
  const double stages = tableau.stages;
  Work work{.trajectories = static_cast<double>(problem.trajectories()), .precision = options.precision};
  if (steps == 0) {
    steps = kGuessedSteps;
    if (options.control == StepControl::fixed && problem.trajectories() > 0)
      steps = std::fabs(problem.end_time(0) - problem.start_time(0)) / options.dt;
  }
  work.steps = steps;
  const EvaluationCost rhs = detail::cost_of(*problem.rhs);
  // A Jacobian counts as an evaluation for each component, each with its derivative.
  const bool implicit = tableau.is_linearly_implicit();
  work.evaluations = tableau.evaluations(options.control != StepControl::fixed);
  const double evaluations = work.evaluations + (implicit ? 2 * n : 0);
  const double linear = implicit ? n * n * n / 3 + (stages - 1) * n * n : 0;
  work.net_operations = evaluations * rhs.nets;
  work.operations = work.net_operations + evaluations * rhs.rest + n * stages * (stages + 1) / 2 + linear +
                    (options.control == StepControl::fixed ? 0 : kStepControl);
  work.cuda_kernel = kernel_of(problem);
  work.components = n;
  work.layers = rhs.layers;
  work.neurons = rhs.neurons;
  const double number = options.precision == Precision::f32 ? 4 : 8;
  work.output_bytes = (static_cast<double>(problem.save_points()) + 1) * n * number + sizeof(TrajectoryRecord);
  return work;
}

double predict_cpu_seconds(const Work& work, CpuTarget target, int threads, const Calibration* measured) {
  const StandardArithmetic arithmetic;
  constexpr double kLatency = 20e-6;  // threads woken
  // Trajectories go in tiles: the last one is paid in full.
  const double tiles = std::ceil(work.trajectories / kTileLanes);
  const double rounds = std::max(tiles / threads, std::min(tiles, 1.0));
  const CpuFigures* const figures = measured == nullptr ? nullptr : measured->find(target, work.precision);
  const double built_in = cpu_rate(target, work.precision);
  const double nanoseconds =
      step_nanoseconds(work, figures ? figures->net_rate : built_in, figures ? figures->step_rate : built_in);
  return kLatency + rounds * kTileLanes * work.steps * nanoseconds * 1e-9;
}

double predict_cuda_seconds(const Work& work, const cuda::DeviceInfo& device, const Calibration* measured) {
  const StandardArithmetic arithmetic;
  // Of the peak, by operations as they are counted here: what an H200 reached (benchmarks/results/h200-2026-11-28.json)
  // in Lorenz's equations in float64; in a small net 0.75.
  constexpr double kShare = 0.55;
  const GpuFigures* const figures =
      measured == nullptr ? nullptr : measured->find(device.name, device.driver, work.precision);
  const double built_in =
      multiply_adds_a_cycle(device, work.precision) * device.multiprocessors * clock_of(device) * kShare * 1e-9;
  const RelativeRates relative = relative_rates(work.cuda_kernel);
  const double nanoseconds = step_nanoseconds(work, relative.nets * (figures ? figures->net_rate : built_in),
                                              relative.steps * (figures ? figures->step_rate : built_in));
  const double total = work.trajectories * work.steps * nanoseconds * 1e-9;
  const double alone = work.trajectories > 0 ? seconds_alone(work, device) : 0;
  const double output = work.trajectories * work.output_bytes / (figures ? figures->bytes_a_second : kPcieBytesASecond);
  return (figures ? figures->latency : kCudaLatency) + std::max({total, alone, output});
}

double predict_gemm_seconds(const Work& work, const cuda::DeviceInfo& device, MatrixPrecision matrix_precision) {
  const StandardArithmetic arithmetic;
  constexpr double kShare = 0.7;        // of the peak, in large products
  constexpr double kLaunch = 3e-6;      // of a kernel in a graph, until the next one starts
  constexpr double kLoadSeconds = 0.4;  // cuBLASLt: 540 MB
  const double number = work.precision == Precision::f32 ? 4 : 8;
  const double peak = multiply_adds_a_cycle(device, work.precision) * device.multiprocessors * clock_of(device);
  const double products = work.net_operations / (kShare * peak * matrix_speedup(device, matrix_precision));
  // Every layer's numbers are written once and read once; a stage reads the stages before it.
  const double state = work.components * (work.evaluations / 2 + 3);
  const double bytes = work.evaluations * (2 * work.neurons + state) * number;
  const double step = work.trajectories * (products + bytes / memory_bytes_a_second(device)) +
                      kLaunch * (work.evaluations * (work.layers + 2) + 3);
  const double output = work.trajectories * work.output_bytes / kPcieBytesASecond;
  const double total = work.trajectories > 0 ? work.steps * step : 0;
  return kCudaLatency + kLoadSeconds + std::max(total, output);
}

std::string cpu_figures_text(CpuTarget target, Precision precision, const Calibration* measured) {
  if (measured == nullptr || measured->find(target, precision) == nullptr) return "built in, not measured";
  return "measured " + measured->measured;
}

std::string cuda_figures_text(const cuda::DeviceInfo& device, Precision precision, const Calibration* measured) {
  if (measured == nullptr || measured->find(device.name, device.driver, precision) == nullptr)
    return "built in, not measured";
  return "measured " + measured->measured;
}

}  // namespace lockstep::ode
