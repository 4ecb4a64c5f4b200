"""Arguments that a function does not take: what they are called here, where other programs have a word for them."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Iterable, Mapping, TypeVar, cast

from . import _lockstep
from ._arrays import whole
from .errors import Error, of_kind, refused

_FIRST = "give it first, problem: a Model, the name of a system, or lockstep.equations({...})"
# Places in files, which the words of other programs are known by, as arguments.
PLACES = {
    "problem": {("ensemble", "initial_state"): "u0", ("time", "span"): "t_span", ("time", "save"): "save_at",
                ("time", "unit"): "time_unit", ("method", "name"): "method", ("output", "file"): "output",
                ("output", "events"): "keep_events", ("method", ""): "method", ("time", ""): "t_span",
                ("ensemble", ""): "u0", ("output", ""): "output"},
    "training": {("data", "inputs"): "x", ("data", "targets"): "y", ("data", "time"): "t", ("data", "states"): "u",
                 ("data", "validation_file"): "validation",
                 ("data", "trajectory"): "trajectory", ("method", "name"): "method", ("output", "file"): "output",
                 ("training", ""): "optimiser", ("phase", ""): "phases", ("net", ""): "hidden", ("method", ""): "method",
                 ("rhs", ""): "equations"},
}
_Function = TypeVar("_Function", bound=Callable[..., Any])
_ALGEBRAIC = "M u' = f and algebraic equations are not solved: give the derivative of each component"
_DERIVED = "leave it out: Jacobians of equations, nets and systems are derived, exact"
_NOT_NEEDED = {"mass": _ALGEBRAIC, "mass_matrix": _ALGEBRAIC, "M": _ALGEBRAIC, "jac": _DERIVED, "jacobian": _DERIVED,
               "jac_sparsity": _DERIVED, "jac_prototype": _DERIVED}  # words of other programs
_IN_ITERATIONS = "; with batch an iteration is one batch, and an epoch as many of them as take all data"
_DATA = {"data": "give x= and y= of a regression, or t= and u= of a neural ODE", "time": "write t=",
         "event": "an event ends solves alone; states that change at one are resets=",
         **dict.fromkeys(["sample_weight", "sample_weights", "weights", "weight"],
                         "measurements count by their standard deviations: sigma = 1 / sqrt(weight)"),
         "noise": "the standard deviation of the measurements is sigma=; phases=\"noisy\" is for data with noise"}
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
    """Raises for the first argument of `given`. `kind`: "problem", "training", or "" of others; `more`: arguments beside those of its
    signature."""
    for name in given:
        raise _error(function.__qualname__, name, [*_arguments(function), *more], kind)


def _arguments(function: Callable[..., Any]) -> list[str]:
    return [name for name, one in inspect.signature(function).parameters.items() if one.kind != one.VAR_KEYWORD]


def _error(function: str, name: str, known: list[str], kind: str) -> Error:
    remedy = _remedy(name, known, kind) or f"help(lockstep.{function}) lists them"
    found, expected = f"an argument that {function.rpartition('.')[2]}() does not take", "one of its own"
    return of_kind("type", f"{name}: found {found}, expected {expected}; {remedy}", name, found, expected, remedy)


def _remedy(name: str, known: list[str], kind: str) -> str:
    if kind and name in _NOT_NEEDED:
        return _NOT_NEEDED[name]
    if kind == "training" and name in _DATA:
        return _DATA[name]
    place = _lockstep.place_of_word(name, kind or "problem")
    if kind == "problem":
        if name in ("model", "system", "equations") or place is not None and place[0] == "rhs" and place[1] in (
                "model", "system", "equations", ""):
            return _FIRST
        if name in _OWN:
            return f"write {_OWN[name]}="
    elif place is None and kind:
        place = _lockstep.place_of_word(name, "problem")
        if place == ("time", "save") or place == ("time", "span"):
            return "write t="
    if place is not None:
        argument = PLACES.get(kind, {}).get(place, place[1] or place[0])
        if argument in known:
            return f"write {argument}=" + (_IN_ITERATIONS if kind == "training" and "epoch" in name else "")
    return _did_you_mean(name, known)


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    close = _lockstep.nearest_name(name, list(known))
    return f'did you mean "{close}"?' if close else ""


def answer_call(net: Any, what: str, known: tuple[str, ...], positional: tuple[Any, ...], given: Mapping[str, Any]) -> Any:
    """Of a call of a Model that its own signature does not take, with an integer of NumPy: what it is with one of
    Python. Raises for others. `what`: "a net" or a method, "jvp()"."""
    for name in given:
        if name not in known:
            raise refused(name, f"an argument that {what} does not take", f"one of {', '.join(known)}",
                          _did_you_mean(name, known), kind="type")
    if len(positional) > len(known):
        raise refused("arguments", str(len(positional)), f"at most {len(known)}: {', '.join(known)}", kind="type")
    both = {**dict(zip(known, positional)), **given}
    if "threads" in both and type(both["threads"]) is not int and "x" in both:
        if both["threads"] is None:
            raise refused("threads", "None", "an integer", "write 0 for all", kind="type")
        return net(**{**both, "threads": whole("threads", both["threads"])})
    needed = next((name for name in known if name in ("x", "v", "w") and both.get(name) is None), None)
    raise refused(needed or what, "none" if needed else "arguments of other types", "an array" if needed else
                  ", ".join(known), kind="type")
