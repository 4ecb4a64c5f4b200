// A raster of events: a stroke for each, trajectories above each other, and how often they come in the whole ensemble.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lockstep/cli/plot/canvas.h"
#include "lockstep/cli/plot/figures.h"
#include "lockstep/cli/plot/finished.h"
#include "lockstep/cli/provenance.h"
#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kRows = 250;             // strokes two pixels high
constexpr std::size_t kMostStrokes = 100'000;  // fewer rows where each has many
constexpr std::size_t kFewestBins = 10, kMostBins = 100, kEventsOfBin = 10;
constexpr std::size_t kPieceRows = std::size_t{1} << 14;

// Calls use(trajectory, time, reset) for all events of all trajectories.
template <class Use>
void for_each_event(const ode::ResultFile& file, const Use& use) {
  for (std::size_t first = 0; first < file.trajectories(); first += kPieceRows) {
    const std::size_t count = std::min(kPieceRows, file.trajectories() - first);
    const ode::EventLog log = file.events(first, count);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = log.first[i]; k < log.first[i + 1]; ++k) use(first + i, log.times[k], log.resets[k]);
    }
  }
}

struct Look {  // at all events
  Extent times;
  std::size_t events = 0;
  std::map<std::int32_t, std::vector<double>> bins;  // events of each reset, by the time

  std::size_t bin_count() const { return std::clamp(events / kEventsOfBin, kFewestBins, kMostBins); }
  double bin_width() const { return (times.high - times.low) / static_cast<double>(bin_count()); }
  double most_in_a_bin() const {
    double most = 0;
    for (const auto& [reset, counts] : bins) most = std::max(most, *std::ranges::max_element(counts));
    return most;
  }
};

Look look_at(const ode::ResultFile& file) {
  Look look;
  const bool knows_starts = file.hdf5().has(ode::result_names::kStartTime);
  for (std::size_t first = 0; first < file.trajectories(); first += kPieceRows) {
    const std::size_t count = std::min(kPieceRows, file.trajectories() - first);
    const auto records = file.records(first, count);
    std::vector<double> starts;
    if (knows_starts) starts = file.hdf5().dataset(ode::result_names::kStartTime).read<double>({first}, {count});
    for (std::size_t i = 0; i < count; ++i) {
      if (!is_finished(records[i])) continue;
      look.times.cover(records[i].end_time);
      if (knows_starts) look.times.cover(starts[i]);
    }
  }
  for_each_event(file, [&](std::size_t, double time, std::int32_t reset) {
    look.times.cover(time);
    look.bins.try_emplace(reset);
    ++look.events;
  });
  for (auto& [reset, bins] : look.bins) bins.resize(look.bin_count());
  for_each_event(file, [&](std::size_t, double time, std::int32_t reset) {
    const auto bin =
        look.bin_width() > 0 ? static_cast<std::size_t>((time - look.times.low) / look.bin_width()) : std::size_t{0};
    look.bins.at(reset)[std::min(bin, look.bin_count() - 1)] += 1;
  });
  return look;
}

// Of "seconds since 1970-01-01" seconds, in which times differ.
std::string duration_unit(const std::string& of_time) { return of_time.substr(0, of_time.find(" since ")); }

std::string stroke_style(std::size_t index) {
  return std::string(" linecolor rgb '") + kColours[index % kColours.size()] + "' ";
}

// Strokes of the chosen trajectories, a data block for each reset: time, number of the trajectory.
std::string strokes(const ode::ResultFile& file, const std::vector<std::size_t>& trajectories, const Look& look,
                    const Axis& time_axis) {
  std::map<std::int32_t, std::string> rows;
  for (const std::size_t trajectory : trajectories) {
    const ode::EventLog log = file.events(trajectory, 1);
    for (std::size_t k = 0; k < log.times.size(); ++k) {
      std::string& row = rows[log.resets[k]];
      time_axis.append(row, log.times[k]);
      append_number(row, static_cast<double>(file.first_trajectory() + trajectory));
      row += '\n';
    }
  }
  std::string blocks;
  for (const auto& [reset, bins] : look.bins) blocks += data_block("s" + std::to_string(reset), rows[reset]);
  return blocks;
}

