// Where steps end and how long they may be for what tables tell of the time: measured inputs come and go, and a step
// that passes over all of it sees no error.
#pragma once

#include <optional>
#include <string>

#include "lockstep/nn/time_features.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"

namespace lockstep::cli {

// Sets max_step of adaptive steps that do not stop at knots, where none is given. Returns what to tell of that, ""
// where nothing was set.
std::string limit_steps(const std::optional<nn::TimeFeature>& feature, ode::Options& options);

// What to tell of steps that end at times of their own, "steps end at 24 times ...", else "".
std::string text_of_stops(const ode::Problem& problem, const ode::Options& options);

// Of steps that are longer, as the file states them, and do not stop at knots, or that pass over jumps: a note. Of the
// problem it reads the right-hand side and the spans, of which it looks at the first 64.
std::optional<std::string> note_of_steps(const std::optional<nn::TimeFeature>& feature, const ode::Problem& problem,
                                         const ode::Options& options);

}  // namespace lockstep::cli
