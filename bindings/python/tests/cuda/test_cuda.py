"""Nets on arrays that lie on a GPU, over a component whose device is the host: LOCKSTEP_CUDA_LIBRARY names it."""

import ctypes
import os
import subprocess
import sys
import types

import numpy as np
import pytest

import lockstep

if "simulated" not in os.environ.get("LOCKSTEP_CUDA_LIBRARY", ""):
    pytest.skip("these arrays must not reach a card", allow_module_level=True)

CPU, CUDA = 1, 2
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class DLTensor(ctypes.Structure):
    """The head of DLPack's DLManagedTensor."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


def tensor_of(capsule):
    return DLTensor.from_address(pointer_of(capsule, b"dltensor"))


class OnCuda:
    """A NumPy array that says it lies on a GPU, and notes the streams it is asked for."""

    def __init__(self, values, device=0):
        self.values, self.device, self.streams = values, device, []
        self.dtype, self.shape = values.dtype, values.shape

    def __dlpack_device__(self):
        return (CUDA, self.device)

    def __dlpack__(self, *, stream):
        self.streams.append(stream)
        capsule = self.values.__dlpack__()
        tensor_of(capsule).device_type, tensor_of(capsule).device_id = CUDA, self.device
        return capsule


class OnHost:
    """What lies on the simulated device, for NumPy."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return (CPU, 0)

    def __dlpack__(self, **_):
        capsule = self.array.__dlpack__(stream=1)
        tensor = tensor_of(capsule)
        assert (tensor.device_type, tensor.device_id) == self.array.__dlpack_device__() == (CUDA, 0)
        tensor.device_type = CPU
        return capsule


def to_numpy(array):
    return np.from_dlpack(OnHost(array))


@pytest.fixture(params=[np.float32, np.float64])
def samples(request):
    return np.random.default_rng(7).uniform(-1, 1, (37, 32)).astype(request.param)


def test_results_lie_on_the_device_and_have_the_bits_of_the_cpu(ocean, samples):
    holders = sys.getrefcount(samples)
    y = ocean(OnCuda(samples))
    assert sys.getrefcount(samples) == holders  # nothing of the argument is kept
    assert isinstance(y, lockstep.DeviceArray) and y.dtype == samples.dtype.name and y.shape == (37, 31)
    assert repr(y) == f"<lockstep.DeviceArray on cuda:0: {samples.dtype.name} (37, 31)>"
    np.testing.assert_array_equal(to_numpy(y), ocean(samples))
    one = ocean(OnCuda(samples[3]))
    assert one.shape == (31,)
    np.testing.assert_array_equal(to_numpy(one), ocean(samples[3]))
    assert ocean(OnCuda(samples[:0])).shape == (0, 31)


def test_strides_are_taken_as_they_are(ocean, samples):
    y = ocean(samples)
    wide = np.repeat(np.repeat(samples, 2, axis=0), 3, axis=1)
    for same in (np.asfortranarray(samples), wide[::2, ::3]):
        np.testing.assert_array_equal(to_numpy(ocean(OnCuda(same))), y)
    out = np.full((31, 74), np.nan, samples.dtype).T
    given = OnCuda(out[::2])
    assert ocean(OnCuda(samples), out=given) is given
    np.testing.assert_array_equal(out[::2], y)
    assert np.isnan(out[1::2]).all()


def test_a_result_outlives_its_array_and_is_an_argument_again(lorenz_net):
    x = np.random.default_rng(1).normal(size=(10, 3)).astype(np.float32)
    y = to_numpy(lorenz_net(lorenz_net(OnCuda(x))))
    np.testing.assert_array_equal(y, lorenz_net(lorenz_net(x)))
    others = [lorenz_net(OnCuda(x)) for _ in range(20)]  # would take memory that was given back too early
    np.testing.assert_array_equal(y, lorenz_net(lorenz_net(x)))
    again = lorenz_net(OnCuda(x), out=others[0])
    assert again is others[0]
    with pytest.raises(BufferError):
        again.__dlpack__(copy=True)
    with pytest.raises(BufferError):
        again.__dlpack__(dl_device=(CPU, 0))
    assert again.__dlpack__(dl_device=(CUDA, 0), max_version=(1, 0), copy=False)


