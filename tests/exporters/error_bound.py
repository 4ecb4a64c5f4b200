"""What an ONNX graph of the operators that Lockstep writes computes, and how far from it any evaluation in its precision may
lie: each value is carried with a bound of its error, through the graph.

A value is a centre c, evaluated in more digits than the graph has, and a radius r. An operator f makes |f(c +- r) - f(c)| of
the radii of what it reads (by its slope, or at the ends where it is monotone) and adds its own rounding. u being the unit
roundoff, that is u |c| for each operation of arithmetic; (n + 3) u times the sum of the absolute terms for a sum of n
(Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, eq. 3.7, in any order, with or without fma); and
8 u (1 + |c|) for an elementary function: 4 ulp of its value, and as much of 1 where it subtracts from 1. Second-order terms:
a quarter more, at the end. Where a comparison may turn out either way both results lie within the radius.
"""
import math

import numpy as np
from onnx import helper, numpy_helper

# A function of each element, and a bound of its slope.
_SLOPES = {
    "Relu": (lambda x: np.maximum(x, 0), 1.0),
    "Softplus": (lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), 1.0),
    "Softsign": (lambda x: x / (1 + np.abs(x)), 1.0),
    "Sigmoid": (lambda x: np.where(x < 0, np.exp(-np.abs(x)), 1) / (1 + np.exp(-np.abs(x))), 0.25),
    "Tanh": (np.tanh, 1.0),
    "Sin": (np.sin, 1.0),
    "Cos": (np.cos, 1.0),
    "Atan": (np.arctan, 1.0),
    "Erf": (np.vectorize(math.erf, otypes=[float]), 1.13),
    "Abs": (np.abs, 1.0),
    "Neg": (np.negative, 1.0),
    "HardSwish": (lambda x: x * np.clip(x / 6 + 0.5, 0, 1), 1.5),
    "Selu": (lambda x: 1.0507009873554805 * np.where(x < 0, 1.6732632423543772 * np.expm1(np.minimum(x, 0)), x), 1.76),
}
_EXACT = {"Relu", "Abs", "Neg"}


