"""What a solve returns and a result file holds."""

from __future__ import annotations

import copy
import operator
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional, Sequence, Union

import numpy as np

from . import _lockstep, _unknown
from ._arrays import Array
from ._events import Events
from .errors import Error, missing, of_kind, refused

if TYPE_CHECKING:
    import xarray

    from ._gradients import Gradients, Sensitivities

PathLike = Union[str, "os.PathLike[str]"]

#: Names of the numbers in ``Solution.status``.
STATUS_NAMES = ("success", "terminated", "step_too_small", "not_finite", "too_many_steps", "outside_range", "cancelled")

_DIMENSIONS = {
    "state": ("trajectory", "time", "component"),
    "end_state": ("trajectory", "component"),
    "initial_state": ("trajectory", "component"),
}
_PER_TRAJECTORY = ("status", "accepted", "rejected", "evaluations", "end_time")
_GIVEN = ("initial_state", "parameters", "start_time")  # to the solve
_OF_EVENTS = ("event_time", "event_reset", "event_first")

# Attributes that decide the numbers of a file: what else may change under a solution, as by `lockstep pack`.
_DECIDING = ("lockstep_format", "version", "problem_digest", "rhs_digest", "model_digest", "method", "control",
             "precision", "matrix_precision", "rtol", "atol", "dt", "initial_step", "max_step", "stops",
             "stop_at_knots", "max_steps", "guard", "products", "first_trajectory")
_SHAPES = ("dtype", "trajectories", "save_points", "component_names", "parameter_names", "keeps_events")

# As result files have them.
_LONG_NAMES = {
    "state": "state at the save points; NaN after the trajectory's end",
    "time": "time",
    "status": "how the trajectory ended",
    "end_state": "state where the trajectory stopped",
    "end_time": "time where the trajectory stopped",
    "start_time": "time where the trajectory started",
    "initial_state": "initial state",
    "parameters": "parameters of the right-hand side",
    "accepted": "accepted steps",
    "rejected": "rejected steps",
    "evaluations": "evaluations of the right-hand side",
    "event_time": "time at which a reset changed the state",
    "event_reset": "which reset it was",
    "event_trajectory": "trajectory whose state changed",
}


