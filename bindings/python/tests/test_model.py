"""Nets on arrays: any strides, NumPy or DLPack, and what is refused."""

import array
import copy
import json
import pickle
import threading
import time

import numpy as np
import pytest

import lockstep


class ByDlpackAlone:
    """A tensor as PyTorch's: no buffer protocol."""

    def __init__(self, values, device=(1, 0)):
        self.values = values
        self.device = device

    def __dlpack__(self, **_):
        return self.values.__dlpack__()

    def __dlpack_device__(self):
        return self.device

    def __setitem__(self, *_):
        raise AssertionError("nobody writes by index")


@pytest.fixture(params=[np.float32, np.float64])
def samples(request):
    return np.random.default_rng(7).uniform(-1, 1, (37, 32)).astype(request.param)


def by_hand(weights, biases, x):
    """In float64, which is exact here: integers of a few bits need no rounding."""
    for i, (matrix, vector) in enumerate(zip(weights, biases)):
        x = x @ matrix.T + vector
        if i + 1 < len(weights):
            x = np.maximum(x, 0)
    return x


def test_a_net_of_small_integers_is_exact():
    random = np.random.default_rng(3)
    weights = [random.integers(-3, 4, shape).astype(float) for shape in ((5, 3), (2, 5))]
    biases = [random.integers(-3, 4, count).astype(float) for count in (5, 2)]
    net = lockstep.mlp(weights, biases, ["relu", "identity"])
    x = random.integers(-8, 9, (100, 3))
    for dtype in (np.float32, np.float64):
        np.testing.assert_array_equal(net(x.astype(dtype)), by_hand(weights, biases, x.astype(float)))


def test_dtype_and_dimensions_are_those_of_the_argument(ocean, samples):
    y = ocean(samples)
    assert y.dtype == samples.dtype and y.shape == (37, 31)
    assert ocean(samples[0]).shape == (31,)
    assert ocean(samples[:0]).shape == (0, 31)


def test_all_dimensions_but_the_last_count_samples(ocean, samples):
    grid, y = samples[:36].reshape(3, 4, 3, 32), ocean(samples[:36]).reshape(3, 4, 3, 31)
    np.testing.assert_array_equal(ocean(grid), y)
    features_first = np.ascontiguousarray(np.moveaxis(grid, -1, 0))
    np.testing.assert_array_equal(ocean(np.moveaxis(features_first, 0, -1)), y)
    np.testing.assert_array_equal(ocean(grid[:1, 1:2]), y[:1, 1:2])
    np.testing.assert_array_equal(ocean(grid[::2, :1, :1]), y[::2, :1, :1])
    np.testing.assert_array_equal(ocean(np.broadcast_to(samples[0], (2, 3, 32))), np.broadcast_to(ocean(samples[0]), (2, 3, 31)))
    assert ocean(grid[:, :0]).shape == (3, 0, 3, 31)
    out = np.full((31, 3, 4, 3), np.nan, samples.dtype)
    ocean(grid, out=np.moveaxis(out, 0, -1))
    np.testing.assert_array_equal(np.moveaxis(out, 0, -1), y)
    np.testing.assert_array_equal(ocean.jvp(grid, grid), ocean.jvp(samples[:36], samples[:36]).reshape(y.shape))
    np.testing.assert_array_equal(ocean.vjp(grid, y), ocean.vjp(samples[:36], y.reshape(36, 31)).reshape(grid.shape))
    assert ocean.jacobian(grid[0]).shape == (4, 3, 31, 32)
    for apart in (grid[:, 1:], np.broadcast_to(grid[:, :1], grid.shape), grid.swapaxes(0, 1)):
        with pytest.raises(lockstep.InvalidArgument, match="do not follow one another.*ascontiguousarray"):
            ocean(apart)
    with pytest.raises(lockstep.InvalidArgument, match=r"out: found .* expected shape \(3, 4, 3, 31\)"):
        ocean(grid, out=y.reshape(36, 31).copy())
    with pytest.raises(lockstep.InvalidArgument, match="from one dimension .* to 8"):
        ocean(samples.reshape((1,) * 7 + samples.shape))


