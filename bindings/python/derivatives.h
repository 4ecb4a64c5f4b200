// Products with a net's Jacobian, and with its transpose, on arrays.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/python/model.h"

namespace lockstep::python {

// J v at x, and J^T w: arrays, or dicts of them by port where the net has several.
nanobind::object jvp(Net& net, nanobind::handle x, nanobind::handle v);
nanobind::object vjp(Net& net, nanobind::handle x, nanobind::handle w);

inline const nanobind::sig kJvpSignature("def jvp(self, x: typing.Any, v: typing.Any) -> typing.Any");
inline const nanobind::sig kVjpSignature("def vjp(self, x: typing.Any, w: typing.Any) -> typing.Any");

inline constexpr const char* kJvpText = R"(The Jacobian of each sample times a vector, J v, without forming J.

Parameters
----------
x : array, float32 or float64, or a dict of them by input port where the net has several
    [input] or [sample, input], as for calling the net.
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
    [input] or [sample, input], as for calling the net.
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

}  // namespace lockstep::python
