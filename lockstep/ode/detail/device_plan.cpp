#include "lockstep/ode/detail/device_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "lockstep/core/error.h"
#include "lockstep/ode/cost_model.h"
#include "lockstep/ode/cpu/engine.h"
#include "lockstep/ode/cuda/load.h"
#include "lockstep/ode/cuda/program.h"

namespace lockstep::ode::detail {
namespace {

using Kind = DeviceShare::Kind;

DevicePlan on_cpu(const Problem& problem, std::string reason) {
  return {{{Kind::cpu, 0, 0, problem.trajectories()}}, "cpu", "", std::move(reason)};
}

std::string seconds(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.2g s", value);
  return text;
}

DevicePlan automatic(const Problem& problem, const Options& options, double steps) {
  if (const auto obstacle = cuda::obstacle(problem, options))
    return on_cpu(problem, "a GPU cannot run this: " + obstacle->field + " is " + obstacle->found);
  const Work work = estimate_work(problem, options, steps);
  const cpu::EnginePlan cpu = cpu::plan(problem, options);
  const double cpu_seconds = predict_cpu_seconds(work, cpu.target, cpu.threads);
  if (cpu_seconds < kLeastSecondsForCuda)
    return on_cpu(problem, "about " + seconds(cpu_seconds) + " on the CPU by built-in figures: too little for a GPU");
  const cuda::LoadedRuntime& loaded = cuda::load_runtime();
  if (loaded.runtime == nullptr) return on_cpu(problem, loaded.missing);
  const cuda::DeviceInfo& device = loaded.devices.front();
  const double cuda_seconds = predict_cuda_seconds(work, device);
  const std::string both =
      seconds(cuda_seconds) + " on " + device.name + " and " + seconds(cpu_seconds) + " on the CPU by built-in figures";
  if (cuda_seconds >= cpu_seconds) return on_cpu(problem, "about " + both);
  return {{{Kind::cuda, device.index, 0, problem.trajectories()}}, "cuda_fused", device.name, "about " + both};
}

const cuda::DeviceInfo& device_of(const DeviceShare& share, const cuda::LoadedRuntime& loaded) {
  for (const cuda::DeviceInfo& device : loaded.devices) {
    if (device.index == share.index) return device;
  }
  std::string known;
  for (const cuda::DeviceInfo& device : loaded.devices)
    known += (known.empty() ? "cuda:" : ", cuda:") + std::to_string(device.index) + " (" + device.name + ")";
  throw Error(ErrorKind::unsupported, {.field = "options.device",
                                       .found = "cuda:" + std::to_string(share.index),
                                       .expected = known,
                                       .remedy = "name a device that nvidia-smi lists"});
}

DevicePlan shared_out(const Problem& problem, const Options& options) {
  const cuda::LoadedRuntime& loaded = cuda::load_runtime();
  if (loaded.runtime == nullptr) {
    throw Error(ErrorKind::unsupported, {.field = "options.device",
                                         .found = to_string(options.device),
                                         .expected = "cpu or auto here: " + loaded.missing,
                                         .remedy = "run on the CPU with --device cpu"});
  }
  if (const auto obstacle = cuda::obstacle(problem, options)) {
    throw Error(ErrorKind::unsupported, {.field = obstacle->field,
                                         .found = obstacle->found,
                                         .expected = obstacle->expected,
                                         .remedy = obstacle->remedy});
  }
  DevicePlan plan{.parts = {}, .engine = "", .device = "", .reason = "asked for: " + to_string(options.device)};
  const std::size_t total = problem.trajectories();
  double percent = 0;
  std::size_t first = 0;
  bool cpu = false;
  for (const DeviceShare& share : options.device.shares) {
    percent += share.percent;
    const bool last = &share == &options.device.shares.back();
    const auto boundary = static_cast<std::size_t>(std::llround(static_cast<double>(total) * percent / 100));
    const std::size_t end = last ? total : std::min(total, boundary / kTileLanes * kTileLanes);
    plan.parts.push_back({share.kind, share.index, first, end - first});
    first = end;
    if (share.kind == Kind::cpu) {
      cpu = true;
    } else {
      plan.device += (plan.device.empty() ? "" : ", ") + device_of(share, loaded).name;
    }
  }
  plan.engine = cpu ? "cpu + cuda_fused" : "cuda_fused";
  return plan;
}

// Rows [first, first + count) of numbers that are each trajectory's; all of them where they are shared.
std::vector<double> rows(const std::vector<double>& all, std::size_t width, bool own, std::size_t first,
                         std::size_t count) {
  if (!own) return all;
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first * width);
  return {begin, begin + static_cast<std::ptrdiff_t>(count * width)};
}

}  // namespace

DevicePlan plan_devices(const Problem& problem, const Options& options, double steps) {
  if (options.device.is_automatic()) return automatic(problem, options, steps);
  if (!options.device.uses_cuda()) return on_cpu(problem, "asked for");
  return shared_out(problem, options);
}

Problem slice(const Problem& problem, std::size_t first, std::size_t count) {
  Problem part;
  part.rhs = problem.rhs;
  part.event = problem.event;
  const std::size_t m = problem.rhs->parameters();
  part.initial_states = rows(problem.initial_states, problem.rhs->components(), true, first, count);
  part.parameters = rows(problem.parameters, m, problem.parameters.size() != m, first, count);
  part.start_times = rows(problem.start_times, 1, problem.start_times.size() != 1, first, count);
  part.end_times = rows(problem.end_times, 1, problem.end_times.size() != 1, first, count);
  part.save_times_per_trajectory = problem.save_times_per_trajectory;
  part.save_times = rows(problem.save_times, problem.save_points(), problem.save_times_per_trajectory, first, count);
  return part;
}

}  // namespace lockstep::ode::detail
