"""Solving from Python: the tool's bits, files, interrupts, and what is refused."""

import _thread
import threading
import time
import warnings

import numpy as np
import pytest

import lockstep

U0 = np.random.default_rng(5).normal([1, 0, 0], 0.3, (33, 3))


def test_two_methods_reach_the_same_end():
    # The reference: another method, with tolerances a thousand times smaller.
    loose = lockstep.solve("lorenz", [1.0, 0.0, 0.0], (0, 1), method="tsit5", rtol=1e-10, atol=1e-10, precision="f64")
    tight = lockstep.solve("lorenz", [1.0, 0.0, 0.0], (0, 1), method="dop853", rtol=1e-13, atol=1e-13, precision="f64")
    # Local errors of 1e-10 |u| a step, some 100 steps, grown by at most e^(0.906 + a transient of 1): below 1e-6.
    np.testing.assert_allclose(loose.end_state, tight.end_state, rtol=0, atol=1e-6)
    assert loose.accepted[0] != tight.accepted[0]


def test_the_first_rows_of_save_points_count_where_fewer_trajectories_are_asked_for():
    times = np.linspace(0.01, 0.9, 66).reshape(33, 2)
    each = lockstep.solve("lorenz", U0, (0, 1), times)
    np.testing.assert_array_equal(each.time, times)
    first = lockstep.solve("lorenz", U0, (0, 1), times, trajectories=5)
    np.testing.assert_array_equal(first.time, times[:5])
    np.testing.assert_array_equal(first.state, each.state[:5])


def test_threads_and_slices_of_the_ensemble_change_no_bit(lorenz_net):
    whole = lockstep.solve(lorenz_net, U0, (0, 1), 11)
    for threads in (1, 2):
        np.testing.assert_array_equal(lockstep.solve(lorenz_net, U0, (0, 1), 11, threads=threads).state, whole.state)
    np.testing.assert_array_equal(lockstep.solve(lorenz_net, U0[7:9], (0, 1), 11).state, whole.state[7:9])


def test_a_problem_file_gives_the_bits_of_its_arguments(tmp_path, testdata):
    (tmp_path / "problem.toml").write_text(f"""
[rhs]
model = "{testdata}/lorenz_tanh_3_100_3.safetensors"
[ensemble]
initial_state = {U0.tolist()}
[time]
span = [0, 1]
save = 11
[output]
file = "unwritten.h5"
""")
    by_file = lockstep.solve(tmp_path / "problem.toml")
    net = lockstep.load(testdata / "lorenz_tanh_3_100_3.safetensors")
    by_arguments = lockstep.solve(net, U0, (0, 1), save_at=11)
    np.testing.assert_array_equal(by_file.state, by_arguments.state)
    assert by_file.attributes["problem_digest"] == by_arguments.attributes["problem_digest"]
    assert not list(tmp_path.glob("*.h5"))
    each = lockstep.solve(tmp_path / "problem.toml", atol=[1e-6, 1e-5, 1e-6])
    assert list(each.attributes["atol"]) == [1e-6, 1e-5, 1e-6]
    assert lockstep.solve(tmp_path / "problem.toml", atol=1e-5).attributes["atol"] == 1e-5
    other = lockstep.solve(tmp_path / "problem.toml", method="rk4", dt=0.01, precision="f64", trajectories=2)
    np.testing.assert_array_equal(
        other.state, lockstep.solve(net, U0[:2], (0, 1), 11, method="rk4", dt=0.01, precision="f64").state)


def test_every_component_may_have_a_tolerance_of_its_own():
    one = lockstep.solve("lorenz", U0, (0, 1), atol=1e-5)
    each = lockstep.solve("lorenz", U0, (0, 1), atol=np.full(3, 1e-5))
    np.testing.assert_array_equal(one.end_state, each.end_state)
    assert list(each.attributes["atol"]) == [1e-5] * 3
    assert lockstep.solve("lorenz", U0, (0, 1), atol=[1e-5, 1e-5, 1]).accepted.sum() < one.accepted.sum()
    with pytest.raises(lockstep.InvalidArgument, match="atol: found 2 numbers"):
        lockstep.solve("lorenz", U0, (0, 1), atol=[1e-5, 1e-5])


def test_ensembles_come_from_csv_and_no_output_replaces_them(tmp_path):
    table = tmp_path / "u0.csv"
    table.write_text("x,y,z\n" + "".join(f"{x!r},{y!r},{z!r}\n" for x, y, z in U0.tolist()))
    solution = lockstep.solve("lorenz", {"file": table}, (0, 1), 11)
    np.testing.assert_array_equal(solution.state, lockstep.solve("lorenz", U0, (0, 1), 11).state)
    with pytest.raises(lockstep.InvalidArgument, match="found a file that is read as well"):
        lockstep.solve("lorenz", {"file": table}, (0, 1), 11, output=table, overwrite=True)
    assert table.read_text().startswith("x,y,z")