def test_strides_change_no_bit(ocean, samples):
    y = ocean(samples)
    wide = np.repeat(np.repeat(samples, 2, axis=0), 3, axis=1)
    for same in (np.asfortranarray(samples), wide[::2, ::3], samples[::-1].copy()[::-1],
                 samples[:, ::-1].copy()[:, ::-1]):
        np.testing.assert_array_equal(ocean(same), y)
    np.testing.assert_array_equal(ocean(samples[::-1]), y[::-1])
    for i in range(len(samples)):
        np.testing.assert_array_equal(ocean(samples[i]), y[i])
    np.testing.assert_array_equal(ocean(samples, threads=2), y)


def test_out_takes_the_result_in_any_layout(ocean, samples):
    y = ocean(samples)
    out = np.full((31, 37), np.nan, samples.dtype).T
    assert ocean(samples, out=out) is out
    np.testing.assert_array_equal(out, y)
    every_other = np.zeros((74, 31), samples.dtype)
    ocean(samples, every_other[::2])
    np.testing.assert_array_equal(every_other[::2], y)
    assert not every_other[1::2].any()


def test_ports_may_be_named(ocean, samples):
    port = ocean.inputs[0]["name"]
    y = ocean(samples)
    np.testing.assert_array_equal(ocean({port: samples}), y)
    np.testing.assert_array_equal(ocean({port: ByDlpackAlone(samples[3])}), y[3])
    out = np.zeros_like(y)
    assert ocean({port: samples}, out=out) is out
    np.testing.assert_array_equal(out, y)
    for bad, words in (({}, "no key"), ({port: samples, "z": samples}, "'z'.*; leave it out"),
                       ({"z": samples}, f'found key \'z\'.*; call it "{port}"'), ({port: samples[:, 1:]}, "32 features")):
        with pytest.raises(lockstep.InvalidArgument, match=words):
            ocean(bad)


def test_several_ports_are_dicts_and_give_keras_answers(testdata):
    h5py = pytest.importorskip("h5py")
    net = lockstep.load(testdata / "keras" / "keras2_branches.keras")
    with h5py.File(testdata / "keras" / "keras2_branches.samples.h5") as file:
        values = {name: file[name][:] for name in ("pressure", "wind", "share", "flux")}
    x = {port["name"]: values[port["name"]] for port in net.inputs}
    assert list(x) == ["pressure", "wind"]
    y = net(x)
    for port in net.outputs:  # the bound is derived in lockstep/nn/keras_test.cpp
        np.testing.assert_allclose(y[port["name"]], values[port["name"]], rtol=0, atol=2e-11)
    for i in range(16):
        one = net({name: array[i] for name, array in x.items()})
        for name, array in y.items():
            np.testing.assert_array_equal(one[name], array[i])
    out = {name: np.full_like(array, np.nan) for name, array in y.items()}
    assert net(x, out=out)["flux"] is out["flux"]
    for name, array in y.items():
        np.testing.assert_array_equal(out[name], array)
    assert "operations" in repr(net) and len(net.layers) > 3
    with pytest.raises(lockstep.WrongType, match='"pressure", "wind"'):
        net(x["pressure"])
    with pytest.raises(lockstep.InvalidArgument, match='"wind"'):
        net({"pressure": x["pressure"]})
    with pytest.raises(lockstep.InvalidArgument, match="wind.*number of samples"):
        net({"pressure": x["pressure"], "wind": x["wind"][:3]})
    with pytest.raises(lockstep.InvalidArgument, match="overlaps"):
        both = np.zeros((16, 3))
        net(x, out={"share": both, "flux": both[:, :2]})
    with pytest.raises(lockstep.InvalidArgument, match="2 output ports"):
        lockstep.solve(net, [0.0, 0.0, 0.0])


def test_out_may_be_the_argument_itself_and_nothing_else_of_it(lorenz_net):
    x = np.random.default_rng(1).normal(size=(10, 3)).astype(np.float32)
    y = lorenz_net(x)
    both = np.zeros((11, 3), np.float32)
    both[:10] = x
    with pytest.raises(lockstep.InvalidArgument, match="overlaps"):
        lorenz_net(both[:10], out=both[1:])
    np.testing.assert_array_equal(both[:10], x)
    lorenz_net(both[:10], out=both[:10])
    np.testing.assert_array_equal(both[:10], y)


