// What is to be said of nets and tables that read the time where spans leave what they know.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/nn/guarded_calls.h"
#include "lockstep/ode/problem.h"

namespace lockstep::cli {

// Of spans or data between times `least` and `most`; nothing within what it knows.
void add_time_note(const nn::KnownTimes& known, double least, double most, std::vector<std::string>& notes);

// Of what reads the time in float32, as people call it, where that is coarse for the problem's spans; else nothing.
std::optional<std::string> coarse_time_note(const ode::Problem& problem, const std::string& reader);

// Of stops that no span reaches; else nothing.
std::optional<std::string> far_stops_note(const ode::Problem& problem, const std::vector<double>& stops);

// Of a unit of time as "hours since start", which programs that know netCDF's conventions take for dates that they
// cannot read; else nothing.
std::optional<std::string> date_note(const std::string& unit);

}  // namespace lockstep::cli
