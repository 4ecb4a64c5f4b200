#include "bindings/python/solution.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <utility>

#include "bindings/python/watched.h"
#include "lockstep/cli/provenance.h"
#include "lockstep/ode/read_solution.h"

namespace nb = nanobind;

namespace lockstep::python {
namespace {

nb::object to_object(const hdf5::AttributeValue& value) {
  return std::visit([](const auto& content) { return nb::cast(content); }, value);
}

// The array shares memory that `owner`, a heap object of type Owner, keeps.
template <class T, class Owner>
nb::object view(const T* data, const std::vector<std::size_t>& shape, std::shared_ptr<const Owner> owner) {
  auto* kept = new std::shared_ptr<const Owner>(std::move(owner));
  const nb::capsule capsule(kept,
                            [](void* pointer) noexcept { delete static_cast<std::shared_ptr<const Owner>*>(pointer); });
  return nb::cast(nb::ndarray<nb::numpy, T>(const_cast<T*>(data), shape.size(), shape.data(), capsule));
}

void add_records(nb::dict& arrays, const std::vector<ode::TrajectoryRecord>& records) {
  const auto column = [&](const char* name, auto value) {
    std::vector<decltype(value(records[0]))> values;
    values.reserve(records.size());
    for (const ode::TrajectoryRecord& record : records) values.push_back(value(record));
    arrays[name] = to_numpy(std::move(values), {records.size()});
  };
  column("status", [](const auto& record) { return static_cast<std::uint8_t>(record.status); });
  column("accepted", [](const auto& record) { return record.accepted; });
  column("rejected", [](const auto& record) { return record.rejected; });
  column("evaluations", [](const auto& record) { return record.evaluations; });
  column("end_time", [](const auto& record) { return record.end_time; });
}

// States, times and records, which memory and file have in common.
template <class Owner>
nb::dict solution_arrays(const ode::Solution& solution, const std::shared_ptr<const Owner>& owner) {
  const std::size_t n = solution.trajectories(), points = solution.save_points(), components = solution.components();
  nb::dict arrays;
  const auto states = [&]<class T>(T) {
    arrays["state"] = view(solution.states<T>().data(), {n, points, components}, owner);
    arrays["end_state"] = view(solution.end_states<T>().data(), {n, components}, owner);
  };
  if (solution.precision() == Precision::f32) {
    states(float{});
  } else {
    states(double{});
  }
  arrays["time"] = to_numpy(std::vector<double>(solution.times().begin(), solution.times().end()),
                            solution.times_per_trajectory() ? std::vector{n, points} : std::vector{points});
  add_records(arrays, {solution.records().begin(), solution.records().end()});
  return arrays;
}

// first, first + stride, ..., `count` of them, all within the file: {first, count, stride}.
using Indices = std::vector<std::size_t>;

ode::IndexRange range(const Indices& indices) {
  return {indices[0], indices[1] == 0 ? 0 : (indices[1] - 1) * indices[2] + 1, indices[2]};
}

nb::tuple read(const std::filesystem::path& path, const Indices& trajectories, const Indices& times,
               const std::vector<std::string>& components) {
  std::shared_ptr<const ode::Solution> solution;
  const nb::object stopped = run_watched(nb::none(), [&](const RunControl&) {
    const ode::ResultFile file(path);
    const ode::Part part{.trajectories = range(trajectories), .times = range(times), .components = components};
    solution = std::make_shared<const ode::Solution>(ode::read_solution(file, part));
  });
  return nb::make_tuple(solution_arrays(*solution, solution), stopped);
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
  about["component_units"] = cli::component_units(file);
  about["time_unit"] = cli::time_unit(file);
  nb::dict attributes;
  for (const std::string& name : file.attribute_names()) {
    if (const auto value = file.attribute(name)) attributes[name.c_str()] = to_object(*value);
  }
  about["attributes"] = attributes;
  return about;
}

// Initial states and parameters of trajectories first, first + stride, ...
nb::dict read_given(const std::filesystem::path& path, const Indices& trajectories) {
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
  given["initial_state"] = to_numpy(std::move(states), {count, components});
  given["parameters"] = to_numpy(std::move(values), each ? std::vector{count, parameters} : std::vector{parameters});
  return given;
}

}  // namespace

nb::dict to_dict(const ode::Attributes& attributes) {
  nb::dict result;
  for (const auto& [name, value] : attributes) result[name.c_str()] = to_object(value);
  return result;
}

template <class T>
nb::object to_numpy(std::vector<T> values, const std::vector<std::size_t>& shape) {
  const auto kept = std::make_shared<const std::vector<T>>(std::move(values));
  return view(kept->data(), shape, kept);
}
template nb::object to_numpy(std::vector<double>, const std::vector<std::size_t>&);
template nb::object to_numpy(std::vector<std::int64_t>, const std::vector<std::size_t>&);

nb::dict Solved::arrays(const std::shared_ptr<const Solved>& solved) {
  const ode::Solution& solution = solved->solution;
  const ode::Problem& problem = solved->setup.problem;
  nb::dict arrays = solution_arrays(solution, solved);
  arrays["initial_state"] = to_numpy(problem.initial_states, {solution.trajectories(), solution.components()});
  const std::size_t parameters = problem.rhs->parameters();
  const bool each = parameters > 0 && problem.parameters.size() != parameters;
  arrays["parameters"] =
      to_numpy(problem.parameters, each ? std::vector{solution.trajectories(), parameters} : std::vector{parameters});
  return arrays;
}

void bind_solution(nb::module_& module) {
  nb::class_<Solved>(module, "Solved")
      .def_static("arrays", &Solved::arrays)
      .def_prop_ro("attributes", [](const Solved& solved) { return to_dict(solved.attributes); })
      .def_prop_ro("component_names", [](const Solved& solved) { return solved.setup.component_names; })
      .def_prop_ro("component_units", [](const Solved& solved) { return solved.setup.component_units; })
      .def_prop_ro("time_unit", [](const Solved& solved) { return solved.setup.time_unit; })
      .def_prop_ro("parameter_names", [](const Solved& solved) { return solved.setup.parameter_names; });
  module.def("read", &read);
  module.def("read_given", &read_given);
  module.def("read_records", &read_records);
  module.def("describe_file", &describe_file);
}

}  // namespace lockstep::python
