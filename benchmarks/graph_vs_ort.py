#!/usr/bin/env python3
"""Nets that are no plain stacks against ONNX Runtime, on the same ONNX file in one run.

float32, row-major, one core. ONNX Runtime's outputs are bound to memory once; ours comes from build/bin/graph_bench,
before and after it. The best times are compared.

    python3 benchmarks/graph_vs_ort.py testdata/exported/graph_qlknn_7_11.onnx --sizes 1,16,256,1000,4096
"""
import argparse
import json
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("model")
parser.add_argument("--sizes", default="1,16,256,1000,4096", help="batches, comma separated")
parser.add_argument("--budget", type=float, default=1.0, help="seconds of repeats a row")
parser.add_argument("--ours", default=os.path.join(ROOT, "build", "bin", "graph_bench"), help="our benchmark program")
args = parser.parse_args()
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import onnxruntime


def ours(batch):
    text = subprocess.run([args.ours, args.model, str(batch)], check=True, capture_output=True, text=True).stdout
    return json.loads(text)


options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(args.model, options, providers=["CPUExecutionProvider"])
print(f"{os.path.basename(args.model)}, ONNX Runtime {onnxruntime.__version__}, ns a sample")
print(f"{'batch':>7} {'ONNX Runtime':>13} {'Lockstep':>9} {'ratio':>6} {'of FMA peak':>12}")
for batch in (int(size) for size in args.sizes.split(",")):
    random = np.random.default_rng(1)
    binding = session.io_binding()
    for port in session.get_inputs():
        x = random.normal(size=(batch, port.shape[1])).astype(np.float32)
        binding.bind_cpu_input(port.name, x)
    for port in session.get_outputs():
        binding.bind_output(port.name)
    before = ours(batch)
    session.run_with_iobinding(binding)
    best, begin = float("inf"), time.perf_counter()
    while time.perf_counter() - begin < args.budget:
        start = time.perf_counter()
        session.run_with_iobinding(binding)
        best = min(best, time.perf_counter() - start)
    after = ours(batch)
    mine = min(before, after, key=lambda row: row["ns"])
    theirs = best / batch * 1e9
    print(f"{batch:7} {theirs:13.1f} {mine['ns']:9.1f} {mine['ns'] / theirs:6.2f} {mine['share_of_peak']:12.0%}")
    sys.stdout.flush()
