#include "lockstep/cli/measurement_sigma.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"

namespace lockstep::cli {

bool SigmaSection::one_by_one() const {
  return !columns.empty() || std::ranges::any_of(named, [](const Of& of) { return !of.column.empty(); });
}

ode::ErrorSize SigmaSection::error_size() const {
  return given_size.value_or(one_by_one() ? ode::ErrorSize::as_stated : ode::ErrorSize::from_fit);
}

std::vector<SigmaSection::Of> SigmaSection::of(const std::vector<std::string>& names) const {
  std::vector<Of> result;
  if (!columns.empty()) {
    if (columns.size() != names.size()) {
      throw Error(ErrorKind::invalid_argument,
                  {where, counted_text(columns.size(), "name"),
                   std::to_string(names.size()) + ", one for each of " +
                       list_text(std::vector<std::string_view>(names.begin(), names.end())),
                   "or give them by name: { " + names.front() + " = \"" + columns.front() + "\" }"});
    }
    for (std::size_t i = 0; i < names.size(); ++i) result.push_back({names[i], where, 0, columns[i]});
    return result;
  }
  for (const std::string& name : names) {
    const auto found = std::ranges::find(named, name, &Of::name);
    if (found == named.end() && std::ranges::find(may_lack, name) != may_lack.end()) {
      result.push_back({name, where, std::numeric_limits<double>::quiet_NaN(), {}});
      continue;
    }
    if (found == named.end()) {
      throw Error(ErrorKind::invalid_argument, {where, "none of " + name, "one of each, in their units", {}});
    }
    result.push_back(*found);
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  for (const Of& each : named) {
    if (std::ranges::find(names, each.name) != names.end()) continue;
    throw Error(ErrorKind::invalid_argument,
                {each.where, '"' + each.name + '"', "one of " + list_text(known), did_you_mean(each.name, known)});
  }
  return result;
}

SigmaSection read_sigma(const TomlValue& data, SigmaOf of) {
  SigmaSection section;
  section.where = data.where() + ".sigma";
  if (const TomlValue* sigma = data.find("sigma")) {
    if (sigma->is_text()) {
      section.columns = {sigma->text()};
    } else if (sigma->is_array()) {
      section.columns = sigma->texts();
    } else if (!sigma->is_table()) {
      throw sigma->error(sigma->describe(), "a table or names of columns: { x = 0.1 }, { x = \"x_error\" }");
    }
    if (!sigma->is_table() && section.columns.empty()) throw sigma->error("no names", "at least one");
    for (const auto& [name, size] : sigma->is_table() ? sigma->table() : TomlValue::Table()) {
      SigmaSection::Of& each = section.named.emplace_back(SigmaSection::Of{name, size.where(), 0, {}});
      if (size.is_text()) {
        each.column = size.text();
        continue;
      }
      each.size = size.number();
      if (!(each.size > 0)) throw size.error(size.describe(), "a number greater than 0, or the name of a column");
    }
  }
  if (const TomlValue* absolute = data.find("absolute_sigma")) {
    if (of == SigmaOf::regression) {
      throw absolute->error("absolute_sigma in a regression", "parameters of equations, whose errors it tells of",
                            "remove this key");
    }
    if (section.empty()) {
      throw absolute->error("absolute_sigma without sigma", "both", "add sigma = { x = 0.1 }, or remove this key");
    }
    section.given_size = absolute->boolean() ? ode::ErrorSize::as_stated : ode::ErrorSize::from_fit;
  }
  return section;
}

std::vector<double> sigma_of_csv(const train::Table& csv, const SigmaSection& sigma,
                                 const std::vector<std::string>& names) {
  if (sigma.empty()) return {};
  std::vector<double> values(csv.rows * names.size());
  const std::vector<SigmaSection::Of> each = sigma.of(names);
  for (std::size_t i = 0; i < each.size(); ++i) {
    const bool is_column = !each[i].column.empty();
    const std::size_t column = is_column ? csv.column(each[i].where, each[i].column) : 0;
    for (std::size_t row = 0; row < csv.rows; ++row) {
      values[row * names.size() + i] = is_column ? csv(row, column) : each[i].size;
    }
  }
  return values;
}

void require_sigma(const std::vector<double>& values, const std::vector<double>& sigma,
                   const std::function<std::string(std::size_t)>& place) {
  for (std::size_t at = 0; at < sigma.size(); ++at) {
    if (std::isnan(values[at]) || (sigma[at] > 0 && std::isfinite(sigma[at]))) continue;
    const bool none = std::isnan(sigma[at]);
    throw Error(ErrorKind::invalid_argument,
                {place(at), none ? "no sigma" : "sigma " + number_text(sigma[at]),
                 "a standard deviation greater than 0 of each measurement",
                 none ? "give it, or leave the measurement away as well"
                      : "give the size of its error; of a measurement that is not to count leave away the number"});
  }
}

}  // namespace lockstep::cli
