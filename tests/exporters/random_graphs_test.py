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
UNARY = """Relu Tanh Sigmoid Softplus Softsign LeakyRelu Elu Selu Celu Gelu HardSigmoid HardSwish Mish Abs Neg Sin Cos Atan Erf
    Softmax LogSoftmax ThresholdedRelu Shrink Identity Clip""".split()


class RandomGraph:
    """Values are [batch, features], of known width. A chain goes on from its last value, as nets that are plain stacks do."""

    def __init__(self, rng):
        self.rng, self.nodes, self.tensors, self.count = rng, [], [], 0
        self.widths = {"x": int(rng.integers(1, 7))}
        chain = rng.random() < 0.4
        kinds = [self.unary, self.with_constant, self.layer, self.whole] if chain else [
            self.unary, self.with_constant, self.layer, self.whole, self.between, self.columns, self.reduced, self.truth,
            self.matrix]
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

    def whole(self, x):
        width, operator = self.widths[x], str(self.rng.choice(["Floor", "Ceil", "Round", "Mod"]))
        shifted = self.node("Add", [x, self.tensor(np.float64(0.1372))], width)  # 1 less its last place is not far from 1
        if operator == "Mod":
            return self.node(operator, [shifted, self.tensor(self.rng.uniform(0.5, 2, size=width))], width, fmod=1)
        return self.node(operator, [shifted], width)

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


