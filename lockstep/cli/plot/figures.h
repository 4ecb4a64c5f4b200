// The pictures of a result file, as gnuplot scripts.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/cli/plot/gnuplot.h"
#include "lockstep/ode/result_file.h"

namespace lockstep::cli {

// What a sweep shows of each trajectory.
enum class Reduction { end, maximum, minimum, mean };

// From where to where an axis goes, in the file's numbers.
struct AxisLimits {
  std::string name;
  double low = 0, high = 0;
};

struct FigureOptions {
  std::vector<std::size_t> components;      // to show, in order; empty: the figure's own choice
  std::optional<std::size_t> trajectories;  // how many, evenly chosen; otherwise the figure's own choice
  std::vector<std::string> over = {};       // of a sweep: one or two parameters or components; empty: its own choice
  std::vector<std::string> logarithmic = {};  // axes, by what they show: components, "time", of a sweep parameters
  std::vector<AxisLimits> limits = {};        // likewise
  Reduction reduction = Reduction::end;     // of a sweep
};

bool is_logarithmic(const FigureOptions& options, const std::string& name);
const AxisLimits* limits_of(const FigureOptions& options, const std::string& name);  // null without

struct Figure {
  std::string script;
  PictureSize size;
};

// Components over time, a panel each, a few trajectories. Needs two save points.
Figure time_series(const ode::ResultFile& file, const FigureOptions& options);
// One component against another, coloured by time. Needs two components; of one save point it is a scatter plot.
Figure phase_portrait(const ode::ResultFile& file, const FigureOptions& options);
// Median and bands of 50 % and 90 % of the ensemble over time. Needs two save points shared by all, two trajectories.
Figure ensemble_spread(const ode::ResultFile& file, const FigureOptions& options);

// Events over time, a row for each trajectory, and their rate in the whole ensemble. Needs a file that keeps some.
Figure raster(const ode::ResultFile& file, const FigureOptions& options);

// One number of each trajectory, by one or two parameters or initial values that differ between them. Empty where a
// component has none in any, for all failed.
Figure sweep(const ode::ResultFile& file, const FigureOptions& options);

// Why the file does not suit a figure, or empty.
std::string sweep_obstacle(const ode::ResultFile& file, const FigureOptions& options);
std::string time_series_obstacle(const ode::ResultFile& file);
std::string phase_portrait_obstacle(const ode::ResultFile& file);
std::string ensemble_spread_obstacle(const ode::ResultFile& file);
std::string raster_obstacle(const ode::ResultFile& file);

// Throws Error (file) where a component that is to be shown has no finite state anywhere: gnuplot would blame its
// script.
void require_finite_states(const ode::ResultFile& file, const std::vector<std::size_t>& asked);

}  // namespace lockstep::cli
