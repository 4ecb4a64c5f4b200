// End states, or a maximum, minimum or mean over time, over one parameter as points, over two as a map of colours.
#include "lockstep/cli/plot/sweep.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "lockstep/cli/plot/canvas.h"
#include "lockstep/cli/plot/figures.h"
#include "lockstep/cli/plot/finished.h"
#include "lockstep/cli/provenance.h"
#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMostJoined = 200;     // values of one axis that a line joins
constexpr std::size_t kMostDots = 50'000;    // of a panel
constexpr std::size_t kMostCells = 400'000;  // of a map

bool failed(ode::Status status) {
  return status == ode::Status::step_too_small || status == ode::Status::not_finite ||
         status == ode::Status::too_many_steps;
}

// The mean over time, by trapezoids between save points; of a single one its value.
double mean_of(const std::vector<double>& times, const double* states, std::size_t points, std::size_t stride) {
  if (points < 2 || times[0] == times[points - 1]) return states[0];
  double sum = 0;
  for (std::size_t i = 1; i < points; ++i) {
    sum += (times[i] - times[i - 1]) * (states[(i - 1) * stride] / 2 + states[i * stride] / 2);
  }
  return sum / (times[points - 1] - times[0]);
}

struct Reduced {
  std::vector<std::vector<double>> values;  // [component shown][trajectory]; NaN of those not finished or failed
  std::size_t failed = 0;
};

// One number of each trajectory: of save points, those up to its end, and for an extreme the end itself, which may lie
// behind the last of them.
Reduced reduce(const ode::ResultFile& file, const std::vector<std::size_t>& components, Reduction reduction) {
  Reduced reduced;
  reduced.values.assign(components.size(), std::vector<double>(file.trajectories(), kNone));
  const std::size_t width = file.components(), row = file.save_points() * width;
  const std::size_t rows = std::clamp<std::size_t>((std::size_t{1} << 20) / std::max<std::size_t>(row, 1), 1, 4096);
  std::vector<double> times = file.save_points() > 0 ? file.times(0) : std::vector<double>{};
  for (std::size_t first = 0; first < file.trajectories(); first += rows) {
    const std::size_t count = std::min(rows, file.trajectories() - first);
    const auto records = file.records(first, count);
    const bool ends = reduction == Reduction::end;
    std::vector<double> states, end_states;
    if (!ends) states = file.states<double>(first, count);
    if (reduction != Reduction::mean) end_states = file.end_states<double>(first, count);
    for (std::size_t i = 0; i < count; ++i) {
      if (!is_finished(records[i])) continue;
      if (failed(records[i].status)) {
        ++reduced.failed;
        continue;
      }
      if (reduction == Reduction::mean && file.times_per_trajectory()) times = file.times(first + i);
      for (std::size_t c = 0; c < components.size(); ++c) {
        double& value = reduced.values[c][first + i];
        if (ends) {
          value = end_states[i * width + components[c]];
          continue;
        }
        const double* of = states.data() + i * row + components[c];
        std::size_t points = 0;
        while (points < file.save_points() && !std::isnan(of[points * width])) ++points;
        if (reduction == Reduction::mean) {
          if (points > 0) value = mean_of(times, of, points, width);
          continue;
        }
        value = end_states[i * width + components[c]];
        for (std::size_t k = 0; k < points; ++k) {  // fmax and fmin: a NaN is none of the numbers
          const double next = of[k * width];
          value = reduction == Reduction::maximum ? std::fmax(value, next) : std::fmin(value, next);
        }
      }
    }
  }
  return reduced;
}

const char* text_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::maximum:
      return "maximum over time";
    case Reduction::minimum:
      return "minimum over time";
    case Reduction::mean:
      return "mean over time";
    case Reduction::end:
      break;
  }
  return "end state";
}

// An axis of values: in one dimension by themselves, of a map by the number of the cell, which is even in the values,
// their logarithms, or neither.
struct Scale {
  std::vector<double> sorted;  // each once
  ValueSpacing spacing = ValueSpacing::even;
  std::string name, unit;
  std::string parameter;  // its name, where it is one

