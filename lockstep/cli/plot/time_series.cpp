#include <algorithm>

#include "lockstep/cli/plot/canvas.h"
#include "lockstep/cli/plot/figures.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kTrajectories = 6;   // as many as a reader follows
constexpr std::size_t kMostPoints = 4000;  // a curve; more than a picture's pixels

}  // namespace

std::string time_series_obstacle(const ode::ResultFile& file) {
  if (file.trajectories() == 0) return "no trajectories";
  if (file.save_points() < 2) return "a single save point";
  return {};
}

Figure time_series(const ode::ResultFile& file, const FigureOptions& options) {
  const std::vector<std::size_t> components = shown_components(file, options.components);
  const std::vector<std::size_t> trajectories =
      evenly_chosen(file.trajectories(), options.trajectories.value_or(kTrajectories));
  const std::size_t stride = (file.save_points() + kMostPoints - 1) / kMostPoints;
  // Columns: time, then the shown components.
  std::string script;
  std::vector<std::size_t> stopped;  // among `trajectories`
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    const Curve curve = curve_of(file, trajectories[i]);
    const auto append_row = [&](std::string& rows, std::size_t time) {
      append_number(rows, curve.times[time]);
      for (const std::size_t component : components)
        append_number(rows, curve.states[time * file.components() + component]);
      rows += '\n';
    };
    std::string rows, end;
    for (const std::size_t time : strided(curve.times.size(), stride)) append_row(rows, time);
    script += data_block("d" + std::to_string(i), rows);
    if (!curve.stopped) continue;
    append_row(end, curve.times.size() - 1);
    script += data_block("e" + std::to_string(i), end);
    stopped.push_back(i);
  }

  Figure figure;
  figure.size = stacked_size(components.size());
  const bool key = trajectories.size() <= 8;
  script +=
      heading(file, "time series" + share_of_components(file, options.components), trajectories.size(), figure.size);
  script += "set multiplot\n";
  for (std::size_t panel = 0; panel < components.size(); ++panel) {
    script += stacked_panel(file, panel, components.size(), component_label(file, components[panel]), figure.size,
                            key ? 290 : 60);
    script += key && panel == 0 ? "set key outside right top Left reverse title 'trajectory' left\n" : "unset key\n";
    script += "plot ";
    for (std::size_t i = 0; i < trajectories.size(); ++i) {
      script += (i == 0 ? "" : ", ") + std::string("$d") + std::to_string(i) + " using 1:" + std::to_string(panel + 2) +
                " with lines linewidth " + (key ? "1.1" : "0.6") + " linecolor rgb '" + kColours[i % kColours.size()] +
                "' title '" + std::to_string(trajectories[i]) + "'";
    }
    for (const std::size_t i : stopped) {
      script += ", $e" + std::to_string(i) + " using 1:" + std::to_string(panel + 2) +
                " with points pointtype 2 pointsize 1 linecolor rgb '" + kColours[i % kColours.size()] + "' notitle";
    }
    if (!stopped.empty()) script += ", NaN with points pointtype 2 pointsize 1 linecolor rgb '#333333' title 'stopped'";
    script += "\n";
  }
  script += "unset multiplot\n";
  figure.script = std::move(script);
  return figure;
}

}  // namespace lockstep::cli
