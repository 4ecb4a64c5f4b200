"""Derivatives of solutions, for losses and optimisers of one's own."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Optional, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _lockstep
from ._arrays import Array, real_numbers
from ._solution import STATUS_NAMES
from .errors import refused


class Gradients(NamedTuple):
    """What ``Solution.vjp`` returns, float64.

    Attributes
    ----------
    u0 : array [trajectory, component]
        Of a loss by the initial states, also where one row was given for all.
    parameters : array [parameter] or [trajectory, parameter]
        [parameter], the sum over all trajectories, where they share their parameters; else of each.
    weights : array [weight]
        Of the net, in the order of ``Model.weights``; none of a system.
    """

    u0: NDArray[np.float64]  #: [trajectory, component]
    parameters: NDArray[np.float64]  #: [trajectory, parameter]; [parameter], summed, where all trajectories share them
    weights: NDArray[np.float64]  #: [weight], of the net as ``Model.weights`` has them

    def __repr__(self) -> str:
        return _shapes(self)


class Sensitivities(NamedTuple):
    """What ``Solution.sensitivities`` returns, float64; NaN where a trajectory ended before."""

    state_by_u0: NDArray[np.float64]  #: [trajectory, time, component, component of u0]
    state_by_parameter: NDArray[np.float64]  #: [trajectory, time, component, parameter]
    end_state_by_u0: NDArray[np.float64]  #: [trajectory, component, component of u0]
    end_state_by_parameter: NDArray[np.float64]  #: [trajectory, component, parameter]
    end_time_by_u0: NDArray[np.float64]  #: [trajectory, component of u0]: of the time at which an event struck, else 0
    end_time_by_parameter: NDArray[np.float64]  #: [trajectory, parameter]

    def __repr__(self) -> str:
        return _shapes(self)


def _shapes(derivatives: Gradients | Sensitivities) -> str:
    """What there is, without its numbers, which are many: "<lockstep.Gradients: u0 [6, 3], weights [703]>"."""
    fields = (f"{name} {list(array.shape)}" for name, array in derivatives._asdict().items() if array.size)
    return f"<lockstep.{type(derivatives).__name__}: {', '.join(fields)}>"


def vjp(solution: Any, state: Any, end_state: Any, end_time: Any) -> Gradients:
    solved = solution._solve_behind("one in memory", "solve without output")
    if state is None and end_state is None and end_time is None:
        raise refused("state", "nothing", "the loss's derivatives by state, end_state or end_time")
    slopes = [_slopes(name, given, solution)
              for name, given in (("state", state), ("end_state", end_state), ("end_time", end_time))]
    found, stopped = _lockstep.solution_vjp(solved, *slopes)
    if stopped is not None:
        raise stopped
    _warn_of_failed(solution, slopes)
    return Gradients(**found)


def sensitivities(solution: Any) -> Sensitivities:
    found, stopped = _lockstep.solution_sensitivities(solution._solve_behind("one in memory", "solve without output"))
    if stopped is not None:
        raise stopped
    return Sensitivities(**found)


_FAILED = ("step_too_small", "not_finite", "too_many_steps", "cancelled")


def _warn_of_failed(solution: Any, slopes: Sequence[Optional[Array]]) -> None:
    """States that trajectories which failed never came to, and their ends, count nothing."""
    status = np.asarray(solution.status)
    if len(status) == 0:
        return
    asked = np.zeros(len(status), bool)
    of_states, *of_ends = slopes
    if of_states is not None:
        asked |= (np.isnan(solution.state) & (of_states != 0)).reshape(len(status), -1).any(axis=1)
    for one in of_ends:
        if one is not None:
            asked |= one.reshape(len(status), -1).any(axis=1)
    counts = {name: int(np.count_nonzero(asked & (status == STATUS_NAMES.index(name)))) for name in _FAILED}
    failed = sum(counts.values())
    if failed == 0:
        return
    each = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    warnings.warn(f"the loss asks for what {failed} of {len(status)} trajectories, which failed ({each}), never came to: that "
                  "counts 0; their states before have derivatives", UserWarning, stacklevel=5)


def _slopes(name: str, given: Any, solution: Any) -> Optional[Array]:
    if given is None:
        return None
    array, shape = real_numbers(name, given), getattr(solution, name).shape
    if array.shape != shape:
        raise refused(name, f"shape {array.shape}", f"{shape}, as the solution's {name}")
    return array