std::string rates(const Look& look, std::size_t trajectories, const Axis& time_axis) {
  const double width = look.bin_width();
  std::string blocks;
  for (const auto& [reset, bins] : look.bins) {
    std::string rows;
    for (std::size_t bin = 0; bin < bins.size(); ++bin) {
      time_axis.append(rows, look.times.low + (static_cast<double>(bin) + 0.5) * width);
      append_number(rows, bins[bin] / (width * static_cast<double>(trajectories)));
      rows += '\n';
    }
    blocks += data_block("r" + std::to_string(reset), rows);
  }
  return blocks;
}

}  // namespace

std::string raster_obstacle(const ode::ResultFile& file) {
  if (!file.keeps_events()) {
    const bool lost = file.attribute("events").has_value();  // with the other file of an unfinished solve
    return lost ? "no events, which " + file.path().filename().string() +
                      ".events had beside it; finish the solve: lockstep solve --resume"
                : "no events; solve with events = true in [output]";
  }
  for (std::size_t first = 0; first < file.trajectories(); first += kPieceRows) {
    if (!file.events(first, std::min(kPieceRows, file.trajectories() - first)).times.empty()) return {};
  }
  return "no event in any trajectory";
}

Figure raster(const ode::ResultFile& file, const FigureOptions& options) {
  const Look look = look_at(file);
  const FinishedTrajectories finished(file);
  const double each = static_cast<double>(look.events) / static_cast<double>(finished.size());
  const auto room = static_cast<std::size_t>(static_cast<double>(kMostStrokes) / std::max(each, 1.0));
  const std::vector<std::size_t> trajectories =
      evenly_chosen(finished, options.trajectories.value_or(std::clamp<std::size_t>(room, 1, kRows)));
  const Axis time_axis(look.times);
  std::string script = strokes(file, trajectories, look, time_axis) + rates(look, finished.size(), time_axis);

  Figure figure;
  figure.size = {1600, 1300};
  script += heading(file, "events", trajectories.size(), figure.size);
  const bool key = look.bins.size() > 1;
  // Numbers of trajectories and rates, both from 0 on.
  Extent rows, rates_shown;
  for (const double x : {0.0, static_cast<double>(file.first_trajectory() + file.trajectories())}) rows.cover(x);
  for (const double x : {0.0, look.most_in_a_bin() / (look.bin_width() * static_cast<double>(finished.size()))}) {
    rates_shown.cover(x);
  }
  const int left = left_pixels({Axis(rows), Axis(rates_shown)});
  const Stack stack{2, figure.size, std::max(left, 170), key ? 170 : 60, time_label(file, time_axis)};
  // A row is as high as the way to the next one that is shown.
  const double row = static_cast<double>(file.trajectories()) / static_cast<double>(trajectories.size());
  const std::string unit = duration_unit(time_unit(file));
  const std::string low = rounded_text(time_axis.shown(look.times.low), 9),
                    high = rounded_text(time_axis.shown(look.times.high), 9);
  script += "set multiplot\nset xrange [" + low + ":" + high + "]\nset offsets 0, 0, 0, 0\n" +
            stacked_panel(stack, 0, "trajectory") + "set yrange [" +
            rounded_text(static_cast<double>(file.first_trajectory()) - row / 2, 9) + ":" +
            rounded_text(static_cast<double>(file.first_trajectory() + file.trajectories()) - 1 + row / 2, 9) + "]\n" +
            (key ? "set key outside right top Left reverse title 'reset' left\n" : "unset key\n");
  std::string plots;
  std::size_t colour = 0;
  for (const auto& [reset, bins] : look.bins) {
    plots += (plots.empty() ? "plot $s" : ", $s") + std::to_string(reset) + " using 1:($2-" +
             rounded_text(0.42 * row, 6) + "):(0):(" + rounded_text(0.84 * row, 6) +
             ") with vectors nohead linewidth " + (trajectories.size() > 120 ? "1" : "2") + stroke_style(colour++) +
             "notitle";
    if (key)
      plots += ", NaN with lines linewidth 3" + stroke_style(colour - 1) + "title '" + std::to_string(reset) + "'";
  }
  script += plots + "\n" + stacked_panel(stack, 1, unit.empty() ? "events per time" : "rate (1/" + unit + ")") +
            "unset key\nset yrange [0:*]\nset offsets 0, 0, graph 0.06, 0\n";
  plots.clear();
  colour = 0;
  for (const auto& [reset, bins] : look.bins) {
    plots += (plots.empty() ? "plot $r" : ", $r") + std::to_string(reset) + " using 1:2 with histeps linewidth 1.3" +
             stroke_style(colour++);
  }
  figure.script = std::move(script) + plots + "\nunset multiplot\n";
  return figure;
}

}  // namespace lockstep::cli