  bool wants_logarithm(const FigureOptions& options) const {
    return spacing == ValueSpacing::logarithmic || (is_logarithmic(options, parameter) && sorted.front() > 0);
  }
  std::size_t cell(double value) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(sorted, value) - sorted.begin());
  }
  double place(double value) const {  // in cells
    const auto at = [&](double each) { return spacing == ValueSpacing::logarithmic ? std::log10(each) : each; };
    const double low = at(sorted.front()), high = at(sorted.back());
    return low < high ? (at(value) - low) / (high - low) * static_cast<double>(sorted.size() - 1) : 0;
  }
};

Scale scale_of(const ode::ResultFile& file, const SweepAxis& axis, const std::vector<double>& values) {
  Scale scale;
  scale.sorted = values;
  if (axis.kind == SweepAxis::Kind::parameter) scale.parameter = axis.name;
  std::ranges::sort(scale.sorted);
  scale.sorted.erase(std::unique(scale.sorted.begin(), scale.sorted.end()), scale.sorted.end());
  scale.spacing = spacing_of(scale.sorted);
  const std::vector<std::string> units = component_units(file);
  const bool has_unit = axis.kind == SweepAxis::Kind::initial_value && !units.empty();
  scale.name = axis.text();
  if (has_unit) scale.unit = units[axis.column];
  return scale;
}

std::string tick_text(double value) { return rounded_text(std::abs(value) < 1e-300 ? 0 : value, 6); }

// Values of a map's axis that get a number.
std::vector<double> ticks_of(const Scale& scale, std::size_t most) {
  const std::vector<double>& sorted = scale.sorted;
  if (scale.spacing != ValueSpacing::uneven && sorted.size() > 2) {
    return round_ticks(sorted.front(), sorted.back(), scale.spacing == ValueSpacing::logarithmic, most);
  }
  std::vector<double> ticks;
  const std::size_t step = (sorted.size() + most - 1) / most;
  for (std::size_t i = 0; i < sorted.size(); i += step) ticks.push_back(sorted[i]);
  return ticks;
}

// "set xtics ('1' 0, '10' 5)" of a map's axis.
std::string cell_ticks(const std::string& axis, const Scale& scale, std::size_t most) {
  const bool by_number = scale.spacing == ValueSpacing::uneven || scale.sorted.size() <= 2;
  std::string list;
  for (const double tick : ticks_of(scale, most)) {
    const double place = by_number ? static_cast<double>(scale.cell(tick)) : scale.place(tick);
    list += (list.empty() ? "'" : ", '") + tick_text(tick) + "' " + rounded_text(place, 9);
  }
  return "set " + axis + "tics (" + list + ")\n";
}

// An axis of the values themselves.
enum class Labels { none, numbers };
std::string logarithmic_ticks(const std::string& axis, double low, double high, std::size_t most, Labels labels) {
  std::string list;
  for (const double tick : round_ticks(low, high, true, most)) {
    list += (list.empty() ? "" : ", ") + ('\'' + (labels == Labels::none ? "" : tick_text(tick)) + "' ") +
            rounded_text(tick, 9);
  }
  return "set logscale " + axis + "\nset " + axis + "tics (" + list + ")\n";
}

// Viridis (van der Walt & Smith 2015).
constexpr const char* kMapColours =
    "set palette defined (0 '#440154', 1 '#482475', 2 '#414487', 3 '#355f8d', 4 '#2a788e', 5 '#21918c', 6 '#22a884', "
    "7 '#44bf70', 8 '#7ad151', 9 '#bddf26', 10 '#fde725')\n";

struct Picture {
  const ode::ResultFile& file;
  const FigureOptions& options;
  std::vector<std::size_t> components;
  std::vector<SweepAxis> axes;
  Reduced reduced;
  std::vector<std::size_t> finished;  // whose numbers are drawn

  const std::string& component_name(std::size_t panel) const { return file.component_names()[components[panel]]; }
};

