// lockstep.Solver: one problem again and again, with other initial states and parameters.
#pragma once

#include <nanobind/nanobind.h>

namespace lockstep::python {

void bind_solver(nanobind::module_& module);

}  // namespace lockstep::python
