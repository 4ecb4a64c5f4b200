"""Which resets struck, and when: a ball's bounces by hand, files, copies, xarray, verdicts, refusals."""

import copy
import pickle

import h5py
import numpy as np
import pytest

import lockstep

TIGHT = dict(precision="f64", rtol=1e-11, atol=1e-11)
BALL = lockstep.equations({"x": "v", "v": "-9.81"}, parameters={"bounce": 0.9})
GROUND = {"component": "x", "direction": "falling", "to": {"x": 0, "v": "-bounce * v"}}
TOP = {"component": "v", "direction": "falling", "to": {"v": 0}}
HEIGHTS = np.array([[10.0, 0], [1, 0], [90, 0], [5, 0]])


def solve(resets=GROUND, u0=HEIGHTS, span=(0, 4), save_at=[4.0], **options):
    return lockstep.solve(BALL, u0, span, save_at, resets=resets, keep_events=True, **{**TIGHT, **options})


def bounces(height, end=4.0, g=9.81, bounce=0.9):
    times, flight = [], np.sqrt(2 * height / g)
    t = flight
    while t < end:
        times.append(t)
        flight *= bounce
        t += 2 * flight
    return times


def test_times_are_those_of_a_ball():
    events = solve().events
    assert len(events) == 4 and events.first.tolist() == [0, *np.cumsum([len(bounces(h)) for h in HEIGHTS[:, 0]])]
    assert (events.time.dtype, events.reset.dtype, events.first.dtype) == (np.float64, np.int32, np.int64)
    for row, times in enumerate(events):
        np.testing.assert_allclose(times, bounces(HEIGHTS[row, 0]), atol=1e-10)
        np.testing.assert_array_equal(times, events[row])
    assert events[2].size == 0 and events.count.tolist() == [len(one) for one in events]
    np.testing.assert_array_equal(events[-1], events[3])
    np.testing.assert_array_equal(events.trajectory, np.repeat(np.arange(4), events.count))
    with pytest.raises(IndexError):
        events[4]


def test_those_of_one_reset_are_told_from_the_others():
    both = solve([GROUND, TOP], max_step=0.1).events
    ground, top = both.of_reset(0), both.of_reset(1)
    assert set(both.reset) == {0, 1} and len(ground.time) + len(top.time) == len(both.time)
    for row in range(4):
        np.testing.assert_allclose(ground[row], bounces(HEIGHTS[row, 0]), atol=1e-9)
        tops = (ground[row][1:] + ground[row][:-1]) / 2  # and perhaps one behind the last bounce
        np.testing.assert_allclose(top[row][:len(tops)], tops, atol=1e-9)
        assert (np.diff(both[row]) > 0).all()
    assert len(both.of_reset(7).time) == 0 and len(both.of_reset(7)) == 4


def same(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("time", "reset", "first"))


def test_files_hold_the_same(tmp_path):
    solution = solve([GROUND, TOP], time_unit="s")
    solution.save(tmp_path / "saved.h5")
    streamed = solve([GROUND, TOP], time_unit="s", output=tmp_path / "streamed.h5")
    for path in ("saved.h5", "streamed.h5"):
        assert same(lockstep.read(tmp_path / path).events, solution.events)
        with h5py.File(tmp_path / path) as file:
            np.testing.assert_array_equal(file["event_time"], solution.events.time)
            np.testing.assert_array_equal(file["event_trajectory"], solution.events.trajectory)
            assert file["event_time"].attrs["units"] == "s" and file["event_time"].dims[0][0].name == "/event_trajectory"
            assert list(file["event_reset"].attrs["resets"]) == [
                "x = 0, v = -bounce * v where x falls through 0", "v = 0 where v falls through 0"]
    assert same(streamed.events, solution.events)
    some = lockstep.read(tmp_path / "saved.h5", trajectories=slice(0, 4, 3)).events
    assert [one.tolist() for one in some] == [solution.events[0].tolist(), solution.events[3].tolist()]
    part = lockstep.read(tmp_path / "saved.h5", trajectories=slice(1, 3), components=["v"]).events
    assert [one.tolist() for one in part] == [solution.events[1].tolist(), []]


def test_problem_files_ask_for_them(tmp_path):
    text = ('[rhs]\nparameters = { bounce = 0.9 }\n[rhs.equations]\nx = "v"\nv = "-9.81"\n[ensemble]\n'
            'initial_state = [[10, 0], [1, 0], [90, 0], [5, 0]]\n[time]\nspan = [0, 4]\nsave = [4]\n[method]\n'
            'precision = "f64"\nrtol = 1e-11\natol = 1e-11\n[[resets]]\ncomponent = "x"\ndirection = "falling"\n'
            'to = { x = 0, v = "-bounce * v" }\n[output]\nevents = true\n')
    (tmp_path / "ball.toml").write_text(text)
    assert same(lockstep.solve(tmp_path / "ball.toml").events, solve().events)
    with pytest.raises(lockstep.InvalidArgument, match="keep_events"):
        lockstep.solve(tmp_path / "ball.toml", keep_events=True)


def test_copies_and_solvers_keep_them():
    solution = solve()
    for again in (pickle.loads(pickle.dumps(solution)), copy.copy(solution), copy.deepcopy(solution)):
        assert same(again.events, solution.events)
    solver = lockstep.Solver(BALL, HEIGHTS, (0, 4), [4.0], resets=GROUND, keep_events=True, **TIGHT)
    assert same(solver().events, solution.events)
    assert same(solver(parameters={"bounce": 0.5}).events, solve(parameters={"bounce": 0.5}).events)
    assert len(solver([2.0, 0.0]).events) == 1


