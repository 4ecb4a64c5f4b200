"""The bridges to PyTorch, JAX, scikit-learn and SciPy that docs/python.md and docs/bringing_a_net.md show, run as they
stand there: nets that come over with their own answers, gradients as central differences of the loss give them.

    python documented_bridges_test.py TOOL DOCS PACKAGE      DOCS: the folder docs; PACKAGE: that of the Python package; in
                                                             the environment that scripts/exporter_environment.sh makes
"""
import functools
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")
import numpy as np
import torch

TOOL, DOCS, PACKAGE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
sys.path.insert(0, str(PACKAGE))
import documented
import lockstep


block, run = functools.partial(documented.block, DOCS), functools.partial(documented.run, DOCS)


class Nets(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="lockstep-bridges-")
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def arrives(self, name):
        """Read, and with the answers in samples.h5, which it does not have with others."""
        done = subprocess.run([TOOL, "import", name, "-o", "net.h5", "--check", "samples.h5"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        import h5py
        with h5py.File("samples.h5", "r+") as file:
            file["output"][3] *= 1.01
        done = subprocess.run([TOOL, "import", name, "-o", "other.h5", "--check", "samples.h5"], capture_output=True)
        self.assertEqual(done.returncode, 1)

    def torch_net(self):
        torch.manual_seed(3)
        return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 8), torch.nn.Tanh(),
                                   torch.nn.Linear(8, 3))

    def samples(self, net):
        run("bringing_a_net.md", 'h5py.File("samples.h5"', torch=torch, net=net)

    def test_pytorch_by_its_weights(self):
        net = self.torch_net()
        run("bringing_a_net.md", "from safetensors.torch import save_file", net=net)
        self.samples(net)
        self.arrives("net.safetensors")

    def test_pytorch_with_ranges_and_a_normalisation(self):
        net, x = self.torch_net(), torch.randn(50, 3, generator=torch.Generator().manual_seed(5))
        mean, stddev = x.mean(0), x.std(0)
        lines = block("bringing_a_net.md", "from safetensors.torch import save_file").splitlines()
        save = next(i for i, line in enumerate(lines) if line.startswith("save_file("))
        text = "\n".join(lines[:save] + ['state |= {"mean": mean, "stddev": stddev}',
                                         block("bringing_a_net.md", '"input_min"')] + lines[save:])
        exec(text, {"net": net, "x_train": x, "mean": mean, "stddev": stddev})
        self.samples(lambda given: net((given - mean) / stddev))
        self.arrives("net.safetensors")
        features = lockstep.load("net.safetensors").inputs[0]["features"]
        self.assertEqual([feature["minimum"] for feature in features], x.amin(0).tolist())
        self.assertEqual([feature["maximum"] for feature in features], x.amax(0).tolist())

    def test_pytorch_by_its_graph(self):
        net = self.torch_net()
        run("bringing_a_net.md", "torch.onnx.export", torch=torch, net=net)
        self.samples(net)
        self.arrives("net.onnx")

    def test_jax_by_plain_arrays(self):
        import jax
        random = np.random.default_rng(4)
        layers = [types.SimpleNamespace(weight=jax.numpy.asarray(random.normal(size=size).astype(np.float32).T),
                                        bias=jax.numpy.asarray(random.normal(size=size[1]).astype(np.float32)))
                  for size in ((3, 8), (8, 8), (8, 3))]
        run("bringing_a_net.md", "from safetensors.numpy import save_file", net=types.SimpleNamespace(layers=layers))

        def net(x):
            for i, layer in enumerate(layers):
                x = x @ layer.weight.T + layer.bias
                x = jax.numpy.tanh(x) if i < 2 else x
            return x

        import h5py
        x = random.normal(size=(64, 3)).astype(np.float32)
        with h5py.File("samples.h5", "w") as file:
            file["input"], file["output"] = x, np.asarray(net(x))
        self.arrives("net.safetensors")

    def test_scikit_learn_by_onnx(self):
        import h5py
        from sklearn.neural_network import MLPRegressor
        random = np.random.default_rng(5)
        x = random.normal(size=(64, 3))
        regressor = MLPRegressor(hidden_layer_sizes=(8,), activation="tanh", max_iter=50, random_state=1).fit(x, np.sin(x))
        run("bringing_a_net.md", "skl2onnx", regressor=regressor, x=x, np=np)
        with h5py.File("samples.h5", "w") as file:
            file["input"], file["output"] = x, regressor.predict(x)
        self.arrives("net.onnx")


