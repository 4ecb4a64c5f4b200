"""Arguments that a function does not take: what they are called here, where other programs have a word for them."""

from __future__ import annotations

import difflib
import functools
import inspect
from typing import Any, Callable, Iterable, Mapping, TypeVar, cast

from . import _lockstep
from .errors import Error, of_kind

_FIRST = "give it first, problem: a Model, the name of a system, or lockstep.equations({...})"
# Places in files, which the words of other programs are known by, as arguments.
_PLACES = {
    "problem": {("ensemble", "initial_state"): "u0", ("time", "span"): "t_span", ("time", "save"): "save_at",
                ("time", "unit"): "time_unit", ("method", "name"): "method", ("output", "file"): "output",
                ("output", "events"): "keep_events", ("method", ""): "method", ("time", ""): "t_span",
                ("ensemble", ""): "u0", ("output", ""): "output"},
    "training": {("data", "inputs"): "x", ("data", "targets"): "y", ("data", "time"): "t", ("data", "states"): "u",
                 ("data", "trajectory"): "trajectory", ("method", "name"): "method", ("output", "file"): "output",
                 ("training", ""): "optimiser", ("phase", ""): "phases", ("net", ""): "hidden", ("method", ""): "method",
                 ("rhs", ""): "equations"},
}
_Function = TypeVar("_Function", bound=Callable[..., Any])
_ALGEBRAIC = "M u' = f and algebraic equations are not solved: give the derivative of each component"
_DERIVED = "leave it out: Jacobians of equations, nets and systems are derived, exact"
_NOT_NEEDED = {"mass": _ALGEBRAIC, "mass_matrix": _ALGEBRAIC, "M": _ALGEBRAIC, "jac": _DERIVED, "jacobian": _DERIVED,
               "jac_sparsity": _DERIVED, "jac_prototype": _DERIVED}  # words of other programs
_OWN = {"save": "save_at", "span": "t_span", "initial_state": "u0", "file": "output"}  # of files


def answered(kind: str) -> Callable[[_Function], _Function]:
    """Of a function whose signature names all it takes, for type checkers: refuse() for what it does not take."""
    def decorate(function: _Function) -> _Function:
        known = frozenset(_arguments(function))

        @functools.wraps(function)
        def call(*arguments: Any, **given: Any) -> Any:
            if not known.issuperset(given):
                refuse(function, {name: None for name in given if name not in known}, kind)
            return function(*arguments, **given)

        return cast(_Function, call)

    return decorate


def refuse(function: Callable[..., Any], given: Mapping[str, Any], kind: str, more: Iterable[str] = ()) -> None:
    """Raises for the first argument of `given`. `kind`: "problem" or "training"; `more`: arguments beside those of its
    signature."""
    for name in given:
        raise _error(function.__name__, name, [*_arguments(function), *more], kind)


def _arguments(function: Callable[..., Any]) -> list[str]:
    return [name for name, one in inspect.signature(function).parameters.items() if one.kind != one.VAR_KEYWORD]


def _error(function: str, name: str, known: list[str], kind: str) -> Error:
    remedy = _remedy(name, known, kind) or f"help(lockstep.{function}) lists them"
    found, expected = f"an argument that {function}() does not take", "one of its own"
    return of_kind("type", f"{name}: found {found}, expected {expected}; {remedy}", name, found, expected, remedy)


def _remedy(name: str, known: list[str], kind: str) -> str:
    if name in _NOT_NEEDED:
        return _NOT_NEEDED[name]
    place = _lockstep.place_of_word(name, kind)
    if kind == "problem":
        if name in ("model", "system", "equations") or place is not None and place[0] == "rhs" and place[1] in (
                "model", "system", "equations", ""):
            return _FIRST
        if name in _OWN:
            return f"write {_OWN[name]}="
    elif place is None:
        place = _lockstep.place_of_word(name, "problem")
        if place == ("time", "save") or place == ("time", "span"):
            return "write t="
    if place is not None:
        argument = _PLACES[kind].get(place, place[1] or place[0])
        if argument in known:
            return f"write {argument}="
    close = difflib.get_close_matches(name, known, 1)
    return f'did you mean "{close[0]}"?' if close else ""
