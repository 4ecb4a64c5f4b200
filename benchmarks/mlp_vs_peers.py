#!/usr/bin/env python3
"""Evaluating nets in batches, against ONNX Runtime and JAX, in one run.

float32, row-major samples in and out, one call a batch; the nets are those of mlp_bench, the weights Glorot's.
`ort` is ONNX Runtime with memory bound to it, called from Python; `-chunks` cut a large batch by hand into pieces of
4,096 that stay in cache. Ours comes from build/bin/mlp_bench, timed again beside every peer so that both see the same
machine; the ratio is of the best times.

    python3 benchmarks/mlp_vs_peers.py --threads 1 --workloads ocean --sizes 1,16,256,4096,65536,1048576
"""
import pairing

args = pairing.start(__doc__.split("\n")[0], [1, 16, 256, 4096, 65536], "mlp_bench")

import json
import os
import subprocess
import sys

import numpy as np

NETS = {
    "ocean_32_128_128_31_relu": ([32, 128, 128, 31], "relu"),
    "lorenz_3_100_3_tanh": ([3, 100, 3], "tanh"),
    "chain_4_32_16_4_tanh": ([4, 32, 16, 4], "tanh"),
    "peaks_2_20_5_1_relu": ([2, 20, 5, 1], "relu"),
    "qlknn_10_133x5_8_tanh": ([10, 133, 133, 133, 133, 133, 8], "tanh"),
}
CHUNK = 4096


def glorot_layers(widths):
    """Weights [output][input] and biases."""
    random = np.random.default_rng(0)
    layers = []
    for inputs, outputs in zip(widths[:-1], widths[1:]):
        limit = np.sqrt(6.0 / (inputs + outputs))
        layers.append((random.uniform(-limit, limit, (outputs, inputs)).astype(np.float32),
                       random.uniform(-0.1, 0.1, outputs).astype(np.float32)))
    return layers


def in_float64(layers, activation, x):
    h = x.astype(np.float64)
    for i, (weights, bias) in enumerate(layers):
        h = h @ weights.T.astype(np.float64) + bias
        if i + 1 < len(layers):
            h = np.maximum(h, 0) if activation == "relu" else np.tanh(h)
    return h


def onnx_model(layers, activation):
    from onnx import TensorProto, helper, numpy_helper
    nodes, constants, value = [], [], "x"
    for i, (weights, bias) in enumerate(layers):
        constants += [numpy_helper.from_array(weights, f"weights{i}"), numpy_helper.from_array(bias, f"bias{i}")]
        last = i + 1 == len(layers)
        result = "y" if last else f"sum{i}"
        nodes.append(helper.make_node("Gemm", [value, f"weights{i}", f"bias{i}"], [result], transB=1))
        if not last:
            value = f"hidden{i}"
            nodes.append(helper.make_node("Relu" if activation == "relu" else "Tanh", [result], [value]))
    inputs, outputs = layers[0][0].shape[1], layers[-1][0].shape[0]
    graph = helper.make_graph(nodes, "mlp", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", inputs])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", outputs])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model.SerializeToString()


