// Products with a net's Jacobian, and the Jacobian itself, of arrays that lie on a GPU: by the net's derivative as a
// net.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/python/model.h"
#include "bindings/python/ports.h"
#include "lockstep/nn/derivative_model.h"

namespace lockstep::python {

// J v or J^T w, in new arrays, by port as calling the net gives its outputs. `vector` is beside `x`.
nanobind::object multiply_on_device(Net& net, const PortArrays& x, const PortArrays& vector, nn::Derivative product);

// [..., output, input]. Error (invalid_argument) of nets with several ports on a side.
nanobind::object jacobian_on_device(Net& net, const PortArrays& x);

}  // namespace lockstep::python
