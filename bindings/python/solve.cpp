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
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "bindings/python/arguments.h"
#include "bindings/python/solve_in_memory.h"
#include "bindings/python/users_words.h"
#include "bindings/python/watched.h"
#include "lockstep/cli/ended_early.h"
#include "lockstep/cli/existing_output.h"
#include "lockstep/cli/out_of_steps.h"
#include "lockstep/cli/provenance.h"
#include "lockstep/cli/standstill_notes.h"
#include "lockstep/cli/state_events.h"
#include "lockstep/cli/stored_problem.h"
#include "lockstep/cli/text.h"
#include "lockstep/ode/result_writer.h"
#include "lockstep/ode/rhs.h"

namespace nb = nanobind;

namespace lockstep::python {
namespace {

constexpr const char *kNumber = "a number", *kText = "a name as text", *kYesOrNo = "True or False";

// What an override was, as messages about the text of a problem file say it.
std::string override_text(nb::handle value) {
  if (nb::isinstance<nb::str>(value)) return "\"" + nb::cast<std::string>(value) + "\"";
  const bool is_brief = value.is_none() || PyLong_Check(value.ptr()) || PyFloat_Check(value.ptr());
  return nb::cast<std::string>(is_brief ? nb::repr(value) : nb::borrow<nb::str>(nb::type_name(value.type())));
}

// For one who wrote a number as text.
std::string remedy_for_number(nb::handle value) {
  if (!nb::isinstance<nb::str>(value)) return {};
  const nb::object number = nb::steal(PyFloat_FromString(value.ptr()));
  if (!number.is_valid()) {
    PyErr_Clear();
    return {};
  }
  return "write " + nb::cast<std::string>(value) + " without quotes";
}

template <class T>
std::optional<T> override_of(const nb::dict& given, const char* name, const char* expected) {
  if (!given.contains(name)) return std::nullopt;
  const nb::object value = given[name];
  T read{};
  const bool is_misread = !std::is_same_v<T, bool> && PyBool_Check(value.ptr());  // as a number
  if (!is_misread && nb::try_cast(value, read)) return read;
  const std::string remedy = std::is_same_v<T, double> ? remedy_for_number(value) : std::string();
  throw Error(ErrorKind::invalid_argument, {name, override_text(value), expected, remedy});
}

cli::ProblemOverrides overrides_of(const nb::dict& given) {
  cli::ProblemOverrides overrides;
  overrides.output = override_of<std::filesystem::path>(given, "output", "the path of a file");
  overrides.trajectories = override_of<std::size_t>(given, "trajectories", "an integer of 1 or more, of 64 bits");
  overrides.seed = override_of<std::uint64_t>(given, "seed", "an integer of 0 or more, of 64 bits");
  overrides.method = override_of<std::string>(given, "method", kText);
  overrides.rtol = override_of<double>(given, "rtol", kNumber);
  overrides.atol = override_of<std::vector<double>>(given, "atol", "a number, or a list of one for each component")
                       .value_or(std::vector<double>{});
  overrides.dt = override_of<double>(given, "dt", kNumber);
  overrides.precision = override_of<std::string>(given, "precision", kText);
  overrides.matrix_precision = override_of<std::string>(given, "matrix_precision", kText);
  overrides.threads = override_of<int>(given, "threads", "a number of threads up to 4096, or 0 for all");
  overrides.cpu_target = override_of<std::string>(given, "cpu_target", kText);
  overrides.device = override_of<std::string>(given, "device", kText);
  overrides.engine = override_of<std::string>(given, "engine", kText);
  overrides.guard = override_of<std::string>(given, "guard", kText);
  overrides.overwrite = override_of<bool>(given, "overwrite", kYesOrNo).value_or(false);
  return overrides;
}

// What is to be said of trajectories that ended early. Why they ran out of steps is looked at where a trajectory's
// steps take a second at most.
void note_early_ends(const cli::ProblemSetup& setup, const ode::Summary& summary, Source source,
                     const std::function<std::string()>& explain, std::vector<std::string>& notes) {
  constexpr std::int64_t kMostSteps = 200'000;
  const std::size_t count = summary.count_of[static_cast<std::size_t>(ode::Status::too_many_steps)];
  const bool explained =
      count > 0 && setup.options.control != ode::StepControl::fixed && setup.options.max_steps <= kMostSteps;
  const std::string others =
      cli::ended_early_text(summary, setup.problem.trajectories(), setup.options,
                            explained ? std::optional(ode::Status::too_many_steps) : std::nullopt,
                            setup.problem.resets.empty() ? cli::HasResets::no : cli::HasResets::yes);
  if (!others.empty()) notes.push_back(in_users_words(others, source));
  if (!explained) return;
  const std::string reason = explain();
  cli::drop_what_is_told(reason, notes);
  notes.push_back(
      cli::count_text(count) + " of " + cli::counted_text(setup.problem.trajectories(), "trajectory") +
      " ran out of steps (status too_many_steps, states NaN from there): " + in_users_words(reason, source));
}

// An earlier file, where not all trajectories of the new one are finished: `lockstep solve` does not replace it.
enum class KeepEarlier { never, if_stopped };

// A result file of this problem, made by `fill(writer)`, whose account is added at the end. Returns where it is: under
// its name, or as NAME.part, which was stopped before it could replace an earlier file.
template <class Fill>
std::filesystem::path write_file(const std::filesystem::path& path, bool overwrite, KeepEarlier keep,
                                 const cli::ProblemFile& file, const cli::ProblemSetup& setup, ode::Attributes about,
                                 const Fill& fill) {
  ode::ResultMetadata metadata{setup.title, setup.stored_names(), setup.parameter_names, std::move(about)};
  metadata.components = setup.stored;
  metadata.must_match = cli::deciding_attributes();
  metadata.reset_texts = cli::texts_of_resets(setup.resets);
  metadata.more = [&](hdf5::File& to) {
    cli::store_problem(to, file, setup);
    cli::describe_units(to, setup);
  };
  cli::refuse_to_replace(path, cli::input_files(file));
  const Existing existing = overwrite ? Existing::replace : Existing::refuse;
  std::error_code ignored;
  const bool is_there = std::filesystem::exists(path, ignored);
  ode::ResultWriter writer(path, setup.problem, setup.options.precision, std::move(metadata), existing);
  const ode::Summary run = fill(writer);
  if (keep == KeepEarlier::if_stopped && is_there && run.count_of[static_cast<std::size_t>(ode::Status::cancelled)] > 0)
    return writer.leave(cli::describe_run(run), true);
  writer.finish(cli::describe_run(run));
  return path;
}

// What is known of a file however its solve ends.
struct ResultOfSolve {
  std::filesystem::path path;
  std::vector<std::string> notes;
};

void solve_into_file(const cli::ProblemFile& file, const cli::ProblemSetup& setup, const ode::Attributes& about,
                     Source source, ResultOfSolve& result, const RunControl& control) {
  ode::Summary summary;
  result.path = write_file(file.output.file->value, file.output.overwrite, KeepEarlier::if_stopped, file, setup, about,
                           [&](ode::ResultWriter& writer) {
                             ode::EndSample ends(writer, setup.problem, setup.options);
                             Run run = solve_into(setup, setup.problem, setup.options, ends, control);
                             result.notes = notes_of(run, ends, setup);
                             summary = run.summary;
                             return run.summary;
                           });
  note_early_ends(
      setup, summary, source,
      [&] { return cli::explain_out_of_steps(setup.problem, setup.options, result.path, control); }, result.notes);
}

template <class T>
void copy_block(const ode::Solution& from, std::size_t row, const ode::SolutionBlock& to) {
  const std::size_t states = from.save_points() * from.components(), components = from.components();
  std::copy_n(from.states<T>().data() + row * states, to.count * states, static_cast<T*>(to.state));
  std::copy_n(from.end_states<T>().data() + row * components, to.count * components, static_cast<T*>(to.end_state));
  std::copy_n(from.records().data() + row, to.count, to.records);
  for (std::size_t i = 0; to.events != nullptr && i < to.count; ++i) {
    const std::span<const ode::ResetEvent> events = from.events(row + i);
    to.events[i].assign(events.begin(), events.end());
  }
}

// What solve(output=...) would have written.
void save_solution(const Solved& solved, const std::filesystem::path& path, bool overwrite) {
  constexpr std::size_t kRows = 1024;
  const ode::Solution& solution = solved.solution;
  cli::require_result_name(path, "path");
  const nb::gil_scoped_release others_may_run;
  const std::shared_ptr<const cli::ProblemSetup> setup = solved.setup();
  write_file(path, overwrite, KeepEarlier::never, solved.written->file, *setup, solved.described(),
             [&](ode::ResultWriter& writer) {
               for (std::size_t row = 0; row < solution.trajectories(); row += kRows) {
                 const auto block = writer.acquire(row, std::min(kRows, solution.trajectories() - row));
                 solution.precision() == Precision::f32 ? copy_block<float>(solution, row, block)
                                                        : copy_block<double>(solution, row, block);
                 writer.commit(block);
               }
               return solved.run;
             });
}

// Returns (Solved or None where the result is a file, its path or None, the exception that stopped it or None). The
// path is that of NAME.part where the solve was stopped before it could replace an earlier file.
nb::tuple solve(const std::string& text, const std::optional<std::filesystem::path>& path, const nb::dict& given,
                nb::handle numbers, const Net* model, const nb::dict& overrides, const std::string& command,
                nb::handle progress) {
  Arguments arguments = read_arguments(given, numbers);
  const Source source = path ? Source::file : Source::arguments;
  return tell_in_users_words(
      [&] {
        cli::ProblemFile file = path ? cli::read_problem_file(*path) : parse_arguments(text);
        cli::apply(overrides_of(overrides), file);
        if (path && !override_of<bool>(overrides, "file", kYesOrNo).value_or(true)) file.output.file.reset();
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
          ResultOfSolve result{file.output.file->value, {}};
          const nb::object stopped = run_watched(progress, [&](const RunControl& control) {
            solve_into_file(file, setup, about, source, result, control);
          });
          warn_of(result.notes, kLevel);
          return nb::make_tuple(nb::none(), result.path, stopped);
        }
        const Estimate estimate = estimate_length(setup.problem, setup.options);
        auto written = std::make_shared<const Written>(Written{std::move(file), std::move(setup), command});
        auto [solved, stopped] = solve_in_memory(written, std::nullopt, estimate, progress);
        const ode::Solution& solution = solved.solution;
        const auto explain = [&] {
          return cli::explain_out_of_steps(written->setup.problem, written->setup.options, solution);
        };
        note_early_ends(written->setup, solved.run, source, explain, solved.notes);
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

void bind_solve(nb::module_& module) {
  module.def("save_solution", &save_solution, nb::arg("solved"), nb::arg("path"), nb::arg("overwrite"));
  module.def("solve", &solve, nb::arg("text"), nb::arg("path").none(), nb::arg("given"), nb::arg("numbers"),
             nb::arg("model").none(), nb::arg("overrides"), nb::arg("command"), nb::arg("progress").none());
  module.def("systems", &systems,
             "The built-in systems by name: title, source, components, parameters with their defaults, initial_state, "
             "end_time.");
}

}  // namespace lockstep::python
