#include "lockstep/cli/plot/canvas.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

#include "lockstep/cli/plot/thinning.h"
#include "lockstep/cli/provenance.h"
#include "lockstep/cli/stored_problem.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/equal_part.h"
#include "lockstep/core/error.h"
#include "lockstep/core/hdf5_text.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kMostPanels = 6;
constexpr int kPanelPixels = 340;
constexpr int kTopPixels = 130;     // headings
constexpr int kBottomPixels = 115;  // tick labels and axis label
constexpr int kGapPixels = 34;
constexpr int kLeastLeftPixels = 170;
// Of a character, on the average.
constexpr double kCharacterPixels = 15, kSmallPixels = 11;
constexpr double kTitlePixels = 36;  // a title's type size of a PNG, 27 points, whose capitals may be as wide
constexpr int kTitleMargins = 60;    // left and right of it

// How wide a title is, in DejaVu Sans Bold: of letters beyond ASCII as wide as all but a few are at most.
double title_pixels(std::string_view title) {
  // Advances of " " to "~", in hundredths of the type size.
  static constexpr std::array<std::uint8_t, 95> kAdvances{
      35, 46, 52, 84, 70, 100, 87, 31,  46,  46, 52, 84, 38, 42, 38, 37, 70, 70, 70, 70, 70, 70,  70, 70,
      70, 70, 40, 40, 84, 84,  84, 58,  100, 77, 76, 73, 83, 68, 68, 82, 84, 37, 37, 77, 64, 100, 84, 85,
      73, 85, 77, 72, 68, 81,  77, 110, 77,  72, 73, 46, 37, 46, 84, 50, 50, 67, 72, 59, 72, 68,  44, 72,
      71, 34, 34, 67, 34, 104, 71, 69,  72,  72, 49, 60, 48, 71, 65, 92, 65, 65, 58, 71, 37, 71,  84};
  double hundredths = 0;
  for (const char c : title) {
    if (c >= ' ' && c <= '~') hundredths += kAdvances[static_cast<std::size_t>(c - ' ')];
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0xc0) hundredths += 100;  // the first of a character's
  }
  return hundredths / 100 * kTitlePixels;
}

// Of a title that is wider than so many pixels less, but some characters in any case.
std::string title_within(double pixels, const std::string& title) {
  constexpr std::size_t kLeast = 10;
  std::size_t most = std::max(kLeast, title.size());
  while (most > kLeast && title_pixels(shortened(title, most)) > pixels) --most;
  return shortened(title, most);
}

// How the numbers were made: method, tolerances or steps, precision.
std::vector<std::string> settings_of(const ode::ResultFile& file) {
  std::vector<std::string> parts{file.text_attribute("method")};
  const auto rtol = file.attribute("rtol");
  const auto atol = file.attribute("atol");
  const auto dt = file.attribute("dt");
  if (rtol) parts.push_back("rtol " + hdf5::to_text(*rtol));
  const auto* each = atol ? std::get_if<std::vector<double>>(&*atol) : nullptr;
  if (each != nullptr && !each->empty()) {
    const auto [least, most] = std::ranges::minmax(*each);
    parts.push_back("atol " + number_text(least) + " to " + number_text(most));
  } else if (atol) {
    parts.push_back("atol " + hdf5::to_text(*atol));
  }
  if (dt) parts.push_back("steps of " + hdf5::to_text(*dt));
  parts.push_back(file.precision() == Precision::f32 ? "float32" : "float64");
  std::erase(parts, "");
  return parts;
}

// How many trajectories, of how many, and what more is known of what is shown.
std::vector<std::string> shown_parts(const ode::ResultFile& file, std::size_t shown, const std::string& times) {
  std::string text = counted_text(file.trajectories(), "trajectory");
  if (shown < file.trajectories()) text = count_text(shown) + " of " + text;
  const std::size_t open = ode::count_cancelled(file.hdf5());
  if (open > 0) text += ", " + count_text(file.trajectories() - open) + " finished";
  if (times.empty()) return {text};
  return {text, times};
}

