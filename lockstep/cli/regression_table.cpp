// Rows of inputs and targets out of a CSV or an HDF5 file.
#include <cmath>
#include <utility>

#include "lockstep/cli/data_numbers.h"
#include "lockstep/cli/measurement_sigma.h"
#include "lockstep/cli/refuse.h"
#include "lockstep/cli/text.h"
#include "lockstep/cli/training_tables.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/train/table.h"

namespace lockstep::cli {
namespace {

constexpr const char* kSkip = "repair the row or leave it out, or let missing targets be: missing = \"skip\" in [data]";

// A missing target may be meant; the message then says how to say so.
std::vector<double> take_targets(const train::Table& table, const DataSection& data) {
  for (const std::string& name : data.targets) {
    const std::optional<train::Table::Fault>& fault = table.faults[table.index(data.where_targets, name)];
    if (!fault || !fault->is_missing) continue;
    refuse(table.source + ":" + std::to_string(fault->line) + ", column " + name, fault->found, "a finite number",
           kSkip);
  }
  return take_columns(table, data.targets, data.where_targets);
}

// A net needs all its inputs.
void require_inputs(const train::Table& table, const DataSection& data, const std::vector<double>& inputs) {
  for (std::size_t at = 0; at < inputs.size(); ++at) {
    if (!std::isnan(inputs[at])) continue;
    refuse(table.source + ":" + std::to_string(table.lines[at / data.inputs.size()]) + ", column " +
               data.inputs[at % data.inputs.size()],
           "none", "a finite number: inputs are needed, targets alone may miss", "leave out the row");
  }
}

// Of one dataset or several, side by side, as targets are.
std::vector<double> sigma_of_samples(const hdf5::File& file, const SigmaSection& sigma,
                                     const std::vector<std::string>& names, std::size_t rows) {
  const auto read = [&](const std::vector<std::string>& datasets, std::size_t width, const std::string& where) {
    Samples found = read_samples(file, datasets, "sigma", where, train::MissingNumbers::as_nan);
    if (found.rows != rows || found.names.size() != width) {
      refuse(where, shape_text({found.rows, found.names.size()}), shape_text({rows, width}) + " as the targets");
    }
    return std::move(found.values);
  };
  if (!sigma.columns.empty()) return read(sigma.columns, names.size(), sigma.where);
  if (sigma.empty()) return {};
  std::vector<double> values(rows * names.size());
  const std::vector<SigmaSection::Of> each = sigma.of(names);
  for (std::size_t i = 0; i < each.size(); ++i) {
    const std::vector<double> column =
        each[i].column.empty() ? std::vector<double>(rows, each[i].size) : read({each[i].column}, 1, each[i].where);
    for (std::size_t row = 0; row < rows; ++row) values[row * names.size() + i] = column[row];
  }
  return values;
}

}  // namespace

RegressionTable read_regression(const DataSection& data) {
  const train::MissingNumbers missing = data.missing.value_or(train::MissingNumbers::refuse);
  if (!is_hdf5(data)) {
    const train::Table csv = train::read_csv(data.file.value, missing);
    RegressionTable table{data.inputs, data.targets, take_columns(csv, data.inputs, data.where_inputs),
                          take_targets(csv, data)};
    require_inputs(csv, data, table.inputs);
    table.sigma = sigma_of_csv(csv, data.sigma, data.targets);
    require_sigma(table.targets, table.sigma, [&](std::size_t at) {
      return csv.source + ":" + std::to_string(csv.lines[at / data.targets.size()]) + ", of " +
             data.targets[at % data.targets.size()];
    });
    return table;
  }
  const hdf5::File file = hdf5::File::open(data.file.value);
  Samples inputs = read_samples(file, data.inputs, "x", data.where_inputs);
  Samples targets = read_samples(file, data.targets, "y", data.where_targets, missing, kSkip);
  if (inputs.rows != targets.rows) {
    refuse(file.path().string() + ": " + data.targets.front(), count_text(targets.rows) + " rows",
           count_text(inputs.rows) + " as " + data.inputs.front());
  }
  std::vector<double> sigma = sigma_of_samples(file, data.sigma, targets.names, targets.rows);
  require_sigma(targets.values, sigma, [&](std::size_t at) {
    return file.path().string() + ", row " + std::to_string(at / targets.names.size()) + ", of " +
           targets.names[at % targets.names.size()];
  });
  return {
      std::move(inputs.names), std::move(targets.names), std::move(inputs.values), std::move(targets.values), {}, {},
      std::move(sigma)};
}

}  // namespace lockstep::cli
