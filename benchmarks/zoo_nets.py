"""The nets of zoo_vs_ort.py: what surrogates are built of, with random weights, as ONNX files."""
import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper


class Net:
    """A graph that grows node by node; values are names, widths are kept beside them."""

    def __init__(self, name, dtype=np.float32):
        self.name, self.dtype = name, dtype
        self.random = np.random.default_rng(1)
        self.nodes, self.numbers, self.inputs, self.outputs, self.widths = [], [], [], [], {}

    def constant(self, values, dtype=None):
        name = f"c{len(self.numbers)}"
        self.numbers.append(numpy_helper.from_array(np.asarray(values, dtype or self.dtype), name))
        return name

    def indices(self, *values):
        return self.constant(values, np.int64)

    def node(self, kind, inputs, width, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=f"{kind.lower()}{len(self.nodes)}", **attributes))
        self.widths[name] = width
        return name

    def input(self, width, name="x"):
        self.inputs.append(name)
        self.widths[name] = width
        return name

    def output(self, value, name="y"):
        self.nodes[[node.output[0] for node in self.nodes].index(value)].output[0] = name
        for node in self.nodes:
            node.input[:] = [name if read == value else read for read in node.input]
        self.widths[name] = self.widths[value]
        self.outputs.append(name)

    def normal(self, *shape, scale=1.0):
        return self.random.normal(size=shape) * scale

    def dense(self, x, outputs):
        """As torch.nn.Linear is exported."""
        inputs = self.widths[x]
        weights = self.constant(self.normal(outputs, inputs, scale=inputs**-0.5))
        return self.node("Gemm", [x, weights, self.constant(self.normal(outputs, scale=0.1))], outputs, transB=1)

    def activate(self, kind, x):
        if kind == "silu":
            return self.multiply(x, self.activate("Sigmoid", x))
        return self.node(kind, [x], self.widths[x])

    def add(self, a, b):
        return self.node("Add", [a, b], max(self.widths[a], self.widths[b]))

    def multiply(self, a, b):
        return self.node("Mul", [a, b], max(self.widths[a], self.widths[b]))

    def concatenate(self, *parts):
        return self.node("Concat", list(parts), sum(self.widths[part] for part in parts), axis=1)

    def layer_norm(self, x):
        width = self.widths[x]
        scale, shift = self.constant(1 + self.normal(width, scale=0.1)), self.constant(self.normal(width, scale=0.1))
        return self.node("LayerNormalization", [x, scale, shift], width, axis=-1, epsilon=1e-5)

    def batch_norm(self, x):
        width = self.widths[x]
        numbers = [1 + self.normal(width, scale=0.1), self.normal(width, scale=0.1), self.normal(width, scale=0.1),
                   1 + self.random.random(width)]
        return self.node("BatchNormalization", [x] + [self.constant(n) for n in numbers], width, epsilon=1e-5)

    def columns(self, x, first, end):
        return self.node("Slice", [x, self.indices(first), self.indices(end), self.indices(1)], end - first)

    def stack(self, x, widths, kind, last=None):
        for width in widths:
            x = self.activate(kind, self.dense(x, width))
        return x if last is None else self.dense(x, last)

    def save(self, path):
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        port = lambda name: helper.make_tensor_value_info(name, kind, ["batch", self.widths[name]])
        graph = helper.make_graph(self.nodes, self.name, [port(n) for n in self.inputs],
                                  [port(n) for n in self.outputs], self.numbers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        checker.check_model(model)
        with open(path, "wb") as file:
            file.write(model.SerializeToString())


def residual(net, width):
    """Four blocks x + W gelu(W layer_norm(x))."""
    x = net.dense(net.input(32), width)
    for _ in range(4):
        x = net.add(x, net.dense(net.activate("Gelu", net.dense(net.layer_norm(x), width)), width))
    net.output(net.dense(net.layer_norm(x), 16))


def swiglu(net):
    """Three blocks x + W (silu(W x) * W x), 128 wide, 256 inside."""
    x = net.dense(net.input(32), 128)
    for _ in range(3):
        x = net.add(x, net.dense(net.multiply(net.activate("silu", net.dense(x, 256)), net.dense(x, 256)), 128))
    net.output(net.dense(x, 16))


def concatenated(net):
    """Each of five layers reads all before it."""
    x = net.input(16)
    for _ in range(5):
        x = net.concatenate(x, net.activate("Relu", net.dense(x, 32)))
    net.output(net.dense(x, 8))


def deeponet(net):
    branch = net.stack(net.input(100, "u"), [128, 128], "Tanh", 64)
    trunk = net.activate("Tanh", net.stack(net.input(2, "at"), [128, 128], "Tanh", 64))
    product = net.multiply(branch, trunk)
    total = net.node("ReduceSum", [product, net.indices(1)], 1, keepdims=1)
    net.output(net.node("Add", [total, net.constant([0.1])], 1))


def stack(inputs, widths, kind, outputs):
    def build(net):
        net.output(net.stack(net.input(inputs), widths, kind, outputs))
    return build


def mixture(net):
    """Four experts weighted by a softmax gate."""
    x = net.input(16)
    gate = net.node("Softmax", [net.stack(x, [32], "Tanh", 4)], 4, axis=1)
    parts = [net.multiply(net.stack(x, [64, 64], "Tanh", 8), net.columns(gate, i, i + 1)) for i in range(4)]
    total = parts[0]
    for part in parts[1:]:
        total = net.add(total, part)
    net.output(total)


def ports(net):
    """State and parameters, normalised; two heads, in physical units and between bounds."""
    scaled = []
    for name, width in (("state", 20), ("parameters", 5)):
        x = net.node("Sub", [net.input(width, name), net.constant(net.normal(width))], width)
        scaled.append(net.node("Div", [x, net.constant(1 + net.random.random(width))], width))
    h = net.stack(net.concatenate(*scaled), [128, 128], "Relu")
    for name, width in (("tendency", 20), ("flux", 4)):
        y = net.node("Mul", [net.dense(h, width), net.constant(1 + net.random.random(width))], width)
        y = net.node("Add", [y, net.constant(net.normal(width))], width)
        net.output(net.node("Clip", [y, net.constant(np.asarray(-2.0)), net.constant(np.asarray(2.0))], width), name)


def fourier(net):
    x = net.node("MatMul", [net.input(3), net.constant(net.normal(3, 64))], 64)
    net.output(net.stack(net.concatenate(net.activate("Sin", x), net.activate("Cos", x)), [128, 128], "Gelu", 3))


def batch_normalised(net):
    x = net.input(32)
    for _ in range(3):
        x = net.activate("Relu", net.batch_norm(net.dense(x, 128)))
    net.output(net.dense(x, 8))


def ensemble(net):
    """The mean of five members."""
    x = net.input(10)
    members = [net.stack(x, [64, 64], "Tanh", 3) for _ in range(5)]
    total = members[0]
    for member in members[1:]:
        total = net.add(total, member)
    net.output(net.node("Div", [total, net.constant(np.asarray(5.0))], 3))


def tied(net):
    """One layer applied six times: z = tanh(V z + U x + b)."""
    x = net.input(8)
    drive = net.dense(x, 64)
    weights = net.constant(net.normal(64, 64, scale=64**-0.5))
    z = net.activate("Tanh", drive)
    for _ in range(5):
        z = net.activate("Tanh", net.add(net.node("MatMul", [z, weights], 64), drive))
    net.output(net.dense(z, 4))


# name: (what builds it, its numbers)
NETS = {
    "residual, 64 wide": (lambda net: residual(net, 64), np.float32),
    "residual, 256 wide": (lambda net: residual(net, 256), np.float32),
    "SwiGLU": (swiglu, np.float32),
    "concatenated": (concatenated, np.float32),
    "DeepONet": (deeponet, np.float32),
    "mixture of experts": (mixture, np.float32),
    "two ports": (ports, np.float32),
    "Fourier features": (fourier, np.float32),
    "BatchNorm": (batch_normalised, np.float32),
    "ensemble of five": (ensemble, np.float32),
    "tied weights": (tied, np.float32),
    "200-64-8-64-200 tanh": (stack(200, [64, 8, 64], "Tanh", 200), np.float32),
    "8-512x3-4 relu": (stack(8, [512] * 3, "Relu", 4), np.float32),
    "30-1024x2-10 tanh": (stack(30, [1024] * 2, "Tanh", 10), np.float32),
    "6-32x8-2 silu": (stack(6, [32] * 8, "silu", 2), np.float32),
    "8-64x3-4 softplus": (stack(8, [64] * 3, "Softplus", 4), np.float32),
    "16-128x2-8 elu": (stack(16, [128] * 2, "Elu", 8), np.float32),
    "SwiGLU, float64": (swiglu, np.float64),
    "ensemble, float64": (ensemble, np.float64),
}


def save(name, path):
    build, dtype = NETS[name]
    net = Net("zoo", dtype)
    build(net)
    net.save(path)
