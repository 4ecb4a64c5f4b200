#include "lockstep/cli/data_numbers.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "lockstep/cli/column_names.h"
#include "lockstep/cli/data_file.h"
#include "lockstep/cli/meant_numbers.h"
#include "lockstep/cli/refuse.h"
#include "lockstep/cli/text.h"

namespace lockstep::cli {

std::string place_text(const hdf5::Shape& shape, std::size_t at) {
  const bool states = shape.size() == 3;
  std::string text;
  for (std::size_t dimension = shape.size(); dimension-- > 0; at /= shape[dimension]) {
    const char* const name = dimension == 0   ? states ? ", trajectory " : ", row "
                             : dimension == 1 ? states ? ", point " : ", column "
                                              : ", component ";
    text = name + std::to_string(at % shape[dimension]) + text;
  }
  return text;
}

std::string shape_text(const hdf5::Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + count_text(shape[i]);
  return text + "]";
}

Numbers read_numbers(const hdf5::File& file, const std::string& name, const std::string& where,
                     train::MissingNumbers missing, const std::string& remedy) {
  if (!file.has(name)) {
    const std::vector<std::string> names = dataset_names(file);
    const std::vector<std::string_view> known(names.begin(), names.end());
    refuse(where, "\"" + name + "\", which " + file.path().string() + " does not have", "one of " + list_text(known),
           did_you_mean(name, known));
  }
  const MeantNumbers meant(file.dataset(name));
  Numbers numbers{meant.dataset().name(), meant.dataset().shape(), meant.read<double>()};
  for (std::size_t i = 0; i < numbers.values.size(); ++i) {
    if (std::isfinite(numbers.values[i])) continue;
    if (missing == train::MissingNumbers::as_nan && std::isnan(numbers.values[i])) continue;
    refuse(numbers.name + place_text(numbers.shape, i), std::isnan(numbers.values[i]) ? "NaN" : "infinity",
           "finite numbers", remedy);
  }
  return numbers;
}

std::vector<double> side_by_side(const std::vector<Numbers>& parts, std::size_t rows) {
  if (parts.size() == 1) return parts.front().values;
  std::vector<double> values;
  for (std::size_t row = 0; row < rows; ++row) {
    for (const Numbers& part : parts) {
      const std::size_t width = part.values.size() / rows;
      const auto first = part.values.begin() + static_cast<std::ptrdiff_t>(row * width);
      values.insert(values.end(), first, first + static_cast<std::ptrdiff_t>(width));
    }
  }
  return values;
}

Samples read_samples(const hdf5::File& file, const std::vector<std::string>& names, const std::string& prefix,
                     const std::string& where, train::MissingNumbers missing, const std::string& remedy) {
  std::vector<Numbers> parts;
  Samples samples;
  for (const std::string& name : names) {
    Numbers& part = parts.emplace_back(read_numbers(file, name, where, missing, remedy));
    const bool column = part.shape.size() == 1;
    if (column) part.shape = {part.shape[0], 1};
    if (part.shape.size() != 2 || part.shape[1] == 0) {
      refuse(part.name, std::to_string(part.shape.size()) + " dimensions", "[sample] or [sample, feature]");
    }
    if (part.shape[0] != parts[0].shape[0]) {
      refuse(part.name, count_text(part.shape[0]) + " rows", count_text(parts[0].shape[0]) + " as " + parts[0].name);
    }
    std::vector<std::string> features = numbered(names.size() == 1 ? prefix : name, part.shape[1]);
    if (column && names.size() > 1) features = {name};
    samples.names.insert(samples.names.end(), features.begin(), features.end());
  }
  samples.rows = parts[0].shape[0];
  if (samples.rows == 0) refuse(parts[0].name, "no rows", "at least one");
  samples.values = side_by_side(parts, samples.rows);
  return samples;
}

std::vector<double> take_columns(const train::Table& table, const std::vector<std::string>& names,
                                 const std::string& where) {
  std::vector<std::size_t> columns;
  for (const std::string& name : names) columns.push_back(table.column(where, name));
  std::vector<double> values;
  values.reserve(table.rows * columns.size());
  for (std::size_t row = 0; row < table.rows; ++row) {
    for (const std::size_t column : columns) values.push_back(table(row, column));
  }
  return values;
}

std::optional<UnnamedColumns> columns_for_unnamed(const train::Table& table, std::size_t inputs,
                                                  const std::string& model) {
  const std::vector<std::string> by_number = numbered("x", inputs);
  const auto is_there = [&](const std::string& name) {
    return std::ranges::find(table.columns, name) != table.columns.end();
  };
  if (std::ranges::all_of(by_number, is_there)) return UnnamedColumns{by_number, {}};
  if (inputs != table.columns.size()) return {};
  const std::vector<std::string_view> known(table.columns.begin(), table.columns.end());
  return UnnamedColumns{table.columns, model + " names no inputs: the columns " + list_text(known) + " of " +
                                           table.source + " are taken in their order"};
}

}  // namespace lockstep::cli
