"""Names and training ranges for nets that other tools trained."""

import numpy as np
import pytest

import lockstep


def bounds(net):
    return [(feature["minimum"], feature["maximum"]) for port in net.inputs for feature in port["features"]]


@pytest.fixture
def net():
    return lockstep.mlp([np.array([[0.0, 1.0], [-1.0, 0.0]])], activations=["identity"])


@pytest.fixture
def ports():
    """Two input ports: u of x and v, p of k."""
    return lockstep.equations({"x": "v", "v": "-k * x"}, parameters={"k": 1})


def test_ranges_are_given_as_arrays_by_name_or_from_data(net):
    expected = [(-1.0, 3.0), (0.5, 2.0)]
    data = np.array([[-1.0, 0.5], [3.0, 2.0], [0.25, np.nan]])
    named = net.with_names(inputs=["x", "v"])
    for ranged in (net.with_ranges([-1, 0.5], [3, 2]), net.with_ranges({"x": ([-1, 0.5], [3, 2])}),
                   named.with_ranges({"x": (-1, 3), "v": (0.5, 2)}), named.with_ranges({"x": ([-1, 0.5], [3, 2])}),
                   net.with_ranges(data=data), net.with_ranges(data=data.reshape(1, 3, 2)),
                   net.with_ranges(data={"x": data.astype(np.float32)})):
        assert bounds(ranged) == expected
        assert ranged.digest == net.digest
        np.testing.assert_array_equal(ranged(data), net(data))
    assert bounds(net.with_ranges(-np.inf, 5)) == [(-np.inf, 5), (-np.inf, 5)]
    assert bounds(net) == [(-np.inf, np.inf)] * 2


def test_columns_of_a_frame_are_taken_by_name(net):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"t": [0, 1], "v": [0.5, 2.0], "x": [-1.0, 3.0]})
    assert bounds(net.with_names(inputs=["x", "v"]).with_ranges(data=frame)) == [(-1, 3), (0.5, 2)]
    with pytest.raises(lockstep.InvalidArgument, match="found columns t, v, x, expected the net's inputs x, q"):
        net.with_names(inputs=["x", "q"]).with_ranges(data=frame)


def test_several_ports_have_ranges_of_their_own(ports):
    ranged = ports.with_ranges({"u": ([-1, -2], 3), "k": (0, 2)})
    assert bounds(ranged) == [(-1, 3), (-2, 3), (0, 2)]
    assert bounds(ranged.with_ranges({"p": (1, 2)})) == [(-1, 3), (-2, 3), (1, 2)]
    assert bounds(ports.with_ranges(data={"u": [[0, 1], [2, 3]], "p": [[4], [5]]})) == [(0, 2), (1, 3), (4, 5)]
    assert ports.with_names(inputs={"u": ["a", "b"]}).inputs[1]["features"][0]["name"] == "k"


@pytest.mark.parametrize("ending", ["h5", "safetensors"])
def test_files_keep_ranges_and_guards_act_on_them(net, ending, tmp_path):
    with pytest.raises(lockstep.InvalidArgument, match=r"net.with_ranges\(data=x\)"):
        lockstep.solve(net, [1.0, 0.0], (0, 3), 31, guard="stop")
    ranged = net.with_names(inputs=["x", "v"], outputs=["dx", "dv"]).with_ranges([-0.5, -2], [2, 2])
    ranged.save(tmp_path / f"net.{ending}")
    kept = lockstep.load(tmp_path / f"net.{ending}")
    assert kept.inputs == ranged.inputs and kept.outputs == ranged.outputs
    solution = lockstep.solve(kept, [1.0, 0.0], (0, 3), 31, guard="stop")
    assert list(solution.status) == [5] and solution["x"][0, 0] == 1
    called = lockstep.equations({"x": "v", "v": "f(x, v).dv"}, models={"f": kept})
    assert list(lockstep.solve(called, [1.0, 0.0], (0, 3), 31, guard="stop").status) == [5]


def test_what_is_no_range_is_refused(net, ports):
    for message, arguments, keywords in [
            ("minimum: found nothing, expected one of", (), {}),
            ("minimum: found one of minimum and maximum", ([0, 0],), {}),
            ("data: found data beside a minimum", ([0, 0],), {"data": [[1, 2]]}),
            ("maximum: found a value beside a dict", ({"x": (0, 1)}, 1), {}),
            (r"minimum: found shape \(3,\), expected \(2,\)", ([0, 0, 0], [1, 1, 1]), {}),
            ("minimum: found NaN", ([0, np.nan], [1, 1]), {}),
            ("minimum: found a range of 'q', expected names of input ports or features: x", ({"q": (0, 1)},), {}),
            (r"minimum\['x'\]: found 1, expected a pair", ({"x": 1},), {}),
            (r"data: found shape \(1, 3\), expected \[sample, input\] with 2", (), {"data": [[1, 2, 3]]}),
            ("data: found infinity", (), {"data": [[1, np.inf]]}),
            ("data: found no number of input 1", (), {"data": [[1, np.nan]]})]:
        with pytest.raises(lockstep.InvalidArgument, match=message):
            net.with_ranges(*arguments, **keywords)
    with pytest.raises(lockstep.ModelError, match="a range from 1 to 0"):
        net.with_ranges([1, 0], [0, 1])
    with pytest.raises(lockstep.InvalidArgument, match="data: found ndarray, expected a dict of arrays by input port: u, p"):
        ports.with_ranges(data=np.ones((2, 3)))
    with pytest.raises(lockstep.InvalidArgument, match="nothing for port 'p'"):
        ports.with_ranges(data={"u": np.ones((2, 2))})
    for message, names in [("3 names, expected 2", ["a", "b", "c"]), ("'a' twice", ["a", "a"]), ("expected texts", [1, 2]),
                           ("port 'q', expected the ports x", {"q": ["a", "b"]})]:
        with pytest.raises(lockstep.InvalidArgument, match=message):
            net.with_names(inputs=names)


class WithGradient:
    """An array that refuses as a tensor of PyTorch with requires_grad does."""

    def __array__(self, *_, **__):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")


def test_weights_that_are_no_numbers_are_refused(net):
    for number in (np.nan, np.inf):
        with pytest.raises(lockstep.InvalidArgument, match=r"weights\[1\]: found (nan|inf), expected finite numbers"):
            net.with_weights(np.where(np.arange(6) == 1, number, net.weights))
    with pytest.raises(lockstep.WrongType, match=r"weights\[0\]: .*detach"):
        lockstep.mlp([WithGradient()])
    with pytest.raises(lockstep.WrongType, match=r"biases\[0\]: .*detach"):
        lockstep.mlp([np.eye(2)], [WithGradient()])
