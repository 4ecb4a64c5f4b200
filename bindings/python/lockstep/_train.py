"""Nets from data."""

from __future__ import annotations

import inspect
import os
import re
import warnings
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence, Union

import numpy as np

from . import _impulses, _lockstep, _toml, _unknown
from ._arrays import Array, Named, real_numbers, whole
from ._model import load, require_models
from ._progress import shown
from ._solution import PathLike
from ._solve import _is_file, _listed, _listed_resets, _precision, _spelt
from ._train_data import apart, held_apart, known_parameters, names_of, places_of, samples, trajectories
from .errors import Error, Interrupted, of_kind, refused, wrong_type


class Training:
    """What a training made.

    Attributes
    ----------
    model : Model
        The net with the best parameters; with several, or none, the whole right-hand side, ``rhs``. Of a built-in
        system without a net, which ``lockstep.solve("lorenz", ..., parameters={...})`` solves with them, it raises
        Unsupported.
    models : dict of Model
        The trained nets by the names that equations call them, ``"net"`` where there is one alone.
    parameters : dict of float
        Parameters of equations or of a built-in system that were trained.
    standard_errors : dict of float
        Of ``parameters``; NaN of those that the data do not determine, none where ``notes`` say why, as of a fit that
        explains little of the data or has not converged. See docs/training.md, "How well are they known".
    intervals : dict of (float, float)
        Their 95 % intervals.
    correlations : array [parameter, parameter]
        Of their errors, in the order of ``parameters``.
    left_by_nets : dict of float
        Beside trained nets, how much of each parameter's effect on the data these cannot imitate: 1 all, 0 nothing.
        Empty where errors are given the nets as they were trained, of which ``notes`` tell, and without nets.
    states : array [trajectory, time, component]
        Of a neural ODE, where the fit has the training data's states: solved from its starts, ``states[:, 0]``, which
        are those that were found where ``phases`` or ``starts`` leave them free. NaN behind shorter trajectories, and
        where a solve did not get there. Trajectories kept for validation are not there.
    residuals : array [trajectory, time, component]
        The training data minus ``states``, trajectory by trajectory as these; NaN where nothing was measured.
    times : array [trajectory, time]
        Of ``states``; likewise.
    trajectories : list of str
        What they are called: the labels of ``trajectory``, as text, or numbers from 0. Those kept for validation are not there.
    notes : list of str
        What these figures hold for, or why there are none; what of the data the fit explains little of; which
        trajectories were left out; and with ``loss="huber"`` which measurements lie farthest from the fit.
    rhs : Model
        With equations: the right-hand side with all that was trained, as ``lockstep.equations`` makes one. Without
        equations it raises Unsupported.
    history : dict of arrays [iteration]
        ``iteration``, ``loss``, ``watched`` (what decides about the best), ``gradient_norm``, ``learning_rate``,
        ``phase`` (from 1 on, as in the file ``_loss.csv`` of ``lockstep train``).
    loss, validation_loss : float
        Of the model, over all training data and over what was kept for validation (else None).
    loss_name : str
        What the loss is: ``"mean squared error"``; and which trajectories it was taken without, if any.
    errors : dict of dict of dict
        How good the fit is, ``errors["validation"]["x"]["rms"]``: over ``"training"`` and ``"validation"`` data of each
        component or output ``rms``, ``relative`` (to ``spread``, the training data's standard deviation), ``largest``,
        ``largest_at``, ``numbers`` (compared) and ``unit``; with ``sigma`` ``in_sigma``; with ``loss="huber"``
        ``beyond``, how many are beyond the threshold, and ``rms_within`` of the others. See docs/training.md, "How good is
        it".
    report : str
        All this as tables to print, the trajectories that are met worst, whether the rounding of float32 ended it, and
        the ``advice``.
    advice : list of str
        Which of the data will not be learned as they stand, and what to do about it: inputs or targets far from size 1,
        outputs that have little of the loss beside one that varies more.
    """

    def __init__(self, models: dict[str, _lockstep.Model], parameters: dict[str, float],
                 rhs: Optional[_lockstep.Model], history: dict[str, Array], loss: float,
                 validation_loss: Optional[float], loss_name: str,
                 errors: Optional[dict[str, dict[str, dict[str, Any]]]] = None, report: str = "",
                 uncertainty: Optional[tuple[Any, ...]] = None, advice: Sequence[str] = (),
                 picture: Optional[dict[str, Any]] = None,
                 fitted: Optional[tuple[list[str], Array, Array, Array]] = None):
        self.models = models
        self.parameters = parameters
        self._rhs = rhs
        self.history = history
        self.loss = loss
        self.validation_loss = validation_loss
        self.loss_name = loss_name
        self.errors = errors or {}
        self.report = "\n".join([report.rstrip("\n"), *(f"note: {line}" for line in advice)]) if advice else report
        self.advice = list(advice)
        self._picture = picture or {}  # for lockstep.plot.fit()
        self.standard_errors, self.intervals, self.correlations, self.notes, self.left_by_nets = (
            uncertainty or ({}, {}, None, [], {}))
        self.trajectories: list[str]
        self.times: Array
        self.states: Array
        self.residuals: Array
        nothing = np.empty((0, 0, 0))
        self.trajectories, self.times, self.states, data = fitted or ([], np.empty((0, 0)), nothing, nothing)
        self.residuals = data - self.states

    @property
    def model(self) -> _lockstep.Model:
        if len(self.models) != 1 and self._rhs is None:
            raise refused("model", "a training of the parameters of a built-in system alone", "one of a net or of equations",
                          'solve with its parameters: lockstep.solve("lorenz", ..., parameters=training.parameters)',
                          kind="unsupported")
        return next(iter(self.models.values())) if len(self.models) == 1 else self.rhs

    @property
    def rhs(self) -> _lockstep.Model:
        if self._rhs is None:
            raise refused("rhs", "a training without equations", "one with equations",
                          "take its model" if len(self.models) == 1 else "take its parameters", kind="unsupported")
        return self._rhs

    def __repr__(self) -> str:
        validation = "" if self.validation_loss is None else f", {self.validation_loss:.5g} on the validation data"
        name = self.model.name if len(self.models) == 1 or self._rhs is not None else ", ".join(self.parameters)
        return (f"<lockstep.Training of {name}: {self.loss_name} {self.loss:.5g}{validation} after "
                f"{len(self.history['loss'])} iterations>")

