// `lockstep plot`: pictures of a result file.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/flag_checks.h"
#include "lockstep/cli/plot/against.h"
#include "lockstep/cli/plot/figures.h"
#include "lockstep/cli/plot/finished.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"

namespace lockstep::cli {
namespace {

struct PlotOptions {
  std::filesystem::path file;
  std::filesystem::path output;
  std::filesystem::path against;
  std::string kind = "all";
  std::string format;
  std::vector<std::string> components;
  std::vector<std::string> over;
  std::string of = "end";
  std::vector<std::string> logarithmic;
  std::vector<std::string> limits;
  std::optional<std::size_t> trajectories;
};

constexpr const char* kPlotExamples = R"(
Examples:
  lockstep plot results.h5                                  results_series.png, _phase.png, _spread.png
  lockstep plot results.h5 --kind phase --components x,z --output wings.svg
  lockstep plot results.h5 --kind series --trajectories 3
  lockstep plot results.h5 --output pictures                pictures/results_series.png and the others, in a folder
  lockstep plot results.h5 --kind series --log x,y --limits time=0:5,x=1e-3:10
  lockstep plot study.h5 --kind sweep --over alpha,beta --of maximum    a map of colours over two parameters
  lockstep plot net.h5 --against truth.h5                   net_overlay.png, net_distance.png

series  each component over time, for a few trajectories
phase   one component against another, coloured by time; of long curves fewer are drawn
spread  median, 50 % and 90 % of the ensemble over time
sweep   end states (or --of maximum, minimum of saved times and the end, mean over saved times) over a parameter or an
        initial value, or as colours over two; those that differ between trajectories, unless --over names others
raster  events over time, a row for each trajectory, and their rate; where the file keeps events
--log and --limits go by what an axis shows: time, components, parameters.
Of many components series, spread, sweep and overlay show the first six, unless --components names others.
Of many save points each of a thousand bins keeps its extremes: peaks stay, fast waves fill a band.
With --against: overlay, both files' components over time, and distance between them, median and 90 %; components go
by name.
Draws with gnuplot, which must be installed (apt install gnuplot-nox).)";

struct Kind {
  std::string_view name;
  std::string (*obstacle)(const ode::ResultFile&, const FigureOptions&);
  Figure (*figure)(const ode::ResultFile&, const FigureOptions&);
};
constexpr const char* kAsInPython = "time_series";  // what lockstep.plot calls series
template <std::string (*obstacle)(const ode::ResultFile&)>
std::string whatever_is_asked(const ode::ResultFile& file, const FigureOptions&) {
  return obstacle(file);
}
constexpr std::array<Kind, 5> kKinds{Kind{"series", whatever_is_asked<time_series_obstacle>, time_series},
                                     Kind{"phase", whatever_is_asked<phase_portrait_obstacle>, phase_portrait},
                                     Kind{"spread", whatever_is_asked<ensemble_spread_obstacle>, ensemble_spread},
                                     Kind{"sweep", sweep_obstacle, sweep},
                                     Kind{"raster", whatever_is_asked<raster_obstacle>, raster}};

std::vector<std::size_t> component_indices(const ode::ResultFile& file, const std::vector<std::string>& asked) {
  const std::vector<std::string_view> known(file.component_names().begin(), file.component_names().end());
  std::vector<std::size_t> indices;
  for (const std::string& name : asked) {
    const auto found = std::ranges::find(known, name);
    if (found == known.end()) {
      throw Error(ErrorKind::invalid_argument,
                  {"--components", "\"" + name + "\"", "one of " + list_text(known), did_you_mean(name, known)});
    }
    indices.push_back(static_cast<std::size_t>(found - known.begin()));
  }
  return indices;
}

// What --log and --limits may name.
void require_axis(const ode::ResultFile& file, const std::string& flag, const std::string& name) {
  std::vector<std::string_view> known{"time"};
  for (const auto* names : {&file.component_names(), &file.parameter_names()}) {
    known.insert(known.end(), names->begin(), names->end());
  }
  if (std::ranges::find(known, name) != known.end()) return;
  throw Error(ErrorKind::invalid_argument,
              {flag, "\"" + name + "\"", "one of " + list_text(known), did_you_mean(name, known)});
}

// "x=0:10"
AxisLimits parse_limits(const std::string& text) {
  const std::size_t is = text.rfind('='), colon = text.find(':', is == std::string::npos ? 0 : is);
  AxisLimits limits;
  const auto number = [&](std::size_t begin, std::size_t end, double& value) {
    const auto read = std::from_chars(text.data() + begin, text.data() + end, value);
    return read.ec == std::errc() && read.ptr == text.data() + end && std::isfinite(value);
  };
  if (is == std::string::npos || colon == std::string::npos || !number(is + 1, colon, limits.low) ||
      !number(colon + 1, text.size(), limits.high) || !(limits.low < limits.high)) {
    throw Error(ErrorKind::invalid_argument, {"--limits", "\"" + text + "\"", "NAME=LOW:HIGH, as in x=0:10", {}});
  }
  limits.name = text.substr(0, is);
  return limits;
}

// Axes as --log and --limits want them.
void choose_axes(const PlotOptions& options, const ode::ResultFile& file, FigureOptions& figure) {
  figure.logarithmic = options.logarithmic;
  for (const std::string& name : figure.logarithmic) require_axis(file, "--log", name);
  for (const std::string& text : options.limits) {
    const AxisLimits limits = parse_limits(text);
    require_axis(file, "--limits", limits.name);
    if (limits.low <= 0 && is_logarithmic(figure, limits.name)) {
      throw Error(ErrorKind::invalid_argument,
                  {"--limits", "\"" + text + "\" of a logarithmic axis", "limits above 0", "or leave it out of --log"});
    }
    figure.limits.push_back(limits);
  }
}

bool in_folder(const PlotOptions& options) {
  std::error_code ignored;
  return std::filesystem::is_directory(options.output, ignored);
}

PictureFormat choose_format(const PlotOptions& options) {
  const std::string extension = in_folder(options) ? "" : options.output.extension().string();
  const std::string wanted =
      options.format.empty() ? (extension.empty() ? "png" : extension.substr(1)) : options.format;
  if (wanted != "png" && wanted != "svg") {
    throw Error(ErrorKind::invalid_argument, {"--output", "\"" + wanted + "\"", "a name ending in .png or .svg", {}});
  }
  return wanted == "svg" ? PictureFormat::svg : PictureFormat::png;
}

// How the pictures' names begin: beside the result file, in the folder or by the name that was given.
std::filesystem::path stem_of(const PlotOptions& options) {
  const std::filesystem::path own = options.file.filename().replace_extension();
  if (in_folder(options)) return options.output / own;
  return std::filesystem::path(options.output.empty() ? options.file : options.output).replace_extension();
}

void note(const std::string& text) {
  if (!text.empty()) std::printf("note: %s\n", printable(text, LineBreaks::escape).c_str());
}

// The pictures of two files.
int plot_against(const PlotOptions& options) {
  const ode::ResultFile file(options.file), truth(options.against);
  const SameComponents same = require_comparable(file, truth);
  FigureOptions figure_options;
  figure_options.components = component_indices(file, options.components);
  for (const std::size_t c : figure_options.components) {
    if (same.in_truth[c]) continue;
    throw Error(ErrorKind::invalid_argument, {"--components",
                                              '"' + file.component_names()[c] + '"',
                                              "a component that " + options.against.string() + " has too",
                                              {}});
  }
  note(same.note);
  note(left_out_text(file));
  note(left_out_text(truth));
  figure_options.trajectories = options.trajectories;
  const PictureFormat format = choose_format(options);
  const std::filesystem::path stem = stem_of(options);
  for (const auto& [name, make] : {std::pair{"overlay", &overlay}, std::pair{"distance", &distance}}) {
    const std::filesystem::path target = stem.string() + "_" + name + (format == PictureFormat::svg ? ".svg" : ".png");
    const Figure figure = make(file, truth, same, figure_options);
    if (figure.script.empty()) {
      std::printf("no %s: no numbers that are finite in both and differ\n", name);
      continue;
    }
    draw(figure.script, target, format, figure.size);
    std::printf("%s\n", target.string().c_str());
  }
  return kSuccess;
}

int plot(const PlotOptions& options) {
  if (!options.against.empty()) return plot_against(options);
  const ode::ResultFile file(options.file);
  const PictureFormat format = choose_format(options);
  FigureOptions figure_options{component_indices(file, options.components), options.trajectories};
  choose_axes(options, file, figure_options);
  figure_options.over = options.over;
  figure_options.reduction = options.of == "maximum"   ? Reduction::maximum
                             : options.of == "minimum" ? Reduction::minimum
                             : options.of == "mean"    ? Reduction::mean
                                                       : Reduction::end;
  const bool all = options.kind == "all";
  if (options.kind != "raster") require_finite_states(file, figure_options.components);
  note(left_out_text(file));
  const std::filesystem::path stem = stem_of(options);
  const char* extension = format == PictureFormat::svg ? ".svg" : ".png";
  std::size_t drawn = 0;
  for (const Kind& kind : kKinds) {
    const bool is_asked = kind.name == options.kind || (kind.name == "series" && options.kind == kAsInPython);
    if (!all && !is_asked) continue;
    if (all && kind.name == "raster" && !file.keeps_events()) continue;
    const std::string obstacle = kind.obstacle(file, figure_options);
    if (!obstacle.empty()) {
      if (all && kind.name == "sweep") continue;  // most files are none
      if (!all) {
        throw Error(ErrorKind::invalid_argument,
                    {options.file.string(), obstacle, "results that " + std::string(kind.name) + " can show",
                     "choose another --kind"});
      }
      std::printf("no %s: %s\n", std::string(kind.name).c_str(), obstacle.c_str());
      continue;
    }
    std::filesystem::path target = stem;
    if (all || options.output.empty() || in_folder(options)) target += "_" + std::string(kind.name);
    target += extension;
    const Figure figure = kind.figure(file, figure_options);
    if (figure.script.empty()) {
      std::printf("no %s: no trajectory that ended well\n", std::string(kind.name).c_str());
      continue;
    }
    draw(figure.script, target, format, figure.size);
    std::printf("%s\n", target.string().c_str());
    std::fflush(stdout);
    ++drawn;
  }
  if (drawn == 0) {
    throw Error(ErrorKind::invalid_argument,
                {options.file.string(), "nothing to draw", "at least two save points", {}});
  }
  return kSuccess;
}

}  // namespace