// `in_a_cell`: the most trajectories that a colour of a map stands for.
std::string heading_of(const Picture& picture, PictureSize size, std::size_t in_a_cell = 1) {
  std::string what = text_of(picture.options.reduction) + std::string(" by ") + picture.axes[0].text();
  if (picture.axes.size() > 1) what += " and " + picture.axes[1].text();
  what += share_of_components(picture.file, picture.options.components);
  const std::size_t lost = picture.reduced.failed;
  std::string note = in_a_cell > 1 ? "mean of " + count_text(in_a_cell) + " in a cell" : "";
  if (lost != 0) note += (note.empty() ? "" : ", ") + count_text(lost) + " that failed left out";
  return heading(picture.file, what, picture.file.trajectories(), size, note);
}

Figure over_one(const Picture& picture) {
  const std::vector<double> at = sweep_values(picture.file, picture.axes[0]);
  const Scale scale = scale_of(picture.file, picture.axes[0], at);
  const bool logarithmic = scale.wants_logarithm(picture.options);
  const AxisLimits* const limits = limits_of(picture.options, scale.parameter);
  const bool joined = scale.sorted.size() == picture.file.trajectories() && scale.sorted.size() <= kMostJoined;
  std::vector<std::size_t> order = picture.finished;
  std::ranges::stable_sort(order, {}, [&](std::size_t trajectory) { return at[trajectory]; });
  const std::size_t step = (order.size() + kMostDots - 1) / kMostDots;
  Extent extent;
  for (const double value : scale.sorted) extent.cover(value);
  const Axis along = logarithmic ? Axis() : axis_of(picture.options, scale.parameter, extent);
  std::string script;
  std::vector<Axis> axes;
  for (std::size_t c = 0; c < picture.components.size(); ++c) {
    Extent values;
    for (const std::size_t trajectory : order) values.cover(picture.reduced.values[c][trajectory]);
    axes.push_back(axis_of(picture.options, picture.component_name(c), values));
    std::string rows;
    for (std::size_t i = 0; i < order.size(); i += step) {
      along.append(rows, at[order[i]]);
      axes[c].append(rows, picture.reduced.values[c][order[i]]);
      rows += '\n';
    }
    script += data_block("d" + std::to_string(c), rows);
  }
  Figure figure;
  figure.size = stacked_size(picture.components.size());
  script += heading_of(picture, figure.size);
  const Stack stack{picture.components.size(), figure.size, left_pixels(axes), 60, along.label(scale.name, scale.unit)};
  script += "set multiplot\nunset key\nset offsets graph 0.02, graph 0.02, graph 0.06, graph 0.06\n";
  const double low = limits != nullptr ? limits->low : scale.sorted.front();
  const double high = limits != nullptr ? limits->high : scale.sorted.back();
  if (logarithmic || limits != nullptr) {
    const double room = logarithmic && limits == nullptr ? std::pow(high / low, 0.02) : 1;
    script += "set xrange [" + rounded_text(along.shown(low / room), 9) + ':' +
              rounded_text(along.shown(high * room), 9) + "]\nset offsets 0, 0, graph 0.06, graph 0.06\n";
  }
  const double dot = std::clamp(20 / std::sqrt(static_cast<double>(order.size())), 0.3, 0.9);
  for (std::size_t panel = 0; panel < picture.components.size(); ++panel) {
    script += stacked_panel(stack, panel,
                            component_label(picture.file, picture.components[panel], axes[panel], label_pixels(stack)));
    script += axis_script(picture.options, "y", picture.component_name(panel), axes[panel]);
    if (logarithmic) {
      script += logarithmic_ticks("x", low, high, 9, panel + 1 < stack.panels ? Labels::none : Labels::numbers);
    }
    const std::string data = "$d" + std::to_string(panel) + " using 1:2 with ";
    script += "plot " + (joined ? data + "lines linewidth 0.8 linecolor rgb '#8fbfdf', " : std::string()) + data +
              "points pointtype 7 pointsize " + fixed_text(dot, 2) + " linecolor rgb '#0072b2'\n";
  }
  figure.script = script + "unset multiplot\n";
  return figure;
}

