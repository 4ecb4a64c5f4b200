"""Pictures: what is drawn, by axes that note it."""

import numpy as np
import pytest

import lockstep


class Axes:
    def __init__(self):
        self.drawn = {}
        self.key = None

    def plot(self, x, y, form=None, label=None, **_):
        self.drawn[label] = (np.asarray(x), np.asarray(y))

    def fill_between(self, x, low, high, label=None, **_):
        self.drawn[label] = (np.asarray(x), np.asarray(low), np.asarray(high))

    def legend(self, title=None):
        self.key = title

    def set_xlabel(self, _):
        pass

    set_ylabel = set_xlabel


def test_no_spread_is_drawn_over_save_points_that_differ():
    clock = lockstep.equations({"x": "1"})
    own = lockstep.solve(clock, [[0.0], [0.0]], (0, 10), [[0, 1, 2], [0, 5, 10]])
    with pytest.raises(lockstep.InvalidArgument, match="^solution: found save points that differ between trajectories, expected "
                                                       "the same for all; solve with save_at"):
        lockstep.plot.spread(own, "x", axes=Axes())
    same = lockstep.solve(clock, [[0.0], [1.0]], (0, 10), [[0, 5, 10], [0, 5, 10]])
    drawn = lockstep.plot.spread(same, "x", axes=Axes()).drawn["median"]
    assert drawn[0].tolist() == [0, 5, 10] and drawn[1].tolist() == [0.5, 5.5, 10.5]


def test_a_spread_says_how_many_trajectories_are_left():
    clock = lockstep.equations({"x": "1"})
    solve = dict(problem=clock, u0=[[0.0], [1.0], [-9.0]], t_span=(0, 4), save_at=5)
    assert lockstep.plot.spread(lockstep.solve(**solve), axes=Axes()).key is None
    ended = lockstep.solve(**solve, event={"component": "x", "value": 3.5})
    assert lockstep.plot.spread(ended, axes=Axes()).key == "of those left, 1 of 3 at the end"
    late = lockstep.solve(**solve, event={"component": "x", "value": -8.5})
    assert lockstep.plot.spread(late, axes=Axes()).key == "of those left, 2 of 3 at the end"


@pytest.mark.filterwarnings("error")
def test_a_spread_of_nobody_is_empty():
    clock = lockstep.equations({"x": "1"})
    ended = lockstep.solve(clock, [[0.0], [0.5]], (0, 4), 5, event={"component": "x", "value": 1.8})
    axes = lockstep.plot.spread(ended, axes=Axes())
    assert np.isnan(axes.drawn["median"][1]).tolist() == [False, False, True, True, True]
    assert axes.key == "of those left, 0 of 2 at the end"


def test_unfinished_trajectories_of_a_file_are_nowhere_drawn(tmp_path):
    h5py = pytest.importorskip("h5py")
    clock = lockstep.equations({"x": "1", "y": "-1"})
    lockstep.solve(clock, [[9.0, 1.0]] * 4, (0, 4), 5, output=tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5", "r+") as file:  # as a solve that is under way has them
        file["state"][2:] = file["end_state"][2:] = 0
        file["evaluations"][2:] = file["end_time"][2:] = 0
        file["status"][2:] = 6
    solution = lockstep.read(tmp_path / "x.h5")
    assert np.isnan(solution.state[2:]).all() and np.isnan(solution.end_state[2:]).all()
    assert solution.state[:2, 0, 0].tolist() == [9, 9]
    axes = lockstep.plot.spread(solution, axes=Axes())
    assert axes.drawn["90 %"][1][0] == 9 and axes.key == "of 2 finished of 4"
    for draw in (lambda: lockstep.plot.phase(solution, trajectories=[0, 2], axes=Axes()),
                 lambda: lockstep.plot.time_series(solution, trajectory=2, axes=Axes())):
        with pytest.raises(lockstep.InvalidArgument, match="^trajectory: found trajectory 2, which is not finished, expected one "
                                                           "of the 2 that are"):
            draw()


def test_a_raster_has_a_mark_for_each_event():
    clock = lockstep.equations({"x": "1"}, parameters=["top"])
    back = [{"function": "x - top", "direction": "rising", "to": {"x": 0}},
            {"component": "x", "value": 0.75, "direction": "rising", "to": {"x": "x"}}]
    solution = lockstep.solve(clock, [[0.0], [0.0]], (0, 3.5), parameters=[[1.0], [2.0]], resets=back, keep_events=True,
                              precision="f64")
    axes = lockstep.plot.raster(solution, axes=Axes())
    time, trajectory = axes.drawn["reset 0"]
    np.testing.assert_allclose(time, [1, 2, 3, 2], atol=1e-9)
    assert trajectory.tolist() == [0, 0, 0, 1]
    np.testing.assert_allclose(axes.drawn["reset 1"][0], [0.75, 1.75, 2.75, 0.75, 2.75], atol=1e-9)
    with pytest.raises(lockstep.InvalidArgument, match="events"):
        lockstep.plot.raster(lockstep.solve(clock, [[0.0]], (0, 1), parameters=[1.0]), axes=Axes())
