#include "lockstep/cli/plot/against.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/agreement/comparable.h"
#include "lockstep/cli/column_names.h"
#include "lockstep/cli/plot/canvas.h"
#include "lockstep/cli/plot/finished.h"
#include "lockstep/cli/plot/quantile.h"
#include "lockstep/cli/plot/thinning.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kShownTrajectories = 3;
constexpr std::size_t kSampledTrajectories = 10000;
constexpr double kKeyPixels = 200;  // of a name in the key

// A trajectory and, of it, the shown components.
struct Drawn {
  Curve curve;
  std::vector<std::vector<double>> values;  // [component][time]
};
Drawn drawn_of(const ode::ResultFile& file, std::size_t trajectory, const std::vector<std::size_t>& components) {
  Drawn drawn{curve_of(file, trajectory), {}};
  for (const std::size_t c : components) drawn.values.push_back(values_of(drawn.curve, c, file.components()));
  return drawn;
}

// States of a trajectory, at its save points and behind its impulses.
class States {
 public:
  States(const ode::ResultFile& file, std::size_t trajectory, const Jumps& shared)
      : states_(file.states<double>(trajectory, 1)),
        components_(file.components()),
        record_(file.records(trajectory, 1).front()),
        jumps_(jumps_of(file, trajectory, shared)) {}

  const ode::TrajectoryRecord& record() const { return record_; }
  // Until the next call. Empty behind its end.
  std::span<const double> at(Instant instant, double time) {
    const auto state = std::span<const double>(states_).subspan(instant.time * components_, components_);
    if (!instant.behind) return state;
    if (!(time < record_.end_time)) return {};
    behind_.assign(state.begin(), state.end());
    jumps_.apply(time, behind_);
    return behind_;
  }

 private:
  std::vector<double> states_, behind_;
  std::size_t components_;
  ode::TrajectoryRecord record_;
  Jumps jumps_;
};

std::vector<std::size_t> in_truth(const SameComponents& same, const std::vector<std::size_t>& components) {
  std::vector<std::size_t> places;
  for (const std::size_t c : components) places.push_back(same.in_truth[c].value());
  return places;
}

// "z" of many: what one file has and the other has not.
std::string missing_text(const ode::ResultFile& file, const std::vector<std::string>& others) {
  std::string names;
  for (const std::string& name : file.component_names()) {
    if (std::ranges::find(others, name) == others.end()) names += (names.empty() ? "" : ", ") + name;
  }
  return names.empty() ? "" : names + " in " + file.path().string() + " alone";
}

SameComponents same_components(const ode::ResultFile& file, const ode::ResultFile& truth) {
  const std::vector<std::string>&ours = file.component_names(), &theirs = truth.component_names();
  SameComponents same;
  const bool by_place = go_by_position(ours, theirs);
  for (std::size_t c = 0; c < ours.size(); ++c) {
    const auto found = by_place ? theirs.begin() + static_cast<std::ptrdiff_t>(c) : std::ranges::find(theirs, ours[c]);
    same.in_truth.push_back(found == theirs.end() ? std::nullopt
                                                  : std::optional(static_cast<std::size_t>(found - theirs.begin())));
  }
  if (by_place) {
    same.note = "components go by their places: those of one file have no names";
    return same;
  }
  if (same.of_file().empty()) {
    throw Error(
        ErrorKind::invalid_argument,
        {truth.path().string(), "components " + list_text(std::vector<std::string_view>(theirs.begin(), theirs.end())),
         "some of " + list_text(std::vector<std::string_view>(ours.begin(), ours.end())) + ", as " +
             file.path().string() + " has",
         "solve the same system"});
  }
  const std::string first = missing_text(file, theirs), second = missing_text(truth, ours);
  if (!first.empty() || !second.empty()) {
    same.note =
        "components of both files are compared; " + first + (first.empty() || second.empty() ? "" : ", ") + second;
  }
  return same;
}

// The title is as a rule that of both; their names tell them apart.
std::string file_name_of(const ode::ResultFile& file) { return file.path().filename().string(); }

}  // namespace

std::vector<std::size_t> SameComponents::of_file() const {
  std::vector<std::size_t> both;
  for (std::size_t c = 0; c < in_truth.size(); ++c) {
    if (in_truth[c]) both.push_back(c);
  }
  return both;
}

SameComponents require_comparable(const ode::ResultFile& file, const ode::ResultFile& truth) {
  const auto refuse = [&](const std::string& found, const std::string& expected) {
    throw Error(ErrorKind::invalid_argument, {truth.path().string(), found, expected + " as in " + file.path().string(),
                                              "solve the same ensemble at the same save points"});
  };
  const auto same = [&](std::size_t ours, std::size_t theirs, const char* what) {
    if (ours != theirs) refuse(count_text(theirs) + " " + what, count_text(ours));
  };
  same(file.trajectories(), truth.trajectories(), "trajectories");
  same(file.save_points(), truth.save_points(), "save points");
  if (file.trajectories() == 0 || file.save_points() < 2) {
    throw Error(ErrorKind::invalid_argument,
                {file.path().string(), file.trajectories() == 0 ? "no trajectories" : "a single save point",
                 "curves over time, to be drawn over those of " + truth.path().string(),
                 "save more often; lockstep validate tells how far apart end states are"});
  }
  if (FinishedTrajectories(file, truth).empty()) {
    throw Error(ErrorKind::invalid_argument,
                {truth.path().string(), "no trajectory that is finished in it and in " + file.path().string(),
                 "some to compare", "finish the solves with --resume"});
  }
  if (agreement::first_other_time(file.times(0), truth.times(0))) refuse("other times", "the same");
  return same_components(file, truth);
}

