"""Products with nets' Jacobians: each other's transposes, the limit of differences, by port, by framework."""

import numpy as np
import pytest

import lockstep


def random_arrays(ports, samples, dtype, seed):
    random = np.random.default_rng(seed)
    return {port["name"]: random.uniform(-1, 1, (samples, len(port["features"]))).astype(dtype) for port in ports}


def as_dict(result, ports):
    return result if isinstance(result, dict) else {ports[0]["name"]: result}


def inner(a, b):
    return sum(float(np.sum(a[name] * b[name])) for name in a)


@pytest.fixture(params=["lorenz_tanh_3_100_3.safetensors", "exported/graph_residual_opset13.onnx",
                        "exported/graph_normalised_opset17.onnx", "exported/graph_ports_dynamo.onnx"])
def net(request, testdata):
    return lockstep.load(testdata / request.param)


# Both sides are sums of some hundred products, each of some hundred rounded operations.
def test_jvp_and_vjp_are_transposes(net):
    x, v = (random_arrays(net.inputs, 33, np.float64, seed) for seed in (1, 2))
    w = random_arrays(net.outputs, 33, np.float64, 3)
    y_dot, x_bar = as_dict(net.jvp(x, v), net.outputs), as_dict(net.vjp(x, w), net.inputs)
    assert inner(w, y_dot) == pytest.approx(inner(v, x_bar), rel=1e-12, abs=1e-12)
    assert abs(inner(w, y_dot)) > 1e-3


# A central difference with h = 1e-6 is off by h^2 times third derivatives and by 2^-53 / h: some 1e-9.
def test_jvp_is_the_limit_of_differences(net):
    x, v = (random_arrays(net.inputs, 5, np.float64, seed) for seed in (4, 5))
    ahead, behind = (as_dict(net({name: x[name] + h * v[name] for name in x}), net.outputs) for h in (1e-6, -1e-6))
    for name, y_dot in as_dict(net.jvp(x, v), net.outputs).items():
        np.testing.assert_allclose(y_dot, (ahead[name] - behind[name]) / 2e-6, atol=1e-7, rtol=1e-7)


def blocks(net, x, samples):
    """J as net.jacobian() has it, by output and input port, made of a jvp for each input or a vjp for each output."""
    shapes = [sum(len(port["features"]) for port in ports) for ports in (net.inputs, net.outputs)]
    result = {o["name"]: {i["name"]: np.empty((samples, len(o["features"]), len(i["features"])), x[i["name"]].dtype)
                          for i in net.inputs} for o in net.outputs}
    forward = shapes[0] <= shapes[1]
    seeded = net.inputs if forward else net.outputs
    for port in seeded:
        for k in range(len(port["features"])):
            unit = {p["name"]: np.zeros((samples, len(p["features"])), x[net.inputs[0]["name"]].dtype) for p in seeded}
            unit[port["name"]][:, k] = 1
            if forward:
                for name, made in as_dict(net.jvp(x, unit), net.outputs).items():
                    result[name][port["name"]][:, :, k] = made
            else:
                for name, made in as_dict(net.vjp(x, unit), net.inputs).items():
                    result[port["name"]][name][:, k, :] = made
    return result


@pytest.mark.parametrize("samples", [1, 2, 31, 32, 33, 97])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_jacobian_is_made_of_products_to_the_bit(net, samples, dtype):
    x = random_arrays(net.inputs, samples, dtype, 7)
    found = net.jacobian(x)
    if len(net.outputs) == 1:
        found = {net.outputs[0]["name"]: found}
    for output, by_input in blocks(net, x, samples).items():
        for name, expected in by_input.items():
            assert found[output][name].dtype == dtype
            np.testing.assert_array_equal(found[output][name], expected)


def test_jacobian_has_the_shape_and_library_of_what_it_is_given(ocean, lorenz_net):
    x = np.random.default_rng(8).uniform(-1, 1, (9, 32)).astype(np.float32)
    whole = ocean.jacobian(x)
    assert whole.shape == (9, 31, 32) and whole.dtype == np.float32
    np.testing.assert_array_equal(ocean.jacobian(x[4]), whole[4])
    np.testing.assert_array_equal(ocean.jacobian(np.asfortranarray(x)), whole)
    np.testing.assert_array_equal(ocean.jacobian(x[::-2]), whole[::-2])
    assert ocean.jacobian(x[:0]).shape == (0, 31, 32)
    y = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(lorenz_net.jacobian(y), lorenz_net.jvp(np.tile(y, (3, 1)), np.eye(3)).T)
    with pytest.raises(lockstep.Error, match="x: found .*expected 32 features"):
        ocean.jacobian(x[:, 1:])
    with pytest.raises(lockstep.Error, match="argument that jacobian\\(\\) does not take"):
        ocean.jacobian(x, y=1)


