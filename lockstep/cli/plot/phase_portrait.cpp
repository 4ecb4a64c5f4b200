#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lockstep/cli/plot/canvas.h"
#include "lockstep/cli/plot/figures.h"
#include "lockstep/cli/plot/finished.h"
#include "lockstep/cli/plot/thinning.h"
#include "lockstep/core/text.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kPaths = 60;
// Of long curves fewer are drawn, and thinner: all together are to be as long as this many widths of the picture.
constexpr double kMostLength = 80;
constexpr std::size_t kFewest = 3;
constexpr std::size_t kDots = 20000;
constexpr double kFullDots = 500;  // so many are drawn large and opaque; more, in the same ink, smaller and faint
constexpr std::size_t kMostPathPoints = 200000;  // of all curves together

// Viridis (van der Walt & Smith 2015), without its light end, which fades on white.
constexpr const char* kPalette =
    "set palette defined (0 '#440154', 1 '#414487', 2 '#2a788e', 3 '#22a884', 4 '#7ad151', 5 '#c8dc30')\n";

// How long each curve is in the picture, in its widths, where they fill it.
std::vector<double> lengths_of(const std::vector<Curve>& curves, const std::vector<std::size_t>& axes,
                               std::size_t components) {
  std::array<double, 2> low{}, high{};
  low.fill(std::numeric_limits<double>::infinity());
  high.fill(-std::numeric_limits<double>::infinity());
  const auto each_point = [&](const Curve& curve, const auto& see) {
    for (std::size_t time = 0; time < curve.times.size(); ++time) {
      const double x = curve.states[time * components + axes[0]], y = curve.states[time * components + axes[1]];
      if (std::isfinite(x) && std::isfinite(y)) see(x, y);
    }
  };
  for (const Curve& curve : curves) {
    each_point(curve, [&](double x, double y) {
      low = {std::min(low[0], x), std::min(low[1], y)};
      high = {std::max(high[0], x), std::max(high[1], y)};
    });
  }
  const double width = high[0] > low[0] ? high[0] - low[0] : 1, height = high[1] > low[1] ? high[1] - low[1] : 1;
  std::vector<double> lengths;
  for (const Curve& curve : curves) {
    double length = 0, last_x = std::numeric_limits<double>::quiet_NaN(), last_y = 0;
    each_point(curve, [&](double x, double y) {
      if (!std::isnan(last_x)) length += std::hypot((x - last_x) / width, (y - last_y) / height);
      last_x = x;
      last_y = y;
    });
    lengths.push_back(length);
  }
  return lengths;
}

}  // namespace

std::string phase_portrait_obstacle(const ode::ResultFile& file) {
  if (file.trajectories() == 0) return "no trajectories";
  if (file.components() < 2) return "a single component";
  if (file.save_points() < 1) return "no save points";
  if (FinishedTrajectories(file).empty()) return "no finished trajectory";
  return {};
}