# Which docs/training_file.md lists, beside those that train() names itself: they need an optimiser.
_WHOLE = frozenset(("iterations", "batch", "segment", "horizon", "history", "every", "patience", "total", "warm_up",
                    "stop_after"))
_KEYS_OF_A_PHASE = frozenset((
    "schedule", "warm_up", "total", "final_fraction", "factor", "every", "patience", "improvement", "floor", "momentum",
    "beta1", "beta2", "epsilon", "weight_decay", "clip_norm", "clip_value", "stop_after", "segment", "horizon", "history",
    "continuity"))
# Beside a training file: what `lockstep train` takes beside one, and what is no part of a training.
_BESIDE_A_FILE = frozenset(("file", "seed", "threads", "output", "overwrite", "progress"))


def train(
    file: Optional[PathLike] = None,
    *,
    x: Any = None,
    y: Any = None,
    t: Any = None,
    u: Any = None,
    trajectory: Any = None,
    hidden: Optional[Sequence[int]] = None,
    activation: Optional[str] = None,
    activations: Union[None, str, Sequence[str]] = None,
    start: Union[None, _lockstep.Model, PathLike] = None,
    name: Optional[str] = None,
    optimiser: Optional[str] = None,
    rate: Optional[float] = None,
    iterations: Optional[int] = None,
    batch: Optional[int] = None,
    loss: Optional[str] = None,
    huber_threshold: Optional[float] = None,
    target: Optional[float] = None,
    phases: Union[None, str, Mapping[str, Any], Sequence[Mapping[str, Any]]] = None,
    normalise: Optional[str] = None,
    validation: Any = None,
    seed: Optional[int] = None,
    initialisation: Optional[str] = None,
    system: Optional[str] = None,
    equations: Union[None, Mapping[str, str], _lockstep.Model] = None,
    definitions: Optional[Mapping[str, str]] = None,
    parameters: Union[None, Sequence[float], Mapping[str, Any]] = None,
    models: Optional[Mapping[str, Union[_lockstep.Model, PathLike]]] = None,
    nets: Optional[Mapping[str, Mapping[str, Any]]] = None,
    with_time: Optional[bool] = None,
    failed: Optional[str] = None,
    method: Optional[str] = None,
    rtol: Optional[float] = None,
    atol: Optional[float] = None,
    dt: Optional[float] = None,
    max_step: Optional[float] = None,
    stops: Any = None,
    stop_at_knots: Optional[bool] = None,
    resets: Union[None, Mapping[str, Any], Sequence[Mapping[str, Any]]] = None,
    impulses: Any = None,
    precision: Any = None,
    threads: Optional[int] = None,
    inputs: Optional[Sequence[str]] = None,
    targets: Optional[Sequence[str]] = None,
    states: Optional[Sequence[str]] = None,
    units: Optional[Mapping[str, str]] = None,
    sigma: Any = None,
    absolute_sigma: Optional[bool] = None,
    missing: Optional[str] = None,
    starts: Optional[Mapping[str, Union[float, str]]] = None,
    output: Optional[PathLike] = None,
    overwrite: bool = False,
    progress: Union[None, bool, Callable[[int, int], None]] = None,
    **others: Any,
) -> Training:
    """Trains a net: a regression from ``x`` and ``y``, a neural ODE from ``t`` and ``u``, or what a training file says.

    Arguments are the keys of docs/training_file.md, which says what each means and its default; keys of a phase that
    are not listed here (``schedule``, ``momentum``, ``clip_norm``, ...) are taken too. The bits are those of
    ``lockstep train``, for any number of threads.

    Parameters
    ----------
    file : path-like
        A training file. Beside it go ``seed``, ``threads``, ``output`` and ``overwrite``, before which those of the file
        give way as they do to the options of ``lockstep train``, and ``progress``; all else is refused: edit the file.
        Its [output] is not written: give ``output``, or save ``Training.model``.
    x, y : arrays or tables
        [sample, input] or [sample], and [sample, output] or [sample]. Names of a table's columns are ``inputs`` and
        ``targets``, in whose order they are taken where those are given.
    t, u : arrays or tables
        [time], and [time] (of one component), [time, component] or [trajectory, time, component]; or
        [trajectory, time], and [trajectory, time] (of one component) or [trajectory, time, component].
        Trajectories may differ in length: lists of an array each, [time] and [time, component], or arrays filled up
        with NaN. Columns of a table (pandas, polars, xarray with a ``component`` coordinate) with names go to the
        components of these names, in any order; without ``equations``, ``system`` or ``states`` they are the states. A NaN in ``u``
        before the end is a number that was not measured; at a trajectory's first point only with ``phases="noisy"``,
        or phases that all have a ``"continuity"``, which train the starts.
    trajectory : array or table column
        [row]: of several trajectories in one ``t`` [row] and ``u`` [row, component], which each row is of: numbers or
        text. They are taken in the order in which they first appear, their rows as they follow each other.
    validation : float, list, or (x, y)
        The share of samples or trajectories to keep from training, drawn by ``seed``; or a list of trajectories, by what
        ``trajectory`` calls them, without it by their numbers from 0; or, for a regression, samples of their own,
        ``(x_test, y_test)`` as ``x`` and ``y``, with a third array where ``sigma`` is one. Their loss decides about the
        best net.
    loss : {"mean_squared", "sum_squared", "mean_absolute", "mean_huber"}, or {"squared", "huber"}
        Of a regression, or of trajectories. ``"huber"`` is for data with glitches, which ``notes`` and ``report`` name
        (docs/training.md, "Glitches").
    huber_threshold : float
        Of ``"huber"``, in standard deviations of the errors, 1.345 unless given: in units of ``sigma``, or of errors
        that are found in ``u``. Of ``"mean_huber"``, 1 unless given: a residual ``r`` counts ``r**2 / 2`` where its
        size is at most this, ``d``, else ``d * (abs(r) - d / 2)``. In units of ``sigma`` where that is given; else, with ``normalise`` or a ``start``
        whose outputs are scaled, in standard deviations of each target; else in the unit of ``y``, on which it then
        depends.
    hidden : sequence of int
        Widths of the hidden layers.
    start : Model or path-like
        A net to go on from, instead of ``hidden``, or its file.
    equations, definitions : dict of str
        Of a neural ODE: the right-hand side as text, which calls the net, ``{"x": "v", "v": "-sin(x) + net(v)"}``.
        ``parameters`` is a dict then, in which ``{"start": 1}`` is to be found by the training (between bounds with
        ``"min"`` and ``"max"``, above 0 with ``"positive": True``; ``"unit"`` is for reports), and needs no net. So
        it is beside ``system``, the name of a built-in one. An array, ``{"T": [300, 310, 320]}``, is known: a number of
        each trajectory, or beside ``trajectory`` of each row. ``equations`` may be what ``lockstep.equations()`` made,
        with its definitions, models and values of parameters, before which those given here go.
    models : dict of Model
        Nets and tables (``lockstep.table``) that equations call and that are kept as they are. Adaptive steps end where
        a table of the time bends or jumps, and at ``stops`` (docs/problem_file.md, "Steps and knots").
    nets : dict of dict
        Instead of ``hidden`` and the like, several nets by the names that equations call:
        ``{"production": {"hidden": [8]}, "loss": {"hidden": [8]}}``.
    failed : {"stop", "leave_out"}
        What becomes of the training of a neural ODE when a trajectory cannot be solved. A UserWarning and ``notes``
        name those that the result goes without.
    resets : dict or list of them
        Of a neural ODE, states that change where an event happens, as ``solve()`` has them: their expressions may name
        parameters that are to be found. What ``u`` has at the time of one was measured before it.
    impulses : dict, table or list of them
        Of a neural ODE, states that change all at once, such as doses: as ``solve()`` has them. ``"trajectory"`` is the
        label that ``trajectory`` has, or a number. What ``u`` has at the time of one was measured before it.
    phases : "recommended", "noisy", or sequence of dict (or one)
        One after the other, with ``optimiser``, ``rate``, ``iterations`` and the like in each;
        ``"recommended"`` (neural ODEs, and their default) grows from short segments to whole
        trajectories by L-BFGS, which fits smooth trajectories in seconds; ``"noisy"`` frees the states that solves
        start from, for data with noise.
    units : dict of str
        Of ``states``, ``inputs`` and ``targets`` by name, and of ``"t"``: ``{"x": "m", "t": "s"}``.
    sigma : float, dict of float, or array
        The standard deviation of each measurement, an array of the shape of ``u`` or ``y`` (lists where ``u`` is one),
        whose columns go by their names, or are those of ``u`` or ``y`` in their order;
        of ``states`` or ``targets`` by name, ``{"x": 0.1}``, that of all of one; a number that of all there are.
    absolute_sigma : bool
        Whether ``sigma`` says how large the errors are, or their ratios alone, and the fit how large; as SciPy's
        ``curve_fit`` has it. True where each measurement has its own, unless given.
    missing : {"refuse", "skip"}
        Whether NaN in ``y`` (or ``u``, where it may unless refused) is a number that was not measured.
    starts : dict of float or str
        Of a neural ODE, where states start that the data do not say, or not exactly: a number, or an expression of
        parameters, ``{"S": "N - I0", "R": 0}``. Nothing of them need be measured: a column of NaN in ``u``, or of a
        table with names none.
    output : path-like
        Writes ``output``.h5 and ``output``.safetensors.
    progress : bool or callable
        True for a bar of tqdm, or a function of iterations done and in all.

    Returns
    -------
    Training
        UserWarnings tell of its ``advice``, and of what is amiss in its ``notes``: data that the fit explains little
        of, parameters that they do not determine.

    Raises
    ------
    Interrupted
        A KeyboardInterrupt whose ``result`` is the Training so far, by Ctrl-C.
    Error
        Its ``result`` is the Training so far, its best model, where iterations went before what failed.

    Examples
    --------
    >>> import lockstep, numpy as np
    >>> x = np.linspace(-1, 1, 200)
    >>> training = lockstep.train(x=x, y=x**2, hidden=[16], optimiser="lbfgs", iterations=100)
    >>> training.loss < 1e-4, training.history["loss"].shape[0] <= 100
    (True, True)
    >>> float(abs(training.model(np.array([0.5])) - 0.25)[0]) < 0.05
    True
    """
    given = locals()
    trained_on = (("iterations", iterations), ("batch", batch), ("seed", seed), ("threads", threads))
    iterations, batch, seed, threads = (whole(key, value) for key, value in trained_on)
    optimiser, method = _spelt("optimiser", optimiser), _spelt("method", method)
    others = {key: whole(key, value) if key in _WHOLE else value for key, value in others.items()}
    keys = _lockstep.phase_keys()
    _unknown.refuse(train, {name: None for name in others if name not in keys}, "training", keys)
    if file is not None:
        if not _is_file(file):
            raise of_kind("type", f"file: found {type(file).__name__}, expected the path of a training file, *.toml",
                          "file", type(file).__name__, "the path of a training file, *.toml", "")
        _refuse_beside_a_file(given)
        overrides = {"seed": seed, "threads": threads, "output": None if output is None else os.fspath(output),
                     "overwrite": overwrite or None}
        return _run("", os.fspath(file), [], [], None, None, [], [], [], progress, overrides)

    regression = x is not None or y is not None
    if regression == (t is not None or u is not None) or (x is None) != (y is None) or (t is None) != (u is None):
        raise of_kind("invalid_argument", "data: expected x and y of a regression, or t and u of a neural ODE", "data",
                      "", "x and y of a regression, or t and u of a neural ODE", "")
    start = _net_to_go_on_from("start", start)
    texts, definitions, parameters, models = _taken_apart(equations, definitions, parameters, models)
    if isinstance(parameters, Mapping) and not parameters:  # the defaults
        parameters = None
    _require_forms(texts, definitions, parameters, activations, nets, units)
    if starts is not None and not isinstance(starts, Mapping):
        raise wrong_type("starts", starts, 'a dict of numbers or expressions of parameters: {"S": "1 - I0", "R": 0}')
    for_all = _number("sigma", sigma)
    by_name = isinstance(sigma, Mapping) or for_all is not None
    one_by_one = sigma is not None and not by_name
    labels = None if regression else _labels(validation, trajectory)
    own_rows = labels is None and isinstance(validation, (tuple, list))
    kept = validation if labels is None else labels
    data: dict[str, Any] = {"file": "arrays", "normalise": normalise, "validation": None if own_rows else kept,
                            "units": None if units is None else dict(units),
                            "sigma": dict(sigma) if isinstance(sigma, Mapping) else "sigma" if one_by_one else None,
                            "absolute_sigma": absolute_sigma, "missing": missing,
                            "starts": None if starts is None else dict(starts)}
    errors_of_each = sigma if one_by_one else None
    known_numbers = None
    validating: list[Array] = []
    if regression:
        for key, value in {"trajectory": trajectory, "resets": resets, "impulses": impulses}.items():
            if value is not None:
                raise refused(key, "a value beside x and y", "none", "it is for t and u")
        arrays, inputs, targets = samples(x, y, errors_of_each, inputs, targets, start)
        data.update(inputs=inputs, targets=targets)
        validating = held_apart(validation, arrays, inputs, targets) if own_rows else []
    else:
        if own_rows:
            raise refused("validation", "rows of their own beside trajectories",
                          "the share of them to keep, 0.2, or a list of what they are called")
        known = (states if states is not None else list(texts) if texts is not None
                 else _lockstep.systems().get(system, {}).get("components") if isinstance(system, str) else None)
        arrays, states = trajectories(t, u, errors_of_each, trajectory, known, states, start, starts or ())
        parameters, of_each = apart(parameters)
        data.update(time="t", states=states, parameters=list(of_each) or None)
        if of_each:
            known_numbers = known_parameters(of_each, trajectory, len(arrays[1]))
        of_a_phase = {key: value for key, value in others.items() if key in _KEYS_OF_A_PHASE}
        own = {"rate": rate, "iterations": iterations, "batch": batch, **of_a_phase}
        if phases is None and optimiser is None:
            phases = "recommended"
            for key, value in own.items():
                if value is not None:
                    raise refused(key, "a value beside the recommended phases, which are taken where no optimiser is named",
                                  "target alone", 'name one: optimiser="lbfgs" or "adam"; or leave this away')
        elif isinstance(phases, str):
            for key, value in {"optimiser": optimiser, **own}.items():
                if value is not None:
                    raise refused(key, f'a value beside phases="{phases}", which names its own', "target alone",
                                  'leave it away, or write the phases out: phases=[{"optimiser": "lbfgs", ...}]')
    if for_all is not None:
        data["sigma"] = dict.fromkeys((targets if regression else states) or (), for_all)
    training = {"optimiser": optimiser, "rate": rate, "iterations": iterations, "batch": batch, "target": target,
                **others}
    listed = _listed_phases(phases, training)
    loaded = [] if start is None else [("net", start)]
    sections: dict[str, Any] = {}
    if hidden is not None and not isinstance(hidden, Iterable):
        raise wrong_type("hidden", hidden, "a list with the width of each hidden layer")
    net = {"hidden": None if hidden is None else _widths("hidden", hidden), "activation": activation,
           "activations": activations if activations is None or isinstance(activations, str) else list(activations),
           "initialisation": initialisation, "start": None if start is None else start.name or "net"}
    to_find = isinstance(parameters, Mapping) and any(isinstance(value, Mapping) for value in parameters.values())
    if nets is not None:
        given_too = [key for key, value in net.items() if value is not None]
        if given_too:
            raise of_kind("invalid_argument", f"{given_too[0]}: found a value beside nets, which have their own",
                          given_too[0], "a value beside nets", "none", "")
        sections["net"] = {"seed": seed}
        for called, table in nets.items():
            section = dict(table)
            section["start"] = _net_to_go_on_from(f"nets.{called}.start", section.get("start"))
            if isinstance(section.get("hidden"), Iterable):
                section["hidden"] = _widths(f"nets.{called}.hidden", section["hidden"])
            if section.get("start") is not None:
                loaded.append((called, section["start"]))
                section["start"] = section["start"].name or called
            sections[_toml.path("net", called)] = section
    elif not to_find or any(value is not None for value in net.values()):
        sections["net"] = {**net, "seed": seed, "name": "net" if name is None else name}
    if not to_find and (texts is not None or system is not None):
        _require_something_to_find(texts, definitions, system, parameters, net, nets)
    sections |= {
        "data": data,
        "ode": {"system": system, "parameters": None if texts is not None else parameters, "with_time": with_time,
                "failed": failed},
    }
    if texts is not None:
        require_models(models, or_paths=True)
        sections["rhs"] = {"equations": dict(texts), "definitions": definitions, "parameters": parameters,
                           "models": None if models is None else
                           {key: value.name or key if isinstance(value, _lockstep.Model) else value
                            for key, value in models.items()}}
    elif models is not None:
        raise of_kind("invalid_argument", "models: found nets without equations, which call them", "models",
                      "nets without equations", "equations that call them", "")
    if listed is None:
        sections["training"] = {**training, "loss": loss, "huber_threshold": huber_threshold, "phases": phases}
        if not any(value is not None for value in sections["training"].values()):
            sections["training"]["optimiser"] = "adam"
    else:
        sections["training"] = {"loss": loss, "huber_threshold": huber_threshold}
        sections["phase"] = listed
    sections["resets"] = _listed_resets(resets)
    sections["method"] = {"name": method, "rtol": rtol, "atol": atol, "dt": dt, "max_step": max_step,
                          "stops": _listed("stops", stops), "stop_at_knots": stop_at_knots,
                          "precision": _precision(precision)}
    sections["run"] = {"threads": threads}
    if output is not None:
        sections["output"] = {"file": os.fspath(output), "overwrite": overwrite}
    kept = [(key, value) for key, value in (models or {}).items() if not _is_path(value)]
    rows = _impulses.impulses(impulses, places_of(trajectory))
    return _run(_toml.write(sections), None, arrays, validating, rows, known_numbers, names_of(trajectory), loaded, kept,
                progress)