def test_one_sample_strides_and_dtype_change_no_bit(ocean):
    random = np.random.default_rng(6)
    x, v = random.uniform(-1, 1, (2, 9, 32)).astype(np.float32)
    y_dot = ocean.jvp(x, v)
    assert y_dot.dtype == np.float32 and y_dot.shape == (9, 31)
    np.testing.assert_array_equal(ocean.jvp(np.asfortranarray(x), v[::-1].copy()[::-1]), y_dot)
    np.testing.assert_array_equal(ocean.jvp(x[4], v[4]), y_dot[4])
    assert ocean.vjp(x[4], y_dot[4]).shape == (32,)


def test_what_does_not_fit_is_named(ocean, testdata):
    x = np.zeros((4, 32))
    with pytest.raises(lockstep.Error, match="v: found .*expected 32 features"):
        ocean.jvp(x, np.zeros((4, 31)))
    with pytest.raises(lockstep.Error, match="w: found .*number of samples of x"):
        ocean.vjp(x, np.zeros((3, 31)))
    with pytest.raises(lockstep.Error, match="v: found .*dtype"):
        ocean.jvp(x, np.zeros((4, 32), np.float32))
    ports = lockstep.load(testdata / "exported/graph_ports_dynamo.onnx")
    x = random_arrays(ports.inputs, 4, np.float64, 1)
    with pytest.raises(TypeError, match="w: found .*a dict of arrays by output port"):
        ports.vjp(x, np.zeros((4, 4)))


def test_the_published_net_has_the_bits_of_the_tool(testdata, tmp_path):
    h5py = pytest.importorskip("h5py")
    path = testdata / "exported/graph_qlknn_7_11.onnx"
    with h5py.File(testdata / "exported/graph_qlknn_7_11.graph.h5") as file:
        x = file["inputs/input"][:].astype(np.float32)
    net = lockstep.load(path)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file[net.inputs[0]["name"]] = x
    assert lockstep._lockstep.run_tool(["lockstep", "evaluate", str(path), "--input", str(tmp_path / "x.h5"),
                                        "--output", str(tmp_path / "y.h5")]) == 0
    y = net(x)
    assert len(y) == 8
    with h5py.File(tmp_path / "y.h5") as file:
        for name, values in y.items():
            np.testing.assert_array_equal(values, file[name][:])


def test_a_derivative_is_a_model_again(ocean, lorenz_net, tmp_path):
    x, v, w = (np.random.default_rng(i).standard_normal((5, n)).astype(np.float32) for i, n in ((0, 32), (1, 32), (2, 31)))
    forward, reverse = ocean.derivative("jvp"), ocean.derivative("vjp")
    assert [port["name"] for port in forward.inputs] == ["x", "x_dot"]
    np.testing.assert_array_equal(forward({"x": x, "x_dot": v})["y_dot"], ocean.jvp(x, v))
    np.testing.assert_array_equal(reverse({"x": x, "y_bar": w})["x_bar"], ocean.vjp(x, w))
    y = np.random.default_rng(3).standard_normal((4, 3))
    made = lorenz_net.derivative("jacobian")(y)
    np.testing.assert_array_equal(made["y"], lorenz_net(y))
    np.testing.assert_array_equal(made["jacobian"].reshape(4, 3, 3), lorenz_net.jacobian(y))
    reverse.save(tmp_path / "vjp.h5")
    assert lockstep.load(tmp_path / "vjp.h5").digest == reverse.digest
    with pytest.raises(lockstep.Error, match="kind: found \"hessian\", expected \"jvp\", \"vjp\" or \"jacobian\""):
        ocean.derivative("hessian")
    with pytest.raises(lockstep.Unsupported, match="a derivative already"):
        forward.derivative("jvp")


def test_a_net_within_a_loss_of_pytorchs_has_its_gradients(lorenz_net):
    torch = pytest.importorskip("torch")

    class Closure(torch.autograd.Function):  # docs/python.md
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return lorenz_net(x.detach())

        @staticmethod
        def backward(ctx, w):
            return lorenz_net.vjp(ctx.saved_tensors[0].detach(), w)

    x = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    assert torch.autograd.gradcheck(Closure.apply, (x,))