def test_xarray_has_them_as_the_file_does(tmp_path):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    solution = solve(time_unit="s")
    solution.save(tmp_path / "a.h5")
    with xarray.open_dataset(tmp_path / "a.h5", engine="h5netcdf", decode_times=False) as file:
        for ours in (solution.to_xarray(), lockstep.read(tmp_path / "a.h5").to_xarray()):
            assert set(ours.variables) == set(file.variables) - {"committed"}
            for name in ("event_time", "event_reset", "event_trajectory"):
                assert ours[name].dims == file[name].dims == ("event_trajectory",)
                np.testing.assert_array_equal(ours[name], file[name])
                assert ours[name].attrs.keys() == file[name].attrs.keys()
                for key, value in ours[name].attrs.items():
                    np.testing.assert_array_equal(value, file[name].attrs[key])
    some = lockstep.read(tmp_path / "a.h5", trajectories=slice(1, 4, 2)).to_xarray()
    assert set(some["event_trajectory"].values.tolist()) == {1, 3}


# A verdict looks at them, too: where all else is the same, so are they.
def test_a_changed_time_a_missing_and_a_spare_one_are_found(tmp_path):
    solution = solve()
    for name in "abc":
        solution.save(tmp_path / f"{name}.h5")
    assert lockstep.validate(tmp_path / "a.h5", tmp_path / "b.h5").same_bits
    assert lockstep.validate(solution, tmp_path / "b.h5").same_bits
    with h5py.File(tmp_path / "b.h5", "r+") as file:
        file["event_time"][4] = np.nextafter(file["event_time"][4], 9)
    verdict = lockstep.validate(solution, tmp_path / "b.h5")
    assert verdict.outcome == "disagree" and not verdict.same_bits and "the events of trajectory 1" in verdict.sentence
    assert "its event 2 is reset 0 at t = " in verdict.reasons[-1] and verdict.evidence["events"]["with_other_resets"] == 0
    with h5py.File(tmp_path / "c.h5", "r+") as file:
        for name in ("event_time", "event_reset", "event_trajectory"):
            shorter = file[name][:-1]
            del file[name]
            file[name] = shorter
    for verdict in (lockstep.validate(solution, tmp_path / "c.h5"), lockstep.validate(tmp_path / "c.h5", solution)):
        assert verdict.outcome == "disagree" and "trajectory 3" in verdict.sentence
        assert verdict.evidence["events"]["with_other_resets"] == 1 and "none" in verdict.reasons[-1]


def test_solutions_that_rounding_parts_may_differ_in_times():
    verdict = lockstep.validate(solve(u0=HEIGHTS), solve(u0=HEIGHTS, precision="f32", rtol=1e-6, atol=1e-6))
    assert verdict.outcome != "agree" or "apart" in verdict.reasons[-1]
    assert verdict.evidence["events"]["largest_time"] < 1e-3


def test_who_did_not_ask_has_none(tmp_path):
    for asked in (None, False):
        solution = lockstep.solve(BALL, HEIGHTS, (0, 4), resets=GROUND, keep_events=asked)
        with pytest.raises(lockstep.InvalidArgument, match="keep_events=True"):
            solution.events
    solution.save(tmp_path / "a.h5")
    with pytest.raises(lockstep.InvalidArgument, match="events = true"):
        lockstep.read(tmp_path / "a.h5").events


def test_what_is_wrong_is_named():
    with pytest.raises(lockstep.InvalidArgument, match="keep_events: found true, and no resets, expected resets") as caught:
        lockstep.solve(BALL, HEIGHTS, (0, 4), keep_events=True, event={"component": "x"})
    assert caught.value.field == "keep_events"
    with pytest.raises(lockstep.Error, match="keep_events: found .*, expected true or false"):
        lockstep.solve(BALL, HEIGHTS, (0, 4), resets=GROUND, keep_events={"component": "x"})
    with pytest.raises(lockstep.Error, match="keep_events"):
        lockstep.solve(BALL, HEIGHTS, (0, 4), resets=GROUND, t_events=True)


def test_a_stopped_solve_over_an_earlier_file_tells_the_events_of_what_it_finished(tmp_path):
    output = tmp_path / "a.h5"
    fire = {"component": "v", "value": 1, "direction": "rising", "to": {"v": 0}}
    model = lockstep.equations({"v": "2 - v"})
    keywords = {"resets": fire, "keep_events": True, "precision": "f64", "threads": 1}
    lockstep.solve(model, [[0.0]], (0, 1), output=output, **keywords)

    def stop(done, total):
        if done > 0:
            raise KeyboardInterrupt

    u0 = np.linspace(0, 0.9, 200_000)[:, np.newaxis]
    with pytest.raises(lockstep.Interrupted) as caught:
        lockstep.solve(model, u0, (0, 30), output=output, overwrite=True, progress=stop, **keywords)
    result = caught.value.result
    assert result.path == tmp_path / "a.h5.part"
    finished = np.flatnonzero(result.status != lockstep.STATUS_NAMES.index("cancelled"))
    assert 0 < len(finished) < len(u0)
    expected = lockstep.solve(model, u0[finished[:50]], (0, 30), **keywords)
    for row, times in zip(finished, expected.events):
        np.testing.assert_array_equal(result.events[row], times)
    assert result.events.count[finished].min() > 0 and result.events.count.sum() == result.events.count[finished].sum()
    np.testing.assert_array_equal(lockstep.read(result.path).events.time, result.events.time)
    (tmp_path / "a.h5.part.events").unlink()
    with pytest.raises(lockstep.InvalidArgument, match=r"expected .*a\.h5\.part\.events beside it; finish the solve: "
                                                       "lockstep solve --resume"):
        lockstep.read(result.path).events
