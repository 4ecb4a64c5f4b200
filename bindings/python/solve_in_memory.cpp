#include "bindings/python/solve_in_memory.h"

#include <algorithm>
#include <new>

#include "bindings/python/errors.h"
#include "bindings/python/watched.h"
#include "lockstep/cli/range_notes.h"
#include "lockstep/cli/standstill_notes.h"
#include "lockstep/cli/text.h"
#include "lockstep/ode/cost_model.h"

namespace nb = nanobind;

namespace lockstep::python {
namespace {

// Throws MemoryError with what would not fit.
ode::Solution empty_solution(const ode::Problem& problem, const ode::Options& options) {
  const std::size_t trajectories = problem.trajectories(), components = problem.rhs->components();
  try {
    ode::Solution solution(options.precision, trajectories, components, problem.save_times,
                           problem.save_times_per_trajectory);
    if (problem.keep_events) solution.keep_events();
    return solution;
  } catch (const std::bad_alloc&) {
    const double bytes = static_cast<double>(trajectories) * static_cast<double>(problem.save_points() * components) *
                         (options.precision == Precision::f32 ? 4 : 8);
    const std::string text = cli::counted_text(trajectories, "trajectory") + " of " +
                             cli::counted_text(problem.save_points(), "save point") + " take " +
                             cli::size_text(static_cast<std::uint64_t>(std::min(bytes, 1e18))) +
                             ": save fewer points, or write them to a file with output=";
    raise_memory_error(text);
  }
}

std::size_t estimates = 0;  // Python's lock is held

// By one thread, where each trajectory makes so many steps.
double seconds_of(const ode::Problem& problem, const ode::Options& options, double steps) {
  ++estimates;
  const ode::Work work = ode::estimate_work(problem, options, steps);
  return ode::predict_cpu_seconds(work, options.cpu_target.value_or(best_cpu_target()), 1);
}

// How many steps to allow where a solve may be short: what they take is lost where it is not.
double tried_steps(const ode::Problem& problem, const ode::Options& options) {
  constexpr double kLost = 0.05, kMany = 1e6;  // seconds; steps beside which nothing else counts
  return std::min(static_cast<double>(options.max_steps), kMany * kLost / seconds_of(problem, options, kMany));
}

}  // namespace

bool is_short(const ode::Problem& problem, const ode::Options& options, double times, std::optional<double> known) {
  constexpr double kPatience = 0.25;  // seconds
  if (options.device.uses_cuda() || options.engine != ode::EngineChoice::automatic) return false;
  double steps = known.value_or(static_cast<double>(options.max_steps));
  if (!known && options.control == ode::StepControl::fixed) {
    steps = std::min(steps, ode::estimate_work(problem, options).steps);
  }
  return times * seconds_of(problem, options, steps) < kPatience;
}

std::size_t estimates_made() { return estimates; }

Estimate estimate_length(const ode::Problem& problem, const ode::Options& options) {
  if (is_short(problem, options)) return {Length::is_short};
  constexpr double kWorthTrying = 1000;  // few solves take more steps, and many less
  if (options.device.uses_cuda() || options.engine != ode::EngineChoice::automatic) return {Length::is_long};
  if (options.control == ode::StepControl::fixed) return {Length::is_long};
  const double tried = tried_steps(problem, options);
  if (tried < kWorthTrying) return {Length::is_long};
  return {Length::may_be_short, static_cast<std::int64_t>(tried)};
}

std::pair<Solved, nb::object> solve_in_memory(std::shared_ptr<const Written> written, std::optional<ode::Problem> own,
                                              Estimate estimate, nb::handle progress) {
  const cli::ProblemSetup& setup = written->setup;
  ode::Solution solution = empty_solution(own ? *own : setup.problem, setup.options);
  Solved solved{std::move(written), std::move(own), std::move(solution), cli::WallClock::now()};
  bool ran_out_of_steps = false;
  const auto work = [&](const ode::Options& options, const RunControl& control) {
    ode::MemorySink sink(solved.solution);
    ode::EndSample ends(sink, solved.problem(), options);
    const bool once = !solved.own;  // who solves again and again does not want to wait for what would tell the same
    Run run =
        solve_into(setup, solved.problem(), options, once ? static_cast<ode::SolutionSink&>(ends) : sink, control);
    if (once) solved.notes = notes_of(run, ends, setup);
    solved.run = std::move(run.summary);
    ran_out_of_steps = run.ran_out_of_steps;
  };
  const auto all = [&](const RunControl& control) { work(setup.options, control); };
  if (estimate.length == Length::is_short && progress.is_none()) {
    nb::object stopped = run_here(all);
    return {std::move(solved), std::move(stopped)};
  }
  if (estimate.length == Length::may_be_short && progress.is_none()) {
    ode::Options fewer = setup.options;
    fewer.max_steps = estimate.first_steps;
    nb::object stopped = run_here([&](const RunControl& control) { work(fewer, control); });
    if (!ran_out_of_steps) return {std::move(solved), std::move(stopped)};
    solved.solution = empty_solution(solved.problem(), setup.options);
    if (!stopped.is_none()) {
      CancelToken cancel;
      cancel.request();
      all({&cancel, {}});
      return {std::move(solved), std::move(stopped)};
    }
  }
  solved.was_watched = true;
  nb::object stopped = run_watched(progress, all);
  return {std::move(solved), std::move(stopped)};
}

Run solve_into(const cli::ProblemSetup& setup, const ode::Problem& problem, const ode::Options& options,
               ode::SolutionSink& sink, const RunControl& control) {
  const auto run = [&](ode::SolutionSink& to) {
    ode::Summary summary = ode::solve(problem, options, to, control);
    const bool ran_out = summary.count_of[static_cast<std::size_t>(ode::Status::too_many_steps)] > 0;
    return Run{std::move(summary), ran_out, {}};
  };
  if (setup.guard != ode::GuardAction::flag && setup.guard != ode::GuardAction::stop) return run(sink);
  ode::GuardedSink guarded(sink, problem, options.precision, setup.range, setup.guard);
  Run done = run(guarded);
  guarded.correct(done.summary);
  done.excursions = guarded.excursions();
  return done;
}

std::vector<std::string> notes_of(const Run& run, const ode::EndSample& ends, const cli::ProblemSetup& setup) {
  std::vector<std::string> notes = cli::standstill_notes(ends, setup.component_names);
  // Whoever asks for stop knows what the status means.
  if (setup.guard == ode::GuardAction::flag && !run.excursions.empty())
    notes.push_back(cli::text_of_excursions(run.excursions, setup));
  return notes;
}

}  // namespace lockstep::python