def test_save_points_are_as_asked():
    times = [0.0, 0.25, 1.0]
    solution = lockstep.solve("lorenz", U0, (0, 1), times, precision="f64")
    np.testing.assert_array_equal(solution.time, times)
    np.testing.assert_array_equal(solution.state[:, 0], U0)
    np.testing.assert_array_equal(solution.state[:, -1], solution.end_state)
    own = np.linspace(0.1, 1.0, 33)[:, np.newaxis] * [0.5, 1.0]
    solution = lockstep.solve("lorenz", U0, (0, 1), own)
    assert solution.time.shape == (33, 2) and solution.state.shape == (33, 2, 3)
    spans = np.stack([np.zeros(33), np.linspace(0.5, 1, 33)], axis=1)
    np.testing.assert_array_equal(lockstep.solve("lorenz", U0, spans).end_time, spans[:, 1])
    assert lockstep.solve("lorenz", U0).state.shape == (33, 1, 3)


def test_parameters_are_one_row_a_row_each_or_named():
    rows = np.tile([10.0, 28.0, 8 / 3], (33, 1))
    rows[:, 1] = np.linspace(20, 30, 33)
    each = lockstep.solve("lorenz", U0, (0, 1), 5, parameters=rows)
    named = lockstep.solve("lorenz", U0, (0, 1), 5, parameters={"rho": {"linspace": [20, 30]}})
    np.testing.assert_array_equal(each.parameters, rows)
    np.testing.assert_allclose(named.parameters, rows, rtol=1e-15)
    np.testing.assert_array_equal(
        lockstep.solve("lorenz", U0, (0, 1), 5, parameters=rows[0]).state,
        lockstep.solve("lorenz", U0, (0, 1), 5, parameters={"rho": 20}).state)
    assert each.parameter_names == ("sigma", "rho", "beta")


def test_physics_and_a_net_add_up(lorenz_net):
    zero = lockstep.mlp([np.zeros((3, 3))], activations=["identity"])
    with_nothing = lockstep.solve(("lorenz", zero), U0, (0, 1), 5)
    np.testing.assert_array_equal(with_nothing.state, lockstep.solve("lorenz", U0, (0, 1), 5).state)
    both = lockstep.solve(("lorenz", lorenz_net), U0, (0, 0.1), 5)
    assert not np.array_equal(both.state, with_nothing.state) and not both.status.any()


def test_a_file_holds_what_memory_would(tmp_path, lorenz_net):
    in_memory = lockstep.solve(lorenz_net, U0, (0, 1), 11)
    in_file = lockstep.solve(lorenz_net, U0, (0, 1), 11, output=tmp_path / "a.h5")
    for name in ("state", "time", "end_state", "end_time", "status", "accepted", "rejected", "evaluations",
                 "initial_state", "parameters"):
        np.testing.assert_array_equal(getattr(in_file, name), getattr(in_memory, name), err_msg=name)
    assert in_file.path == tmp_path / "a.h5" and in_file.component_names == in_memory.component_names
    with pytest.raises(lockstep.FileError):
        lockstep.solve(lorenz_net, U0, (0, 1), output=tmp_path / "a.h5")
    lockstep.solve(lorenz_net, U0[:2], (0, 1), output=tmp_path / "a.h5", overwrite=True)
    assert len(lockstep.read(tmp_path / "a.h5")) == 2


def test_what_is_saved_later_is_what_output_writes(tmp_path, lorenz_net):
    for count, precision in ((33, "f32"), (1100, "f64")):
        u0 = np.random.default_rng(2).normal(size=(count, 3))
        arguments = dict(problem=("lorenz", lorenz_net), u0=u0, t_span=(0, 0.1), save_at=3, precision=precision,
                         parameters={"rho": {"linspace": [20, 30]}}, units={"x": "m"})
        solution = lockstep.solve(**arguments)
        solution.save(tmp_path / "saved.h5", overwrite=True)
        lockstep.solve(**arguments, output=tmp_path / "streamed.h5", overwrite=True)
        saved, streamed = (lockstep.read(tmp_path / name) for name in ("saved.h5", "streamed.h5"))
        for name in ("state", "end_state", "time", "status", "accepted", "evaluations", "parameters", "initial_state"):
            np.testing.assert_array_equal(getattr(saved, name), getattr(streamed, name))
        for name in ("problem_digest", "rhs_digest", "title", "method"):
            assert saved.attributes[name] == streamed.attributes[name]
        assert saved.attributes.keys() == streamed.attributes.keys() and saved.units == {"x": "m"}
        verdict = lockstep.validate(tmp_path / "saved.h5", tmp_path / "streamed.h5")
        assert verdict and "same bits" in verdict.sentence
    with pytest.raises(lockstep.FileError, match="saved.h5"):
        solution.save(tmp_path / "saved.h5")
    with pytest.raises(lockstep.Unsupported, match="copy the file"):
        saved.save(tmp_path / "again.h5")


