// What all figures have in common: headings, grid, colours, panels, and data as gnuplot reads it.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "lockstep/cli/plot/axis.h"
#include "lockstep/cli/plot/figures.h"
#include "lockstep/cli/plot/finished.h"
#include "lockstep/cli/plot/gnuplot.h"
#include "lockstep/ode/result_file.h"

namespace lockstep::cli {

// Okabe & Ito's colours, told apart by people with any colour vision ("Color Universal Design", 2008), strongest first.
inline constexpr std::array<const char*, 7> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                     "#e69f00", "#56b4e9", "#000000"};

// Pixels from the left or the bottom of a picture of so many, as a share of it.
std::string screen(double pixels, int extent);
// "font ..." of small print, in the file's kind of picture.
std::string small_font();
// Labels 1 and 2: a title, and a line of small print below it.
std::string headings(const std::string& title, const std::string& subtitle, PictureSize size);
std::string quiet_axes();  // and grid

// Headings of a result file, the small print its provenance, which begins with how many trajectories, of how many that
// are finished, and times are shown, and quiet axes. `times`: as of times_text.
std::string heading(const ode::ResultFile& file, const std::string& what, std::size_t shown, PictureSize size,
                    const std::string& times = {});
// Of two files of the same ensemble: their settings one after the other.
std::string heading(const ode::ResultFile& file, const ode::ResultFile& other, const std::string& what,
                    std::size_t shown, PictureSize size, const std::string& times);

// Right of the panels, for a key that lies there: room for its longest title.
int key_pixels(std::size_t characters);

std::size_t characters_in(double pixels);  // that there is room for, on the average
// From the left edge to the axis: room for the widest tick label of some axes, and for a label beside it.
int left_pixels(const std::vector<Axis>& axes);

// Panels stacked over a common time axis; the last one carries its label.
struct Stack {
  std::size_t panels = 1;
  PictureSize size;
  int left = 0, right = 0;  // pixels
  std::string time_label;
};
double label_pixels(const Stack& stack);  // for the label of a panel
std::string stacked_panel(const Stack& stack, std::size_t index, const std::string& label);
PictureSize stacked_size(std::size_t panels);

// Components asked for, or the first few.
std::vector<std::size_t> shown_components(const ode::ResultFile& file, const std::vector<std::size_t>& asked);
// The axis of what is called so, as the options want it: over `extent` where they give no limits. Throws Error
// (invalid_argument) where it is to be logarithmic and nothing is above 0.
Axis axis_of(const FigureOptions& options, const std::string& name, Extent extent);
// "set logscale y", "set yrange ..", or what undoes them: `which` is gnuplot's x, y or cb.
std::string axis_script(const FigureOptions& options, const std::string& which, const std::string& name,
                        const Axis& axis);

// Its name, as much of it as there is room for, and its unit where the file knows it: "temperature (K)".
std::string component_label(const ode::ResultFile& file, std::size_t component, const Axis& axis, double pixels);
std::string time_label(const ode::ResultFile& file, const Axis& axis);  // "time (s)"
// ", 6 of 40 components" for headings; "" where all are shown, or those that were asked for.
std::string share_of_components(const ode::ResultFile& file, const std::vector<std::size_t>& asked);
// Evenly chosen from some, first and last among them.
std::vector<std::size_t> evenly_chosen(const FinishedTrajectories& from, std::size_t wanted);

// What the impulses of a trajectory make of its state. A save point at one holds the state before it.
class Jumps {
 public:
  Jumps() = default;  // none
  Jumps(const ode::ResultFile& file, std::size_t trajectory);

  bool none() const { return impulses_.empty(); }
  bool any_at(double time) const;
  void apply(double time, std::span<double> state) const;  // of all of the file's components

 private:
  std::vector<ode::Impulse> impulses_;  // in the order of time, of the file's components
  std::size_t components_ = 0;
};
// Whose times are those of all trajectories: none where each has its own.
Jumps shared_jumps(const ode::ResultFile& file);
// Of a trajectory, at those times.
Jumps jumps_of(const ode::ResultFile& file, std::size_t trajectory, const Jumps& shared);

// A save point, or what lies behind the impulses of one.
struct Instant {
  std::size_t time;  // index
  bool behind = false;
};

// A trajectory as it is drawn: its save points up to its end, and the end itself where an event or a failure came
// between them.
struct Curve {
  std::vector<double> times;
  std::vector<double> states;  // [time][component]
  bool stopped = false;        // by an event or a failure, before the last save point
};
Curve curve_of(const ode::ResultFile& file, std::size_t trajectory);
// A component of it, of so many.
std::vector<double> values_of(const Curve& curve, std::size_t component, std::size_t components);
// Columns: time and the component. Of a long curve fewer rows (thinning.h).
std::string curve_rows(const Curve& curve, const std::vector<double>& values, const Axis& time_axis, const Axis& axis);

// "nan" where there is no number: gnuplot leaves a gap.
void append_number(std::string& text, double value);

// A named data block; rows are lines.
std::string data_block(const std::string& name, const std::string& rows);

}  // namespace lockstep::cli
