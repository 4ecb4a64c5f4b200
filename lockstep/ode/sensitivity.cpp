#include "lockstep/ode/sensitivity.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/ode/cpu/adjoint_tile.h"
#include "lockstep/ode/cpu/engine.h"
#include "lockstep/ode/detail/gradient_engine.h"
#include "lockstep/ode/methods.h"

namespace lockstep::ode {
namespace {

template <class T>
Sensitivities solve_as(const Problem& problem, const Options& options, const RunControl& control) {
  constexpr std::size_t kMemoryBytes = std::size_t{1} << 28;  // for the records of all threads
  const cpu::EnginePlan plan = cpu::plan(problem, options);
  const cpu::DifferentiableRhs<T> rhs(*problem.rhs, method(options.method), plan.target);
  const detail::CommonSteps common = detail::find_common_steps<T>(problem, options, plan, rhs, control);
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
                       .records = std::vector<TrajectoryRecord>(count)};
  std::atomic<std::size_t> next{0};
  run_on_threads(plan.threads, [&](int) {
    cpu::AdjointTile<T> tile(problem, options, rhs, plan.target, kMemoryBytes / static_cast<std::size_t>(plan.threads));
    std::vector<T> derivatives(kTileLanes * row * (n + m));
    std::vector<double> ends(kTileLanes * (1 + n) * (n + m));
    for (std::size_t first = kTileLanes * next++; first < count; first = kTileLanes * next++) {
      if (control.cancelled()) throw Error(ErrorKind::cancelled, {.found = "sensitivities stopped by their caller"});
      const std::size_t lanes = std::min<std::size_t>(kTileLanes, count - first);
      tile.forward(first, static_cast<int>(lanes), common.steps, common.ends_of(first, lanes));
      tile.sensitivities(derivatives, ends);
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const std::size_t trajectory = first + lane;
        result.records[trajectory] = tile.record(static_cast<int>(lane));
        for (std::size_t i = 0; i < row; ++i) {
          const T* from = derivatives.data() + (lane * row + i) * (n + m);
          result.states[trajectory * row + i] = static_cast<double>(tile.states()[lane * row + i]);
          std::copy_n(from, n,
                      result.by_initial_state.begin() + static_cast<std::ptrdiff_t>((trajectory * row + i) * n));
          std::copy_n(from + n, m,
                      result.by_parameter.begin() + static_cast<std::ptrdiff_t>((trajectory * row + i) * m));
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
    }
  });
  return result;
}

}  // namespace

Sensitivities solve_with_sensitivities(const Problem& problem, const Options& options, const RunControl& control) {
  const StandardArithmetic arithmetic;
  detail::require_differentiable(problem, options);
  return options.precision == Precision::f32 ? solve_as<float>(problem, options, control)
                                             : solve_as<double>(problem, options, control);
}

}  // namespace lockstep::ode