def test_results_each_have_a_place(lorenz_net):
    x = np.ones((10, 3), np.float32)
    for strides in ((0, 4), (12, 0), (8, 4)):
        out = np.lib.stride_tricks.as_strided(np.zeros(40, np.float32), (10, 3), strides)
        with pytest.raises(lockstep.InvalidArgument, match=f"strides {strides[0] // 4} .row.*share a place"):
            lorenz_net(x, out=out)
        assert not out.any()


def test_columns_of_one_table_may_be_read_and_written(lorenz_net):
    table = np.random.default_rng(1).normal(size=(10, 6)).astype(np.float32)
    y = lorenz_net(table[:, :3].copy())
    with pytest.raises(lockstep.InvalidArgument, match="overlaps"):
        lorenz_net(table[:, :3], out=table[:, 2:5])
    lorenz_net(table[:, :3], out=table[:, 3:])
    np.testing.assert_array_equal(table[:, 3:], y)


def test_dlpack_arrays_are_read_and_written_where_they_lie(ocean, samples):
    y = ocean(samples)
    np.testing.assert_array_equal(ocean(ByDlpackAlone(samples)), y)
    np.testing.assert_array_equal(ocean(ByDlpackAlone(samples.T.copy().T)), y)
    out = np.zeros_like(y)
    ocean(samples, out=ByDlpackAlone(out))
    np.testing.assert_array_equal(out, y)

def test_memory_that_holds_negated_numbers_is_refused(ocean, samples):
    class Negated:  # as a tensor of PyTorch whose negative bit is set
        dtype, shape = samples.dtype, samples.shape
        __dlpack__, __dlpack_device__ = samples.__dlpack__, samples.__dlpack_device__

        @staticmethod
        def is_neg():
            return True

    with pytest.raises(lockstep.WrongType, match=r"found Negated of float.. .* holds its numbers negated.*; give x.resolve_neg"):
        ocean(Negated())


def test_pytorch_tensors_give_pytorch_tensors(ocean, samples):
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(samples)
    y = ocean(tensor)
    assert isinstance(y, torch.Tensor)
    np.testing.assert_array_equal(y.numpy(), ocean(samples))
    with pytest.raises(lockstep.WrongType, match="detach"):
        ocean(tensor.clone().requires_grad_())
    with pytest.raises(lockstep.WrongType, match="float32"):
        ocean(tensor.to(torch.bfloat16))


def test_jax_arrays_give_jax_arrays(ocean, samples):
    jax = pytest.importorskip("jax")
    x = jax.numpy.asarray(samples.astype(np.float32))
    y = ocean(x)
    assert isinstance(y, jax.Array)
    np.testing.assert_array_equal(np.asarray(y), ocean(samples.astype(np.float32)))
    with pytest.raises(lockstep.WrongType, match="read-only"):
        ocean(x, out=y)


def test_buffers_that_are_no_numpy_arrays_serve(lorenz_net):
    values = [0.5, -1.0, 2.0]
    np.testing.assert_array_equal(lorenz_net(array.array("d", values)), lorenz_net(np.array(values)))


@pytest.mark.parametrize("convert, remedy", [
    (lambda x: x.astype(np.float16), "astype"),
    (lambda x: x.astype(int), "astype"),
    (lambda x: x.astype(complex), "astype"),
    (lambda x: x.astype(x.dtype.newbyteorder()), "astype"),
    (lambda x: x.astype(object), "astype|asarray"),
    (lambda x: x.tolist(), "asarray"),
    (lambda x: None, "asarray"),
    (lambda x: ByDlpackAlone(x, (10, 0)), "cpu"),
    (lambda x: ByDlpackAlone(x, (2, 0)), "cpu"),  # lies on a GPU, says one method, and on the CPU, says the other
    (lambda x: ByDlpackAlone(x.astype(np.int32)), "float32"),
    (lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape), r"x\.copy\(\)"),
])
def test_what_would_need_a_conversion_is_refused_with_the_way_to_convert(ocean, samples, convert, remedy):
    with pytest.raises(lockstep.WrongType, match=remedy) as caught:
        ocean(convert(samples))
    assert isinstance(caught.value, TypeError) and isinstance(caught.value, lockstep.Error)
    assert caught.value.field == "x" and caught.value.remedy and str(caught.value).startswith("x: found")


