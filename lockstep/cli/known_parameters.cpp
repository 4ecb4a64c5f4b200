#include "lockstep/cli/known_parameters.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "lockstep/cli/data_numbers.h"
#include "lockstep/cli/refuse.h"
#include "lockstep/cli/text.h"
#include "lockstep/cli/training_file.h"

namespace lockstep::cli {

bool KnownParameters::has(const std::string& name) const { return std::ranges::find(of, name, &Of::name) != of.end(); }

KnownParameters read_known_parameters(const TomlValue& data) {
  KnownParameters known;
  known.where = data.where() + ".parameters";
  const TomlValue* parameters = data.find("parameters");
  if (parameters == nullptr) return known;
  known.where = parameters->where();
  if (parameters->is_array()) {
    for (const std::string& name : parameters->texts()) known.of.push_back({name, name});
  } else if (parameters->is_table()) {
    for (const auto& [name, column] : parameters->table()) {
      if (!column.is_text()) {
        throw column.error(column.describe(), "the name of a column",
                           "a number that all trajectories share stands in [rhs.parameters]");
      }
      known.of.push_back({name, column.text()});
    }
  } else {
    throw parameters->error(parameters->describe(), "names of columns: [\"T\"], { T = \"temperature\" }");
  }
  return known;
}

void declare(const KnownParameters& known, OdeSection& ode) {
  if (known.empty()) return;
  if (!ode.equations && !ode.system) {
    refuse(known.where, "parameters of a net alone", "equations, or a built-in system, that have parameters");
  }
  std::vector<std::string> names;
  if (ode.equations) {
    for (const auto& parameter : ode.equations->system.parameters) names.push_back(parameter.name);
  } else {
    names = system_of(ode).parameters;
  }
  const std::vector<ode::TrainedParameter>& trained = ode.equations ? ode.equations->trained : ode.trained;
  for (const KnownParameters::Of& each : known.of) {
    const auto found = std::ranges::find(names, each.name);
    const auto place = static_cast<std::size_t>(found - names.begin());
    if (std::ranges::find(trained, place, &ode::TrainedParameter::parameter) != trained.end()) {
      refuse(known.where, each.name + ", which the training is to find", "what is known of each trajectory",
             "remove it here, or its start there");
    }
    if (found != names.end()) continue;
    if (!ode.equations) {
      const std::vector<std::string_view> all(names.begin(), names.end());
      refuse(known.where, '"' + each.name + '"', "one of " + list_text(all), did_you_mean(each.name, all));
    }
    ode.equations->system.parameters.push_back({each.name, {}});
  }
}

std::vector<double> known_of_csv(const train::Table& csv, const KnownParameters& known,
                                 const std::vector<std::size_t>& lengths) {
  std::vector<std::string> columns;
  for (const KnownParameters::Of& each : known.of) columns.push_back(each.column);
  const std::vector<double> numbers = take_columns(csv, columns, known.where);
  const std::size_t width = columns.size();
  std::vector<double> values;
  for (std::size_t i = 0, row = 0; i < lengths.size(); row += lengths[i++]) {
    for (std::size_t at = row * width; at < (row + lengths[i]) * width; ++at) {
      const double first = numbers[row * width + at % width];
      if (numbers[at] == first) continue;
      const std::string where = csv.source + ":" + std::to_string(csv.lines[at / width]) + ", column ";
      if (std::isnan(numbers[at])) refuse(where + columns[at % width], "none", "a number in each row");
      refuse(where + columns[at % width], number_text(numbers[at]),
             number_text(first) + " as in the trajectory's first row",
             "what changes with the time is a table: [rhs.tables]");
    }
    for (std::size_t j = 0; j < width; ++j) values.push_back(numbers[row * width + j]);
  }
  return values;
}

std::vector<double> known_of_hdf5(const hdf5::File& file, const KnownParameters& known, std::size_t trajectories) {
  std::vector<Numbers> columns;
  for (const KnownParameters::Of& each : known.of) {
    const Numbers& column = columns.emplace_back(read_numbers(file, each.column, known.where));
    if (column.shape == hdf5::Shape{trajectories}) continue;
    refuse(column.name, shape_text(column.shape), "[" + std::to_string(trajectories) + "], one of each trajectory");
  }
  return columns.empty() ? std::vector<double>() : side_by_side(columns, trajectories);
}

std::vector<double> with_known(const std::vector<double>& shared, const std::vector<std::string>& names,
                               const std::vector<std::string>& known_names, const std::vector<double>& known) {
  std::vector<std::size_t> places;
  for (const std::string& name : known_names) {
    places.push_back(static_cast<std::size_t>(std::ranges::find(names, name) - names.begin()));
  }
  std::vector<double> all;
  for (std::size_t at = 0; at < known.size(); at += places.size()) {
    const std::size_t first = all.size();
    all.insert(all.end(), shared.begin(), shared.end());
    for (std::size_t j = 0; j < places.size(); ++j) all[first + places[j]] = known[at + j];
  }
  return all;
}

}  // namespace lockstep::cli