def test_a_file_without_save_points_is_read(tmp_path):
    file = lockstep.solve("lorenz", U0, (0, 1), [], output=tmp_path / "a.h5")
    assert file.state.shape == (33, 0, 3) and file.time.shape == (0,)
    np.testing.assert_array_equal(file.end_state, lockstep.solve("lorenz", U0, (0, 1), []).end_state)
    with pytest.raises(lockstep.InvalidArgument, match="times"):
        lockstep.read(lockstep.solve("lorenz", U0, (0, 1), 3, output=tmp_path / "b.h5").path, times=slice(3, 3))


def test_names_of_components_change_no_order():
    model = lockstep.equations({"x": "v", "v": "-x"})
    assert lockstep.solve(model, [1, 0], (0, 1), components=["x", "v"]).component_names == ("x", "v")
    with pytest.raises(lockstep.InvalidArgument, match='found "v" in place 0, expected it in place 1.*choose nothing'):
        lockstep.solve(model, [1, 0], (0, 1), components=["v", "x"])


def test_parts_of_a_file_are_those_of_the_whole(tmp_path):
    whole = lockstep.solve("lorenz", U0, (0, 1), 11, output=tmp_path / "a.h5")
    part = lockstep.read(tmp_path / "a.h5", trajectories=slice(3, 20, 2), times=slice(1, None, 5),
                         components=["z", "x"])
    np.testing.assert_array_equal(part.state, whole.state[3:20:2, 1::5][:, :, [2, 0]])
    np.testing.assert_array_equal(part.time, whole.time[1::5])
    np.testing.assert_array_equal(part.accepted, whole.accepted[3:20:2])
    np.testing.assert_array_equal(part.initial_state, whole.initial_state[3:20:2][:, [2, 0]])
    np.testing.assert_array_equal(part["x"], part.state[:, :, 1])
    for bad in (slice(40, 50), slice(np.int64(40), np.int64(50)), slice(None, None, -1)):
        with pytest.raises(lockstep.InvalidArgument, match="trajectories"):
            lockstep.read(tmp_path / "a.h5", trajectories=bad)
    with pytest.raises(lockstep.FileError):
        lockstep.read(tmp_path / "b.h5")


def test_a_file_that_another_run_has_replaced_is_not_read_for_it(tmp_path):
    def solve(rho, **more):
        return lockstep.solve("lorenz", U0, (0, 1), 3, parameters={"rho": rho}, output=tmp_path / "a.h5",
                              overwrite=True, **more)

    first = solve(20.0)
    state = first.state.copy()
    second = solve(28.0)
    np.testing.assert_array_equal(first.state, state)  # what was read stays
    for stale in (lambda: first.parameters, lambda: lockstep.validate(first, second)):
        with pytest.raises(lockstep.FileError, match="a.h5: found a file that was written since.*read it anew"):
            stale()
    solve(28.0)  # the same numbers again
    assert second.parameters[1] == 28
    solve(28.0, rtol=1e-3)
    with pytest.raises(lockstep.FileError, match="written since"):
        second.state
    (tmp_path / "a.h5").unlink()
    with pytest.raises(lockstep.FileError, match="no such file"):
        second.state


def test_a_repr_of_a_file_reads_no_states(tmp_path):
    solution = lockstep.solve("lorenz", U0, (0, 1), 11, output=tmp_path / "a.h5")
    text = "<lockstep.Solution Lorenz 1963: state[trajectory 33, time 11, component 3] float32, all succeeded>"
    assert repr(solution) == text and "state" not in solution._arrays
    assert solution.state.shape == (33, 11, 3) and repr(solution) == text