std::string joined(const std::vector<std::string>& parts, const std::string& between) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : between) + part;
  return text;
}

constexpr const char* kBetween = "  ·  ";

std::string provenance_line(const ode::ResultFile& file, std::size_t shown, const std::string& times) {
  std::vector<std::string> parts = shown_parts(file, shown, times);
  for (std::string& part : settings_of(file)) parts.push_back(std::move(part));
  parts.push_back(file.path().filename().string());
  const std::string version = file.text_attribute("version");
  if (!version.empty()) parts.push_back("lockstep " + version);
  return joined(parts, kBetween);
}

// "3 of 10 trajectories  ·  net.h5: tsit5, rtol 1e-06, ...  ·  truth.h5: vern9, ..."; once where they are the same.
std::string provenance_line(const ode::ResultFile& file, const ode::ResultFile& other, std::size_t shown,
                            const std::string& times) {
  std::vector<std::string> parts = shown_parts(file, shown, times);
  const std::vector<std::string> ours = settings_of(file), theirs = settings_of(other);
  if (ours == theirs) {
    parts.push_back("both " + joined(ours, ", "));
  } else {
    parts.push_back(file.path().filename().string() + ": " + joined(ours, ", "));
    parts.push_back(other.path().filename().string() + ": " + joined(theirs, ", "));
  }
  return joined(parts, kBetween);
}

// `subtitle`: the small print.
std::string heading_over(const std::string& subtitle, const ode::ResultFile& file, const std::string& what,
                         PictureSize size) {
  const std::string title = file.text_attribute("title");
  // Of a long title less; what the picture shows is said in any case.
  const double left = size.width - kTitleMargins - title_pixels(": " + what);
  return headings((title.empty() ? "" : title_within(left, title) + ": ") + what, subtitle, size) + quiet_axes() +
         "set key textcolor rgb '#333333' samplen 1.5\n"
         "set style fill solid 1.0 noborder\n"
         "set format '%g'\n"
         "set autoscale noextend\n"
         "set offsets 0, 0, graph 0.06, graph 0.06\n";
}

double panel_pixels(const Stack& stack) {
  const auto panels = static_cast<double>(stack.panels);
  return (stack.size.height - kTopPixels - kBottomPixels - (panels - 1) * kGapPixels) / panels;
}

// The curve goes on from behind each impulse.
void add_impulses(const ode::ResultFile& file, std::size_t trajectory, double end, Curve& curve) {
  const Jumps jumps(file, trajectory);
  if (jumps.none()) return;
  const std::size_t components = file.components();
  Curve whole;
  for (std::size_t k = 0; k < curve.times.size(); ++k) {
    const double time = curve.times[k];
    std::vector<double> state(curve.states.begin() + static_cast<std::ptrdiff_t>(k * components),
                              curve.states.begin() + static_cast<std::ptrdiff_t>((k + 1) * components));
    const auto add = [&] {
      whole.times.push_back(time);
      whole.states.insert(whole.states.end(), state.begin(), state.end());
    };
    add();
    if (!jumps.any_at(time) || !(time < end)) continue;
    jumps.apply(time, state);
    add();
  }
  curve = std::move(whole);
}

}  // namespace

std::string screen(double pixels, int extent) { return fixed_text(pixels / extent, 5); }

std::string small_font() { return "font 'DejaVu Sans,' . (GPVAL_TERM eq 'svg' ? '9' : '17')"; }

