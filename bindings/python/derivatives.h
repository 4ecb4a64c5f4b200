// Products with a net's Jacobian, and with its transpose, on arrays.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/python/model.h"

namespace lockstep::python {

// J v at x, and J^T w: arrays, or dicts of them by port where the net has several.
nanobind::object jvp(Net& net, nanobind::handle x, nanobind::handle v);
nanobind::object vjp(Net& net, nanobind::handle x, nanobind::handle w);
// J itself at each sample, by as many such products as the net has inputs or outputs, whichever are fewer.
nanobind::object jacobian(Net& net, nanobind::handle x);

inline const nanobind::sig kJvpSignature("def jvp(self, x: typing.Any, v: typing.Any) -> typing.Any");
inline const nanobind::sig kVjpSignature("def vjp(self, x: typing.Any, w: typing.Any) -> typing.Any");

inline const nanobind::sig kJacobianSignature("def jacobian(self, x: typing.Any) -> typing.Any");

inline constexpr const char* kJvpText = R"(The Jacobian of each sample times a vector, J v, without forming J.

Parameters
----------
x : array, float32 or float64, or a dict of them by input port where the net has several
    [input] or [..., input], as for calling the net.
v : array, or a dict by input port
    The directions: of the shape and dtype of `x`.

Returns
-------
array
    Of the shape of the net's outputs; a dict by output port where there are several.

>>> import lockstep, numpy as np
>>> net = lockstep.mlp([[[2.0, 3.0]]], activations=["square"])
>>> net.jvp(np.array([1.0, 1.0]), np.array([1.0, 0.0]))    # 2 (2 + 3) 2
array([20.]))";

inline constexpr const char* kVjpText =
    R"(The transposed Jacobian of each sample times a vector, J^T w: gradients by the inputs.

Parameters
----------
x : array, float32 or float64, or a dict of them by input port where the net has several
    [input] or [..., input], as for calling the net.
w : array, or a dict by output port
    Of the shape of the net's outputs and the dtype of `x`.

Returns
-------
array
    Of the shape of `x`; a dict by input port where there are several.

>>> import lockstep, numpy as np
>>> net = lockstep.mlp([[[2.0, 3.0]]], activations=["square"])
>>> net.vjp(np.array([1.0, 1.0]), np.array([1.0]))
array([20., 30.]))";

inline constexpr const char* kJacobianText =
    R"(The Jacobian of each sample: the derivative of every output by every input.

For Newton steps and implicit solvers of nets with few inputs or outputs. It is made of as many jvp() as there are inputs,
or vjp() as there are outputs, whichever are fewer, and has their bits.

Parameters
----------
x : array, float32 or float64, or a dict of them by input port where the net has several
    [input] or [..., input], as for calling the net.

Returns
-------
array
    [output, input] or [..., output, input]. Of a dict by input port a dict of them by input port; where there are
    several output ports a dict of those by output port: ``net.jacobian(x)["flux"]["wind"]``.

>>> import lockstep, numpy as np
>>> net = lockstep.mlp([[[2.0, 3.0]]], activations=["square"])
>>> net.jacobian(np.array([1.0, 1.0]))
array([[20., 30.]]))";

}  // namespace lockstep::python