def _run(text: str, path: Optional[str], arrays: list[Array], validation: list[Array],
         impulses: Optional[Named], known: Optional[Array], labels: list[str], starts: list[Any], models: list[Any],
         progress: Any, beside: Mapping[str, Any] = {}) -> Training:
    with shown(progress, "training", "iterations") as function:
        *parts, harms, stopped = _lockstep.train(text, path, arrays, validation, impulses, known, labels, starts, models, function,
                                                 **{key: value for key, value in beside.items() if value is not None})
    training = Training(*parts)
    for harm in harms:
        warnings.warn(harm, UserWarning, stacklevel=3)
    if stopped is None:
        return training
    if isinstance(stopped, Error):
        stopped.result = training
    if isinstance(stopped, KeyboardInterrupt):
        raise Interrupted(f"stopped after {len(training.history['loss'])} iterations", training) from stopped
    raise stopped


def _refuse_beside_a_file(given: Mapping[str, Any]) -> None:
    """Refuses the first of train()'s arguments that a training file has a place of its own for. The signature says which
    there are, so that none is ignored."""
    for name, one in inspect.signature(train).parameters.items():
        values = given[name] if one.kind == one.VAR_KEYWORD else {} if name in _BESIDE_A_FILE else {name: given[name]}
        for key, value in values.items():
            if value is not None:
                raise of_kind("invalid_argument", f"{key}: found a value beside a training file, which has its own; "
                              "edit the file", key, "a value beside a training file", "none", "edit the file")