Figure overlay(const ode::ResultFile& file, const ode::ResultFile& truth, const SameComponents& same,
               const FigureOptions& options) {
  std::vector<std::size_t> components = shown_components(file, options.components);
  if (options.components.empty()) {
    const std::size_t most = components.size();
    components = same.of_file();
    components.resize(std::min(components.size(), most));
  }
  const std::vector<std::size_t> components_of_truth = in_truth(same, components);
  const std::vector<std::size_t> trajectories =
      evenly_chosen(FinishedTrajectories(file, truth), options.trajectories.value_or(kShownTrajectories));
  std::vector<Drawn> ours, theirs;
  Extent times;
  std::vector<Extent> values(components.size());
  std::size_t most = 0;
  for (const std::size_t trajectory : trajectories) {
    for (auto* drawn : {&ours, &theirs}) {
      drawn->push_back(drawn == &ours ? drawn_of(file, trajectory, components)
                                      : drawn_of(truth, trajectory, components_of_truth));
      for (const double time : drawn->back().curve.times) times.cover(time);
      for (std::size_t c = 0; c < components.size(); ++c) {
        for (const double value : drawn->back().values[c]) values[c].cover(value);
      }
      most = std::max(most, drawn->back().curve.times.size());
    }
  }
  const Axis time_axis(times);
  const std::vector<Axis> axes(values.begin(), values.end());
  Figure figure;
  std::string& script = figure.script;
  // A block for each curve and panel.
  const auto block = [](const char* name, std::size_t i, std::size_t panel) {
    return name + std::to_string(i) + "_" + std::to_string(panel);
  };
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    for (std::size_t c = 0; c < components.size(); ++c) {
      script += data_block(block("a", i, c), curve_rows(ours[i].curve, ours[i].values[c], time_axis, axes[c]));
      script += data_block(block("b", i, c), curve_rows(theirs[i].curve, theirs[i].values[c], time_axis, axes[c]));
    }
  }
  figure.size = stacked_size(components.size());
  script +=
      heading(file, truth,
              file_name_of(file) + " over " + file_name_of(truth) +
                  share_of_components(file, same.note.empty() ? options.components : components),
              trajectories.size(), figure.size, times_text(file.save_points(), file.save_points(), bins_of(most)));
  const bool one_by_one = trajectories.size() <= 8;  // a longer key would lie on the curves
  const auto title_of = [&](std::size_t i) { return "trajectory " + std::to_string(trajectories[i]); };
  std::size_t longest = characters_in(kKeyPixels);
  for (std::size_t i = 0; one_by_one && i < trajectories.size(); ++i) longest = std::max(longest, title_of(i).size());
  const Stack stack{components.size(), figure.size, left_pixels(axes), key_pixels(longest),
                    time_label(file, time_axis)};
  script += "set multiplot\n";
  for (std::size_t panel = 0; panel < components.size(); ++panel) {
    script += stacked_panel(stack, panel, component_label(file, components[panel], axes[panel], label_pixels(stack)));
    script += panel == 0 ? "set key outside right top Left reverse\n" : "unset key\n";
    const std::string columns = " using 1:2";
    script += "plot ";
    for (std::size_t i = 0; i < trajectories.size(); ++i) {
      script += (i == 0 ? "" : ", ") + std::string("$") + block("b", i, panel) + columns +
                " with lines linewidth 4 linecolor rgb '#c8c8c8' " +
                (i == 0 ? "title " + gnuplot_text(shortened(truth.path().stem().string(), characters_in(kKeyPixels)))
                        : std::string("notitle"));
    }
    for (std::size_t i = 0; i < trajectories.size(); ++i) {
      script += ", $" + block("a", i, panel) + columns + " with lines linewidth 1.1 linecolor rgb '" +
                kColours[i % kColours.size()] + "' " +
                (!one_by_one && i > 0 ? std::string("notitle")
                 : trajectories.size() > 1 && one_by_one
                     ? "title " + gnuplot_text(title_of(i))
                     : "title " + gnuplot_text(shortened(file.path().stem().string(), characters_in(kKeyPixels))));
    }
    script += "\n";
  }
  script += "unset multiplot\n";
  return figure;
}

