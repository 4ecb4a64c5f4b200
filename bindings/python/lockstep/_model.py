"""Nets from numbers, and equations from text."""

from __future__ import annotations

import copyreg
import os
import tempfile
from pathlib import Path
from typing import Any, Iterable, Mapping, Optional, Sequence, Union

import numpy as np

from . import _lockstep, _unknown
from ._solution import PathLike
from ._arrays import real_numbers
from .errors import of_kind, refused, wrong_type


@_unknown.answered("")
def load(path: PathLike, activations: Union[str, Sequence[str]] = "") -> _lockstep.Model:
    """A trained net from a file: safetensors, Lockstep's HDF5, Keras, ONNX.

    Parameters
    ----------
    path : path-like
    activations : str or sequence of str
        Of a safetensors file that does not say: one for each layer, ``"tanh,tanh,identity"`` or ``["tanh", "tanh",
        "identity"]``, or one for the hidden layers, ``"tanh"``. Of a file that does, others than its own raise
        InvalidArgument.

    Raises
    ------
    FileError, ModelError, Unsupported
    """
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise wrong_type("path", path, "the path of a model's file")
    return _lockstep.load(path, ",".join(_names("activations", activations)))


def _require_text(field: str, value: Any) -> None:
    if not isinstance(value, str):
        raise wrong_type(field, value, "a name as text")


def _require_names(what: str, names: Iterable[Any]) -> None:
    """Refuses what is no text among the keys of a dict, or in a list of names."""
    for name in names:
        if not isinstance(name, str):
            raise refused(what, f"{name!r} as a name", "names as text", kind="type")


def _names(what: str, given: Any) -> list[str]:
    """Of a list, or of a text with commas."""
    if isinstance(given, str):
        return [name.strip() for name in given.split(",")] if given.strip() else []
    is_list = isinstance(given, Iterable) and not isinstance(given, (bytes, Mapping))
    names: list[Any] = list(given) if is_list else [given]
    for name in names:
        if not isinstance(name, str):
            raise refused(what, type(name).__name__, "names: a list of them, or a text with commas", kind="type")
    return names


def _of_each_layer(activations: Union[str, Sequence[str]], layers: int) -> list[str]:
    given = _names("activations", activations)
    names = given or ["tanh"]
    if len(names) == 1 and (layers > 1 or not given):
        names = names * (layers - 1) + ["identity"]
    if len(names) != layers:
        raise refused("activations", str(len(names)), f"{layers}, one for each layer, or one for the hidden layers")
    return names


@_unknown.answered("")
def mlp(weights: Sequence[Any], biases: Optional[Sequence[Any]] = None, activations: Union[str, Sequence[str]] = (), *,
        name: str = "net") -> _lockstep.Model:
    """A stack of dense layers from their numbers.

    Parameters
    ----------
    weights : sequence of arrays
        One for each layer, [output, input], as ``torch.nn.Linear`` holds them (Keras and Flax: give the transpose).
    biases : sequence of arrays
        [output] each; none of the layers that have None, and of all if not given: zeros, which no training changes.
    activations : str or sequence of str
        One for each layer, ``["relu", "identity"]`` or ``"relu,identity"``, or, where there are several, one for the
        hidden layers, ``"relu"``, the last then without; tanh of the hidden layers if not given.

    >>> import lockstep, numpy as np
    >>> net = lockstep.mlp([np.eye(2), [[1.0, -1.0]]], activations="relu")
    >>> net
    <lockstep.Model net: 2-2-1 relu, 9 parameters, float64
      in  x[2]
      out y[1]>
    >>> net(np.array([3.0, -1.0]))
    array([3.])
    """
    _require_text("name", name)
    if not isinstance(weights, Iterable):
        raise wrong_type("weights", weights, "a list with an array for each layer, [output, input]")
    weights = list(weights)
    matrices = [real_numbers(f"weights[{i}]", matrix) for i, matrix in enumerate(weights)]
    held = "f32" if matrices and all(np.asarray(matrix).dtype == np.float32 for matrix in weights) else "f64"
    names = _of_each_layer(activations, len(matrices))
    biases = [None] * len(matrices) if biases is None else list(biases)
    if len(biases) != len(matrices):
        raise refused("biases", str(len(biases)), f"{len(matrices)}, one for each layer")
    for i, matrix in enumerate(matrices):
        if matrix.ndim != 2:
            raise of_kind("invalid_argument", f"weights[{i}]: found {matrix.ndim} dimensions, expected [output, input]",
                          f"weights[{i}]", f"{matrix.ndim} dimensions", "[output, input]", "")
    vectors = [None if vector is None else real_numbers(f"biases[{i}]", vector).reshape(-1)
               for i, vector in enumerate(biases)]
    return _lockstep.mlp(matrices, vectors, names, name, held)