def _listed_phases(phases: Any, beside: Mapping[str, Any]) -> Optional[list[dict[str, Any]]]:
    """Phases that are written out, a list of dicts or one; `beside`: what is of a phase, and was given without one."""
    if phases is None or isinstance(phases, str):
        return None
    listed = [phases] if isinstance(phases, Mapping) else list(phases) if isinstance(phases, Iterable) else [phases]
    for i, phase in enumerate(listed):
        if not isinstance(phase, Mapping):
            raise wrong_type(f"phases[{i}]" if isinstance(phases, Iterable) else "phases", phase,
                              'a list with a dict for each phase, [{"optimiser": "adam"}, {"optimiser": "lbfgs"}]')
    for key, value in beside.items():
        if value is not None:
            raise refused(key, "a value beside phases, which have their own", "none",
                          f"put it into the dict of each phase that is to have it: phases=[{{{key!r}: ...}}]")
    return [{key: whole(f"phases[{i}].{key}", value) if key in _WHOLE else
             _spelt(f"phases[{i}].{key}", value) if key == "optimiser" else value for key, value in phase.items()}
            for i, phase in enumerate(listed)]


def _labels(validation: Any, trajectory: Any) -> Optional[list[Any]]:
    """Names or numbers of trajectories, where ``validation`` is a list of such. Of numbers 7 is the label 7.0."""
    if not isinstance(validation, (list, tuple)) and getattr(validation, "ndim", 0) != 1:
        return None
    labels = [label.item() if isinstance(label, np.generic) else label for label in validation]
    if not all(isinstance(label, (str, int, float)) and not isinstance(label, bool) for label in labels):
        return None
    called = {label: str(label) for label in places_of(trajectory) or ()}
    return [called.get(label, label) for label in labels]


