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

    def set_xscale(self, scale):
        self.drawn["xscale"] = scale

    def set_yscale(self, scale):
        self.drawn["yscale"] = scale

    def pcolormesh(self, x, y, table, **_):
        self.drawn["map"] = (x, y, table)

    @property
    def figure(self):
        return self

    def colorbar(self, _, label, **__):
        self.drawn["colours"] = label


def test_a_sweep_is_one_number_of_each_trajectory():
    decay = lockstep.equations({"x": "-k * x", "y": "k * x"}, parameters={"k": 1})
    sweep = lockstep.solve(decay, [1.0, 0.0], (0, 1), 101, grid={"k": {"logspace": [0.1, 10, 5]}}, precision="f64",
                           rtol=1e-9, atol=1e-12)
    axes = lockstep.plot.sweep(sweep, axes=Axes())
    k = sweep.grid["k"]
    np.testing.assert_array_equal(axes.drawn[None][0], k)
    np.testing.assert_allclose(axes.drawn[None][1], np.exp(-k), rtol=1e-5)
    assert axes.drawn["xscale"] == "log" and "yscale" not in axes.drawn
    for of, expected in (("maximum", 1 + 0 * k), ("minimum", np.exp(-k)), ("mean", (1 - np.exp(-k)) / k)):
        drawn = lockstep.plot.sweep(sweep, "x", over="k", of=of, axes=Axes()).drawn[None]
        np.testing.assert_allclose(drawn[1], expected, rtol=1e-3)  # trapezoids: h^2 k^2 / 12, at most 8.4e-4
    with pytest.raises(lockstep.InvalidArgument, match="^over: found 'q', expected one of k, x, y"):
        lockstep.plot.sweep(sweep, over="q", axes=Axes())
    with pytest.raises(lockstep.InvalidArgument, match="^of: found 'median', expected end, maximum, minimum or mean"):
        lockstep.plot.sweep(sweep, of="median", axes=Axes())


def test_extremes_over_time_include_the_state_that_an_event_ended():
    rise = lockstep.equations({"x": "k", "y": "-k"}, parameters={"k": 1})
    sweep = lockstep.solve(rise, [0.0, 0.0], (0, 10), 3, parameters={"k": [0.5, 1, 2]},
                           event={"component": "x", "value": 6}, precision="f64")
    for of, component, expected in (("maximum", "x", [5, 6, 6]), ("minimum", "y", [-5, -6, -6]), ("minimum", "x", [0, 0, 0])):
        drawn = lockstep.plot.sweep(sweep, component, over="k", of=of, axes=Axes()).drawn[None]
        np.testing.assert_allclose(drawn[1], expected, rtol=1e-12)


def test_a_grid_of_two_is_a_map():
    decay = lockstep.equations({"x": "-k * x"}, parameters={"k": 1})
    grid = lockstep.solve(decay, [1.0], (0, 1), grid={"k": [1, 2, 5], "x": [3.0, 4.0]}, precision="f64", units={"x": "m"})
    drawn = lockstep.plot.sweep(grid, axes=Axes()).drawn
    x, y, table = drawn["map"]
    assert x.tolist() == [1, 2, 5] and y.tolist() == [3, 4] and drawn["colours"] == "x (m)"
    np.testing.assert_allclose(table, np.array([[3], [4]]) * np.exp(-x), rtol=1e-5)
    alone = lockstep.solve(decay, [1.0], (0, 1))
    with pytest.raises(lockstep.InvalidArgument, match="^over: found nothing that alone differs between trajectories"):
        lockstep.plot.sweep(alone, axes=Axes())


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
