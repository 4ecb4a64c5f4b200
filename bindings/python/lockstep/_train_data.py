"""The data of a training, of arrays and tables in the forms that people have them in."""

from __future__ import annotations

from typing import Any, Container, Mapping, Optional, Sequence

import numpy as np

from ._arrays import Array, plain, real_numbers
from ._tables import column_name, in_order, is_column, named_as, named_columns
from .errors import of_kind, refused

_NOT_MEASURED = "a component that was not measured is a column of NaN"


def samples(x: Any, y: Any, sigma: Any, inputs: Optional[Sequence[str]], targets: Optional[Sequence[str]],
            start: Any) -> tuple[list[Array], list[str], list[str]]:
    """Of a regression: x [sample, input], y [sample, output] and, where it is given, sigma as y (its columns as those of y
    where only those have names); names of inputs and of targets."""
    called = column_name(x), column_name(y)
    sigma = named_as("sigma", sigma, y)
    x, x_names = in_order("x", x, inputs if inputs is not None else _names_of(start, "inputs", x), "input")
    y, y_names = in_order("y", y, targets if targets is not None else _names_of(start, "outputs", y), "target")
    arrays = [_columns("x", x), _columns("y", y)]
    inputs = _names("inputs", inputs if inputs is not None else x_names or called[0], "x", arrays[0])
    targets = _names("targets", targets if targets is not None else y_names or called[1], "y", arrays[1])
    _same("y", "samples", len(arrays[1]), len(arrays[0]))
    if sigma is not None:
        arrays.append(_columns("sigma", in_order("sigma", sigma, targets, "target")[0]))
        _same_shape("y", arrays[2], arrays[1])
    return arrays, inputs, targets


def held_apart(given: Any, trained_on: list[Array], inputs: list[str], targets: list[str]) -> list[Array]:
    """Arrays of samples that are not trained on, with the columns of those that are."""
    wanted = ["x", "y", "sigma"][:len(trained_on)]
    if len(given) != len(wanted):
        raise refused("validation", f"{len(given)} arrays", f"{len(wanted)}: {', '.join(wanted)}")
    arrays: list[Array] = []
    for name, value, like in zip(wanted, given, trained_on):
        array = _columns(f"validation.{name}", in_order(f"validation.{name}", value, inputs if name == "x" else targets,
                                                        "input" if name == "x" else "target")[0])
        if array.shape[1] != like.shape[1]:
            raise refused(f"validation.{name}", f"{array.shape[1]} columns", f"{like.shape[1]}, as {name} has")
        _same(f"validation.{name}", "samples", len(array), len(arrays[0]) if arrays else len(array))
        arrays.append(array)
    return arrays


def trajectories(t: Any, u: Any, sigma: Any, trajectory: Any, known: Optional[Sequence[str]],
                 states: Optional[Sequence[str]], start: Any, starts: Container[str] = ()
                 ) -> tuple[list[Array], list[str]]:
    """Of a neural ODE: t [time] with u [trajectory, time, component], [time, component] or [time]; or t
    [trajectory, time] with u [trajectory, time, component] or [trajectory, time]; and, where it is given, sigma as u
    (its columns as those of u where only those have names); names of the states.
    `known`: what the components are called, where that is known; a table may lack those of `starts`."""
    wanted = known if known is not None else _names_of(start, "outputs", u)
    called = column_name(u)
    sigma = named_as("sigma", sigma, u)
    u, names = in_order("u", u, wanted, "component", _NOT_MEASURED, starts)
    if sigma is not None:
        sigma = in_order("sigma", sigma, known or names, "component", may_lack=starts)[0]
    t = _times(t)
    if trajectory is not None:
        t, u, sigma = _apart(trajectory, t, u, sigma)
    ragged = _is_ragged(u)
    arrays = _rectangles(t, u) if ragged else [real_numbers("t", t), real_numbers("u", u)]
    arrays[1] = _of_trajectories(arrays[1], arrays[0])
    if arrays[1].ndim != 3 or arrays[0].ndim not in (1, 2):
        raise of_kind("invalid_argument", f"u: found shape {np.shape(u)} with t of shape {np.shape(t)}, expected "
                      "[trajectory, time, component] and [time] or [trajectory, time]", "u", str(np.shape(u)),
                      "[trajectory, time, component] and t [time] or [trajectory, time]", "")
    turned = not ragged and arrays[0].ndim == 1 and np.ndim(u) == 2 and np.shape(u)[1] == len(arrays[0])
    without = "of trajectories of one component, [trajectory, time], give u[..., None]"
    if turned and known is not None and len(known) == 1 and np.shape(u)[1] > 1:
        raise refused("u", f"shape {np.shape(u)} with t of shape {arrays[0].shape}", "[time, component], a column for "
                      f"{known[0]}", without)
    if arrays[0].shape[-1] != arrays[1].shape[1]:
        raise refused("t", f"{arrays[0].shape[-1]} points", f"{arrays[1].shape[1]}, as u has them", without if turned else "")
    if arrays[0].ndim == 2:
        _same("t", "trajectories", len(arrays[0]), len(arrays[1]))
    if sigma is not None:
        arrays.append(_rectangles(t, sigma, "sigma")[1] if ragged else real_numbers("sigma", sigma))
        arrays[2] = _of_trajectories(arrays[2], arrays[0])
        _same_shape("u", arrays[2], arrays[1])
    if states is None:
        columns = arrays[1].shape[-1]
        if known is not None and names is None and called is None and columns != len(known):
            by_name = ", ".join(f"{name!r}: ..." for name in known[:2])
            raise refused("u", f"{columns} column{'s' if columns != 1 else ''} without names",
                          f"{len(known)}, for {', '.join(known)} in this order",
                          f"{_NOT_MEASURED}; or give columns by name, {{{by_name}}}")
        states = names if names is not None else known if known and len(known) == arrays[1].shape[-1] else called
    return arrays, _names("states", states, "u", arrays[1])