def test_units_go_into_solutions_files_and_xarray(tmp_path):
    units = {"x": "m", "z": "K"}
    memory = lockstep.solve("lorenz", U0, (0, 1), 11, units=units, time_unit="s")
    file = lockstep.solve("lorenz", U0, (0, 1), 11, units=units, time_unit="s", output=tmp_path / "a.h5")
    for solution in (memory, file, lockstep.read(tmp_path / "a.h5")):
        assert (solution.units, solution.time_unit) == (units, "s")
    assert lockstep.read(tmp_path / "a.h5", components=["z"]).units == {"z": "K"}
    assert lockstep.solve("lorenz", U0, (0, 1)).units == {}
    with pytest.raises(lockstep.InvalidArgument, match="units.w"):
        lockstep.solve("lorenz", U0, (0, 1), units={"w": "m"})
    pytest.importorskip("xarray")
    data = memory.to_xarray()
    assert data["state"].attrs["component_units"] == ["m", "", "K"] and "units" not in data["state"].attrs
    assert data["time"].attrs["units"] == "s"
    assert file.to_xarray()["state"].attrs == data["state"].attrs


def test_an_events_expression_may_stand_alone():
    alone = lockstep.solve("lorenz", U0, (0, 50), event="x^2 + y^2 - 100")
    table = lockstep.solve("lorenz", U0, (0, 50), event={"function": "x^2 + y^2 - 100"})
    assert (alone.status == 1).all()
    np.testing.assert_array_equal(alone.end_time, table.end_time)


def test_events_stop_trajectories():
    solution = lockstep.solve("lorenz", U0, (0, 50), event={"component": "z", "value": 30, "direction": "rising"})
    assert (solution.status == lockstep.STATUS_NAMES.index("terminated")).all()
    np.testing.assert_allclose(solution.end_state[:, 2], 30, rtol=1e-4)  # located to float32's resolution of a step


def test_one_bad_trajectory_spoils_no_other():
    u0 = U0.copy()
    u0[4] = 1e30
    solution = lockstep.solve("lorenz", u0, (0, 1), 5)
    assert solution.status[4] != 0 and not np.delete(solution.status, 4).any()
    good = lockstep.solve("lorenz", U0, (0, 1), 5)
    np.testing.assert_array_equal(np.delete(solution.state, 4, 0), np.delete(good.state, 4, 0))


def test_progress_ends_at_all_of_it():
    seen = []
    lockstep.solve("lorenz", np.tile(U0, (500, 1)), (0, 20), progress=lambda done, total: seen.append((done, total)),
                   threads=1)
    assert seen and all(total == 33 * 500 for _, total in seen)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_a_bar_of_tqdm_shows_the_trajectories(capsys):
    pytest.importorskip("tqdm")
    lockstep.solve("lorenz", np.tile(U0, (500, 1)), (0, 20), progress=True, threads=1)
    assert "solving" in capsys.readouterr().err


def test_an_error_of_progress_stops_the_solve():
    def fail(done, total):
        raise RuntimeError("enough")

    start = time.monotonic()
    with pytest.raises(RuntimeError, match="enough"):
        lockstep.solve("lorenz", np.tile(U0, (20_000, 1)), (0, 50), progress=fail)
    assert time.monotonic() - start < 30  # in full it takes minutes


def interrupt_soon(seconds=0.3):
    timer = threading.Timer(seconds, _thread.interrupt_main)
    timer.start()
    return timer


@pytest.mark.parametrize("to_file", [False, True])
def test_an_interrupted_solve_keeps_what_is_finished(tmp_path, to_file):
    output = tmp_path / "a.h5" if to_file else None
    u0 = np.tile(U0, (3000, 1))
    timer = interrupt_soon()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt) as caught:
        lockstep.solve("lorenz", u0, (0, 300), threads=1, output=output)  # minutes, in full
    timer.join()
    assert time.monotonic() - start < 30
    assert isinstance(caught.value, lockstep.Interrupted)
    result = caught.value.result
    cancelled = result.status == lockstep.STATUS_NAMES.index("cancelled")
    assert cancelled.any() and len(result) == len(u0)
    finished = np.flatnonzero(~cancelled)[:33]
    if len(finished):
        again = lockstep.solve("lorenz", u0[finished], (0, 300))
        np.testing.assert_array_equal(result.end_state[finished], again.end_state)
    assert (tmp_path / "a.h5").exists() == to_file


