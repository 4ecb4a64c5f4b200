"""Arguments that are taken for something else elsewhere: what they are answered with."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import lockstep


def problem_file(folder):
    path = folder / "lorenz.toml"
    path.write_text('[rhs]\nsystem = "lorenz"\n[time]\nspan = [0, 1]\n[ensemble]\ninitial_state = [1, 0, 0]\n')
    return path


def test_a_parameter_that_is_no_number_is_named():
    with pytest.raises(lockstep.WrongType, match=r"^parameters.beta: found '8/3', expected a number; write 8/3 in Python$"):
        lockstep.equations({"x": "-beta * x"}, parameters={"beta": "8/3"})
    with pytest.raises(lockstep.WrongType, match=r"^parameters.beta: found \[1\], expected a number$"):
        lockstep.equations({"x": "-beta * x"}, parameters={"beta": [1]})
    model = lockstep.equations({"x": "-beta * x"}, parameters={"beta": np.float32(2), })
    assert lockstep.solve(model, [1.0], (0, 1)).parameters.tolist() == [2]


@pytest.mark.parametrize("name", ["net.h5", Path("net.safetensors"), ("lorenz", "net.ONNX")])
def test_a_model_file_is_to_be_loaded_first(name):
    file = name[1] if isinstance(name, tuple) else str(name)
    with pytest.raises(lockstep.InvalidArgument, match=rf"^problem: found the model file '{file}', expected a Model, .*; "
                                                       rf"load it first: lockstep.load\('{file}'\)$"):
        lockstep.solve(name, [1, 0, 0], (0, 1))


def test_no_threads_are_all_threads(lorenz_net):
    x = np.random.default_rng(3).normal(size=(2000, 3)).astype(np.float32)
    np.testing.assert_array_equal(lorenz_net(x, threads=0), lorenz_net(x))
    a, b = (lockstep.solve(lorenz_net, x[:40], (0, 1), threads=threads) for threads in (0, 1))
    np.testing.assert_array_equal(a.end_state, b.end_state)
    fitted = [lockstep.train(x=[[0.0], [1.0]], y=[[0.0], [1.0]], hidden=[], iterations=2, threads=n).model for n in (0, 1)]
    assert fitted[0].digest == fitted[1].digest
    for call in (lambda n: lorenz_net(x, threads=n), lambda n: lockstep.solve("lorenz", [1, 0, 0], (0, 1), threads=n),
                 lambda n: lockstep.train(x=[[0.0]], y=[[0.0]], hidden=[], threads=n)):
        for number in (-1, 4097):
            with pytest.raises(lockstep.InvalidArgument, match=f"threads: found {number}"):
                call(number)


def test_results_have_names_of_hdf5(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(lockstep.InvalidArgument, match='^output: found "w.csv", expected a name that ends in .h5: results '
                                                       'are HDF5; name it w.h5$'):
        lockstep.solve("lorenz", [1, 0, 0], (0, 1), output="w.csv")
    with pytest.raises(lockstep.InvalidArgument, match='^path: found "w.npz"'):
        lockstep.solve("lorenz", [1, 0, 0], (0, 1)).save("w.npz")
    assert not list(tmp_path.iterdir())


ROWS = np.linspace(1, 3, 5)


def columns():
    """Dicts of columns, and what a solve with them is to be like that reads the same from text."""
    pandas = pytest.importorskip("pandas")
    odd = np.array([-0.0, 5e-324, 1 / 3, 1e300, np.pi])
    for one in (ROWS, ROWS.tolist(), ROWS.astype("f4"), ROWS.astype("f2"), ROWS[::-1], np.repeat(ROWS, 2)[::2],
                ROWS.astype(">f8"), odd, np.arange(5), [1, 2, 3, 4, 5], np.arange(5, dtype="u1"),
                np.full(5, 2**53 + 1), np.full(5, 2**63 - 1, "u8"), [2**62 + 1] * 5, pandas.Series(ROWS, name="v"),
                np.ma.array(ROWS), np.longdouble(1) / 3 * ROWS, ROWS.reshape(5, 1), tuple(ROWS.tolist())):
        yield {"parameters": {"rho": one, "sigma": 10.5}}
    yield {"parameters": {"rho": ROWS, "beta": {"normal": {"mean": 2, "std": 0.1}}, "sigma": ROWS[::-1]}, "seed": 3}
    yield {"parameters": {"rho": ROWS}, "u0": {"x": ROWS, "y": 0.5, "z": -ROWS}}
    yield {"u0": {"x": ROWS, "y": 0.5, "z": ROWS}, "trajectories": 3}
    # Refused:
    for bad in ([ROWS.tolist()], ROWS[:4], ROWS[:2], np.array([]), [], [1.0, True], [True, False], ROWS > 2,
                [1.0, None], ["a"], np.array(["a"]), [1.0, np.nan], np.array([1.0, np.inf]), [2**63], [2**70],
                [2**63, -1, 1, 1, 1], np.full(5, 2**63, "u8"), np.full(5, "1e400").astype("g"), ROWS.reshape(1, 5), ROWS * 1j,
                np.ma.masked_greater(ROWS, 2), [[1.0], [2.0, 3.0]], np.array(3.0)):
        yield {"parameters": {"rho": bad}, "u0": {"x": ROWS, "y": 1, "z": 1}}
    yield {"parameters": {"roh": ROWS}}
    yield {"parameters": {"uniform": ROWS}}
    yield {"parameters": {"box": ROWS}}
    yield {"parameters": {"normal": {"mean": ROWS, "std": 1}}}
    yield {"parameters": {"rho": ROWS, "dataset": ROWS}}
    yield {"parameters": {1: ROWS, "1": ROWS}}
    yield {"u0": {"x": ROWS, "y": 1}}


def test_columns_of_a_dict_are_what_their_text_is(monkeypatch):
    def outcome(arguments):
        try:
            solution = lockstep.solve("lorenz", **{"u0": [1.0, 0, 0], "t_span": (0, 0.1), "dt": 0.05,
                                                   "method": "rk4", "precision": "f64", **arguments})
        except Exception as error:
            return type(error), str(error)
        return [np.asarray(getattr(solution, name)).tobytes() for name in ("initial_state", "parameters", "end_state")]

    found = [outcome(one) for one in columns()]
    monkeypatch.setattr("lockstep._solve.column", lambda value: None)
    for arguments, one in zip(columns(), found):
        assert one == outcome(arguments), arguments


def test_long_columns_are_not_written_as_text(tmp_path):
    from lockstep import _solve

    rho = np.linspace(0, 20, 100_000)
    text, arrays, _ = _solve._written("lorenz", {"x": rho, "y": 0.0, "z": rho.tolist()}, parameters={"rho": rho})
    assert len(text) < 300 and set(arrays) == {"u0.x", "u0.z", "parameters.rho"}
    solver = lockstep.Solver("lorenz", {"x": rho[:3], "y": 0.0, "z": 1.0}, (0, 0.1), parameters={"rho": rho[:3]})
    expected = lockstep.solve("lorenz", {"x": rho[:3], "y": 0.0, "z": 1.0}, (0, 0.1), parameters={"rho": rho[:3]})
    for again in (solver, pickle.loads(pickle.dumps(solver))):
        np.testing.assert_array_equal(again().end_state, expected.end_state)
        given = again([1.0, 0, 1])
        np.testing.assert_array_equal(given.parameters[:, 1], rho[:3])
        np.testing.assert_array_equal(given.initial_state, [[1.0, 0, 1]] * 3)


@pytest.mark.parametrize("name, value, said", [
    ("rtol", "1e-5", 'found "1e-5", expected a number; write 1e-5 without quotes'),
    ("rtol", "small", 'found "small", expected a number'),
    ("rtol", True, "found True, expected a number"),
    ("dt", [0.1], "found list, expected a number"),
    ("seed", -3, "found -3, expected an integer of 0 or more, of 64 bits"),
    ("trajectories", -1, "found -1, expected an integer of 1 or more, of 64 bits"),
    ("trajectories", 2**70, f"found {2**70}, expected an integer of 1 or more, of 64 bits"),
    ("threads", 2**40, f"found {2**40}, expected a number of threads up to 4096, or 0 for all"),
    ("device", 0, "found 0, expected a name as text"),
    ("guard", 3, "found 3, expected a name as text"),
    ("engine", 1, "found 1, expected a name as text"),
    ("cpu_target", 1, "found 1, expected a name as text"),
    ("matrix_precision", 1, "found 1, expected a name as text"),
    ("overwrite", 1, "found 1, expected True or False"),
])
def test_what_overrides_a_problem_file_is_refused_by_name(tmp_path, name, value, said):
    with pytest.raises(lockstep.InvalidArgument) as caught:
        lockstep.solve(problem_file(tmp_path), **{name: value})
    assert str(caught.value) == f"{name}: {said}" and caught.value.field == name


def test_overwrite_beside_a_problem_file_may_be_none_or_of_numpy(tmp_path):
    problem, output = problem_file(tmp_path), tmp_path / "r.h5"
    lockstep.solve(problem, output=output, overwrite=None)
    with pytest.raises(lockstep.FileError):
        lockstep.solve(problem, output=output, overwrite=None)
    assert lockstep.solve(problem, output=output, overwrite=np.bool_(True)).path == output
