"""Nets exported here and now by PyTorch (both exporters), Keras, scikit-learn and JAX, and every ONNX file of testdata/:
`lockstep evaluate` against the tool's own answers and ONNX Runtime's. With PACKAGE, the folder of the Python package, also
every operator of the ONNX standard, one by one, and that it takes tensors of PyTorch and arrays of JAX where they lie.

    python exporters_test.py TOOL TESTDATA [PACKAGE]      in the environment that scripts/exporter_environment.sh makes
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
import h5py
import numpy as np
import onnx
import onnxruntime

TOOL, TESTDATA = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
PACKAGE = sys.argv[3] if len(sys.argv) > 3 else ""
UNIT = 2.0**-24  # float32's unit roundoff

# Activation, and a bound of its slope.
FUNCTIONS = {
    "identity": (lambda x: x, 1.0),
    "relu": (lambda x: np.maximum(x, 0), 1.0),
    "tanh": (np.tanh, 1.0),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), 0.25),
    "silu": (lambda x: x / (1 + np.exp(-x)), 1.1),
    "elu": (lambda x: np.where(x > 0, x, np.expm1(x)), 1.0),
}


def in_float64(layers, x):
    """The net (a list of weights [out, in], bias, activation) in float64, and a bound on the error of any float32
    evaluation: for a layer z = W h + b whose h is off by e, z is off by at most |W| e + (n + 3) u (|W| |h| + |b|), n the
    number of inputs (Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, eq. 3.7; one more for the bias
    and one for normalisation that divides where this multiplies); the activation multiplies that by its slope and adds
    4 ulp = 8 u of its value, plus 8 u where it subtracts from 1. Second-order terms: a quarter more."""
    h, e = x.astype(np.float64), np.zeros(x.shape)
    for weights, bias, name in layers:
        weights, bias = np.asarray(weights, np.float64), np.asarray(bias, np.float64)
        function, slope = FUNCTIONS[name]
        size = np.abs(h) @ np.abs(weights).T + np.abs(bias)
        e = e @ np.abs(weights).T + (weights.shape[1] + 3) * UNIT * size
        h = function(h @ weights.T + bias)
        e = slope * e + (0 if name in ("identity", "relu") else 8 * UNIT * (1 + np.abs(h)))
    return h, 1.25 * e


class ToolTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="lockstep-exporters-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.rng = np.random.default_rng(8)

    def evaluate(self, model, inputs, *options):
        with h5py.File(self.folder / "x.h5", "w") as file:
            for name, values in inputs.items():
                file[name] = values
        done = subprocess.run([TOOL, "evaluate", model, "--input", self.folder / "x.h5", "--output", self.folder / "y.h5",
                               "--overwrite", "--quiet", *options], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"{model}: {done.stderr}")
        with h5py.File(self.folder / "y.h5") as file:
            return {name: file[name][...] for name in file if isinstance(file[name], h5py.Dataset)}


class Exported(ToolTest):
    def check(self, model, layers, x, theirs):
        """Ours lies within the bound of the exact answer, and within twice the bound of the tool's own."""
        exact, bound = in_float64(layers, x)
        theirs = np.asarray(theirs, np.float64).reshape(exact.shape)
        # A tool that answered something else would make the comparison worthless.
        self.assertLess(np.max(np.abs(theirs - exact) / bound), 1, f"{model}: the tool's own answer")
        self.assertGreater(np.max(np.abs(exact)), 100 * np.max(bound), "a net that says something")
        ours = self.evaluate(model, {"input": x})["output"]
        self.assertLess(np.max(np.abs(ours - exact) / bound), 1, model)
        self.assertLess(np.max(np.abs(ours - theirs) / bound), 2, model)

    def test_pytorch_by_both_exporters(self):
        import torch
        from torch import nn
        torch.manual_seed(8)
        kinds = {nn.Tanh: "tanh", nn.ReLU: "relu", nn.SiLU: "silu", nn.ELU: "elu", nn.Sigmoid: "sigmoid"}
        for number, kind in enumerate(kinds):
            net = nn.Sequential(nn.Linear(4, 24), kind(), nn.Linear(24, 24), kind(), nn.Linear(24, 3)).eval()
            linear = [module for module in net if isinstance(module, nn.Linear)]
            names = [kinds[kind], kinds[kind], "identity"]
            layers = [(m.weight.detach().numpy(), m.bias.detach().numpy(), name) for m, name in zip(linear, names)]
            x = torch.from_numpy(self.rng.normal(size=(67, 4)).astype(np.float32))
            with torch.no_grad():
                theirs = net(x).numpy()
            legacy, dynamo = self.folder / f"legacy{number}.onnx", self.folder / f"dynamo{number}.onnx"
            torch.onnx.export(net, (x,), legacy, dynamo=False, dynamic_axes={"x": {0: "batch"}}, input_names=["x"])
            torch.onnx.export(net, (x,), dynamo, dynamo=True, external_data=False, verbose=False,
                              dynamic_shapes=({0: torch.export.Dim("batch")},))
            for file in (legacy, dynamo):
                with self.subTest(exporter=file.name, activation=kinds[kind]):
                    self.check(file, layers, x.numpy(), theirs)

    def test_scikit_learn_by_skl2onnx(self):
        from skl2onnx import to_onnx
        from sklearn.neural_network import MLPRegressor
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        x = self.rng.normal(1.5, 2, size=(200, 3)).astype(np.float32)
        y = np.stack([np.sin(x[:, 0]), x[:, 1] * x[:, 2]], axis=1)
        scaler, mlp = StandardScaler(), MLPRegressor(hidden_layer_sizes=(12, 8), activation="tanh", random_state=8, max_iter=20)
        net = make_pipeline(scaler, mlp)
        import warnings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # 20 iterations do not converge, and need not
            net.fit(x, y)
        file = self.folder / "sklearn.onnx"
        file.write_bytes(to_onnx(net, x[:1]).SerializeToString())
        names = ["tanh", "tanh", "identity"]
        layers = [(np.diag(1 / scaler.scale_), -scaler.mean_ / scaler.scale_, "identity")]
        layers += [(w.T, b, name) for w, b, name in zip(mlp.coefs_, mlp.intercepts_, names)]
        self.check(file, layers, x, net.predict(x.astype(np.float64)))

    def test_keras_in_both_its_formats(self):
        import keras
        keras.utils.set_random_seed(8)
        names = ["tanh", "silu", "sigmoid", "identity"]
        net = keras.Sequential([keras.Input((4,))] + [
            keras.layers.Dense(width, activation={"identity": None}.get(name, name), bias_initializer="random_normal")
            for width, name in zip((20, 16, 9, 3), names)])
        net.compile(optimizer="adam", loss="mse")
        x = self.rng.normal(size=(67, 4)).astype(np.float32)
        net.fit(x, np.sin(x[:, :3]), epochs=2, verbose=0)
        layers = [(w.T, b, name) for (w, b), name in zip((layer.get_weights() for layer in net.layers), names)]
        for ending in ("keras", "h5"):
            with self.subTest(ending=ending):
                file = self.folder / f"net.{ending}"
                net.save(file)
                self.check(file, layers, x, net.predict(x, verbose=0))

    def test_jax_by_jax2onnx(self):
        import jax
        import jax.numpy as jnp
        from jax2onnx import to_onnx
        kinds = {"tanh": jnp.tanh, "relu": jax.nn.relu, "silu": jax.nn.silu}
        for name, function in kinds.items():
            with self.subTest(activation=name):
                widths, names = (4, 20, 20, 3), [name, name, "identity"]
                layers = [(self.rng.normal(size=(n, m)).astype(np.float32) / np.float32(np.sqrt(m)),
                           self.rng.normal(size=n).astype(np.float32), act) for m, n, act in zip(widths, widths[1:], names)]

                def net(x):
                    for weights, bias, act in layers:
                        x = kinds.get(act, lambda z: z)(x @ weights.T + bias)
                    return x

                x = self.rng.normal(size=(67, 4)).astype(np.float32)
                file = self.folder / f"{name}.onnx"
                onnx.save(to_onnx(net, [("B", 4)]), file)
                self.check(file, layers, x, jax.jit(net)(x))

    def test_angles_by_jax2onnx(self):
        """Each within 4 ulp = 8 u of its value; of the angle of two numbers 8 u of pi, which JAX adds to that of their quotient."""
        import jax.numpy as jnp
        from jax2onnx import to_onnx
        x = self.rng.uniform(-1, 1, size=(67, 2)).astype(np.float32)
        x[:6] = [[0, 1], [1, 0], [0, -1], [-1, 0], [0, 0], [-1, -1]]
        for name, theirs, exact in (
                ("arctan2", lambda x: jnp.arctan2(x[:, :1], x[:, 1:]), lambda x: np.arctan2(x[:, :1], x[:, 1:])),
                ("arctan", jnp.arctan, np.arctan), ("arcsin", jnp.arcsin, np.arcsin), ("arccos", jnp.arccos, np.arccos)):
            with self.subTest(function=name):
                file = self.folder / f"{name}.onnx"
                onnx.save(to_onnx(theirs, [("B", 2)]), file)
                y = exact(x.astype(np.float64))
                ours = self.evaluate(file, {"input": x})["output"].reshape(y.shape)
                self.assertTrue(np.all(np.abs(ours - y) <= 8 * UNIT * (np.pi if name == "arctan2" else np.abs(y))), name)