class RandomDimensions(RandomGraph):
    """Values of one to four dimensions, of which one, the batch, is 0 in their shapes; the output is [batch, features]."""

    def __init__(self, rng):
        self.rng, self.nodes, self.tensors, self.count = rng, [], [], 0
        self.widths = {"x": int(rng.integers(2, 6))}
        self.shapes = {"x": (0, self.widths["x"])}
        kinds = [self.elementwise, self.unsqueezed, self.transposed, self.joined, self.reduced_to, self.selected, self.times_matrix,
                 self.times_each_other, self.einsum, self.row_function, self.around, self.scattered]
        value = "x"
        for _ in range(int(rng.integers(2, 9))):
            value = kinds[int(rng.integers(len(kinds)))](value)
            if rng.random() < 0.2:
                value = str(rng.choice(list(self.shapes)))
        shape = self.shapes[value]
        batch = shape.index(0)
        front = self.node("Transpose", [value], perm=[batch, *(i for i in range(len(shape)) if i != batch)])
        width = int(np.prod([extent for extent in shape if extent], dtype=int))
        self.output = self.node("Reshape", [front, self.whole([-1, width])], width)

    def whole(self, numbers):
        return self.tensor(np.array(numbers, np.int64))

    def shaped(self, name, shape):
        self.shapes[name] = tuple(int(extent) for extent in shape)
        return name

    def feature_axis(self, x):
        axes = [i for i, extent in enumerate(self.shapes[x]) if extent]
        return int(self.rng.choice(axes)) if axes else None

    def signed(self, axis, x):
        return axis - len(self.shapes[x]) if self.rng.random() < 0.5 else axis

    def elementwise(self, x):
        shape, rng = self.shapes[x], self.rng
        if rng.random() < 0.3:
            return self.shaped(self.node(str(rng.choice(["Tanh", "Sin", "Softsign", "Abs"])), [x]), shape)
        other = [extent if extent and rng.random() < 0.7 else 1 for extent in shape][int(rng.integers(len(shape) + 1)):]
        grown = list(shape)
        for i, extent in enumerate(grown):  # where x has 1 the constant may have more
            at = i - (len(shape) - len(other))
            if extent == 1 and at >= 0 and rng.random() < 0.5:
                grown[i] = other[at] = 2
        constant = self.numbers(*other)
        if rng.random() < 0.2:
            truth = self.node("Less", self.ordered(x, constant))
            return self.shaped(self.node("Where", [truth, x, constant]), grown)
        return self.shaped(self.node(str(rng.choice(["Add", "Sub", "Mul", "Max"])), self.ordered(x, constant)), grown)

    def unsqueezed(self, x):
        shape = list(self.shapes[x])
        if len(shape) > 3 or self.rng.random() < 0.2:
            single = [i for i, extent in enumerate(shape) if extent == 1]
            if not single:
                return x
            return self.shaped(self.node("Squeeze", [x, self.whole([single[0]])]), shape[:single[0]] + shape[single[0] + 1:])
        at = int(self.rng.integers(len(shape) + 1))
        return self.shaped(self.node("Unsqueeze", [x, self.whole([at])]), shape[:at] + [1] + shape[at:])

    def transposed(self, x):
        order = [int(i) for i in self.rng.permutation(len(self.shapes[x]))]
        return self.shaped(self.node("Transpose", [x], perm=order), [self.shapes[x][i] for i in order])

    def joined(self, x):
        axis, shape = self.feature_axis(x), list(self.shapes[x])
        if axis is None or np.prod([extent or 1 for extent in shape]) > 60:
            return x
        parts = [x, x]
        if self.rng.random() < 0.5:
            parts[1] = self.node("Neg", [x])
        shape[axis] *= 2
        return self.shaped(self.node("Concat", self.ordered(*parts), axis=self.signed(axis, x)), shape)

    def reduced_to(self, x):
        shape = list(self.shapes[x])
        features = [i for i, extent in enumerate(shape) if extent]
        if not features:
            return x
        axes = sorted(int(i) for i in self.rng.choice(features, size=int(self.rng.integers(1, len(features) + 1)), replace=False))
        keep = int(self.rng.integers(2))
        operator = str(self.rng.choice(["Sum", "Mean", "Min", "Max", "L1", "L2", "SumSquare", "LogSumExp", "Prod"]))
        name = self.node("Reduce" + operator, [x, self.whole(axes)], keepdims=keep)
        return self.shaped(name, [1 if i in axes else extent for i, extent in enumerate(shape) if keep or i not in axes])

    def selected(self, x):
        axis, shape, rng = self.feature_axis(x), list(self.shapes[x]), self.rng
        if axis is None:
            return x
        extent = shape[axis]
        kind = int(rng.integers(4))
        if kind == 0:
            first, step = int(rng.integers(extent)), int(rng.choice([1, 2, -1]))
            end = 2**62 if step > 0 else -2**62
            shape[axis] = len(range(first, extent if step > 0 else -1, step))
            return self.shaped(self.node("Slice", [x] + [self.whole([n]) for n in (first, end, self.signed(axis, x), step)]), shape)
        if kind == 1:
            times = [1] * len(shape)
            times[axis] = 2 if np.prod([extent or 1 for extent in shape]) < 60 else 1
            shape[axis] *= times[axis]
            return self.shaped(self.node("Tile", [x, self.whole(times)]), shape)
        if kind == 2 and shape.index(0) > 0:
            indices = rng.integers(-shape[0], shape[0], size=(2, 1))
            return self.shaped(self.node("GatherND", [x, self.tensor(indices)]), [2] + shape[1:])
        size = [(), (1,), (3,), (2, 2)][int(rng.integers(4))]
        if len(shape) + len(size) > 5:
            return x
        indices = self.tensor(rng.integers(-extent, extent, size=size))
        return self.shaped(self.node("Gather", [x, indices], axis=self.signed(axis, x)), shape[:axis] + list(size) + shape[axis + 1:])

    def times_matrix(self, x):
        shape, rng = list(self.shapes[x]), self.rng
        n = int(rng.integers(1, 4))
        if shape[-1] != 0 and (len(shape) < 2 or rng.random() < 0.6):
            ahead = [extent if extent and rng.random() < 0.5 else 1 for extent in shape[:-2]]
            if len(shape) == 2 and rng.random() < 0.4:
                ahead = [2]
            matrix = self.numbers(*ahead, shape[-1], n)
            ahead = ahead if len(shape) == 2 else shape[:-2]
            return self.shaped(self.node("MatMul", [x, matrix]), ahead + shape[-2:-1] + [n])
        if len(shape) >= 2 and shape[-2] != 0:
            return self.shaped(self.node("MatMul", [self.numbers(n, shape[-2]), x]), shape[:-2] + [n, shape[-1]])
        return x

    def times_each_other(self, x):
        shape = list(self.shapes[x])
        if len(shape) < 3 or 0 in shape[-2:] or np.prod([extent or 1 for extent in shape]) > 40:
            return x
        other = self.node("Transpose", [x], perm=[*range(len(shape) - 2), len(shape) - 1, len(shape) - 2])
        return self.shaped(self.node("MatMul", [x, other]), shape[:-1] + [shape[-2]])

    def einsum(self, x):
        shape, rng = self.shapes[x], self.rng
        letters = "abcde"[:len(shape)]
        batch = letters[shape.index(0)]
        shared = [letter for letter in letters if letter != batch and rng.random() < 0.7]
        kept = [letter for letter in letters if letter == batch or rng.random() < 0.5] + ["z"]
        if any(letter not in kept for letter in letters if letter not in shared and letter != batch):
            kept = [letter for letter in letters if letter not in shared or letter in kept] + ["z"]
        rng.shuffle(kept)
        extents = dict(zip(letters, shape)) | {"z": 2}
        weights = self.numbers(*(extents[letter] for letter in shared), 2)
        equation = letters + "," + "".join(shared) + "z->" + "".join(kept)
        name = self.node("Einsum", [x, weights], equation=equation)
        return self.shaped(name, [extents[letter] for letter in kept])

    def row_function(self, x):
        axis = self.feature_axis(x)
        if axis is None:
            return x
        kind = int(self.rng.integers(3))
        if kind == 0:
            return self.shaped(self.node("CumSum", [x, self.tensor(np.int64(axis))], reverse=int(self.rng.integers(2))), self.shapes[x])
        if kind == 1 and self.shapes[x][-1] > 1:
            scale = self.numbers(self.shapes[x][-1])
            return self.shaped(self.node("LayerNormalization", [x, scale], epsilon=0.125), self.shapes[x])
        return self.shaped(self.node("Softmax", [x], axis=self.signed(axis, x)), self.shapes[x])

    def around(self, x):
        axis, shape = self.feature_axis(x), list(self.shapes[x])
        if axis is None or np.prod([extent or 1 for extent in shape]) > 60:
            return x
        before = [0] * len(shape)
        before[axis], after = 1, [0] * len(shape)
        shape[axis] += 1
        operands = [x, self.whole(before + after)]
        if self.rng.random() < 0.5:
            return self.shaped(self.node("Pad", operands, mode="edge"), shape)
        return self.shaped(self.node("Pad", operands + [self.tensor(np.float64(1.5))]), shape)

    def scattered(self, x):
        shape = self.shapes[x]
        if shape[0] == 0:
            return x
        update = self.node("Slice", [x, self.whole([0]), self.whole([1]), self.whole([0])])
        update = self.node("Mul", [update, self.tensor(np.float64(-2))])
        index = self.whole([[int(self.rng.integers(shape[0]))]])
        return self.shaped(self.node("ScatterND", [x, index, update]), shape)


class RandomGraphs(unittest.TestCase):
    def test_are_what_the_standard_says(self):
        self.compare(RandomGraph)

    def test_of_any_dimensions_are_what_the_standard_says(self):
        self.compare(RandomDimensions)

    def compare(self, kind):
        """The answer may differ from the standard's by what a change of the inputs in their 18th bit does, and by as much
        of its own size. The constants in activations are float32 there, right to 24 bits, and a graph holds at most a dozen
        of them: a sixty-fourth of the change for each, where none grows. An operator or a constant that is read wrongly
        moves the answer in its first digits."""
        shift = 2.0**-18
        with tempfile.TemporaryDirectory(prefix="lockstep-random-") as folder:
            file = pathlib.Path(folder) / "net.onnx"
            for number in range(GRAPHS):
                rng = np.random.default_rng([SEED, number])
                graph = kind(rng)
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
