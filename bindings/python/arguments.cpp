#include "bindings/python/arguments.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bindings/python/errors.h"
#include "bindings/python/impulses.h"
#include "bindings/python/users_words.h"
#include "lockstep/cli/ensemble_impulses.h"
#include "lockstep/cli/text.h"

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
      numbers.source =
          Values::Rows{std::move(std::get<Values::Shared>(numbers.source).row), given.rows, 1, false, true};
    }
    named.names.push_back(given.names[column]);
    named.columns.push_back(std::move(numbers));
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
  if (dimensions == 2) return Values{Values::Rows{std::move(values), rows, columns, false, true}, name};
  throw Error(ErrorKind::invalid_argument,
              {name, std::to_string(dimensions) + " dimensions", "one, shared by all trajectories, or two", {}});
}

// Where the text of a dict has a number in the place of this column.
void put_in_place(GivenColumn column, cli::ProblemFile& file) {
  using Values = cli::EnsembleValues;
  std::optional<Values>& dict = column.of == "u0"           ? file.ensemble.initial_state
                                : column.of == "parameters" ? file.ensemble.parameters
                                                            : file.time.span;
  auto& [names, columns] = std::get<Values::Named>(dict.value().source);
  const auto place = static_cast<std::size_t>(std::ranges::find(names, column.name) - names.begin());
  const std::size_t rows = column.values.size();
  columns.at(place).source = Values::Rows{std::move(column.values), rows, 1};
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
  ode::Impulses read =
      read_impulses(given.values, given.names, setup.component_names, problem.trajectories(), problem.start_times);
  setup.impulses = cli::text_of_impulses(read, setup.component_names);
  problem.impulses = std::move(read.impulses);
  problem.first_impulse = std::move(read.first);
  cli::meet_save_points(problem);
  if (problem.trajectories() > 0 && !any_happens(problem)) {
    setup.notes.push_back("no impulse lies between the start and the end of its trajectory: they change nothing");
  }
}

}  // namespace

Arguments read_arguments(const nb::dict& given, nb::handle numbers) {
  const auto read = [&](const char* name) {
    return given.contains(name) ? std::optional(read_given(name, given[name], numbers)) : std::nullopt;
  };
  Arguments arguments{read("u0"), read("parameters"), read("t_span"), read("save_at"), read("impulses"), {}};
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    const std::size_t dot = name.find('.');
    if (dot == std::string::npos) continue;
    arguments.columns.push_back(
        {name.substr(0, dot), name.substr(dot + 1), read_given(name.c_str(), value, numbers).values});
  }
  return arguments;
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
  file.rhs.written = model->written();
}

cli::ProblemSetup set_up_arguments(cli::ProblemFile& file, Arguments arguments) {
  for (GivenColumn& column : arguments.columns) put_in_place(std::move(column), file);
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

}  // namespace lockstep::python