def _of_trajectories(states: Array, times: Array) -> Array:
    """[trajectory, time, component] of what may be of one component, with the shape of the times, or of one trajectory,
    [time, component]."""
    if states.ndim == 1 or states.shape == times.shape:
        states = states[..., np.newaxis]
    return states[np.newaxis] if states.ndim == 2 else states


def _names_of(start: Any, ports: str, value: Any) -> Optional[list[str]]:
    """The features of the net to go on from, where the table `value` has columns of just these names."""
    found = start is not None and not is_column(value) and named_columns("start", value)
    if not found:
        return None
    names = [feature["name"] for port in getattr(start, ports) for feature in port["features"]]
    return names if sorted(names) == sorted(found[1]) else None


def _times(t: Any) -> Any:
    """Of a table with one column, its column."""
    if isinstance(t, (list, tuple)):
        return [_times(one) for one in t] if any(hasattr(one, "columns") for one in t) else t
    columns = getattr(t, "columns", None)
    return plain(t).reshape(-1) if columns is not None and not callable(columns) and len(columns) == 1 else t


def places_of(trajectory: Any) -> Optional[dict[Any, int]]:
    """Which trajectory is that of each label, in the order in which they first appear; None without any."""
    if trajectory is None:
        return None
    return {label: place for place, label in enumerate(dict.fromkeys(np.asarray(trajectory).reshape(-1).tolist()))}


def names_of(trajectory: Any) -> list[str]:
    """What trajectories are called: their labels, as text; nothing without any."""
    return [str(label) for label in places_of(trajectory) or ()]


def apart(parameters: Any) -> tuple[Any, dict[str, Any]]:
    """Parameters that all trajectories share or that are to be found, and known ones of each trajectory, arrays."""
    if not isinstance(parameters, Mapping):
        return parameters, {}
    of_each = {name: value for name, value in parameters.items()
               if not isinstance(value, (str, bytes, Mapping)) and np.ndim(value) == 1}
    return {name: value for name, value in parameters.items() if name not in of_each}, of_each


def known_parameters(of_each: Mapping[str, Any], trajectory: Any, trajectories: int) -> Array:
    """[trajectory, parameter] of arrays [trajectory], of a pandas.Series whose index has the labels, or [row] beside
    labels of rows."""
    labels = [] if trajectory is None else np.asarray(trajectory).reshape(-1).tolist()
    places = places_of(trajectory) or {}
    of_row = np.array([places[label] for label in labels], np.int64)
    first_rows = np.unique(of_row, return_index=True)[1]
    columns = []
    for name, value in of_each.items():
        field = f"parameters[{name!r}]"
        numbers = real_numbers(field, value)
        if trajectory is not None and len(numbers) == len(labels):
            first = numbers[first_rows]
            differs = np.flatnonzero(numbers != first[of_row])
            if len(differs):
                row = int(differs[0])
                raise refused(f"{field}[{row}]", f"{numbers[row]}", f"{first[of_row[row]]} as in the first row of "
                              f"trajectory {labels[row]}", "what changes with the time is a lockstep.table")
            numbers = first
        elif places:
            numbers = _in_order_of_labels(field, value, numbers, places)
        if len(numbers) != trajectories:
            raise refused(field, f"{len(numbers)} numbers", f"{trajectories}, one for each trajectory")
        if not np.isfinite(numbers).all():
            raise refused(f"{field}[{int(np.flatnonzero(~np.isfinite(numbers))[0])}]", "no finite number", "a finite number")
        columns.append(numbers)
    return np.stack(columns, axis=1)


