#include "lockstep/cli/plot/fit_pictures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "lockstep/cli/plot/axis.h"
#include "lockstep/cli/plot/canvas.h"
#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

constexpr int kWidth = 1600;
constexpr int kTop = 185;     // headings, and the panels' own
constexpr int kBottom = 115;  // tick labels and axis label
constexpr int kLeft = 150;
constexpr int kRight = 40;

std::string number(double value) {
  std::string text;
  append_number(text, value);
  return text;
}

std::string head(const std::string& title, const std::string& subtitle, PictureSize size) {
  return headings(title, subtitle, size) + quiet_axes() + "unset key\nset format '%g'\n";
}

// What the colours mean, in a line below the headings, as far right as the panels go.
struct Meaning {
  std::string text;
  const char* colour;
};
std::string legend(const std::vector<Meaning>& meanings, PictureSize size) {
  constexpr double kEntry = 225;  // pixels
  std::string script;
  for (std::size_t i = 0; i < meanings.size(); ++i) {
    const double left = size.width - kRight - kEntry * static_cast<double>(meanings.size() - i);
    script += "set label " + std::to_string(10 + i) + " " + gnuplot_text(meanings[i].text) + " at screen " +
              screen(left, size.width) + "," + screen(size.height - 128, size.height) + " left textcolor rgb '" +
              meanings[i].colour + "' " + small_font() + " front\n";
  }
  return script;
}

// In the same line as the legend, on the left.
std::string remark(const std::string& text, PictureSize size) {
  return "set label 4 " + gnuplot_text(text) + " at screen " + screen(40, size.width) + "," +
         screen(size.height - 128, size.height) + " left textcolor rgb '#666666' " + small_font() + "\n";
}

std::string without_headings(std::size_t meanings) {
  std::string script = "unset label 1\nunset label 2\nunset label 4\n";
  for (std::size_t i = 0; i < meanings; ++i) script += "unset label " + std::to_string(10 + i) + "\n";
  return script;
}

const Meaning kValidation{"●  validation data", kColours[1]}, kTraining{"●  training data", kColours[0]};
const Meaning kFitted{"—  fitted", "#333333"};

// Where a panel lies, in pixels from the top left.
struct Place {
  double left, right, top, bottom;
};

std::string margins(const Place& place, PictureSize size) {
  return "set lmargin at screen " + screen(place.left, size.width) + "\nset rmargin at screen " +
         screen(place.right, size.width) + "\nset tmargin at screen " + screen(size.height - place.top, size.height) +
         "\nset bmargin at screen " + screen(size.height - place.bottom, size.height) + "\n";
}

std::string above(const std::string& text, const Place& place, PictureSize size) {
  return "set label 3 " + gnuplot_text(text) + " at screen " + screen(place.left, size.width) + "," +
         screen(size.height - place.top + 22, size.height) + " left textcolor rgb '#333333' " + small_font() + "\n";
}

// What is drawn of it, with room around it, also where all numbers are one.
std::string range_text(const Extent& extent, const Axis& axis) {
  if (!(extent.low <= extent.high)) return "[0:1]";
  const double low = axis.shown(extent.low), high = axis.shown(extent.high);
  const double room = high > low ? 0.06 * (high - low) : std::max(0.1 * std::fabs(high), 1e-3);
  return "[" + number(low - room) + ":" + number(high + room) + "]";
}

// Ticks of the horizontal axis: where labels are as long as 1.2e+07, only so many of them.
std::string ticks(const Extent& extent, const Axis& axis, int most) {
  const double low = axis.shown(extent.low), high = axis.shown(extent.high);
  const double size = std::max(std::fabs(low), std::fabs(high)), wide = high - low;
  if (!(wide > 0) || (size < 1e5 && size > 1e-3)) return "autofreq";
  const double least = wide / most, unit = std::pow(10.0, std::floor(std::log10(least)));
  for (const double step : {2.0, 5.0, 10.0}) {
    if (step * unit >= least) return number(step * unit);
  }
  return number(10 * unit);
}

}  // namespace

