#!/usr/bin/env python3
"""What a call costs beside its arithmetic, in one run with ONNX Runtime, JAX and PyTorch.

A net of one weight (relu(x/2 + 1/4)) for one sample has no arithmetic to speak of: the time of a call is the call. Beside
it 32-128-128-31 relu for 1, 32 and 4,096 samples. float32, memory bound in advance where a library can. Ours comes from
build/bin/call_overhead, from C++ and C, and where the package `lockstep` is installed from Python too.

    taskset -c 1 build/peers/bin/python benchmarks/call_overhead.py      # onnx, onnxruntime, jax, torch: what there is
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import pairing

ROOT = pairing.ROOT
p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
p.add_argument("--ours", default=os.path.join(ROOT, "build", "bin", "call_overhead"), help="our benchmark program")
p.add_argument("--model", default=os.path.join(ROOT, "testdata", "ocean_relu_32_128_128_31"),
               help="the larger net, without .safetensors or .onnx")
p.add_argument("--budget", type=float, default=1.0, help="seconds of repeats a row (default 1)")
p.add_argument("--json", default="", help="write the rows to this file")
args = p.parse_args()
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"

import numpy as np

BATCHES = {"one weight": [1], "32-128-128-31 relu": [1, 32, 4096]}
rows = []


def add(library, way, net, batch, ns):
    rows.append(dict(library=library, way=way, net=net, batch=batch, ns=pairing.rounded(ns)))
    print(json.dumps(rows[-1]), flush=True)


def run_ours(folder):
    if not os.access(args.ours, os.X_OK):
        print(f"{args.ours} is not there: cmake -S . -B build -D LOCKSTEP_BENCHMARKS=ON && "
              "cmake --build build --target call_overhead", file=sys.stderr)
        return
    done = subprocess.run([args.ours, args.model + ".safetensors", os.path.join(folder, "one.safetensors")],
                          capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        row = json.loads(line)
        add("lockstep", row["way"], row["net"], row["batch"], row["ns"])


def layers_of(net):
    """[(weights [output][input], bias)]"""
    if net == "one weight":
        return [(np.array([[0.5]], np.float32), np.array([0.25], np.float32))]
    import onnx
    from onnx import numpy_helper
    arrays = [numpy_helper.to_array(t) for t in onnx.load(args.model + ".onnx").graph.initializer]
    weights, biases = ([a for a in arrays if a.ndim == n] for n in (2, 1))
    widths = [32, 128, 128, 31]
    return [(w if w.shape == (o, i) else w.T, b) for w, b, i, o in zip(weights, biases, widths, widths[1:])]


def relu_after(i, layers):
    return i + 1 < len(layers) or len(layers) == 1


def ort_call(layers, x):
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
    nodes, constants, value = [], [], "x"
    for i, (w, b) in enumerate(layers):
        constants += [numpy_helper.from_array(np.ascontiguousarray(w), f"w{i}"), numpy_helper.from_array(b, f"b{i}")]
        last = i + 1 == len(layers)
        sum_name = f"s{i}" if relu_after(i, layers) else "y"
        nodes.append(helper.make_node("Gemm", [value, f"w{i}", f"b{i}"], [sum_name], transB=1))
        value = sum_name
        if relu_after(i, layers):
            value = "y" if last else f"h{i}"
            nodes.append(helper.make_node("Relu", [sum_name], [value]))
    outputs = len(layers[-1][1])
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, x.shape[1]])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, outputs])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    y = np.empty((len(x), outputs), np.float32)
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, np.float32, x.shape, x.ctypes.data)
    binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    arrays = (x, y)  # the binding holds their addresses only
    return "bound memory, from Python", lambda arrays=arrays: session.run_with_iobinding(binding)


def jax_call(layers, x):
    import jax
    parameters = [(jax.numpy.asarray(w.T), jax.numpy.asarray(b)) for w, b in layers]

    def forward(h):
        for i, (w, b) in enumerate(parameters):
            h = h @ w + b
            h = jax.nn.relu(h) if relu_after(i, layers) else h
        return h
    compiled, on_device = jax.jit(forward), jax.device_put(x)
    return "jit, from Python", lambda: compiled(on_device).block_until_ready()


def torch_call(layers, x):
    import torch
    torch.set_num_threads(1)
    modules = []
    for i, (w, b) in enumerate(layers):
        linear = torch.nn.Linear(w.shape[1], w.shape[0])
        linear.weight.data, linear.bias.data = torch.from_numpy(w.copy()), torch.from_numpy(b.copy())
        modules += [linear] + ([torch.nn.ReLU()] if relu_after(i, layers) else [])
    net, on_torch = torch.nn.Sequential(*modules).eval(), torch.from_numpy(x)

    def call():
        with torch.inference_mode():
            return net(on_torch)
    return "eager, from Python", call


def own_package_call(layers, x):
    import lockstep
    with tempfile.TemporaryDirectory() as folder:
        from safetensors.numpy import save_file
        path = os.path.join(folder, "net.safetensors")
        tensors = {}
        for i, (w, b) in enumerate(layers):
            tensors[f"{i}.weight"], tensors[f"{i}.bias"] = np.ascontiguousarray(w), b
        words = ["relu" if relu_after(i, layers) else "linear" for i in range(len(layers))]
        save_file(tensors, path, metadata={"activations": ",".join(words)})
        model = lockstep.load(path)
    out = np.empty((len(x), len(layers[-1][1])), np.float32)
    return "from Python", lambda: model(x, out=out)


def least_ns(call):
    import time
    call()
    begin, best, calls = time.perf_counter(), 1e30, 1
    while time.perf_counter() - begin < args.budget:
        start = time.perf_counter_ns()
        for _ in range(calls):
            call()
        ns = time.perf_counter_ns() - start
        if ns < 1e5:
            calls *= 2
        else:
            best = min(best, ns / calls)
    return best


with tempfile.TemporaryDirectory() as folder:
    run_ours(folder)
    for library, make, needs in (("ONNX Runtime", ort_call, ("onnx", "onnxruntime")), ("JAX", jax_call, ("jax",)),
                                 ("PyTorch", torch_call, ("torch",)),
                                 ("lockstep", own_package_call, ("lockstep", "safetensors"))):
        if not pairing.importable(*needs):
            continue
        for net, batches in BATCHES.items():
            layers = layers_of(net)
            for batch in batches:
                way, call = make(layers, np.full((batch, layers[0][0].shape[1]), 0.5, np.float32))
                add(library, way, net, batch, least_ns(call))
    run_ours(folder)  # again, so that both ends of the run are seen

columns = [(net, batch) for net, batches in BATCHES.items() for batch in batches]
best = {}
for r in rows:
    key = (r["library"] + ", " + r["way"], r["net"], r["batch"])
    best[key] = min(best.get(key, 1e30), r["ns"])
print("\nns a call" + " " * 31 + "".join(f"{net + ', ' + str(batch):>26}" for net, batch in columns))
for who in dict.fromkeys(key[0] for key in best):
    print(f"{who:40}" + "".join(f"{best.get((who, *c), float('nan')):26,.4g}" for c in columns))
if args.json:
    with open(args.json, "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]\n")
