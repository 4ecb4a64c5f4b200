// Predicts a solve by doing a little of it: one timed evaluation of the right-hand side, and a pilot ensemble.
#include <algorithm>
#include <chrono>
#include <functional>
#include <string>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"
#include "lockstep/ode/cost_model.h"
#include "lockstep/ode/cpu/engine.h"
#include "lockstep/ode/cpu/solve_context.h"
#include "lockstep/ode/cuda/load.h"
#include "lockstep/ode/cuda/program.h"
#include "lockstep/ode/detail/device_plan.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode {
namespace {

double seconds_taken(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The smallest time of one evaluation of a tile, a trajectory, from repeats that take a few milliseconds in all.
template <class T>
double evaluation_seconds(const Problem& problem, const TileFunction<T>& rhs) {
  const std::size_t n = problem.rhs->components(), m = problem.rhs->parameters();
  AlignedBuffer<T> in(n * kTileLanes), out(n * kTileLanes), parameters(m * kTileLanes);
  AlignedBuffer<double> t(kTileLanes);
  AlignedBuffer<std::byte> workspace(rhs.workspace_bytes());
  for (std::size_t lane = 0; lane < kTileLanes; ++lane) {
    const std::size_t i = lane % problem.trajectories();
    for (std::size_t c = 0; c < n; ++c) in[c * kTileLanes + lane] = static_cast<T>(problem.initial_states[i * n + c]);
    for (std::size_t p = 0; p < m; ++p) parameters[p * kTileLanes + lane] = static_cast<T>(problem.parameters_of(i)[p]);
    t[lane] = problem.start_time(i);
  }
  const TileView<T> tile{t.data(), in.data(), parameters.data(), out.data(), kTileLanes};
  double best = 1e30, spent = 0;
  for (int repeat = 0; repeat < 3 || (spent < 0.005 && repeat < 1000); ++repeat) {
    const int calls = 8;
    const double seconds = seconds_taken([&] {
      for (int i = 0; i < calls; ++i) rhs.evaluate(tile, workspace.data());
    });
    best = std::min(best, seconds / calls / kTileLanes);
    spent += seconds;
  }
  return best;
}

// An evenly spaced sample of the ensemble.
Problem sample(const Problem& problem, std::size_t count) {
  std::vector<std::size_t> rows(count);
  for (std::size_t i = 0; i < count; ++i) rows[i] = i * problem.trajectories() / count;
  return problem.selection(rows);
}

template <class T>
std::string linear_equations_text(const LinearLayout& layout) {
  const std::string n = std::to_string(layout.size());
  const std::size_t row = layout.size() == 0 ? 0 : layout.entries() / layout.size();
  return "the method's linear equations hold " +
         (layout.is_band() ? "a band of " + std::to_string(row) + " numbers in each of " + n + " rows"
                           : n + " x " + n + " numbers") +
         ": " + rounded_text(static_cast<double>(cpu::LinearTile<T>::bytes(layout)) * 1e-6, 3) +
         " MB a thread for 32 trajectories side by side";
}

template <class T>
void describe_rhs(const Problem& problem, const Options& options, CpuTarget target, Explanation& result) {
  const auto rhs = lower<T>(*problem.rhs, target);
  result.kernel = rhs->description();
  result.evaluation_seconds = evaluation_seconds<T>(problem, *rhs);
  result.reasons.push_back("one evaluation of " + problem.rhs->description() + ": " +
                           rounded_text(result.evaluation_seconds * 1e9, 3) +
                           " ns a trajectory, measured now on a tile of " + std::to_string(kTileLanes));
  if (cpu::inlined_kernels<T>(problem.rhs->inlined_name(), options.method, target) != nullptr) {
    result.reasons.push_back("the system is compiled in one piece with the method: its stages stay in registers");
  }
  cpu::SolveContext<T> context(problem, options, target);
  if (context.jacobian) result.reasons.push_back(linear_equations_text<T>(context.jacobian->layout()));
  context.generate_code(target);
  const bool one_lane = cpu::takes_one_lane(context.step.settings, context.components());
  const std::string code = std::string("machine code is generated for the right-hand side ") +
                           (one_lane ? "of one trajectory" : "together with the method");
  if (context.step.settings.generated != nullptr) {
    result.reasons.push_back(code + (one_lane ? ": its components lie side by side" : ": stages stay in registers"));
  } else if (context.take_code_after() != context.kNever) {
    result.reasons.push_back(code + " after " + std::to_string(context.take_code_after()) + " steps");
  }
}

// An H200 SXM, to show what a GPU would do where there is none.
const cuda::DeviceInfo kExampleDevice{
    .name = "an NVIDIA H200", .major = 9, .minor = 0, .multiprocessors = 132, .clock_ghz = 1.785};

std::string steps_text(const Work& work) { return rounded_text(work.steps, 4) + " steps a trajectory"; }

// Which engine solve() would take, and what both would take by the cost model. solve() has no pilot, lest it choose by
// how busy the machine is: it takes the model's figures and, of adaptive steps, a guessed number.
void choose_engine(const Problem& problem, const Options& options, Explanation& result) {
  if (method(options.method).is_linearly_implicit() && !options.device.uses_cuda()) {
    const detail::DevicePlan devices = detail::plan_devices(problem, options);
    result.engine = devices.engine;
    result.reasons.insert(result.reasons.begin(), "engine " + devices.engine + ": " + devices.reason);
    return;
  }
  const Work work = estimate_work(problem, options);
  const CpuTarget target = *parse_cpu_target(result.cpu_target);
  const KnownFigures& known = known_figures();
  const Calibration* const measured = known.measured ? &*known.measured : nullptr;
  const double cpu_seconds = predict_cpu_seconds(work, target, result.threads, measured);
  const cuda::LoadedRuntime& loaded = cuda::load_runtime();
  const cuda::DeviceInfo& device = loaded.devices.empty() ? kExampleDevice : loaded.devices.front();
  std::string line = "cost model: " + rounded_text(cpu_seconds, 2) + " s on the CPU (figures " +
                     cpu_figures_text(target, work.precision, measured) + "), " +
                     rounded_text(predict_cuda_seconds(work, device, measured), 2) + " s by cuda_fused, " +
                     std::string(to_string(work.cuda_kernel)) + ", on " + device.name + " (figures " +
                     cuda_figures_text(device, work.precision, measured) + ")";
  if (work.layers > 0) {
    line += ", " + rounded_text(predict_gemm_seconds(work, device, options.matrix_precision), 2) +
            " s by cuda_gemm (figures built in, not measured)";
  }
  if (loaded.runtime == nullptr) line += ", which is not here: " + loaded.missing;
  line += "; for " + steps_text(work);
  const bool guessed = options.control != StepControl::fixed;
  if (guessed) line += ", a guess, for a solve has no pilot: its choice takes this and not the time predicted above";
  result.reasons.insert(result.reasons.begin(), line);
  if (known.warning)
    result.reasons.insert(result.reasons.begin() + 1,
                          std::string("the figures of lockstep calibrate are not used: ") + known.warning->what());
  const detail::DevicePlan devices = detail::plan_devices(problem, options);
  result.engine = devices.engine;
  const Work piloted = estimate_work(problem, options, result.steps_per_trajectory);
  if (devices.engine != "cpu") {
    const bool gemm = devices.engine.ends_with("cuda_gemm");
    result.predicted_seconds = gemm ? predict_gemm_seconds(piloted, device, options.matrix_precision)
                                    : predict_cuda_seconds(piloted, device, measured);
    result.kernel = gemm                                  ? "cuBLASLt, a matrix product a layer for all trajectories"
                    : options.precision == Precision::f32 ? cuda::lower_problem<float>(problem, options).kernel
                                                          : cuda::lower_problem<double>(problem, options).kernel;
  }
  result.reasons.insert(result.reasons.begin(), "engine " + devices.engine + ": " + devices.reason);
  if (!guessed || !options.device.is_automatic() || piloted.steps == work.steps) return;
  const detail::DevicePlan better = detail::plan_devices(problem, options, piloted.steps);
  if (better.engine == devices.engine) return;
  result.reasons.insert(result.reasons.begin() + 1, "for the pilot's " + steps_text(piloted) +
                                                        " the model would take " + better.engine + ": " +
                                                        better.reason + "; name the device with --device " +
                                                        (better.engine == "cpu" ? "cpu" : "cuda"));
}

}  // namespace

Explanation explain(const Problem& problem, const Options& options) {
  const StandardArithmetic arithmetic;
  validate(problem, options);
  const cpu::EnginePlan plan = cpu::plan(problem, options);
  Explanation result{.engine = "cpu",
                     .cpu_target = std::string(to_string(plan.target)),
                     .threads = plan.threads,
                     .method = std::string(method(options.method).title)};
  result.reasons.push_back("instruction set " + result.cpu_target + ": " +
                           (options.cpu_target ? "asked for" : "the widest this machine runs") +
                           "; the bits do not depend on it");
  const std::size_t count = problem.trajectories();
  result.reasons.push_back(std::to_string(count) + (count == 1 ? " trajectory" : " trajectories") + " in tiles of " +
                           std::to_string(kTileLanes) + " on " + std::to_string(plan.threads) +
                           (plan.threads == 1 ? " thread" : " threads"));
  if (count == 0) {
    choose_engine(problem, options, result);
    return result;
  }

  if (options.precision == Precision::f32) {
    describe_rhs<float>(problem, options, plan.target, result);
  } else {
    describe_rhs<double>(problem, options, plan.target, result);
  }

  // Four tiles show both the steps that trajectories take and what else a step costs.
  const std::size_t pilot_size = std::min<std::size_t>(count, 4 * kTileLanes);
  const Problem pilot = sample(problem, pilot_size);
  Options pilot_options = options;
  pilot_options.threads = 1;
  pilot_options.device = DeviceChoice::cpu();
  double steps = 0, seconds = 1e30;
  std::array<std::size_t, kStatusCount> ended{};
  // The better of three: a machine that is busy elsewhere would spoil one.
  for (int repeat = 0; repeat < 3; ++repeat) {
    steps = 0;
    ended = {};
    seconds = std::min(seconds, seconds_taken([&] {
                         const Solution solution = solve(pilot, pilot_options);
                         for (const TrajectoryRecord& r : solution.records()) {
                           steps += r.accepted + r.rejected;
                           ++ended[static_cast<std::size_t>(r.status)];
                         }
                       }));
  }
  result.steps_per_trajectory = steps / static_cast<double>(pilot_size);
  result.predicted_seconds = seconds / static_cast<double>(pilot_size) * static_cast<double>(count) / plan.threads;
  const Tableau& tableau = method(options.method);
  const int evaluations = tableau.evaluations(options.control != StepControl::fixed);
  const bool implicit = tableau.is_linearly_implicit();
  result.reasons.push_back(
      "a pilot of " + std::to_string(pilot_size) + (pilot_size == 1 ? " trajectory" : " trajectories") + " took " +
      rounded_text(result.steps_per_trajectory, 4) + " steps each, " + std::to_string(evaluations) +
      " evaluations a step, " + rounded_text(seconds / static_cast<double>(pilot_size) * 1e6, 4) +
      " us a trajectory on one thread");
  for (const Status status : {Status::step_too_small, Status::not_finite, Status::too_many_steps}) {
    const std::size_t failed = ended[static_cast<std::size_t>(status)];
    if (failed == 0) continue;
    result.reasons.push_back(std::to_string(failed) + " of the pilot's " + std::to_string(pilot_size) +
                             " trajectories failed: " + std::string(to_string(status)));
  }
  const double share = result.evaluation_seconds * evaluations * steps / seconds;
  result.reasons.push_back("the right-hand side is about " + fixed_text(100 * std::min(1.0, share), 0) +
                           " % of that; the rest is " + (implicit ? "Jacobians, linear equations, " : "") +
                           "step control, saving and lanes that wait");
  choose_engine(problem, options, result);
  return result;
}

}  // namespace lockstep::ode
