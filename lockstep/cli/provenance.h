// Where a result comes from, as attributes of its file: the problem, how it was solved, and by what.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "lockstep/cli/problem_file.h"
#include "lockstep/cli/problem_setup.h"
#include "lockstep/ode/result_file.h"
#include "lockstep/ode/solve.h"

namespace lockstep::cli {

// 32 hexadecimal digits over all that decides the numbers of `state`: equation, initial states, parameters, times,
// event, resets, impulses. Equal for equal problems, whatever the file they were written in.
std::string problem_digest(const ode::Problem& problem);

using WallClock = std::chrono::system_clock;
// A line of the `history` attribute: the time and the command.
std::string history_line(const std::string& command_line, WallClock::time_point when = WallClock::now());
// The same above the history of the file that the command starts from.
std::string history_line(const std::string& command_line, const ode::ResultFile& from);

// Units of states and times as attributes of their datasets, where they are known; the file is being made.
void describe_units(hdf5::File& file, const ProblemSetup& setup);
// What a file says of them, by component; empty where it says nothing.
std::vector<std::string> component_units(const ode::ResultFile& file);
std::string time_unit(const ode::ResultFile& file);

// Known before the solve, which began then.
ode::Attributes describe_problem(const ProblemFile& file, const ProblemSetup& setup, const std::string& command_line,
                                 WallClock::time_point when = WallClock::now());
// Known after it; of the last run where the file was made in several, but for totals.
ode::Attributes describe_run(const ode::Summary& summary);
// Where the run will take place: a summary without counts, so that attributes that are written before the run need not
// change after it.
ode::Summary planned_run(const ProblemSetup& setup);

// The attributes that decide the numbers: a run may be continued where all of them are equal.
std::vector<std::string> deciding_attributes();

std::string to_string(ode::StepControl control);  // "per_trajectory", as problem files write it

}  // namespace lockstep::cli
