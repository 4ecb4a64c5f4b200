"""The same problem again and again, with other numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _lockstep, _unknown
from ._solution import Solution
from ._arrays import Named, real_numbers, whole
from ._solve import _is_file, _precision, _spelt, _table_or_numbers, _written, ended
from .errors import of_kind, refused


_OPTIONS = frozenset(_written.__kwdefaults__ or ()) - {"grid"}  # whose combinations calls would take apart


class Solver:
    """What ``solve()`` does, for loops: its arguments are read once, and each call takes other initial states or
    parameters. The bits are those of ``solve()``.

    Parameters
    ----------
    problem, u0, t_span, save_at, **options
        As ``solve()``; no problem files, ``output``, ``overwrite`` or ``progress``.

    >>> import lockstep, numpy as np
    >>> decay = lockstep.equations({"x": "-k * x"}, parameters={"k": 2})
    >>> solver = lockstep.Solver(decay, [1.0], (0, 1), save_at=[1], precision="f64")
    >>> for k in (1.0, 2.0):
    ...     solution = solver(parameters=[k])
    ...     print(np.allclose(solution.state, np.exp(-k), atol=1e-5))
    True
    True
    """

    def __init__(self, problem: Any = None, u0: Any = None, t_span: Any = None, save_at: Any = None, **options: Any):
        if _is_file(problem):
            found, remedy = f"the problem file {problem}", "use solve()"
            raise of_kind("invalid_argument", f"problem: found {found}, expected a Model or the name of a system; "
                          f"{remedy}", "problem", found, "a Model or the name of a system", remedy)
        for name in ("output", "overwrite", "progress", "grid"):
            if name in options:
                raise of_kind("invalid_argument", f"{name}: found a value for a Solver, expected none; use solve()", name,
                              "a value for a Solver", "none", "use solve()")
        _unknown.refuse(Solver, {name: None for name in options if name not in _OPTIONS}, "problem", _OPTIONS)
        options["precision"] = _precision(options.get("precision"))
        options["method"] = _spelt("method", options.get("method"))
        options |= {name: whole(name, options[name]) for name in ("trajectories", "seed", "threads", "max_steps")
                    if name in options}
        text, arrays, model = _written(problem, u0, t_span, save_at, **options)
        # Copies: what its maker does with an array afterwards is no matter of this.
        self._made_of = text, {name: _copied(_table_or_numbers(name, one)) for name, one in arrays.items()}, model
        self._given = {name: dict(one) if isinstance(one, Mapping) else one is not None
                       for name, one in (("u0", u0), ("parameters", options.get("parameters")))}
        self._prepare()

    def _prepare(self) -> None:
        text, arrays, model = self._made_of
        self._prepared = _lockstep.Prepared(text, arrays, _table_or_numbers, model, "lockstep.Solver(...)")

    # Pickled, a Solver is its arguments.
    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_prepared"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()

    def __call__(self, u0: Any = None, *, parameters: Any = None, **others: Any) -> Solution:
        """Solves with these: [component] or [trajectory, component], [parameter] or [trajectory, parameter], or a dict
        by name of numbers or arrays [trajectory], ``{"k": 2}``; those that the Solver was made with where not given.
        Raises as ``solve()``."""
        for name in others:
            if name in _OPTIONS or name in ("problem", "t_span", "save_at"):
                found, expected, remedy = "an argument of Solver() in a call of one", "u0 or parameters", "make a Solver with it"
                raise of_kind("type", f"{name}: found {found}, expected {expected}; {remedy}", name, found, expected, remedy)
        _unknown.refuse(Solver, others, "problem", ("u0", "parameters"))
        if isinstance(u0, Mapping):
            u0 = self._by_name("u0", u0) if u0 else None
        if isinstance(parameters, Mapping):
            parameters = self._by_name("parameters", parameters) if parameters else None
        solved, stopped = self._prepared.solve(u0, parameters)
        return ended(Solution(solved=solved), stopped)

    def _by_name(self, name: str, given: Mapping[str, Any]) -> Named:
        """Those that are given, and the others as the Solver was made with them."""
        own = self._given[name]
        if own is True and name == "parameters":  # whose defaults would take the places of those left out
            raise refused(name, "a dict for a Solver that was made with an array", "an array",
                          "make the Solver with a dict, too")
        columns = {**(own if isinstance(own, dict) else {}), **given}
        for key, value in columns.items():
            if isinstance(value, Mapping):
                raise refused(f"{name}.{key}", "a dict", "a number, or an array [trajectory]", "make another Solver with it")
        arrays = {key: real_numbers(f"{name}.{key}", value).reshape(np.shape(value)) for key, value in columns.items()}
        try:
            rows = np.stack(np.broadcast_arrays(*arrays.values()), axis=-1) if arrays else np.zeros(0)
        except ValueError:
            raise refused(name, "arrays of " + ", ".join(f"{key} {list(one.shape)}" for key, one in arrays.items()),
                          "numbers, and arrays of one length") from None
        return Named(rows, list(arrays))


def _copied(read: Any) -> Any:
    return Named(np.array(read[0]), read[1]) if isinstance(read, tuple) else np.array(read)