class Solution:
    """States of an ensemble at its save points, and how each trajectory ended.

    Made by ``solve()`` and ``read()``. Arrays of a solution that lies in a file are read when they are first asked for;
    FileError where another run's file has taken its place by then.
    None of them can be written to, since ``save``, ``vjp`` and ``validate`` go by what was solved: change a copy,
    ``solution.state.copy()``.

    >>> import lockstep
    >>> solution = lockstep.solve("lorenz", [1.0, 0.0, 0.0], (0, 1), save_at=11)
    >>> solution
    <lockstep.Solution Lorenz 1963: state[trajectory 1, time 11, component 3] float32, all succeeded>
    >>> solution.state.shape, solution["x"].shape, solution.component_names
    ((1, 11, 3), (1, 11), ('x', 'y', 'z'))
    """

    def __init__(self, *, solved: Any = None, path: Optional[PathLike] = None, trajectories: slice = slice(None),
                 times: slice = slice(None), components: Sequence[str] = ()):
        self._arrays: dict[str, Array] = {}
        self._first = 0  # the number of the first trajectory
        self._solved = solved
        self.path: Optional[Path] = None if path is None else Path(path)
        self._file = None if path is None else Path(path).absolute()  # whatever becomes the current folder
        if solved is not None:  # what is not asked for is not made
            return
        self._stamp = _stamp(path)
        about = _lockstep.describe_file(path)
        self._held = _held(about)
        self.attributes = about["attributes"]
        self.parameter_names = tuple(about["parameter_names"])
        self._in_file = tuple(about["component_names"])
        self.component_names = tuple(components) or self._in_file
        self._trajectories = _indices("trajectories", trajectories, about["trajectories"])
        self._times = _indices("times", times, about["save_points"])
        self._dtype = about["dtype"]
        self._first = int(self.attributes.get("first_trajectory", 0))
        self._units = dict(zip(self._in_file, about["component_units"]))
        self.time_unit = about["time_unit"]
        self._keeps_events = about["keeps_events"]
        self._reset_texts = about["reset_texts"]

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """Where it comes from, by the names of docs/files.md."""
        attributes: dict[str, Any] = self._solved.attributes
        return attributes

    @cached_property
    def component_names(self) -> tuple[str, ...]:
        return tuple(self._solved.component_names)

    @cached_property
    def parameter_names(self) -> tuple[str, ...]:
        return tuple(self._solved.parameter_names)

    @cached_property
    def time_unit(self) -> str:
        """Of ``time``; empty where it is not known."""
        return str(self._solved.time_unit)

    @cached_property
    def _keeps_events(self) -> bool:
        return bool(self._solved.keeps_events)

    @cached_property
    def _reset_texts(self) -> list[str]:
        return list(self._solved.reset_texts)

    @cached_property
    def _units(self) -> dict[str, str]:
        return dict(zip(self.component_names, self._solved.component_units))

    def _complete(self) -> dict[str, Any]:
        """All that it consists of, made where it is not yet; not what lies in a file."""
        if self._solved is not None:
            for name in (*_DIMENSIONS, *_PER_TRAJECTORY, *_GIVEN, *(_OF_EVENTS if self._keeps_events else ()), "time"):
                self._array(name)
            for name in ("attributes", "component_names", "parameter_names", "time_unit", "_reset_texts", "_units"):
                getattr(self, name)
        return self.__dict__

    # Pickled, a solution is its arrays, or its file's path: what a solve keeps for derivatives stays with the one that
    # solve() returned.
    def __getstate__(self) -> dict[str, Any]:
        state = dict(self._complete())
        if self._solved is not None:
            state["_solved"] = None
            state["_arrays"] = dict(self._arrays)
        if self._file is not None:
            state["path"] = self._file
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._keep_as_they_are()

    def _keep_as_they_are(self) -> None:
        for array in self._arrays.values():
            _read_only(array)

    def __copy__(self) -> Solution:
        return self._copied(lambda value: value)

    def __deepcopy__(self, memo: dict[int, Any]) -> Solution:
        return self._copied(lambda value: copy.deepcopy(value, memo))

    def _copied(self, copied: Callable[[Any], Any]) -> Solution:
        """With the same solve behind it, which nobody changes."""
        result = object.__new__(type(self))
        result.__dict__.update({name: value if name == "_solved" else copied(value)
                                for name, value in self._complete().items()})
        result._keep_as_they_are()
        return result

    def _solve_behind(self, expected: str, remedy: str) -> Any:
        """The solve that this came out of; Unsupported where it lies elsewhere."""
        if self._solved is not None:
            return self._solved
        found = f"one that lies in {self.path}" if self.path is not None else "one that was unpickled"
        if self.path is None:
            remedy = "do that where it was solved, and pickle what comes out"
        raise of_kind("unsupported", f"solution: found {found}, expected {expected}; {remedy}", "solution", found,
                      expected, remedy)

    def _array(self, name: str) -> Array:
        array = self._arrays.get(name)
        if array is not None:
            return array
        if self._solved is not None:
            return self._arrays.setdefault(name, _read_only(self._solved.array(name)))
        self._read(name)
        return self._arrays[name]

    def _same_file(self) -> Optional[Path]:
        """Its path; FileError where another run's file has taken the place of the one that was opened."""
        stamp = _stamp(self._file)
        if self._file is None or stamp == self._stamp:
            return self._file
        if _held(_lockstep.describe_file(self._file)) != self._held or "problem_digest" not in self.attributes:
            found, expected = "a file that was written since", "the one that was opened"
            remedy = "read it anew, or give each run a file of its own"
            raise of_kind("file", f"{self.path}: found {found}, expected {expected}; {remedy}", str(self.path), found,
                          expected, remedy)
        self._stamp = stamp
        return self._file

    def _read(self, name: str) -> None:
        self._same_file()
        if name in _GIVEN:
            arrays = _lockstep.read_given(self._file, self._trajectories)
            columns = [self._in_file.index(component) for component in self.component_names]
            arrays["initial_state"] = arrays["initial_state"][:, columns]
        elif name in _PER_TRAJECTORY:
            arrays = _lockstep.read_records(self._file, self._trajectories)
        elif name in _OF_EVENTS:
            arrays = _lockstep.read_events(self._file, self._trajectories)
        else:
            arrays, stopped = _lockstep.read(self._file, self._trajectories, self._times, list(self.component_names))
            if stopped is not None:
                raise stopped
            # Of a solve under way: their space may not have been written yet.
            unwritten = (arrays["status"] == STATUS_NAMES.index("cancelled")) & (arrays["evaluations"] == 0)
            for states in ("state", "end_state") if unwritten.any() else ():
                arrays[states] = arrays[states].copy()
                arrays[states][unwritten] = np.nan
        self._arrays.update({name: _read_only(array) for name, array in arrays.items()})

    @property
    def state(self) -> Array:
        """float32 or float64 [trajectory, time, component]; NaN where a trajectory ended before the save point, and
        of trajectories that a solve under way has not stored yet."""
        return self._array("state")

    @property
    def time(self) -> Array:
        """float64 [time], or [trajectory, time] where save points differ."""
        return self._array("time")

    @property
    def end_state(self) -> Array:
        """[trajectory, component], at ``end_time``."""
        return self._array("end_state")

    @property
    def start_time(self) -> Array:
        """float64 [trajectory]: where each started."""
        return self._array("start_time")

    @property
    def end_time(self) -> Array:
        """float64 [trajectory]: where each stopped."""
        return self._array("end_time")

    @property
    def status(self) -> Array:
        """uint8 [trajectory]: an index into ``lockstep.STATUS_NAMES``; 0 is success."""
        return self._array("status")

    @property
    def accepted(self) -> Array:
        """int32 [trajectory]: steps taken."""
        return self._array("accepted")

    @property
    def rejected(self) -> Array:
        """int32 [trajectory]: steps tried in vain."""
        return self._array("rejected")

    @property
    def evaluations(self) -> Array:
        """int32 [trajectory]: of the right-hand side."""
        return self._array("evaluations")

    @property
    def initial_state(self) -> Array:
        """float64 [trajectory, component]."""
        return self._array("initial_state")

    @property
    def parameters(self) -> Array:
        """float64 [trajectory, parameter], or [parameter] where all trajectories share them."""
        return self._array("parameters")

    @property
    def grid(self) -> dict[str, Array]:
        """Values of each axis of the grid that was solved, by name, the slowest first: ``solve(..., grid=...)``.

        Empty where there was none, and of a part of one. ``solution["x"][:, -1].reshape([len(values) for values in
        solution.grid.values()])`` has an axis for each."""
        names, points = self.attributes.get("grid", ()), self.attributes.get("grid_points", ())
        names = [names] if isinstance(names, str) else list(names)
        shape = [int(count) for count in np.atleast_1d(points)]
        if not names or int(np.prod(shape)) != len(self):
            return {}
        grid: dict[str, Array] = {}
        for axis, name in enumerate(names):
            if name in self.parameter_names:
                column = self.parameters[:, self.parameter_names.index(name)]
            elif name in self.component_names:
                column = self.initial_state[:, self.component_names.index(name)]
            else:  # a component that the file does not hold
                return {}
            grid[name] = np.moveaxis(column.reshape(shape), axis, 0).reshape(shape[axis], -1)[:, 0]
        return grid

    @property
    def events(self) -> Events:
        """Which resets struck each trajectory, and when: of a solve with ``keep_events=True``. An event that ended a
        trajectory is none of them: its time is ``end_time``."""
        if not self._keeps_events:
            found, expected = "a solution without them", "one whose events were kept"
            remedy = "solve with resets and keep_events=True; in a problem file, events = true in [output]"
            if self.attributes.get("events"):  # which an unfinished file has in another one
                expected = f"{self.path}.events beside it"
                remedy = "finish the solve: lockstep solve --resume"
            raise of_kind("invalid_argument", f"events: found {found}, expected {expected}; {remedy}", "events", found,
                          expected, remedy)
        return Events(*(self._array(name) for name in _OF_EVENTS))

    @property
    def units(self) -> dict[str, str]:
        """Of the components, by name; empty where they are not known. ``time_unit`` is that of time."""
        return {name: self._units[name] for name in self.component_names if self._units.get(name)}

    def __getitem__(self, component: str) -> Array:
        """States of one component: [trajectory, time]."""
        if component not in self.component_names:
            raise of_kind("invalid_argument", f"component: found {component!r}, expected one of {self.component_names}",
                          "component", repr(component), f"one of {self.component_names}", "")
        return self.state[:, :, self.component_names.index(component)]

    def __contains__(self, component: Any) -> bool:
        """Whether it has states of a component of this name."""
        return isinstance(component, str) and component in self.component_names

    def __iter__(self) -> Iterator[Any]:
        """Refused: names of components and trajectories are both what one may mean."""
        raise refused("solution", "an iteration over it", "one over what it holds",
                      "component_names are the keys of solution[name], and solution.state has a row for each trajectory",
                      kind="type")

    def __len__(self) -> int:
        """The number of trajectories."""
        return len(self.status)

    def __repr__(self) -> str:
        if self.path is None or "state" in self._arrays:
            sizes, dtype = self.state.shape, self.state.dtype
        else:  # a repr reads no states
            sizes = (self._trajectories[1], self._times[1], len(self.component_names))
            dtype = self._dtype
        title = self.attributes.get("title") or self.attributes.get("rhs", "")
        shape = ", ".join(f"{name} {count}" for name, count in zip(_DIMENSIONS["state"], sizes))
        try:
            status = self.status
        except Error as error:
            return f"<lockstep.Solution {title}: state[{shape}] {dtype}, {error}>"
        counts = np.bincount(status, minlength=len(STATUS_NAMES))
        ended = ", ".join(f"{count} {name}" for count, name in zip(counts, STATUS_NAMES) if count)
        if counts[0] == len(status):
            ended = "all succeeded"
        return f"<lockstep.Solution {title}: state[{shape}] {dtype}, {ended}>"

    @_unknown.answered("")
    def vjp(self, state: Any = None, *, end_state: Any = None, end_time: Any = None) -> Gradients:
        """Derivatives of a loss by initial states, parameters and the net's weights, from its derivatives by what was
        solved: the transposed Jacobian of the solve times a vector.

        Exact for what was computed, with the accepted steps as constants (docs/adjoint.md), in the solve's precision;
        ``precision="f64"`` for optimisers that want more digits. Resets move in time with what they depend on: behind
        one the derivatives are those of the solution, to the solve's tolerance. Solves once more, forwards and
        backwards. Solutions in memory alone have it. Of a trajectory that failed the states saved before count, its end
        does not; a UserWarning says so where the loss asks for it.

        Parameters
        ----------
        state : array
            dL/d``state``, [trajectory, time, component]. Ignored where the trajectory never arrived.
        end_state : array
            dL/d``end_state``, [trajectory, component]. Ignored where the trajectory failed.
        end_time : array
            dL/d``end_time``, [trajectory]: counts where an event ended the trajectory.

        Returns
        -------
        Gradients
            ``u0``, ``parameters``, ``weights``.

        >>> import lockstep, numpy as np
        >>> decay = lockstep.equations({"x": "-k * x"}, parameters={"k": 2})
        >>> solution = lockstep.solve(decay, [1.0], (0, 1), save_at=[1], rtol=1e-10, atol=1e-10, precision="f64")
        >>> gradients = solution.vjp(np.ones_like(solution.state))      # L = x(1) = x0 exp(-k)
        >>> np.allclose(gradients.u0, np.exp(-2)), np.allclose(gradients.parameters, -np.exp(-2))
        (True, True)
        """
        from ._gradients import vjp

        return vjp(self, state, end_state, end_time)

    @_unknown.answered("")
    def sensitivities(self) -> Sensitivities:
        """The derivative of every state by each number of the initial state and the parameters: the Jacobians that
        least squares take. For a few of each; ``vjp`` for one loss, for many numbers, or for weights.

        >>> import lockstep
        >>> decay = lockstep.equations({"x": "-k * x"}, parameters={"k": 2})
        >>> solution = lockstep.solve(decay, [1.0], (0, 1), save_at=11, precision="f64")
        >>> solution.sensitivities().state_by_parameter.shape      # [trajectory, time, component, parameter]
        (1, 11, 1, 1)
        """
        from ._gradients import sensitivities

        return sensitivities(self)

    @_unknown.answered("")
    def save(self, path: PathLike, *, overwrite: bool = False) -> None:
        """Writes a solution in memory to a result file (docs/files.md), as ``solve(output=...)`` does. Raises FileError
        where one exists."""
        _lockstep.save_solution(self._solve_behind("one in memory", "copy the file; to_xarray().to_netcdf(path) writes a part"),
                                Path(path), overwrite)

    def to_xarray(self) -> xarray.Dataset:
        """The solution as an xarray.Dataset: what ``xarray.open_dataset(..., decode_times=False)`` makes of its file, but
        for what describes the file itself (``committed``; of the attributes ``Conventions``, ``lockstep_format``,
        ``resumed``). Needs xarray."""
        try:
            import xarray
        except ImportError as error:
            raise missing("xarray", "to_xarray()") from error

        shared = self.time.ndim == 1
        points = "time" if shared else "save_point"
        data: dict[str, Any] = {}
        for name, dimensions in _DIMENSIONS.items():
            data[name] = (tuple(points if name == "time" else name for name in dimensions), self._array(name))
        for name in (*_PER_TRAJECTORY, "start_time"):
            data[name] = (("trajectory",), self._array(name))
        start, count, stride = (0, len(self), 1) if self.path is None else self._trajectories
        coordinates: dict[str, Any] = {"component": list(self.component_names),
                                       "trajectory": self._first + start + stride * np.arange(count)}
        if self.parameter_names:
            data["parameters"] = (("trajectory", "parameter")[-self.parameters.ndim:], self.parameters)
            coordinates["parameter"] = list(self.parameter_names)
        coordinates["time"] = (("time",) if shared else ("trajectory", "save_point"), self.time)
        if not shared:
            first, saved, stride = (0, self.time.shape[1], 1) if self.path is None else self._times
            coordinates["save_point"] = first + stride * np.arange(saved)
        if self._keeps_events:
            events = self.events
            for name, column in (("event_time", events.time), ("event_reset", events.reset)):
                data[name] = (("event_trajectory",), column)
            coordinates["event_trajectory"] = coordinates["trajectory"][events.trajectory]
        dataset = xarray.Dataset(data, coordinates, self.attributes)
        for name, text in _LONG_NAMES.items():
            if name in dataset:
                dataset[name].attrs["long_name"] = text
        dataset["status"].attrs.update(flag_values=np.arange(len(STATUS_NAMES), dtype=np.uint8),
                                       flag_meanings=" ".join(STATUS_NAMES))
        if self.time_unit:
            for name in ("time", "start_time", "end_time", *(["event_time"] if self._keeps_events else [])):
                dataset[name].attrs["units"] = self.time_unit
        if self._keeps_events and self._reset_texts:
            dataset["event_reset"].attrs["resets"] = self._reset_texts
        units = [self.units.get(name, "") for name in self.component_names]
        for name in _DIMENSIONS if any(units) else ():
            dataset[name].attrs["component_units"] = units
            if units[0] and len(set(units)) == 1:  # the CF conventions know one unit for a variable
                dataset[name].attrs["units"] = units[0]
        return dataset


