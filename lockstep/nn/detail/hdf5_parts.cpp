#include "lockstep/nn/detail/hdf5_parts.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/names.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {

using hdf5::Dataset;
using hdf5::Group;
using hdf5::Shape;

void check_members(const Group& group, std::span<const std::string_view> datasets,
                   std::span<const std::string_view> groups) {
  const auto check = [&](const std::vector<std::string>& found, std::span<const std::string_view> known) {
    for (const std::string& name : found) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      const Error error = unknown_name(group.name(), name, known);
      refuse(error.field(), error.found(), error.expected(), error.remedy());
    }
  };
  check(group.datasets(), datasets);
  check(group.groups(), groups);
}

std::vector<double> read_vector(const Group& group, const char* name, std::size_t expected, const char* meaning) {
  const Dataset dataset = group.dataset(name);
  if (dataset.shape() != Shape{expected}) {
    refuse(dataset.name(), "shape " + shape_text(dataset.shape()),
           "[" + std::to_string(expected) + "], one for each " + meaning);
  }
  return dataset.read<double>();
}

std::vector<double> read_vector_if_there(const Group& group, const char* name, std::size_t expected) {
  return group.has(name) ? read_vector(group, name, expected, "feature") : std::vector<double>{};
}

std::vector<Feature> read_features(const Group& group, std::size_t width) {
  std::vector<Feature> features(width);
  const auto read_text = [&](const char* name, std::string Feature::*member) {
    if (!group.has(name)) return;
    const Dataset dataset = group.dataset(name);
    std::vector<std::string> values = dataset.read_strings();
    if (dataset.shape() != Shape{width}) {
      refuse(dataset.name(), "shape " + shape_text(dataset.shape()),
             "[" + std::to_string(width) + "], one for each feature");
    }
    for (std::size_t i = 0; i < width; ++i) features[i].*member = std::move(values[i]);
  };
  const auto read_numbers = [&](const char* name, double Feature::*member) {
    const std::vector<double> values = read_vector_if_there(group, name, width);
    for (std::size_t i = 0; i < values.size(); ++i) features[i].*member = values[i];
  };
  read_text("name", &Feature::name);
  read_text("unit", &Feature::unit);
  read_numbers("minimum", &Feature::minimum);
  read_numbers("maximum", &Feature::maximum);
  return features;
}

std::string string_or_empty(const hdf5::Object& object, const char* attribute) {
  return object.has_attribute(attribute) ? object.string_attribute(attribute) : std::string();
}

void write_vector(Group& group, const std::string& name, const std::vector<double>& values, const Shape& shape) {
  if (all_fit_float32(values)) {
    const std::vector<float> floats(values.begin(), values.end());
    group.create_dataset<float>(name, shape).write<float>(floats);
  } else {
    group.create_dataset<double>(name, shape).write<double>(values);
  }
}

void write_port(Group& group, const Port& port) {
  const std::size_t width = port.features.size();
  group.set_attribute("name", port.name);
  const auto write_text = [&](const char* name, std::string Feature::*member) {
    std::vector<std::string> values;
    for (const Feature& feature : port.features) values.push_back(feature.*member);
    const bool any = std::any_of(values.begin(), values.end(), [](const std::string& value) { return !value.empty(); });
    if (any) group.create_strings(name, values);
  };
  const auto write_range = [&](const char* name, double Feature::*member, double none) {
    std::vector<double> values;
    for (const Feature& feature : port.features) values.push_back(feature.*member);
    if (std::any_of(values.begin(), values.end(), [&](double value) { return value != none; })) {
      write_vector(group, name, values, {width});
    }
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  write_text("name", &Feature::name);
  write_text("unit", &Feature::unit);
  write_range("minimum", &Feature::minimum, -kInfinity);
  write_range("maximum", &Feature::maximum, kInfinity);
}

void set_unless_empty(hdf5::Object& object, const std::string& attribute, const std::string& value) {
  if (!value.empty()) object.set_attribute(attribute, value);
}

}  // namespace lockstep::nn::detail
