"""Functions given as numbers: measured inputs over time, properties over temperature."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

import numpy as np

from . import _lockstep, _unknown
from ._arrays import Array, real_numbers
from ._tables import is_column, named_columns
from .errors import refused, wrong_type


@_unknown.answered("")
def table(at: Any, values: Any = None, *, interpolation: str = "linear", columns: Optional[Sequence[str]] = None,
          input: str = "") -> _lockstep.Model:
    """A function given as numbers, as a model: a measured input over time, a property over temperature.

    Equations call it as they call nets: ``"rain(t) - k(T) * x"`` with ``models={"rain": rain, "k": k}``. Beyond its ends
    it keeps the values there. In float32 the numbers in `at` must differ in float32: let times begin near 0. Adaptive
    steps end at its knots where it is read at the time (docs/problem_file.md, "Steps and knots").

    Parameters
    ----------
    at : array, or pandas.Series, pandas.DataFrame, xarray.DataArray or xarray.Dataset
        [knot], ascending, of one number each; of a series, a frame, or an array with coordinates, which has the values
        with it, the index or the coordinate.
    values : array, dict or table
        [knot], or [knot, column]; or columns by name.
    interpolation : {"linear", "previous", "pchip", "spline"}
        Straight lines; steps, each of which lasts until the next knot; cubics with continuous slopes that do not
        overshoot, as ``scipy.interpolate.PchipInterpolator``; or the smoothest of cubics, for what is smooth itself,
        as ``scipy.interpolate.CubicSpline``.
    columns : sequence of str
        Which columns of `values`, by name; names for them, ``"weather(t).rain"``, where `values` has none.
    input : str
        What it is a function of, for descriptions; the name of `at` where that has one.

    Raises
    ------
    InvalidArgument, WrongType
        Numbers that do not ascend, are not finite or do not fit each other; dates.

    >>> import lockstep
    >>> rain = lockstep.table([0, 6, 12, 24], [0, 2, 0, 1])
    >>> basin = lockstep.equations({"water": "rain(t) - 0.1 * water"}, models={"rain": rain})
    >>> solution = lockstep.solve(basin, [1.0], (0, 24), save_at=25)
    >>> import numpy as np
    >>> lockstep.table([0, 1], {"a": [1, 2], "b": [3, 5]})(np.array([0.5]))
    array([1.5, 4. ])
    """
    if not isinstance(interpolation, str):
        raise wrong_type("interpolation", interpolation, '"linear", "previous", "pchip" or "spline"')
    if not isinstance(input, str):
        raise wrong_type("input", input, "a name as text")
    if values is None:
        at, values = _index_and_values(at)
    knots = _knots(at)
    array, names = _by_column(values, len(knots))
    wanted = None if columns is None else [columns] if isinstance(columns, str) else [str(one) for one in columns]
    if wanted is not None and any(names):
        array, names = array[:, [_place(one, names) for one in wanted]], wanted
    elif wanted is not None:
        if len(wanted) != len(names):
            raise refused("columns", str(len(wanted)), f"{len(names)}, one for each column of values")
        names = wanted
    return _lockstep.table(knots.tolist(), array.reshape(-1).tolist(), names, input or _name_of(at), interpolation)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _name_of(column: Any) -> str:
    """Of a series, an index or an array that has one."""
    name = getattr(column, "name", None)
    return name if isinstance(name, str) else ""


def _index_and_values(given: Any) -> tuple[Any, Any]:
    """Of a series, a frame or an array with a coordinate: where, and what."""
    if hasattr(given, "dims") and hasattr(given, "coords"):
        dimensions = list(getattr(given, "sizes", given.dims))
        if len(dimensions) in (1, 2) and dimensions[0] in given.coords:
            if not hasattr(given, "data_vars"):
                return given.coords[dimensions[0]], given
            if len(dimensions) == 1:
                return given.coords[dimensions[0]], {str(name): one.values for name, one in given.data_vars.items()}
    elif hasattr(given, "index") and not callable(given.index):
        if type(given.index).__name__ == "RangeIndex" and given.index.name is None:
            raise refused("at", "rows without an index", "an index of what the values are a function of",
                           'name its column, table(frame["t"], frame["x"]), or frame.set_index("t"); or at=frame.index, '
                           "the rows' numbers")
        return given.index, given
    raise refused("values", "none", "a number for each of at")


def _knots(at: Any) -> Array:
    kinds = {getattr(getattr(one, "dtype", None), "kind", None) for one in (at, np.asarray(at))}
    if kinds & {"m", "M"}:
        raise refused("at", "dates or times of day" if "M" in kinds else "time differences", "real numbers",
                       'divide by a unit: (at - at[0]) / numpy.timedelta64(1, "h")' if "M" in kinds else
                       'divide by a unit: at / numpy.timedelta64(1, "h")', kind="type")
    knots = real_numbers("at", at)
    if knots.size != (knots.shape[0] if knots.ndim else 1):
        raise refused("at", f"shape {list(knots.shape)}", "[knot]")
    return knots.reshape(-1)


def _by_column(values: Any, knots: int) -> tuple[Array, list[str]]:
    """[knot, column], and the columns' names, "" of those that have none."""
    expected = f"{knots}, one for each of at"
    if isinstance(values, Mapping):
        if not values:
            raise refused("values", "no columns", "one or more by name")
        parts = []
        for name, column in values.items():
            part = np.atleast_1d(real_numbers(f"values.{name}", column))
            if part.ndim != 1 or len(part) != knots:
                raise refused(f"values.{name}", _counted(len(part), "number") if part.ndim == 1 else
                               f"{part.ndim} dimensions", expected)
            parts.append(part)
        return np.stack(parts, axis=1), [str(name) for name in values]
    named = None if is_column(values) else named_columns("values", values)
    array = np.atleast_1d(real_numbers("values", values if named is None else named[0]))
    if array.ndim > 2:
        raise refused("values", f"{array.ndim} dimensions", "[knot] or [knot, column]")
    if len(array) != knots:
        turned = array.ndim == 2 and array.shape[1] == knots
        raise refused("values", _counted(len(array), "number" if array.ndim == 1 else "row"), expected,
                       "transpose them" if turned else "")
    array = array.reshape(knots, -1) if knots else array.reshape(0, array.shape[1] if array.ndim == 2 else 1)
    return array, named[1] if named is not None else [_name_of(values)] if array.shape[1] == 1 else [""] * array.shape[1]


def _place(name: str, names: list[str]) -> int:
    if name in names:
        return names.index(name)
    raise refused("columns", f'"{name}"', f"one of {', '.join(names)}")