def _widths(name: str, hidden: Iterable[Any]) -> list[Optional[int]]:
    return [whole(f"{name}[{i}]", width) for i, width in enumerate(hidden)]


def _net_to_go_on_from(name: str, start: Any) -> Optional[_lockstep.Model]:
    """The net, or that of a file."""
    if start is None or isinstance(start, _lockstep.Model):
        return start
    if _is_path(start):
        return load(start)
    raise wrong_type(name, start, "a lockstep.Model, or the path of its file",
                     "lockstep.load() reads one, lockstep.mlp() makes one of numbers")


def _taken_apart(model: Any, definitions: Any, parameters: Any, models: Any) -> tuple[Any, ...]:
    """Of a model what lockstep.equations() was given, and before it what is given beside."""
    if not isinstance(model, _lockstep.Model):
        return model, definitions, parameters, models
    written = _lockstep.equations_of(model)
    if written is None:
        raise refused("equations", f"a Model, {model.name or 'net'}, whose text is not known",
                      "a dict with a text for each component, or what lockstep.equations() made of one",
                      'a net is called in them, {"x": "net(x)"} with models={"net": ...}', kind="type")
    texts, values, own_definitions, own_models, _ = written
    if parameters is None or isinstance(parameters, Mapping):
        parameters = {**dict(values), **(parameters or {})}
        for name, value in parameters.items():
            if value is None:
                raise refused(f"parameters.{name}", "no value, in the equations or beside them",
                              'a number, or {"start": 1} where it is to be found', f'give parameters={{"{name}": 1}}')
    if definitions is None or isinstance(definitions, Mapping):
        definitions = {**dict(own_definitions), **(definitions or {})} or None
    if models is None or isinstance(models, Mapping):
        models = {**dict(own_models), **(models or {})} or None
    return dict(texts), definitions, parameters, models