Figure fitted_curves(const FittedCurves& curves, const std::string& title, const std::string& subtitle) {
  const std::size_t columns = curves.trajectories.size(), rows = curves.names.size();
  constexpr int kGap = 34, kColumnGap = 40;
  const int panel = rows == 1 ? 640 : rows == 2 ? 400 : 300;
  Figure figure;
  figure.size = {kWidth, kTop + static_cast<int>(rows) * (panel + kGap) - kGap + kBottom};
  std::string& script = figure.script;
  std::vector<Extent> ranges(rows);
  std::vector<std::size_t> measured(rows);
  for (const FittedTrajectory& of : curves.trajectories) {
    // A curve that left the data far behind is not to flatten them all.
    for (std::size_t at = 0; at < of.data.size(); ++at) {
      const double bar = of.sigma.empty() ? 0 : of.sigma[at];
      ranges[at % rows].cover(of.data[at] - bar);
      ranges[at % rows].cover(of.data[at] + bar);
      measured[at % rows] += std::isnan(of.data[at]) ? 0 : 1;
    }
  }
  std::vector<Extent> shown = ranges;
  for (const FittedTrajectory& of : curves.trajectories) {
    for (std::size_t at = 0; at < of.curve.size(); ++at) {
      const Extent& data = ranges[at % rows];
      // Of what was measured once a trajectory, or never, the curve alone says how far it goes.
      if (measured[at % rows] <= columns) {
        shown[at % rows].cover(of.curve[at]);
        continue;
      }
      const double room = 0.5 * (data.high - data.low);
      shown[at % rows].cover(std::clamp(of.curve[at], data.low - room, data.high + room));
    }
  }
  const std::vector<Axis> axes(shown.begin(), shown.end());
  std::vector<Extent> spans(columns);
  for (std::size_t i = 0; i < columns; ++i) {
    const FittedTrajectory& of = curves.trajectories[i];
    for (const double t : of.times) spans[i].cover(t);
    const Axis time_axis(spans[i]);
    for (const auto& [name, times, values] :
         {std::tuple{"d", &of.times, &of.data}, {"c", &of.curve_times, &of.curve}}) {
      std::string lines;
      for (std::size_t point = 0; point < times->size(); ++point) {
        time_axis.append(lines, (*times)[point]);
        for (std::size_t row = 0; row < rows; ++row) axes[row].append(lines, (*values)[point * rows + row]);
        for (std::size_t row = 0; row < rows && values == &of.data && !of.sigma.empty(); ++row) {
          append_number(lines, of.sigma[point * rows + row]);
        }
        lines += '\n';
      }
      script += data_block(name + std::to_string(i), lines);
    }
  }
  std::vector<Meaning> meanings;
  for (const bool validation : {true, false}) {
    const auto is_it = [&](const FittedTrajectory& of) { return of.is_validation == validation; };
    if (std::ranges::any_of(curves.trajectories, is_it)) meanings.push_back(validation ? kValidation : kTraining);
  }
  meanings.push_back(kFitted);
  script += head(title, subtitle, figure.size) + legend(meanings, figure.size);
  const bool bars = std::ranges::any_of(curves.trajectories, [](const auto& of) { return !of.sigma.empty(); });
  script += remark(std::string("in brackets: RMS error in percent of the spread") +
                       (bars ? "; bars: one standard deviation" : ""),
                   figure.size) +
            "set multiplot\n";
  const double width =
      (kWidth - kLeft - kRight - static_cast<double>(columns - 1) * kColumnGap) / static_cast<double>(columns);
  for (std::size_t row = 0; row < rows; ++row) {
    script += "set yrange " + range_text(shown[row], axes[row]) + "\n";
    for (std::size_t i = 0; i < columns; ++i) {
      const FittedTrajectory& of = curves.trajectories[i];
      const Axis time_axis(spans[i]);
      const double left = kLeft + static_cast<double>(i) * (width + kColumnGap);
      const double top = kTop + static_cast<double>(row) * (panel + kGap);
      const Place place{left, left + width, top, top + panel};
      script += margins(place, figure.size);
      script += row == 0 ? above(of.title, place, figure.size) : "unset label 3\n";
      script +=
          i == 0 ? "set format y '%g'\nset ylabel " +
                       gnuplot_text(axes[row].label(curves.names[row], curves.units.empty() ? "" : curves.units[row])) +
                       " offset character 0.5,0 textcolor rgb '#333333'\n"
                 : "set format y ''\nunset ylabel\n";
      script += row + 1 == rows ? "set format x '%g'\nset xlabel " +
                                      gnuplot_text(time_axis.label(curves.time_name, curves.time_unit)) +
                                      " textcolor rgb '#333333'\n"
                                : "set format x ''\nunset xlabel\n";
      script += "set xrange " + range_text(spans[i], time_axis) + "\nset xtics " +
                ticks(spans[i], time_axis,
                      columns > 2    ? 2
                      : columns == 2 ? 4
                                     : 8) +
                (columns > 2 ? " font 'DejaVu Sans,' . (GPVAL_TERM eq 'svg' ? '8' : '15')" : "") + "\n";
      const std::string at = std::to_string(i), column = std::to_string(row + 2);
      const std::string points = " with points pointtype 7 pointsize 0.7 linecolor rgb '";
      const std::string colour = kColours[of.is_validation ? 1 : 0], size = std::to_string(row + 2 + rows);
      // Not gnuplot's error bars, which leave a gap around the point.
      const std::string bars = of.sigma.empty()
                                   ? ""
                                   : "$d" + at + " using 1:($" + column + "-$" + size + "):(0):(2*$" + size +
                                         ") with vectors nohead linewidth 1.2 linecolor rgb '" + colour + "' notitle, ";
      script += "plot " + bars + "$d" + at + " using 1:" + column + points + colour + "' notitle, $c" + at +
                " using 1:" + column + " with lines linewidth 0.9 linecolor rgb '#333333' notitle";
      script += "\n" + without_headings(meanings.size());
    }
  }
  script += "unset multiplot\n";
  return figure;
}

