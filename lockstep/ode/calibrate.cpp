#include "lockstep/ode/calibrate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>

#include "lockstep/core/random.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/ode/cost_model.h"
#include "lockstep/ode/cuda/load.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode {
namespace {

double seconds_of(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string now() {
  const std::time_t time = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// Steps without a net: the Lorenz equations. Fixed steps, so that the work is the same for every precision and machine.
Problem system_problem(std::size_t trajectories) {
  Problem problem;
  problem.rhs = system("lorenz");
  problem.parameters = {10, 28, 8.0 / 3};
  problem.end_times = {1};
  for (std::size_t i = 0; i < trajectories; ++i)
    problem.initial_states.insert(problem.initial_states.end(), {1 + 1e-6 * static_cast<double>(i), 0, 20});
  return problem;
}

// A net of a common size, half of its time the products, half the activations.
Problem net_problem(std::size_t trajectories) {
  const Random random(1, 0);
  std::size_t drawn = 0;
  Mlp mlp;
  const auto layer = [&](std::size_t inputs, std::size_t outputs, ActivationKind kind) {
    DenseLayer dense{.inputs = inputs, .outputs = outputs, .activation = {kind}};
    for (std::size_t i = 0; i < inputs * outputs; ++i)
      dense.weights.push_back((random.uniform(drawn++, 0) - 0.5) / std::sqrt(static_cast<double>(inputs)));
    dense.bias.assign(outputs, 0.0);
    mlp.layers.push_back(std::move(dense));
  };
  layer(3, 48, ActivationKind::tanh);
  layer(48, 3, ActivationKind::identity);
  Problem problem;
  problem.rhs = net(std::move(mlp));
  problem.end_times = {1};
  for (std::size_t i = 0; i < 3 * trajectories; ++i) problem.initial_states.push_back(random.uniform(i, 1));
  return problem;
}

Options fixed_steps(Precision precision, int steps) {
  Options options;
  options.control = StepControl::fixed;
  options.dt = 1.0 / steps;
  options.precision = precision;
  options.threads = 1;
  options.device = DeviceChoice::cpu();
  return options;
}

void check(const RunControl& control) {
  if (control.cancelled()) throw Error(ErrorKind::cancelled, {.field = "calibrate", .found = "a request to stop"});
}

// Nanoseconds of one trajectory's step: the best of three solves that take about as long as wanted.
double cpu_step_nanoseconds(const Problem& problem, Options options, double seconds) {
  int steps = 128;  // enough that no trajectory blows up and ends early
  const auto time = [&] {
    options.dt = 1.0 / steps;
    return seconds_of([&] { solve(problem, options); });
  };
  double spent = time();
  while (spent < 0.3 * seconds && steps < 1 << 22) {
    steps = static_cast<int>(steps * std::clamp(0.5 * seconds / spent, 2.0, 16.0));
    spent = time();
  }
  for (int repeat = 0; repeat < 2; ++repeat) spent = std::min(spent, time());
  return spent * 1e9 / steps / static_cast<double>(problem.trajectories());
}

CpuFigures measure_cpu(CpuTarget target, Precision precision, double seconds) {
  const Problem plain = system_problem(4 * kTileLanes), with_net = net_problem(4 * kTileLanes);
  Options options = fixed_steps(precision, 1);
  options.cpu_target = target;
  CpuFigures figures{.target = target, .precision = precision};
  const Work plain_work = estimate_work(plain, options, 1), net_work = estimate_work(with_net, options, 1);
  figures.step_rate = plain_work.operations / cpu_step_nanoseconds(plain, options, seconds);
  const double rest = (net_work.operations - net_work.net_operations) / figures.step_rate;
  const double whole = cpu_step_nanoseconds(with_net, options, seconds);
  figures.net_rate = net_work.net_operations / std::max(whole - rest, 0.1 * whole);
  return figures;
}

// Seconds that `problem` takes on a device beyond those of its first half: what is paid once drops out.
double second_half_seconds(const Problem& problem, const Options& options) {
  const Problem half = problem.part(0, problem.trajectories() / 2);
  double whole = 1e30, first = 1e30;
  for (int repeat = 0; repeat < 3; ++repeat) {
    whole = std::min(whole, seconds_of([&] { solve(problem, options); }));
    first = std::min(first, seconds_of([&] { solve(half, options); }));
  }
  return std::max(whole - first, 0.05 * whole);
}

GpuFigures measure_cuda(const cuda::DeviceInfo& device, Precision precision, double latency,
                        const CalibrateOptions& effort, const RunControl& control) {
  constexpr int kSaves = 200;
  const std::size_t trajectories = effort.cuda_trajectories;
  GpuFigures figures{.name = device.name, .driver = device.driver, .precision = precision, .latency = latency};
  Options options = fixed_steps(precision, effort.cuda_steps);
  options.device = DeviceChoice::cuda(device.index);
  const double half = static_cast<double>(trajectories) / 2;
  const auto nanoseconds = [&](const Problem& problem) {
    check(control);
    return second_half_seconds(problem, options) * 1e9 / half / effort.cuda_steps;
  };
  const Problem plain = system_problem(trajectories), with_net = net_problem(trajectories);
  const Work plain_work = estimate_work(plain, options, 1), net_work = estimate_work(with_net, options, 1);
  figures.step_rate = plain_work.operations / nanoseconds(plain);
  const double rest = (net_work.operations - net_work.net_operations) / figures.step_rate;
  const double whole = nanoseconds(with_net);
  figures.net_rate = net_work.net_operations / std::max(whole - rest, 0.1 * whole);
  // Few steps, many results.
  Problem saving = system_problem(std::max<std::size_t>(trajectories / 4, 64));
  for (int i = 0; i < kSaves; ++i) saving.save_times.push_back(static_cast<double>(i) / kSaves);
  options.dt = 1;
  check(control);
  figures.bytes_a_second = estimate_work(saving, options, 1).output_bytes *
                           static_cast<double>(saving.trajectories() / 2) / second_half_seconds(saving, options);
  return figures;
}

}  // namespace

Calibration calibrate(const CalibrateOptions& options, const RunControl& control) {
  const StandardReading arithmetic;
  Calibration result{.machine = this_machine(), .measured = now(), .cpu = {}, .gpu = {}};
  const auto targets = available_cpu_targets();
  const cuda::LoadedRuntime* loaded = nullptr;
  // A program's first solve on a device makes a context and loads kernels: only once can that be timed.
  const double loading = seconds_of([&] { loaded = &cuda::load_runtime(); });
  const std::size_t total = 2 * (targets.size() + loaded->devices.size());
  std::size_t done = 0;
  const auto finished = [&] {
    ++done;
    if (control.progress) control.progress(done, total);
    check(control);
  };
  for (const CpuTarget target : targets) {
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      result.cpu.push_back(measure_cpu(target, precision, options.seconds));
      finished();
    }
  }
  for (const cuda::DeviceInfo& device : loaded->devices) {
    try {
      Options first = fixed_steps(Precision::f32, 1);
      first.device = DeviceChoice::cuda(device.index);
      const double latency = loading + seconds_of([&] { solve(system_problem(kTileLanes), first); });
      for (const Precision precision : {Precision::f32, Precision::f64}) {
        result.gpu.push_back(measure_cuda(device, precision, latency, options, control));
        finished();
      }
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::cancelled) throw;
    }
  }
  return result;
}

}  // namespace lockstep::ode