@_unknown.answered("")
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
        Nets, and tables (``lockstep.table``), that the equations call: ``"closure(x, y)[0]"``. The model keeps their
        ranges (``Model.calls``), on which ``solve(guard=...)`` acts as it does for a problem file; what it cannot watch it
        warns of.

    >>> import lockstep
    >>> lorenz = lockstep.equations({"x": "sigma * (y - x)", "y": "x * (rho - z) - y", "z": "x*y - beta*z"},
    ...                             parameters={"sigma": 10, "rho": 28, "beta": 8 / 3})
    >>> solution = lockstep.solve(lorenz, [1, 0, 0], (0, 1), save_at=11, parameters={"rho": 20})
    >>> solution.state.shape
    (1, 11, 3)
    """
    if not isinstance(equations, Mapping):
        raise of_kind("type", f"equations: found {type(equations).__name__}, expected a dict with a text for each component; "
                      'write {"x": "y", "y": "-x"} for x\' = y, y\' = -x', "equations", type(equations).__name__,
                      "a dict with a text for each component", 'write {"x": "y", "y": "-x"} for x\' = y, y\' = -x')
    if definitions is not None and not isinstance(definitions, Mapping):
        raise wrong_type("definitions", definitions, "a dict with a text for each name")
    if parameters is not None and not isinstance(parameters, Iterable):
        raise wrong_type("parameters", parameters, "a dict of numbers by name, or a list of names")
    names = [parameters] if isinstance(parameters, str) else list(() if parameters is None else parameters)
    _require_text("name", name)
    for what, keys in (("equations", equations), ("definitions", definitions or ()), ("parameters", names)):
        _require_names(what, keys)
    defaults = parameters if isinstance(parameters, Mapping) else {}
    values = [(key, None if defaults.get(key) is None else _default(key, defaults[key])) for key in names]
    require_models(models)
    return _lockstep.equations([(key, str(text)) for key, text in equations.items()], values,
                               [(key, str(text)) for key, text in (definitions or {}).items()],
                               list((models or {}).items()), name)


def require_models(models: Any, or_paths: bool = False) -> None:
    """Refuses what equations cannot call."""
    if models is not None and not isinstance(models, Mapping):
        raise of_kind("type", f"models: found {type(models).__name__}, expected a dict of lockstep.Model", "models",
                      type(models).__name__, "a dict of lockstep.Model", "")
    _require_names("models", models or ())
    for name, model in (models or {}).items():
        is_path = isinstance(model, (str, os.PathLike))
        if isinstance(model, _lockstep.Model) or (or_paths and is_path):
            continue
        remedy = ("lockstep.load() reads one from a file" if is_path
                  else "lockstep.table(at, values) makes one of numbers, lockstep.mlp() a net")
        raise of_kind("type", f"models.{name}: found {type(model).__name__}, expected a lockstep.Model; {remedy}",
                      f"models.{name}", type(model).__name__, "a lockstep.Model", remedy)


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
        return load(path)


def _written(*equations: Any) -> _lockstep.Model:
    return _lockstep.equations(*equations)


def _packed(net: _lockstep.Model) -> tuple[Any, tuple[Any, ...]]:
    if (written := _lockstep.equations_of(net)) is not None:
        return _written, written
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.h5"
        net.save(path)
        return _unpacked, (path.read_bytes(),)


copyreg.pickle(_lockstep.Model, _packed)  # for processes of multiprocessing, joblib and dask, and for copy.deepcopy
