"""Arguments that are taken for something else elsewhere: what they are answered with."""

from pathlib import Path

import numpy as np
import pytest

import lockstep


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