def test_shapes_that_do_not_fit_are_named(ocean, samples):
    for bad in (samples[:, :31], samples[0, :3], np.zeros((), samples.dtype)):
        with pytest.raises(lockstep.InvalidArgument) as caught:
            ocean(bad)
        assert isinstance(caught.value, ValueError) and caught.value.field == "x"
    for out in (np.zeros((36, 31), samples.dtype), np.zeros((37, 32), samples.dtype), np.zeros(31, samples.dtype)):
        with pytest.raises(lockstep.InvalidArgument, match="out: .*\\(37, 31\\)"):
            ocean(samples, out=out)
    other = np.float64 if samples.dtype == np.float32 else np.float32
    with pytest.raises(lockstep.WrongType, match="out: .*dtype of x"):
        ocean(samples, out=np.zeros((37, 31), other))
    read_only = np.zeros((37, 31), samples.dtype)
    read_only.flags.writeable = False
    with pytest.raises(lockstep.WrongType, match="read-only"):
        ocean(samples, out=read_only)
    with pytest.raises(lockstep.InvalidArgument, match="threads"):
        ocean(samples, threads=-1)


def test_many_threads_may_call_one_net(ocean, samples):
    y = ocean(samples)
    results = []

    def call():
        for _ in range(50):
            results.append(np.array_equal(ocean(np.tile(samples, (20, 1)))[:37], y))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 200 and all(results)


def longest_silence_over_duration(work):
    """Of another thread that notes the time as fast as it can: its longest gap during work(), over work()'s duration."""
    times, done, started = [], threading.Event(), threading.Event()

    def note():
        while not done.is_set():
            times.append(time.monotonic())
            started.set()

    thread = threading.Thread(target=note)
    thread.start()
    started.wait()
    start = time.monotonic()
    work()
    end = time.monotonic()
    done.set()
    thread.join()
    within = [start] + [t for t in times if start < t < end] + [end]
    return max(np.diff(within)) / (end - start)


def test_a_long_call_lets_other_threads_run(ocean):
    x = np.zeros((100_000, 32), np.float32)  # some 40 ms
    # With the lock kept the whole call is one gap. A busy machine may make one of any length now and then.
    assert min(longest_silence_over_duration(lambda: ocean(x)) for _ in range(5)) < 0.8


def test_files_that_are_no_models_say_why(tmp_path):
    with pytest.raises(lockstep.FileError) as caught:
        lockstep.load(tmp_path / "none.safetensors")
    assert isinstance(caught.value, OSError) and "none.safetensors" in str(caught.value)
    (tmp_path / "text.safetensors").write_text("this is no model")
    with pytest.raises(lockstep.Error):
        lockstep.load(tmp_path / "text.safetensors")


def test_activations_are_text_or_a_list_of_all_layers_or_the_hidden_ones(tmp_path):
    header = {"0.weight": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
              "1.weight": {"dtype": "F32", "shape": [1, 2], "data_offsets": [8, 16]}}
    text = json.dumps(header).encode()
    path = tmp_path / "bare.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + np.array([1, 2, 3, 4], np.float32).tobytes())
    with pytest.raises(lockstep.ModelError, match=r"one for each layer \(tanh,linear\) or one for the hidden layers \(tanh\)"):
        lockstep.load(path)
    weights = [np.array([[1.0], [2.0]]), np.array([[3.0, 4.0]])]
    x = np.array([0.3])
    expected = weights[1] @ np.maximum(weights[0] @ x, 0)
    for given in ("relu", "relu,linear", "relu, identity", ["relu"], ["relu", "linear"], ("relu", "identity")):
        assert lockstep.load(path, given)(x) == expected, given
        assert lockstep.mlp(weights, activations=given)(x) == expected, given
        training = lockstep.train(x=[0, 1], y=[0, 1], hidden=[2], activations=given, optimiser="adam", iterations=1)
        assert "relu" in repr(training.model) and "tanh" not in repr(training.model)
    assert lockstep.mlp(weights[:1], activations="square")(np.array([3.0])).tolist() == [9, 36]
    with pytest.raises(lockstep.InvalidArgument, match="^activations: found 3, expected 2, one for each layer, or one for the hidden"):
        lockstep.mlp(weights, activations="relu,relu,relu")
    for wrong in (5, ["relu", 5], {"relu": "relu"}, b"relu"):
        for call in (lambda: lockstep.load(path, wrong), lambda: lockstep.mlp(weights, activations=wrong)):
            with pytest.raises(lockstep.WrongType, match="^activations: found (int|dict|bytes), expected names: a list of them, "
                               "or a text with commas"):
                call()