Figure phase_portrait(const ode::ResultFile& file, const FigureOptions& options) {
  std::vector<std::size_t> axes = options.components;
  // Of three components first and last: the Lorenz attractor's wings.
  if (axes.size() < 2) axes = {0, file.components() == 3 ? std::size_t{2} : std::size_t{1}};
  const bool dots = file.save_points() == 1;
  const FinishedTrajectories finished(file);
  std::vector<std::size_t> trajectories = evenly_chosen(finished, options.trajectories.value_or(dots ? kDots : kPaths));
  std::vector<Curve> curves;  // of the trajectories, where all were looked at and are drawn
  double total = 0;
  if (!dots) {
    for (const std::size_t trajectory : trajectories) curves.push_back(curve_of(file, trajectory));
    for (const double length : lengths_of(curves, axes, file.components())) total += length;
    if (!options.trajectories && total > kMostLength) {
      const double share = kMostLength / total;
      const auto shown = static_cast<std::size_t>(share * static_cast<double>(trajectories.size()));
      total *= static_cast<double>(std::max(shown, kFewest)) / static_cast<double>(trajectories.size());
      trajectories = evenly_chosen(finished, std::max(shown, kFewest));
      curves.clear();
    }
  }
  const std::size_t points = std::max<std::size_t>(kMostPathPoints / trajectories.size(), 2);
  if (curves.empty()) {
    for (const std::size_t trajectory : trajectories) curves.push_back(curve_of(file, trajectory));
  }
  std::array<Extent, 3> extents;  // of both components and time
  std::size_t most = 0;
  for (const Curve& curve : curves) {
    most = std::max(most, curve.times.size());
    for (std::size_t time = 0; time < curve.times.size(); ++time) {
      for (std::size_t a = 0; a < 2; ++a) extents[a].cover(curve.states[time * file.components() + axes[a]]);
      extents[2].cover(curve.times[time]);
    }
  }
  const std::size_t bins = most > points ? points : 0;  // where a curve is smooth each keeps one point
  const std::string &x_name = file.component_names()[axes[0]], &y_name = file.component_names()[axes[1]];
  const Axis x_axis = axis_of(options, x_name, extents[0]), y_axis = axis_of(options, y_name, extents[1]),
             time_axis = axis_of(options, "time", extents[2]);
  std::string rows;
  std::string starts, stops;
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    const Curve& curve = curves[i];
    const auto append_point = [&](std::string& target, std::size_t time) {
      x_axis.append(target, curve.states[time * file.components() + axes[0]]);
      y_axis.append(target, curve.states[time * file.components() + axes[1]]);
      time_axis.append(target, curve.times[time]);
      target += '\n';
    };
    if (curve.stopped) append_point(stops, curve.times.size() - 1);
    if (dots && curve.stopped) continue;
    const std::vector<std::size_t> drawn =
        thinned({values_of(curve, axes[0], file.components()), values_of(curve, axes[1], file.components())}, bins);
    for (const std::size_t time : drawn) append_point(rows, time);
    if (dots) continue;
    rows += '\n';  // ends the curve
    append_point(starts, 0);
  }

  Figure figure;
  figure.size = {1600, 1300};
  std::string script = data_block("curves", rows) + data_block("starts", starts) + data_block("stops", stops);
  script += heading(file, dots ? "end states" : "phase portrait", trajectories.size(), figure.size,
                    times_text(file.save_points(), file.save_points(), bins));
  script += kPalette + axis_script(options, "x", x_name, x_axis) + axis_script(options, "y", y_name, y_axis) +
            axis_script(options, "cb", "time", time_axis);
  // Where labels are wide the panel is narrower.
  const double width = figure.size.width, left = std::max(0.105 * width, 96 + y_axis.tick_pixels());
  const double bar = std::min(0.885 * width, width - 29 - 90 - time_axis.tick_pixels());  // where the colours begin
  const double right = dots ? 0.96 * width : bar - 0.025 * width, bottom = 0.092, top = 0.885;
  script += "set lmargin at screen " + screen(left, figure.size.width) + "\nset rmargin at screen " +
            screen(right, figure.size.width) +
            "\nset tmargin at screen 0.885\nset bmargin at screen 0.092\n"
            "set xlabel " +
            gnuplot_text(component_label(file, axes[0], x_axis, right - left)) +
            " textcolor rgb '#333333'\n"
            "set ylabel " +
            gnuplot_text(component_label(file, axes[1], y_axis, (top - bottom) * figure.size.height)) +
            " textcolor rgb '#333333'\n"
            "set offsets graph 0.04, graph 0.04, graph 0.04, graph 0.04\n";
  if (dots) {
    std::string plots;
    const double size = std::sqrt(kFullDots / std::max(kFullDots, static_cast<double>(trajectories.size())));
    const std::string dot = fixed_text(std::max(0.35, 0.8 * size), 2), faint = size < 1 ? "66" : "00";
    const auto add = [&](const std::string& points, const char* block, const std::string& colour, const char* title) {
      if (points.empty()) return;
      plots += (plots.empty() ? "plot " : ", ") + std::string(block) + " using 1:2 with points pointtype 7 pointsize " +
               dot + " linecolor rgb '#" + faint + colour +
               "' notitle, NaN with points pointtype 7 pointsize 0.8 linecolor rgb '#" + colour + "' title '" + title +
               "'";
    };
    add(rows, "$curves", "0072b2", "at the save point");
    add(stops, "$stops", "d55e00", "stopped before it");
    script += stops.empty() ? "unset key\n" : "set key at screen 0.96, screen 0.905 right horizontal samplen 0.5\n";
    script += plots + "\n";
  } else {
    script += "set cblabel " + gnuplot_text(time_label(file, time_axis)) +
              " offset 1.5,0 textcolor rgb '#333333'\n"
              "set colorbox user origin screen " +
              screen(bar, figure.size.width) +
              ", screen 0.092 size screen 0.018, screen 0.793 noborder\n"
              "set cbtics scale 0.4 textcolor rgb '#333333'\n"
              "set key at screen " +
              screen(right, figure.size.width) +
              ", screen 0.905 right horizontal samplen 0.5\n"
              "plot $curves using 1:2:3 with lines linewidth " +
              std::string(total > kMostLength / 2 ? "0.45" : "0.9") +
              " linecolor palette notitle, "
              "$starts using 1:2 with points pointtype 7 pointsize 0.8 linecolor rgb '#d55e00' title 'start'";
    if (!stops.empty()) {
      script += ", $stops using 1:2 with points pointtype 2 pointsize 1 linecolor rgb '#333333' title 'stopped'";
    }
    script += "\n";
  }
  figure.script = std::move(script);
  return figure;
}

}  // namespace lockstep::cli