std::string headings(const std::string& title, const std::string& subtitle, PictureSize size) {
  const std::string left = " at screen " + screen(40, size.width) + ",";
  const int room = size.width - kTitleMargins;
  return "set label 1 " + gnuplot_text(title_within(room, title)) + left + screen(size.height - 44, size.height) +
         " left font (GPVAL_TERM eq 'svg' ? 'DejaVu Sans,15' : 'DejaVu Sans:Bold,27') front\n"
         "set label 2 " +
         gnuplot_text(shortened(subtitle, static_cast<std::size_t>(room / kSmallPixels))) + left +
         screen(size.height - 92, size.height) + " left textcolor rgb '#666666' " + small_font() + " front\n";
}

std::string quiet_axes() {
  return "set border 3 linecolor rgb '#888888' linewidth 0.6\n"
         "set tics nomirror out scale 0.5 textcolor rgb '#333333'\n"
         "set grid linetype 1 linecolor rgb '#e4e4e4' linewidth 0.5\n";
}

std::string heading(const ode::ResultFile& file, const std::string& what, std::size_t shown, PictureSize size,
                    const std::string& times) {
  return heading_over(provenance_line(file, shown, times), file, what, size);
}

std::string heading(const ode::ResultFile& file, const ode::ResultFile& other, const std::string& what,
                    std::size_t shown, PictureSize size, const std::string& times) {
  return heading_over(provenance_line(file, other, shown, times), file, what, size);
}

int key_pixels(std::size_t characters) {
  constexpr std::size_t kLeast = 290, kAround = 110, kCharacter = 16;
  return static_cast<int>(std::max(kLeast, kAround + kCharacter * characters));
}

PictureSize stacked_size(std::size_t panels) {
  const int count = static_cast<int>(panels);
  const int panel = count == 1 ? 2 * kPanelPixels : kPanelPixels;
  return {1600, kTopPixels + count * panel + (count - 1) * kGapPixels + kBottomPixels};
}

std::size_t characters_in(double pixels) { return static_cast<std::size_t>(pixels / kCharacterPixels); }

int left_pixels(const std::vector<Axis>& axes) {
  constexpr double kLabel = 96;  // and what lies around it
  double left = kLeastLeftPixels;
  for (const Axis& axis : axes) left = std::max(left, kLabel + axis.tick_pixels());
  return static_cast<int>(left);
}

double label_pixels(const Stack& stack) { return panel_pixels(stack) + kGapPixels; }

std::string stacked_panel(const Stack& stack, std::size_t index, const std::string& label) {
  const auto& [count, size, left, right, time] = stack;
  const double panel = panel_pixels(stack);
  const double top = size.height - kTopPixels - static_cast<double>(index) * (panel + kGapPixels);
  std::string script;
  script += "set lmargin at screen " + screen(left, size.width) + "\n";
  script += "set rmargin at screen " + screen(size.width - right, size.width) + "\n";
  script += "set tmargin at screen " + screen(top, size.height) + "\n";
  script += "set bmargin at screen " + screen(top - panel, size.height) + "\n";
  // Names stand in one column, whatever the width of the numbers.
  script += "set label 3 " + gnuplot_text(label) + " at screen " + screen(44, size.width) + "," +
            screen(top - panel / 2, size.height) + " center " + (label.size() > 3 ? "rotate by 90 " : "norotate ") +
            "textcolor rgb '#333333'\n";
  script += "set ytics autofreq\n";
  if (index + 1 == count) {
    script += "set format x '%g'\nset xlabel " + gnuplot_text(time) + " textcolor rgb '#333333'\n";
  } else {
    script += "set format x ''\nunset xlabel\n";
  }
  if (index > 0) script += "unset label 1\nunset label 2\n";
  return script;
}

std::vector<std::size_t> shown_components(const ode::ResultFile& file, const std::vector<std::size_t>& asked) {
  if (!asked.empty()) return asked;
  std::vector<std::size_t> first(std::min(file.components(), kMostPanels));
  for (std::size_t i = 0; i < first.size(); ++i) first[i] = i;
  return first;
}

