#include "lockstep/ode/cuda/program.h"

#include <algorithm>
#include <limits>

#include "lockstep/core/error.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::ode::cuda {
namespace {

// What "general" of kernel_list.h holds.
constexpr std::size_t kMostComponents = 64, kMostWidth = 512;
constexpr std::size_t kSmallComponents = 8, kSmallWidth = 128;

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
StepRules<T> make_rules(const Options& options, const Tableau& tableau) {
  const float k = static_cast<float>(tableau.error_order + 1);
  return {.rtol = static_cast<T>(options.rtol),
          .atol = static_cast<T>(options.atol),
          .rtol_f64 = options.rtol,
          .atol_f64 = options.atol,
          .max_step = options.max_step.value_or(std::numeric_limits<double>::infinity()),
          .initial_step = options.initial_step.value_or(0),
          .dt = options.dt,
          .fixed = options.control == StepControl::fixed,
          .max_steps = options.max_steps,
          .beta1 = 0.7f / k,
          .beta2 = 0.4f / k};
}

template <class T>
Threshold<T> make_threshold(const Problem& problem) {
  if (!problem.event) return {-1, false, false, T(0)};
  using Direction = TerminalEvent::Direction;
  const auto part = std::get<ThresholdPart>(problem.event->function->parts().front().what);
  const Direction direction = problem.event->direction;
  return {static_cast<std::int32_t>(part.component), direction != Direction::falling, direction != Direction::rising,
          static_cast<T>(part.value)};
}

std::string choose_kernel(const Problem& problem, const Options& options, const Program& program) {
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
      if (part.net.folded >= 0 && part.net.inputs == n && (n == 2 || n == 3) && tanh && method == "tsit5" &&
          !part.with_time && part.net.folded_numbers * (options.precision == Precision::f32 ? 4 : 8) <= 48 * 1024)
        return "net" + std::to_string(n) + "_tanh_tsit5" + precision;
    }
  }
  bool small = problem.rhs->components() <= kSmallComponents;
  for (const FunctionPart& part : parts) {
    if (const auto* net = std::get_if<NetPart>(&part.what)) small = small && widest(*net->mlp) <= kSmallWidth;
  }
  return (small ? "general_small" : "general") + precision;
}

std::optional<Obstacle> part_obstacle(const FunctionPart& part) {
  if (std::holds_alternative<ThresholdPart>(part.what))
    return Obstacle{"problem.rhs", "a threshold", "a derivative", "use it as an event"};
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

std::optional<Obstacle> obstacle(const Problem& problem, const Options& options) {
  if (options.control == StepControl::common) {
    return Obstacle{"options.control", "common", "per_trajectory or fixed on a GPU",
                    "run on the CPU, or let each trajectory have its own steps"};
  }
  const auto parts = problem.rhs->parts();
  if (parts.empty()) {
    return Obstacle{"problem.rhs", problem.rhs->description(),
                    "a built-in system, a net, or such added up from left to right on a GPU",
                    "run on the CPU: your own code was compiled for it alone"};
  }
  if (parts.size() > kMostParts) {
    return Obstacle{"problem.rhs", std::to_string(parts.size()) + " parts",
                    "at most " + std::to_string(kMostParts) + " on a GPU", "run on the CPU"};
  }
  if (problem.rhs->components() > kMostComponents) {
    return Obstacle{"problem.rhs", std::to_string(problem.rhs->components()) + " components",
                    "at most " + std::to_string(kMostComponents) + " on a GPU", "run on the CPU"};
  }
  for (const FunctionPart& part : parts) {
    if (auto found = part_obstacle(part)) return found;
  }
  if (problem.event) {
    const auto event = problem.event->function->parts();
    if (event.size() != 1 || !std::holds_alternative<ThresholdPart>(event.front().what)) {
      return Obstacle{"problem.event", problem.event->function->description(),
                      "a component that reaches a value, on a GPU", "run on the CPU"};
    }
  }
  return std::nullopt;
}

template <class T>
Lowered<T> lower_problem(const Problem& problem, const Options& options) {
  if (auto found = obstacle(problem, options)) {
    throw Error(ErrorKind::unsupported,
                {.field = found->field, .found = found->found, .expected = found->expected, .remedy = found->remedy});
  }
  const Tableau& tableau = method(options.method);
  Lowered<T> lowered;
  Launch<T>& launch = lowered.launch;
  launch.rules = make_rules<T>(options, tableau);
  launch.event = make_threshold<T>(problem);
  launch.method = make_method_table<T>(tableau);
  Program& program = launch.program;
  program.components = static_cast<std::int32_t>(problem.rhs->components());
  program.parameters = static_cast<std::int32_t>(problem.rhs->parameters());
  const auto names = system_names();
  std::int32_t parameter = 0;
  for (const FunctionPart& from : problem.rhs->parts()) {
    PartProgram& part = program.part[program.parts++];
    part.first_parameter = parameter;
    part.parameters = static_cast<std::int32_t>(from.parameters);
    parameter += part.parameters;
    part.system = -1;
    if (const auto* system = std::get_if<SystemPart>(&from.what)) {
      part.system = static_cast<std::int32_t>(std::find(names.begin(), names.end(), system->name) - names.begin());
    } else {
      const auto& net = std::get<NetPart>(from.what);
      part.with_time = net.with_time;
      part.net = lockstep::cuda::make_net_image<T>(*net.mlp, lowered.weights);
    }
  }
  lowered.kernel = choose_kernel(problem, options, program);
  return lowered;
}

template Lowered<float> lower_problem<float>(const Problem&, const Options&);
template Lowered<double> lower_problem<double>(const Problem&, const Options&);

}  // namespace lockstep::ode::cuda
