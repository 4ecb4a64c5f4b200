#include "bindings/python/solve.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/model.h"
#include "bindings/python/solution.h"
#include "bindings/python/users_words.h"
#include "bindings/python/watched.h"
#include "lockstep/cli/existing_output.h"
#include "lockstep/cli/problem_file.h"
#include "lockstep/cli/problem_setup.h"
#include "lockstep/cli/provenance.h"
#include "lockstep/cli/stored_problem.h"
#include "lockstep/ode/cost_model.h"
#include "lockstep/ode/guard.h"
#include "lockstep/ode/result_writer.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace nb = nanobind;

namespace lockstep::python {
namespace {

using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

std::vector<double> values_of(const Numbers& numbers) { return {numbers.data(), numbers.data() + numbers.size()}; }

// An array of the arguments, or nothing.
std::optional<Numbers> array_of(const nb::dict& arrays, const char* name) {
  if (!arrays.contains(name)) return std::nullopt;
  return nb::cast<Numbers>(arrays[name]);
}

// One dimension: the same for all trajectories; two: a row for each.
std::optional<cli::EnsembleValues> ensemble_values(const nb::dict& arrays, const char* name) {
  const auto numbers = array_of(arrays, name);
  if (!numbers) return std::nullopt;
  if (numbers->ndim() == 1) return cli::EnsembleValues{cli::EnsembleValues::Shared{values_of(*numbers)}, name};
  if (numbers->ndim() == 2) {
    return cli::EnsembleValues{cli::EnsembleValues::Rows{values_of(*numbers), numbers->shape(0), numbers->shape(1)},
                               name};
  }
  throw Error(ErrorKind::invalid_argument,
              {name, std::to_string(numbers->ndim()) + " dimensions", "one, shared by all trajectories, or two", {}});
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

// The arguments as the problem file they amount to. `text` holds what is no array.
cli::ProblemSetup set_up_arguments(cli::ProblemFile& file, const nb::dict& arrays, const Net* model) {
  if (model) {
    file.rhs.loaded = model->shared();
    file.rhs.kept = model->kept();
  }
  if (auto states = ensemble_values(arrays, "u0")) {
    file.ensemble.initial_state = std::move(states);
    file.where_of["problem.initial_states"] = "u0";
  }
  if (auto parameters = ensemble_values(arrays, "parameters")) file.ensemble.parameters = std::move(parameters);
  if (auto span = ensemble_values(arrays, "t_span")) {
    file.time.span = std::move(span);
    file.where_of["problem.start_times"] = file.where_of["problem.end_times"] = "t_span";
  }
  const auto save_at = array_of(arrays, "save_at");
  if (save_at && save_at->ndim() == 1) file.time.save = {cli::Times{values_of(*save_at)}, "save_at"};
  file.where_of["problem.save_times"] = "save_at";
  cli::ProblemSetup setup = cli::set_up(file);
  if (save_at && save_at->ndim() > 1) {
    setup.problem.save_times = values_of(*save_at);
    setup.problem.save_times_per_trajectory = true;
    try {
      setup.problem.validate();
    } catch (const Error& error) {
      throw cli::in_users_words(error, file);
    }
  }
  return setup;
}

ode::Summary solve_into(const cli::ProblemSetup& setup, ode::SolutionSink& sink, const RunControl& control) {
  if (setup.guard != ode::GuardAction::flag && setup.guard != ode::GuardAction::stop) {
    return ode::solve(setup.problem, setup.options, sink, control);
  }
  ode::GuardedSink guarded(sink, setup.problem, setup.options.precision, setup.range, setup.guard);
  ode::Summary summary = ode::solve(setup.problem, setup.options, guarded, control);
  guarded.correct(summary);
  return summary;
}

// A result file of this problem, made by `fill(writer)`, whose attributes are added at the end.
template <class Fill>
ode::Attributes write_file(const std::filesystem::path& path, bool overwrite, const cli::ProblemFile& file,
                           const cli::ProblemSetup& setup, const ode::Attributes& about, const Fill& fill) {
  ode::ResultMetadata metadata{setup.title, setup.stored_names(), setup.parameter_names, about};
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
                                const ode::Attributes& about, const RunControl& control) {
  return write_file(file.output.file->value, file.output.overwrite, file, setup, about,
                    [&](ode::ResultWriter& writer) { return cli::describe_run(solve_into(setup, writer, control)); });
}

template <class T>
void copy_block(const ode::Solution& from, std::size_t row, const ode::SolutionBlock& to) {
  const std::size_t states = from.save_points() * from.components(), components = from.components();
  std::copy_n(from.states<T>().data() + row * states, to.count * states, static_cast<T*>(to.state));
  std::copy_n(from.end_states<T>().data() + row * components, to.count * components, static_cast<T*>(to.end_state));
  std::copy_n(from.records().data() + row, to.count, to.records);
}

// What solve(output=...) would have written.
void save_solution(const std::shared_ptr<Solved>& solved, const std::filesystem::path& path, bool overwrite) {
  constexpr std::size_t kRows = 1024;
  const ode::Solution& solution = solved->solution;
  const auto& [about, run] = solved->described;
  const nb::gil_scoped_release others_may_run;
  write_file(path, overwrite, *solved->file, solved->setup, about, [&](ode::ResultWriter& writer) {
    for (std::size_t row = 0; row < solution.trajectories(); row += kRows) {
      const auto block = writer.acquire(row, std::min(kRows, solution.trajectories() - row));
      solution.precision() == Precision::f32 ? copy_block<float>(solution, row, block)
                                             : copy_block<double>(solution, row, block);
      writer.commit(block);
    }
    return run;
  });
}

ode::Attributes solve_into_memory(const cli::ProblemSetup& setup, ode::Solution& solution, const RunControl& control) {
  ode::MemorySink sink(solution);
  return cli::describe_run(solve_into(setup, sink, control));
}

// Into memory. Returns (Solved, the exception that stopped it or None).
std::pair<std::shared_ptr<Solved>, nb::object> solve_set_up(cli::ProblemFile file, cli::ProblemSetup setup,
                                                            ode::Attributes about, nb::handle progress) {
  const ode::Problem& problem = setup.problem;
  ode::Solution solution(setup.options.precision, problem.trajectories(), problem.rhs->components(), problem.save_times,
                         problem.save_times_per_trajectory);
  auto solved = std::make_shared<Solved>(Solved{std::move(setup), std::move(solution), {}});
  solved->file = std::make_shared<const cli::ProblemFile>(std::move(file));
  solved->described.first = about;
  about.emplace_back("title", solved->setup.title);  // in files the writer adds it
  const auto work = [&](const RunControl& control) {
    solved->described.second = solve_into_memory(solved->setup, solved->solution, control);
  };
  const bool here = progress.is_none() && is_short(solved->setup);
  nb::object stopped = here ? run_here(work) : run_watched(progress, work);
  about.insert(about.end(), solved->described.second.begin(), solved->described.second.end());
  solved->attributes = std::move(about);
  return {std::move(solved), std::move(stopped)};
}

// Returns (Solved or None where the result is a file, its path or None, the exception that stopped it or None).
nb::tuple solve(const std::string& text, const std::optional<std::filesystem::path>& path, const nb::dict& arrays,
                const Net* model, const nb::dict& overrides, const std::string& command, nb::handle progress) {
  return tell_in_users_words([&] {
    cli::ProblemFile file = path ? cli::read_problem_file(*path) : cli::parse_problem_file(text, kArguments);
    cli::apply(overrides_of(overrides), file);
    if (path && !override_of<bool>(overrides, "file").value_or(true)) file.output.file.reset();
    cli::ProblemSetup setup = set_up_arguments(file, arrays, model);
    ode::Attributes about = cli::describe_problem(file, setup, command);
    if (file.output.file) {
      const nb::object stopped =
          run_watched(progress, [&](const RunControl& control) { solve_into_file(file, setup, about, control); });
      return nb::make_tuple(nb::none(), file.output.file->value, stopped);
    }
    auto [solved, stopped] = solve_set_up(std::move(file), std::move(setup), std::move(about), progress);
    return nb::make_tuple(std::move(solved), nb::none(), std::move(stopped));
  });
}

// The arguments of solve(), read once for many solves.
class Prepared {
 public:
  Prepared(const std::string& text, const nb::dict& arrays, const Net* model, std::string command)
      : file_(tell_in_users_words([&] { return cli::parse_problem_file(text, kArguments); })),
        arrays_(arrays),
        command_(std::move(command)) {
    if (model) {
      file_.rhs.loaded = model->shared();
      file_.rhs.kept = model->kept();
    }
  }

  // With these arrays in the place of those by the same names. Returns (Solved, the exception that stopped it or None).
  nb::tuple solve(const nb::dict& arrays) const {
    return tell_in_users_words([&] {
      nb::dict all;
      all.update(arrays_);
      all.update(arrays);
      cli::ProblemFile file = file_;
      cli::ProblemSetup setup = set_up_arguments(file, all, nullptr);
      ode::Attributes about = cli::describe_problem(file, setup, command_);
      auto [solved, stopped] = solve_set_up(std::move(file), std::move(setup), std::move(about), nb::none());
      return nb::make_tuple(std::move(solved), std::move(stopped));
    });
  }

 private:
  cli::ProblemFile file_;
  nb::dict arrays_;
  std::string command_;
};

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

bool is_short(const cli::ProblemSetup& setup, double times) {
  constexpr double kPatience = 0.25;  // seconds
  const ode::Options& options = setup.options;
  if (options.device.uses_cuda() || options.engine != ode::EngineChoice::automatic) return false;
  double steps = static_cast<double>(options.max_steps);
  if (options.control == ode::StepControl::fixed) {
    steps = std::min(steps, ode::estimate_work(setup.problem, options).steps);
  }
  const ode::Work work = ode::estimate_work(setup.problem, options, steps);
  return times * ode::predict_cpu_seconds(work, options.cpu_target.value_or(best_cpu_target()), 1) < kPatience;
}

void bind_solve(nb::module_& module) {
  module.def("save_solution", &save_solution, nb::arg("solved"), nb::arg("path"), nb::arg("overwrite"));
  module.def("solve", &solve, nb::arg("text"), nb::arg("path").none(), nb::arg("arrays"), nb::arg("model").none(),
             nb::arg("overrides"), nb::arg("command"), nb::arg("progress").none());
  nb::class_<Prepared>(module, "Prepared")
      .def(nb::init<const std::string&, const nb::dict&, const Net*, std::string>(), nb::arg("text"), nb::arg("arrays"),
           nb::arg("model").none(), nb::arg("command"))
      .def("solve", &Prepared::solve, nb::arg("arrays"));
  module.def("systems", &systems,
             "The built-in systems by name: title, source, components, parameters with their defaults, initial_state, "
             "end_time.");
}

}  // namespace lockstep::python
