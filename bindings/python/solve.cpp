#include "bindings/python/solve.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/impulses.h"
#include "bindings/python/users_words.h"
#include "bindings/python/watched.h"
#include "lockstep/cli/ensemble_impulses.h"
#include "lockstep/cli/existing_output.h"
#include "lockstep/cli/out_of_steps.h"
#include "lockstep/cli/problem_file.h"
#include "lockstep/cli/problem_setup.h"
#include "lockstep/cli/provenance.h"
#include "lockstep/cli/range_notes.h"
#include "lockstep/cli/standstill_notes.h"
#include "lockstep/cli/stored_problem.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/run_control.h"
#include "lockstep/ode/cost_model.h"
#include "lockstep/ode/guard.h"
#include "lockstep/ode/result_writer.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace nb = nanobind;

namespace lockstep::python {
namespace {

// A table whose columns have names, which say where each goes.
cli::EnsembleValues named_values(const Given& given, const char* name) {
  using Values = cli::EnsembleValues;
  Values::Named named;
  for (std::size_t column = 0; column < given.columns; ++column) {
    std::vector<double> values(given.rows);
    for (std::size_t row = 0; row < given.rows; ++row) values[row] = given.values[row * given.columns + column];
    Values numbers{Values::Shared{std::move(values)}, std::string(name) + "." + given.names[column]};
    if (given.dimensions == 2) {
      numbers.source = Values::Rows{std::move(std::get<Values::Shared>(numbers.source).row), given.rows, 1};
    }
    named.columns.emplace_back(given.names[column], std::move(numbers));
  }
  return {std::move(named), name};
}

// One dimension: the same for all trajectories; two: a row for each.
std::optional<cli::EnsembleValues> ensemble_values(std::optional<Given>& given, const char* name) {
  using Values = cli::EnsembleValues;
  if (!given) return std::nullopt;
  auto& [dimensions, rows, columns, values, names] = *given;
  if (!names.empty() && (dimensions == 1 || dimensions == 2)) return named_values(*given, name);
  if (dimensions == 1) return Values{Values::Shared{std::move(values)}, name};
  if (dimensions == 2) return Values{Values::Rows{std::move(values), rows, columns}, name};
  throw Error(ErrorKind::invalid_argument,
              {name, std::to_string(dimensions) + " dimensions", "one, shared by all trajectories, or two", {}});
}

// Rows of save points, one for each of so many trajectories; more are left out only where their number was asked for.
std::vector<double> save_times_by_rows(Given given, std::size_t trajectories, bool asked_for) {
  const std::size_t dimensions = given.dimensions, rows = given.rows, columns = given.columns;
  if (dimensions == 2 && (rows == trajectories || (asked_for && rows > trajectories))) {
    given.values.resize(trajectories * columns);
    return std::move(given.values);
  }
  throw Error(ErrorKind::invalid_argument,
              {"save_at",
               dimensions == 2 ? cli::counted_text(rows, "row") : std::to_string(dimensions) + " dimensions",
               "[time], or [trajectory, time] with a row for each of " + cli::counted_text(trajectories, "trajectory"),
               {}});
}

template <class T>
std::optional<T> override_of(const nb::dict& given, const char* name) {
  if (!given.contains(name)) return std::nullopt;
  return nb::cast<T>(given[name]);
}

cli::ProblemOverrides overrides_of(const nb::dict& given) {
  cli::ProblemOverrides overrides;
  overrides.output = override_of<std::filesystem::path>(given, "output");
  overrides.trajectories = override_of<std::size_t>(given, "trajectories");
  overrides.seed = override_of<std::uint64_t>(given, "seed");
  overrides.method = override_of<std::string>(given, "method");
  overrides.rtol = override_of<double>(given, "rtol");
  overrides.atol = override_of<std::vector<double>>(given, "atol").value_or(std::vector<double>{});
  overrides.dt = override_of<double>(given, "dt");
  overrides.precision = override_of<std::string>(given, "precision");
  overrides.matrix_precision = override_of<std::string>(given, "matrix_precision");
  overrides.threads = override_of<int>(given, "threads");
  overrides.cpu_target = override_of<std::string>(given, "cpu_target");
  overrides.device = override_of<std::string>(given, "device");
  overrides.engine = override_of<std::string>(given, "engine");
  overrides.guard = override_of<std::string>(given, "guard");
  overrides.overwrite = override_of<bool>(given, "overwrite").value_or(false);
  return overrides;
}

struct Run {
  ode::Summary summary;
  bool ran_out_of_steps;  // some trajectory did, whatever its guard made of that
  std::vector<ode::Excursion> excursions;
};

// This problem and these options, which may differ from those of `setup`, with its guard.
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

// What was found on the way, for people.
std::vector<std::string> notes_of(const Run& run, const ode::EndSample& ends, const cli::ProblemSetup& setup) {
  std::vector<std::string> notes = cli::standstill_notes(ends, setup.component_names);
  // Whoever asks for stop knows what the status means.
  if (setup.guard == ode::GuardAction::flag && !run.excursions.empty())
    notes.push_back(cli::text_of_excursions(run.excursions, setup));
  return notes;
}

// What to do about trajectories that ran out of steps; looked at where a trajectory's steps take a second at most.
void note_out_of_steps(const cli::ProblemSetup& setup, const ode::Summary& summary, Source source,
                       const std::function<std::string()>& explain, std::vector<std::string>& notes) {
  constexpr std::int64_t kMostSteps = 200'000;
  const std::size_t count = summary.count_of[static_cast<std::size_t>(ode::Status::too_many_steps)];
  if (count == 0 || setup.options.control == ode::StepControl::fixed || setup.options.max_steps > kMostSteps) return;
  notes.push_back(cli::count_text(count) + " of " + cli::counted_text(setup.problem.trajectories(), "trajectory") +
                  " ran out of steps (status too_many_steps, states NaN from there): " +
                  in_users_words(explain(), source));
}

[[noreturn]] void raise_memory_error(const std::string& text) {
  PyErr_SetString(PyExc_MemoryError, text.c_str());
  throw nb::python_error();
}

// With a sentence of what does not fit, where all that is known is that something did not.
cli::ProblemSetup set_up_in_memory(const cli::ProblemFile& file) {
  const char* kText =
      "the initial states, parameters and save points of all trajectories do not fit into memory: save "
      "fewer points, or solve fewer trajectories at a time";
  try {
    return cli::set_up(file);
  } catch (const std::bad_alloc&) {
    raise_memory_error(kText);
  } catch (const std::length_error&) {
    raise_memory_error(kText);
  }
}

// Throws MemoryError with what would not fit.
ode::Solution empty_solution(const ode::Problem& problem, const ode::Options& options) {
  const std::size_t trajectories = problem.trajectories(), components = problem.rhs->components();
  try {
    return {options.precision, trajectories, components, problem.save_times, problem.save_times_per_trajectory};
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

// By one thread, where each trajectory makes so many steps.
double seconds_of(const ode::Problem& problem, const ode::Options& options, double steps) {
  const ode::Work work = ode::estimate_work(problem, options, steps);
  return ode::predict_cpu_seconds(work, options.cpu_target.value_or(best_cpu_target()), 1);
}

// How many steps to allow where a solve may be short: what they take is lost where it is not.
double tried_steps(const ode::Problem& problem, const ode::Options& options) {
  constexpr double kLost = 0.05, kMany = 1e6;  // seconds; steps beside which nothing else counts
  return std::min(static_cast<double>(options.max_steps), kMany * kLost / seconds_of(problem, options, kMany));
}

// A result file of this problem, made by `fill(writer)`, whose attributes are added at the end.
template <class Fill>
ode::Attributes write_file(const std::filesystem::path& path, bool overwrite, const cli::ProblemFile& file,
                           const cli::ProblemSetup& setup, ode::Attributes about, const Fill& fill) {
  ode::ResultMetadata metadata{setup.title, setup.stored_names(), setup.parameter_names, std::move(about)};
  metadata.components = setup.stored;
  metadata.must_match = cli::deciding_attributes();
  metadata.more = [&](hdf5::File& to) {
    cli::store_problem(to, file, setup);
    cli::describe_units(to, setup);
  };
  cli::refuse_to_replace(path, cli::input_files(file));
  const Existing existing = overwrite ? Existing::replace : Existing::refuse;
  ode::ResultWriter writer(path, setup.problem, setup.options.precision, std::move(metadata), existing);
  ode::Attributes run = fill(writer);
  writer.finish(run);
  return run;
}

ode::Attributes solve_into_file(const cli::ProblemFile& file, const cli::ProblemSetup& setup,
                                const ode::Attributes& about, Source source, std::vector<std::string>& notes,
                                const RunControl& control) {
  ode::Summary summary;
  ode::Attributes written =
      write_file(file.output.file->value, file.output.overwrite, file, setup, about, [&](ode::ResultWriter& writer) {
        ode::EndSample ends(writer, setup.problem, setup.options);
        Run run = solve_into(setup, setup.problem, setup.options, ends, control);
        notes = notes_of(run, ends, setup);
        summary = run.summary;
        return cli::describe_run(run.summary);
      });
  note_out_of_steps(
      setup, summary, source,
      [&] { return cli::explain_out_of_steps(setup.problem, setup.options, file.output.file->value, control); }, notes);
  return written;
}

template <class T>
void copy_block(const ode::Solution& from, std::size_t row, const ode::SolutionBlock& to) {
  const std::size_t states = from.save_points() * from.components(), components = from.components();
  std::copy_n(from.states<T>().data() + row * states, to.count * states, static_cast<T*>(to.state));
  std::copy_n(from.end_states<T>().data() + row * components, to.count * components, static_cast<T*>(to.end_state));
  std::copy_n(from.records().data() + row, to.count, to.records);
}

// What solve(output=...) would have written.
void save_solution(const Solved& solved, const std::filesystem::path& path, bool overwrite) {
  constexpr std::size_t kRows = 1024;
  const ode::Solution& solution = solved.solution;
  cli::require_result_name(path, "path");
  const nb::gil_scoped_release others_may_run;
  const std::shared_ptr<const cli::ProblemSetup> setup = solved.setup();
  write_file(path, overwrite, solved.written->file, *setup, solved.described(), [&](ode::ResultWriter& writer) {
    for (std::size_t row = 0; row < solution.trajectories(); row += kRows) {
      const auto block = writer.acquire(row, std::min(kRows, solution.trajectories() - row));
      solution.precision() == Precision::f32 ? copy_block<float>(solution, row, block)
                                             : copy_block<double>(solution, row, block);
      writer.commit(block);
    }
    return cli::describe_run(solved.run);
  });
}

// Returns (Solved or None where the result is a file, its path or None, the exception that stopped it or None).
nb::tuple solve(const std::string& text, const std::optional<std::filesystem::path>& path, const nb::dict& given,
                nb::handle numbers, const Net* model, const nb::dict& overrides, const std::string& command,
                nb::handle progress) {
  Arguments arguments = read_arguments(given, numbers);
  const Source source = path ? Source::file : Source::arguments;
  return tell_in_users_words(
      [&] {
        cli::ProblemFile file = path ? cli::read_problem_file(*path) : parse_arguments(text);
        cli::apply(overrides_of(overrides), file);
        if (path && !override_of<bool>(overrides, "file").value_or(true)) file.output.file.reset();
        if (file.output.file) {
          cli::refuse_to_replace(file.output.file->value, cli::input_files(file));
          cli::require_result_name(file.output.file->value, file.output.file->where);
        }
        take_model(model, file);
        cli::ProblemSetup setup = set_up_arguments(file, std::move(arguments));
        constexpr int kLevel = 4;  // below this are _run(), solve() and what answers other programs' words
        warn_of(setup.notes, kLevel);
        if (file.output.file) {
          const ode::Attributes about = cli::describe_problem(file, setup, command);
          std::vector<std::string> notes;
          const nb::object stopped = run_watched(
              progress, [&](const RunControl& control) { solve_into_file(file, setup, about, source, notes, control); });
          warn_of(notes, kLevel);
          return nb::make_tuple(nb::none(), file.output.file->value, stopped);
        }
        const Length length = length_of(setup.problem, setup.options);
        auto written = std::make_shared<const Written>(Written{std::move(file), std::move(setup), command});
        auto [solved, stopped] = solve_in_memory(written, std::nullopt, length, progress);
        const ode::Solution& solution = solved.solution;
        const auto explain = [&] {
          return cli::explain_out_of_steps(written->setup.problem, written->setup.options, solution);
        };
        note_out_of_steps(written->setup, solved.run, source, explain, solved.notes);
        warn_of(solved.notes, kLevel);
        return nb::make_tuple(std::move(solved), nb::none(), std::move(stopped));
      },
      source);
}

nb::dict systems() {
  nb::dict all;
  for (const std::string_view name : ode::system_names()) {
    const ode::SystemInfo& info = ode::system_info(name);
    nb::dict parameters;
    for (std::size_t i = 0; i < info.parameters.size(); ++i) {
      parameters[info.parameters[i].c_str()] = info.default_parameters[i];
    }
    nb::dict one;
    one["title"] = info.title;
    one["source"] = info.source;
    one["components"] = info.components;
    one["parameters"] = parameters;
    one["initial_state"] = info.default_initial_state;
    one["end_time"] = info.default_end_time;
    all[info.name.c_str()] = one;
  }
  return all;
}

}  // namespace

Arguments read_arguments(const nb::dict& given, nb::handle numbers) {
  const auto read = [&](const char* name) {
    return given.contains(name) ? std::optional(read_given(name, given[name], numbers)) : std::nullopt;
  };
  return {read("u0"), read("parameters"), read("t_span"), read("save_at"), read("impulses")};
}

cli::ProblemFile parse_arguments(const std::string& text) {
  static std::string last_text;
  static std::optional<cli::ProblemFile> last;
  if (!last || text != last_text) {
    last = cli::parse_problem_file(text, kArguments);
    last_text = text;
  }
  return *last;
}

void take_model(const Net* model, cli::ProblemFile& file) {
  if (!model) return;
  file.rhs.loaded = model->shared();
  file.rhs.kept = model->kept();
}

namespace {

// Those of a trajectory within its span; one at its end is none.
bool any_happens(const ode::Problem& problem) {
  for (std::size_t i = 0; i < problem.trajectories(); ++i) {
    for (const ode::Impulse& impulse : problem.impulses_of(i)) {
      if (impulse.time >= problem.start_time(i) && impulse.time < problem.end_time(i)) return true;
    }
  }
  return false;
}

void take_impulses(const Given& given, cli::ProblemSetup& setup) {
  ode::Problem& problem = setup.problem;
  ode::Impulses read = read_impulses(given.values, given.names, setup.component_names, problem.trajectories());
  setup.impulses = cli::text_of_impulses(read, setup.component_names);
  problem.impulses = std::move(read.impulses);
  problem.first_impulse = std::move(read.first);
  if (problem.trajectories() > 0 && !any_happens(problem)) {
    setup.notes.push_back("no impulse lies between the start and the end of its trajectory: they change nothing");
  }
}

}  // namespace

cli::ProblemSetup set_up_arguments(cli::ProblemFile& file, Arguments arguments) {
  if (auto states = ensemble_values(arguments.u0, "u0")) {
    file.ensemble.initial_state = std::move(states);
    file.where_of["problem.initial_states"] = "u0";
  }
  if (auto parameters = ensemble_values(arguments.parameters, "parameters")) {
    file.ensemble.parameters = std::move(parameters);
  }
  if (auto span = ensemble_values(arguments.t_span, "t_span")) {
    file.time.span = std::move(span);
    file.where_of["problem.start_times"] = file.where_of["problem.end_times"] = "t_span";
  }
  auto& save_at = arguments.save_at;
  const bool has_rows = save_at && save_at->dimensions > 1;
  if (save_at && save_at->dimensions == 1) file.time.save = {cli::Times{std::move(save_at->values)}, "save_at"};
  file.where_of["problem.save_times"] = "save_at";
  cli::ProblemSetup setup = set_up_in_memory(file);
  if (has_rows) {
    setup.problem.save_times =
        save_times_by_rows(*std::move(save_at), setup.problem.trajectories(), file.ensemble.trajectories.has_value());
    setup.problem.save_times_per_trajectory = true;
  }
  if (arguments.impulses) take_impulses(*arguments.impulses, setup);
  if (!has_rows && !arguments.impulses) return setup;
  file.where_of["problem.impulses"] = "impulses";
  try {
    ode::validate(setup.problem, setup.options);
  } catch (const Error& error) {
    throw cli::in_users_words(error, file);
  }
  return setup;
}

void warn_of(const std::vector<std::string>& notes, int stack_level) {
  for (const std::string& note : notes) {
    if (PyErr_WarnEx(PyExc_UserWarning, note.c_str(), stack_level) != 0) throw nb::python_error();
  }
}

bool is_short(const ode::Problem& problem, const ode::Options& options, double times) {
  constexpr double kPatience = 0.25;  // seconds
  if (options.device.uses_cuda() || options.engine != ode::EngineChoice::automatic) return false;
  double steps = static_cast<double>(options.max_steps);
  if (options.control == ode::StepControl::fixed) {
    steps = std::min(steps, ode::estimate_work(problem, options).steps);
  }
  return times * seconds_of(problem, options, steps) < kPatience;
}

Length length_of(const ode::Problem& problem, const ode::Options& options) {
  if (is_short(problem, options)) return Length::is_short;
  constexpr double kWorthTrying = 1000;  // few solves take more steps, and many less
  if (options.device.uses_cuda() || options.engine != ode::EngineChoice::automatic) return Length::is_long;
  if (options.control == ode::StepControl::fixed) return Length::is_long;
  return tried_steps(problem, options) < kWorthTrying ? Length::is_long : Length::may_be_short;
}

std::pair<Solved, nb::object> solve_in_memory(std::shared_ptr<const Written> written, std::optional<ode::Problem> own,
                                              Length length, nb::handle progress) {
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
  if (length == Length::is_short && progress.is_none()) {
    nb::object stopped = run_here(all);
    return {std::move(solved), std::move(stopped)};
  }
  if (length == Length::may_be_short && progress.is_none()) {
    ode::Options fewer = setup.options;
    fewer.max_steps = static_cast<std::int64_t>(tried_steps(solved.problem(), setup.options));
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

void bind_solve(nb::module_& module) {
  module.def("save_solution", &save_solution, nb::arg("solved"), nb::arg("path"), nb::arg("overwrite"));
  module.def("solve", &solve, nb::arg("text"), nb::arg("path").none(), nb::arg("given"), nb::arg("numbers"),
             nb::arg("model").none(), nb::arg("overrides"), nb::arg("command"), nb::arg("progress").none());
  module.def("systems", &systems,
             "The built-in systems by name: title, source, components, parameters with their defaults, initial_state, "
             "end_time.");
}

}  // namespace lockstep::python