def _require_forms(equations: Any, definitions: Any, parameters: Any, activations: Any, nets: Any, units: Any) -> None:
    """Refuses what is no dict or list where one is meant."""
    if equations is not None and not isinstance(equations, Mapping):
        raise wrong_type("equations", equations, 'a dict with a text for each component, {"x": "v", "v": "-sin(x)"}')
    for name, value in (("definitions", definitions), ("units", units)):
        if value is not None and not isinstance(value, Mapping):
            raise wrong_type(name, value, "a dict of texts by name")
    names_alone = isinstance(parameters, (list, tuple)) and all(isinstance(one, str) for one in parameters)
    if equations is not None and parameters is not None and not names_alone and not isinstance(parameters, Mapping):
        raise wrong_type("parameters", parameters, 'a dict by name, {"k": 1}, or {"k": {"start": 1}} to be found')
    if activations is not None and not isinstance(activations, Iterable):
        raise wrong_type("activations", activations, "a list with a name for each layer")
    if nets is not None and not isinstance(nets, Mapping):
        raise wrong_type("nets", nets, 'a dict of dicts by what equations call them, {"a": {"hidden": [8]}}')
    for name, net in (nets or {}).items():
        if not isinstance(net, Mapping):
            raise wrong_type(f"nets.{name}", net, 'a dict, {"hidden": [8]}')


