"""Nets that are no plain stacks, exported by PyTorch, with the answers of PyTorch and of ONNX Runtime.

    pip install torch onnxscript onnx onnxruntime numpy h5py
    python make_graphs.py FOLDER

Each NAME.onnx comes with NAME.graph.h5: groups `inputs`, `outputs_f64` (PyTorch in float64, the weights being the file's
float32 ones) and `outputs_f32` (ONNX Runtime on the file), each with a data set [16, features] for every port.
"""
import copy
import pathlib
import sys

import h5py
import numpy as np
import onnx
import onnxruntime
import torch
from torch import nn
from torch.nn import functional as F

folder = pathlib.Path(sys.argv[1])
rng = np.random.default_rng(11)
torch.manual_seed(11)


class Residual(nn.Module):
    """Blocks that add to what they read; PyTorch spells gelu out at opset 13."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(3, 8), nn.Linear(8, 2)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(8, 12), nn.GELU(), nn.Linear(12, 8)) for _ in range(2))

    def forward(self, x):
        x = torch.tanh(self.first(x))
        for block in self.blocks:
            x = x + block(x)
        return self.last(x)


class Concatenated(nn.Module):
    """Two branches and the input itself, joined; then a gated linear unit cut out of one layer."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 5), nn.Linear(4, 6)
        self.gate, self.last = nn.Linear(15, 10), nn.Linear(5, 3)

    def forward(self, x):
        joined = torch.cat([torch.relu(self.a(x)), F.silu(self.b(x)), x], dim=1)
        value, gate = self.gate(joined).chunk(2, dim=1)
        return self.last(value * torch.sigmoid(gate))


class Ports(nn.Module):
    """State and forcing in; tendency, a flux that cannot be negative and a diagnostic of one number out."""

    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(7, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh())
        self.tendency, self.flux, self.total = nn.Linear(16, 4), nn.Linear(16, 3), nn.Linear(16, 1)
        self.register_buffer("mean", torch.tensor([0.5, -1.0, 2.0]))
        self.register_buffer("deviation", torch.tensor([2.0, 0.5, 3.0]))

    def forward(self, state, forcing):
        h = self.trunk(torch.cat([state, (forcing - self.mean) / self.deviation], dim=1))
        flux = torch.clamp(self.flux(h), min=0.0)
        return self.tendency(h) * 0.25 + state, flux, self.total(h)[:, 0] * flux[:, 1]