@pytest.mark.parametrize("arguments, field, words", [
    (dict(method="tsit6"), "method", "tsit5"),
    (dict(rtol=-1.0), "rtol", "not negative"),
    (dict(rtol=float("nan")), "rtol", "finite"),
    (dict(rtol=1e3, atol=1e3), "rtol", "below 1"),
    (dict(dt=0.1, rtol=1e-6), "rtol", "fixed|adaptive"),
    (dict(precision="f16"), "precision", "f32"),
    (dict(threads=-1), "threads", ""),
    (dict(device="gpu"), "device", "cuda"),
    (dict(u0=np.zeros((5, 4))), "u0", "3"),
    (dict(u0=np.full((5, 3), np.nan)), "u0", "finite"),
    (dict(u0=[["a", "b", "c"]]), "u0", "numbers"),
    (dict(u0={"normals": 1}), "u0", "normal"),
    (dict(t_span=(0, np.inf)), "t_span", "finite"),
    (dict(t_span=[0, 1, 2]), "t_span", ""),
    (dict(save_at=[0.5, 2.0]), "save_at", ""),
    (dict(save_at=0), "save_at", ""),
    (dict(save_at=np.linspace(0, 1, 33 * 4).reshape(33, 2, 2)), "save_at", "3 dimensions"),
    (dict(save_at=np.tile([0.1, 0.2, 0.3], (11, 1))), "save_at", "11 rows.*each of 33 trajectories"),
    (dict(save_at=np.tile([0.1, 0.2], (66, 1))), "save_at", "66 rows.*each of 33 trajectories"),
    (dict(parameters={"ro": 1}), "parameters", "rho"),
    (dict(problem="lorentz"), "system", "lorenz"),
    (dict(problem=3), "problem", "load"),
    (dict(problem=lambda t, u: u), "problem", "lockstep.equations"),
    (dict(components=["x"]), "components", "built-in"),
    (dict(event={"component": "q"}), "event", "x"),
    (dict(event={"variable": "x"}), "event", "component"),
    (dict(event={}), "event", "empty dict.*component"),
    (dict(atol=[]), "atol", "one for each component"),
    (dict(save_at=0.1), "save_at", "every.: 0.1"),
    (dict(save_at=np.float32(2)), "save_at", "integer"),
    (dict(method="RK45"), "method", "dopri5"),
    (dict(event=5), "event", "int"),
    (dict(units=5), "units", "dict"),
    (dict(time_unit=5), "time_unit", "text"),
    (dict(components=5), "components", "built-in"),
    (dict(seed=2**64), "seed", "64 bits"),
])
def test_wrong_arguments_are_named_as_the_user_wrote_them(arguments, field, words):
    with pytest.raises(lockstep.Error, match=words or None) as caught:
        lockstep.solve(**{"problem": "lorenz", "u0": U0, "t_span": (0, 1), **arguments})
    assert field in caught.value.field, str(caught.value)
    assert "arguments:" not in str(caught.value) and "--" not in str(caught.value)


@pytest.mark.parametrize("precision", ["float64", np.float64, np.dtype("f8"), float, np.ones(1).dtype, "double"])
def test_numpys_names_of_a_precision_are_known(precision):
    assert lockstep.solve("lorenz", [1, 0, 0], (0, 0.1), precision=precision).state.dtype == np.float64
    assert lockstep.solve("lorenz", [1, 0, 0], (0, 0.1), precision="float32").state.dtype == np.float32
    trained = lockstep.train(x=np.ones(5), y=np.ones(5), hidden=[1], iterations=1, precision=precision)
    assert trained.loss == lockstep.train(x=np.ones(5), y=np.ones(5), hidden=[1], iterations=1, precision="f64").loss


def test_other_libraries_names_of_a_precision_are_known():
    class Dtype:  # torch.float64, jax.numpy.float64 and others that are called so
        def __init__(self, name):
            self.name = name

        def __str__(self):
            return self.name

    for name, expected in (("torch.float64", np.float64), ("torch.float32", np.float32)):
        assert lockstep.solve("lorenz", [1, 0, 0], (0, 0.1), precision=Dtype(name)).state.dtype == expected
    with pytest.raises(lockstep.InvalidArgument, match="^precision: found .*, expected"):
        lockstep.solve("lorenz", [1, 0, 0], (0, 0.1), precision=Dtype("torch.bfloat16"))


@pytest.mark.parametrize("precision", ["half", np.float16, "f16", np.int64, 64, "F64", object()])
def test_other_precisions_are_refused_with_a_list(precision):
    with pytest.raises(lockstep.InvalidArgument, match='precision: found .*expected "f32", "f64", or a dtype, float32 or float64'):
        lockstep.solve("lorenz", [1, 0, 0], (0, 1), precision=precision)


