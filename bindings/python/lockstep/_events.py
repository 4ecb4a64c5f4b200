"""Which resets struck the trajectories of a solution, and when."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from ._arrays import Array


class Events:
    """Events of all trajectories, one trajectory's after the other's, each in the order in which they happened: flat
    arrays, and by index the times of one trajectory.

    ``matplotlib.pyplot.eventplot(list(events))`` is a raster, and so is ``plot(events.time, events.trajectory, ".")``.

    Attributes
    ----------
    time : array
        float64 [event]: when a reset changed the state.
    reset : array
        int32 [event]: which of the ``resets`` it was, by its number.
    first : array
        int64 [trajectory + 1]: trajectory i's are ``first[i]`` to ``first[i + 1]``, the last excluded.

    >>> import lockstep
    >>> ball = lockstep.equations({"x": "v", "v": "-9.81"})
    >>> ground = {"component": "x", "direction": "falling", "to": {"x": 0, "v": "-0.9 * v"}}
    >>> drops = [[10.0, 0.0], [5.0, 0.0]]
    >>> events = lockstep.solve(ball, drops, (0, 4), resets=ground, keep_events=True, precision="f64").events
    >>> events
    <lockstep.Events: 4 in 2 trajectories>
    >>> [times.round(3).tolist() for times in events]
    [[1.428, 3.998], [1.01, 2.827]]
    """

    def __init__(self, time: Array, reset: Array, first: Array):
        self.time = time
        self.reset = reset
        self.first = first

    @cached_property
    def count(self) -> Array:
        """int64 [trajectory]: how many each has."""
        return np.diff(self.first)

    @cached_property
    def trajectory(self) -> Array:
        """int64 [event]: whose each is."""
        return np.repeat(np.arange(len(self)), self.count)

    def of_reset(self, reset: int) -> Events:
        """Those of one of the resets alone, by its number."""
        chosen = self.reset == reset
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(chosen, dtype=np.int64)])
        return Events(self.time[chosen], self.reset[chosen], before[self.first])

    def __getitem__(self, trajectory: int) -> Array:
        """Times of one trajectory's, [event]; -1 is the last one."""
        row = range(len(self))[trajectory]
        times: Array = self.time[self.first[row]:self.first[row + 1]]
        return times

    def __len__(self) -> int:
        """The number of trajectories."""
        return len(self.first) - 1

    def __iter__(self) -> Iterator[Array]:
        """The times of each trajectory."""
        return (self[row] for row in range(len(self)))

    def __repr__(self) -> str:
        return f"<lockstep.Events: {len(self.time)} in {len(self)} trajector{'y' if len(self) == 1 else 'ies'}>"