class Normalised(nn.Module):
    """Layer normalisation, one operator or, in old opsets, in its pieces."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 10), nn.LayerNorm(10), nn.ReLU(), nn.Linear(10, 6),
                                 nn.LayerNorm(6, elementwise_affine=False), nn.Softplus(), nn.Linear(6, 2))
        with torch.no_grad():
            self.net[1].weight.uniform_(0.5, 1.5)
            self.net[1].bias.uniform_(-0.5, 0.5)

    def forward(self, x):
        return self.net(x)


class Mixture(nn.Module):
    """Experts weighted by softmax; a batch normalisation in front of everything."""

    def __init__(self):
        super().__init__()
        self.norm, self.gate = nn.BatchNorm1d(3), nn.Linear(3, 3)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(3, 6), nn.ELU(), nn.Linear(6, 2)) for _ in range(3))
        with torch.no_grad():
            self.norm.running_mean.uniform_(-0.5, 0.5)
            self.norm.running_var.uniform_(0.5, 2)
            self.norm.weight.uniform_(0.5, 1.5)
            self.norm.bias.uniform_(-0.5, 0.5)

    def forward(self, x):
        x = self.norm(x)
        weights = torch.softmax(self.gate(x), dim=-1)
        return sum(weights[:, i:i + 1] * expert(x) for i, expert in enumerate(self.experts))


class Physics(nn.Module):
    """What people write between layers: powers, roots, logarithms, limits, masks, sums, columns in another order."""

    def __init__(self):
        super().__init__()
        self.net, self.slope = nn.Linear(6, 5), nn.PReLU(5)
        self.register_buffer("mask", torch.tensor([True, False, True, True, False]))
        self.register_buffer("order", torch.tensor([4, 0, 3]))

    def forward(self, x):
        radius = torch.sqrt(torch.sum(x * x, dim=1, keepdim=True))
        features = torch.cat([torch.log(1 + torch.abs(x)), torch.exp(-radius), radius ** 1.5, 1 / (1 + radius)], dim=1)
        y = self.slope(self.net(features))
        y = torch.where(self.mask, y, -y)
        y = torch.minimum(y, torch.tensor([2.0, 1.0, 0.5, 2.0, 1.0])) - y.mean(dim=1, keepdim=True)
        y = torch.maximum(y, 0.125 * y ** 3)
        return torch.cat([torch.index_select(y, 1, self.order), F.log_softmax(y, dim=1), F.softshrink(y), F.hardsigmoid(y)], dim=1)


# name, net, inputs, opset (0: the newest exporter's own), names of outputs
cases = [
    ("residual_opset13", Residual(), {"x": 3}, 13, ["y"]),
    ("residual_dynamo", Residual(), {"x": 3}, 0, ["y"]),
    ("concatenated_opset9", Concatenated(), {"x": 4}, 9, ["y"]),
    ("concatenated_dynamo", Concatenated(), {"x": 4}, 0, ["y"]),
    ("ports_opset11", Ports(), {"state": 4, "forcing": 3}, 11, ["tendency", "flux", "total"]),
    ("ports_dynamo", Ports(), {"state": 4, "forcing": 3}, 0, ["tendency", "flux", "total"]),
    ("normalised_opset12", Normalised(), {"x": 3}, 12, ["y"]),
    ("normalised_opset17", Normalised(), {"x": 3}, 17, ["y"]),
    ("normalised_dynamo", Normalised(), {"x": 3}, 0, ["y"]),
    ("mixture_opset14", Mixture(), {"x": 3}, 14, ["y"]),
    ("mixture_dynamo", Mixture(), {"x": 3}, 0, ["y"]),
    ("physics_opset18", Physics(), {"x": 3}, 18, ["y"]),
    ("physics_dynamo", Physics(), {"x": 3}, 0, ["y"]),
]


def without_paths(path):
    """The dynamo exporter writes stack traces, with this machine's paths, into every node."""
    model = onnx.load(path)
    for node in model.graph.node:
        del node.metadata_props[:]
        node.ClearField("doc_string")
    for value in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
        del value.metadata_props[:]
    del model.graph.metadata_props[:]
    del model.metadata_props[:]
    onnx.save(model, path)


for name, net, inputs, opset, outputs in cases:
    net.eval()
    arrays = {port: rng.normal(size=(16, width)).astype(np.float32) for port, width in inputs.items()}
    tensors = tuple(torch.from_numpy(array) for array in arrays.values())
    path = folder / f"graph_{name}.onnx"
    if opset:
        torch.onnx.export(net, tensors, path, dynamo=False, opset_version=opset, input_names=list(inputs),
                          output_names=outputs, dynamic_axes={port: {0: "batch"} for port in [*inputs, *outputs]})
    else:
        torch.onnx.export(net, tensors, path, dynamo=True, input_names=list(inputs), output_names=outputs,
                          dynamic_shapes=tuple({0: torch.export.Dim("batch")} for _ in inputs), external_data=False)
    without_paths(path)
    with torch.no_grad():
        exact = copy.deepcopy(net).double()(*(tensor.double() for tensor in tensors))
    exact = exact if isinstance(exact, tuple) else (exact,)
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    answers = session.run(outputs, arrays)
    with h5py.File(folder / f"graph_{name}.graph.h5", "w") as file:
        for port, array in arrays.items():
            file[f"inputs/{port}"] = array
        for port, double, single in zip(outputs, exact, answers):
            file[f"outputs_f64/{port}"] = double.numpy().reshape(16, -1)
            file[f"outputs_f32/{port}"] = single.reshape(16, -1)
    print(name, max(float(np.abs(d.numpy() - s).max()) for d, s in zip(exact, answers)))
