#include "lockstep/ode/sensitivity.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/ode/cpu/adjoint_tile.h"
#include "lockstep/ode/cpu/engine.h"
#include "lockstep/ode/cpu/long_steps.h"
#include "lockstep/ode/detail/gradient_engine.h"
#include "lockstep/ode/methods.h"

namespace lockstep::ode {
namespace {

// Each number of the initial state, then each parameter.
Directions all_directions(std::size_t components, std::size_t parameters) {
  Directions all;
  all.parameters.assign(components, Directions::kNoParameter);
  for (std::size_t i = 0; i < parameters; ++i) all.parameters.push_back(i);
  all.initial_states.assign(components * all.count(), 0.0);
  for (std::size_t c = 0; c < components; ++c) all.initial_states[c * all.count() + c] = 1;
  return all;
}

// take(tile, first trajectory, lanes, derivatives, ends) for each tile, from several threads at once; the last two are
// AdjointTile::sensitivities()'. Returns whether they are unresolved in some trajectory, the one where they are most.
template <class T, class Take>
std::optional<UnresolvedDerivatives> for_each_tile(const Problem& problem, const Directions& directions,
                                                   const Options& options, const RunControl& control,
                                                   const Take& take) {
  constexpr std::size_t kMemoryBytes = std::size_t{1} << 28;  // for the records of all threads
  const cpu::EnginePlan plan = cpu::plan(problem, options);
  const cpu::DifferentiableRhs<T> rhs(*problem.rhs, method(options.method), plan.target);
  rhs.prepare_forward(problem.rhs->components());
  const detail::CommonSteps common = detail::find_common_steps<T>(problem, options, plan, rhs, control);
  const std::size_t count = problem.trajectories(), n = problem.rhs->components();
  const std::size_t row = problem.save_points() * n;
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  cpu::LocalError worst{.error = UnresolvedDerivatives::kMostError};
  std::size_t of = count;  // the trajectory that has it
  run_on_threads(plan.threads, [&](int) {
    cpu::AdjointTile<T> tile(problem, options, rhs, plan.target, kMemoryBytes / static_cast<std::size_t>(plan.threads));
    tile.stop_when(control.cancel);
    tile.carry_forward_only();
    const std::size_t most_lanes = std::min<std::size_t>(kTileLanes, count);
    std::vector<T> derivatives(most_lanes * row * directions.count());
    std::vector<double> ends(most_lanes * (1 + n) * directions.count());
    for (std::size_t first = kTileLanes * next++; first < count; first = kTileLanes * next++) {
      const std::size_t lanes = std::min<std::size_t>(kTileLanes, count - first);
      tile.forward(first, static_cast<int>(lanes), common.steps, common.ends_of(first, lanes));
      tile.sensitivities(directions, first, derivatives, ends);
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const cpu::LocalError& one = tile.local_error(static_cast<int>(lane));
        if (one.error <= UnresolvedDerivatives::kMostError) continue;
        const std::lock_guard lock(mutex);
        if (one.error < worst.error || (one.error == worst.error && of < first + lane)) continue;
        worst = one;
        of = first + lane;
      }
      take(tile, first, lanes, derivatives, ends);
    }
  });
  if (of == count) return {};
  return cpu::describe_unresolved(problem, options, rhs, plan.target, common, of, worst, control);
}

template <class T>
Sensitivities solve_as(const Problem& problem, const Options& options, const RunControl& control) {
  const std::size_t count = problem.trajectories(), n = problem.rhs->components(), m = problem.rhs->parameters();
  const std::size_t row = problem.save_points() * n;
  Sensitivities result{.states = std::vector<double>(count * row),
                       .by_initial_state = std::vector<double>(count * row * n),
                       .by_parameter = std::vector<double>(count * row * m),
                       .end_states = std::vector<double>(count * n),
                       .end_state_by_initial_state = std::vector<double>(count * n * n),
                       .end_state_by_parameter = std::vector<double>(count * n * m),
                       .end_time_by_initial_state = std::vector<double>(count * n),
                       .end_time_by_parameter = std::vector<double>(count * m),
                       .records = std::vector<TrajectoryRecord>(count),
                       .unresolved = {}};
  const auto take = [&](const cpu::AdjointTile<T>& tile, std::size_t first, std::size_t lanes,
                        const std::vector<T>& derivatives, const std::vector<double>& ends) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const std::size_t trajectory = first + lane;
      result.records[trajectory] = tile.record(static_cast<int>(lane));
      for (std::size_t i = 0; i < row; ++i) {
        const T* from = derivatives.data() + (lane * row + i) * (n + m);
        result.states[trajectory * row + i] = static_cast<double>(tile.states()[lane * row + i]);
        std::copy_n(from, n, result.by_initial_state.begin() + static_cast<std::ptrdiff_t>((trajectory * row + i) * n));
        std::copy_n(from + n, m, result.by_parameter.begin() + static_cast<std::ptrdiff_t>((trajectory * row + i) * m));
      }
      const auto copy = [&](const double* from, std::size_t numbers, std::vector<double>& to, std::size_t at) {
        std::copy_n(from, numbers, to.begin() + static_cast<std::ptrdiff_t>(at * numbers));
      };
      const double* end = ends.data() + lane * (1 + n) * (n + m);
      copy(end, n, result.end_time_by_initial_state, trajectory);
      copy(end + n, m, result.end_time_by_parameter, trajectory);
      for (std::size_t c = 0; c < n; ++c) {
        end += n + m;
        copy(end, n, result.end_state_by_initial_state, trajectory * n + c);
        copy(end + n, m, result.end_state_by_parameter, trajectory * n + c);
        result.end_states[trajectory * n + c] = static_cast<double>(tile.end_state(static_cast<int>(lane), c));
      }
    }
  };
  result.unresolved = for_each_tile<T>(problem, all_directions(n, m), options, control, take);
  return result;
}