def test_what_lies_under_a_mask_is_not_read(lorenz_net):
    whole, holes = np.ma.array(U0), np.ma.array(U0)
    holes[3, 1] = np.ma.masked
    np.testing.assert_array_equal(lockstep.solve("lorenz", whole, (0, 0.1)).state,
                                  lockstep.solve("lorenz", U0, (0, 0.1)).state)
    np.testing.assert_array_equal(lorenz_net(whole), lorenz_net(U0))
    for read, name in ((lambda: lockstep.solve("lorenz", holes, (0, 1)), "u0"),
                       (lambda: lockstep.solve("lorenz", [holes[3], holes[4]], (0, 1)), "u0"),
                       (lambda: lockstep.solve("lorenz", [holes[3], holes[4][:2]], (0, 1)), "u0"),
                       (lambda: lockstep.solve("lorenz", U0, (0, 1), np.ma.array([0, 1], mask=[0, 1])), "save_at"),
                       (lambda: lockstep.train(x=holes, y=U0, hidden=[2]), "x"),
                       (lambda: lorenz_net(holes), "x"),
                       (lambda: lorenz_net(U0, out=holes), "out")):
        with pytest.raises(lockstep.WrongType, match=rf"\A{name}: found a masked array.* masked.*filled\(0\)"):
            read()


def test_arguments_beside_a_problem_file_are_refused(tmp_path):
    (tmp_path / "p.toml").write_text("[rhs]\nsystem = 'lorenz'\n")
    with pytest.raises(lockstep.InvalidArgument, match="u0.*edit the file"):
        lockstep.solve(tmp_path / "p.toml", U0)
    (tmp_path / "q.toml").write_text("[rhs]\nsystem = 'lorenz'\n[method]\nrtoll = 1\n")
    with pytest.raises(lockstep.InvalidArgument, match="q.toml:4: method.*rtol"):
        lockstep.solve(tmp_path / "q.toml")
    with pytest.raises(lockstep.FileError, match="none.toml"):
        lockstep.solve("none.toml")


def test_systems_say_what_they_need():
    lorenz = lockstep.systems()["lorenz"]
    assert lorenz["components"] == ["x", "y", "z"] and lorenz["parameters"]["rho"] == 28


def test_equations_with_a_net_give_the_bits_of_a_problem_file(lorenz_net, testdata, tmp_path):
    texts = {"x": "net(x, y, z)[0]", "y": "r - y", "z": "x*y - b*z"}
    model = lockstep.equations(texts, parameters={"r": 28, "b": 8 / 3}, models={"net": lorenz_net},
                               definitions={"unused": "x + 1"})
    u0 = [[1, 0, 0], [0, 1, 20]]
    solution = lockstep.solve(model, u0, (0, 1), 11, parameters={"b": 2.5})
    (tmp_path / "problem.toml").write_text(
        f"""[rhs]
parameters = {{ r = 28, b = "8/3" }}
models = {{ net = "{testdata}/lorenz_tanh_3_100_3.safetensors" }}
[rhs.equations]
x = "net(x, y, z)[0]"
y = "r - y"
z = "x*y - b*z"
[ensemble]
initial_state = [[1, 0, 0], [0, 1, 20]]
parameters = {{ b = 2.5 }}
[time]
span = [0, 1]
save = 11
""")
    again = lockstep.solve(tmp_path / "problem.toml")
    assert np.array_equal(solution.state, again.state)
    assert solution.component_names == ("x", "y", "z")


def test_equations_say_where_they_go_wrong():
    with pytest.raises(lockstep.InvalidArgument, match="did you mean \"sigma\"") as caught:
        lockstep.equations({"x": "sgima * x"}, parameters=["sigma"])
    assert caught.value.field == "equations.x, column 1"


def test_a_model_that_solved_before_gives_the_bits_of_a_new_one(testdata):
    path = testdata / "peaks_relu_2_20_5_1.safetensors"  # 2 inputs, 1 output: the second is a parameter, or time
    used = lockstep.load(path)
    for precision in ("f32", "f64", "f32"):
        for method in ("tsit5", "rk4"):
            dt = 0.01 if method == "rk4" else None
            for arguments in ({"parameters": [0.5]}, {"with_time": True}, {"parameters": [-0.25]}):
                solution, expected = (
                    lockstep.solve(model, [[0.1], [0.3]], (0, 1), 11, method=method, dt=dt, precision=precision,
                                   **arguments)
                    for model in (used, lockstep.load(path)))
                np.testing.assert_array_equal(solution.state, expected.state)
                for name in ("rhs_digest", "model_digest", "problem_digest", "kernel"):
                    assert solution.attributes[name] == expected.attributes[name]


def test_equations_solved_again_and_again_keep_their_bits():
    def equations():
        return lockstep.equations({"x": "s * (y - x)", "y": "x * (r - z) - y", "z": "x*y - b*z"},
                                  parameters={"s": 10, "r": 28, "b": 8 / 3})

    used = equations()
    for _ in range(20):  # code for whole steps is made on the way
        for end, rtol in ((0.5, 1e-6), (3, 1e-8), (0.5, 1e-6)):
            solution, expected = (lockstep.solve(model, [1.0, 1, 20], (0, end), 5, rtol=rtol, precision="f64")
                                  for model in (used, equations()))
            np.testing.assert_array_equal(solution.state, expected.state)


