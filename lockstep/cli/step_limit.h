// Steps short enough for what tables tell of the time: measured inputs come and go, and an adaptive step that passes
// over all of it sees no error.
#pragma once

#include <optional>
#include <string>

#include "lockstep/nn/time_features.h"
#include "lockstep/ode/options.h"

namespace lockstep::cli {

// Sets max_step of adaptive steps where none is given; returns what to tell of that, "" where nothing was set.
std::string limit_steps(const std::optional<nn::TimeFeature>& feature, ode::Options& options);

// Of steps that are longer, as the file states them: a note.
std::optional<std::string> note_of_long_steps(const std::optional<nn::TimeFeature>& feature,
                                              const ode::Options& options);

}  // namespace lockstep::cli