// Panels of two columns, each with its bar of colours.
struct Tiles {
  PictureSize size;
  std::size_t columns = 1;

  explicit Tiles(std::size_t panels) : columns(panels > 1 ? 2 : 1) {
    const std::size_t rows = (panels + columns - 1) / columns;
    size = {1600, 130 + static_cast<int>(rows) * (columns == 1 ? 970 : 640)};
  }

  // Margins, and the bar right of them; `left`: pixels for tick labels and the label beside them.
  std::string place(std::size_t panel, double left, double bar_ticks) const {
    const double width = static_cast<double>(size.width) / static_cast<double>(columns);
    const double height = columns == 1 ? 970 : 640;
    const double x = width * static_cast<double>(panel % columns);
    const double top = size.height - 130 - height * static_cast<double>(panel / columns);
    const double low = top - height + 115, right = x + width - 72 - 24 - bar_ticks - 40;
    return "set lmargin at screen " + screen(x + left, size.width) + "\nset rmargin at screen " +
           screen(right, size.width) + "\nset tmargin at screen " + screen(top, size.height) +
           "\nset bmargin at screen " + screen(low, size.height) + "\nset colorbox user origin screen " +
           screen(right + 20, size.width) + ", screen " + screen(low, size.height) + " size screen " +
           screen(24, size.width) + ", screen " + screen(top - low, size.height) + " noborder\n";
  }
};

