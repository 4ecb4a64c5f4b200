// The same net with other numbers: its weights, and the names and ranges of its features.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/python/model.h"

namespace lockstep::python {

void bind_other_numbers(nanobind::class_<Net>& model);

}  // namespace lockstep::python
