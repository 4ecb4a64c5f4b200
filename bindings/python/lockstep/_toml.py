"""Arguments as the TOML that the command line tool reads: one reader checks both, with one set of messages."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._unknown import PLACES
from .errors import of_kind, wrong_type


def _text(value: str) -> str:
    if value.isprintable() and '"' not in value and "\\" not in value:
        return f'"{value}"'
    escaped = []
    for letter in value:
        if letter in '"\\':
            escaped.append("\\" + letter)
        elif ord(letter) < 32 or ord(letter) == 127:
            escaped.append(f"\\u{ord(letter):04x}")
        else:
            escaped.append(letter)
    return '"' + "".join(escaped) + '"'


def _value(value: Any, name: str) -> str:
    kind = type(value)  # of most values, which need no longer look
    if kind is str:
        return _text(value)
    if kind is float and math.isfinite(value):
        return repr(value)
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        if not -2**63 <= int(value) < 2**63:
            raise of_kind("invalid_argument", f"{name}: found {int(value)}, expected an integer of 64 bits", name,
                          str(int(value)), "an integer of 64 bits", "")
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            raise of_kind("invalid_argument", f"{name}: found {value}, expected a finite number", name, str(value),
                          "a finite number", "")
        return repr(float(value))
    if isinstance(value, (str, os.PathLike)):
        return _text(os.fspath(value))
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_text(str(key))} = {_value(item, f'{name}.{key}')}" for key, item in value.items()) + " }"
    if isinstance(value, np.ndarray):
        value = value.tolist()
        return _value(value, name)
    if hasattr(value, "__array__") and hasattr(value, "dtype"):  # a pandas.Series, an xarray.DataArray
        return _value(np.asarray(value).tolist(), name)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(item, name) for item in value) + "]"
    is_number = hasattr(value, "__float__") and np.ndim(value) == 0  # a decimal.Decimal, a fractions.Fraction
    raise wrong_type(name, value, "a number, text, list or dict", "convert it with float()" if is_number else "")


def path(section: str, name: str) -> str:
    """Of a table in a section."""
    return f"{section}.{_text(name)}"


def write(sections: Mapping[str, Any]) -> str:
    """TOML of sections, each a dict of values (or, for an array of tables, a list of such); None is left out."""
    lines = []
    for section, content in sections.items():
        tables = content if isinstance(content, list) else [content]
        for table in tables:
            entries = [f"{key} = {_value(value, PLACES['problem'].get((section, key), key))}"
                       for key, value in table.items() if value is not None]
            if not entries and tables is not content:
                continue
            lines.append(f"[[{section}]]" if tables is content else f"[{section}]")
            lines += entries
    return "\n".join(lines) + "\n"