Figure predicted_over_true(const std::vector<PredictedOutput>& outputs, std::size_t total, const std::string& title,
                           const std::string& subtitle) {
  const std::size_t count = outputs.size();
  const std::size_t columns = count <= 3 ? count : count == 4 ? 2 : 3, rows = (count + columns - 1) / columns;
  constexpr int kGap = 190, kColumnGap = 150;
  const double width = std::min(
      (kWidth - kLeft - kRight - static_cast<double>(columns - 1) * kColumnGap) / static_cast<double>(columns), 900.0);
  const double panel = std::min(width, 640.0);
  Figure figure;
  figure.size = {kWidth, static_cast<int>(kTop + static_cast<double>(rows) * (panel + kGap) - kGap + kBottom)};
  std::string& script = figure.script;
  std::vector<Extent> ranges(count);
  for (std::size_t i = 0; i < count; ++i) {
    const PredictedOutput& of = outputs[i];
    for (const auto* values :
         {&of.training_true, &of.training_predicted, &of.validation_true, &of.validation_predicted}) {
      for (const double x : *values) ranges[i].cover(x);
    }
    const Axis axis(ranges[i]);
    for (const auto& [name, x, y] : {std::tuple{"t", &of.training_true, &of.training_predicted},
                                     {"v", &of.validation_true, &of.validation_predicted}}) {
      std::string lines;
      for (std::size_t row = 0; row < x->size(); ++row) {
        axis.append(lines, (*x)[row]);
        axis.append(lines, (*y)[row]);
        lines += '\n';
      }
      if (!lines.empty()) script += data_block(name + std::to_string(i), lines);
    }
  }
  std::vector<Meaning> meanings{kTraining};
  const auto has_validation = [](const PredictedOutput& of) { return !of.validation_true.empty(); };
  if (std::ranges::any_of(outputs, has_validation)) meanings.insert(meanings.begin(), kValidation);
  script +=
      head(title, subtitle, figure.size) + legend(meanings, figure.size) +
      remark("RMS error in percent of the spread" +
                 (count < total ? "; " + std::to_string(count) + " of " + std::to_string(total) + " outputs" : ""),
             figure.size) +
      "set multiplot\n";
  for (std::size_t i = 0; i < count; ++i) {
    const PredictedOutput& of = outputs[i];
    const double left = kLeft + static_cast<double>(i % columns) * (width + kColumnGap);
    const double top = kTop + static_cast<double>(i / columns) * (panel + kGap);
    const Place place{left, left + width, top, top + panel};
    script += margins(place, figure.size) + above(of.summary, place, figure.size);
    const Axis axis(ranges[i]);
    const std::string name = axis.label(of.name, of.unit), range = range_text(ranges[i], axis);
    script += "set xrange " + range + "\nset yrange " + range + "\nset xlabel " + gnuplot_text(name + ", data") +
              " textcolor rgb '#333333'\nset ylabel " + gnuplot_text(name + ", predicted") +
              " offset character 0.5,0 textcolor rgb '#333333'\n";
    script += "set xtics " + ticks(ranges[i], axis, 3) +
              std::string(columns > 2 ? " font 'DejaVu Sans,' . (GPVAL_TERM eq 'svg' ? '8' : '15')" : "") + "\n";
    const auto points = [](bool validation) {
      return std::string(" using 1:2 with points pointtype 7 pointsize ") + (validation ? "0.7" : "0.45") +
             " linecolor rgb '" + (validation ? "#60" : "#80") + (kColours[validation ? 1 : 0] + 1) + "' ";
    };
    script += "plot x with lines linewidth 0.8 linecolor rgb '#888888' notitle, $t" + std::to_string(i) +
              points(false) + "notitle";
    if (!of.validation_true.empty()) script += ", $v" + std::to_string(i) + points(true) + "notitle";
    script += "\n" + without_headings(meanings.size());
  }
  script += "unset multiplot\n";
  return figure;
}

}  // namespace lockstep::cli
