#include "bindings/python/equations.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/model.h"
#include "lockstep/core/error.h"
#include "lockstep/nn/equations.h"
#include "lockstep/nn/table_model.h"

namespace nb = nanobind;

namespace lockstep::python {
namespace {

using Texts = std::vector<std::pair<std::string, std::string>>;

// _model.py has made lists of the dicts.
Net equations(const Texts& texts, const std::vector<std::pair<std::string, std::optional<double>>>& parameters,
              const Texts& definitions, const std::vector<std::pair<std::string, const Net*>>& models,
              const std::string& name) {
  nn::Equations system;
  for (const auto& [key, text] : texts) system.equations.push_back({key, text, "equations." + key});
  for (const auto& [key, text] : definitions) system.definitions.push_back({key, text, "definitions." + key});
  for (const auto& [key, value] : parameters) system.parameters.push_back({key, value});
  for (const auto& [key, net] : models) system.nets.push_back({key, net->model()});
  nn::Model model = nn::equations(system);
  model.name = name;
  return {std::move(model), std::move(system)};
}

// What equations() takes to make the same again, of a net that it made; else None.
nb::object equations_of(const Net& net) {
  if (!net.written()) return nb::none();
  const nn::Equations& written = *net.written();
  const auto texts = [](const std::vector<nn::Equation>& of) {
    Texts made;
    for (const nn::Equation& each : of) made.emplace_back(each.name, each.text);
    return made;
  };
  std::vector<std::pair<std::string, std::optional<double>>> parameters;
  for (const auto& [name, value] : written.parameters) parameters.emplace_back(name, value);
  std::vector<std::pair<std::string, Net>> models;
  for (const auto& called : written.nets) models.emplace_back(called.name, Net(called.model));
  return nb::make_tuple(texts(written.equations), parameters, texts(written.definitions), models, net.model().name);
}

// values: [knot][column], as _function_table.py has made them.
Net table(std::vector<double> knots, std::vector<double> values, const std::vector<std::string>& columns,
          const std::string& input, const std::string& interpolation) {
  const auto kind = nn::parse_interpolation(interpolation);
  if (!kind) {
    throw Error(ErrorKind::invalid_argument,
                {"interpolation", '"' + interpolation + '"', "\"linear\", \"previous\", \"pchip\" or \"spline\"", ""});
  }
  nn::FunctionTable given{{input}, std::move(knots), {}, std::move(values), *kind};
  for (const std::string& name : columns) given.outputs.push_back({name});
  return Net(nn::table_model(given));
}

}  // namespace

void bind_equations(nb::module_& module) {
  module.def("equations", &equations);
  module.def("equations_of", &equations_of);
  module.def("table", &table);
}

}  // namespace lockstep::python
