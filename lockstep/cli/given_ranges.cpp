#include "lockstep/cli/given_ranges.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "lockstep/cli/data_numbers.h"
#include "lockstep/cli/refuse.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/core/text.h"
#include "lockstep/train/table.h"

namespace lockstep::cli {
namespace {

std::vector<nn::Feature*> features_of(std::vector<nn::Port>& ports) {
  std::vector<nn::Feature*> features;
  for (nn::Port& port : ports) {
    for (nn::Feature& feature : port.features) features.push_back(&feature);
  }
  return features;
}

void name_features(std::vector<nn::Port>& ports, const std::vector<std::string>& names, const char* flag) {
  if (names.empty()) return;
  const std::vector<nn::Feature*> features = features_of(ports);
  if (names.size() != features.size()) {
    refuse(flag, counted_text(names.size(), "name"), std::to_string(features.size()) + ", one for each feature");
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto before = names.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(names.begin(), before, names[i]) != before) {
      refuse(flag, '"' + names[i] + "\" twice", "different names");
    }
    features[i]->name = names[i];
  }
}

// Of `values` [row][feature].
void take_from(std::vector<nn::Feature*> features, const std::vector<double>& values) {
  for (std::size_t i = 0; i < features.size(); ++i) {
    const train::ColumnStatistics column = train::column_statistics(values, features.size(), i);
    features[i]->minimum = column.minimum;
    features[i]->maximum = column.maximum;
  }
}

std::size_t take_csv(nn::Model& model, const std::filesystem::path& path, std::vector<std::string>& notes) {
  const train::Table table = train::read_csv(path);
  const std::vector<nn::Feature*> features = features_of(model.inputs);
  std::vector<std::string> names;
  for (const nn::Feature* feature : features) names.push_back(feature->name);
  const bool has_names = std::ranges::none_of(names, [](const std::string& name) { return name.empty(); });
  if (!has_names) {
    std::optional<UnnamedColumns> columns = columns_for_unnamed(table, features.size(), model.provenance.source);
    if (!columns) {
      refuse(path.string(), counted_text(table.columns.size(), "column"),
             std::to_string(features.size()) + ", the inputs of a net that does not name them",
             "say which columns they are, in the net's order: --inputs a,b,c");
    }
    names = std::move(columns->names);
    if (!columns->note.empty()) notes.push_back(columns->note + "; --inputs names them");
  }
  if (table.rows == 0) refuse(path.string(), "no rows", "at least one");
  take_from(features, take_columns(table, names, path.string()));
  return table.rows;
}

std::size_t take_hdf5(nn::Model& model, const std::filesystem::path& path) {
  const hdf5::File file = hdf5::File::open(path);
  std::size_t rows = 0;
  for (nn::Port& port : model.inputs) {
    const Samples samples = read_samples(file, {model.inputs.size() > 1 ? port.name : "input"}, "", path.string());
    if (samples.names.size() != port.features.size()) {
      refuse(path.string(), counted_text(samples.names.size(), "column") + " for port " + port.name,
             std::to_string(port.features.size()) + ", as the net has");
    }
    std::vector<nn::Feature*> features;
    for (nn::Feature& feature : port.features) features.push_back(&feature);
    take_from(features, samples.values);
    rows = samples.rows;
  }
  return rows;
}

// Of "NAME" the feature of that name, else all of the port's; of "PORT[2]" the third of them.
std::vector<nn::Feature*> named(nn::Model& model, const std::string& name) {
  std::vector<nn::Feature*> found;
  std::vector<std::string> known;
  for (nn::Port& port : model.inputs) {
    known.push_back(port.name);
    for (nn::Feature& feature : port.features) {
      if (feature.name == name && !name.empty()) found.push_back(&feature);
      if (!feature.name.empty()) known.push_back(feature.name);
    }
  }
  if (!found.empty()) return found;
  for (nn::Port& port : model.inputs) {
    for (std::size_t i = 0; i < port.features.size(); ++i) {
      if (name == port.name || name == port.name + "[" + std::to_string(i) + "]") found.push_back(&port.features[i]);
    }
  }
  if (!found.empty()) return found;
  const std::vector<std::string_view> names(known.begin(), known.end());
  std::string remedy = did_you_mean(name, names);
  if (remedy.empty()) remedy = "one of a port's unnamed features is written " + model.inputs[0].name + "[0]";
  refuse("--range", '"' + name + '"', "a feature or port of the net's inputs: " + list_text(names), remedy);
}

void take_range(nn::Model& model, const std::string& text) {
  const std::size_t equals = text.rfind('='), colon = text.find(':', equals == std::string::npos ? 0 : equals);
  const auto number = [&](std::string_view part) {
    double value = 0;
    const auto [end, failure] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (failure != std::errc() || end != part.data() + part.size() || std::isnan(value)) {
      refuse("--range", '"' + text + '"', "NAME=LOW:HIGH, such as x=-1:1.5", "an end without a bound is -inf or inf");
    }
    return value;
  };
  if (equals == std::string::npos || colon == std::string::npos) number("");
  const std::string_view all = text;
  const double low = number(all.substr(equals + 1, colon - equals - 1)), high = number(all.substr(colon + 1));
  if (!(low <= high)) refuse("--range", '"' + text + '"', "a lower end first");
  for (nn::Feature* feature : named(model, text.substr(0, equals))) {
    feature->minimum = low;
    feature->maximum = high;
  }
}

}  // namespace

std::vector<std::string> take_ranges(nn::Model& model, const GivenRanges& given, std::vector<std::string>& notes) {
  name_features(model.inputs, given.inputs, "--inputs");
  name_features(model.outputs, given.outputs, "--outputs");
  std::vector<std::string> lines;
  if (given.data) {
    const std::string extension = given.data->extension().string();
    const bool is_hdf5 = extension == ".h5" || extension == ".hdf5";
    const std::size_t rows = is_hdf5 ? take_hdf5(model, *given.data) : take_csv(model, *given.data, notes);
    lines.push_back("from " + counted_text(rows, "row") + " of " + given.data->string());
  }
  for (const std::string& range : given.ranges) take_range(model, range);
  if (!given.data && given.ranges.empty()) return lines;
  for (const nn::Port& port : model.inputs) {
    for (std::size_t i = 0; i < port.features.size(); ++i) {
      const nn::Feature& feature = port.features[i];
      const std::string name = feature.name.empty() ? port.name + "[" + std::to_string(i) + "]" : feature.name;
      lines.push_back(name + " from " + number_text(feature.minimum) + " to " + number_text(feature.maximum));
    }
  }
  return lines;
}

}  // namespace lockstep::cli
