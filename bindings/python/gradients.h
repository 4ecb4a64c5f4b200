// Derivatives through a solve that is in memory: of its saved states and ends.
#pragma once

#include <nanobind/nanobind.h>

namespace lockstep::python {

void bind_gradients(nanobind::module_& module);

}  // namespace lockstep::python
