// lockstep.solve(): a problem file, or its sections as text with arrays and a model beside them.
#pragma once

#include <nanobind/nanobind.h>

namespace lockstep::python {

void bind_solve(nanobind::module_& module);

}  // namespace lockstep::python