Figure distance(const ode::ResultFile& file, const ode::ResultFile& truth, const SameComponents& same,
                const FigureOptions& options) {
  const std::vector<std::size_t> components = options.components.empty() ? same.of_file() : options.components;
  const std::vector<std::size_t> trajectories =
      evenly_chosen(FinishedTrajectories(file, truth), options.trajectories.value_or(kSampledTrajectories));
  const std::vector<double> all_times = file.times(0);
  const std::vector<std::size_t> chosen = sampled_times(file.save_points(), trajectories.size());
  const Jumps shared = shared_jumps(file), shared_of_truth = shared_jumps(truth);
  std::vector<Instant> times;
  for (const std::size_t time : chosen) {
    if (time == 0) continue;  // the start agrees but for its rounding, which would stretch the axis
    times.push_back({time});
    const double now = all_times[time];
    if (shared.any_at(now) || shared_of_truth.any_at(now)) times.push_back({time, true});
  }
  // Samples [group][time]: 0 within the training range (or none known), 1 outside.
  std::array<std::vector<std::vector<double>>, 2> samples;
  std::array<std::size_t, 2> members{};
  for (auto& group : samples) group.resize(times.size());
  for (const std::size_t trajectory : trajectories) {
    States a(file, trajectory, shared), b(truth, trajectory, shared_of_truth);
    const std::size_t group = a.record().status == ode::Status::outside_range ? 1 : 0;
    ++members[group];
    for (std::size_t time = 0; time < times.size(); ++time) {
      const double now = all_times[times[time].time];
      const std::span<const double> ours = a.at(times[time], now), theirs = b.at(times[time], now);
      if (ours.empty() || theirs.empty()) continue;
      double squares = 0;
      for (const std::size_t c : components) {
        const double difference = ours[c] - theirs[*same.in_truth[c]];
        squares += difference * difference;
      }
      const double value = std::sqrt(squares / static_cast<double>(components.size()));
      // A logarithm has no place for exact agreement.
      if (std::isfinite(value) && value > 0) samples[group][time].push_back(value);
    }
  }
  Extent shown_times;
  shown_times.cover(all_times.front());  // of the same offset as the other figures' axes
  for (const Instant& time : times) shown_times.cover(all_times[time.time]);
  const Axis time_axis(shown_times);
  Figure figure;
  figure.size = stacked_size(1);
  std::string& script = figure.script;
  const std::array<std::string, 2> names{"in the training range", "left the training range"};
  std::string plots;
  std::size_t entries = 0;  // of the key
  for (std::size_t group = 0; group < 2; ++group) {
    if (members[group] == 0) continue;
    Bands band;
    Curve median;
    for (std::size_t time = 0; time < times.size(); ++time) {
      std::vector<double>& sample = samples[group][time];
      for (auto* of : {&band.times, &median.times}) of->push_back(all_times[times[time].time]);
      for (const double part : {0.05, 0.95}) band.quantiles.push_back(quantile(sample, part));
      median.states.push_back(quantile(sample, 0.5));
    }
    const Bands drawn = thinned_bands(std::move(band));
    std::string rows;
    for (std::size_t row = 0; row < drawn.times.size(); ++row) {
      time_axis.append(rows, drawn.times[row]);
      for (const std::size_t edge : {2 * row, 2 * row + 1}) append_number(rows, drawn.quantiles[edge]);
      rows += '\n';
    }
    const std::string data = "$g" + std::to_string(group), middle = "$m" + std::to_string(group),
                      colour = kColours[group];
    script += data_block("g" + std::to_string(group), rows);
    script += data_block("m" + std::to_string(group), curve_rows(median, median.states, time_axis, Axis()));
    const std::string who =
        (members[1] == 0 ? std::string("all") : names[group]) + " (" + count_text(members[group]) + ")";
    plots += plots.empty() ? "plot " : ", ";
    entries += members[group] > 1 ? 2 : 1;
    if (members[group] > 1)
      plots += data + " using 1:2:3 with filledcurves linecolor rgb '" + colour +
               "' fillstyle transparent solid 0.25 title " + gnuplot_text("90 %, " + who) + ", ";
    plots += middle + " using 1:2 with lines linewidth 1.5 linecolor rgb '" + colour + "' title " +
             gnuplot_text((members[group] > 1 ? "median, " : "") + who);
  }
  if (std::ranges::all_of(samples, [](const auto& group) {
        return std::ranges::all_of(group, [](const std::vector<double>& sample) { return sample.empty(); });
      })) {
    return {};
  }
  script +=
      heading(file, truth, "distance of " + file_name_of(file) + " from " + file_name_of(truth), trajectories.size(),
              figure.size, times_text(file.save_points(), chosen.size(), bins_of(times.size())));
  script += stacked_panel({1, figure.size, left_pixels({}), 60, time_label(file, time_axis)}, 0, "distance");
  // The key lies above the panel, a row for each title, for curves may go anywhere.
  constexpr int kTop = 118, kRow = 34;
  const int rows = static_cast<int>(entries) * kRow;
  script += "set tmargin at screen " + screen(figure.size.height - kTop - rows - 12, figure.size.height) +
            "\nset logscale y\nset key at screen " + screen(left_pixels({}), figure.size.width) + ", screen " +
            screen(figure.size.height - kTop, figure.size.height) + " left top vertical maxcols 1 Left reverse\n" +
            plots + "\n";
  return figure;
}

}  // namespace lockstep::cli