def _in_order_of_labels(field: str, value: Any, numbers: Array, places: Mapping[Any, int]) -> Array:
    """[trajectory] of a pandas.Series whose index says of which it is, as that of `groupby` does. Where it counts rows,
    and of others, in the order in which the labels first appear."""
    index = getattr(value, "index", None)
    if index is None or callable(index) or len(numbers) != len(places):
        return numbers
    row_of = {label: row for row, label in enumerate(index)}
    if row_of.keys() == places.keys():
        return numbers[[row_of[label] for label in places]]
    if list(index) == list(range(len(numbers))):
        return numbers
    found = ", ".join(repr(label) for label in list(index)[:3]) + (", ..." if len(numbers) > 3 else "")
    raise refused(field, f"an index of {found}", "the labels that trajectory has",
                  "of numbers in the order in which those first appear give the values alone: .to_numpy()")


def _apart(trajectory: Any, t: Any, u: Any, sigma: Any) -> tuple[list[Array], list[Array], Optional[list[Array]]]:
    """Lists of an array for each trajectory, of rows with labels."""
    labels = np.asarray(trajectory).reshape(-1)
    times, rows = real_numbers("t", t), {"u": real_numbers("u", u)}
    if sigma is not None:
        rows["sigma"] = real_numbers("sigma", sigma)
    rows = {name: array[:, np.newaxis] if array.ndim == 1 else array for name, array in rows.items()}
    for name, array, dimensions, shape in (("t", times, 1, "[row]"), *(
            (name, array, 2, "[row, component]") for name, array in rows.items())):
        if array.ndim != dimensions:
            raise of_kind("invalid_argument", f"{name}: found {array.ndim} dimensions beside trajectory, expected {shape}",
                          name, f"{array.ndim} dimensions beside trajectory", shape, "")
        _same(name, "rows", len(array), len(labels))
    groups: dict[Any, list[int]] = {}
    for row, label in enumerate(labels.tolist()):
        if label is None or label != label:
            raise of_kind("invalid_argument", f"trajectory[{row}]: found {label}, expected a number or text that tells "
                          "trajectories apart; repair the row or leave it out", f"trajectory[{row}]", str(label),
                          "a number or text that tells trajectories apart", "repair the row or leave it out")
        groups.setdefault(label, []).append(row)
    apart = {name: [array[at] for at in groups.values()] for name, array in rows.items()}
    return [times[at] for at in groups.values()], apart["u"], apart.get("sigma")


def _same_shape(of: str, sigma: Array, array: Array) -> None:
    if sigma.shape != array.shape:
        raise of_kind("invalid_argument", f"sigma: found shape {sigma.shape}, expected {array.shape} as {of} has",
                      "sigma", f"shape {sigma.shape}", f"the shape of {of}", "")


def _columns(name: str, value: Any) -> Array:
    """[sample, feature]."""
    array = real_numbers(name, value)
    if array.ndim == 1:
        array = array[:, np.newaxis]
    if array.ndim != 2 or array.size == 0:
        raise of_kind("invalid_argument", f"{name}: found shape {array.shape}, expected [sample, feature]", name,
                      f"shape {array.shape}", "[sample, feature]", "")
    return array


def _is_ragged(u: Any) -> bool:
    return isinstance(u, (list, tuple)) and len({np.shape(one) for one in u}) > 1


def _rectangles(t: Any, u: Any, name: str = "u") -> list[Array]:
    """t [trajectory, time] and `name` [trajectory, time, component], filled up with NaN, of a list of an array each."""
    states = [real_numbers(f"{name}[{i}]", one) for i, one in enumerate(u)]
    if all(one.ndim == 1 for one in states):
        states = [one[:, np.newaxis] for one in states]
    for i, one in enumerate(states):
        if one.ndim != 2 or one.shape[1:] != states[0].shape[1:]:
            raise of_kind("invalid_argument", f"{name}[{i}]: found shape {one.shape}, expected [time, component]", f"{name}[{i}]",
                          f"shape {one.shape}", "[time, component]", "")
    _same("t", "trajectories", len(t), len(states))
    longest = max(len(one) for one in states)
    times, all_states = np.full((len(u), longest), np.nan), np.full((len(u), longest, states[0].shape[1]), np.nan)
    for i, (of, one) in enumerate(zip(t, states)):
        of = real_numbers(f"t[{i}]", of)
        if of.shape != one.shape[:1]:
            raise of_kind("invalid_argument", f"t[{i}]: found shape {of.shape}, expected ({len(one)},) as {name}[{i}] has",
                          f"t[{i}]", f"shape {of.shape}", f"({len(one)},)", "")
        times[i, :len(one)] = of
        all_states[i, :len(one)] = one
    return [times, all_states]


def _names(what: str, names: Optional[Sequence[str]], prefix: str, array: Array) -> list[str]:
    count = array.shape[-1]
    if names is None:
        return [f"{prefix}{i}" for i in range(count)]
    _same(what, "names", len(names), count)
    return list(names)


def _same(name: str, what: str, found: int, expected: int) -> None:
    if found != expected:
        raise of_kind("invalid_argument", f"{name}: found {found} {what}, expected {expected}", name, f"{found} {what}",
                      str(expected), "")
