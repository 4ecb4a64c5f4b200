"""Changes of states all at once, in the forms that people have them in: doses, harvests, burns."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Callable, Optional

import numpy as np

from ._arrays import Array, Named, real_numbers
from .errors import refused

_KEYS = ("time", "component", "change", "factor", "trajectory")
_EXPECTED = 'a dict, {"time": [0, 12], "component": "x", "change": 5}, a table with such columns, or a list of them'
_OTHER_WORDS = {"t": "time", "times": "time", "amount": "change", "amt": "change", "dose": "change", "add": "change",
                "cmt": "component", "compartment": "component", "state": "component", "scale": "factor",
                "multiply": "factor", "id": "trajectory", "subject": "trajectory", "patient": "trajectory"}
_Places = Optional[Mapping[Any, int]]


def impulses(given: Any, places: _Places = None) -> Optional[Named]:
    """[impulse, (time, component, change, factor, trajectory)], and the names of components; None without any. A
    component is its number, or where it has a name -1 less the name's place among these; trajectory -1 stands for all.
    `places`: of trajectories by the labels that tell them apart, where they have some."""
    names: dict[str, int] = {}
    if isinstance(given, (list, tuple)):
        tables = [_table(f"impulses[{i}]", one, names, places) for i, one in enumerate(given)]
    else:
        tables = [] if given is None else [_table("impulses", given, names, places)]
    rows = np.concatenate(tables) if tables else np.zeros((0, len(_KEYS)))
    return Named(np.ascontiguousarray(rows), list(names)) if len(rows) else None


def _table(name: str, given: Any, names: dict[str, int], places: _Places) -> Array:
    columns = {key: value for key, value in _columns(name, given).items() if value is not None}
    for key in columns:
        if key not in _KEYS:
            close = difflib.get_close_matches(key, _KEYS, 1)
            meant = _OTHER_WORDS.get(key.lower(), close[0] if close else "")
            repeats = key in ("every", "from", "until")
            again = "write the times out: numpy.arange(0, 120, 12)" if repeats else "leave it out"
            raise refused(f"{name}.{key}", "an unknown key", "one of " + ", ".join(_KEYS),
                          f'did you mean "{meant}"?' if meant else again)
    for key in ("time", "component"):
        if key not in columns:
            raise refused(name, f"no {key}", "time and component of each")
    if "change" not in columns and "factor" not in columns:
        raise refused(name, "neither change nor factor",
                      "what happens to the component: it becomes factor times itself plus change")
    readers: dict[str, Callable[[str, Any], Array]] = {
        "component": lambda where, value: _components(where, value, names),
        "trajectory": lambda where, value: _trajectories(where, value, places)}
    read = {key: readers.get(key, _finite)(f"{name}.{key}", value) for key, value in columns.items()}
    for key, array in read.items():
        if array.ndim > 1:
            raise refused(f"{name}.{key}", f"shape {array.shape}", "one for each impulse, or one for all")
    _refuse_unpaired(name, read)
    counts = {key: len(array) for key, array in read.items() if array.ndim == 1}
    first = next(iter(counts), "")
    for key, count in counts.items():
        if count != counts[first]:
            raise refused(f"{name}.{key}", f"{count} of them", f"{counts[first]}, as {first} has, or one for all")
    rows = np.empty((counts.get(first, 1), len(_KEYS)))
    for at, (key, default) in enumerate(zip(_KEYS, (0, 0, 0, 1, -1))):
        rows[:, at] = read.get(key, default)
    return rows


def _refuse_unpaired(name: str, read: Mapping[str, Array]) -> None:
    """Several changes of one component at one time: each trajectory's own, as in a problem file, or all of them for each?"""
    if any(key in read and read[key].ndim for key in ("time", "component", "trajectory")):
        return
    for key in ("change", "factor"):
        if key in read and read[key].ndim and len(read[key]) > 1:
            count = len(read[key])
            raise refused(f"{name}.{key}", f"{count} numbers at one time of one component", "a number",
                          'of trajectories of their own, "trajectory": range(' f"{count}); all for each: their sum")


def _columns(name: str, given: Any) -> dict[str, Any]:
    if hasattr(given, "data_vars"):  # an xarray.Dataset, whose coordinates may be columns, too
        return {str(key): given[key].values for key in (*given.data_vars, *given.coords)
                if key in given.data_vars or key in _KEYS}
    if isinstance(given, Mapping):
        return {str(key): value for key, value in given.items()}
    labels = getattr(getattr(given, "dtype", None), "names", None)  # of a structured array
    for attribute in ("column_names", "columns"):
        found = getattr(given, attribute, None)
        labels = labels or (None if callable(found) else found)
    if labels is None or len(labels) == 0:
        raise refused(name, type(given).__name__, _EXPECTED, kind="type")
    return {str(label): given[label] for label in labels}


def _finite(name: str, value: Any) -> Array:
    array = real_numbers(name, value).reshape(np.shape(value))
    wrong = np.flatnonzero(~np.isfinite(array))
    if len(wrong):
        number = array.reshape(-1)[wrong[0]]
        raise refused(f"{name}[{wrong[0]}]" if array.ndim else name, "NaN" if np.isnan(number) else str(number),
                      "a finite number")
    return array


def _components(name: str, value: Any, names: dict[str, int]) -> Array:
    array = np.asarray(value)
    if array.dtype.kind in "iu":
        _from_zero(name, array, "a component from 0 on")
        return array
    if isinstance(value, (list, tuple)) and array.dtype.kind == "U":  # NumPy makes texts of the numbers among them
        array = np.asarray(value, dtype=object)
    codes = []
    for i, word in enumerate(array.reshape(-1).tolist()):
        where = f"{name}[{i}]" if array.ndim else name
        if isinstance(word, (int, np.integer)) and not isinstance(word, bool):
            _from_zero(where, np.asarray(word), "a component from 0 on")
            codes.append(int(word))
        elif isinstance(word, str):
            codes.append(-1 - names.setdefault(word, len(names)))
        else:
            raise refused(where, repr(word), "the name of a component, or its number", kind="type")
    return np.array(codes, dtype=np.float64).reshape(array.shape)


def _trajectories(name: str, value: Any, places: _Places) -> Array:
    array = np.asarray(value)
    if places is None:
        if array.dtype.kind not in "iu":
            whole = array.dtype.kind == "f" and np.array_equal(array, np.trunc(array))
            raise refused(name, f"dtype {array.dtype}", "numbers of trajectories, counted from 0",
                          "make them integers: numpy.asarray(trajectory).astype(int)" if whole else "", kind="type")
        _from_zero(name, array, "a trajectory from 0 on")
        return array
    found = []
    for i, label in enumerate(array.reshape(-1).tolist()):
        if label not in places:
            close = difflib.get_close_matches(str(label), [str(place) for place in places], 1)
            raise refused(f"{name}[{i}]" if array.ndim else name, repr(label), "a label that trajectory has, too",
                          f'did you mean "{close[0]}"?' if close else "")
        found.append(places[label])
    return np.array(found, dtype=np.float64).reshape(array.shape)


def _from_zero(name: str, array: Array, expected: str) -> None:
    wrong = np.flatnonzero(array < 0)
    if len(wrong):
        raise refused(f"{name}[{wrong[0]}]" if array.ndim else name, str(array.reshape(-1)[wrong[0]]), expected)