def test_several_ports_go_in_and_out_as_dicts(testdata):
    net = lockstep.load(testdata / "keras" / "keras2_branches.keras")
    random = np.random.default_rng(2)
    x = {port["name"]: random.normal(size=(16, len(port["features"]))) for port in net.inputs}
    expected = net(x)
    y = net({name: OnCuda(values) for name, values in x.items()})
    assert list(y) == list(expected) == ["share", "flux"]
    out = {name: OnCuda(np.full_like(values, np.nan)) for name, values in expected.items()}
    assert net({name: OnCuda(values) for name, values in x.items()}, out=out) is out
    for name, values in expected.items():
        np.testing.assert_array_equal(to_numpy(y[name]), values)
        np.testing.assert_array_equal(out[name].values, values)
    with pytest.raises(lockstep.WrongType, match="wind.*CPU's memory.*cuda:0"):
        net({"pressure": OnCuda(x["pressure"]), "wind": x["wind"]})
    with pytest.raises(lockstep.WrongType, match="wind.*a CUDA device.*CPU's memory"):
        net({"pressure": x["pressure"], "wind": OnCuda(x["wind"])})
    with pytest.raises(lockstep.InvalidArgument, match="overlaps"):
        both = np.zeros((16, 3))
        net({name: OnCuda(values) for name, values in x.items()},
            out={"share": OnCuda(both), "flux": OnCuda(both[:, :2])})


def test_derivatives_lie_on_the_device_and_have_the_bits_of_the_cpu(ocean, lorenz_net, samples):
    v = np.random.default_rng(8).normal(size=samples.shape).astype(samples.dtype)
    w = np.random.default_rng(9).normal(size=(37, 31)).astype(samples.dtype)
    for _ in range(2):  # compiled, and found again
        y_dot, x_bar = ocean.jvp(OnCuda(samples), OnCuda(v)), ocean.vjp(OnCuda(samples), OnCuda(w))
        assert isinstance(y_dot, lockstep.DeviceArray) and y_dot.shape == (37, 31) and x_bar.shape == (37, 32)
        np.testing.assert_array_equal(to_numpy(y_dot), ocean.jvp(samples, v))
        np.testing.assert_array_equal(to_numpy(x_bar), ocean.vjp(samples, w))
    state = samples[:, :3].copy()
    whole = lorenz_net.jacobian(OnCuda(state))
    assert whole.shape == (37, 3, 3) and lorenz_net.jacobian(OnCuda(state[0])).shape == (3, 3)
    np.testing.assert_array_equal(to_numpy(whole), lorenz_net.jacobian(state))
    made = lorenz_net.derivative("jacobian")(OnCuda(state))
    np.testing.assert_array_equal(to_numpy(made["jacobian"]), lorenz_net.jacobian(state).reshape(37, 9))
    with pytest.raises(lockstep.WrongType, match="v: .*CPU's memory.*cuda:0"):
        ocean.jvp(OnCuda(samples), v)


def test_arrays_of_unknown_libraries_are_asked_for_with_the_legacy_default_stream(ocean, samples):
    x, out = OnCuda(samples), OnCuda(np.zeros((37, 31), samples.dtype))
    ocean(x, out=out)
    assert x.streams == out.streams == [1]


def library(monkeypatch, name, stream):
    """A module of that name whose current stream has that handle, and an array type of it."""
    asked = []
    module = types.ModuleType(name)
    taken = type("Array", (OnCuda,), {"__module__": name})

    def from_dlpack(array):
        asked.append(array.__dlpack_device__())
        return taken(to_numpy(array))

    class Device:
        def __init__(self, device):
            asked.append(device)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    module.from_dlpack = from_dlpack
    module.dlpack = types.SimpleNamespace(from_dlpack=from_dlpack)
    module.cuda = types.SimpleNamespace(
        Device=Device, get_current_stream=lambda: types.SimpleNamespace(ptr=stream),
        current_stream=lambda device: asked.append(device) or types.SimpleNamespace(cuda_stream=stream))
    monkeypatch.setitem(sys.modules, name, module)
    return taken, asked


@pytest.mark.parametrize("name", ["torch", "cupy"])
@pytest.mark.parametrize("stream, named", [(0, 1), (1234, 1234)])
def test_the_current_stream_of_pytorch_and_cupy_is_used_and_results_are_theirs(monkeypatch, ocean, samples, name,
                                                                                stream, named):
    array_type, asked = library(monkeypatch, name, stream)
    x, out = array_type(samples), array_type(np.zeros((37, 31), samples.dtype))
    y = ocean(x)
    assert type(y) is array_type and asked == [0, (CUDA, 0)]
    assert ocean(x, out=out) is out
    assert x.streams == [named, named] and out.streams == [named]
    for array in (y, out):
        np.testing.assert_array_equal(array.values, ocean(samples))


