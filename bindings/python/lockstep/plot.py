"""Pictures of solutions and trainings, by matplotlib: each function draws into axes and returns them.

>>> import lockstep
>>> solution = lockstep.solve("lorenz", {"normal": {"mean": [1, 0, 0], "std": 0.1}}, (0, 5), 101, trajectories=50)
>>> axes = lockstep.plot.spread(solution, "x")  # doctest: +SKIP
"""

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

import numpy as np

from ._solution import STATUS_NAMES, Solution
from .errors import missing, of_kind, refused


def _axes(axes: Any) -> Any:
    if axes is not None:
        return axes
    return _pyplot().subplots()[1]


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise missing("matplotlib", "lockstep.plot") from error
    return matplotlib.pyplot


def _label(name: str, unit: Optional[str]) -> str:
    return f"{name} ({unit})" if unit else name


def _finished(solution: Solution) -> Any:
    """Whether each trajectory is: numbers of others, of a solve under way or stopped, mean nothing."""
    return solution.status != STATUS_NAMES.index("cancelled")


def _require_finished(solution: Solution, trajectories: Sequence[int]) -> None:
    finished = _finished(solution)
    for trajectory in trajectories:
        if not finished[trajectory]:
            found, expected = f"trajectory {trajectory}, which is not finished", f"one of the {finished.sum()} that are"
            remedy = "numpy.flatnonzero(solution.status != 6) has their numbers"
            raise refused("trajectory", found, expected, remedy)


def time_series(solution: Solution, components: Optional[Sequence[str]] = None, trajectory: int = 0,
                axes: Any = None) -> Any:
    """Components of one trajectory over time.

    Raises InvalidArgument where it is not finished: its numbers mean nothing."""
    _require_finished(solution, [trajectory])
    axes = _axes(axes)
    time = solution.time if solution.time.ndim == 1 else solution.time[trajectory]
    for component in components or solution.component_names:
        axes.plot(time, solution[component][trajectory], label=_label(component, solution.units.get(component)))
    axes.set_xlabel(_label("time", solution.time_unit))
    axes.legend()
    return axes


def phase(solution: Solution, x: Optional[str] = None, y: Optional[str] = None,
          trajectories: Sequence[int] = (0,), axes: Any = None) -> Any:
    """One component against another, along trajectories; the first and the last component if not named.

    Raises InvalidArgument where one of them is not finished."""
    _require_finished(solution, trajectories)
    axes = _axes(axes)
    x, y = x or solution.component_names[0], y or solution.component_names[-1]
    for trajectory in trajectories:
        axes.plot(solution[x][trajectory], solution[y][trajectory], linewidth=0.8)
    axes.set_xlabel(_label(x, solution.units.get(x)))
    axes.set_ylabel(_label(y, solution.units.get(y)))
    return axes


def spread(solution: Solution, component: Optional[str] = None, axes: Any = None) -> Any:
    """Median, 50 % and 90 % of the ensemble over time; where trajectories have ended, of those left, which the key says.
    Trajectories that are not finished are left out; the key says how many are.

    Raises InvalidArgument where save points differ between trajectories."""
    time = solution.time if solution.time.ndim == 1 else solution.time[0]
    if not (solution.time == time).all():
        found, remedy = "save points that differ between trajectories", "solve with save_at=[time] for all of them"
        raise of_kind("invalid_argument", f"solution: found {found}, expected the same for all; {remedy}", "solution",
                      found, "the same for all", remedy)
    axes = _axes(axes)
    component = component or solution.component_names[0]
    finished = _finished(solution)
    states = solution[component][finished]
    left = np.isfinite(states).sum(axis=0)
    quantiles = np.full((5, len(time)), np.nan)
    some = left > 0
    quantiles[:, some] = np.nanquantile(states[:, some], [0.05, 0.25, 0.5, 0.75, 0.95], axis=0)
    low, lower, median, upper, high = quantiles
    axes.fill_between(time, low, high, alpha=0.2, linewidth=0, color="C0", label="90 %")
    axes.fill_between(time, lower, upper, alpha=0.4, linewidth=0, color="C0", label="50 %")
    axes.plot(time, median, color="C0", label="median")
    axes.set_xlabel(_label("time", solution.time_unit))
    axes.set_ylabel(_label(component, solution.units.get(component)))
    said = [f"of those left, {left[-1]} of {len(states)} at the end"] if left[-1] < left[0] else []
    if len(states) < len(finished):
        said.insert(0, f"of {len(states)} finished of {len(finished)}")
    axes.legend(title="; ".join(said) or None)
    return axes


