"""Tables whose columns have names: of pandas, polars, pyarrow, xarray and NumPy, known by their attributes; nothing is
imported for them."""

from __future__ import annotations

from typing import Any, Container, Optional, Sequence

import numpy as np

from ._arrays import Array, Named, plain, real_numbers
from .errors import of_kind

_WITHOUT_NAMES = frozenset((bool, int, float, list, tuple, np.ndarray, np.float64, np.float32))  # what most lists hold
_LABELLED = ("component", "parameter")  # dimensions, as Solution.to_xarray() calls them


def named_columns(name: str, value: Any) -> Optional[tuple[Any, list[str]]]:
    """The table with its columns last, and their names; None where they have none, and go by position."""
    value, labels = (value.array, value.names) if isinstance(value, Named) else _labels(value)
    if any(isinstance(label, tuple) for label in labels):  # of a pandas.MultiIndex
        found, expected = f"a column with several names, {labels[0]}", "one name"
        remedy = "take a part of the table, table[...], or its columns' level: table.columns.droplevel(0)"
        raise of_kind("invalid_argument", f"{name}: found {found}, expected {expected}; {remedy}", name, found, expected,
                      remedy)
    if not any(isinstance(label, str) for label in labels):
        return None
    names = [str(label) for label in labels]
    for one in names:
        if names.count(one) > 1:
            found = f"{names.count(one)} columns called {one}"
            raise of_kind("invalid_argument", f"{name}: found {found}, expected one", name, found, "one", "")
    dtypes = getattr(value, "dtypes", ())  # of a pandas.DataFrame; a row of it has one
    for one, dtype in zip(names, dtypes if hasattr(dtypes, "__iter__") else ()):
        if getattr(dtype, "kind", "f") in "OSUMm":
            found, remedy = f"dtype {dtype}", "leave the column out, or make numbers of it"
            raise of_kind("type", f"{name}.{one}: found {found}, expected real numbers; {remedy}", f"{name}.{one}", found,
                          "real numbers", remedy)
    return value, names


def named_rows(name: str, value: Any) -> Optional[Named]:
    """Of a list of rows that each have names, a pandas.Series, a namedtuple, a dict of numbers or a structured number, and of
    such a namedtuple alone; None of others."""
    if hasattr(value, "_fields"):
        return Named(real_numbers(name, tuple(value)).T, list(value._fields))  # its fields may be columns
    if not isinstance(value, (list, tuple)) or _WITHOUT_NAMES.issuperset(map(type, value)):
        return None
    rows = [_named_row(one) for one in value]
    first = rows[0]
    if not any(rows):
        return None
    for i, row in enumerate(rows):
        if (row is None) != (first is None) or (row and first and row.keys() != first.keys()):
            found = f"a row with {'no names' if row is None else 'the names ' + ', '.join(row)}"
            expected = "names as row 0 has them" if first is not None else "rows without names, as row 0"
            raise of_kind("invalid_argument", f"{name}[{i}]: found {found}, expected {expected}", f"{name}[{i}]", found,
                          expected, "")
    names = list(rows[0] or ())
    return Named(real_numbers(name, [[row[one] for one in names] for row in rows if row is not None]), names)


def _named_row(value: Any) -> Optional[dict[str, Any]]:
    """What a row has by name; None where it has no names."""
    if hasattr(value, "_fields"):
        return dict(zip(value._fields, value))
    if isinstance(value, dict):
        return value if value and all(isinstance(label, str) for label in value) else None
    if isinstance(value, np.void) and value.dtype.names:
        return {label: value[label] for label in value.dtype.names}
    if np.ndim(value) != 1 or isinstance(value, (list, tuple, np.ndarray)):
        return None
    row, labels = _labels(value)
    return dict(zip(labels, plain(row))) if any(isinstance(label, str) for label in labels) else None


def columns_last(value: Any) -> Any:
    """An xarray.DataArray with its dimension of components or parameters last; others as they are."""
    dims = getattr(value, "dims", ())
    last = [one for one in dims if one in _LABELLED] if hasattr(value, "transpose") and isinstance(dims, tuple) else []
    return value.transpose(..., last[-1]) if last else value


def is_column(value: Any) -> bool:
    """Whether it is a column of a table, whose labels are those of rows."""
    return getattr(value, "ndim", 2) == 1 and not getattr(getattr(value, "dtype", None), "names", None)


