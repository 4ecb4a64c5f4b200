#include "lockstep/cli/data_file.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

constexpr int kMostDepth = 3;               // of groups in groups, which may be cycles
constexpr std::size_t kMostDatasets = 100;  // listed

void append_names(std::vector<std::string>& names, const hdf5::Group& group, const std::string& prefix, int depth) {
  for (const std::string& name : group.datasets()) names.push_back(prefix + name);
  if (depth == 0) return;
  for (const std::string& name : group.groups()) {
    append_names(names, group.group(name), prefix + name + "/", depth - 1);
  }
}

struct Entry {
  std::string name;
  hdf5::Shape shape;
  hdf5::ElementType type;

  bool is_numbers() const { return type.kind == hdf5::Kind::real || type.kind == hdf5::Kind::integer; }
  bool has(std::size_t dimensions) const { return is_numbers() && shape.size() == dimensions; }
};

std::string shape_text(const hdf5::Shape& shape) {
  if (shape.empty()) return "one value";
  std::string text;
  for (const std::size_t extent : shape) text += (text.empty() ? "" : " x ") + count_text(extent);
  return shape.size() == 1 ? text + (shape[0] == 1 ? " value" : " values") : text;
}

// The first entry that fits, one called as any of the names before others.
template <class Fits>
const Entry* find(const std::vector<Entry>& entries, std::initializer_list<std::string_view> names, const Fits& fits) {
  for (const std::string_view name : names) {
    const auto is = [&](const Entry& entry) { return entry.name == name && fits(entry); };
    if (const auto found = std::ranges::find_if(entries, is); found != entries.end()) return &*found;
  }
  const auto found = std::ranges::find_if(entries, fits);
  return found == entries.end() ? nullptr : &*found;
}

std::string quoted(const Entry& entry) { return '"' + entry.name + '"'; }

// For each way to read the file an example with names out of it.
std::vector<std::string> uses(const std::string& path, const std::vector<Entry>& entries) {
  std::vector<std::string> lines;
  const Entry* const table = find(entries, {"input", "inputs", "x"}, [](const Entry& e) { return e.has(2); });
  if (table != nullptr) {
    lines.push_back("input of a net:       lockstep evaluate NET --input " + path +
                    (table->name == "input" ? "" : " --input-dataset " + table->name) + " --output answers.h5   (" +
                    counted_text(table->shape[1], "column") + ", one for each of its inputs)");
    const Entry* const targets = find(entries, {"target", "targets", "output", "y"}, [&](const Entry& e) {
      return &e != table && (e.has(1) || e.has(2)) && e.shape[0] == table->shape[0];
    });
    if (targets != nullptr) {
      lines.push_back("training, regression: [data] file = \"" + path + "\", inputs = " + quoted(*table) +
                      ", targets = " + quoted(*targets));
    }
  }
  const auto match = [](const Entry& time, const Entry& state) {
    if (time.has(1))
      return (state.has(2) && state.shape[0] == time.shape[0]) || (state.has(3) && state.shape[1] == time.shape[0]);
    return time.has(2) && state.has(3) && state.shape[0] == time.shape[0] && state.shape[1] == time.shape[1];
  };
  for (const std::string_view name : {"time", "times", "t"}) {
    const auto time = std::ranges::find(entries, name, &Entry::name);
    if (time == entries.end()) continue;
    const Entry* const state =
        find(entries, {"state", "states", "u", "x"}, [&](const Entry& e) { return match(*time, e); });
    if (state == nullptr) continue;
    lines.push_back("training, trajectory: [data] file = \"" + path + "\", time = " + quoted(*time) +
                    ", states = " + quoted(*state));
    break;
  }
  const Entry* const starts =
      find(entries, {"initial_state", "initial_states", "u0", "x0"}, [](const Entry& e) { return e.has(2); });
  if (starts != nullptr) {
    lines.push_back("start of an ensemble: [ensemble] initial_state = { file = \"" + path +
                    "\", dataset = " + quoted(*starts) + " }   (" + counted_text(starts->shape[0], "trajectory") +
                    ", " + counted_text(starts->shape[1], "component") + ")");
  }
  return lines;
}

}  // namespace

std::vector<std::string> dataset_names(const hdf5::Group& group) {
  std::vector<std::string> names;
  append_names(names, group, {}, kMostDepth);
  return names;
}

std::vector<std::string> data_file_lines(const hdf5::File& file) {
  const std::vector<std::string> names = dataset_names(file);
  std::vector<Entry> entries;
  std::size_t wide = 0;
  for (const std::string& name : names) {
    if (entries.size() == kMostDatasets) break;
    const hdf5::Dataset dataset = file.dataset(name);
    entries.push_back({name, dataset.shape(), dataset.type()});
    wide = std::max(wide, std::min<std::size_t>(name.size(), 40));
  }
  std::vector<std::string> lines{entries.empty() ? "no datasets" : "datasets"};
  for (const Entry& entry : entries) {
    lines.push_back("  " + entry.name + std::string(wide - std::min(wide, entry.name.size()), ' ') + "  " +
                    shape_text(entry.shape) + ", " + to_string(entry.type));
  }
  if (names.size() > entries.size()) lines.push_back("  and " + counted_text(names.size() - entries.size(), "other"));
  lines.emplace_back();
  std::vector<std::string> known = uses(file.path().string(), entries);
  if (known.empty()) {
    lines.emplace_back(
        "nothing that lockstep reads: it takes numbers of one to three dimensions, as docs/training_file.md");
    lines.emplace_back("and docs/problem_file.md say");
    return lines;
  }
  lines.emplace_back("what could be done with them, for example");
  for (std::string& use : known) lines.push_back("  " + std::move(use));
  return lines;
}

}  // namespace lockstep::cli
