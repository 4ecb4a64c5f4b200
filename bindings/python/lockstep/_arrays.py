"""Arrays, and those of other frameworks."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Set
from typing import Any, NamedTuple, Optional

import numpy as np
from numpy.typing import NDArray

from .errors import of_kind, refused

Array = NDArray[Any]  # of NumPy, of any numbers


class Named(NamedTuple):
    """Columns with names."""

    array: Array
    names: list[str]


def real_numbers(name: str, value: Any) -> Array:
    """float64, C-contiguous; of what NumPy can make an array of numbers of."""
    masked = np.ma.MaskedArray
    if isinstance(value, masked):
        value = _unmasked(name, value)
    elif isinstance(value, (list, tuple)):
        value = [_unmasked(name, one) if isinstance(one, masked) else one for one in value]
    try:
        array = plain(value)
    except Exception as error:  # PyTorch and others raise their own for devices and gradients
        if isinstance(error, ValueError) and isinstance(value, (list, tuple)) and (found := _ragged(value)):
            raise refused(name, found, "an array of numbers", "give rows of one length", kind="type") from None
        if type(error).__name__.startswith("Tracer"):  # JAX's, of what stands for numbers under jit, grad and vmap
            raise refused(name, "an array that JAX traces, which has no numbers yet", "an array of numbers",
                          "call it by jax.pure_callback, as docs/python.md does", kind="type") from error
        raise of_kind("type", f"{name}: {error}", name, type(value).__name__, "an array of numbers", "") from error
    if array.dtype.kind not in "iuf":
        if array.ndim == 0 and isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
            is_ordered = not isinstance(value, Set)
            raise refused(name, type(value).__name__, "an array of numbers",
                          f"make a list of it: list({name})" if is_ordered else "give a list, which has an order", kind="type")
        remedy = (f"divide by a unit: ({name} - {name}[0]) / numpy.timedelta64(1, \"h\")" if array.dtype.kind == "M" else
                  f"divide by a unit: {name} / numpy.timedelta64(1, \"h\")" if array.dtype.kind == "m" else
                  f"convert it: numpy.asarray({name}, float)" if array.dtype.kind in "OSUb" and _is_convertible(value) else "")
        raise of_kind("type", f"{name}: found dtype {array.dtype}, expected real numbers" + (remedy and f"; {remedy}"),
                      name, str(array.dtype), "real numbers", remedy)
    return np.ascontiguousarray(array, dtype=np.float64)


def _is_convertible(value: Any) -> bool:
    try:
        np.asarray(value, np.float64)
    except (TypeError, ValueError):
        return False
    return True


def column(value: Any) -> Optional[Array]:
    """A list or array [trajectory] of a dict as float64, the numbers that its text would be read as; None of what is no
    such, which is written as text, by which it is judged."""
    if isinstance(value, list):
        if set(map(type, value)) not in ({float}, {int}):
            return None
    elif isinstance(value, np.ma.MaskedArray) or not hasattr(value, "__array__") or not hasattr(value, "dtype"):
        return None
    array = np.asarray(value)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
        return None
    if array.dtype.kind == "u" and int(array.max()) >= 2**63:  # no integer of a problem file
        return None
    if isinstance(value, list) and isinstance(value[0], int) and array.dtype.kind == "f":  # beside negative ones, likewise
        return None
    numbers = np.ascontiguousarray(array, dtype=np.float64)
    return numbers if np.isfinite(numbers).all() else None


def plain(value: Any) -> Array:
    """As NumPy makes it; of pandas' own Float64 and Int64, which it makes objects of, numbers with NaN for what is missing."""
    array = np.asarray(value)
    if array.dtype.kind != "O" or not hasattr(value, "to_numpy"):
        return array
    dtypes = getattr(value, "dtypes", ())  # a pandas.Series has one
    if not all(getattr(dtype, "kind", "O") in "iuf" for dtype in (dtypes if hasattr(dtypes, "__iter__") else [dtypes])):
        return array
    numbers: Array = value.to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers


def _unmasked(name: str, value: Any) -> Array:
    """Its numbers, where none is masked: what lies under a mask is no number of anybody's."""
    ma: Any = np.ma  # which older ones of NumPy do not type
    if not ma.is_masked(value):
        plain: Array = value.data
        return plain
    count = ma.count_masked(value)
    found = f"a masked array, {count} of its {value.size} numbers masked"
    remedy = (f"fill them, {name}.filled(0), or leave their rows out, numpy.ma.compress_rows({name}); gaps in data to "
              f"train on are NaN: {name}.filled(numpy.nan)")
    raise refused(name, found, "an array of numbers", remedy, kind="type")


def _ragged(value: Any) -> str:
    """What a list of unequal rows is; empty of others."""
    shapes = [np.shape(one) if not isinstance(one, (list, tuple)) else (len(one),) for one in value]
    differs = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
    if differs is None:
        return ""

    def text(shape: tuple[int, ...]) -> str:
        return "a number" if shape in ((), (1,)) else f"{shape[0]} numbers" if len(shape) == 1 else f"shape {shape}"

    return f"rows of unequal lengths: {text(shapes[0])} in row 0, {text(shapes[differs])} in row {differs}"


def whole(name: str, value: Any, expected: str = "an integer") -> Optional[int]:
    """An integer of Python or NumPy, or an array of one without dimensions; None of None."""
    if value is None or type(value) is int:
        return value
    if isinstance(value, np.integer) or isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    dtype = getattr(value, "dtype", None)
    if getattr(dtype, "kind", "") in "iu" and dtype is not None and np.ndim(value) == 0:
        return int(value)
    if isinstance(value, (float, np.floating)) or getattr(dtype, "kind", "") == "f" and np.ndim(value) == 0:
        number = float(value)
        raise refused(name, f"{number}", expected, f"write {int(number)}" if number.is_integer() else "", kind="type")
    raise refused(name, repr(value) if isinstance(value, (str, bool)) else type(value).__name__, expected, kind="type")


def rows_like(values: list[float], of: Any) -> Any:
    """[value] for a sample alone, [sample, value] for several, of the dtype and framework of `of`, [sample, feature]."""
    shape = tuple(np.shape(of))[:-1] + (len(values),)
    dtype = np.float32 if str(getattr(of, "dtype", "")).endswith("float32") else np.float64
    return like(np.array(np.broadcast_to(np.array(values, dtype), shape)), of)


def _framework(x: Any) -> str:
    return type(x).__module__.partition(".")[0]


def like(result: Any, x: Any) -> Any:
    """`result`, a NumPy array or a DeviceArray, as an array of the framework that `x` is of; as it is where that is not
    known."""
    framework = _framework(x)
    if framework == "torch":
        torch = sys.modules["torch"]
        return torch.from_numpy(result) if isinstance(result, np.ndarray) else torch.from_dlpack(result)
    if framework in ("jax", "jaxlib"):
        return sys.modules["jax"].dlpack.from_dlpack(result)
    if framework == "cupy":
        return sys.modules["cupy"].from_dlpack(result)
    return result


def current_stream(x: Any, device: int) -> Optional[int]:
    """The stream on which the framework that `x` is of works on that GPU just now, as DLPack names it (1: the legacy
    default stream); None where that is not known."""
    framework = _framework(x)
    if framework == "torch":
        return sys.modules["torch"].cuda.current_stream(device).cuda_stream or 1
    if framework == "cupy":
        cuda = sys.modules["cupy"].cuda
        with cuda.Device(device):
            return cuda.get_current_stream().ptr or 1
    return None
