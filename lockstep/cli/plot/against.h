// Pictures of one result file against another of the same problem: a net's solution against the truth.
#pragma once

#include <string>

#include "lockstep/cli/plot/figures.h"

namespace lockstep::cli {

// Throws Error (invalid_argument) when the files do not have the same components, trajectories and save points.
void require_comparable(const ode::ResultFile& file, const ode::ResultFile& truth);

// Components over time, a panel each: `file` as lines over `truth` as wide grey ones, for a few trajectories.
Figure overlay(const ode::ResultFile& file, const ode::ResultFile& truth, const FigureOptions& options);

// Distance between the two over time, of all trajectories: median and 90 %, those that left the net's training range
// apart from those that did not. The distance is the root mean square over components. No script where nothing that is
// finite in both differs.
Figure distance(const ode::ResultFile& file, const ode::ResultFile& truth, const FigureOptions& options);

}  // namespace lockstep::cli