class Evaluation:
    def __init__(self, model, inputs):
        graph = model.graph
        double = graph.input[0].type.tensor_type.elem_type == 11
        self.real, self.unit = (np.longdouble, 2.0**-53) if double else (np.float64, 2.0**-24)
        self.values = {"": None}
        for tensor in graph.initializer:
            self.values[tensor.name] = self._exact(numpy_helper.to_array(tensor))
        for name, array in inputs.items():
            self.values[name] = self._exact(array)
        with np.errstate(all="ignore"):
            for node in graph.node:
                attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
                operands = [self.values[name] for name in node.input]
                c, r = self._make(node.op_type, operands, attributes)
                self.values[node.output[0]] = c, np.where(np.isnan(r), np.inf, r) if r.dtype != bool else r

    def centre_and_bound(self, name):
        centre, radius = self.values[name]
        return centre, 1.25 * radius

    def _exact(self, array):
        array = np.asarray(array)
        if array.dtype.kind == "f":
            array = array.astype(self.real)
        return array, np.zeros(array.shape, bool if array.dtype == bool else self.real)

    def _rounded(self, c, r, size=1.0):
        """An operation whose result is off by `size` units of it, or by nothing where it is 0."""
        return c, r + size * self.unit * np.abs(c)

    def _function(self, c, r):
        return c, r + 8 * self.unit * (1 + np.abs(c))

    def _total(self, c, r, size, terms):
        return c, r + (terms + 3) * self.unit * size

    def _mean(self, x):
        n = x[0].shape[1]
        total = self._total(x[0].sum(1, keepdims=True), x[1].sum(1, keepdims=True), np.abs(x[0]).sum(1, keepdims=True) + x[1].sum(1, keepdims=True), n)
        return self._rounded(total[0] / n, total[1] / n)

    def _make(self, op, x, attributes):
        if hasattr(self, "_" + op.lower()):
            return getattr(self, "_" + op.lower())(*x, **attributes)
        if op in _SLOPES:
            function, slope = _SLOPES[op]
            c, r = function(x[0][0]), slope * x[0][1]
            return (c, r) if op in _EXACT else self._function(c, r)
        raise NotImplementedError(op)

    # ---- arithmetic
    def _add(self, a, b):
        return self._rounded(a[0] + b[0], a[1] + b[1])

    def _sub(self, a, b):
        return self._rounded(a[0] - b[0], a[1] + b[1])

    def _mul(self, a, b):
        return self._rounded(a[0] * b[0], np.abs(a[0]) * b[1] + np.abs(b[0]) * a[1] + a[1] * b[1])

    def _div(self, a, b):
        c, least = a[0] / b[0], np.abs(b[0]) - b[1]
        return self._rounded(c, np.where(least > 0, (a[1] + np.abs(c) * b[1]) / least, np.inf))

    def _reciprocal(self, a):
        return self._div(self._exact(np.ones(1, self.real)), a)

    def _min(self, a, b):
        return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])

    def _max(self, a, b):
        return np.maximum(a[0], b[0]), np.maximum(a[1], b[1])

    def _pow(self, a, b):
        corners = [(a[0] + i * a[1]) ** (b[0] + j * b[1]) for i in (-1, 1) for j in (-1, 1)]
        c = a[0] ** b[0]
        spread = np.max([np.abs(corner - c) for corner in corners], axis=0)
        known = (a[0] - a[1] > 0) | (a[1] + b[1] == 0)  # monotone in both, or exact
        return self._function(c, np.where(known, spread, np.inf))

    def _sqrt(self, a):
        c, low = np.sqrt(a[0]), a[0] - a[1]
        return self._rounded(c, np.where((low < 0) & (a[0] + a[1] >= 0) & (a[1] > 0), np.inf, c - np.sqrt(np.maximum(low, 0))))

    def _exp(self, a):
        c = np.exp(a[0])
        return self._function(c, c * np.expm1(a[1]))

    def _log(self, a):
        c = np.log(a[0])
        return self._function(c, np.where(a[0] > a[1], c - np.log(a[0] - a[1]), np.where(a[0] + a[1] < 0, 0, np.inf)))

    def _gemm(self, a, b, c=None, transB=0):
        weights = b[0].T
        size = (np.abs(a[0]) + a[1]) @ np.abs(weights) + (np.abs(c[0]) if c is not None else 0)
        bias = 0 if c is None else c[0]
        return self._total(a[0] @ weights + bias, a[1] @ np.abs(weights), size, weights.shape[0])

    # ---- activations with attributes
    def _leakyrelu(self, a, alpha=0.01):
        return self._rounded(np.where(a[0] < 0, alpha * a[0], a[0]), max(1, abs(alpha)) * a[1])

    def _prelu(self, a, alpha):
        return self._leakyrelu(a, alpha[0].item())

    def _elu(self, a, alpha=1.0):
        slope = max(1, abs(alpha))
        c, r = np.where(a[0] < 0, alpha * np.expm1(np.minimum(a[0], 0)), a[0]), slope * a[1]
        return c, r + 8 * self.unit * (slope + np.abs(c))

    def _celu(self, a, alpha=1.0):
        c = np.where(a[0] < 0, alpha * np.expm1(np.minimum(a[0] / alpha, 0)), a[0])
        return c, a[1] + 8 * self.unit * (max(1, abs(alpha)) + np.abs(c) + np.abs(a[0]))

    def _hardsigmoid(self, a, alpha):
        return self._function(np.clip(a[0] * alpha + 0.5, 0, 1), alpha * a[1])

    def _clip(self, a, low=None, high=None):
        c = a[0]
        c = c if low is None else np.maximum(c, low[0])
        return (c if high is None else np.minimum(c, high[0])), a[1]

    # ---- over features
    def _softmax(self, a, axis):
        shifted = np.exp(a[0] - a[0].max(1, keepdims=True))
        c, n = shifted / shifted.sum(1, keepdims=True), a[0].shape[1]
        relative = np.expm1(2 * a[1].max(1, keepdims=True)) + (n + 16) * self.unit * (1 + np.abs(a[0]).max(1, keepdims=True))
        return c, c * relative + 8 * self.unit * (c + self.unit)

    def _logsoftmax(self, a, axis):
        largest = a[0].max(1, keepdims=True)
        c, n = a[0] - largest - np.log(np.exp(a[0] - largest).sum(1, keepdims=True)), a[0].shape[1]
        size = 1 + np.abs(c) + np.abs(a[0]).max(1, keepdims=True)
        return c, 2 * a[1].max(1, keepdims=True) + (n + 16) * self.unit * size

    def _reducesum(self, a, axes):
        return self._total(a[0].sum(1, keepdims=True), a[1].sum(1, keepdims=True), np.abs(a[0]).sum(1, keepdims=True), a[0].shape[1])

    def _reducemean(self, a, axes):
        return self._mean(a)

    def _reducemin(self, a, axes):
        return a[0].min(1, keepdims=True), a[1].max(1, keepdims=True)

    def _reducemax(self, a, axes):
        return a[0].max(1, keepdims=True), a[1].max(1, keepdims=True)

    def _layernormalization(self, a, scale, shift, axis, epsilon):
        centred = self._sub(a, self._mean(a))
        variance = self._mean(self._mul(centred, centred))
        # The variance may also be the mean square less the square of the mean, which cancel.
        square = (a[0] ** 2).mean(1, keepdims=True)
        variance = variance[0], variance[1] + (a[0].shape[1] + 5) * self.unit * square
        deviation = self._sqrt(self._add(variance, self._exact(np.full(1, epsilon, self.real))))
        return self._add(self._mul(self._div(centred, deviation), scale), shift)

    # ---- in steps: what it is at either end of the radius
    def _step(self, function, a):
        c = function(a[0])
        return c, np.maximum(c - function(a[0] - a[1]), function(a[0] + a[1]) - c)

    def _floor(self, a):
        return self._step(np.floor, a)

    def _round(self, a):
        return self._step(np.rint, a)

    def _sign(self, a):
        return self._step(np.sign, a)

    def _mod(self, a, b, fmod):
        """a - b trunc(a / b), exact but for what is read; anything below |b| where the quotient's whole part may be another,
        or has more digits than the precision, where it is 0 or the remainder (lockstep/kernels/math/modulo-inl.h)."""
        quotient = self._div(a, b)
        low, high = np.trunc(quotient[0] - quotient[1]), np.trunc(quotient[0] + quotient[1])
        known = (low == high) & (np.abs(quotient[0]) * self.unit < 1)
        return np.fmod(a[0], b[0]), np.where(known, a[1] + np.abs(low) * b[1], 2 * (np.abs(b[0]) + b[1]))

    # ---- truth, choices, places
    def _compare(self, truth, a, b):
        margin = a[1] + b[1]
        return truth, (np.abs(a[0] - b[0]) <= margin) & (margin > 0)

    def _less(self, a, b):
        return self._compare(a[0] < b[0], a, b)

    def _lessorequal(self, a, b):
        return self._compare(a[0] <= b[0], a, b)

    def _greater(self, a, b):
        return self._compare(a[0] > b[0], a, b)

    def _equal(self, a, b):
        return self._compare(a[0] == b[0], a, b)

    def _and(self, a, b):
        return a[0] & b[0], a[1] | b[1]

    def _cast(self, a, to):
        if to == 9:
            return a[0] != 0, (np.abs(a[0]) <= a[1]) & (a[1] > 0)
        return a[0].astype(self.real), a[1].astype(self.real)

    def _where(self, condition, a, b):
        both = np.abs(a[0] - b[0]) + a[1] + b[1]
        return np.where(condition[0], a[0], b[0]), np.where(condition[1], both, np.where(condition[0], a[1], b[1]))

    def _identity(self, a):
        return a

    def _concat(self, *parts, axis):
        return np.concatenate([p[0] for p in parts], axis), np.concatenate([p[1] for p in parts], axis)

    def _gather(self, a, indices, axis):
        return np.take(a[0], indices[0], axis), np.take(a[1], indices[0], axis)

    def _expand(self, a, shape):
        extents = np.broadcast_shapes(a[0].shape, tuple(int(n) for n in shape[0]))
        return np.broadcast_to(a[0], extents), np.broadcast_to(a[1], extents)

    def _shape(self, a, start, end):
        return self._exact(np.array(a[0].shape[start:end], np.int64))
