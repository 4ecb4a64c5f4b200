// `lockstep info`: what a file holds, a result, a model or data.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/data_file.h"
#include "lockstep/cli/ensemble_grid.h"
#include "lockstep/cli/fit_report.h"
#include "lockstep/cli/model_text.h"
#include "lockstep/cli/parameter_report.h"
#include "lockstep/cli/plot/finished.h"
#include "lockstep/cli/provenance.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/core/hdf5_text.h"
#include "lockstep/core/printable.h"
#include "lockstep/core/resolved_text.h"
#include "lockstep/nn/guarded_calls.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/model.h"
#include "lockstep/ode/result_file.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::cli {
namespace {

struct InfoOptions {
  std::filesystem::path file;
  bool systems = false;
  std::optional<std::string> activations;
};

constexpr const char* kInfoExamples = R"(
Examples:
  lockstep info results.h5
  lockstep info net.safetensors
  lockstep info --systems           the built-in right-hand sides)";

void line(const std::string& name, const std::string& text) {
  if (text.empty()) return;
  std::printf("%-18s %s\n", printable(name, LineBreaks::escape).c_str(), printable(text, LineBreaks::escape).c_str());
}

// Equations and tables of parameters are a line each, below each other; other texts are put into one.
void named_text(const std::string& name, const std::string& text) {
  if (name != "equations" && name != kParametersKey && name != kParametersNotesKey)
    return line("  " + name, one_line(text));
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find('\n', begin);
    line(begin == 0 ? "  " + name : "", text.substr(begin, end - begin));
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string attribute_text(const hdf5::AttributeValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return count_text(*integer);
  return hdf5::to_text(value);
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  std::size_t not_finite = 0;

  void cover(double value) {
    if (!std::isfinite(value)) {
      ++not_finite;
      return;
    }
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// What all trajectories together say, read in pieces.
struct ResultTotals {
  std::array<std::size_t, ode::kStatusCount> statuses{};
  std::vector<Range> ranges;  // [component], of finished trajectories
  std::optional<std::size_t> first_finished;

  std::size_t cancelled() const { return statuses[static_cast<std::size_t>(ode::Status::cancelled)]; }
};

ResultTotals totals(const ode::ResultFile& file) {
  constexpr std::size_t kPieceNumbers = std::size_t{1} << 20;
  ResultTotals totals;
  totals.ranges.resize(file.components());
  const std::size_t row = std::max<std::size_t>(file.save_points() * file.components(), 1);
  const std::size_t rows = std::clamp<std::size_t>(kPieceNumbers / row, 1, kPieceNumbers);
  for (std::size_t first = 0; first < file.trajectories(); first += rows) {
    const std::size_t piece = std::min(rows, file.trajectories() - first);
    const std::vector<ode::TrajectoryRecord> records = file.records(first, piece);
    for (std::size_t i = 0; i < piece; ++i) {
      ++totals.statuses[static_cast<std::size_t>(records[i].status)];
      if (!totals.first_finished && is_finished(records[i])) totals.first_finished = first + i;
    }
    const std::vector<double> states = file.states<double>(first, piece);
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (!is_finished(records[i / row])) continue;
      totals.ranges[i % file.components()].cover(states[i]);
    }
  }
  return totals;
}

// "1700000000 to 1700864000": a hundredth of what lies between them shows.
std::string between_text(double low, double high) {
  const double hundredth = (high - low) / 100;
  return resolved_text(low, hundredth) + " to " + resolved_text(high, hundredth);
}

std::string range_text(const Range& range, const std::string& unit) {
  return (range.low <= range.high ? between_text(range.low, range.high) + unit : "no finite number") +
         (range.not_finite > 0 ? ", " + count_text(range.not_finite) + " not finite" : "");
}

// What trajectories were given: a number where it is the same for all, else from the least to the largest.
std::string given_text(const Range& range, const std::string& unit) {
  return range.low == range.high && range.not_finite == 0 ? rounded_text(range.low, 6) + unit : range_text(range, unit);
}

// Of many components the first are shown, and what the others cover together. `text` is of a range and a unit.
void print_ranges(const ode::ResultFile& file, const std::vector<Range>& ranges,
                  std::string (*text)(const Range&, const std::string&)) {
  constexpr std::size_t kMost = 32;
  const std::size_t shown = ranges.size() <= kMost ? ranges.size() : kMost - 1;
  const std::vector<std::string> units = component_units(file);
  for (std::size_t c = 0; c < shown; ++c) {
    line("  " + file.component_names()[c], text(ranges[c], units.empty() || units[c].empty() ? "" : " " + units[c]));
  }
  if (shown == ranges.size()) return;
  Range others;
  for (std::size_t c = shown; c < ranges.size(); ++c) {
    others.low = std::min(others.low, ranges[c].low);
    others.high = std::max(others.high, ranges[c].high);
    others.not_finite += ranges[c].not_finite;
  }
  line("  " + count_text(ranges.size() - shown) + " others", text(others, ""));
}

void print_initial_states(const ode::ResultFile& file) {
  if (file.trajectories() == 0) return;
  constexpr std::size_t kPieceRows = std::size_t{1} << 14;
  std::vector<Range> ranges(file.components());
  for (std::size_t first = 0; first < file.trajectories(); first += kPieceRows) {
    const std::vector<double> states = file.initial_states(first, std::min(kPieceRows, file.trajectories() - first));
    for (std::size_t i = 0; i < states.size(); ++i) ranges[i % ranges.size()].cover(states[i]);
  }
  line("initial state", "of all trajectories");
  print_ranges(file, ranges, given_text);
}

void print_parameters(const ode::ResultFile& file) {
  const std::vector<std::string>& names = file.parameter_names();
  if (names.empty()) return;
  if (!file.parameters_per_trajectory()) {
    const std::vector<double> values = file.parameters(0);
    std::string text;
    for (std::size_t i = 0; i < values.size(); ++i) {
      text += (i == 0 ? "" : ", ") + names[i] + " = " + rounded_text(values[i], 6);
    }
    line("parameters", text);
    return;
  }
  std::vector<Range> ranges(names.size());
  for (std::size_t trajectory = 0; trajectory < file.trajectories(); ++trajectory) {
    const std::vector<double> values = file.parameters(trajectory);
    for (std::size_t i = 0; i < values.size(); ++i) ranges[i].cover(values[i]);
  }
  line("parameters", "for each trajectory");
  for (std::size_t i = 0; i < names.size(); ++i) line("  " + names[i], given_text(ranges[i], ""));
}

// How often each reset struck: "434,509, 0 to 62 in a trajectory", and a line for each of several.
void print_events(const ode::ResultFile& file) {
  if (!file.keeps_events()) return;
  constexpr std::size_t kPieceRows = std::size_t{1} << 14;
  std::size_t all = 0, fewest = std::numeric_limits<std::size_t>::max(), most = 0;
  std::map<std::int32_t, std::size_t> of_reset;
  for (std::size_t first = 0; first < file.trajectories(); first += kPieceRows) {
    const std::size_t piece = std::min(kPieceRows, file.trajectories() - first);
    const std::vector<ode::TrajectoryRecord> records = file.records(first, piece);
    const ode::EventLog log = file.events(first, piece);
    for (std::size_t i = 0; i < log.trajectories(); ++i) {
      if (!is_finished(records[i])) continue;
      fewest = std::min(fewest, log.count(i));
      most = std::max(most, log.count(i));
    }
    for (const std::int32_t reset : log.resets) ++of_reset[reset];
    all += log.times.size();
  }
  const std::string each = fewest >= most ? count_text(most) : count_text(fewest) + " to " + count_text(most);
  line("events", count_text(all) + (all == 0 ? "" : ", " + each + " in a trajectory"));
  if (of_reset.size() < 2) return;
  const std::vector<std::string> texts = file.reset_texts();
  for (const auto& [reset, count] : of_reset) {
    const auto i = static_cast<std::size_t>(reset);
    line("  reset " + std::to_string(reset), count_text(count) + (i < texts.size() ? ": " + texts[i] : ""));
  }
}

void print_result(const std::filesystem::path& path) {
  const ode::ResultFile file(path);
  const ResultTotals all = totals(file);
  std::printf("%s: results of an ensemble, %s\n\n", path.string().c_str(),
              size_text(std::filesystem::file_size(path)).c_str());
  line("title", file.text_attribute("title"));
  if (const auto& parts = file.index_files(); !parts.empty()) {
    line("index of", count_text(parts.size()) +
                         " files: " + (parts.size() <= 4 ? joined(parts) : parts.front() + " .. " + parts.back()));
  }
  if (const auto total = file.attribute(ode::result_names::kEnsembleTrajectories)) {
    line("part", "trajectories " + std::to_string(file.first_trajectory()) + " to " +
                     std::to_string(file.first_trajectory() + file.trajectories() - 1) + " of " +
                     attribute_text(*total));
  }
  line("state", counted_text(file.trajectories(), "trajectory") + " x " + counted_text(file.save_points(), "time") +
                    " x " + counted_text(file.components(), "component") + ", " +
                    (file.precision() == Precision::f32 ? "float32" : "float64"));
  line("grid", grid_text(stored_grid(file)));
  std::string statuses;
  for (std::size_t i = 0; i < all.statuses.size(); ++i) {
    if (all.statuses[i] == 0) continue;
    statuses += (statuses.empty() ? "" : ", ") + count_text(all.statuses[i]) + " " +
                std::string(to_string(static_cast<ode::Status>(i)));
  }
  line("trajectories", statuses);
  print_initial_states(file);
  print_parameters(file);
  if (file.trajectories() > 0 && file.save_points() > 0) {
    const std::vector<double> times = file.times(all.first_finished.value_or(0));
    line("time", between_text(times.front(), times.back()) + (time_unit(file).empty() ? "" : " " + time_unit(file)) +
                     (!file.times_per_trajectory() ? ""
                      : all.cancelled() > 0        ? " in the first trajectory that is finished; others have their own"
                                                   : " in the first trajectory; others have their own"));
  }
  if (all.cancelled() > 0) {
    line("", "those cancelled are not finished: their states are left out of what follows");
  }
  print_ranges(file, all.ranges, range_text);
  print_events(file);
  std::printf("\nprovenance\n");
  static constexpr std::array<std::string_view, 10> kShown{"title",
                                                           kGridAttribute,
                                                           kGridPointsAttribute,
                                                           "Conventions",
                                                           "lockstep_format",
                                                           "source",
                                                           ode::result_names::kIndexFiles,
                                                           ode::result_names::kIndexFirst,
                                                           ode::result_names::kFirstTrajectory,
                                                           ode::result_names::kEnsembleTrajectories};
  for (const std::string& name : file.attribute_names()) {
    if (std::ranges::find(kShown, name) != kShown.end()) continue;
    const auto value = file.attribute(name);
    if (value) named_text(name, attribute_text(*value));
  }
}

void print_port(const char* kind, const nn::Port& port, const std::string& range = ", trained on ") {
  line(kind, port.name + ", " + std::to_string(port.features.size()) +
                 (port.features.size() == 1 ? " feature" : " features"));
  for (std::size_t i = 0; i < port.features.size(); ++i) {
    const nn::Feature& feature = port.features[i];
    const bool ranged = nn::is_bounded(feature);
    if (feature.name.empty() && feature.unit.empty() && !ranged) continue;
    line("  " + (feature.name.empty() ? std::to_string(i) : feature.name),
         (feature.unit.empty() ? std::string("-") : feature.unit) +
             (ranged ? range + between_text(feature.minimum, feature.maximum) : ""));
  }
}

// What training stored of how good the model is.
std::optional<FitReport> report_of(const nn::Model& model) {
  const auto errors = model.metadata.find(kErrorsKey), worst = model.metadata.find(kWorstKey);
  if (errors == model.metadata.end()) return std::nullopt;
  const auto outliers = model.metadata.find(kOutliersKey);
  return parse_fit_report(errors->second, worst == model.metadata.end() ? "" : worst->second,
                          outliers == model.metadata.end() ? "" : outliers->second);
}

void print_model(const InfoOptions& options) {
  const nn::Model model = load_model(options.file, options.activations);
  std::printf("%s: a model, %s\n\n", options.file.string().c_str(),
              size_text(std::filesystem::file_size(options.file)).c_str());
  line("name", model.name);
  line("parameters", count_text(model.parameter_count()) +
                         (model.parameter_count() == 0 ? "" : ", stored as " + to_string(model.weight_type)));
  if (own_precision(options.file) == Precision::f64) line("precision", "f64, as [method] says");
  for (const nn::Port& port : model.inputs) print_port("input", port);
  for (const nn::Port& port : model.outputs) print_port("output", port);
  for (const std::string& output : model.provenance.left_out) line("left out", output);
  for (const nn::GuardedCall& call : model.calls) {
    for (nn::Port port : call.inputs) {
      port.name = call.name + ", input " + port.name;
      print_port("call", port, nn::called_table(model, call) == nullptr ? ", trained on " : ", known from ");
    }
  }
  std::printf("\nlayers\n");
  const auto lines = node_lines(model);
  int wide = 16;
  for (const auto& [name, text] : lines)
    wide = std::max(wide, static_cast<int>(std::min<std::size_t>(name.size(), 48)));
  for (const auto& [name, text] : lines) {
    std::printf("  %-*s %s\n", wide, printable(name, LineBreaks::escape).c_str(),
                printable(text, LineBreaks::escape).c_str());
  }
  const std::optional<FitReport> report = report_of(model);
  if (report) {
    std::printf("\nfit to the data\n");
    for (const std::vector<std::string>& texts : {table_lines(*report), fit_notes(*report)}) {
      for (const std::string& text : texts) std::printf("  %s\n", printable(text, LineBreaks::escape).c_str());
    }
  }
  std::printf("\nprovenance\n");
  line("  digest", model.digest());
  line("  format", model.provenance.format);
  line("  source", model.provenance.source);
  line("  source digest", model.provenance.digest);
  line("  producer", model.provenance.producer);
  line("  licence", model.provenance.licence);
  line("  attribution", model.provenance.attribution);
  for (const auto& [name, value] : model.metadata) {
    if (!report || (name != kErrorsKey && name != kWorstKey && name != kOutliersKey)) named_text(name, value);
  }
}

void print_data(const std::filesystem::path& path) {
  const hdf5::File file = hdf5::File::open(path);
  std::printf("%s: an HDF5 file, neither a model nor results of an ensemble, %s\n\n", path.string().c_str(),
              size_text(std::filesystem::file_size(path)).c_str());
  for (const std::string& text : data_file_lines(file))
    std::printf("%s\n", printable(text, LineBreaks::escape).c_str());
}

void print_systems() {
  for (const std::string_view name : ode::system_names()) {
    const ode::SystemInfo& system = ode::system_info(name);
    line(system.name, system.title + " (" + system.source + ")");
    line("", std::to_string(system.components.size()) + " components: " +
                 (system.components.size() <= 8 ? joined(system.components)
                                                : system.components.front() + " .. " + system.components.back()));
    std::string parameters;
    for (std::size_t i = 0; i < system.parameters.size(); ++i) {
      parameters += (i == 0 ? "parameters: " : ", ") + system.parameters[i] + " = " +
                    rounded_text(system.default_parameters[i], 6);
    }
    line("", parameters);
  }
}

// What none of the readers knows. Not a model's reader is to speak of it, which looks for models alone.
void require_known(const std::filesystem::path& path) {
  const auto refuse = [&](const char* found, const char* remedy) {
    throw Error(ErrorKind::file, {path.string(), found, "a result file, a model file or data in HDF5", remedy});
  };
  if (!std::filesystem::exists(path)) refuse("no such file", "check the path");
  const bool is_model = std::filesystem::exists(path / "saved_model.pb");  // TensorFlow's, as its reader says
  if (std::filesystem::is_directory(path) && !is_model) refuse("a folder", "name the file inside it");
  const std::string extension = path.extension().string();
  if (nn::detect_format(path) != nn::ModelFormat::unknown || extension == ".toml") return;
  if (std::filesystem::file_size(path) == 0) refuse("an empty file", "check the path, and what was to write it");
  if (extension == ".csv" || extension == ".tsv" || extension == ".txt") {
    refuse("a table or other text", "read it with any editor; a .csv is data for lockstep train and evaluate");
  }
  refuse("a file of another kind", "check the path; lockstep import --help lists the formats of models");
}

int info(const InfoOptions& options) {
  if (options.systems) {
    print_systems();
    return kSuccess;
  }
  if (options.file.empty()) {
    throw Error(ErrorKind::invalid_argument, {"FILE", "nothing", "a result file or a model file", {}});
  }
  require_known(options.file);
  if (ode::ResultFile::recognises(options.file)) {
    print_result(options.file);
  } else if (hdf5::File::recognises(options.file) && nn::detect_format(options.file) == nn::ModelFormat::other_hdf5) {
    print_data(options.file);
  } else {
    print_model(options);
  }
  return kSuccess;
}

}  // namespace

void add_info(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<InfoOptions>();
  CLI::App* command = app.add_subcommand("info", "say what a result, model or data file holds");
  command->add_option("FILE", options->file, "a result file, a model file, or data in HDF5");
  command->add_flag("--systems", options->systems, "list the built-in systems and their parameters");
  command->add_option("--activations", options->activations,
                      "a model's, where its file does not say: tanh,identity, or tanh for the hidden layers");
  command->footer(std::string(kInfoExamples) + "\n");
  command->callback([&chosen, options] { chosen.run = [options] { return info(*options); }; });
}

}  // namespace lockstep::cli
