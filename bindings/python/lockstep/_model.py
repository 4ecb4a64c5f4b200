"""Nets and tables from numbers, and equations from text."""

from __future__ import annotations

import copyreg
import tempfile
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np

from . import _lockstep
from ._solve import _numbers
from ._tables import is_column, named_columns
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
    weights = list(weights)
    matrices = [_numbers(f"weights[{i}]", matrix) for i, matrix in enumerate(weights)]
    held = "f32" if matrices and all(np.asarray(matrix).dtype == np.float32 for matrix in weights) else "f64"
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


def equations(equations: Mapping[str, str], *, parameters: Union[None, Mapping[str, float], Sequence[str]] = None,
              definitions: Optional[Mapping[str, str]] = None, models: Optional[Mapping[str, _lockstep.Model]] = None,
              name: str = "equations") -> _lockstep.Model:
    """A right-hand side written as text, with nets called in it, as a model: du/dt = f(u, p, t).

    docs/problem_file.md has the language. The model is called on a dict of its ports: ``u``, ``p`` where there are
    parameters, ``t`` where time is read.

    Parameters
    ----------
    equations : dict of str
        One for each component, in order: its derivative by time.
    parameters : dict of float, or sequence of str
        Names, with values for a solve that gives none.
    definitions : dict of str
        Names that stand for expressions, in any order.
    models : dict of Model
        Nets and tables that the equations call: ``"closure(x, y)[0]"``. The model keeps their training ranges (``Model.calls``),
        on which ``solve(guard=...)`` acts as it does for a problem file; what it cannot watch it warns of.

    >>> import lockstep
    >>> lorenz = lockstep.equations({"x": "sigma * (y - x)", "y": "x * (rho - z) - y", "z": "x*y - beta*z"},
    ...                             parameters={"sigma": 10, "rho": 28, "beta": 8 / 3})
    >>> solution = lockstep.solve(lorenz, [1, 0, 0], (0, 1), save_at=11, parameters={"rho": 20})
    >>> solution.state.shape
    (1, 11, 3)
    """
    given = parameters if isinstance(parameters, Mapping) else dict.fromkeys(parameters or ())
    values = [(key, None if value is None else _default(key, value)) for key, value in given.items()]
    return _lockstep.equations([(key, str(text)) for key, text in equations.items()], values,
                               list((definitions or {}).items()), list((models or {}).items()), name)


def table(at: Any, values: Any = None, *, interpolation: str = "linear", columns: Optional[Sequence[str]] = None,
          input: str = "") -> _lockstep.Model:
    """A function given as numbers, as a model: a measured input over time, a property over temperature.

    Equations call it as they call nets: ``"rain(t) - k(T) * x"`` with ``models={"rain": rain, "k": k}``. Beyond its ends
    it keeps the values there. In float32 the numbers in `at` must differ in float32: let times begin near 0.

    Parameters
    ----------
    at : array, pandas.Series, pandas.DataFrame or xarray.DataArray
        [knot], ascending, of one number each; a series, a frame, or an array with coordinates has the values with it.
    values : array, dict or table
        [knot], or [knot, column]; or columns by name.
    interpolation : str
        "linear"; "previous", steps that keep the last value; or "pchip", cubics with continuous slopes that do not
        overshoot, as ``scipy.interpolate.PchipInterpolator``.
    columns : sequence of str
        Names of the columns, ``"weather(t).rain"``, where `values` has none.
    input : str
        What it is a function of, for descriptions.

    >>> import lockstep
    >>> rain = lockstep.table([0, 6, 12, 24], [0, 2, 0, 1])
    >>> basin = lockstep.equations({"water": "rain(t) - 0.1 * water"}, models={"rain": rain})
    >>> solution = lockstep.solve(basin, [1.0], (0, 24), save_at=25)
    >>> import numpy as np
    >>> lockstep.table([0, 1], {"a": [1, 2], "b": [3, 5]})(np.array([0.5]))
    array([1.5, 4. ])
    """
    if values is None:
        at, values = _index_and_values(at)
    if isinstance(values, Mapping):
        columns = list(values)
        parts = [_numbers(f"values.{name}", column).reshape(-1) for name, column in values.items()]
        for name, part in zip(columns, parts):
            if len(part) != len(parts[0]):
                found, expected = f"{len(part)} numbers", f"{len(parts[0])}, as {columns[0]} has"
                raise of_kind("invalid_argument", f"values.{name}: found {found}, expected {expected}", f"values.{name}",
                              found, expected, "")
        array = np.stack(parts, axis=1) if parts else np.empty((0, 0))
    else:
        named = None if is_column(values) else named_columns("values", values)
        if named is not None:
            values, names = named
            columns = names if columns is None else columns
        array = _numbers("values", values)
    if array.ndim > 2:
        raise of_kind("invalid_argument", f"values: found {array.ndim} dimensions, expected [knot] or [knot, column]",
                      "values", f"{array.ndim} dimensions", "[knot] or [knot, column]", "")
    width = 1 if array.ndim < 2 else array.shape[1]
    given = [""] * width if columns is None else [columns] if isinstance(columns, str) else [str(one) for one in columns]
    if len(given) != width:
        raise of_kind("invalid_argument", f"columns: found {len(given)}, expected {width}, one for each column of values",
                      "columns", str(len(given)), f"{width}, one for each column of values", "")
    return _lockstep.table(_numbers("at", at).reshape(-1).tolist(), array.reshape(-1).tolist(), given, input, interpolation)


def _index_and_values(given: Any) -> tuple[Any, Any]:
    """Of a series, a frame or an array with a coordinate: where, and what."""
    if hasattr(given, "dims") and hasattr(given, "coords") and len(given.dims) in (1, 2) and given.dims[0] in given.coords:
        at, values = given.coords[given.dims[0]].values, given
    elif hasattr(given, "index") and not callable(given.index):
        at, values = given.index, given if getattr(given, "ndim", 1) == 2 else np.asarray(given)
    else:
        raise of_kind("invalid_argument", "values: found none, expected a number for each of at", "values", "none",
                      "a number for each of at", "")
    if np.asarray(at).dtype.kind in "mM":
        remedy = "give numbers: at=(index - index[0]).total_seconds()"
        raise of_kind("type", f"at: found an index of dates, expected real numbers; {remedy}", "at", "an index of dates",
                      "real numbers", remedy)
    return at, values


def _default(name: str, value: Any) -> float:
    """A parameter's value, as a number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        found = repr(value)
        remedy = f"write {value} in Python" if isinstance(value, str) else ""
        raise of_kind("type", f"parameters.{name}: found {found}, expected a number" + (remedy and f"; {remedy}"),
                      f"parameters.{name}", found, "a number", remedy) from None


def _unpacked(content: bytes) -> _lockstep.Model:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.h5"
        path.write_bytes(content)
        return _lockstep.load(path)


def _packed(net: _lockstep.Model) -> tuple[Any, tuple[bytes]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.h5"
        net.save(path)
        return _unpacked, (path.read_bytes(),)


copyreg.pickle(_lockstep.Model, _packed)  # for processes of multiprocessing, joblib and dask, and for copy.deepcopy