Figure over_two(const Picture& picture) {
  std::array<std::vector<double>, 2> at;
  std::array<Scale, 2> scales;
  for (std::size_t a = 0; a < 2; ++a) {
    at[a] = sweep_values(picture.file, picture.axes[a]);
    scales[a] = scale_of(picture.file, picture.axes[a], at[a]);
  }
  const std::size_t columns = scales[0].sorted.size(), rows = scales[1].sorted.size();
  // Cells of a map are as even as the values, or their logarithms, are: on another axis they are dots.
  const bool as_spaced = std::ranges::all_of(scales, [&](const Scale& scale) {
    return limits_of(picture.options, scale.parameter) == nullptr &&
           (scale.spacing == ValueSpacing::logarithmic || !scale.wants_logarithm(picture.options));
  });
  const bool map = is_grid(columns, rows, picture.file.trajectories()) && columns * rows <= kMostCells && as_spaced;
  const std::size_t step = (picture.finished.size() + kMostDots - 1) / kMostDots;
  std::string script;
  std::vector<Axis> colours;
  double most_in_a_cell = 1;
  for (std::size_t c = 0; c < picture.components.size(); ++c) {
    const std::vector<double>& values = picture.reduced.values[c];
    std::string block;
    Extent extent;
    if (map) {  // of several in a cell the mean
      std::vector<double> sums(columns * rows), counts(columns * rows);
      for (const std::size_t i : picture.finished) {
        if (!std::isfinite(values[i])) continue;
        const std::size_t cell = scales[1].cell(at[1][i]) * columns + scales[0].cell(at[0][i]);
        sums[cell] += values[i];
        counts[cell] += 1;
      }
      for (std::size_t cell = 0; cell < sums.size(); ++cell) {
        extent.cover(sums[cell] / counts[cell]);
        most_in_a_cell = std::max(most_in_a_cell, counts[cell]);
      }
      colours.push_back(axis_of(picture.options, picture.component_name(c), extent));
      for (std::size_t cell = 0; cell < sums.size(); ++cell) {
        block += std::to_string(cell % columns) + ' ' + std::to_string(cell / columns);
        colours[c].append(block, sums[cell] / counts[cell]);
        block += '\n';
      }
    } else {
      for (const std::size_t i : picture.finished) extent.cover(values[i]);
      colours.push_back(axis_of(picture.options, picture.component_name(c), extent));
      for (std::size_t k = 0; k < picture.finished.size(); k += step) {
        const std::size_t i = picture.finished[k];
        if (!std::isfinite(values[i])) continue;
        append_number(block, at[0][i]);
        append_number(block, at[1][i]);
        colours[c].append(block, values[i]);
        block += '\n';
      }
    }
    script += data_block("d" + std::to_string(c), block);
  }
  const Tiles tiles(picture.components.size());
  Figure figure;
  figure.size = tiles.size;
  script += heading_of(picture, figure.size, static_cast<std::size_t>(most_in_a_cell)) + kMapColours +
            "set multiplot\nunset key\nset offsets " +
            std::string(map ? "0, 0, 0, 0" : "graph 0.03, graph 0.03, graph 0.03, graph 0.03") +
            "\nset cbtics scale 0.4 textcolor rgb '#333333'\n";
  const std::size_t most = tiles.columns == 1 ? 9 : 5;
  double left = 150;
  if (map || scales[1].wants_logarithm(picture.options)) {
    for (const double tick : ticks_of(scales[1], most)) {
      left = std::max(left, 100 + 16.5 * static_cast<double>(tick_text(tick).size()));
    }
  } else {
    Extent extent;
    for (const double value : scales[1].sorted) extent.cover(value);
    left = std::max(left, 96 + Axis(extent).tick_pixels());
  }
  const char* const names[] = {"x", "y"};
  for (std::size_t a = 0; a < 2; ++a) {
    const std::string axis = names[a];
    if (const AxisLimits* limits = limits_of(picture.options, scales[a].parameter)) {
      script += "set " + axis + "range [" + rounded_text(limits->low, 9) + ':' + rounded_text(limits->high, 9) + "]\n";
    }
    script += "set " + axis + "label " + gnuplot_text(with_unit(scales[a].name, scales[a].unit)) +
              " textcolor rgb '#333333'\n";
    if (map) {
      script += "set " + axis + "range [-0.5:" + std::to_string(scales[a].sorted.size() - 1) + ".5]\n" +
                cell_ticks(axis, scales[a], most) + "unset grid\n";
    } else if (scales[a].wants_logarithm(picture.options)) {
      script += logarithmic_ticks(axis, scales[a].sorted.front(), scales[a].sorted.back(), most, Labels::numbers);
    }
  }
  const double dot = std::clamp(20 / std::sqrt(static_cast<double>(picture.finished.size())), 0.3, 1.0);
  for (std::size_t panel = 0; panel < picture.components.size(); ++panel) {
    if (panel > 0) script += "unset label 1\nunset label 2\n";
    script += tiles.place(panel, left, colours[panel].tick_pixels()) +
              axis_script(picture.options, "cb", picture.component_name(panel), colours[panel]) + "set cblabel " +
              gnuplot_text(component_label(picture.file, picture.components[panel], colours[panel], 500)) +
              " offset 1.5,0 textcolor rgb '#333333'\nplot $d" + std::to_string(panel) + " using 1:2:3 with " +
              (map ? "image" : "points pointtype 7 pointsize " + fixed_text(dot, 2) + " linecolor palette") + "\n";
  }
  figure.script = script + "unset multiplot\n";
  return figure;
}

}  // namespace

std::string sweep_obstacle(const ode::ResultFile& file, const FigureOptions& options) {
  if (file.trajectories() < 2) return "fewer than two trajectories";
  const std::vector<SweepAxis> axes = sweep_axes(file, options.over);
  if (axes.empty()) {
    return "no parameter or initial value that alone differs between trajectories, nor two on a grid: name what to "
           "draw "
           "over with --over";
  }
  if (options.reduction != Reduction::end && file.save_points() < 2) return "a single save point";
  return {};
}

Figure sweep(const ode::ResultFile& file, const FigureOptions& options) {
  Picture picture{file, options, shown_components(file, options.components), sweep_axes(file, options.over), {}, {}};
  picture.reduced = reduce(file, picture.components, options.reduction);
  const FinishedTrajectories finished(file);
  for (std::size_t i = 0; i < finished.size(); ++i) picture.finished.push_back(finished[i]);
  for (const std::vector<double>& values : picture.reduced.values) {
    if (std::ranges::none_of(values, [](double value) { return std::isfinite(value); })) return {};
  }
  return picture.axes.size() == 1 ? over_one(picture) : over_two(picture);
}

}  // namespace lockstep::cli