def test_the_first_array_decides_whose_stream_and_whose_results_they_are(monkeypatch, testdata):
    net = lockstep.load(testdata / "keras" / "keras2_branches.keras")
    values = [np.zeros((4, len(port["features"]))) for port in net.inputs]
    torch_type, _ = library(monkeypatch, "torch", 5)
    cupy_type, _ = library(monkeypatch, "cupy", 6)
    x = {"pressure": torch_type(values[0]), "wind": cupy_type(values[1])}
    assert {type(y) for y in net(x).values()} == {torch_type}
    assert x["pressure"].streams == x["wind"].streams == [5]


def test_jax_arrays_give_jax_arrays_and_are_never_written(monkeypatch, ocean, samples):
    array_type, _ = library(monkeypatch, "jax", 0)
    array_type.__setitem__ = lambda *_: None  # jax.Array has one, which raises
    y = ocean(array_type(samples))
    assert type(y) is array_type
    np.testing.assert_array_equal(y.values, ocean(samples))
    with pytest.raises(lockstep.WrongType, match="read-only"):
        ocean(OnCuda(samples), out=array_type(np.zeros((37, 31), samples.dtype)))


def test_a_type_with_the_buffer_protocol_may_lie_on_a_device(ocean, samples):
    class Dates(np.ndarray):  # whose buffers nobody gets, as a jax.Array's on a GPU
        def __dlpack_device__(self):
            return (CUDA, 0)

        def __dlpack__(self, *, stream):
            return OnCuda(samples).__dlpack__(stream=stream)

    y = ocean(np.zeros(1, "datetime64[s]").view(Dates))
    np.testing.assert_array_equal(to_numpy(y), ocean(samples))


def test_out_may_be_the_argument_itself_and_nothing_else_of_it(lorenz_net):
    x = np.random.default_rng(1).normal(size=(10, 3)).astype(np.float32)
    y = lorenz_net(x)
    both = np.zeros((11, 3), np.float32)
    both[:10] = x
    with pytest.raises(lockstep.InvalidArgument, match="overlaps"):
        lorenz_net(OnCuda(both[:10]), out=OnCuda(both[1:]))
    lorenz_net(OnCuda(both[:10]), out=OnCuda(both[:10]))
    np.testing.assert_array_equal(both[:10], y)


def test_what_does_not_fit_is_refused_with_what_to_do(ocean, samples):
    x = OnCuda(samples)
    other = np.float64 if samples.dtype == np.float32 else np.float32
    for out, words in ((np.zeros((37, 31), samples.dtype), "CPU's memory.*one on cuda:0.*copy it there"),
                       (OnCuda(np.zeros((37, 31), samples.dtype), 1), "cuda:1.*one on cuda:0.*copy it there"),
                       (OnCuda(np.zeros((37, 31), other)), "dtype of x")):
        with pytest.raises(lockstep.WrongType, match=f"out: .*{words}"):
            ocean(x, out=out)
    with pytest.raises(lockstep.WrongType, match="out: .*a CUDA device.*cpu"):
        ocean(samples, out=OnCuda(np.zeros((37, 31), samples.dtype)))
    with pytest.raises(lockstep.InvalidArgument, match="out: .*\\(37, 31\\)"):
        ocean(x, out=OnCuda(np.zeros((36, 31), samples.dtype)))
    with pytest.raises(lockstep.InvalidArgument, match="x: .*32 features"):
        ocean(OnCuda(samples[:, 1:]))
    with pytest.raises(lockstep.WrongType, match="x: .*float32 or float64"):
        ocean(OnCuda(samples.astype(np.int32)))
    with pytest.raises(lockstep.WrongType, match="v: .*a CUDA device.*cpu"):
        ocean.jvp(samples, x)
    with pytest.raises(lockstep.Unsupported, match="cuda:1: found no such device among 1.*cpu"):
        ocean(OnCuda(samples, 1))


def test_without_a_component_it_says_what_is_missing(testdata):
    program = f"""
import sys
sys.path[:0] = [{os.path.dirname(__file__)!r}]
import numpy, lockstep, test_cuda
try:
    net = lockstep.load({os.fspath(testdata / 'lorenz_tanh_3_100_3.safetensors')!r})
    net(test_cuda.OnCuda(numpy.zeros((1, 3), numpy.float32)))
except lockstep.Unsupported as error:
    print(error, error.remedy)
"""
    environment = dict(os.environ, LOCKSTEP_CUDA_LIBRARY="/nowhere/simulated.so")
    said = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert "this installation has no CUDA component" in said.stdout
    assert "install the CUDA component, or evaluate on the CPU" in said.stdout and "x.cpu()" in said.stdout
