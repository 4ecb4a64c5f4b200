#include "lockstep/cli/plot/loss_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/cli/plot/axis.h"
#include "lockstep/cli/plot/canvas.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kMostCurvePoints = 4000;  // more than a picture's pixels

}  // namespace

Figure loss_curve(const std::vector<train::CurvePoint>& curve, const std::string& title, const std::string& subtitle,
                  const std::string& loss, const std::string& watched, const std::vector<std::string>& phases) {
  Figure figure;
  figure.size = {1600, 1000};
  const std::size_t stride = std::max<std::size_t>((curve.size() + kMostCurvePoints - 1) / kMostCurvePoints, 1);
  bool positive = true, separate = false;
  Extent losses;
  for (std::size_t i = 0; i < curve.size(); i += stride) {
    const train::CurvePoint& point = curve[i];
    positive = positive && point.loss > 0 && (point.watched > 0 || !std::isfinite(point.watched));
    separate = separate || point.watched != point.loss;
    losses.cover(point.loss);
    losses.cover(point.watched);
  }
  const Axis axis(losses);
  std::string rows;
  for (std::size_t i = 0; i < curve.size(); i += stride) {
    append_number(rows, static_cast<double>(curve[i].iteration));
    axis.append(rows, curve[i].loss);
    axis.append(rows, curve[i].watched);
    append_number(rows, curve[i].gradient_norm);
    rows += '\n';
  }
  std::string& script = figure.script;
  script += data_block("curve", rows);
  script +=
      headings(title, subtitle, figure.size) + quiet_axes() +
      "set key top right textcolor rgb '#333333' samplen 1.5\n"
      "set lmargin at screen 0.1\nset rmargin at screen 0.96\nset tmargin at screen 0.86\nset bmargin at screen 0.11\n"
      "set autoscale noextend\nset offsets 0, 0, graph 0.05, graph 0.05\n"
      "set xlabel 'iteration' textcolor rgb '#333333'\n";
  script += "set ylabel " + gnuplot_text(axis.label(loss, "")) + " textcolor rgb '#333333'\n";
  script += "set format y '%g'\n";
  if (positive && axis.offset() == 0) script += "set logscale y\n";
  // Where a phase begins, what the loss is taken of may change, and the curve jump.
  for (std::size_t i = 1; i < curve.size(); ++i) {
    const std::int64_t phase = curve[i].phase;
    if (phase == curve[i - 1].phase) continue;
    const std::string at = std::to_string(curve[i].iteration), &name = phases[static_cast<std::size_t>(phase)];
    script += "set arrow from first " + at + ", graph 0 to first " + at +
              ", graph 1 nohead back dashtype 2 linecolor rgb '#888888' linewidth 0.8\n";
    script += "set label " + gnuplot_text("phase " + std::to_string(phase + 1) + (name.empty() ? "" : ": " + name)) +
              " at first " + at +
              ", graph 0.98 right rotate by 90 offset 0.9, 0 textcolor rgb '#666666' font "
              "'DejaVu Sans,' . (GPVAL_TERM eq 'svg' ? '8' : '15') front\n";
  }
  script += "plot $curve using 1:2 with lines linewidth 1.1 linecolor rgb '" + std::string(kColours[0]) +
            "' title 'training'";
  if (separate) {
    script += ", $curve using 1:3 with lines linewidth 1.1 linecolor rgb '" + std::string(kColours[1]) + "' title " +
              gnuplot_text(watched.starts_with(", ") ? watched.substr(2) : "watched");
  }
  script += "\n";
  return figure;
}

}  // namespace lockstep::cli