def column_name(value: Any) -> Optional[list[str]]:
    """What a column of a table is called: the name of a pandas.Series and its like."""
    name = getattr(value, "name", None) if is_column(value) else None
    return [name] if isinstance(name, str) and name else None


def _labels(value: Any) -> tuple[Any, list[Any]]:
    fields = getattr(getattr(value, "dtype", None), "names", None)
    if isinstance(value, np.ndarray):
        return (value, []) if not fields else (_unstructured(value), list(fields))
    if isinstance(value, (list, tuple)) or not hasattr(value, "__array__"):
        return value, []
    if hasattr(value, "dims") and hasattr(value, "coords"):  # an xarray.DataArray
        value = columns_last(value)
        last = value.dims[-1:]
        return value, value.coords[last[0]].values.tolist() if last and last[0] in value.coords else []
    for attribute in ("column_names", "columns"):
        columns = getattr(value, attribute, None)
        if columns is not None and not callable(columns):
            return value, list(columns)
    index = getattr(value, "index", None)  # of a pandas.Series: a row
    if index is not None and not callable(index) and getattr(value, "ndim", 0) == 1:
        return value, list(index)
    return value, []


def _unstructured(value: Array) -> Array:
    from numpy.lib.recfunctions import structured_to_unstructured

    array: Array = structured_to_unstructured(value)
    return array


def single_column(name: str, array: Array, names: Sequence[str]) -> Array:
    """Of a table of times, which has one column, or of a row of it."""
    if array.ndim == 1 or len(names) == 1:
        return array.reshape(-1)
    found, remedy = f"a table with the columns {', '.join(names)}", f"give its column of times: {name}=table[{names[0]!r}]"
    raise of_kind("invalid_argument", f"{name}: found {found}, expected times; {remedy}", name, found, "times", remedy)


def named_as(name: str, value: Any, beside: Any) -> Any:
    """What has the shape of the table(s) `beside` but no names of its own, with the names of their columns, which it has
    in their order."""
    if value is None:
        return None
    if isinstance(beside, (list, tuple)):
        if len(value) != len(beside) or not any(hasattr(one, "__array__") for one in beside):
            return value
        return [named_as(f"{name}[{i}]", *both) for i, both in enumerate(zip(value, beside))]
    named = None if is_column(beside) else named_columns(name, beside)
    if named is None or named_columns(name, value) is not None:
        return value
    array = real_numbers(name, value)
    return Named(array, named[1]) if array.ndim > 0 and array.shape[-1] == len(named[1]) else value


def in_order(name: str, value: Any, wanted: Optional[Sequence[str]], what: str, remedy: str = "",
             may_lack: Container[str] = ()) -> tuple[Any, Optional[list[str]]]:
    """A table, or a list of them, as array(s) with its columns in the order `wanted`, or in that of the first where
    that is None; and their names, None where they have none. `what` each column is, for messages. Those that it
    `may_lack` are then columns of NaN."""
    if isinstance(value, (list, tuple)) and not isinstance(value, Named):
        tables = []
        names: Optional[list[str]] = None
        for i, one in enumerate(value):
            table, own = one, None
            if hasattr(one, "__array__") or isinstance(one, Named):
                table, own = in_order(f"{name}[{i}]", one, wanted, what, remedy, may_lack)
            if own is not None and names is None:
                wanted = names = own
            tables.append(table)
        return (value, None) if names is None else (tables, names)
    named = None if is_column(value) else named_columns(name, value)
    if named is None:
        return columns_last(value), None
    table, names = named
    if wanted is None:
        return plain(table), names
    known = ", ".join(wanted)
    for one in names:
        if one not in wanted:
            expected, leave = f"one of {known}", "leave the column out, or call it so"
            raise of_kind("invalid_argument", f"{name}.{one}: found an unknown {what}, expected {expected}; {leave}",
                          f"{name}.{one}", f"an unknown {what}", expected, leave)
    for one in wanted:
        if one not in names and one not in may_lack:
            expected = f"one for each {what} ({known})"
            raise of_kind("invalid_argument", f"{name}: found no column {one}, expected {expected}"
                          + (remedy and f"; {remedy}"), name, f"no column {one}", expected, remedy)
    array = plain(table)
    if not set(wanted) <= set(names):
        array = np.concatenate([array, np.full_like(array[..., :1], np.nan, dtype=np.float64)], axis=-1)
    return array[..., [names.index(one) if one in names else -1 for one in wanted]], list(wanted)
