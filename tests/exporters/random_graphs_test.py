"""Random ONNX graphs of the operators that are read, constants spelled in many ways, against the standard's own evaluation
in float64 (onnx.reference).

    python random_graphs_test.py PACKAGE [SEED]      PACKAGE: the folder of the Python package; in the environment that
                                                     scripts/exporter_environment.sh makes
"""
import pathlib
import sys
import tempfile
import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

sys.path.insert(0, sys.argv[1])
import lockstep

SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 8
GRAPHS, SAMPLES, OPSET = 120, 11, 20
UNARY = """Relu Tanh Sigmoid Softplus Softsign LeakyRelu Elu Selu Celu Gelu HardSigmoid HardSwish Mish Abs Neg Sin Cos Erf
    Softmax LogSoftmax ThresholdedRelu Shrink Identity Clip""".split()


class RandomGraph:
    """Values are [batch, features], of known width. A chain goes on from its last value, as nets that are plain stacks do."""

    def __init__(self, rng):
        self.rng, self.nodes, self.tensors, self.count = rng, [], [], 0
        self.widths = {"x": int(rng.integers(1, 7))}
        chain = rng.random() < 0.4
        kinds = [self.unary, self.with_constant, self.layer] if chain else [
            self.unary, self.with_constant, self.layer, self.between, self.columns, self.reduced, self.truth, self.matrix]
        value = "x"
        for _ in range(int(rng.integers(2, 12))):
            value = kinds[int(rng.integers(len(kinds)))](value if chain else self.any())
        self.output = self.node("Identity", [value], self.widths[value])

    def any(self):
        return str(self.rng.choice(list(self.widths)))

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def node(self, operator, inputs, width=None, **attributes):
        name = self.name()
        self.nodes.append(helper.make_node(operator, inputs, [name], f"the {operator} of {name}", **attributes))
        if width is not None:
            self.widths[name] = width
        return name

    def tensor(self, array):
        name = self.name()
        self.tensors.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def numbers(self, *shape):
        """A constant of this shape, none of its numbers near 0."""
        rng = self.rng
        values = rng.uniform(0.25, 1.5, size=shape) * rng.choice([-1, 1], size=shape)
        spelling = int(rng.integers(9))
        if spelling == 0:  # a quotient of integers, cut off
            whole = self.tensor(np.trunc(values * 40 + 7 * np.sign(values)).astype(np.int64))
            return self.node("Cast", [self.node("Div", [whole, self.tensor(np.int64(7))])], to=TensorProto.DOUBLE)
        if spelling == 1:  # a number, cut off
            return self.node("Cast", [self.node("Cast", [self.tensor(values + np.sign(values))], to=TensorProto.INT32)],
                             to=TensorProto.DOUBLE)
        if spelling == 2:
            return self.node("Reshape", [self.tensor(values.reshape(1, -1)), self.tensor(np.array(shape, np.int64))])
        if spelling == 3 and len(shape) == 2:
            return self.node("Transpose", [self.tensor(np.ascontiguousarray(values.T))])
        if spelling == 4 and shape and shape[-1] == 1:
            return self.node("Unsqueeze", [self.tensor(values[..., 0]), self.tensor(np.array([-1], np.int64))])
        if spelling == 5 and shape:
            filling = numpy_helper.from_array(np.full(1, values.flat[0]))
            return self.node("ConstantOfShape", [self.tensor(np.array(shape, np.int64))], value=filling)
        if spelling == 6 and shape:
            halves = [self.tensor(part) for part in np.split(values, [shape[0] // 2]) if part.size]
            return self.node("Concat", halves, axis=0)
        if spelling == 7:
            return self.node("Mul", [self.tensor(values), self.tensor(np.full(shape, 0.75))])
        return self.tensor(values.astype(np.float32).astype(np.float64))

    def unary(self, x):
        operator = str(self.rng.choice(UNARY))
        if operator == "Clip":
            return self.node(operator, [x, self.tensor(-0.5), self.tensor(1.25)], self.widths[x])
        return self.node(operator, [x], self.widths[x])

    def ordered(self, x, y):
        return [x, y] if self.rng.random() < 0.5 else [y, x]

    def with_constant(self, x):
        width, operator = self.widths[x], str(self.rng.choice(["Add", "Sub", "Mul", "Div", "Min", "Max"]))
        shape = [(), (1,), (width,), (1, width)][int(self.rng.integers(4))]
        constant = self.numbers(*shape)
        return self.node(operator, [x, constant] if operator == "Div" else self.ordered(x, constant), width)

    def between(self, x):
        fitting = [name for name, width in self.widths.items() if width in (1, self.widths[x])]
        y = str(self.rng.choice(fitting))
        return self.node(str(self.rng.choice(["Add", "Sub", "Mul", "Min", "Max"])), self.ordered(x, y), self.widths[x])

    def layer(self, x):
        rng, inputs, outputs = self.rng, self.widths[x], int(self.rng.integers(1, 9))
        kind = int(rng.integers(5))
        if kind == 0:
            return self.node("Gemm", [x, self.numbers(outputs, inputs), self.numbers(outputs)], outputs, transB=1, alpha=0.5)
        if kind == 1:
            one_each = [self.numbers(inputs) for _ in range(3)]
            return self.node("BatchNormalization", [x, *one_each, self.tensor(rng.uniform(0.5, 2, inputs))], inputs, epsilon=0.125)
        if kind == 2:
            return self.node("LayerNormalization", [x, self.numbers(inputs), self.numbers(inputs)], inputs, epsilon=0.125)
        product = self.node("MatMul", [x, self.numbers(inputs, outputs)], outputs)
        return product if kind == 3 else self.node("Add", self.ordered(product, self.numbers(outputs)), outputs)

    def columns(self, x):
        rng, width = self.rng, self.widths[x]
        kind = int(rng.integers(3))
        if kind == 0:
            indices = rng.integers(-width, width, size=int(rng.integers(1, 6)))
            return self.node("Gather", [x, self.tensor(indices)], len(indices), axis=1)
        if kind == 1:
            y = self.any()
            return self.node("Concat", [x, y, x], 2 * width + self.widths[y], axis=-1) if width < 20 else x
        first, step = int(rng.integers(width)), int(rng.choice([1, 2]))
        numbers = [self.tensor(np.array([value], np.int64)) for value in (first, 2**63 - 1, 1, step)]
        return self.node("Slice", [x, *numbers], len(range(first, width, step)))

    def reduced(self, x):
        operator = str(self.rng.choice(["Sum", "Mean", "Min", "Max", "L1", "L2", "SumSquare"]))
        return self.node("Reduce" + operator, [x, self.tensor(np.array([-1], np.int64))], 1)

    def truth(self, x):
        width, kind = self.widths[x], int(self.rng.integers(3))
        if kind == 0:
            truth = self.node("Cast", [self.node("Relu", [x], width)], to=TensorProto.BOOL)
        elif kind == 1:
            truth = self.node("Not", [self.node("Greater", [x, self.numbers(width)])])
        else:
            truth = self.node("LessOrEqual", [self.any() if width == 1 else x, self.numbers(1)])
            width = self.widths[self.nodes[-1].input[0]]
        if self.rng.random() < 0.5:
            return self.node("Cast", [truth], width, to=TensorProto.DOUBLE)
        fitting = [name for name, other in self.widths.items() if other == width]
        return self.node("Where", [truth, str(self.rng.choice(fitting)), self.numbers(1, width)], width)

    def matrix(self, x):
        """As a matrix for each sample, with a number for each row, and back."""
        width = self.widths[x]
        rows = int(self.rng.choice([n for n in range(1, width + 1) if width % n == 0]))
        matrix = self.node("Reshape", [x, self.tensor(np.array([0, rows, -1], np.int64))])
        scaled = self.node("Mul", self.ordered(matrix, self.numbers(rows, 1)))
        return self.node("Reshape", [scaled, self.tensor(np.array([-1, width], np.int64))], width)

    def model(self):
        double = TensorProto.DOUBLE
        graph = helper.make_graph(
            self.nodes, "random", [helper.make_tensor_value_info("x", double, ["batch", self.widths["x"]])],
            [helper.make_tensor_value_info(self.output, double, ["batch", self.widths[self.output]])], self.tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])


class RandomGraphs(unittest.TestCase):
    def test_are_what_the_standard_says(self):
        """The answer may differ from the standard's by what a change of the inputs in their 18th bit does, and by as much
        of its own size. The constants in activations are float32 there, right to 24 bits, and a graph holds at most a dozen
        of them: a sixty-fourth of the change for each, where none grows. An operator or a constant that is read wrongly
        moves the answer in its first digits."""
        shift = 2.0**-18
        with tempfile.TemporaryDirectory(prefix="lockstep-random-") as folder:
            file = pathlib.Path(folder) / "net.onnx"
            for number in range(GRAPHS):
                rng = np.random.default_rng([SEED, number])
                graph = RandomGraph(rng)
                model = graph.model()
                file.write_bytes(model.SerializeToString())
                x = rng.normal(size=(SAMPLES, graph.widths["x"]))
                standard = ReferenceEvaluator(model)
                with np.errstate(all="ignore"):
                    theirs = standard.run(None, {"x": x})[0]
                    shaken = standard.run(None, {"x": x * (1 + shift * rng.choice([-1, 1], size=x.shape))})[0]
                ours = lockstep.load(file)(x)
                with self.subTest(seed=SEED, graph=number, operators=[node.op_type for node in graph.nodes]):
                    bound = 4 * np.abs(shaken - theirs) + shift * (1 + np.abs(theirs))
                    self.assertLess(np.max(np.abs(ours - theirs) / bound), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
