// lockstep.solve(): a problem file, or its sections as text with arrays and a model beside them, into memory or a file.
#pragma once

#include <nanobind/nanobind.h>

namespace lockstep::python {

void bind_solve(nanobind::module_& module);

}  // namespace lockstep::python
