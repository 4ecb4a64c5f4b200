"""Nets of PyTorch that are no stacks, as scientists write them, exported by both exporters with an open batch:
Lockstep's answers in float64 against PyTorch's own.

    python pytorch_nets_test.py PACKAGE      PACKAGE: the folder of the Python package; in the environment that
                                             scripts/exporter_environment.sh makes
"""
import copy
import pathlib
import sys
import tempfile
import unittest

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations

sys.path.insert(0, sys.argv[1])
import lockstep


def mlp(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 12), nn.Tanh(), nn.Linear(12, outputs))


class Net(nn.Module):
    """forward(net, x [batch, 4]) with two nets 4 -> 3, one 1 -> 3, and weights of an ensemble."""

    def __init__(self, forward):
        super().__init__()
        self.function, self.one, self.two, self.each = forward, mlp(4, 3), mlp(4, 3), mlp(1, 3)
        self.members, self.bias = nn.Parameter(torch.randn(5, 4, 3)), nn.Parameter(torch.randn(5, 1, 3))
        self.groups, self.gain = nn.GroupNorm(2, 4), nn.Parameter(torch.randn(3, 4))
        self.bilinear, self.normed = nn.Bilinear(2, 2, 3), parametrizations.weight_norm(nn.Linear(4, 3))
        self.register_buffer("centres", torch.randn(6, 4))
        self.register_buffer("columns", torch.tensor([2, 0, 3]))

    def forward(self, x):
        return self.function(self, x)


def stacked(axis):
    def forward(net, x):
        members = torch.stack([net.one(x), net.two(x)], axis)
        return torch.cat([members.mean(axis), members.std(axis)], -1)
    return forward


def filled(net, x):
    y = torch.zeros_like(x)
    y[:, 0] = x[:, 1]
    y[:, 1:4] = net.one(x)
    return y


def splines(net, x):
    bumps = torch.exp(-((x.unsqueeze(-1) - torch.linspace(-1, 1, 5, dtype=x.dtype)) / 0.4) ** 2)
    return torch.einsum("bif,of->bo", bumps, net.gain.repeat(1, 2)[:, :5])


NETS = {
    "ensemble stacked in front": stacked(0),
    "ensemble stacked in the middle": stacked(1),
    "ensemble stacked behind": stacked(-1),
    "ensemble of matrices": lambda net, x: torch.tanh(x @ net.members + net.bias).mean(0),
    "ensemble by einsum": lambda net, x: torch.einsum("bi,eio->beo", x, net.members).amax(1),
    "ensemble by bmm": lambda net, x: torch.baddbmm(net.bias, x.unsqueeze(0).expand(5, -1, -1), net.members).sum(0),
    "mixture": lambda net, x: (torch.stack([net.one(x), net.two(x)], -1) * torch.softmax(x[:, :2], -1).unsqueeze(1)).sum(-1),
    "radial basis": lambda net, x: torch.exp(-(x.unsqueeze(1) - net.centres).pow(2).sum(-1)),
    "splines": splines,
    "one net for each feature": lambda net, x: net.each(x.unsqueeze(-1)).flatten(1),
    "matrix of each sample": lambda net, x: torch.bmm(net.centres[:4, :3].expand(x.shape[0], -1, -1), net.one(x).unsqueeze(2)).squeeze(2),
    "matrix times vector": lambda net, x: torch.einsum("bij,bj->bi", net.each(x.unsqueeze(-1)).view(-1, 4, 3), net.one(x)),
    "attention": lambda net, x: (torch.softmax(x.unsqueeze(2) * x.unsqueeze(1), -1) @ net.each(x.unsqueeze(-1))).sum(1),
    "group normalisation": lambda net, x: net.groups(x),
    "unit length": lambda net, x: functional.normalize(net.one(x), dim=-1),
    "deviation of features": lambda net, x: net.one((x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-3)),
    "parameters beside the input": lambda net, x: torch.cat([net.one(x), net.gain[:1].expand(x.shape[0], -1)], 1),
    "zeros beside the input": lambda net, x: torch.cat([net.one(x), torch.zeros(x.shape[0], 2, dtype=x.dtype)], 1),
    "chosen columns": lambda net, x: x[:, net.columns] + x[:, [0, 1, 3]] + x.index_select(1, net.columns),
    "filled columns": filled,
    "products of columns": lambda net, x: (x.unsqueeze(2) * x.unsqueeze(1))[:, [0, 0, 1, 3], [0, 2, 3, 3]],
    "repeated columns": lambda net, x: torch.cat([x.repeat(1, 2), x.repeat_interleave(2, dim=1)], 1),
    "positive weights": lambda net, x: functional.linear(x, functional.softplus(net.gain)),
    "normed weights": lambda net, x: net.normed(x),
    "difference from the origin": lambda net, x: net.one(x) - net.one(torch.zeros_like(x)),
    "bilinear": lambda net, x: net.bilinear(x[:, :2], x[:, 2:]),
    "running sum": lambda net, x: torch.cumsum(functional.softplus(net.one(x)), 1),
    "logarithm of a sum": lambda net, x: torch.logsumexp(net.one(x), 1, keepdim=True),
    "forces": lambda net, x: torch.cross(net.one(x), x[:, :3], dim=1),
}
# What an exporter itself cannot write.
NOT_WRITTEN = {("bilinear", "legacy")}
# Written by the older exporter as indices across the batch: refused.
REFUSED = {("filled columns", "legacy")}


class Nets(unittest.TestCase):
    def test_that_are_no_stacks_arrive(self):
        """The bound: what exporters fold, they fold in float32, 24 bits; the nets are a few layers of a dozen terms."""
        x = torch.randn(11, 4, dtype=torch.float64)
        for name, forward in NETS.items():
            torch.manual_seed(8)
            net = Net(forward).eval().requires_grad_(False)
            theirs = copy.deepcopy(net).double()(x).numpy()
            for exporter in ("dynamo", "legacy"):
                if (name, exporter) in NOT_WRITTEN:
                    continue
                with self.subTest(net=name, exporter=exporter):
                    file = pathlib.Path(self.folder) / "net.onnx"
                    if exporter == "dynamo":
                        torch.onnx.export(net, (x[:2].float(),), file, dynamo=True, external_data=False, verbose=False,
                                          dynamic_shapes=({0: torch.export.Dim("batch")},))
                    else:
                        torch.onnx.export(net, (x[:2].float(),), file, dynamo=False, input_names=["x"],
                                          dynamic_axes={"x": {0: "batch"}})
                    if (name, exporter) in REFUSED:
                        with self.assertRaises(lockstep.Unsupported) as found:
                            lockstep.load(file)
                        self.assertRegex(found.exception.field, "node \".*\" .*, opset ")
                        self.assertTrue(found.exception.remedy)
                        continue
                    ours = lockstep.load(file)(x.numpy())
                    self.assertLess(np.max(np.abs(ours - theirs) / (1 + np.abs(theirs))), 2.0**-18)

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="lockstep-pytorch-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
