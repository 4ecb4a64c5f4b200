"""The same problem again and again, with other numbers."""

from __future__ import annotations

from typing import Any

from . import _lockstep, _unknown
from ._solution import Solution
from ._solve import _is_file, _precision, _table_or_numbers, _written, ended
from .errors import of_kind


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
        for name in ("output", "overwrite", "progress"):
            if name in options:
                raise of_kind("invalid_argument", f"{name}: found a value for a Solver, expected none; use solve()", name,
                              "a value for a Solver", "none", "use solve()")
        _unknown.refuse(Solver, {name: None for name in options if name not in _written.__kwdefaults__}, "problem",
                        _written.__kwdefaults__)
        options["precision"] = _precision(options.get("precision"))
        text, arrays, model = _written(problem, u0, t_span, save_at, **options)
        # Which copies the arrays: what its maker does with one afterwards is no matter of this.
        self._prepared = _lockstep.Prepared(text, arrays, _table_or_numbers, model, "lockstep.Solver(...)")

    def __call__(self, u0: Any = None, *, parameters: Any = None, **others: Any) -> Solution:
        """Solves with these: [component] or [trajectory, component], [parameter] or [trajectory, parameter]; those that
        the Solver was made with where not given. Raises as ``solve()``."""
        for name in others:
            if name in _written.__kwdefaults__:
                found, expected, remedy = "an argument of Solver() in a call of one", "u0 or parameters", "make a Solver with it"
                raise of_kind("type", f"{name}: found {found}, expected {expected}; {remedy}", name, found, expected, remedy)
        _unknown.refuse(Solver, others, "problem", ("u0", "parameters"))
        solved, stopped = self._prepared.solve(u0, parameters)
        return ended(Solution(solved=solved), stopped)
