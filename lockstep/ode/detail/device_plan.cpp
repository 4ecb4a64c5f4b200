#include "lockstep/ode/detail/device_plan.h"

#include <algorithm>
#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/core/text.h"
#include "lockstep/ode/cost_model.h"
#include "lockstep/ode/cpu/engine.h"
#include "lockstep/ode/cuda/choose_engine.h"
#include "lockstep/ode/cuda/load.h"
#include "lockstep/ode/methods.h"

namespace lockstep::ode::detail {
namespace {

using Kind = DeviceShare::Kind;

DevicePlan on_cpu(const Problem& problem, std::string reason) {
  return {
      {{.kind = Kind::cpu, .device = 0, .first = 0, .count = problem.trajectories()}}, "cpu", "", std::move(reason)};
}

std::string seconds(double value) { return rounded_text(value, 2) + " s"; }

// What a reader of the reason must know of the engine.
std::string with_note(const cuda::EngineDecision& decision) {
  if (!decision.note.empty()) return "; " + decision.note;
  if (decision.engine != EngineChoice::cuda_gemm) return "";
  return "; matrix products by cuBLASLt, whose bits are its own";
}

DevicePlan automatic(const Problem& problem, const Options& options, double steps) {
  // Before anything is made for a GPU: small stiff solves take no longer than that.
  if (method(options.method).is_linearly_implicit())
    return on_cpu(problem, "linearly implicit methods take a GPU only where one is named: no card has timed them");
  const auto cannot = [&](const cuda::Obstacle& obstacle) {
    return on_cpu(problem, "a GPU cannot run this: " + obstacle.field + " is " + obstacle.found);
  };
  const auto likely = cuda::decide_engine(problem, options, false);
  if (likely.obstacle) return cannot(*likely.obstacle);
  const Work work = estimate_work(problem, options, steps);
  const cpu::EnginePlan cpu = cpu::plan(problem, options);
  const KnownFigures& known = known_figures();
  const Calibration* const measured = known.measured ? &*known.measured : nullptr;
  const auto figures = [](const std::string& text) { return " by figures " + text; };
  const double cpu_seconds = predict_cpu_seconds(work, cpu.target, cpu.threads, measured);
  const std::string on_this_cpu =
      seconds(cpu_seconds) + " on the CPU" + figures(cpu_figures_text(cpu.target, work.precision, measured));
  if (cpu_seconds < kLeastSecondsForCuda) return on_cpu(problem, "about " + on_this_cpu + ": too little for a GPU");
  const cuda::LoadedRuntime& loaded = cuda::load_runtime();
  if (loaded.runtime == nullptr) return on_cpu(problem, loaded.missing);
  const cuda::DeviceInfo& device = loaded.devices.front();
  const bool gemm = likely.engine == EngineChoice::cuda_gemm;
  const double cuda_seconds = gemm ? predict_gemm_seconds(work, device) : predict_cuda_seconds(work, device, measured);
  const std::string cuda_figures =
      gemm ? "built in, not measured" : cuda_figures_text(device, work.precision, measured);
  const std::string both = seconds(cuda_seconds) + " on " + device.name + figures(cuda_figures) + " and " + on_this_cpu;
  if (cuda_seconds >= cpu_seconds) return on_cpu(problem, "about " + both);
  const auto decision = cuda::decide_engine(problem, options, true);  // opens cuBLASLt, where that is wanted
  if (decision.obstacle) return cannot(*decision.obstacle);
  return {{{Kind::cuda, device.index, 0, problem.trajectories(), decision.engine}},
          std::string(to_string(decision.engine)),
          device.name,
          "about " + both + with_note(decision)};
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
  const cuda::EngineDecision decision = cuda::decide_engine(problem, options, true);
  if (const auto& obstacle = decision.obstacle) {
    throw Error(ErrorKind::unsupported, {.field = obstacle->field,
                                         .found = obstacle->found,
                                         .expected = obstacle->expected,
                                         .remedy = obstacle->remedy});
  }
  DevicePlan plan{.parts = {},
                  .engine = "",
                  .device = "",
                  .reason = "asked for: " + to_string(options.device) + with_note(decision)};
  const std::size_t total = problem.trajectories();
  double percent = 0;
  std::size_t first = 0;
  bool cpu = false;
  for (const DeviceShare& share : options.device.shares) {
    percent += share.percent;
    const bool last = &share == &options.device.shares.back();
    const auto boundary = static_cast<std::size_t>(std::llround(static_cast<double>(total) * percent / 100));
    const std::size_t end = last ? total : std::min(total, boundary / kTileLanes * kTileLanes);
    plan.parts.push_back({share.kind, share.index, first, end - first, decision.engine});
    first = end;
    if (share.kind == Kind::cpu) {
      cpu = true;
    } else {
      plan.device += (plan.device.empty() ? "" : ", ") + device_of(share, loaded).name;
    }
  }
  plan.engine = (cpu ? "cpu + " : "") + std::string(to_string(decision.engine));
  return plan;
}

// A mode or an engine that only GPUs have was asked for by name: nothing to weigh, and no CPU to fall back to.
DevicePlan on_a_gpu(const Problem& problem, const Options& options) {
  const bool mode = options.matrix_precision != MatrixPrecision::f32;
  const std::string name{mode ? to_string(options.matrix_precision) : to_string(options.engine)};
  const cuda::LoadedRuntime& loaded = cuda::load_runtime();
  if (loaded.runtime == nullptr) {
    throw Error(ErrorKind::unsupported,
                {.field = mode ? "options.matrix_precision" : "options.engine",
                 .found = name,
                 .expected = std::string(mode ? "f32" : "auto") + " here: " + name + " takes a GPU; " + loaded.missing,
                 .remedy = mode ? "leave it at f32" : "leave it at auto"});
  }
  if (!options.device.is_automatic()) return shared_out(problem, options);
  Options first = options;
  first.device = DeviceChoice::cuda(loaded.devices.front().index);
  DevicePlan plan = shared_out(problem, first);
  plan.reason = "asked for: " + name + plan.reason.substr(std::min(plan.reason.size(), plan.reason.find(';')));
  return plan;
}

}  // namespace

DevicePlan plan_devices(const Problem& problem, const Options& options, double steps) {
  if (options.matrix_precision != MatrixPrecision::f32 || options.engine != EngineChoice::automatic)
    return on_a_gpu(problem, options);
  if (options.device.is_automatic()) return automatic(problem, options, steps);
  if (!options.device.uses_cuda()) return on_cpu(problem, "asked for");
  return shared_out(problem, options);
}

}  // namespace lockstep::ode::detail