def sweep(solution: Solution, component: Optional[str] = None, over: Union[None, str, Sequence[str]] = None,
          of: str = "end", axes: Any = None) -> Any:
    """One number of each trajectory over a parameter or a component's initial value, or as colours over two:
    its state at the end, the ``"maximum"`` or ``"minimum"`` of its save points and its end, or their ``"mean"`` (by
    trapezoids between save points). ``over``: a name or two; if not given the axes of ``Solution.grid``, or the only
    parameter that differs between trajectories.
    Trajectories that failed or are not finished are left out. Axes of log-spaced values are logarithmic.

    Raises InvalidArgument where trajectories do not differ by one or two names."""
    component = component or solution.component_names[0]
    names = [over] if isinstance(over, str) else list(over) if over is not None else _differing(solution)
    if not 1 <= len(names) <= 2:
        raise refused("over", f"{len(names)} names" if names else "nothing that alone differs between trajectories",
                      "one or two parameters or components", f"give over={(*solution.parameter_names, component)[0]!r}")
    places = [_given(solution, name) for name in names]
    values = _reduced(solution, component, of)
    axes = _axes(axes)
    label = _label(component if of == "end" else f"{of} of {component}", solution.units.get(component))
    for axis, name, at in zip("xy", names, places):
        is_state = name not in solution.parameter_names
        getattr(axes, f"set_{axis}label")(
            _label(f"initial {name}", solution.units.get(name)) if is_state else name)
        if _log_spaced(np.unique(at)):
            getattr(axes, f"set_{axis}scale")("log")
    if len(places) == 1:
        order = np.argsort(places[0], kind="stable")
        joined = len(np.unique(places[0])) == len(values) <= 200
        axes.plot(places[0][order], values[order], ".-" if joined else ".")
        axes.set_ylabel(label)
        return axes
    (x, column), (y, row) = (np.unique(at, return_inverse=True) for at in places)
    if 1 < len(x) * len(y) < 2 * len(values):
        table = np.full((len(y), len(x)), np.nan)
        table[row, column] = values
        drawn = axes.pcolormesh(x, y, table, shading="nearest")
    else:
        drawn = axes.scatter(*places, c=values, s=8)
    axes.figure.colorbar(drawn, ax=axes, label=label)
    return axes


def _given(solution: Solution, name: str) -> Any:
    """Of each trajectory, what it was given."""
    if name in solution.parameter_names:
        return np.broadcast_to(solution.parameters, (len(solution), len(solution.parameter_names)))[
            :, solution.parameter_names.index(name)]
    if name in solution.component_names:
        return solution.initial_state[:, solution.component_names.index(name)]
    known = ", ".join((*solution.parameter_names, *solution.component_names))
    raise refused("over", repr(name), f"one of {known}", "")


def _differing(solution: Solution) -> list[str]:
    if solution.grid:
        return list(solution.grid)
    differ = [name for name in solution.parameter_names if len(np.unique(_given(solution, name))) > 1]
    return differ if len(differ) == 1 else []


def _reduced(solution: Solution, component: str, of: str) -> Any:
    if of == "end":
        values = solution.end_state[:, solution.component_names.index(component)].astype(float)
    elif of in ("maximum", "minimum"):
        extreme = np.fmax if of == "maximum" else np.fmin
        # An event may have ended it behind the last save point.
        ends = solution.end_state[:, solution.component_names.index(component)].astype(float)
        values = extreme(ends, extreme.reduce(solution[component].astype(float), axis=1, initial=np.nan))
    elif of == "mean":
        states, steps = solution[component].astype(float), np.diff(solution.time, axis=-1)
        areas = steps * (states[:, 1:] + states[:, :-1]) / 2
        lengths = np.where(np.isfinite(areas), steps, 0).sum(axis=1)
        values = np.where(lengths != 0, np.nansum(areas, axis=1) / np.where(lengths != 0, lengths, 1), states[:, 0])
    else:
        raise refused("of", repr(of), "end, maximum, minimum or mean", "")
    values[np.isin(solution.status, [STATUS_NAMES.index(name) for name in
                                     ("step_too_small", "not_finite", "too_many_steps", "cancelled")])] = np.nan
    return values


