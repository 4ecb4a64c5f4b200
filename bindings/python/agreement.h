// lockstep.validate(): whether one solution, in memory or in a file, is a faithful port of another.
#pragma once

#include <nanobind/nanobind.h>

namespace lockstep::python {

void bind_agreement(nanobind::module_& module);

}  // namespace lockstep::python