def _number(name: str, value: Any) -> Optional[float]:
    """A single number; None of all else."""
    if value is None or isinstance(value, (str, bytes, list, tuple, Mapping)) or np.ndim(value) != 0:
        return None
    return float(real_numbers(name, value).reshape(-1)[0])


def _require_something_to_find(equations: Any, definitions: Any, system: Optional[str], parameters: Any,
                               net: dict[str, Any], nets: Any) -> None:
    """Refuses equations, or a system, without a net and without a parameter to be found."""
    if nets is not None or any(value is not None for value in net.values()):
        return
    texts = [str(text) for one in (equations, definitions) for text in (one or {}).values()]
    if any(re.search(r"\bnet\s*\(", text) for text in texts):
        return
    known = list(parameters or ()) if equations is not None or isinstance(parameters, Mapping) else []
    example = str(known[0]) if known else "k" if system is None else "rho"
    where = "no net in the equations" if system is None else "no net beside the system"
    call = "call a net, net(x), and give its hidden=[100]" if system is None else "give the hidden=[100] of a net to add"
    found = f"none to be found by the training, and {where}"
    remedy = f'write parameters={{"{example}": {{"start": 1}}}}, or {call}'
    raise of_kind("invalid_argument", f"parameters: found {found}, expected one of them; {remedy}", "parameters", found,
                  "one of them", remedy)


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike))