class Fixtures(ToolTest):
    """ONNX Runtime agrees on every ONNX file of testdata/."""

    def answers(self, model, inputs):
        """Those that are numbers: labels of classes are left out, of dictionaries of classes their values are taken."""
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        found = {}
        for port, values in zip(session.get_outputs(), session.run(None, inputs)):
            if isinstance(values, list):
                values = np.array([list(row.values()) for row in values], np.float32)
            if values.dtype.kind == "f":
                found[port.name] = values
        return found

    def test_onnx_runtime_agrees_on_every_fixture(self):
        files = sorted(TESTDATA.rglob("*.onnx"))
        self.assertGreater(len(files), 20)
        for file in files:
            with self.subTest(file=file.name):
                self.agrees(file)

    def agrees(self, file):
        """A float32 evaluation is the exact answer of a net whose weights and inputs are off by at most (n + 3) u, n the
        largest number of inputs of any layer (Higham, eq. 3.4), and activations within 4 ulp = 8 u. How far such a net
        lies from this one is measured: the largest deviation of any sample, over eight random choices of all their signs. Ours and ONNX
        Runtime's may differ by twice that; twice again, for eight choices do not find the worst one."""
        model = onnx.load(file)
        onnx.load_external_data_for_model(model, str(file.parent))
        weights = {tensor.name for tensor in model.graph.initializer}
        ports = [port for port in model.graph.input if port.name not in weights]
        inputs = {port.name: self.rng.normal(size=(33, port.type.tensor_type.shape.dim[1].dim_value)).astype(np.float32)
                  for port in ports}
        theirs = self.answers(model, inputs)
        names = list(inputs) if len(inputs) > 1 else ["input"]
        ours = self.evaluate(file, dict(zip(names, inputs.values())))
        ours = {name: values for name, values in ours.items() if not name.endswith(("feature", "outside_range"))}
        if len(theirs) == 1:
            ours = {next(iter(theirs)): ours["output"]}
        self.assertEqual(set(ours), set(theirs))
        widest = max([values.shape[1] for values in inputs.values()] +
                     [max(tensor.dims) for tensor in model.graph.initializer if tensor.dims])
        off = {name: np.abs(values) * 16 * UNIT for name, values in theirs.items()}
        for _ in range(8):
            other = onnx.ModelProto()
            other.CopyFrom(model)
            for tensor in other.graph.initializer:
                values = onnx.numpy_helper.to_array(tensor)
                if values.dtype in (np.float32, np.float64) and values.size:
                    tensor.CopyFrom(onnx.numpy_helper.from_array(self.shaken(values, widest), tensor.name))
            shaken = self.answers(other, {name: self.shaken(values, widest) for name, values in inputs.items()})
            for name, values in shaken.items():
                off[name] = np.fmax(off[name], np.abs(values - theirs[name]))
        for name in theirs:
            self.assertEqual(ours[name].size, theirs[name].size, name)
            answer = theirs[name].reshape(ours[name].shape)  # skl2onnx declares [samples * outputs, 1]
            np.testing.assert_array_equal(np.isnan(ours[name]), np.isnan(answer), name)  # roots of negative numbers
            bound = 4 * np.nanmax(off[name].reshape(answer.shape), axis=0)
            self.assertLessEqual(np.nanmax(np.abs(ours[name] - answer) - bound), 0, name)

    def shaken(self, values, widest):
        return (values * (1 + (widest + 3) * UNIT * self.rng.choice([-1, 1], size=values.shape))).astype(values.dtype)