def test_a_layer_without_a_bias_has_none():
    weights = [np.ones((2, 1)), np.ones((1, 2))]
    net = lockstep.mlp(weights, [None, [0.5]], "relu")
    assert net(np.array([1.0])) == 2.5
    assert net.weights.tolist() == [1, 1, 0, 0, 1, 1, 0.5]
    with pytest.raises(lockstep.InvalidArgument, match="^biases: found 1, expected 2, one for each layer"):
        lockstep.mlp(weights, [None])


def test_activations_beside_a_files_own_must_be_the_same(tmp_path, ocean):
    for name in ("net.h5", "net.safetensors"):
        ocean.save(tmp_path / name)
        assert lockstep.load(tmp_path / name, activations="relu,relu,linear").digest == ocean.digest
        with pytest.raises(lockstep.InvalidArgument, match='^activations: found "tanh,relu,identity", expected '
                           f'"relu,relu,identity", the activations that .*{name} has of its own'):
            lockstep.load(tmp_path / name, activations="tanh,relu,identity")


def test_a_saved_net_is_the_same_net(tmp_path, ocean, samples):
    for name in ("net.h5", "net.safetensors"):
        ocean.save(tmp_path / name)
        again = lockstep.load(tmp_path / name)
        assert again.digest == ocean.digest
        np.testing.assert_array_equal(again(samples), ocean(samples))
        with pytest.raises(lockstep.FileError):
            ocean.save(tmp_path / name)
        ocean.save(tmp_path / name, overwrite=True)
    with pytest.raises(lockstep.InvalidArgument, match="a name that ends in .h5, .safetensors or .onnx"):
        ocean.save(tmp_path / "net.pt")


def test_a_net_goes_to_other_tools_as_onnx(tmp_path, ocean, samples):
    try:
        ocean.save(tmp_path / "net.onnx")
    except lockstep.Unsupported as error:
        pytest.skip(str(error))
    again = lockstep.load(tmp_path / "net.onnx")
    assert again.digest == ocean.digest and "float32" in repr(again)
    np.testing.assert_array_equal(again(samples), ocean(samples))
    ocean.save(tmp_path / "net.onnx", overwrite=True, precision="f64")
    again = lockstep.load(tmp_path / "net.onnx")
    assert again.digest == ocean.digest and "float64" in repr(again)
    with pytest.raises(lockstep.FileError):
        ocean.save(tmp_path / "net.onnx")
    with pytest.raises(lockstep.InvalidArgument, match='^precision: found "half", expected "f32" or "f64"'):
        ocean.save(tmp_path / "half.onnx", precision="half")
    with pytest.raises(lockstep.InvalidArgument, match='^precision: found "f64" for "net.h5", expected it left out'):
        ocean.save(tmp_path / "net.h5", precision="f64")
    ranged = lockstep.mlp([np.eye(2)]).with_names(inputs=["a", "b"]).with_ranges(data=np.array([[0.0, 1], [2, 3]]))
    ranged.save(tmp_path / "ranged.onnx")
    assert lockstep.load(tmp_path / "ranged.onnx").inputs == ranged.inputs
    system = lockstep.equations({"x": "-k * drag(x, x)[0]"}, parameters={"k": 0.5}, models={"drag": ranged})
    system.save(tmp_path / "system.onnx")
    again = lockstep.load(tmp_path / "system.onnx")
    assert (again.digest, again.calls, again.metadata) == (system.digest, system.calls, system.metadata)


