#include "lockstep/ode/cost_model.h"

#include <algorithm>
#include <cmath>

#include "lockstep/ode/detail/fixed_steps.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/solution.h"

namespace lockstep::ode {
namespace {

// In fused multiply-adds: what takes as long. An activation such as tanh is about 20 instructions and a division.
constexpr double kActivation = 30;
constexpr double kSystemComponent = 6;  // the derivative of one component of a built-in system
constexpr double kStepControl = 60;     // error norm, logarithm, power
constexpr double kGuessedSteps = 200;   // of an adaptive solve nobody has tried

double operations_of(const StateFunction& rhs) {
  double sum = 0;
  for (const FunctionPart& part : rhs.parts()) {
    if (const auto* net = std::get_if<NetPart>(&part.what)) {
      for (const DenseLayer& layer : net->mlp->layers) {
        const bool cheap =
            layer.activation.kind == ActivationKind::identity || layer.activation.kind == ActivationKind::relu;
        sum += static_cast<double>(layer.outputs) * (static_cast<double>(layer.inputs) + (cheap ? 1 : kActivation));
      }
    } else {
      sum += kSystemComponent * static_cast<double>(rhs.components());
    }
  }
  // A user's own function: who knows; a few dozen operations a component.
  return sum > 0 ? sum : 5 * kSystemComponent * static_cast<double>(rhs.components());
}

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

// Of a multiprocessor, a cycle (CUDA C++ Programming Guide, table "Throughput of Native Arithmetic Instructions").
double multiply_adds_a_cycle(const cuda::DeviceInfo& device, Precision precision) {
  const bool data_center = (device.major == 8 && device.minor == 0) || (device.major == 9 && device.minor == 0) ||
                           (device.major == 10 && device.minor == 0);
  if (precision == Precision::f32) return device.major == 8 && device.minor == 0 ? 64 : 128;
  return !data_center ? 2 : device.major == 8 ? 32 : 64;
}

}  // namespace

Work estimate_work(const Problem& problem, const Options& options, double steps) {
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
  work.operations = (stages - 1) * operations_of(*problem.rhs) + n * stages * (stages + 1) / 2 + kStepControl;
  const double number = options.precision == Precision::f32 ? 4 : 8;
  work.output_bytes = (static_cast<double>(problem.save_points()) + 1) * n * number + sizeof(TrajectoryRecord);
  return work;
}

double predict_cpu_seconds(const Work& work, CpuTarget target, int threads) {
  constexpr double kLatency = 20e-6;  // threads woken
  // Trajectories go in tiles: the last one is paid in full.
  const double tiles = std::ceil(work.trajectories / kTileLanes);
  const double rounds = std::max(tiles / threads, std::min(tiles, 1.0));
  return kLatency + rounds * kTileLanes * work.steps * work.operations / cpu_rate(target, work.precision) * 1e-9;
}

double predict_cuda_seconds(const Work& work, const cuda::DeviceInfo& device) {
  constexpr double kLatency = 0.15;  // a context made, kernels loaded, memory pinned
  constexpr double kShare = 0.3;     // of the peak: divergence, control, weights read
  // One thread alone waits 4 cycles for each result, and spends as many on addresses, conversions and control.
  constexpr double kCyclesAnOperation = 8;
  constexpr double kBytesASecond = 20e9;  // over PCIe
  const double clock = (device.clock_ghz > 0 ? device.clock_ghz : 1.5) * 1e9;
  const double rate = multiply_adds_a_cycle(device, work.precision) * device.multiprocessors * clock * kShare;
  const double total = work.trajectories * work.steps * work.operations / rate;
  const double alone = work.steps * work.operations * kCyclesAnOperation / clock;
  return kLatency +
         std::max({total, work.trajectories > 0 ? alone : 0.0, work.trajectories * work.output_bytes / kBytesASecond});
}

}  // namespace lockstep::ode
