// What is to be said of nets and tables that read the time where spans leave what they know.
#pragma once

#include <string>
#include <vector>

#include "lockstep/nn/guarded_calls.h"
#include "lockstep/ode/problem.h"

namespace lockstep::cli {

void add_time_note(const nn::KnownTimes& known, const ode::Problem& problem, std::vector<std::string>& notes);

// Between times `least` and `most`, of a training's data.
void add_time_note(const nn::KnownTimes& known, double least, double most, std::vector<std::string>& notes);

}  // namespace lockstep::cli