class Gradients(unittest.TestCase):
    """Of the mean square of what is left to a target, by initial states and weights.

    The adaptive steps are constants in the gradient and not in the differences, and the solve is within 1e-6 of its
    equation: what differs is some 1e-6 over the differences' step of 1e-3."""

    def setUp(self):
        torch.manual_seed(6)
        self.linear = [torch.nn.Linear(2, 6), torch.nn.Linear(6, 2)]
        self.net = lockstep.mlp([layer.weight.detach() for layer in self.linear],
                                [layer.bias.detach() for layer in self.linear])
        self.u0 = np.random.default_rng(7).normal(size=(5, 2))
        self.target = np.random.default_rng(8).normal(size=(5, 11, 2))

    def differences(self, u0, weights, along, step=1e-3):
        """The slope of the loss along a direction of both."""
        def loss(by):
            solution = lockstep.solve(self.net.with_weights(weights + by * along[1]), u0 + by * along[0], (0, 1), 11,
                                      precision="f64", rtol=1e-9, atol=1e-9)
            return ((solution.state - self.target) ** 2).mean()
        return (loss(step) - loss(-step)) / (2 * step)

    def check(self, u0_slope, weights_slope):
        random = np.random.default_rng(9)
        for _ in range(3):
            along = random.normal(size=self.u0.shape), random.normal(size=len(self.net.weights))
            found = np.sum(along[0] * u0_slope) + along[1] @ weights_slope
            np.testing.assert_allclose(found, self.differences(self.u0, self.net.weights, along), rtol=1e-3, atol=1e-3)

    def test_pytorch(self):
        u0 = torch.from_numpy(self.u0).requires_grad_()
        there = run("python.md", "class Trajectories", torch=torch, lockstep=lockstep, linear=self.linear, u0=u0,
                    target=torch.from_numpy(self.target))
        there.loss.backward()
        self.check(u0.grad.numpy(), there.weights.grad.numpy())
        parameters = [p for layer in self.linear for p in layer.parameters()]
        np.testing.assert_array_equal(torch.nn.utils.parameters_to_vector(parameters).detach().numpy(),
                                      there.weights.detach().numpy(), "the order that the comment names")

    def test_jax(self):
        import jax
        there = run("python.md", "jax.custom_vjp", jax=jax, jnp=jax.numpy, lockstep=lockstep, net=self.net)

        def loss(u0, weights):
            return ((there.trajectories(u0, weights) - self.target) ** 2).mean()

        given = jax.numpy.asarray(self.u0), jax.numpy.asarray(self.net.weights)
        slopes = jax.grad(loss, (0, 1))(*given)
        self.check(*map(np.asarray, slopes))
        for plain, compiled in zip(slopes, jax.jit(jax.grad(loss, (0, 1)))(*given)):
            np.testing.assert_allclose(plain, compiled, rtol=1e-12, atol=1e-14)

    def test_scipy(self):
        import scipy
        times = np.linspace(0, 10, 41)
        truth = np.array([1.0, 0.0, 2.0, 0.2])
        rate, frequency = truth[3] / 2, np.sqrt(truth[2] - truth[3] ** 2 / 4)
        measured = np.exp(-rate * times) * (np.cos(frequency * times) + rate / frequency * np.sin(frequency * times))
        there = run("python.md", "scipy.optimize.least_squares", scipy=scipy, np=np, lockstep=lockstep, times=times,
                    measured=measured)
        np.testing.assert_allclose(there.fit.x, truth, atol=1e-6)  # tolerances of 1e-8, grown by the problem's condition


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=1)
