#include "bindings/python/gradients.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "bindings/python/solution.h"
#include "bindings/python/solve_in_memory.h"
#include "bindings/python/users_words.h"
#include "bindings/python/watched.h"
#include "lockstep/cli/derivative_notes.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/guard.h"
#include "lockstep/ode/sensitivity.h"

namespace nb = nanobind;

namespace lockstep::python {
namespace {

// float64, C-contiguous, of the right shape: lockstep/_gradients.py sees to it.
using MaybeNumbers = std::optional<nb::ndarray<const double, nb::c_contig, nb::device::cpu>>;

// The row of each trajectory into `slopes`, or nothing.
void copy_row(const double* rows, std::size_t trajectory, std::span<double> slopes) {
  if (rows != nullptr) std::copy_n(rows + trajectory * slopes.size(), slopes.size(), slopes.data());
}

const double* data_of(const MaybeNumbers& numbers) { return numbers ? numbers->data() : nullptr; }

// A linear function of what was solved: its slopes are the given numbers, and its value serves nobody.
ode::Loss linear_loss(const MaybeNumbers& state, const MaybeNumbers& end_state, const MaybeNumbers& end_time) {
  const double *states = data_of(state), *end_states = data_of(end_state), *end_times = data_of(end_time);
  if (end_states == nullptr && end_times == nullptr) {
    return ode::TrajectoryLoss([states](std::size_t i, std::span<const double>, std::span<double> slopes) {
      copy_row(states, i, slopes);
      return 0.0;
    });
  }
  return ode::EndLoss([=](std::size_t i, std::span<const double>, const ode::TrajectoryEnd&, ode::EndSlopes& slopes) {
    copy_row(states, i, slopes.states);
    copy_row(end_states, i, slopes.end_state);
    if (end_times != nullptr) slopes.end_time = end_times[i];
    return 0.0;
  });
}

// Where trajectories leave a training range is no function that has derivatives.
void require_derivatives(const Solved& solved) {
  if (solved.written->setup.guard != ode::GuardAction::stop) return;
  throw Error(ErrorKind::unsupported,
              {"guard", "stop, whose end has no derivative", "flag, clamp or ignore",
               "solve with guard=\"flag\", which marks the trajectories that leave the training range"});
}

// What the derivatives do not see, as warnings to whoever called the method above.
constexpr int kLevel = 4;  // below this are _gradients.py, _solution.py and what answers other programs' words
void warn_of_jumps(const Solved& solved) {
  warn_of(cli::derivative_notes(*solved.problem().rhs, solved.written->setup.parameter_names), kLevel);
}
void warn_of_steps(const Solved& solved, const std::optional<ode::UnresolvedDerivatives>& unresolved) {
  if (!unresolved) return;
  warn_of({"derivatives are wrong: " +
           cli::unresolved_text(*unresolved, std::to_string(unresolved->trajectory), solved.options())},
          kLevel);
}

// [trajectory, parameter], or [parameter] where all trajectories share them.
std::vector<std::size_t> parameter_shape(const ode::Problem& problem) {
  const std::size_t parameters = problem.rhs->parameters();
  if (parameters == 0 || problem.parameters.size() == parameters) return {parameters};
  return {problem.trajectories(), parameters};
}

// Returns (dict of derivatives, what stopped it or None).
// Whether derivatives, `times` the work of the solve, are taken on the calling thread: their steps are the solve's.
bool ends_soon(const Solved& solved, double times) {
  double most = 0;
  for (const ode::TrajectoryRecord& record : solved.solution.records())
    most = std::max(most, static_cast<double>(record.accepted) + static_cast<double>(record.rejected));
  return is_short(solved.problem(), solved.options(), times, most);
}

nb::tuple solution_vjp(const std::shared_ptr<Solved>& solved, const MaybeNumbers& state, const MaybeNumbers& end_state,
                       const MaybeNumbers& end_time) {
  require_derivatives(*solved);
  warn_of_jumps(*solved);
  const ode::Problem& problem = solved->problem();
  ode::Gradients gradients;
  const auto work = [&](const RunControl& control) {
    gradients =
        ode::solve_with_gradients(problem, solved->options(), linear_loss(state, end_state, end_time),
                                  {.failed = ode::FailedTrajectories::count_until_then, .check_steps = true}, control);
  };
  constexpr double kTimes = 6;  // of a solve, the way there and the way back; with a record of every stage
  const nb::object stopped = ends_soon(*solved, kTimes) ? run_here(work) : run_watched(nb::none(), work);
  nb::dict result;
  if (!stopped.is_none()) return nb::make_tuple(result, stopped);
  warn_of_steps(*solved, gradients.unresolved);
  result["u0"] = to_numpy(std::move(gradients.initial_states), {problem.trajectories(), problem.rhs->components()});
  result["parameters"] = to_numpy(std::move(gradients.parameters), parameter_shape(problem));
  const std::size_t weights = gradients.weights.size();
  result["weights"] = to_numpy(std::move(gradients.weights), {weights});
  return nb::make_tuple(result, stopped);
}

nb::tuple sensitivities(const std::shared_ptr<Solved>& solved) {
  require_derivatives(*solved);
  warn_of_jumps(*solved);
  const ode::Problem& problem = solved->problem();
  ode::Sensitivities found;
  const auto work = [&](const RunControl& control) {
    found = ode::solve_with_sensitivities(problem, solved->options(), control);
  };
  const auto columns = static_cast<double>(problem.rhs->components() + problem.rhs->parameters());
  const nb::object stopped = ends_soon(*solved, 3 * (1 + columns)) ? run_here(work) : run_watched(nb::none(), work);
  nb::dict result;
  if (!stopped.is_none()) return nb::make_tuple(result, stopped);
  warn_of_steps(*solved, found.unresolved);
  const std::size_t n = problem.trajectories(), points = problem.save_points(), m = problem.rhs->components(),
                    p = problem.rhs->parameters();
  result["state_by_u0"] = to_numpy(std::move(found.by_initial_state), {n, points, m, m});
  result["state_by_parameter"] = to_numpy(std::move(found.by_parameter), {n, points, m, p});
  result["end_state_by_u0"] = to_numpy(std::move(found.end_state_by_initial_state), {n, m, m});
  result["end_state_by_parameter"] = to_numpy(std::move(found.end_state_by_parameter), {n, m, p});
  result["end_time_by_u0"] = to_numpy(std::move(found.end_time_by_initial_state), {n, m});
  result["end_time_by_parameter"] = to_numpy(std::move(found.end_time_by_parameter), {n, p});
  return nb::make_tuple(result, stopped);
}

}  // namespace

void bind_gradients(nb::module_& module) {
  module.def("solution_vjp", &solution_vjp, nb::arg("solved"), nb::arg("state").none(), nb::arg("end_state").none(),
             nb::arg("end_time").none());
  module.def("solution_sensitivities", &sensitivities, nb::arg("solved"));
}

}  // namespace lockstep::python