def _read_only(array: Array) -> Array:
    """What was solved stays what was solved: save(), vjp() and validate() go by it."""
    array.flags.writeable = False
    return array


def _stamp(path: Optional[PathLike]) -> Optional[tuple[int, int]]:
    """Two that differ may be of different files; of no file where it has gone, which its reader tells of."""
    try:
        about = None if path is None else os.stat(path)
    except OSError:
        about = None
    return None if about is None else (about.st_mtime_ns, about.st_size)


def _held(about: dict[str, Any]) -> str:
    """What describe_file() says of the numbers: the same for all files with the same."""
    attributes = about["attributes"]
    return repr([attributes.get(name) for name in _DECIDING] + [about[name] for name in _SHAPES])


def _indices(name: str, wanted: slice, size: int) -> list[int]:
    """[first, count, stride] of a slice."""
    if not isinstance(wanted, slice):
        raise of_kind("type", f"{name}: found {type(wanted).__name__}, expected a slice such as slice(0, 100)", name,
                      type(wanted).__name__, "a slice such as slice(0, 100)", "")
    indices = range(*wanted.indices(size))
    may_be_empty = name == "trajectories" or size == 0
    is_beyond = wanted.start is not None and operator.index(wanted.start) > size
    if indices.step < 1 or (len(indices) == 0 and (is_beyond or not may_be_empty)):
        expected = "a slice that steps forward and " + (f"begins within {size}" if may_be_empty else f"is not empty, of {size}")
        raise of_kind("invalid_argument", f"{name}: found {wanted}, expected {expected}", name, str(wanted), expected,
                      "")
    return [indices.start, len(indices), indices.step]


@_unknown.answered("")
def read(path: PathLike, *, trajectories: slice = slice(None), times: slice = slice(None),
         components: Optional[Sequence[str]] = None) -> Solution:
    """A result file, or a part of it: its arrays are read when they are asked for.

    Parameters
    ----------
    path : path-like
        A file of ``lockstep solve``, ``solve(output=...)`` or ``lockstep merge``.
    trajectories, times : slice
        Which of them to read.
    components : sequence of str
        Names of those to read, in this order; all of them if not given.
    """
    names = () if components is None else tuple(components)
    if isinstance(components, str):
        raise refused("components", repr(components), "a list of names", f"write [{components!r}]", kind="type")
    for name in names:
        if not isinstance(name, str):
            raise refused("components", repr(name), "names of components", kind="type")
    if components is not None and not names:
        raise refused("components", "an empty list", "at least one name", "leave it out to read all of them")
    return Solution(path=path, trajectories=trajectories, times=times, components=names)