@unittest.skipUnless(PACKAGE, "the Python package is not built")
class Operators(unittest.TestCase):
    """The operators of the ONNX standard as the installed onnx knows them, those of newer opsets than ours among them."""
    OPSETS = range(7, 29)
    # Every operator that makes a number of each number, or of the features of a sample together, with its attributes.
    ACTIVATIONS = {
        "Celu": [{}, {"alpha": 2.0}], "Elu": [{}, {"alpha": 0.5}], "Gelu": [{}, {"approximate": "tanh"}],
        "HardSigmoid": [{}, {"alpha": 0.25, "beta": 0.125}, {"alpha": 1 / 6}], "HardSwish": [{}],
        "Hardmax": [{}, {"axis": 1}], "LeakyRelu": [{}, {"alpha": 0.25}], "LogSoftmax": [{}, {"axis": 1}], "Mish": [{}],
        "PRelu": [{}], "Relu": [{}], "Selu": [{}, {"alpha": 2.0, "gamma": 3.0}], "Shrink": [{}, {"lambd": 1.0, "bias": 0.25}],
        "Sigmoid": [{}], "Softmax": [{}, {"axis": 1}], "Softplus": [{}], "Softsign": [{}], "SwiGLU": [{}, {"alpha": 0.5}],
        "Swish": [{}, {"alpha": 0.5}], "Tanh": [{}], "ThresholdedRelu": [{}, {"alpha": -0.5}], "Erf": [{}], "Sin": [{}],
        "Cos": [{}], "Sign": [{}], "Abs": [{}], "Neg": [{}], "Exp": [{}], "Floor": [{}], "Ceil": [{}], "Round": [{}],
        "Asinh": [{}], "Atan": [{}], "Mod": [{"fmod": 1}]}
    SECOND = {"PRelu": "slopes", "SwiGLU": "x", "Mod": "slopes"}
    # What else is read, where it means something for each sample (lockstep/nn/onnx.h).
    OTHERS = """Acos Acosh Add And Asin Atanh BatchNormalization Cast CastLike Clip Concat Constant ConstantOfShape Cosh CumSum Div Dropout Einsum Equal Expand
        Flatten Gather GatherND Gemm Greater GreaterOrEqual GroupNormalization Identity InstanceNormalization IsInf IsNaN LayerNormalization Less
        LessOrEqual Log LpNormalization MatMul Max Mean Min Mul Not Or Pad Pow RMSNormalization Reciprocal ReduceL1 ReduceL2
        ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Reshape ScatterElements
        ScatterND Shape Sinh Slice Split Sqrt Squeeze Sub Sum Tan Tile Transpose Unsqueeze Where Xor""".split()

    @classmethod
    def setUpClass(cls):
        sys.path.insert(0, PACKAGE)
        import lockstep
        cls.lockstep = lockstep
        cls.x = np.random.default_rng(8).normal(0, 2, size=(33, 5)).astype(np.float32)

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="lockstep-operators-")
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "net.onnx"

    def model(self, nodes, outputs, opset):
        helper, double = onnx.helper, onnx.TensorProto.DOUBLE
        slopes = onnx.numpy_helper.from_array(np.array([0.25, 0.5, 2, 1, -1]), "slopes")
        graph = helper.make_graph(nodes, "operators", [helper.make_tensor_value_info("x", double, ["batch", 5])],
                                  [helper.make_tensor_value_info(name, double, None) for name in outputs], [slopes])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        self.file.write_bytes(model.SerializeToString())
        return model

    def test_activations_of_every_opset_are_the_standards_own(self):
        """In float32 against the standard's reference in float64: each is within 4 ulp = 8 u of its value where it is one
        function of ours, and otherwise made of one and at most eight roundings, of numbers not above 1 + |x| + |y|."""
        from onnx.reference import ReferenceEvaluator
        self.assertEqual(self.OPSETS[-1], onnx.defs.onnx_opset_version(), "the newest opset is not read")
        for opset in self.OPSETS:
            nodes = []
            for op, variants in self.ACTIVATIONS.items():
                try:
                    known = onnx.defs.get_schema(op, opset, "")
                except onnx.defs.SchemaError:
                    continue
                for attributes in variants:
                    if set(attributes) <= set(known.attributes):
                        inputs = ["x"] + [self.SECOND[name] for name in self.SECOND if name == op]
                        nodes.append(onnx.helper.make_node(op, inputs, [f"{op}{len(nodes)}"], f"node{len(nodes)}", **attributes))
            self.assertGreater(len(nodes), 20)
            names = [node.output[0] for node in nodes]
            theirs = ReferenceEvaluator(self.model(nodes, names, opset)).run(None, {"x": self.x.astype(np.float64)})
            ours = self.lockstep.load(self.file)({"x": self.x})
            for name, theirs in zip(names, theirs):
                bound = 16 * UNIT * (1 + np.abs(self.x) + np.abs(theirs))
                self.assertLess(np.max(np.abs(ours[name] - theirs) / bound), 1, f"{name}, opset {opset}")

    def test_every_other_operator_is_refused_with_node_opset_and_remedy(self):
        opset, kinds = self.OPSETS[-1], onnx.defs.OpSchema.AttrType
        values = {kinds.INT: 1, kinds.INTS: [1], kinds.FLOAT: 1.0, kinds.FLOATS: [1.0], kinds.STRING: "a", kinds.STRINGS: ["a"],
                  kinds.GRAPH: onnx.GraphProto()}
        refused = set()
        for schema in onnx.defs.get_all_schemas():
            if schema.domain or schema.deprecated or schema.name in self.ACTIVATIONS or schema.name in self.OTHERS:
                continue
            inputs = ["x", *["slopes"] * (max(schema.min_input, 1) - 1)][:max(schema.min_input, 1)]
            attributes = {name: values[attribute.type] for name, attribute in schema.attributes.items()
                          if attribute.required and attribute.type in values}
            node = onnx.helper.make_node(schema.name, inputs, ["y"], "the node", **attributes)
            self.model([node], ["y"], opset)
            with self.subTest(operator=schema.name), self.assertRaises(self.lockstep.Unsupported) as found:
                self.lockstep.load(self.file)
            self.assertIn(f'node "the node" ({schema.name}, opset {opset})', found.exception.field)
            self.assertTrue(found.exception.expected and found.exception.remedy, found.exception)
            refused.add(schema.name)
        self.assertGreater(len(refused), 90)  # of 99 when this was written


