#include "lockstep/cli/column_names.h"

#include <algorithm>
#include <array>

namespace lockstep::cli {
namespace {

// Strings of one dimension, as many as there are columns.
std::vector<std::string> strings(const hdf5::File& file, const std::string& path, std::size_t columns) {
  if (!file.has(path)) return {};
  const hdf5::Dataset dataset = file.dataset(path);
  if (dataset.type().kind != hdf5::Kind::string || dataset.shape() != hdf5::Shape{columns}) return {};
  return dataset.read_strings();
}

// What components, parameters, inputs and outputs without names are called.
bool are_made_up(const std::vector<std::string>& names) {
  static constexpr std::array<const char*, 4> kPrefixes{"u", "p", "x", "y"};
  return std::ranges::any_of(kPrefixes, [&](const char* prefix) { return names == numbered(prefix, names.size()); });
}

}  // namespace

std::vector<std::string> numbered(const std::string& prefix, std::size_t n) {
  std::vector<std::string> names(n);
  for (std::size_t i = 0; i < n; ++i) names[i] = prefix + std::to_string(i);
  return names;
}

std::vector<std::string> column_names(const hdf5::File& file, const std::string& path, const std::string& coordinate) {
  const hdf5::Dataset dataset = file.dataset(path);
  const hdf5::Shape shape = dataset.shape();
  if (shape.empty()) return {};
  const std::string scale = dataset.scale_names().back();
  const std::string& name = scale.empty() ? coordinate : scale;
  if (name.empty()) return {};
  const std::string beside = path.substr(0, path.rfind('/') + 1) + name;
  std::vector<std::string> names = strings(file, beside, shape.back());
  if (names.empty() && beside != name) names = strings(file, name, shape.back());
  const bool any_empty = std::ranges::any_of(names, [](const std::string& each) { return each.empty(); });
  return any_empty ? std::vector<std::string>{} : names;
}

bool is_by_matlab(const hdf5::Dataset& dataset) { return dataset.has_attribute("MATLAB_class"); }

bool go_by_position(const std::vector<std::string>& wanted, const std::vector<std::string>& found) {
  const auto is_found = [&](const std::string& name) { return std::ranges::find(found, name) != found.end(); };
  if (wanted.size() != found.size() || std::ranges::any_of(wanted, is_found)) return false;
  return are_made_up(wanted) || are_made_up(found);
}

}  // namespace lockstep::cli
