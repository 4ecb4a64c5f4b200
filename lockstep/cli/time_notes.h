// What is to be said of nets and tables that read the time where spans leave what they know, or
// steps end at jumps.
#pragma once

#include <string>
#include <vector>

#include "lockstep/nn/guarded_calls.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"

namespace lockstep::cli {

void add_time_notes(const nn::KnownTimes& known, const ode::Problem& problem, const ode::Options& options,
                    std::vector<std::string>& notes);

// Between times `least` and `most`, of a training's data.
void add_time_notes(const nn::KnownTimes& known, double least, double most, const ode::Options& options,
                    std::vector<std::string>& notes);

}  // namespace lockstep::cli