@unittest.skipUnless(PACKAGE, "the Python package is not built")
class Tensors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        sys.path.insert(0, PACKAGE)
        import lockstep
        cls.net = lockstep.load(TESTDATA / "ocean_relu_32_128_128_31.safetensors")
        cls.x = np.random.default_rng(1).normal(size=(70, 32)).astype(np.float32)
        cls.wrong_type = lockstep.WrongType

    def test_pytorch_tensors_are_read_and_written_where_they_lie(self):
        import torch
        y = self.net(self.x)
        tensor = torch.from_numpy(self.x)
        self.assertIsInstance(self.net(tensor), torch.Tensor)
        np.testing.assert_array_equal(self.net(tensor).numpy(), y)
        turned = tensor.t().contiguous().t()  # of another layout
        out = torch.zeros(31, 70).t()
        address = out.data_ptr()
        self.net(turned, out=out)
        np.testing.assert_array_equal(out.numpy(), y)
        self.assertEqual(out.data_ptr(), address)
        with self.assertRaisesRegex(self.wrong_type, "detach"):
            self.net(tensor.clone().requires_grad_())
        with self.assertRaisesRegex(self.wrong_type, r"float16 .*x\.float\(\)"):
            self.net(tensor.half())

    def test_jax_arrays_give_jax_arrays(self):
        import jax
        x = jax.numpy.asarray(self.x)
        y = self.net(x)
        self.assertIsInstance(y, jax.Array)
        np.testing.assert_array_equal(np.asarray(y), self.net(self.x))
        with self.assertRaisesRegex(self.wrong_type, "read-only"):
            self.net(x, out=y)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