void add_plot(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<PlotOptions>();
  CLI::App* command = app.add_subcommand("plot", "draw pictures of a result file");
  command->add_option("FILE", options->file, "a result file")->required();
  command
      ->add_option("-o,--output", options->output, "picture to write; of several, how their names begin; or a folder")
      ->check(file_name());
  command->add_option("--kind", options->kind, "series (or time_series), phase, spread, sweep, raster or all")
      ->check(one_of({"series", kAsInPython, "phase", "spread", "sweep", "raster", "all"}))
      ->capture_default_str();
  command->add_option("--against", options->against, "another result file of the same problem to compare with");
  command->add_option("--components", options->components, "components to show, by name: x,z")
      ->delimiter(',')
      ->allow_extra_args(false);
  const CLI::Option* over =
      command->add_option("--over", options->over, "of a sweep: a parameter or component, or two: rho,x")
          ->delimiter(',')
          ->allow_extra_args(false);
  const CLI::Option* of =
      command->add_option("--of", options->of, "of a sweep: end, maximum, minimum or mean over time")
          ->check(one_of({"end", "maximum", "minimum", "mean"}))
          ->capture_default_str();
  const CLI::Option* logarithmic =
      command->add_option("--log", options->logarithmic, "logarithmic axes, by what they show: time,x")
          ->delimiter(',')
          ->allow_extra_args(false);
  const CLI::Option* limits =
      command->add_option("--limits", options->limits, "from where to where axes go: x=0:10,time=5:20")
          ->delimiter(',')
          ->allow_extra_args(false);
  command->add_option("--trajectories", options->trajectories, "how many to show, evenly chosen")
      ->transform(whole_number(1));
  command->add_option("--format", options->format, "png or svg, where --output does not say")
      ->check(one_of({"png", "svg"}));
  command->footer(std::string(kPlotExamples) + "\n");
  command->callback([&chosen, options, over, of, logarithmic, limits] {
    for (const CLI::Option* flag : {logarithmic, limits}) {
      if (flag->count() == 0 || (options->against.empty() && options->kind != "raster")) continue;
      throw Error(ErrorKind::invalid_argument,
                  {flag->get_name(), options->against.empty() ? "a raster's" : "a flag beside --against",
                   "series, phase, spread or sweep of one file", "leave one of them out"});
    }
    // Who says what a sweep shows wants that picture alone.
    const CLI::Option* asked = over->count() > 0 ? over : of->count() > 0 ? of : nullptr;
    if (asked != nullptr && options->kind == "all") options->kind = "sweep";
    if (asked != nullptr && (options->kind != "sweep" || !options->against.empty())) {
      throw Error(
          ErrorKind::invalid_argument,
          {asked->get_name(),
           "a sweep's flag beside " + (options->against.empty() ? "--kind " + options->kind : std::string("--against")),
           "--kind sweep", "leave one of them out"});
    }
    if (options->over.size() > 2) {
      throw Error(ErrorKind::invalid_argument,
                  {"--over", std::to_string(options->over.size()) + " names", "one or two", "draw several pictures"});
    }
    chosen.run = [options] { return plot(*options); };
  });
}

}  // namespace lockstep::cli
