#include "lockstep/cli/plot/against.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "lockstep/cli/plot/canvas.h"
#include "lockstep/cli/plot/quantile.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kShownTrajectories = 3;
constexpr std::size_t kSampledTrajectories = 10000;
constexpr std::size_t kMostPoints = 400;

// Columns: time, then the shown components.
std::string curve(const ode::ResultFile& file, std::size_t trajectory, const std::vector<std::size_t>& components) {
  const std::vector<double> times = file.times(trajectory), states = file.states<double>(trajectory, 1);
  std::string rows;
  for (const std::size_t time : evenly_chosen(times.size(), 4 * kMostPoints)) {
    append_number(rows, times[time]);
    for (const std::size_t component : components) append_number(rows, states[time * file.components() + component]);
    rows += '\n';
  }
  return rows;
}

}  // namespace

void require_comparable(const ode::ResultFile& file, const ode::ResultFile& truth) {
  const auto refuse = [&](const std::string& found, const std::string& expected) {
    throw Error(ErrorKind::invalid_argument, {truth.path().string(), found, expected + " as in " + file.path().string(),
                                              "solve the same ensemble at the same save points"});
  };
  const auto same = [&](std::size_t ours, std::size_t theirs, const char* what) {
    if (ours != theirs) refuse(count_text(theirs) + " " + what, count_text(ours));
  };
  same(file.components(), truth.components(), "components");
  same(file.trajectories(), truth.trajectories(), "trajectories");
  same(file.save_points(), truth.save_points(), "save points");
  if (file.trajectories() == 0 || file.save_points() < 2) refuse("a single save point, or no trajectories", "more");
  if (file.times(0) != truth.times(0)) refuse("other times", "the same");
}

Figure overlay(const ode::ResultFile& file, const ode::ResultFile& truth, const FigureOptions& options) {
  const std::vector<std::size_t> components = shown_components(file, options.components);
  const std::vector<std::size_t> trajectories =
      evenly_chosen(file.trajectories(), options.trajectories.value_or(kShownTrajectories));
  Figure figure;
  std::string& script = figure.script;
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    script += data_block("a" + std::to_string(i), curve(file, trajectories[i], components));
    script += data_block("b" + std::to_string(i), curve(truth, trajectories[i], components));
  }
  figure.size = stacked_size(components.size());
  script += heading(file, "over " + truth.text_attribute("title") + share_of_components(file, options.components),
                    trajectories.size(), figure.size);
  script += "set multiplot\n";
  for (std::size_t panel = 0; panel < components.size(); ++panel) {
    script += stacked_panel(file, panel, components.size(), component_label(file, components[panel]), figure.size, 290);
    script += panel == 0 ? "set key outside right top Left reverse\n" : "unset key\n";
    const std::string columns = " using 1:" + std::to_string(panel + 2);
    script += "plot ";
    for (std::size_t i = 0; i < trajectories.size(); ++i) {
      script += (i == 0 ? "" : ", ") + std::string("$b") + std::to_string(i) + columns +
                " with lines linewidth 4 linecolor rgb '#c8c8c8' " +
                (i == 0 ? "title " + gnuplot_text(truth.path().stem().string()) : std::string("notitle"));
    }
    for (std::size_t i = 0; i < trajectories.size(); ++i) {
      script += ", $a" + std::to_string(i) + columns + " with lines linewidth 1.1 linecolor rgb '" +
                kColours[i % kColours.size()] + "' title " +
                gnuplot_text(trajectories.size() == 1 ? file.path().stem().string()
                                                      : "trajectory " + std::to_string(trajectories[i]));
    }
    script += "\n";
  }
  script += "unset multiplot\n";
  return figure;
}

Figure distance(const ode::ResultFile& file, const ode::ResultFile& truth, const FigureOptions& options) {
  std::vector<std::size_t> components = options.components;
  for (std::size_t c = 0; options.components.empty() && c < file.components(); ++c) components.push_back(c);
  const std::vector<std::size_t> trajectories =
      evenly_chosen(file.trajectories(), options.trajectories.value_or(kSampledTrajectories));
  std::vector<std::size_t> times = evenly_chosen(file.save_points(), kMostPoints);
  times.erase(times.begin());  // the start agrees but for its rounding, which would stretch the axis
  const std::vector<double> all_times = file.times(0);
  // Samples [group][time]: 0 within the training range (or none known), 1 outside.
  std::array<std::vector<std::vector<double>>, 2> samples;
  std::array<std::size_t, 2> members{};
  for (auto& group : samples) group.resize(times.size());
  for (const std::size_t trajectory : trajectories) {
    const std::vector<double> a = file.states<double>(trajectory, 1), b = truth.states<double>(trajectory, 1);
    const std::size_t group = file.records(trajectory, 1).front().status == ode::Status::outside_range ? 1 : 0;
    ++members[group];
    for (std::size_t time = 0; time < times.size(); ++time) {
      double squares = 0;
      for (const std::size_t c : components) {
        const double difference = a[times[time] * file.components() + c] - b[times[time] * file.components() + c];
        squares += difference * difference;
      }
      const double value = std::sqrt(squares / static_cast<double>(components.size()));
      // A logarithm has no place for exact agreement.
      if (std::isfinite(value) && value > 0) samples[group][time].push_back(value);
    }
  }
  Figure figure;
  figure.size = stacked_size(1);
  std::string& script = figure.script;
  const std::array<std::string, 2> names{"in the training range", "left the training range"};
  std::string plots;
  for (std::size_t group = 0; group < 2; ++group) {
    if (members[group] == 0) continue;
    std::string rows;
    for (std::size_t time = 0; time < times.size(); ++time) {
      std::vector<double>& sample = samples[group][time];
      append_number(rows, all_times[times[time]]);
      for (const double part : {0.05, 0.5, 0.95}) append_number(rows, quantile(sample, part));
      rows += '\n';
    }
    const std::string data = "$g" + std::to_string(group), colour = kColours[group];
    script += data_block("g" + std::to_string(group), rows);
    const std::string who =
        (members[1] == 0 ? std::string("all") : names[group]) + " (" + count_text(members[group]) + ")";
    plots += plots.empty() ? "plot " : ", ";
    if (members[group] > 1)
      plots += data + " using 1:2:4 with filledcurves linecolor rgb '" + colour +
               "' fillstyle transparent solid 0.25 title " + gnuplot_text("90 %, " + who) + ", ";
    plots += data + " using 1:3 with lines linewidth 1.5 linecolor rgb '" + colour + "' title " +
             gnuplot_text((members[group] > 1 ? "median, " : "") + who);
  }
  script += heading(file, "distance from " + truth.text_attribute("title"), trajectories.size(), figure.size);
  script += stacked_panel(file, 0, 1, "distance", figure.size, 60);
  script += "set logscale y\nset key top left\n" + plots + "\n";
  return figure;
}

}  // namespace lockstep::cli
