"""Small nets as PyTorch (both exporters) and scikit-learn export them, with the tools' own answers.

    pip install torch onnxscript onnx skl2onnx scikit-learn numpy h5py
    python make_exported.py FOLDER

Each NAME.onnx comes with NAME.samples.h5: input [16, inputs] float32 and output [16, outputs], what the tool itself
answers (scikit-learn: in float64).
"""
import pathlib
import sys

import h5py
import numpy as np
import onnx
import torch
from torch import nn

folder = pathlib.Path(sys.argv[1])
rng = np.random.default_rng(7)


def without_paths(path):
    """The dynamo exporter writes stack traces, with this machine's paths, into every node."""
    model = onnx.load(path)
    for node in model.graph.node:
        del node.metadata_props[:]
        node.ClearField("doc_string")
    for value in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
        del value.metadata_props[:]
    onnx.save(model, path)


def save_samples(name, x, y):
    with h5py.File(folder / f"{name}.samples.h5", "w") as file:
        file["input"] = x
        file["output"] = np.asarray(y).reshape(len(x), -1)


class Scaled(nn.Module):
    """Normalisation as users write it into a module."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 6), nn.SiLU(), nn.Linear(6, 5), nn.Mish(), nn.Linear(5, 2))
        self.register_buffer("mean", torch.tensor([0.5, -1.0, 2.0]))
        self.register_buffer("deviation", torch.tensor([2.0, 0.5, 3.0]))

    def forward(self, x):
        return self.net((x - self.mean) / self.deviation) * 4.0 + 1.5


def torch_models():
    yield "gelu", nn.Sequential(nn.Linear(3, 7), nn.GELU(), nn.Linear(7, 4), nn.GELU(approximate="tanh"),
                                nn.Linear(4, 2))
    yield "scaled", Scaled()
    yield "batchnorm", nn.Sequential(nn.Linear(3, 6, bias=False), nn.BatchNorm1d(6), nn.LeakyReLU(0.2), nn.Dropout(0.5),
                                     nn.Linear(6, 5), nn.Hardswish(), nn.Linear(5, 4), nn.ELU(0.7), nn.Linear(4, 2))


torch.manual_seed(7)
for name, net in torch_models():
    for module in net.modules():
        if isinstance(module, nn.BatchNorm1d):
            with torch.no_grad():
                module.running_mean.uniform_(-0.5, 0.5)
                module.running_var.uniform_(0.5, 2)
                module.weight.uniform_(0.5, 1.5)
                module.bias.uniform_(-0.5, 0.5)
    net.eval()
    x = torch.from_numpy(rng.normal(size=(16, 3)).astype(np.float32))
    with torch.no_grad():
        y = net(x).numpy()
    torch.onnx.export(net, (x,), folder / f"torch_{name}_legacy.onnx", dynamo=False, opset_version=17,
                      input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})
    torch.onnx.export(net, (x,), folder / f"torch_{name}_dynamo.onnx", dynamo=True, input_names=["x"],
                      output_names=["y"], dynamic_shapes=({0: torch.export.Dim("batch")},), external_data=False)
    without_paths(folder / f"torch_{name}_dynamo.onnx")
    for exporter in ("legacy", "dynamo"):
        save_samples(f"torch_{name}_{exporter}", x.numpy(), y)

from skl2onnx import to_onnx
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

x = rng.normal(size=(200, 3)).astype(np.float32)
target = np.stack([np.sin(x[:, 0]), x[:, 1] * x[:, 2]], axis=1)
net = make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(8, 6), activation="tanh", random_state=7))
net.fit(x, target)
(folder / "sklearn_mlp.onnx").write_bytes(to_onnx(net, x[:1]).SerializeToString())
save_samples("sklearn_mlp", x[:16], net.predict(x[:16].astype(np.float64)))

# Labels beside the probabilities, as text and as integers; the latter's probabilities as a list of maps.
from sklearn.neural_network import MLPClassifier

sign = np.array(["falling", "level", "rising"])[np.digitize(target[:, 0], [-0.3, 0.3])]
for name, classes, zipmap in (("sklearn_classifier", sign, False), ("sklearn_zipmap", sign == "rising", True)):
    net = make_pipeline(StandardScaler(), MLPClassifier(hidden_layer_sizes=(6,), activation="tanh", random_state=7))
    net.fit(x, classes.astype(int) if zipmap else classes)
    (folder / f"{name}.onnx").write_bytes(to_onnx(net, x[:1], options={"zipmap": zipmap}).SerializeToString())
    save_samples(name, x[:16], net.predict_proba(x[:16].astype(np.float64)))

from sklearn.linear_model import LogisticRegression

net = LogisticRegression().fit(x, sign)
(folder / "sklearn_logistic.onnx").write_bytes(to_onnx(net, x[:1], options={"zipmap": False}).SerializeToString())
save_samples("sklearn_logistic", x[:16], net.predict_proba(x[:16].astype(np.float64)))