def test_an_interrupted_solve_does_not_replace_a_finished_file(tmp_path):
    output = tmp_path / "a.h5"
    few, many = np.tile(U0, (7, 1)), np.tile(U0, (3000, 1))
    lockstep.solve("lorenz", few, (0, 1), output=output)
    before = output.read_bytes()
    timer = interrupt_soon()
    with pytest.raises(lockstep.Interrupted, match=r"a\.h5\.part: .*a\.h5 is the earlier file still") as caught:
        lockstep.solve("lorenz", many, (0, 300), threads=1, output=output, overwrite=True)
    timer.join()
    assert output.read_bytes() == before
    result = caught.value.result
    cancelled = result.status == lockstep.STATUS_NAMES.index("cancelled")
    assert cancelled.any() and len(result) == len(many)
    assert np.isfinite(result.end_state[~cancelled]).all()
    assert np.isnan(result.end_state[-1]).all()  # never begun
    # What is saved from memory is what was asked for, finished or not.
    again = interrupt_soon()
    with pytest.raises(lockstep.Interrupted) as caught:
        lockstep.solve("lorenz", many, (0, 300), threads=1)
    again.join()
    caught.value.result.save(output, overwrite=True)
    assert len(lockstep.read(output)) == len(many)
    lockstep.solve("lorenz", few, (0, 1), output=output, overwrite=True)
    assert len(lockstep.read(output)) == len(few)


def test_an_interrupt_of_a_short_solve_is_told_with_its_solution():
    def solve():  # so short by the cost model that it is not stopped
        return lockstep.solve("lorenz", [1.0, 1, 20], (0, 1000), dt=0.005, max_steps=200_000, precision="f64")

    solve()
    for _ in range(50):
        try:
            stopping = interrupt_soon(0.005)
            solve()
            stopping.join()
            time.sleep(0.01)
        except lockstep.Interrupted as interrupted:
            assert list(interrupted.result.status) == [0]
            return
        except KeyboardInterrupt:  # before or after the solve, while the timer starts perhaps
            pass
    pytest.fail("no interrupt came while a solve went on")


def test_time_too_large_for_float32_warns():
    driven = lockstep.equations({"x": "v", "v": "-x + sin(t)"})
    with pytest.warns(UserWarning, match="reads the time in float32, whose spacing is 0.062 at t = 1.00002e"):
        lockstep.solve(driven, [1, 0], (1e6, 1e6 + 20), np.linspace(1e6, 1e6 + 20, 21))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lockstep.solve(driven, [1, 0], (0, 20), 21)
        lockstep.solve(driven, [1, 0], (1e6, 1e6 + 20), 21, precision="f64")


def test_a_component_that_float32_holds_still_warns(tmp_path):
    slow = lockstep.equations({"T": "0.002", "x": "-1000*(x - t)"})
    for kept in ({}, {"output": tmp_path / "slow.h5"}):
        with pytest.warns(UserWarning, match="float32 holds T still at 300: a step of 0.0035 adds 6.9e-06, less than half"):
            lockstep.solve(slow, [300, 0], (0, 20), **kept)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lockstep.solve(slow, [300, 0], (0, 20), precision="f64")
        lockstep.solve(slow, [3, 0], (0, 20))


OSCILLATOR = lockstep.equations({"x": "v", "v": "-k * x"}, parameters={"k": 1})


def test_an_empty_dict_of_parameters_leaves_the_defaults():
    expected = lockstep.solve(OSCILLATOR, [1, 0], (0, 1)).state
    for parameters in ({}, None, {"k": 1}):
        assert np.array_equal(lockstep.solve(OSCILLATOR, [1, 0], (0, 1), parameters=parameters).state, expected)
        solver = lockstep.Solver(OSCILLATOR, [1, 0], (0, 1), parameters=parameters)
        assert np.array_equal(solver(parameters={}).state, expected)
    assert lockstep.Solver(OSCILLATOR, [1, 0], (0, 1), parameters=[2.0])(parameters={}).parameters.tolist() == [2]
    assert lockstep.solve(lockstep.equations({"x": "-x"}), [1], (0, 1), parameters={}).status.tolist() == [0]
    with pytest.raises(lockstep.InvalidArgument, match="^parameters: found no value for k"):
        lockstep.solve(lockstep.equations({"x": "-k * x"}, parameters=["k"]), [1], (0, 1), parameters={})