def test_a_net_describes_itself(ocean):
    assert repr(ocean).startswith("<lockstep.Model ocean_relu_32_128_128_31: 32-128-128-31 relu, 24735 parameters")
    assert ocean.parameter_count == 32 * 128 + 128 + 128 * 128 + 128 + 128 * 31 + 31
    assert [len(port["features"]) for port in ocean.inputs + ocean.outputs] == [32, 31]


def test_layers_that_do_not_fit_together_are_refused():
    with pytest.raises(lockstep.ModelError):
        lockstep.mlp([np.ones((4, 3)), np.ones((2, 5))])
    with pytest.raises(lockstep.InvalidArgument, match="biases"):
        lockstep.mlp([np.ones((4, 3))], [])
    with pytest.raises(lockstep.InvalidArgument, match=r"activations\[0\]"):
        lockstep.mlp([np.ones((4, 3))], activations=["tanhh"])


def test_nets_travel_between_processes(lorenz_net, testdata):
    x = np.random.default_rng(3).normal(size=(5, 3))
    for copied in (pickle.loads(pickle.dumps(lorenz_net)), copy.deepcopy(lorenz_net)):
        np.testing.assert_array_equal(copied(x), lorenz_net(x))
        assert copied.digest == lorenz_net.digest and copied.name == lorenz_net.name
    graph = lockstep.equations({"x": "-k * x + net(x, x, x)[0]"}, parameters={"k": 2}, models={"net": lorenz_net})
    assert pickle.loads(pickle.dumps(graph)).digest == graph.digest
    again = lockstep.solve(pickle.loads(pickle.dumps(graph)), [1], (0, 1))  # with the parameter's default
    np.testing.assert_array_equal(again.end_state, lockstep.solve(graph, [1], (0, 1)).end_state)


def test_names_of_damaged_files_need_not_be_text(tmp_path):
    tensor = b"\x10\x63\x42\x01\xff"  # of type 99, its name the byte 255
    file = tmp_path / "net.onnx"
    file.write_bytes(b"\x3a\x07\x2a\x05" + tensor + b"\x42\x02\x10\x11")
    with pytest.raises((lockstep.ModelError, lockstep.Unsupported)) as caught:  # the latter where ONNX is not read
        lockstep.load(file)
    assert "net.onnx" in caught.value.field


def test_labels_that_a_file_has_beside_its_probabilities_are_warned_of(testdata):
    path = testdata / "exported" / "sklearn_classifier.onnx"
    with pytest.warns(UserWarning, match=r'sklearn_classifier.onnx is read without output "label" \(string\)') as warned:
        net = lockstep.load(path)
    assert warned[0].filename == __file__
    assert [port["name"] for port in net.outputs] == ["probabilities"]
    assert len(net.left_out) == 1 and net.left_out[0].startswith('output "label" (string): ')
    assert net(np.zeros(3)).sum() == pytest.approx(1)
    assert lockstep.load(testdata / "exported" / "sklearn_mlp.onnx").left_out == []


def test_a_model_without_weights_is_described_without_their_type():
    assert "no weights" in repr(lockstep.equations({"x": "-x"}))
    assert "float" not in repr(lockstep.equations({"x": "-x"}))


def test_as_many_parameters_are_told_as_there_are_weights():
    net = lockstep.mlp([np.ones((4, 2)), np.ones((2, 4))], [np.zeros(4), np.zeros(2)], "tanh")
    assert len(net.weights) == net.parameter_count == 22
    assert repr(net).startswith("<lockstep.Model net: 2-4-2 tanh, 22 parameters, float64\n")
    twice = lockstep.equations({"x": "net(x, v)[0]", "v": "net(x, v)[1] + net(v, x)[0]"}, models={"net": net})
    assert len(twice.weights) == 44 and ", 44 weights, float64\n" in repr(twice)


def test_an_unaligned_array_is_told_to_be_copied():
    net = lockstep.mlp([np.ones((1, 2))])
    unaligned = np.frombuffer(bytes(3) + np.ones((4, 2)).tobytes(), np.uint8)[3:].view(np.float64).reshape(4, 2)
    with pytest.raises(lockstep.WrongType, match=r"multiples of their size, expected aligned ones; copy it: x\.copy\(\)"):
        net(unaligned)
    np.testing.assert_array_equal(net(unaligned.copy()), np.full((4, 1), 2.0))
