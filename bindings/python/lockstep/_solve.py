"""Advancing ensembles."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Callable, Optional, Sequence, Union

import numpy as np

from . import _impulses, _lockstep, _tables, _toml, _unknown
from ._arrays import Array, Named, column, real_numbers, whole
from ._progress import shown
from ._solution import PathLike, Solution
from .errors import Interrupted, of_kind, refused, wrong_type


# Keys of a dict that says how numbers are made, and of no columns (lockstep/cli/parse_ensemble_values.cpp).
_SOURCES = frozenset(("normal", "lognormal", "box", "linspace", "logspace", "file", "dataset", "columns"))


@_unknown.answered("problem")
def solve(
    problem: Any = None,
    u0: Any = None,
    t_span: Any = None,
    save_at: Any = None,
    *,
    parameters: Any = None,
    grid: Optional[Mapping[str, Any]] = None,
    method: Optional[str] = None,
    rtol: Optional[float] = None,
    atol: Any = None,
    dt: Optional[float] = None,
    precision: Any = None,
    threads: Optional[int] = None,
    output: Optional[PathLike] = None,
    overwrite: bool = False,
    trajectories: Optional[int] = None,
    seed: Optional[int] = None,
    control: Optional[str] = None,
    initial_step: Optional[float] = None,
    max_step: Optional[float] = None,
    stops: Any = None,
    stop_at_knots: Optional[bool] = None,
    max_steps: Optional[int] = None,
    event: Union[None, str, Mapping[str, Any]] = None,
    resets: Union[None, Mapping[str, Any], Sequence[Mapping[str, Any]]] = None,
    keep_events: Optional[bool] = None,
    impulses: Any = None,
    guard: Optional[str] = None,
    with_time: Optional[bool] = None,
    components: Optional[Sequence[str]] = None,
    units: Optional[Mapping[str, str]] = None,
    time_unit: Optional[str] = None,
    device: Optional[str] = None,
    engine: Optional[str] = None,
    matrix_precision: Optional[str] = None,
    cpu_target: Optional[str] = None,
    progress: Union[None, bool, Callable[[int, int], None]] = None,
) -> Solution:
    """Advances an ensemble from its initial states, on all processors, the interpreter's lock given back.

    The bits are those of ``lockstep solve`` for the same problem, on any machine and number of threads.

    Parameters
    ----------
    problem : Model, str, (str, Model) or path-like
        A net, whose inputs are the state, then the trajectory's parameters; a built-in system by name (``systems()``);
        both, whose sum is the right-hand side; or a problem file (a name that ends in .toml), whose keys the other
        arguments then override (method, rtol, atol, dt, precision, threads, output, trajectories, seed, guard,
        device, engine, matrix_precision, cpu_target). A problem file's [output] is not written to unless ``output`` says where.
    u0 : array, table or dict
        Initial states: [component] for all trajectories, [trajectory, component], or a dict as in problem files:
        ``{"normal": {"mean": [1, 0, 0], "std": 0.1}}``. A built-in system has a default. Columns with names go by their
        names, in any order: of a pandas or polars DataFrame, an xarray.DataArray with a ``component`` coordinate, a
        structured array. Columns numbered 0, 1, ... go by position.
    t_span : (float, float) or array
        Start and end, or [trajectory, 2].
    save_at : int, array or dict
        So many points evenly spaced, both ends among them; or the times, [time] or [trajectory, time]; of a table
        one column of times; or as in a problem file ``{"every": 0.1}``, from the start on, or ``{"logspace": [1e-6, 1,
        7]}``, seven times from 1e-6 to 1, their logarithms evenly spaced. The end alone if not given.
    parameters : array, table or dict
        [parameter] for all trajectories, [trajectory, parameter], or a dict by name: ``{"rho": 28.5}``. Columns with
        names go by them, as in ``u0``; parameters with a default may be left out.
    grid : dict
        Components and parameters by name, each with a list or array of values, ``{"linspace": [20, 30, 11]}`` or
        ``{"logspace": [0.1, 10, 5]}``: a trajectory for each combination, that of the last name fastest.
        ``Solution.grid`` has the values. What is no axis is given by ``u0`` and ``parameters`` as ever.
    trajectories : int
        How many, where nothing else says it: of states or parameters that are drawn (``normal``, ``box``) or spread
        (``linspace``, ``logspace``), or of one for all; of rows the first.
    seed : int
        Of what is drawn.
    method : str
        euler, midpoint, heun, rk4, bs3, dopri5, tsit5 (default), vern7, dop853,
        vern9, rkc8, rkc20, rodas5p (stiff problems).
    rtol, atol : float
        Tolerances, 1e-6 each if not given; ``rtol`` is below 1. ``atol`` may be a list: one for each component.
    dt : float
        Fixed steps of this size.
    control : {"per_trajectory", "common", "fixed"}
        Whose step it is: each trajectory's own, one for all (by the error of the worst), or always ``dt``. The first
        unless ``dt`` is given.
    initial_step, max_step : float
        The first step of adaptive ones, which is chosen from the right-hand side if not given; and the largest.
    max_steps : int
        Attempts a trajectory may make, then it ends as too_many_steps; 100,000 if not given.
    stops : array
        Times at which steps end, in any order: where the right-hand side jumps or bends. Adaptive steps are made to, of
        fixed ones a step must. Those that equations tell of themselves (knots of tables, ``t < 5``) need none;
        ``stop_at_knots=False`` passes over them.
    precision : str or dtype
        ``"f32"`` (default) or ``"f64"``: of the arithmetic and of ``Solution.state``. NumPy's dtypes say it, too.
    threads : int
        All that this process may use if not given, or 0.
    engine : str
        On a GPU: auto, cuda_fused or cuda_gemm; see docs/cuda.md.
    device : str
        auto (default), cpu, cuda, cuda:1, or shares such as cpu=20%,cuda=80%; see docs/cuda.md.
    cpu_target : str
        Instructions to use, avx512, avx2, neon or scalar; the widest there are if not given. The bits do not depend on it.
    matrix_precision : str
        A net's matrix products on a GPU: f32, or tf32, bf16, fp16 by tensor cores; see docs/cuda.md.
    output : path-like
        A file to stream the solution into, for more than memory holds; see docs/files.md. One that exists is replaced
        with ``overwrite=True`` alone.
    event : dict or str
        Where to stop: ``{"component": "x", "value": 0, "direction": "falling"}``, or an expression whose sign
        changes, ``"x^2 + y^2 - 1"``, as in ``resets``; with a direction ``{"function": "x^2 + y^2 - 1", "direction": "rising"}``.
        A trajectory that one ends has ``end_time`` and ``end_state`` at the event. Save points behind it are NaN, and so
        is ``state`` altogether where ``save_at`` is not given, since the end of ``t_span`` is its only one.
    resets : dict or list of them
        States that change where an event happens, and go on:
        ``{"component": "x", "direction": "falling", "to": {"x": 0, "v": "-0.9 * v"}}``. ``to`` has components by name,
        and what they become: numbers, or expressions of the state before, parameters, ``t`` and what a model of
        ``equations()`` defines and calls; the others keep theirs, all with ``{}``, which records crossings alone.
        In place of ``component`` and ``value`` (0) a ``function``, as of an event. Save points at that time hold the
        state before it. With each trajectory's own adaptive steps.
    keep_events : bool
        Whether ``Solution.events`` keeps which resets struck each trajectory, and when: a raster of spikes. Takes some
        30 bytes of memory for each, and the CPU.
    impulses : dict, table or list of them
        States that change all at once, such as doses: ``{"time": [0, 12], "component": "gut", "change": 100}``. At each
        ``time`` the ``component`` (its name or number) becomes ``factor`` (1) times itself plus ``change`` (0);
        ``trajectory`` says whose it is, all trajectories' if not given. Columns are equally long, or one value for all.
        Save points at that time hold the state before it; a trajectory that starts there starts behind it.
    with_time : bool
        Whether the net's last input is the time.
    components : sequence of str
        Names of the components of a net without any, in its order: they choose nothing.
    units : dict of str
        Of components by name, before those that the model states: ``{"x": "m"}``; ``time_unit`` is that of time. They
        go into the solution, its file and xarray's attributes.
    guard : str
        flag, clamp, stop or ignore: where a trajectory leaves the net's training range, or that of a net that its
        equations call. A UserWarning tells of a called net's inputs that flag and stop cannot watch. clamp makes kinks,
        which cost accuracy: take a tighter tolerance or a ``max_step`` (docs/ranges.md).
    progress : bool or callable
        True for a bar of tqdm, or a function of trajectories done and in all.

    Returns
    -------
    Solution

    Raises
    ------
    Error
        For arguments and files; a trajectory that fails is a ``Solution.status`` and spoils no other; a UserWarning says
        how many did, and why.
    Interrupted
        A KeyboardInterrupt whose ``result`` is the solution so far (also in ``output``), by Ctrl-C. Where ``overwrite``
        was to replace a file, that one stays, and ``result`` is in NAME.part beside it.

    Examples
    --------
    >>> import lockstep, numpy as np
    >>> u0 = np.random.default_rng(1).normal([1, 0, 0], 0.1, (1000, 3))
    >>> solution = lockstep.solve("lorenz", u0, (0, 1), save_at=101, parameters={"rho": 28}, precision="f64")
    >>> solution.state.shape
    (1000, 101, 3)
    >>> solution.to_xarray()["state"].sel(component="z").dims  # doctest: +SKIP
    ('trajectory', 'time')

    Every combination of a parameter and an initial state:

    >>> grid = {"rho": {"linspace": [20, 28, 3]}, "z": [0, 10]}
    >>> solution = lockstep.solve("lorenz", [1.0, 0.0, 0.0], (0, 1), grid=grid)
    >>> solution.grid["rho"], solution["x"].reshape(3, 2).shape
    (array([20., 24., 28.]), (3, 2))

    A dose every twelve hours, and what is left of it before the next one:

    >>> drug = lockstep.equations({"blood": "-k * blood"}, parameters={"k": 0.25})
    >>> doses = {"time": [0, 12, 24], "component": "blood", "change": 100}
    >>> solution = lockstep.solve(drug, [0.0], (0, 36), save_at=[12, 24, 36], impulses=doses, precision="f64")
    >>> solution["blood"].round(3)
    array([[4.979, 5.227, 5.239]])

    A ball that bounces, and a component that counts how often:

    >>> ball = lockstep.equations({"x": "v", "v": "-9.81", "bounces": "0"})
    >>> ground = {"component": "x", "direction": "falling", "to": {"x": 0, "v": "-0.9 * v", "bounces": "bounces + 1"}}
    >>> solution = lockstep.solve(ball, [10.0, 0, 0], (0, 10), save_at=[1, 5, 10], resets=ground, precision="f64")
    >>> solution["bounces"]
    array([[0., 2., 4.]])

    When it does:

    >>> solution = lockstep.solve(ball, [10.0, 0, 0], (0, 8), resets=ground, keep_events=True, precision="f64")
    >>> solution.events[0].round(3)  # of trajectory 0
    array([1.428, 3.998, 6.311])
    """
    precision, method = _precision(precision), _spelt("method", method)
    trajectories, seed, threads, max_steps = (
        whole(name, value) for name, value in (("trajectories", trajectories), ("seed", seed), ("threads", threads),
                                               ("max_steps", max_steps)))
    run = {"method": method, "rtol": rtol, "atol": atol, "dt": dt, "precision": precision, "threads": threads,
           "device": device, "engine": engine, "matrix_precision": matrix_precision,
           "cpu_target": cpu_target, "trajectories": trajectories, "seed": seed, "guard": guard}
    output = None if output is None else os.fspath(output)
    _refuse_model_file(problem)
    if _is_file(problem):
        others = {"u0": u0, "t_span": t_span, "save_at": save_at, "parameters": parameters, "grid": grid,
                  "control": control,
                  "initial_step": initial_step, "max_step": max_step, "stops": stops, "stop_at_knots": stop_at_knots,
                  "max_steps": max_steps, "event": event, "resets": resets, "keep_events": keep_events,
                  "impulses": impulses,
                  "with_time": with_time, "components": components, "units": units, "time_unit": time_unit}
        for name, value in others.items():
            if value is not None:
                raise of_kind("invalid_argument", f"{name}: found a value beside a problem file, which has its own; "
                              "edit the file", name, "a value beside a problem file", "none", "edit the file")
        overrides = {name: value for name, value in run.items() if value is not None}
        if "atol" in overrides:
            overrides["atol"] = _listed("atol", atol)
        if overwrite is not None:
            overrides["overwrite"] = bool(overwrite) if isinstance(overwrite, np.bool_) else overwrite
        overrides["file"] = output is not None
        if output is not None:
            overrides["output"] = output
        command = f"lockstep.solve({os.fspath(problem)!r})"
        return _run("", os.fspath(problem), {}, None, overrides, command, progress)

    text, arrays, model = _written(
        problem, u0, t_span, save_at, parameters=parameters, grid=grid, method=method, rtol=rtol, atol=atol, dt=dt,
        precision=precision, threads=threads, output=output, overwrite=overwrite, trajectories=trajectories, seed=seed,
        control=control, initial_step=initial_step, max_step=max_step, stops=stops, stop_at_knots=stop_at_knots,
        max_steps=max_steps, event=event, resets=resets, keep_events=keep_events, impulses=impulses, guard=guard,
        with_time=with_time, components=components, units=units, time_unit=time_unit, device=device, engine=engine,
        matrix_precision=matrix_precision, cpu_target=cpu_target)
    return _run(text, None, arrays, model, {}, "lockstep.solve(...)", progress)


def _written(problem: Any, u0: Any = None, t_span: Any = None, save_at: Any = None, *, parameters: Any = None,
             grid: Any = None, method: Any = None, rtol: Any = None, atol: Any = None, dt: Any = None, precision: Any = None,
             threads: Any = None, output: Any = None, overwrite: Any = False, trajectories: Any = None,
             seed: Any = None, control: Any = None, initial_step: Any = None, max_step: Any = None, stops: Any = None,
             stop_at_knots: Any = None, max_steps: Any = None, event: Any = None, resets: Any = None,
             keep_events: Any = None, impulses: Any = None, guard: Any = None, with_time: Any = None, components: Any = None, units: Any = None,
             time_unit: Any = None, device: Any = None, engine: Any = None, matrix_precision: Any = None,
             cpu_target: Any = None) -> tuple[str, dict[str, Any], Any]:
    """The arguments of solve() as the text of a problem file, what should be arrays beside it, and the model."""
    rhs, model = _right_hand_side(problem)
    rhs.update(guard=guard, with_time=with_time)
    if components is not None:
        rhs["components"] = [components] if isinstance(components, str) else components
    if units is not None:
        if not isinstance(units, Mapping):
            raise wrong_type("units", units, "a dict of units by component")
        rhs["units"] = dict(units)
    if isinstance(atol, Mapping):
        raise refused("atol", "a dict", "a number, or a list of one for each component", kind="type")
    if event is not None and not isinstance(event, (str, Mapping)):
        raise wrong_type("event", event, "a dict, or an expression as text")
    if event is not None and not event and not isinstance(event, str):  # an empty section would be no event
        raise refused("event", "an empty dict", "the component that triggers it, or a function",
                      'give {"component": "x"}, or "x^2 + y^2 - 1"')
    if isinstance(parameters, Mapping) and not parameters:  # the defaults
        parameters = None
    listed_resets = _listed_resets(resets)
    arrays: dict[str, Any] = {}
    if grid is not None and not isinstance(grid, Mapping):
        raise wrong_type("grid", grid, 'a dict of values by name, {"rho": [20, 24, 28]}')
    ensemble: dict[str, Any] = {"trajectories": trajectories, "seed": seed, "grid": dict(grid) if grid else None}
    time: dict[str, Any] = {"unit": time_unit}
    _place("u0", u0, ensemble, "initial_state", arrays)
    _place("parameters", parameters, ensemble, "parameters", arrays)
    _place("t_span", t_span, time, "span", arrays)
    if (rows := _impulses.impulses(impulses)) is not None:
        arrays["impulses"] = rows
    if isinstance(save_at, Mapping):
        time["save"] = save_at
    elif save_at is not None and not isinstance(save_at, (list, tuple)) and np.ndim(save_at) == 0:
        time["save"] = _points(save_at)
    elif save_at is not None:
        arrays["save_at"] = save_at
    text = _toml.write({
        "rhs": rhs,
        "ensemble": ensemble,
        "time": time,
        "method": {"name": method, "control": control, "rtol": rtol, "atol": atol, "dt": dt,
                   "initial_step": initial_step, "max_step": max_step,
                   "stops": _listed("stops", stops),
                   "stop_at_knots": stop_at_knots, "max_steps": max_steps, "precision": precision,
                   "matrix_precision": matrix_precision},
        "event": {"function": event} if isinstance(event, str) else dict(event or {}),
        "resets": listed_resets,
        "run": {"device": device, "engine": engine, "threads": threads, "cpu_target": cpu_target},
        "output": {"file": output, "overwrite": overwrite if output is not None else None, "events": keep_events},
    })
    return text, arrays, model


def _points(save_at: Any) -> Optional[int]:
    """How many save points, evenly spaced."""
    number = real_numbers("save_at", save_at)  # which may be no number at all
    if np.asarray(save_at).dtype.kind != "f":
        return whole("save_at", save_at)
    raise refused("save_at", f"the number {number.item()}", "a number of points as an integer, or times",
                  f"for an interval give save_at={{'every': {number.item()}}}")


def _spelt(name: str, value: Any) -> Any:
    """A name in whatever case, as the lists of them have it."""
    if value is None or isinstance(value, str):
        return value and value.lower()
    raise wrong_type(name, value, "a name as text")


def _run(text: str, path: Optional[str], arrays: dict[str, Any], model: Any, overrides: dict[str, Any],
         command: str, progress: Any) -> Solution:
    with shown(progress, "solving", "trajectories") as function:
        solved, file, stopped = _lockstep.solve(text, path, arrays, _table_or_numbers, model, overrides, command, function)
    if file is None:
        return ended(Solution(solved=solved), stopped)
    left = os.fspath(file)
    kept = f", and in {left}: {left[:-5]} is the earlier file still" if stopped is not None and left.endswith(".part") else ""
    return ended(Solution(path=file), stopped, kept)


def ended(solution: Solution, stopped: Any, where: str = "") -> Solution:
    """The solution, or what stopped it is raised; ``where`` ends its message."""
    if stopped is None:
        return solution
    if isinstance(stopped, KeyboardInterrupt):
        finished = int(np.count_nonzero(solution.status != 6))
        raise Interrupted(f"stopped: {finished} of {len(solution)} trajectories are finished{where}", solution) from stopped
    raise stopped


def _is_file(problem: Any) -> bool:
    return isinstance(problem, os.PathLike) or (isinstance(problem, str) and problem.endswith(".toml"))


def _refuse_model_file(problem: Any) -> None:
    """A file that holds a model is loaded first."""
    if not isinstance(problem, (str, os.PathLike)):
        return
    name = os.fspath(problem)
    if isinstance(name, str) and name.lower().endswith((".h5", ".hdf5", ".safetensors", ".onnx", ".keras")):
        expected = "a Model, the name of a system, one of each, or a problem file"
        remedy = f"load it first: lockstep.load({name!r})"
        raise of_kind("invalid_argument", f"problem: found the model file {name!r}, expected {expected}; {remedy}",
                      "problem", f"the model file {name!r}", expected, remedy)


def _right_hand_side(problem: Any) -> tuple[dict[str, Any], Any]:
    """The section [rhs], and the model it names."""
    parts = problem if isinstance(problem, tuple) else (problem,)
    rhs: dict[str, Any] = {}
    model = None
    for part in parts:
        _refuse_model_file(part)
        if isinstance(part, _lockstep.Model) and model is None:
            model = part
            rhs["model"] = part.name or "net"
        elif isinstance(part, str) and "system" not in rhs:
            rhs["system"] = part
        else:
            found = "nothing" if part is None else type(part).__name__
            remedy = ("write it as text: lockstep.equations({'x': '-k * x'}, parameters={'k': 1})" if callable(part)
                      else "make a model of equations: lockstep.equations({...})" if isinstance(part, Mapping)
                      else "load a model file with lockstep.load()")
            raise of_kind("type", f"problem: found {found}, expected a Model, the name of a system, one of each, or a "
                          f"problem file; {remedy}", "problem", found,
                          "a Model, the name of a system, one of each, or a problem file", remedy)
    return rhs, model


def _listed_resets(resets: Any) -> list[dict[str, Any]]:
    listed = [resets] if isinstance(resets, Mapping) else resets
    if not isinstance(listed, (list, tuple, type(None))) or not all(isinstance(one, Mapping) for one in listed or ()):
        raise wrong_type("resets", resets, 'a dict, {"component": "x", "to": {"x": 0}}, or a list of them')
    return [dict(one) for one in listed or ()]


def _precision(value: Any) -> Optional[str]:
    """"f32" or "f64", of those or a NumPy dtype."""
    if value is None or isinstance(value, str) and value in ("f32", "f64"):
        return value
    try:
        name = np.dtype(value).name
    except (TypeError, ValueError):  # torch.float64, say
        name = str(value).rpartition(".")[2]
    if name in ("float32", "float64"):
        return {"float32": "f32", "float64": "f64"}[name]
    found, expected = repr(value), '"f32", "f64", or a dtype, float32 or float64'
    raise of_kind("invalid_argument", f"precision: found {found}, expected {expected}", "precision", found, expected, "")


def _listed(name: str, value: Any) -> Optional[list[Any]]:
    """The same as a list, of a single number too; None of None."""
    return None if value is None else np.atleast_1d(real_numbers(name, value)).tolist()


def _table_or_numbers(name: str, value: Any) -> Union[Array, Named]:
    """What real_numbers() makes of it, with the names of its columns where they have some."""
    if isinstance(value, Named):
        return value
    rows = _tables.named_rows(name, value) if name != "save_at" else None
    if rows is not None:
        return rows
    named = _tables.named_columns(name, value)
    if named is None:
        return real_numbers(name, _tables.columns_last(value))
    array = real_numbers(name, named[0])
    if name != "save_at":
        return Named(array, named[1])
    return _tables.single_column(name, array, named[1])


def _place(name: str, value: Any, section: dict[str, Any], key: str, arrays: dict[str, Any]) -> None:
    """Dicts go into the text, all else is to be an array; so are columns of a dict, in whose places the text has one
    number."""
    if value is None:
        return
    if not isinstance(value, Mapping):
        arrays[name] = value
        return
    section[key] = placed = dict(value)
    if _SOURCES.isdisjoint(placed) and all(isinstance(one, str) for one in placed):
        for one, numbers in placed.items():
            if (array := column(numbers)) is not None:
                arrays[f"{name}.{one}"] = array
                placed[one] = [0.0]