template <class T>
DirectionalDerivatives solve_along_as(const Problem& problem, const Directions& directions, const Options& options,
                                      const RunControl& control) {
  const std::size_t count = problem.trajectories(), row = problem.save_points() * problem.rhs->components();
  DirectionalDerivatives result{std::vector<double>(count * row),
                                std::vector<double>(count * row * directions.count()),
                                std::vector<TrajectoryRecord>(count),
                                {}};
  const auto take = [&](const cpu::AdjointTile<T>& tile, std::size_t first, std::size_t lanes,
                        const std::vector<T>& derivatives, const std::vector<double>&) {
    for (std::size_t lane = 0; lane < lanes; ++lane) result.records[first + lane] = tile.record(static_cast<int>(lane));
    std::copy_n(tile.states().begin(), lanes * row, result.states.begin() + static_cast<std::ptrdiff_t>(first * row));
    std::copy_n(derivatives.begin(), lanes * row * directions.count(),
                result.by_direction.begin() + static_cast<std::ptrdiff_t>(first * row * directions.count()));
  };
  result.unresolved = for_each_tile<T>(problem, directions, options, control, take);
  return result;
}

void check(const Directions& directions, const Problem& problem) {
  const std::size_t m = problem.rhs->parameters(), each = problem.rhs->components() * directions.count();
  for (std::size_t d = 0; d < directions.count(); ++d) {
    const std::size_t parameter = directions.parameters[d];
    if (parameter < m || parameter == Directions::kNoParameter) continue;
    throw Error(ErrorKind::invalid_argument,
                {"directions.parameters[" + std::to_string(d) + "]",
                 std::to_string(parameter),
                 "less than " + std::to_string(m) + ", the number of parameters, or kNoParameter",
                 {}});
  }
  const std::size_t found = directions.initial_states.size();
  if (found == 0 || found == each || found == problem.trajectories() * each) return;
  throw Error(ErrorKind::invalid_argument, {"directions.initial_states",
                                            std::to_string(found) + " numbers",
                                            std::to_string(each) + ", those of each trajectory, or none",
                                            {}});
}

}  // namespace

Sensitivities solve_with_sensitivities(const Problem& problem, const Options& options, const RunControl& control) {
  const StandardArithmetic arithmetic;
  detail::require_differentiable(problem, options);
  return options.precision == Precision::f32 ? solve_as<float>(problem, options, control)
                                             : solve_as<double>(problem, options, control);
}

DirectionalDerivatives solve_along(const Problem& problem, const Directions& directions, const Options& options,
                                   const RunControl& control) {
  const StandardArithmetic arithmetic;
  detail::require_differentiable(problem, options);
  check(directions, problem);
  return options.precision == Precision::f32 ? solve_along_as<float>(problem, directions, options, control)
                                             : solve_along_as<double>(problem, directions, options, control);
}

}  // namespace lockstep::ode