void require_finite_states(const ode::ResultFile& file, const std::vector<std::size_t>& asked) {
  const auto refuse = [&](const std::string& found, const std::string& remedy) {
    throw Error(ErrorKind::file, {file.path().string(), found, "finite states to draw", remedy});
  };
  if (file.components() == 0) refuse("no components", {});
  constexpr std::size_t kBytes = std::size_t{1} << 22;
  const std::size_t row = file.save_points() * file.components();
  const std::size_t rows = std::max<std::size_t>(kBytes / (std::max<std::size_t>(row, 1) * sizeof(double)), 1);
  std::vector<std::size_t> open = shown_components(file, asked);
  constexpr double kLargestDrawn = 4e307;  // and its negative: gnuplot takes what is twice as large for infinite
  bool finite = false;                     // some state of those that are open
  bool any_finished = false;
  for (std::size_t first = 0; first < file.trajectories() && row > 0 && !open.empty(); first += rows) {
    const std::size_t count = std::min(rows, file.trajectories() - first);
    const auto records = file.records(first, count);
    const auto states = file.states<double>(first, count), ends = file.end_states<double>(first, count);
    any_finished = any_finished || std::ranges::any_of(records, is_finished);
    std::erase_if(open, [&](std::size_t component) {
      for (const auto* numbers : {&states, &ends}) {
        for (std::size_t at = component; at < numbers->size(); at += file.components()) {
          if (!is_finished(records[at * count / numbers->size()])) continue;
          const double size = std::abs((*numbers)[at]);
          finite = finite || std::isfinite(size);
          if (size < kLargestDrawn) return true;
        }
      }
      return false;
    });
  }
  if (file.trajectories() == 0 || row == 0 || open.empty()) return;
  if (!any_finished) refuse("no trajectory that is finished", "wait for the first, or finish the solve with --resume");
  if (finite) {
    refuse("no state of " + file.component_names()[open.front()] + " that is smaller than 4e307",
           "choose other --components, or scale it: gnuplot draws no larger ones");
  }
  refuse("no finite state of " + file.component_names()[open.front()],
         "choose other --components, or see how its trajectories ended: lockstep info");
}

bool is_logarithmic(const FigureOptions& options, const std::string& name) {
  return std::ranges::find(options.logarithmic, name) != options.logarithmic.end();
}

const AxisLimits* limits_of(const FigureOptions& options, const std::string& name) {
  const auto found = std::ranges::find(options.limits, name, &AxisLimits::name);
  return found != options.limits.end() ? &*found : nullptr;
}

Axis axis_of(const FigureOptions& options, const std::string& name, Extent extent) {
  if (const AxisLimits* limits = limits_of(options, name)) extent = {limits->low, limits->high};
  if (!is_logarithmic(options, name)) return Axis(extent);
  if (!(extent.high > 0)) {
    throw Error(ErrorKind::invalid_argument, {"--log", name + ", which is nowhere above 0",
                                              "positive numbers on a logarithmic axis", "leave it out"});
  }
  return Axis(extent, Scaling::logarithmic);
}

std::string axis_script(const FigureOptions& options, const std::string& which, const std::string& name,
                        const Axis& axis) {
  std::string range = "[*:*]";
  if (const AxisLimits* limits = limits_of(options, name)) {
    range = "[";
    append_number(range, axis.shown(limits->low));
    range += ':';
    append_number(range, axis.shown(limits->high));
    range += ']';
  }
  return (is_logarithmic(options, name) ? "set logscale " : "unset logscale ") + which + "\nset " + which + "range " +
         range + '\n';
}

std::string component_label(const ode::ResultFile& file, std::size_t component, const Axis& axis, double pixels) {
  const std::vector<std::string> units = component_units(file);
  return axis.label(file.component_names()[component], units.empty() ? std::string() : units[component],
                    characters_in(pixels));
}

std::string time_label(const ode::ResultFile& file, const Axis& axis) { return axis.label("time", time_unit(file)); }

