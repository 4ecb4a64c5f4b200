// Equations written as text, for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace lockstep::python {

void bind_equations(nanobind::module_& module);

}  // namespace lockstep::python
