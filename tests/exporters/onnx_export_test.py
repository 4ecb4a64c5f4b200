"""Nets that Lockstep writes as ONNX: onnx.checker takes them, ONNX Runtime gives the net's answers to within the bound of
error_bound.py, and they are read again to the same bits. Stacks of every activation, equations, tables, the graphs of
testdata/, random ones.

    python onnx_export_test.py PACKAGE [SEED]      PACKAGE: the folder of the Python package; in the environment that
                                                   scripts/exporter_environment.sh makes
"""
import os
import pathlib
import sys
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime

sys.path.insert(0, sys.argv[1])
import documented
import lockstep
from error_bound import Evaluation
from random_graphs_test import RandomGraph

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 8
ACTIVATIONS = """identity relu leaky_relu leaky_relu(0.2) prelu(-0.5) elu elu(0.5) selu celu celu(2) gelu gelu_tanh silu mish softplus
    softsign sigmoid hard_sigmoid hard_swish tanh sin square""".split()
NUMBERS = {"f32": np.float32, "f64": np.float64}


def widths(model):
    return {port["name"]: len(port["features"]) for port in model.inputs}


class WrittenTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="lockstep-onnx-")
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "net.onnx"
        self.rng = np.random.default_rng(SEED)
        self.compared = self.told = 0

    def written(self, model, precision=None):
        model.save(self.path, overwrite=True, precision=precision)
        file = onnx.load(self.path)
        onnx.checker.check_model(file, full_check=True)
        self.assertEqual([value.name for value in file.graph.input], list(widths(model)))
        self.assertEqual([value.type.tensor_type.shape.dim[0].dim_param for value in file.graph.output],
                         ["batch"] * len(model.outputs))
        return file

    def answers(self, model, x):
        given = x if len(x) > 1 else next(iter(x.values()))
        made = model(given)
        return list(made.values()) if isinstance(made, dict) else [made]

    def compare(self, found, centre, bound, what):
        """Within the bound, or NaN as well. Numbers whose bound is above 1e-3 of them say little, and are counted."""
        self.assertEqual(found.shape, centre.shape, what)
        useful = np.isfinite(centre) & (np.abs(centre) < 1e30)
        telling = useful & (bound <= 1e-5 + 1e-3 * np.abs(centre))
        self.compared, self.told = self.compared + useful.sum(), self.told + telling.sum()
        far = useful & ~(np.abs(found - centre) <= bound)
        self.assertFalse(far.any(), f"{what}: {found[far][:3]} for {centre[far][:3]} +- {bound[far][:3]}")
        np.testing.assert_array_equal(np.isnan(found)[np.isnan(centre)], True, what)

    def sample(self, model, batch, precision, around=(0, 1)):
        return {name: self.rng.normal(*around, size=(batch, width)).astype(NUMBERS[precision])
                for name, width in widths(model).items()}

    def check(self, model, precisions=("f32", "f64"), batches=(37, 1, 0), what="", around=(0, 1)):
        for precision in precisions:
            file = self.written(model, precision)
            read = lockstep.load(self.path)
            if precision == "f64":
                self.assertEqual(read.digest, model.digest, what)
            bare = onnx.load(self.path)
            del bare.metadata_props[:]
            try:
                session = onnxruntime.InferenceSession(file.SerializeToString(), providers=["CPUExecutionProvider"])
            except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented as error:
                self.assertRegex(str(error), r"implementation for (Erf|Atan)\(", what)  # not in float64: docs/bringing_a_net.md
                self.assertEqual(precision, "f64")
                session = None
            for batch in batches:
                x = self.sample(model, batch, precision, around)
                ours = self.answers(read, x)
                if batch == 0:
                    if session:
                        shapes = [(0, array.shape[1]) for array in ours]
                        self.assertEqual([array.shape for array in session.run(None, x)], shapes, what)
                    continue
                exact = Evaluation(file, x)
                theirs = session.run(None, x) if session else []
                by_operators = self.answers(self.read_bare(bare), x)
                for i, value in enumerate(file.graph.output):
                    centre, bound = exact.centre_and_bound(value.name)
                    centre, bound = np.broadcast_to(centre, ours[i].shape), np.broadcast_to(bound, ours[i].shape)
                    where = f"{what} {precision} {value.name}"
                    self.compare(ours[i], centre, bound, where)
                    self.compare(by_operators[i], centre, bound, where + ", read by its operators")
                    if session:
                        self.compare(theirs[i], centre, bound, where + ", ONNX Runtime")
            # A net of float32 numbers gives the same bits in float32 wherever it comes from.
            x = self.sample(model, 5, precision, around)
            for a, b in zip(self.answers(read, x), self.answers(model, x)):
                np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8), what)

    def read_bare(self, file):
        path = self.path.with_name("bare.onnx")
        onnx.save(file, path)
        return lockstep.load(path)

    def tearDown(self):
        if self.compared:
            self.assertGreater(self.told, 0.9 * self.compared, "most bounds are narrow enough to tell")


