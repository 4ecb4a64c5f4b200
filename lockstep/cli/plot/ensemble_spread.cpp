#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "lockstep/cli/plot/canvas.h"
#include "lockstep/cli/plot/figures.h"
#include "lockstep/cli/plot/finished.h"
#include "lockstep/cli/plot/quantile.h"
#include "lockstep/cli/plot/thinning.h"
#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kTrajectories = 10000;  // quantiles to about a percent
constexpr std::array<double, 5> kQuantiles{0.05, 0.25, 0.5, 0.75, 0.95};
constexpr std::size_t kMedian = 2;
constexpr std::array<std::size_t, 4> kEdges{0, 1, 3, 4};  // of the bands

}  // namespace

double quantile(std::vector<double>& sample, double part) {
  if (sample.empty()) return std::nan("");
  const double position = part * static_cast<double>(sample.size() - 1);
  const auto below = static_cast<std::ptrdiff_t>(position);
  std::nth_element(sample.begin(), sample.begin() + below, sample.end());
  const double low = sample[static_cast<std::size_t>(below)];
  if (static_cast<std::size_t>(below) + 1 >= sample.size()) return low;
  const double high = *std::min_element(sample.begin() + below + 1, sample.end());
  return low + (high - low) * (position - static_cast<double>(below));
}

std::string ensemble_spread_obstacle(const ode::ResultFile& file) {
  if (file.trajectories() < 2) return "fewer than two trajectories";
  if (FinishedTrajectories(file).size() < 2) return "fewer than two finished trajectories";
  if (file.save_points() < 2) return "a single save point";
  if (file.times_per_trajectory()) return "save points that differ between trajectories";
  return {};
}

Figure ensemble_spread(const ode::ResultFile& file, const FigureOptions& options) {
  const std::vector<std::size_t> components = shown_components(file, options.components);
  const std::vector<std::size_t> trajectories =
      evenly_chosen(FinishedTrajectories(file), options.trajectories.value_or(kTrajectories));
  const std::vector<double> all_times = file.times(0);
  const std::vector<std::size_t> chosen = sampled_times(file.save_points(), trajectories.size() * components.size());
  const Jumps shared = shared_jumps(file);
  std::vector<Instant> times;
  for (const std::size_t time : chosen) {
    times.push_back({time});
    if (shared.any_at(all_times[time])) times.push_back({time, true});
  }

  // samples[time][component][trajectory]
  std::vector<std::vector<double>> samples(times.size() * components.size());
  for (std::vector<double>& sample : samples) sample.reserve(trajectories.size());
  constexpr std::size_t kRows = 64;  // read at once where neighbours are chosen too
  std::vector<double> states, behind;
  std::size_t first = 0;
  std::size_t count = 0;
  for (const std::size_t trajectory : trajectories) {
    if (trajectory < first || trajectory >= first + count) {
      first = trajectory;
      count = trajectories.size() == file.trajectories() ? std::min(kRows, file.trajectories() - first) : 1;
      states = file.states<double>(first, count);
    }
    const double* row = states.data() + (trajectory - first) * file.save_points() * file.components();
    const Jumps jumps = jumps_of(file, trajectory, shared);
    const double end = shared.none() ? 0 : file.records(trajectory, 1).front().end_time;
    for (std::size_t time = 0; time < times.size(); ++time) {
      const double* state = row + times[time].time * file.components();
      if (times[time].behind) {
        const double now = all_times[times[time].time];
        if (!(now < end)) continue;
        behind.assign(state, state + file.components());
        jumps.apply(now, behind);
        state = behind.data();
      }
      for (std::size_t c = 0; c < components.size(); ++c) {
        const double value = state[components[c]];
        if (std::isfinite(value)) samples[time * components.size() + c].push_back(value);
      }
    }
  }
  // Behind the end of all there is nothing.
  if (times.back().behind && std::ranges::all_of(std::span(samples).last(components.size()),
                                                 [](const auto& sample) { return sample.empty(); })) {
    times.pop_back();
  }
  std::vector<double> shown_times;
  for (const Instant& time : times) shown_times.push_back(all_times[time.time]);
  Extent time_extent;
  for (const double time : shown_times) time_extent.cover(time);
  const Axis time_axis = axis_of(options, "time", time_extent);
  std::vector<Axis> axes;
  // Columns of the bands: time, then the quantiles but the median, which has a block of its own.
  std::string script;
  for (std::size_t c = 0; c < components.size(); ++c) {
    Extent values;
    Bands bands{shown_times, {}};
    Curve median{shown_times, {}};
    for (std::size_t time = 0; time < times.size(); ++time) {
      std::array<double, kQuantiles.size()> quantiles{};
      for (std::size_t q = 0; q < kQuantiles.size(); ++q) {
        quantiles[q] = quantile(samples[time * components.size() + c], kQuantiles[q]);
        values.cover(quantiles[q]);
      }
      for (const std::size_t edge : kEdges) bands.quantiles.push_back(quantiles[edge]);
      median.states.push_back(quantiles[kMedian]);
    }
    axes.push_back(axis_of(options, file.component_names()[components[c]], values));
    const Bands drawn = thinned_bands(std::move(bands));
    std::string rows;
    for (std::size_t row = 0; row < drawn.times.size(); ++row) {
      time_axis.append(rows, drawn.times[row]);
      for (std::size_t edge = 0; edge < kEdges.size(); ++edge) {
        axes[c].append(rows, drawn.quantiles[row * kEdges.size() + edge]);
      }
      rows += '\n';
    }
    script += data_block("q" + std::to_string(c), rows);
    script += data_block("m" + std::to_string(c), curve_rows(median, median.states, time_axis, axes[c]));
  }

  // Trajectories that an event or a failure has stopped are no part of the bands from then on.
  const auto left_at = [&](std::size_t time) { return samples[time * components.size()].size(); };
  const std::size_t left = left_at(times.size() - 1);
  const bool some_stop = left < left_at(0);
  const std::string whom = some_stop ? "" : " of all";

  Figure figure;
  figure.size = stacked_size(components.size());
  const std::string what = "spread of the ensemble" + share_of_components(file, options.components) +
                           (some_stop ? ", " + count_text(left) + " left at the end" : std::string());
  script += heading(file, what, trajectories.size(), figure.size,
                    times_text(file.save_points(), chosen.size(), bins_of(times.size())));
  const Stack stack{components.size(), figure.size, left_pixels(axes), 290, time_label(file, time_axis)};
  script += "set multiplot\n" + axis_script(options, "x", "time", time_axis);
  for (std::size_t panel = 0; panel < components.size(); ++panel) {
    script += stacked_panel(stack, panel, component_label(file, components[panel], axes[panel], label_pixels(stack)));
    script += axis_script(options, "y", file.component_names()[components[panel]], axes[panel]);
    script += panel == 0 ? "set key outside right top Left reverse" +
                               std::string(some_stop ? " title 'of those left' left\n" : "\n")
                         : "unset key\n";
    const std::string data = "$q" + std::to_string(panel), median = "$m" + std::to_string(panel);
    script += "plot " + data + " using 1:2:5 with filledcurves linecolor rgb '#cfe3f1' title '90 %" + whom + "', " +
              data + " using 1:3:4 with filledcurves linecolor rgb '#8fbfdf' title '50 %" + whom + "', " + median +
              " using 1:2 with lines linewidth 1.3 linecolor rgb '#0072b2' title 'median'\n";
  }
  script += "unset multiplot\n";
  figure.script = std::move(script);
  return figure;
}

}  // namespace lockstep::cli