def ort_calls(layers, activation, x):
    """Yields (name, version, call) for the whole batch at once, and in pieces where it is large."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(onnx_model(layers, activation), options,
                                           providers=["CPUExecutionProvider"])
    y = np.empty((len(x), layers[-1][0].shape[0]), np.float32)
    for name, piece in (("ort", len(x)), (f"ort-chunks{CHUNK}", CHUNK)):
        if name != "ort" and len(x) <= CHUNK:
            continue
        bindings = []
        for i in range(0, len(x), piece):
            binding = session.io_binding()
            part_in, part_out = x[i:i + piece], y[i:i + piece]
            binding.bind_input("x", "cpu", 0, np.float32, part_in.shape, part_in.ctypes.data)
            binding.bind_output("y", "cpu", 0, np.float32, part_out.shape, part_out.ctypes.data)
            bindings.append(binding)

        def call(bindings=bindings):
            for binding in bindings:
                session.run_with_iobinding(binding)
            return y
        yield name, onnxruntime.__version__, call


def jax_calls(layers, activation, x):
    import jax
    import jax.numpy as jnp
    parameters = [(jnp.asarray(weights.T), jnp.asarray(bias)) for weights, bias in layers]

    def forward(h):
        for i, (weights, bias) in enumerate(parameters):
            h = h @ weights + bias
            if i + 1 < len(parameters):
                h = jax.nn.relu(h) if activation == "relu" else jnp.tanh(h)
        return h
    on_device = jax.device_put(x)
    whole = jax.jit(forward)
    yield "jax", jax.__version__, lambda: whole(on_device).block_until_ready()
    if len(x) > CHUNK and len(x) % CHUNK == 0:
        pieces = jax.jit(lambda x: jax.lax.map(forward, x.reshape(-1, CHUNK, x.shape[1])).reshape(len(x), -1))
        yield f"jax-chunks{CHUNK}", jax.__version__, lambda: pieces(on_device).block_until_ready()


def ours(net, n):
    """Best and median ns an evaluation of our program, or None with a word on why."""
    name = f"^f32/[a-z0-9]*/{net}/rows/{n}/{args.threads}/manual_time"
    command = [args.ours, f"--benchmark_filter={name}", "--benchmark_min_time=0.3", "--benchmark_format=json"]
    # numpy asks for huge pages for the peers' arrays; this asks for ours.
    environment = {**os.environ, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    try:
        found = json.loads(done.stdout)["benchmarks"][-1]  # the instruction sets come slowest first
    except (ValueError, LookupError):
        print(f"{' '.join(command)}: no result. {done.stderr.strip()}", file=sys.stderr)
        return None
    return dict(workload=net, peer="lockstep", version=found["name"].split("/")[1], size=n, threads=args.threads,
                unit="ns/evaluation", best=pairing.rounded(found["ns_an_evaluation"]),
                percent_of_peak=pairing.rounded(found["percent_of_peak"]))


def main():
    rows = pairing.Rows(args)
    rows.fma_peak()
    peers = [calls for calls, needs in ((ort_calls, ("onnx", "onnxruntime")), (jax_calls, ("jax",)))
             if pairing.importable(*needs)]
    table = []
    for net, (widths, activation) in NETS.items():
        if not pairing.wanted(args.workloads, net):
            continue
        layers = glorot_layers(widths)
        for n in args.sizes:
            x = np.random.default_rng(n).standard_normal((n, widths[0])).astype(np.float32)
            expected = in_float64(layers, activation, x[:64])
            best = None if rows.ours_missing else ours(net, n)
            if best:
                rows.add(best)
            for calls in peers:
                for name, version, call in calls(layers, activation, x):
                    if not pairing.wanted(args.peers, name):
                        continue
                    error = float(np.max(np.abs(np.asarray(call())[:64] - expected)))
                    fastest, median, repeats = pairing.time_call(call, args.budget)
                    again = None if rows.ours_missing else ours(net, n)
                    if again:
                        rows.add(again)
                    both = [row["best"] for row in (best, again) if row]
                    row = dict(workload=net, peer=name, version=version, size=n, threads=args.threads,
                               unit="ns/evaluation", best=pairing.rounded(fastest / n * 1e9),
                               median=pairing.rounded(median / n * 1e9), repeats=repeats, error=pairing.rounded(error))
                    rows.add(row)
                    table.append((net, n, name, row["best"], min(both) if both else None))
    print(f"\n{'net':26} {'batch':>8} {'peer':16} {'its ns':>10} {'our ns':>10} {'peer/ours':>10}")
    for net, n, name, theirs, mine in table:
        print(f"{net:26} {n:>8} {name:16} {theirs:10.4g} "
              + (f"{mine:10.4g} {theirs / mine:10.2f}" if mine else f"{'-':>10} {'-':>10}"))


if __name__ == "__main__":
    main()
