// lockstep.solve(): a problem file, or its sections as text with arrays and a model beside them.
#pragma once

#include <nanobind/nanobind.h>

#include "lockstep/cli/problem_setup.h"

namespace lockstep::python {

// Whether `times` the work of this solve ends before somebody waits for an answer to Ctrl-C, even where trajectories
// make all the steps they may.
bool is_short(const cli::ProblemSetup& setup, double times = 1);

void bind_solve(nanobind::module_& module);

}  // namespace lockstep::python