std::string share_of_components(const ode::ResultFile& file, const std::vector<std::size_t>& asked) {
  if (!asked.empty() || file.components() <= kMostPanels) return {};
  return ", " + std::to_string(kMostPanels) + " of " + counted_text(file.components(), "component");
}

std::vector<std::size_t> evenly_chosen(const FinishedTrajectories& from, std::size_t wanted) {
  const std::size_t count = std::min(from.size(), wanted);
  std::vector<std::size_t> chosen(count);
  for (std::size_t i = 0; i < count; ++i) chosen[i] = from[count < 2 ? 0 : i * (from.size() - 1) / (count - 1)];
  return chosen;
}

std::vector<double> values_of(const Curve& curve, std::size_t component, std::size_t components) {
  std::vector<double> values;
  for (std::size_t i = component; i < curve.states.size(); i += components) values.push_back(curve.states[i]);
  return values;
}

Jumps::Jumps(const ode::ResultFile& file, std::size_t trajectory)
    : impulses_(file.impulses(trajectory, 1).impulses), components_(file.components()) {
  if (impulses_.empty()) return;
  std::ranges::stable_sort(impulses_, {}, &ode::Impulse::time);
  const std::vector<std::size_t> stored = stored_components(file);
  if (stored.empty()) return;
  for (ode::Impulse& impulse : impulses_) {
    const auto found = std::ranges::find(stored, impulse.component);
    impulse.component = static_cast<std::size_t>(found - stored.begin());
  }
}

bool Jumps::any_at(double time) const { return std::ranges::binary_search(impulses_, time, {}, &ode::Impulse::time); }

void Jumps::apply(double time, std::span<double> state) const {
  for (const ode::Impulse& impulse : equal_part(impulses_, time, &ode::Impulse::time)) {
    if (impulse.component < components_) state[impulse.component] = impulse.behind(state[impulse.component]);
  }
}

Jumps shared_jumps(const ode::ResultFile& file) {
  const ode::ImpulseForm& form = file.impulse_form();
  return form.uneven || form.own_times ? Jumps() : Jumps(file, 0);
}

Jumps jumps_of(const ode::ResultFile& file, std::size_t trajectory, const Jumps& shared) {
  return !shared.none() && file.impulse_form().differ() ? Jumps(file, trajectory) : shared;
}

Curve curve_of(const ode::ResultFile& file, std::size_t trajectory) {
  Curve curve{file.times(trajectory), file.states<double>(trajectory, 1)};
  const ode::TrajectoryRecord record = file.records(trajectory, 1).front();
  add_impulses(file, trajectory, record.end_time, curve);
  if (record.status == ode::Status::success) return curve;
  // What it did not reach is NaN. A training range that was left and only marked stops nothing.
  std::size_t kept = 0;
  while (kept < curve.times.size() && !std::isnan(curve.states[kept * file.components()])) ++kept;
  if (kept == curve.times.size()) return curve;
  const std::vector<double> end = file.end_states<double>(trajectory, 1);
  curve.times.resize(kept);
  curve.times.push_back(record.end_time);
  curve.states.resize(kept * file.components());
  curve.states.insert(curve.states.end(), end.begin(), end.end());
  curve.stopped = true;
  return curve;
}

std::string curve_rows(const Curve& curve, const std::vector<double>& values, const Axis& time_axis, const Axis& axis) {
  std::string rows;
  for (const std::size_t time : thinned({values}, bins_of(values.size()))) {
    time_axis.append(rows, curve.times[time]);
    axis.append(rows, values[time]);
    rows += '\n';
  }
  return rows;
}

void append_number(std::string& text, double value) {
  if (!std::isfinite(value)) {
    text += " nan";
    return;
  }
  text += ' ';
  text += rounded_text(value, 9);
}

std::string data_block(const std::string& name, const std::string& rows) {
  return "$" + name + " << EOD\n" + rows + "EOD\n";
}

}  // namespace lockstep::cli
