"""Ranges and names of a net's features, as Model.with_ranges and Model.with_names take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Sequence

import numpy as np

from ._arrays import real_numbers
from .errors import refused

_WAYS = "minimum and maximum, {name: (minimum, maximum)}, or data="


def ranges(net: Any, minimum: Any, maximum: Any, data: Any) -> tuple[list[float], list[float]]:
    """Least and largest of each input feature, those of all ports one after another."""
    if data is not None:
        if minimum is not None or maximum is not None:
            raise refused("data", "data beside a minimum or maximum", f"one of: {_WAYS}")
        both = [_of_data(field, port["features"], given) for port, field, given in _by_port("data", net.inputs, data)]
        return [x for low, _ in both for x in low], [x for _, high in both for x in high]
    if isinstance(minimum, Mapping):
        if maximum is not None:
            raise refused("maximum", "a value beside a dict of ranges", "the dict alone")
        return _by_name(net.inputs, minimum)
    if minimum is None or maximum is None:
        found = "nothing" if minimum is maximum else "one of minimum and maximum"
        raise refused("minimum", found, f"one of: {_WAYS}", "an end without a bound is infinite: numpy.inf")
    count = sum(len(port["features"]) for port in net.inputs)
    return _wide("minimum", minimum, count), _wide("maximum", maximum, count)


def names(which: str, ports: Sequence[Any], given: Any) -> list[str]:
    """A name for each feature, those of all ports one after another."""
    if isinstance(given, Mapping):
        _require_ports(which, ports, given)
        result: list[str] = []
        for port in ports:
            kept = [feature["name"] for feature in port["features"]]
            called = port["name"]
            result += _texts(f"{which}[{called!r}]", given[called], len(kept)) if called in given else kept
    else:
        result = _texts(which, given, sum(len(port["features"]) for port in ports))
    for i, name in enumerate(result):
        if name and name in result[:i]:
            raise refused(which, f"{name!r} twice", "different names")
    return result


def _texts(field: str, given: Any, count: int) -> list[str]:
    texts: list[str] = [given] if isinstance(given, str) else list(given)
    if not all(isinstance(name, str) for name in texts):
        raise refused(field, repr(texts), "texts")
    if len(texts) != count:
        raise refused(field, f"{len(texts)} names", f"{count}, one for each feature")
    return texts


def _by_name(ports: Sequence[Any], given: Mapping[str, Any]) -> tuple[list[float], list[float]]:
    features = [feature for port in ports for feature in port["features"]]
    called = [feature["name"] for feature in features]
    low, high = [feature["minimum"] for feature in features], [feature["maximum"] for feature in features]
    places, first = {}, 0
    for port in ports:
        places[port["name"]] = slice(first, first + len(port["features"]))
        first += len(port["features"])
    for name, pair in given.items():
        field = f"minimum[{name!r}]"
        try:
            least, largest = pair
        except (TypeError, ValueError):
            raise refused(field, repr(pair), "a pair: (minimum, maximum)") from None
        at = places.get(name)
        if name in called and (at is None or np.ndim(least) == np.ndim(largest) == 0):
            if called.count(name) > 1:
                raise refused(field, f"a name of {called.count(name)} features", "the name of one",
                               "give its port's ranges as arrays")
            at = slice(called.index(name), called.index(name) + 1)
        if at is None:
            known = ", ".join(dict.fromkeys([*places, *(name for name in called if name)]))
            raise refused("minimum", f"a range of {name!r}", f"names of input ports or features: {known}")
        low[at] = _wide(f"{field}[0]", least, at.stop - at.start)
        high[at] = _wide(f"{field}[1]", largest, at.stop - at.start)
    return low, high


def _wide(field: str, value: Any, count: int) -> list[float]:
    """`count` numbers, which one stands for."""
    array = real_numbers(field, value)
    if np.ndim(value) != 0 and array.shape != (count,):
        raise refused(field, f"shape {array.shape}", f"({count},), one for each input feature, or a number for all")
    if np.isnan(array).any():
        raise refused(field, "NaN", "numbers", "an end without a bound is infinite: numpy.inf")
    return [float(number) for number in np.broadcast_to(array, count)]


def _by_port(field: str, ports: Sequence[Any], given: Any) -> list[tuple[Any, str, Any]]:
    known = ", ".join(port["name"] for port in ports)
    if not isinstance(given, Mapping):
        if len(ports) != 1:
            raise refused(field, type(given).__name__, f"a dict of arrays by input port: {known}")
        return [(ports[0], field, given)]
    _require_ports(field, ports, given)
    for port in ports:
        if port["name"] not in given:
            raise refused(field, f"nothing for port {port['name']!r}", f"an array for each input port: {known}")
    return [(port, f"{field}[{port['name']!r}]", given[port["name"]]) for port in ports]


def _require_ports(field: str, ports: Sequence[Any], given: Mapping[str, Any]) -> None:
    known = [port["name"] for port in ports]
    for name in given:
        if name not in known:
            raise refused(field, f"port {name!r}", f"the ports {', '.join(known)}")


def _of_data(field: str, features: Sequence[Any], given: Any) -> tuple[list[float], list[float]]:
    """Least and largest number of each feature, which are the last dimension of the data."""
    called = [feature["name"] for feature in features]
    columns = getattr(given, "columns", None)
    if columns is not None and all(called):  # a DataFrame, whose columns come in any order
        if not set(called) <= set(columns):
            raise refused(field, f"columns {', '.join(map(str, columns))}", f"the net's inputs {', '.join(called)}",
                           "rename them, or give an array with the inputs in the net's order")
        given = given[called]
    array = real_numbers(field, given)
    if array.ndim == 1 and len(features) == 1:
        array = array[:, np.newaxis]
    if array.ndim < 2 or array.shape[-1] != len(features):
        raise refused(field, f"shape {array.shape}", f"[sample, input] with {len(features)} inputs, last")
    rows = array.reshape(-1, len(features))
    if np.isinf(rows).any():
        raise refused(field, "infinity", "finite numbers", "repair the row or leave it out")
    measured = (~np.isnan(rows)).any(axis=0)
    if not measured.all():
        at = int(np.argmin(measured))
        raise refused(field, f"no number of input {called[at] or at}", "at least one", "give minimum and maximum instead")
    return np.nanmin(rows, axis=0).tolist(), np.nanmax(rows, axis=0).tolist()
