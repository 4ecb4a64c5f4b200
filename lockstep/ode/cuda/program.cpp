#include "lockstep/ode/cuda/program.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "lockstep/core/error.h"
#include "lockstep/kernels/cuda/tensor_net.h"
#include "lockstep/ode/detail/graph_source.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/numerics.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::ode::cuda {
namespace {

// What "general" of kernel_list.h holds.
constexpr std::size_t kMostWidth = 512;
constexpr std::size_t kSmallComponents = 8, kSmallWidth = 128;
// From here on a block's threads evaluate a net together: below, sharing out a layer should cost more than it saves. (A
// guess: no card has timed the two beside each other.)
constexpr std::size_t kLeastTileWidth = 32;
// Of one kernel: each takes some hundred bytes of every thread's memory, and compiling takes longer with each.
constexpr std::size_t kMostResetsInKernel = 16;

std::size_t widest(const Mlp& mlp) {
  std::size_t width = mlp.inputs();
  for (const DenseLayer& layer : mlp.layers) width = std::max(width, layer.outputs);
  return width;
}

template <class T>
typename MethodTable<T>::Sum make_sum(std::span<const double> weights) {
  typename MethodTable<T>::Sum sum{};
  for (std::size_t j = 0; j < weights.size(); ++j) {
    if (weights[j] == 0) continue;
    sum.stage[sum.count] = static_cast<std::int32_t>(j);
    sum.weight[sum.count++] = static_cast<T>(weights[j]);
  }
  return sum;
}

template <class T>
MethodTable<T> make_method_table(const Tableau& tableau) {
  MethodTable<T> table{};
  table.stages = tableau.stages;
  table.all_stages = tableau.stages + tableau.interpolant_stages;
  table.error_order = tableau.error_order;
  table.has_error3 = !tableau.error3.empty();
  table.degree = tableau.interpolant_degree;
  const auto all = static_cast<std::size_t>(table.all_stages), degree = static_cast<std::size_t>(table.degree);
  for (std::size_t i = 0; i < all; ++i) {
    table.c[i] = tableau.c[i];
    table.rows[i] = make_sum<T>(tableau.a.subspan(i * all, i));
    const auto row = tableau.interpolant.subspan(i * degree, degree);
    if (std::all_of(row.begin(), row.end(), [](double p) { return p == 0; })) continue;
    std::copy(row.begin(), row.end(), table.interpolant[table.interpolant_count]);
    table.interpolant_stage[table.interpolant_count++] = static_cast<std::int32_t>(i);
  }
  table.error = make_sum<T>(tableau.error);
  table.error3 = make_sum<T>(tableau.error3);
  return table;
}

template <class T>
StepRules<T> make_rules(const Options& options, const Tableau& tableau, std::size_t components) {
  const auto exponents = scalar::control_exponents(scalar::error_power(tableau.error_order, !tableau.error3.empty()));
  StepRules<T> rules{.rtol = static_cast<T>(options.rtol),
                     .atol = {},
                     .rtol_f64 = options.rtol,
                     .atol_f64 = {},
                     .max_step = options.max_step.value_or(std::numeric_limits<double>::infinity()),
                     .initial_step = options.initial_step.value_or(0),
                     .dt = options.dt,
                     .fixed = options.control == StepControl::fixed,
                     .max_steps = options.max_steps,
                     .beta1 = exponents.beta1,
                     .beta2 = exponents.beta2};
  for (std::size_t c = 0; c < components; ++c) {
    rules.atol_f64[c] = options.atol_of(c);
    rules.atol[c] = static_cast<T>(options.atol_of(c));
  }
  return rules;
}

template <class T>
EventRule<T> make_event_rule(const Problem& problem) {
  EventRule<T> rule{};
  rule.component = -1;
  if (!problem.event) return rule;
  using Direction = TerminalEvent::Direction;
  rule.rising = problem.event->direction != Direction::falling;
  rule.falling = problem.event->direction != Direction::rising;
  const auto parts = problem.event->function->parts();
  if (const auto* threshold = std::get_if<ThresholdPart>(&parts.front().what)) {
    rule.component = static_cast<std::int32_t>(threshold->component);
    rule.value = static_cast<T>(threshold->value);
  } else if (const auto* range = std::get_if<RangePart>(&parts.front().what)) {
    const std::size_t n = problem.rhs->components();
    rule.bounded = static_cast<std::int32_t>(n);
    for (std::size_t c = 0; c < n; ++c) {
      rule.minimum[c] = static_cast<T>((*range->minimum)[c]);
      rule.maximum[c] = static_cast<T>((*range->maximum)[c]);
    }
  }
  return rule;
}

std::size_t widest_net(std::span<const FunctionPart> parts) {
  std::size_t width = 0;
  for (const FunctionPart& part : parts) {
    if (const auto* net = std::get_if<NetPart>(&part.what)) width = std::max(width, widest(*net->mlp));
  }
  return width;
}

bool suits_tiles(std::size_t width) { return width >= kLeastTileWidth && width <= lockstep::cuda::kMostBlockWidth; }

// A net n - width - n whose inputs are the state as it is, without a hidden array: see thread_net.h.
bool is_folded(const PartProgram& part, int components) {
  return part.net.folded >= 0 && part.net.inputs == components && !part.with_time && part.bounded == 0;
}

std::string choose_kernel(const Problem& problem, const Options& options, const Program& program) {
  if (options.matrix_precision != MatrixPrecision::f32)
    return "tiles_" + std::string(to_string(options.matrix_precision));
  const std::string precision = options.precision == Precision::f32 ? "_f32" : "_f64";
  const std::string& method = options.method;
  const auto parts = problem.rhs->parts();
  if (parts.size() == 1) {
    if (const auto* system = std::get_if<SystemPart>(&parts[0].what)) {
      if (system->name == "lorenz" && (method == "rk4" || method == "tsit5" || method == "dop853"))
        return "lorenz_" + method + precision;
    } else {
      const PartProgram& part = program.part[0];
      const int n = program.components;
      const bool tanh = part.net.layer[0].activation == static_cast<int>(ActivationKind::tanh);
      if (is_folded(part, n) && (n == 2 || n == 3) && tanh && method == "tsit5" &&
          part.net.folded_numbers * (options.precision == Precision::f32 ? 4 : 8) <= 48 * 1024)
        return "net" + std::to_string(n) + "_tanh_tsit5" + precision;
    }
  }
  const std::size_t width = widest_net(parts);
  if (suits_tiles(width)) return "tiles" + precision;
  const bool small = problem.rhs->components() <= kSmallComponents && width <= kSmallWidth;
  return (small ? "general_small" : "general") + precision;
}

// One net without a hidden array, whose stages stay in registers.
std::optional<KernelSource> make_folded_source(const Problem& problem, const Options& options, const Program& program,
                                               const SourcePart* event, std::span<const ResetSource> resets = {}) {
  const PartProgram& part = program.part[0];
  if (program.parts != 1 || part.system != kNetPart || problem.rhs->components() > kSmallComponents) return {};
  const std::size_t bytes = static_cast<std::size_t>(std::max<std::int64_t>(part.net.folded_numbers, 0)) *
                            (options.precision == Precision::f32 ? 4 : 8);
  if (!is_folded(part, program.components) || bytes > 48 * 1024) return {};
  return make_folded_net_source(program.components, static_cast<ActivationKind>(part.net.layer[0].activation), bytes,
                                options.method, options.precision, event, resets);
}

// What keeps its stages in registers, and has no kernel of its own.
std::optional<KernelSource> make_special_source(const Problem& problem, const Options& options,
                                                const Program& program) {
  const auto parts = problem.rhs->parts();
  const auto n = static_cast<std::size_t>(program.components);
  if (parts.size() != 1 || n > kSmallComponents) return std::nullopt;
  if (const auto* system = std::get_if<SystemPart>(&parts[0].what))
    return make_system_source(system->name, n, options.method, options.precision);
  return make_folded_source(problem, options, program, nullptr);
}

// Rounded to T, at a multiple of 16 bytes, and as much more; where they start.
template <class T>
std::int64_t append(const std::vector<double>& numbers, std::vector<T>& weights) {
  constexpr std::size_t step = 16 / sizeof(T);
  const auto first = static_cast<std::int64_t>(weights.size());
  weights.insert(weights.end(), numbers.begin(), numbers.end());
  weights.resize((weights.size() + step - 1) / step * step);
  return first;
}

// The nets again, laid out for blocks, behind the others: a special source reads those.
template <class T>
void lay_out_for_tiles(const Problem& problem, Lowered<T>& lowered) {
  BlockLaunch<T>& launch = lowered.launch;
  lockstep::cuda::BlockWeights<T> weights;
  int index = 0;
  for (const FunctionPart& part : problem.rhs->parts()) {
    if (const auto* net = std::get_if<NetPart>(&part.what)) {
      launch.nets[index] = weights.add(*net->mlp);
      launch.widest = std::max(launch.widest, launch.nets[index].widest);
    }
    ++index;
  }
  launch.chunks = static_cast<std::int32_t>(weights.chunks.size() / lockstep::cuda::kChunkNumbers<T>);
  launch.resident_numbers = static_cast<std::int32_t>(weights.resident.size());
  launch.first_chunk = static_cast<std::int64_t>(lowered.weights.size());  // aligned, as a net's image ends
  lowered.weights.insert(lowered.weights.end(), weights.chunks.begin(), weights.chunks.end());
  lowered.weights.insert(lowered.weights.end(), weights.resident.begin(), weights.resident.end());
}

// The same for tensor cores: words of weights, each as a number that nobody reads as one.
template <class Format>
void lay_out_for_tensor_cores(const Problem& problem, Lowered<float>& lowered) {
  BlockLaunch<float>& launch = lowered.launch;
  lockstep::cuda::TensorWeights<Format> weights;
  int index = 0;
  std::size_t nets = 0;
  for (const FunctionPart& part : problem.rhs->parts()) {
    if (const auto* net = std::get_if<NetPart>(&part.what)) launch.nets[index] = weights.add(*net->mlp);
    nets = static_cast<std::size_t>(++index);
  }
  launch.tensor = lockstep::cuda::tensor_layout<Format>(launch.nets, static_cast<int>(nets), kBlockTile<float>,
                                                        weights.resident.size());
  const std::size_t bytes = weights.words.size() * sizeof(std::uint32_t);
  if (launch.tensor.shared_bytes() + bytes <= kMostTensorShared)
    launch.tensor.weight_bytes = static_cast<std::int32_t>(bytes);
  constexpr std::size_t chunk = lockstep::cuda::kChunkNumbers<float>;
  launch.chunks = static_cast<std::int32_t>((weights.words.size() + chunk - 1) / chunk);
  launch.resident_numbers = static_cast<std::int32_t>(weights.resident.size());
  const std::size_t first = lowered.weights.size();
  launch.first_chunk = static_cast<std::int64_t>(first);
  lowered.weights.resize(first + static_cast<std::size_t>(launch.chunks) * chunk);
  std::memcpy(lowered.weights.data() + first, weights.words.data(), bytes);
  lowered.weights.insert(lowered.weights.end(), weights.resident.begin(), weights.resident.end());
}

void lay_out_for_tensor_cores(const Problem& problem, MatrixPrecision matrices, Lowered<float>& lowered) {
  if (matrices == MatrixPrecision::tf32) lay_out_for_tensor_cores<lockstep::cuda::Tf32>(problem, lowered);
  if (matrices == MatrixPrecision::bf16) lay_out_for_tensor_cores<lockstep::cuda::Bf16>(problem, lowered);
  if (matrices == MatrixPrecision::fp16) lay_out_for_tensor_cores<lockstep::cuda::Fp16>(problem, lowered);
}

// Why a mode of tensor cores cannot be had.
std::optional<Obstacle> mode_obstacle(const Problem& problem, const Options& options) {
  const std::string name{to_string(options.matrix_precision)};
  const std::size_t width = widest_net(problem.rhs->parts());
  if (width == 0) {
    return Obstacle{"options.matrix_precision", name, "f32: no net of plain layers multiplies matrices here",
                    "leave it at f32"};
  }
  if (width > lockstep::cuda::kMostBlockWidth) {
    return Obstacle{"options.matrix_precision", name + " with a net " + std::to_string(width) + " wide",
                    "at most " + std::to_string(lockstep::cuda::kMostBlockWidth) + " on tensor cores",
                    "leave it at f32"};
  }
  return std::nullopt;
}

std::optional<Obstacle> part_obstacle(const FunctionPart& part) {
  const auto* const source = std::get_if<SourcePart>(&part.what);
  if (std::holds_alternative<ThresholdPart>(part.what) || std::holds_alternative<RangePart>(part.what) ||
      (source != nullptr && source->is_event))
    return Obstacle{"problem.rhs", "an event's function", "a derivative", "use it as an event"};
  const auto* net = std::get_if<NetPart>(&part.what);
  if (net == nullptr) return std::nullopt;
  if (net->mlp->layers.size() > lockstep::cuda::kMostLayers) {
    return Obstacle{"problem.rhs", "a net of " + std::to_string(net->mlp->layers.size()) + " layers",
                    "at most " + std::to_string(lockstep::cuda::kMostLayers) + " on a GPU", "run on the CPU"};
  }
  if (widest(*net->mlp) > kMostWidth) {
    return Obstacle{"problem.rhs", "a net " + std::to_string(widest(*net->mlp)) + " wide",
                    "at most " + std::to_string(kMostWidth) + " on a GPU", "run on the CPU"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Obstacle> method_obstacle(const Options& options) {
  if (options.control == StepControl::common) {
    return Obstacle{"options.control", "common", "per_trajectory or fixed on a GPU",
                    "run on the CPU, or let each trajectory have its own steps"};
  }
  const Tableau& tableau = method(options.method);
  if (tableau.stages + tableau.interpolant_stages > kMostStages || tableau.interpolant_degree > kMostDegree) {
    return Obstacle{"options.method", options.method, "a method of fewer stages on a GPU",
                    "take another, or run on the CPU"};
  }
  return std::nullopt;
}

std::optional<Obstacle> size_obstacle(const Problem& problem) {
  const std::size_t parts = problem.rhs->parts().size();
  if (parts > kMostParts) {
    return Obstacle{"problem.rhs", std::to_string(parts) + " parts",
                    "at most " + std::to_string(kMostParts) + " on a GPU", "run on the CPU"};
  }
  if (problem.rhs->components() > kMostComponents) {
    return Obstacle{"problem.rhs", std::to_string(problem.rhs->components()) + " components",
                    "at most " + std::to_string(kMostComponents) + " on a GPU", "run on the CPU"};
  }
  return std::nullopt;
}

std::optional<SourcePart> event_source(const Problem& problem) {
  if (!problem.event) return std::nullopt;
  const auto parts = problem.event->function->parts();
  const auto* const source = std::get_if<SourcePart>(&parts.front().what);
  return source == nullptr ? std::nullopt : std::optional(*source);
}

bool comes_as_text(const Problem& problem, const Options& options) {
  const auto parts = problem.rhs->parts();
  return method(options.method).is_linearly_implicit() || event_source(problem) || !problem.resets.empty() ||
         std::any_of(parts.begin(), parts.end(),
                     [](const FunctionPart& part) { return std::holds_alternative<SourcePart>(part.what); });
}

std::optional<Obstacle> event_obstacle(const Problem& problem) {
  if (!problem.event) return std::nullopt;
  // An impulse may strike it: to look there as well took registers and instructions of every step. Kernels with resets
  // look.
  if (problem.resets.empty() && (!problem.impulses.empty() || problem.impulses_differ())) {
    return Obstacle{"problem.impulses", "impulses beside an event or a guard that stops", "one of the two, on a GPU",
                    "run on the CPU"};
  }
  const auto event = problem.event->function->parts();
  const auto* const source = event.size() == 1 ? std::get_if<SourcePart>(&event.front().what) : nullptr;
  const bool known = event.size() == 1 &&
                     (std::holds_alternative<ThresholdPart>(event.front().what) ||
                      std::holds_alternative<RangePart>(event.front().what) || (source != nullptr && source->is_event));
  if (known) return std::nullopt;
  return Obstacle{
      "problem.event", problem.event->function->description(),
      "a component that reaches a value, a range that is left, a small expression, or code as text, on a GPU",
      "give its text with ode::with_cuda_event_source, or run on the CPU"};
}

namespace {

// A reset's function or new state as a body; nothing where there is none.
std::optional<ResetSource> reset_source(const Reset& reset) {
  const auto function = reset.function->parts(), state = reset.state->parts();
  const auto* const becomes = state.size() == 1 ? std::get_if<SourcePart>(&state.front().what) : nullptr;
  if (becomes == nullptr || function.size() != 1) return std::nullopt;
  ResetSource source{
      .function = {}, .state = *becomes->text, .state_returns = becomes->is_event, .direction = reset.direction};
  if (const auto* threshold = std::get_if<ThresholdPart>(&function.front().what)) {
    source.function = "using R = decltype(u[0] + u[0]);\nreturn u[" + std::to_string(threshold->component) + "] - " +
                      detail::source_literal(threshold->value) + ";\n";
    return source;
  }
  const auto* const strikes = std::get_if<SourcePart>(&function.front().what);
  if (strikes == nullptr || !strikes->is_event) return std::nullopt;
  source.function = *strikes->text;
  return source;
}

std::vector<ResetSource> reset_sources(const Problem& problem) {
  std::vector<ResetSource> sources;
  for (const Reset& reset : problem.resets) sources.push_back(*reset_source(reset));
  return sources;
}

std::optional<Obstacle> reset_obstacle(const Problem& problem, const Options& options) {
  const std::size_t count = problem.resets.size();
  if (count == 0) return std::nullopt;
  if (count > kMostResetsInKernel) {
    return Obstacle{"problem.resets", std::to_string(count),
                    "at most " + std::to_string(kMostResetsInKernel) + " on a GPU", "run on the CPU"};
  }
  if (problem.keep_events)
    return Obstacle{"problem.keep_events", "true", "false on a GPU, which has no log of resets", "run on the CPU"};
  for (std::size_t i = 0; i < count; ++i) {
    const Reset& reset = problem.resets[i];
    if (reset_source(reset)) continue;
    return Obstacle{"problem.resets[" + std::to_string(i) + "]",
                    reset.function->description() + " and " + reset.state->description(),
                    "a component that reaches a value, small expressions, or code as text, on a GPU",
                    "give texts with ode::with_cuda_event_source and ode::with_cuda_source, or run on the CPU"};
  }
  if (options.matrix_precision != MatrixPrecision::f32) {
    return Obstacle{"options.matrix_precision", std::string(to_string(options.matrix_precision)) + " with resets",
                    "f32 beside states that change at events", "leave it at f32"};
  }
  // Resets are looked for by one thread a trajectory, which evaluates all of its nets.
  const std::size_t width = widest_net(problem.rhs->parts());
  if (width < kLeastTileWidth) return std::nullopt;
  return Obstacle{"problem.resets", "resets beside a net " + std::to_string(width) + " wide",
                  "nets less than " + std::to_string(kLeastTileWidth) + " wide beside them, on a GPU",
                  "run on the CPU"};
}

// What linearly implicit steps ask for: the Jacobian of a built-in system, or as text, and room for the equations made
// of it in a thread's own memory.
constexpr std::size_t kMostLinearEntries = 2304;  // 48 x 48, in float64 18 KB

std::optional<Obstacle> implicit_obstacle(const Problem& problem, const Options& options) {
  if (!method(options.method).is_linearly_implicit()) return std::nullopt;
  if (options.matrix_precision != MatrixPrecision::f32) {
    return Obstacle{"options.matrix_precision",
                    std::string(to_string(options.matrix_precision)) + " with " + options.method,
                    "f32 beside a linearly implicit method", "leave it at f32"};
  }
  const auto refused = [&](const std::string& found, std::string expected) {
    return Obstacle{"options.method", options.method + " for " + problem.rhs->description() + found,
                    std::move(expected) + " for a linearly implicit method on a GPU",
                    "take tsit5 or rkc20, or run on the CPU"};
  };
  const auto parts = problem.rhs->parts();
  if (parts.size() != 1 || std::holds_alternative<NetPart>(parts[0].what))
    return refused("", "equations, which may call nets, or a built-in system");
  if (std::holds_alternative<SystemPart>(parts[0].what)) return std::nullopt;
  const auto jacobian = problem.rhs->jacobian_source(options.precision);
  if (jacobian == nullptr) {
    return refused(", which has no Jacobian as text", "equations, whose derivatives take at most " +
                                                          std::to_string(detail::kMostJacobianFeatures) +
                                                          " numbers, and no code of your own");
  }
  if (jacobian->layout.entries() <= kMostLinearEntries) return std::nullopt;
  return refused(", whose linear equations take " + std::to_string(jacobian->layout.entries()) + " numbers",
                 "at most " + std::to_string(kMostLinearEntries) + ", of 48 components that all depend on each other,");
}

}  // namespace

std::optional<Obstacle> obstacle(const Problem& problem, const Options& options) {
  if (auto found = method_obstacle(options)) return found;
  const auto parts = problem.rhs->parts();
  if (parts.empty()) {
    return Obstacle{"problem.rhs", problem.rhs->description(),
                    "a built-in system, a net, or such added up from left to right on a GPU",
                    "run on the CPU: your own code was compiled for it alone"};
  }
  if (auto found = size_obstacle(problem)) return found;
  for (const FunctionPart& part : parts) {
    if (auto found = part_obstacle(part)) return found;
  }
  if (auto found = implicit_obstacle(problem, options)) return found;
  if (auto found = event_obstacle(problem)) return found;
  if (auto found = reset_obstacle(problem, options)) return found;
  if (options.matrix_precision != MatrixPrecision::f32) return mode_obstacle(problem, options);
  return std::nullopt;
}

template <class T>
void lower_rules(const Problem& problem, const Options& options, Launch<T>& launch) {
  const Tableau& tableau = method(options.method);
  launch.rules = make_rules<T>(options, tableau, problem.rhs->components());
  launch.event = make_event_rule<T>(problem);
  launch.method = make_method_table<T>(tableau);
  launch.program.components = static_cast<std::int32_t>(problem.rhs->components());
  launch.program.parameters = static_cast<std::int32_t>(problem.rhs->parameters());
}

template void lower_rules<float>(const Problem&, const Options&, Launch<float>&);
template void lower_rules<double>(const Problem&, const Options&, Launch<double>&);

PartProgram begin_part(const FunctionPart& from, bool compiles, std::int32_t first_parameter) {
  PartProgram part{};
  part.first_parameter = first_parameter;
  part.parameters = static_cast<std::int32_t>(from.parameters);
  part.system = kNetPart;
  const auto* const system = std::get_if<SystemPart>(&from.what);
  if (std::holds_alternative<SourcePart>(from.what) || (system != nullptr && compiles)) {
    part.system = kOwnTerm;
  } else if (system != nullptr) {
    const auto names = system_names();
    part.system = static_cast<std::int32_t>(std::find(names.begin(), names.end(), system->name) - names.begin());
  }
  return part;
}

template <class T>
Lowered<T> lower_problem(const Problem& problem, const Options& options) {
  if (auto found = obstacle(problem, options)) {
    throw Error(ErrorKind::unsupported,
                {.field = found->field, .found = found->found, .expected = found->expected, .remedy = found->remedy});
  }
  Lowered<T> lowered;
  Launch<T>& launch = lowered.launch;
  lower_rules(problem, options, launch);
  lowered.stops = detail::Stops(problem, options);
  Program& program = launch.program;
  std::int32_t parameter = 0;
  const auto parts = problem.rhs->parts();
  const std::optional<SourcePart> event = event_source(problem);
  const SourcePart* const event_text = event ? &*event : nullptr;
  const std::vector<ResetSource> resets = reset_sources(problem);
  const bool compiles = comes_as_text(problem, options);
  for (const FunctionPart& from : parts) {
    PartProgram& part = program.part[program.parts++];
    part = begin_part(from, compiles, parameter);
    parameter += part.parameters;
    if (part.system != kNetPart) continue;
    const auto& net = std::get<NetPart>(from.what);
    part.with_time = net.with_time;
    part.net = lockstep::cuda::make_net_image<T>(*net.mlp, lowered.weights);
    if (net.range.minimum == nullptr) continue;
    part.bounded = static_cast<std::int32_t>(net.range.minimum->size());
    part.minimum = append<T>(*net.range.minimum, lowered.weights);
    part.maximum = append<T>(*net.range.maximum, lowered.weights);
  }
  const bool on_tensor_cores = options.matrix_precision != MatrixPrecision::f32;
  const auto lay_out_as_the_mode_says = [&] {
    if (!on_tensor_cores) return lay_out_for_tiles(problem, lowered);
    if constexpr (sizeof(T) == 4) lay_out_for_tensor_cores(problem, options.matrix_precision, lowered);
  };
  const bool implicit = method(options.method).is_linearly_implicit();
  if ((event || !resets.empty()) && !on_tensor_cores && !implicit)
    lowered.source = make_folded_source(problem, options, program, event_text, resets);
  if (lowered.source) {
    lowered.kernel = lowered.source->name;
    return lowered;
  }
  if (compiles) {
    const std::size_t width = widest_net(parts);
    const bool tiles = on_tensor_cores || suits_tiles(width);
    if (tiles) lay_out_as_the_mode_says();
    const auto jacobian = implicit ? problem.rhs->jacobian_source(options.precision) : nullptr;
    lowered.source = make_sum_source({.parts = parts,
                                      .components = problem.rhs->components(),
                                      .parameters = problem.rhs->parameters(),
                                      .width = width,
                                      .event = event_text,
                                      .resets = resets,
                                      .jacobian = jacobian.get(),
                                      .tiles = tiles,
                                      .matrices = options.matrix_precision},
                                     options.method, options.precision);
    if (tiles) lowered.source->shared_bytes = block_advance_shared_bytes(lowered.launch);
    lowered.kernel = lowered.source->name;
    return lowered;
  }
  lowered.kernel = choose_kernel(problem, options, program);
  const bool general = lowered.kernel.starts_with("general"), tiles = lowered.kernel.starts_with("tiles");
  if ((general || tiles) && !on_tensor_cores) lowered.special = make_special_source(problem, options, program);
  if (tiles) lay_out_as_the_mode_says();
  return lowered;
}

template Lowered<float> lower_problem<float>(const Problem&, const Options&);
template Lowered<double> lower_problem<double>(const Problem&, const Options&);

}  // namespace lockstep::ode::cuda