@pytest.mark.parametrize("precision", ["f32", "f64"])
@pytest.mark.parametrize("options", [
    {}, {"dt": 0.1}, {"control": "common"}, {"method": "rodas5p"}, {"parameters": np.zeros((0, 1))}, {"parameters": {"k": 2}},
    {"parameters": {"k": {"normal": {"mean": 1, "std": 0.1}}}}, {"t_span": np.zeros((0, 2)), "save_at": None}, {"event": "x"},
    {"impulses": {"time": 0.5, "component": "x", "change": 1}},
    {"u0": [1, 0], "parameters": np.zeros((0, 1))}, {"u0": np.zeros((0, 2), np.dtype([("v", "f8"), ("x", "f8")]))[:, 0]}])
def test_no_rows_are_no_trajectories(precision, options):
    given = {"u0": np.zeros((0, 2)), "t_span": (0, 1), "save_at": 3, **options}
    solution = lockstep.solve(OSCILLATOR, precision=precision, **given)
    assert solution.state.shape == (0, 0 if given["save_at"] is None else 3, 2) and len(solution) == 0
    assert solution.initial_state.shape == solution.end_state.shape == (0, 2)
    assert solution.status.shape == solution.end_time.shape == (0,)


def test_no_trajectories_have_files_derivatives_and_views(tmp_path):
    solution = lockstep.solve(OSCILLATOR, np.zeros((0, 2)), (0, 1), save_at=3, precision="f64")
    solution.save(tmp_path / "saved.h5")
    lockstep.solve(OSCILLATOR, np.zeros((0, 2)), (0, 1), save_at=3, precision="f64", output=tmp_path / "none.h5")
    for name in ("saved.h5", "none.h5"):
        read = lockstep.read(tmp_path / name)
        assert read.state.shape == (0, 3, 2) and read.start_time.shape == (0,) and read.time.tolist() == [0, 0.5, 1]
    assert solution.vjp(np.zeros((0, 3, 2))).u0.shape == (0, 2)
    assert solution.sensitivities().state_by_parameter.shape == (0, 3, 2, 1)
    solver = lockstep.Solver(OSCILLATOR, [1, 0], (0, 1))
    assert [len(solver(u0)) for u0 in (np.zeros((0, 2)), np.zeros((0, 2)), [1, 0], np.ones((3, 2)))] == [0, 0, 1, 3]


def test_no_rows_where_some_are_expected_are_refused():
    for options, said in (({"trajectories": 3}, "^u0: found 0 rows, expected at least 3, one for each trajectory"),
                          ({"parameters": np.ones((3, 1))}, "^u0: found 0 rows, expected at least 3"),
                          ({"u0": np.zeros((0, 3))}, "^u0: found 3 numbers, expected 2 numbers")):
        with pytest.raises(lockstep.InvalidArgument, match=said):
            lockstep.solve(OSCILLATOR, **{"u0": np.zeros((0, 2)), "t_span": (0, 1), **options})


def test_no_trajectories_of_a_file_are_read(tmp_path):
    resets = {"component": "x", "to": {}}
    lockstep.solve(OSCILLATOR, np.eye(2), (0, 9), save_at=3, resets=resets, keep_events=True, output=tmp_path / "a.h5")
    for part in (slice(0, 0), slice(2, 1), slice(2, 2), slice(0, 0, 2)):
        solution = lockstep.read(tmp_path / "a.h5", trajectories=part)
        assert solution.state.shape == (0, 3, 2) and len(solution.events) == 0 and len(solution.events.time) == 0
        assert solution.initial_state.shape == (0, 2) and solution.start_time.shape == solution.status.shape == (0,)
        assert "trajectory 0, time 3" in repr(solution)
    with pytest.raises(lockstep.Unsupported, match="copy the file; to_xarray.*writes a part$"):
        solution.save(tmp_path / "b.h5")


def test_save_points_may_be_spread_over_decades_or_follow_an_interval():
    decades = lockstep.solve("lorenz", [1.0, 0, 0], (0, 1), save_at={"logspace": [1e-6, 1, 7]}, precision="f64")
    np.testing.assert_array_equal(decades.time, [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1])
    even = lockstep.solve("lorenz", [1.0, 0, 0], (0, 1), save_at={"linspace": [0.5, 1, 3]})
    np.testing.assert_array_equal(even.time, [0.5, 0.75, 1])
    late = lockstep.solve("lorenz", [1.0, 0, 0], (1.7e9, 1700000000.3), save_at={"every": 0.1})
    assert late.time.shape == (4,) and late.time[-1] == 1700000000.3  # which is 1.7e9 + 3 * 0.1
    with pytest.raises(lockstep.Error, match="a range that does not say how many save points"):
        lockstep.solve("lorenz", [1.0, 0, 0], (0, 1), save_at={"logspace": [1e-6, 1]})
