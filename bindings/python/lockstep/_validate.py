"""Whether two solutions agree."""

from __future__ import annotations

import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any, Optional, Union

from . import _lockstep, _unknown
from ._solution import PathLike, Solution
from .errors import refused


class Verdict:
    """What ``validate()`` found. True where the two agree.

    Attributes
    ----------
    outcome : str
        ``"agree"``, ``"disagree"`` or ``"undecided"``.
    same_bits : bool
    sentence : str
        The verdict in words; ``reasons`` is a list of why.
    evidence : dict
        The numbers it rests on, as ``lockstep validate --json`` prints them; made when first asked for.
    page : Path or None
        The report, where one was asked for.
    """

    def __init__(self, judged: _lockstep.Judged, page: Optional[Path]):
        self.outcome: str = judged.outcome
        self.same_bits: bool = judged.same_bits
        self.sentence: str = judged.sentence
        self.reasons: list[str] = judged.reasons
        self.page = page
        self._judged: Any = judged

    @cached_property
    def evidence(self) -> dict[str, Any]:
        numbers: dict[str, Any] = json.loads(self._judged.json())
        return numbers

    # Pickled and copied, a verdict is its words and numbers.
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "evidence": self.evidence, "_judged": None}

    def __bool__(self) -> bool:
        return self.outcome == "agree"

    def __repr__(self) -> str:
        return f"<lockstep.Verdict {self.outcome}: {self.sentence}>"


@_unknown.answered("")
def validate(a: Union[Solution, PathLike], b: Union[Solution, PathLike], *, lyapunov: Optional[float] = None,
             report: Optional[PathLike] = None) -> Verdict:
    """Is ``b`` a faithful port of ``a``: are they apart by no more than rounding explains?

    Bits are compared first. Where they differ, some trajectories are solved again from initial states a few units in
    the last place away, which says how far rounding alone drives them apart: docs/validation.md. Solutions of one
    problem by another method or tolerance are ``"undecided"``, with their distance among the reasons.

    Parameters
    ----------
    a, b : Solution or path-like
        Result files, or solutions in memory.
    lyapunov : float
        Largest Lyapunov exponent, where nothing can be solved again.
    report : path-like
        A folder for a page with pictures.

    >>> import lockstep
    >>> u0 = [[1.0, 0.0, 0.0], [1.1, 0.0, 0.0]]
    >>> a = lockstep.solve("lorenz", u0, (0, 1), save_at=11, threads=1)
    >>> b = lockstep.solve("lorenz", u0, (0, 1), save_at=11, threads=2)
    >>> lockstep.validate(a, b).same_bits
    True
    """
    *parts, stopped = _lockstep.validate(_side("a", a), _side("b", b), lyapunov, None if report is None else Path(report))
    if stopped is not None:
        raise stopped
    return Verdict(*parts)


def _side(name: str, given: Any) -> Any:
    if isinstance(given, (str, os.PathLike)):
        return Path(given)
    if not isinstance(given, Solution):
        raise refused(name, type(given).__name__, "a Solution, or the path of a result file", kind="type")
    if given.path is not None:
        return given._same_file()
    return given._solve_behind("the one that solve() returned, or a file", "")
