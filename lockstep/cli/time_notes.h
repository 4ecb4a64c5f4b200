// What is to be said of nets and tables that read the time where spans leave what they know.
#pragma once

#include <string>
#include <vector>

#include "lockstep/nn/guarded_calls.h"

namespace lockstep::cli {

// Of spans or data between times `least` and `most`; nothing within what it knows.
void add_time_note(const nn::KnownTimes& known, double least, double most, std::vector<std::string>& notes);

}  // namespace lockstep::cli
