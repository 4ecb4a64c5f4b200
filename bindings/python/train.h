// lockstep.train(): a training file, or its sections as text with the data beside them as arrays.
#pragma once

#include <nanobind/nanobind.h>

namespace lockstep::python {

void bind_train(nanobind::module_& module);

}  // namespace lockstep::python