class Stacks(WrittenTest):
    def stack(self, sizes, activation):
        weights = [(self.rng.normal(size=(m, n)) / np.sqrt(n)).astype(np.float32) for n, m in zip(sizes, sizes[1:])]
        biases = [self.rng.normal(size=m).astype(np.float32) for m in sizes[1:]]
        return lockstep.mlp(weights, biases, [activation] * (len(weights) - 1) + ["identity"])

    def test_every_activation(self):
        for activation in ACTIVATIONS:
            with self.subTest(activation):
                self.check(self.stack([3, 17, 9, 2], activation), what=activation)

    def test_widths_of_one(self):
        self.check(self.stack([1, 1], "identity"))
        self.check(self.stack([1, 1, 1], "tanh"))
        self.check(self.stack([5, 1, 3], "silu"))

    def test_float64_weights_are_written_whole(self):
        net = lockstep.mlp([self.rng.normal(size=(8, 3)), self.rng.normal(size=(1, 8))], activations=["tanh", "identity"])
        file = self.written(net)
        self.assertEqual(file.graph.input[0].type.tensor_type.elem_type, onnx.TensorProto.DOUBLE)
        self.check(net, ["f64"])

    def test_a_trained_net_with_normalisation_and_ranges(self):
        x = self.rng.normal(300, 20, size=(200, 2))
        net = lockstep.train(x=x, y=np.sin(x[:, :1] / 20) + x[:, 1:] / 100, hidden=[8], normalise="standard", iterations=50).model
        file = self.written(net)
        self.assertEqual(file.graph.input[0].type.tensor_type.elem_type, onnx.TensorProto.FLOAT)
        self.assertEqual([node.op_type for node in file.graph.node], ["Sub", "Div", "Gemm", "Tanh", "Gemm", "Mul", "Add"])
        read = lockstep.load(self.path)
        self.assertEqual((read.inputs, read.outputs, read.metadata), (net.inputs, net.outputs, net.metadata))
        self.check(net, around=(300, 20))


    def test_what_the_page_shows(self):
        net = self.stack([3, 8, 2], "tanh").with_names(inputs=["a", "b", "c"]).with_ranges(data=self.rng.normal(size=(9, 3)))
        net.save(self.path)
        x = self.rng.normal(size=(7, 3)).astype(np.float32)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.path.parent)
        shown = documented.run(ROOT / "docs", "bringing_a_net.md", "onnxruntime.InferenceSession", x=x)
        exact = Evaluation(onnx.load(self.path), {"x": x})
        self.compare(shown.y, *exact.centre_and_bound("y"), "the page's answers")
        self.assertEqual(shown.features, [{key: value for key, value in feature.items() if key != "unit"}
                                          for feature in net.inputs[0]["features"]])


class Graphs(WrittenTest):
    def test_graphs_of_other_tools(self):
        files = sorted((ROOT / "testdata" / "exported").glob("graph_*.onnx"))
        self.assertGreater(len(files), 10)
        for file in files:
            with self.subTest(file.name):
                self.check(lockstep.load(file), what=file.name)

    def test_equations_with_nets_tables_and_choices(self):
        net = lockstep.mlp([self.rng.normal(size=(4, 2)).astype(np.float32), self.rng.normal(size=(1, 4)).astype(np.float32)])
        hours, speed = [-1.0, 0.0, 0.5, 2.0], [1.0, 3.0, -1.0, 0.5]
        for interpolation in ("linear", "previous", "pchip", "spline"):
            wind = lockstep.table(hours, speed, interpolation=interpolation)
            model = lockstep.equations({"x": "v", "v": "-g * sin(x) + drag(v - wind(t), x) * exp(-x^2) + if(x < v, k, tanh(v))"},
                                       parameters={"g": 9.81, "k": 0.1}, models={"drag": net, "wind": wind})
            with self.subTest(interpolation):
                self.assertEqual(list(widths(model)), ["u", "p", "t"])
                self.check(model, what=interpolation)
                read = lockstep.load(self.path)
                self.assertEqual((read.calls, read.metadata), (model.calls, model.metadata))

    def test_equations_with_angles(self):
        model = lockstep.equations({"x": "atan(x * v) - asin(0.9 * tanh(x))", "v": "atan2(v, x) + acos(0.9 * sin(v))"})
        self.check(model)
        file = self.written(model, "f32")
        self.assertEqual(sum(node.op_type == "Atan" for node in file.graph.node), 4)

    def test_random_graphs(self):
        for seed in range(SEED * 1000, SEED * 1000 + 120):
            graph = RandomGraph(np.random.default_rng(seed))
            source = self.path.with_name("random.onnx")
            onnx.save(graph.model(), source)
            try:
                model = lockstep.load(source)
            except lockstep.Error as error:
                self.assertRegex(str(error), "does not depend on the input", f"seed {seed}")
                continue
            with self.subTest(seed=seed):
                self.check(model, batches=(11, 0), what=f"seed {seed}")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