def _log_spaced(values: Any) -> bool:
    if len(values) < 3 or values[0] <= 0:
        return False
    even, ratios = np.diff(values), np.diff(np.log(values))
    return bool(np.ptp(even) > 1e-6 * even.sum() and np.ptp(ratios) < 1e-6 * ratios.sum())


def raster(solution: Solution, axes: Any = None) -> Any:
    """Events over time, a row for each trajectory, coloured by which of several resets it was. Raises InvalidArgument where
    the solution keeps none."""
    events = solution.events  # trajectories that are not finished have none
    axes = _axes(axes)
    few = len(events) <= 100  # strokes, whose heights are points; else a dot for each
    which = np.unique(events.reset)
    for number, reset in enumerate(which):
        one = events.of_reset(reset)
        axes.plot(one.time, one.trajectory, "|" if few else ",", color=f"C{number}", label=f"reset {reset}")
    axes.set_xlabel(_label("time", solution.time_unit))
    axes.set_ylabel("trajectory")
    if len(which) > 1:
        axes.legend()
    return axes


def loss(training: Any, axes: Any = None) -> Any:
    """Loss of each iteration of a Training."""
    axes = _axes(axes)
    history = training.history
    axes.semilogy(history["iteration"], history["loss"], label="loss")
    if not np.array_equal(history["watched"], history["loss"]):
        axes.semilogy(history["iteration"], history["watched"], label="watched")
        axes.legend()
    axes.set_xlabel("iteration")
    axes.set_ylabel(training.loss_name)
    return axes


def fit(training: Any, axes: Any = None) -> Any:
    """How good the fit of a Training is, as the picture that ``lockstep train`` writes.

    Of a neural ODE its data over the fitted curves, [component, trajectory], of a few trajectories, from the best met to the
    worst; of a regression predicted over true, [output], where what lies on the diagonal is right. `axes`: an array of
    as many, or None. Returns the array.

    Raises Unsupported where the training has nothing to draw.
    """
    picture = training._picture
    shown, outputs = picture.get("trajectories", []), picture.get("outputs", [])
    if not shown and not outputs:
        raise refused("training", "one whose fit could not be judged", "one with finite errors", "print(training.report) says why",
                      kind="unsupported")
    size = (len(picture["names"]), len(shown)) if shown else (1, len(outputs))
    if axes is None:
        axes = _pyplot().subplots(*size, squeeze=False, layout="constrained", figsize=(4 * size[1], 3 * size[0]),
                                  sharex="col" if shown else False, sharey="row" if shown else False)[1]
    panels = np.asarray(axes, dtype=object)
    if panels.size != size[0] * size[1]:
        raise refused("axes", str(panels.size), f"{size[0] * size[1]}, as an array {list(size)}")
    panels = panels.reshape(size)
    if not shown:
        for panel, one in zip(panels[0], outputs):
            _predicted_over_true(panel, one)
        return panels[0]
    for column, one in enumerate(shown):
        for row, name in enumerate(picture["names"]):
            unit = picture["units"][row] if picture["units"] else ""
            panel = panels[row, column]
            panel.plot(one["curve_times"], one["curve"][:, row], color="C0", label="fit")
            error = one["sigma"][:, row] if len(one["sigma"]) else None
            panel.errorbar(one["times"], one["data"][:, row], error, fmt="o", markersize=3, color="C1", label="data")
            if row == 0:
                panel.set_title(one["title"])
            if column == 0:
                panel.set_ylabel(_label(name, unit))
            if row + 1 == size[0]:
                panel.set_xlabel(_label(picture["time_name"], picture["time_unit"]))
    panels[0, 0].legend()
    return panels


def _predicted_over_true(axes: Any, output: Any) -> None:
    ends = [np.inf, -np.inf]
    for data, color in (("training", "C0"), ("validation", "C1")):
        true, predicted = output[data]
        if len(true) == 0:
            continue
        axes.plot(true, predicted, ".", markersize=3, color=color, label=data)
        ends = [min(ends[0], float(np.nanmin(true))), max(ends[1], float(np.nanmax(true)))]
    axes.plot(ends, ends, color="0.5", linewidth=0.8)
    axes.set_title(output["summary"])
    axes.set_xlabel("true " + _label(output["name"], output["unit"]))
    axes.set_ylabel("predicted")
    axes.legend()
