#include <algorithm>

#include "lockstep/cli/plot/canvas.h"
#include "lockstep/cli/plot/figures.h"
#include "lockstep/cli/plot/finished.h"
#include "lockstep/cli/plot/thinning.h"
#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kSeries = 6;  // as many as a reader follows

}  // namespace

std::string time_series_obstacle(const ode::ResultFile& file) {
  if (file.trajectories() == 0) return "no trajectories";
  if (file.save_points() < 2) return "a single save point";
  if (FinishedTrajectories(file).empty()) return "no finished trajectory";
  return {};
}

Figure time_series(const ode::ResultFile& file, const FigureOptions& options) {
  const std::vector<std::size_t> components = shown_components(file, options.components);
  const std::vector<std::size_t> trajectories =
      evenly_chosen(FinishedTrajectories(file), options.trajectories.value_or(kSeries));
  std::vector<Curve> curves;
  for (const std::size_t trajectory : trajectories) curves.push_back(curve_of(file, trajectory));
  Extent times;
  std::vector<Extent> values(components.size());
  std::size_t most = 0;
  for (const Curve& curve : curves) {
    most = std::max(most, curve.times.size());
    for (std::size_t time = 0; time < curve.times.size(); ++time) {
      times.cover(curve.times[time]);
      for (std::size_t c = 0; c < components.size(); ++c) {
        values[c].cover(curve.states[time * file.components() + components[c]]);
      }
    }
  }
  // Where all of them stop at their start the axis is that of the save points.
  const bool at_once = !(times.low < times.high);
  for (std::size_t i = 0; at_once && i < trajectories.size(); ++i) {
    for (const double time : file.times(trajectories[i])) times.cover(time);
  }
  const Axis time_axis = axis_of(options, "time", times);
  std::vector<Axis> axes;
  for (std::size_t c = 0; c < components.size(); ++c) {
    axes.push_back(axis_of(options, file.component_names()[components[c]], values[c]));
  }
  // A block for each panel: time and the component. Ends: time, then the shown components.
  std::string script;
  std::vector<std::size_t> stopped;  // among `trajectories`
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    const Curve& curve = curves[i];
    for (std::size_t c = 0; c < components.size(); ++c) {
      script += data_block("d" + std::to_string(i) + "_" + std::to_string(c),
                           curve_rows(curve, values_of(curve, components[c], file.components()), time_axis, axes[c]));
    }
    if (!curve.stopped) continue;
    std::string end;
    time_axis.append(end, curve.times.back());
    for (std::size_t c = 0; c < components.size(); ++c)
      axes[c].append(end, curve.states[(curve.times.size() - 1) * file.components() + components[c]]);
    script += data_block("e" + std::to_string(i), end + '\n');
    stopped.push_back(i);
  }

  Figure figure;
  figure.size = stacked_size(components.size());
  const bool key = trajectories.size() <= 8;
  script += heading(file, "time series" + share_of_components(file, options.components), trajectories.size(),
                    figure.size, times_text(file.save_points(), file.save_points(), bins_of(most)));
  const Stack stack{components.size(), figure.size, left_pixels(axes), key ? 290 : 60, time_label(file, time_axis)};
  script += axis_script(options, "x", "time", time_axis);
  if (at_once && times.low < times.high && limits_of(options, "time") == nullptr) {
    script += "set xrange [" + rounded_text(time_axis.shown(times.low), 9) + ":" +
              rounded_text(time_axis.shown(times.high), 9) + "]\n";
  }
  script += "set multiplot\n";
  for (std::size_t panel = 0; panel < components.size(); ++panel) {
    script += stacked_panel(stack, panel, component_label(file, components[panel], axes[panel], label_pixels(stack)));
    script += axis_script(options, "y", file.component_names()[components[panel]], axes[panel]);
    script += key && panel == 0 ? "set key outside right top Left reverse title 'trajectory' left\n" : "unset key\n";
    script += "plot ";
    for (std::size_t i = 0; i < trajectories.size(); ++i) {
      script += (i == 0 ? "" : ", ") + std::string("$d") + std::to_string(i) + "_" + std::to_string(panel) +
                " using 1:2 with lines linewidth " + (key ? "1.1" : "0.6") + " linecolor rgb '" +
                kColours[i % kColours.size()] + "' title '" + std::to_string(trajectories[i]) + "'";
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
