// The published non-stiff problems that the oracle, the accuracy tests and the work-precision tables share.
#pragma once

#include <string>
#include <vector>

#include "lockstep/ode/problem.h"

namespace lockstep::validation {

struct PublishedProblem {
  std::string name;       // in oracle_values.csv and in work-precision tables
  std::string equations;  // which of oracle.cpp's
  std::string source;     // where it was published
  ode::Problem problem;   // one trajectory, end state only
};

// Initial states and parameters are the float64 numbers nearest to the published ones, and the oracle starts from
// exactly these.
const std::vector<PublishedProblem>& published_problems();

// The 25 of the DETEST set, by detest.cpp.
void add_detest_problems(std::vector<PublishedProblem>& to);

// By name; throws Error (invalid_argument) with the nearest known one.
const PublishedProblem& published_problem(const std::string& name);

}  // namespace lockstep::validation
