#include "bindings/python/solution.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "bindings/python/users_words.h"
#include "bindings/python/watched.h"
#include "lockstep/cli/provenance.h"
#include "lockstep/cli/state_events.h"
#include "lockstep/ode/read_solution.h"

namespace nb = nanobind;

namespace lockstep::python {
namespace {

nb::object to_object(const hdf5::AttributeValue& value) {
  return std::visit([](const auto& content) { return nb::cast(content); }, value);
}

using Shape = std::vector<std::size_t>;

nb::dict to_dict(const ode::Attributes& attributes) {
  nb::dict result;
  for (const auto& [name, value] : attributes) result[name.c_str()] = to_object(value);
  return result;
}

// The array shares memory that `owner` keeps, and cannot be written to.
template <class T>
nb::object view(const T* data, const Shape& shape, nb::handle owner) {
  return nb::cast(nb::ndarray<nb::numpy, const T>(data, shape.size(), shape.data(), owner));
}

// A capsule as the owner of what `content` points to.
template <class T>
nb::capsule keep(std::unique_ptr<T> content) {
  return nb::capsule(content.release(), [](void* pointer) noexcept { delete static_cast<T*>(pointer); });
}

constexpr std::array<std::string_view, 5> kOfRecords{"status", "accepted", "rejected", "evaluations", "end_time"};

nb::object record_array(std::string_view name, std::span<const ode::TrajectoryRecord> records) {
  const auto column = [&](auto value) {
    std::vector<decltype(value(records[0]))> values;
    values.reserve(records.size());
    for (const ode::TrajectoryRecord& record : records) values.push_back(value(record));
    return to_numpy(std::move(values), {records.size()});
  };
  if (name == "status") return column([](const auto& record) { return static_cast<std::uint8_t>(record.status); });
  if (name == "accepted") return column([](const auto& record) { return record.accepted; });
  if (name == "rejected") return column([](const auto& record) { return record.rejected; });
  if (name == "evaluations") return column([](const auto& record) { return record.evaluations; });
  return column([](const auto& record) { return record.end_time; });
}

void add_records(nb::dict& arrays, std::span<const ode::TrajectoryRecord> records) {
  for (const std::string_view name : kOfRecords) arrays[name.data()] = record_array(name, records);
}

// "event_time", "event_reset", or "event_first", [trajectory + 1]: where each trajectory's begin.
nb::object event_array(std::string_view name, const ode::EventLog& log) {
  const std::size_t count = log.times.size();
  if (name == "event_time") return to_numpy(log.times, {count});
  if (name == "event_reset") return to_numpy(log.resets, {count});
  return to_numpy(std::vector<std::int64_t>(log.first.begin(), log.first.end()), {log.first.size()});
}

// States, times or one of kOfRecords, which memory and file have in common. States are views, which keep `owner`.
nb::object solution_array(std::string_view name, const ode::Solution& solution, nb::handle owner) {
  const std::size_t n = solution.trajectories(), points = solution.save_points(), components = solution.components();
  const bool single = solution.precision() == Precision::f32;
  if (name == "state") {
    const Shape shape{n, points, components};
    return single ? view(solution.states<float>().data(), shape, owner)
                  : view(solution.states<double>().data(), shape, owner);
  }
  if (name == "end_state") {
    const Shape shape{n, components};
    return single ? view(solution.end_states<float>().data(), shape, owner)
                  : view(solution.end_states<double>().data(), shape, owner);
  }
  if (name == "time") {
    return to_numpy(std::vector<double>(solution.times().begin(), solution.times().end()),
                    solution.times_per_trajectory() ? Shape{n, points} : Shape{points});
  }
  return record_array(name, solution.records());
}

// first, first + stride, ..., `count` of them, all within the file: {first, count, stride}.
using Indices = std::vector<std::size_t>;

ode::IndexRange range(const Indices& indices) {
  return {indices[0], indices[1] == 0 ? 0 : (indices[1] - 1) * indices[2] + 1, indices[2]};
}

nb::tuple read(const std::filesystem::path& path, const Indices& trajectories, const Indices& times,
               const std::vector<std::string>& components) {
  std::unique_ptr<const ode::Solution> solution;
  const nb::object stopped = run_watched(nb::none(), [&](const RunControl&) {
    const ode::ResultFile file(path);
    const ode::Part part{.trajectories = range(trajectories), .times = range(times), .components = components};
    solution = std::make_unique<const ode::Solution>(ode::read_solution(file, part));
  });
  const ode::Solution& content = *solution;
  const nb::capsule owner = keep(std::move(solution));
  nb::dict arrays;
  for (const char* name : {"state", "end_state", "time"}) arrays[name] = solution_array(name, content, owner);
  add_records(arrays, content.records());
  return nb::make_tuple(arrays, stopped);
}

// Their events, without their states.
nb::dict read_events(const std::filesystem::path& path, const Indices& trajectories) {
  const ode::ResultFile file(path);
  const auto [first, count, stride] = std::tuple(trajectories[0], trajectories[1], trajectories[2]);
  ode::EventLog log;
  if (stride == 1) log = file.events(first, count);
  for (std::size_t i = 0; stride != 1 && i < count; ++i) log.append(file.events(first + i * stride, 1));
  nb::dict arrays;
  for (const char* name : {"event_time", "event_reset", "event_first"}) arrays[name] = event_array(name, log);
  return arrays;
}

// How the trajectories ended, without their states.
nb::dict read_records(const std::filesystem::path& path, const Indices& trajectories) {
  const ode::ResultFile file(path);
  const std::vector<ode::TrajectoryRecord> all = file.records(trajectories[0], range(trajectories).count);
  std::vector<ode::TrajectoryRecord> records;
  for (std::size_t i = 0; i < all.size(); i += trajectories[2]) records.push_back(all[i]);
  nb::dict arrays;
  add_records(arrays, records);
  return arrays;
}

// Of a solve.
nb::object array_of(nb::handle self, std::string_view name) {
  const auto& solved = nb::cast<const Solved&>(self);
  const ode::Problem& problem = solved.problem();
  const std::size_t n = solved.solution.trajectories();
  if (name == "initial_state") return to_numpy(problem.initial_states, {n, solved.solution.components()});
  if (name == "start_time") {
    std::vector<double> starts(n);
    for (std::size_t i = 0; i < n; ++i) starts[i] = problem.start_time(i);
    return to_numpy(std::move(starts), {n});
  }
  if (name.starts_with("event_")) return event_array(name, solved.solution.event_log());
  if (name != "parameters") return solution_array(name, solved.solution, self);
  const std::size_t parameters = problem.rhs->parameters();
  const bool each = parameters > 0 && problem.parameters.size() != parameters;
  return to_numpy(problem.parameters, each ? Shape{n, parameters} : Shape{parameters});
}

// What a file is, without its arrays.
nb::dict describe_file(const std::filesystem::path& path) {
  const ode::ResultFile file(path);
  nb::dict about;
  about["dtype"] = file.precision() == Precision::f32 ? "float32" : "float64";
  about["trajectories"] = file.trajectories();
  about["save_points"] = file.save_points();
  about["component_names"] = file.component_names();
  about["parameter_names"] = file.parameter_names();
  about["parameters_per_trajectory"] = file.parameters_per_trajectory();
  about["keeps_events"] = file.keeps_events();
  about["reset_texts"] = file.reset_texts();
  about["component_units"] = cli::component_units(file);
  about["time_unit"] = cli::time_unit(file);
  nb::dict attributes;
  for (const std::string& name : file.attribute_names()) {
    if (const auto value = file.attribute(name)) attributes[name.c_str()] = to_object(*value);
  }
  about["attributes"] = attributes;
  return about;
}

// Initial states, start times and parameters of trajectories first, first + stride, ...
nb::dict read_given_file(const std::filesystem::path& path, const Indices& trajectories) {
  const ode::ResultFile file(path);
  const auto [first, count, stride] = std::tuple(trajectories[0], trajectories[1], trajectories[2]);
  const std::size_t components = file.components(), parameters = file.parameter_names().size();
  std::vector<double> states, values;
  if (count > 0 && stride == 1) states = file.initial_states(first, count);
  for (std::size_t i = 0; stride != 1 && i < count; ++i) {
    const std::vector<double> row = file.initial_states(first + i * stride, 1);
    states.insert(states.end(), row.begin(), row.end());
  }
  const bool each = file.parameters_per_trajectory();
  for (std::size_t i = 0; parameters > 0 && i < (each ? count : 1); ++i) {
    const std::vector<double> row = file.parameters(first + i * stride);
    values.insert(values.end(), row.begin(), row.end());
  }
  nb::dict given;
  std::vector<double> starts;
  if (count > 0) {
    const hdf5::File content = hdf5::File::open(path);
    const std::vector<double> range =
        content.dataset(ode::result_names::kStartTime).read<double>({first}, {(count - 1) * stride + 1});
    for (std::size_t i = 0; i < count; ++i) starts.push_back(range[i * stride]);
  }
  given["start_time"] = to_numpy(std::move(starts), {count});
  given["initial_state"] = to_numpy(std::move(states), {count, components});
  given["parameters"] = to_numpy(std::move(values), each ? std::vector{count, parameters} : std::vector{parameters});
  return given;
}

}  // namespace

std::shared_ptr<const cli::ProblemSetup> Solved::setup() const {
  if (!own) return {written, &written->setup};
  auto whole = std::make_shared<cli::ProblemSetup>(written->setup);
  whole->problem = *own;
  return whole;
}

ode::Attributes Solved::described() const {
  return cli::describe_problem(written->file, *setup(), written->command, began);
}

ode::Attributes Solved::attributes() const {
  ode::Attributes attributes = described();
  attributes.emplace_back("title", written->setup.title);  // in files the writer adds it
  const ode::Attributes of_run = cli::describe_run(run);
  attributes.insert(attributes.end(), of_run.begin(), of_run.end());
  return attributes;
}

template <class T>
nb::object to_numpy(std::vector<T> values, const Shape& shape) {
  auto kept = std::make_unique<std::vector<T>>(std::move(values));
  T* data = kept->data();
  return nb::cast(nb::ndarray<nb::numpy, T>(data, shape.size(), shape.data(), keep(std::move(kept))));
}
template nb::object to_numpy(std::vector<double>, const Shape&);
template nb::object to_numpy(std::vector<std::int64_t>, const Shape&);
template nb::object to_numpy(std::vector<std::int32_t>, const Shape&);

void bind_solution(nb::module_& module) {
  nb::class_<Solved>(module, "Solved")
      .def("array", &array_of, nb::arg("name"))  // by the names of docs/files.md
      .def_prop_ro("attributes", [](const Solved& solved) { return to_dict(solved.attributes()); })
      .def_prop_ro("keeps_events", [](const Solved& solved) { return solved.solution.keeps_events(); })
      .def_prop_ro("reset_texts", [](const Solved& solved) { return cli::texts_of_resets(solved.setup()->resets); })
      .def_prop_ro("component_names", [](const Solved& solved) { return solved.written->setup.component_names; })
      .def_prop_ro("component_units", [](const Solved& solved) { return solved.written->setup.component_units; })
      .def_prop_ro("time_unit", [](const Solved& solved) { return solved.written->setup.time_unit; })
      .def_prop_ro("parameter_names", [](const Solved& solved) { return solved.written->setup.parameter_names; });
  module.def("read", [](const std::filesystem::path& path, const Indices& trajectories, const Indices& times,
                        const std::vector<std::string>& components) {
    return tell_in_users_words([&] { return read(path, trajectories, times, components); }, Source::file);
  });
  module.def("read_given", &read_given_file);
  module.def("read_records", &read_records);
  module.def("read_events", &read_events);
  module.def("describe_file", &describe_file);
}

}  // namespace lockstep::python
