"""Nets from numbers."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy as np

from . import _lockstep
from ._solve import _numbers
from .errors import of_kind


def mlp(weights: Sequence[Any], biases: Optional[Sequence[Any]] = None, activations: Sequence[str] = (), *,
        name: str = "net") -> _lockstep.Model:
    """A stack of dense layers from their numbers.

    Parameters
    ----------
    weights : sequence of arrays
        One for each layer, [output, input], as ``torch.nn.Linear`` holds them (Keras and Flax: give the transpose).
    biases : sequence of arrays
        [output] each; zero if not given.
    activations : sequence of str
        One for each layer; tanh, and identity for the last, if not given.

    >>> import lockstep, numpy as np
    >>> net = lockstep.mlp([np.eye(2), [[1.0, -1.0]]], activations=["relu", "identity"])
    >>> net
    <lockstep.Model net: 2-2-1 relu, 9 parameters, float64
      in  x[2]
      out y[1]>
    >>> net(np.array([3.0, -1.0]))
    array([3.])
    """
    matrices = [np.asarray(matrix) for matrix in weights]
    held = "f32" if matrices and all(matrix.dtype == np.float32 for matrix in matrices) else "f64"
    matrices = [_numbers(f"weights[{i}]", matrix) for i, matrix in enumerate(matrices)]
    if not activations:
        activations = ["tanh"] * (len(matrices) - 1) + ["identity"]
    for what, given in (("biases", biases), ("activations", activations)):
        if given is not None and len(given) != len(matrices):
            expected = f"{len(matrices)}, one for each layer"
            raise of_kind("invalid_argument", f"{what}: found {len(given)}, expected {expected}", what, str(len(given)),
                          expected, "")
    for i, matrix in enumerate(matrices):
        if matrix.ndim != 2:
            raise of_kind("invalid_argument", f"weights[{i}]: found {matrix.ndim} dimensions, expected [output, input]",
                          f"weights[{i}]", f"{matrix.ndim} dimensions", "[output, input]", "")
    if biases is None:
        biases = [np.zeros(len(matrix)) for matrix in matrices]
    vectors = [_numbers(f"biases[{i}]", vector).reshape(-1) for i, vector in enumerate(biases)]
    return _lockstep.mlp(matrices, vectors, list(activations), name, held)
