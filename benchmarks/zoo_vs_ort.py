#!/usr/bin/env python3
"""The nets that surrogates are made of (zoo_nets.py), ours against ONNX Runtime on the same ONNX files in one run.

Row-major samples, one core. ONNX Runtime is called from Python, its outputs bound to memory once; ours is
build/bin/graph_bench, from C++, before it and after. The best times are compared.

    taskset -c 1 python3 benchmarks/zoo_vs_ort.py --nets SwiGLU,ensemble --sizes 1,1000
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--nets", default="", help="parts of names, comma separated (default all)")
parser.add_argument("--sizes", default="1,32,1000,65536", help="batches, comma separated")
parser.add_argument("--seconds", type=float, default=0.4, help="of repeats, each time a program is timed")
parser.add_argument("--ours", default=os.path.join(ROOT, "build", "bin", "graph_bench"), help="our benchmark program")
parser.add_argument("--lock", default="", help="a file to hold locked while a row is timed, shared with other timings")
parser.add_argument("--folder", default="", help="keep the ONNX files there")
parser.add_argument("--without-peer", action="store_true", help="ours only")
args = parser.parse_args()
os.environ["OMP_NUM_THREADS"] = "1"

import fcntl

import numpy as np
import onnxruntime
import zoo_nets


def ours(path, precision, batch):
    command = [args.ours, path, "--precision", precision, "--seconds", str(args.seconds), str(batch)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def theirs(path, batch):
    """Nanoseconds a sample."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    random, binding = np.random.default_rng(1), session.io_binding()
    for port in session.get_inputs():
        x = random.normal(size=(batch, port.shape[1]))
        binding.bind_cpu_input(port.name, x.astype(np.float32 if port.type == "tensor(float)" else np.float64))
    for port in session.get_outputs():
        binding.bind_output(port.name)
    session.run_with_iobinding(binding)
    best, begin = float("inf"), time.perf_counter()
    while time.perf_counter() - begin < args.seconds:
        start = time.perf_counter()
        session.run_with_iobinding(binding)
        best = min(best, time.perf_counter() - start)
    return best / batch * 1e9


def row(path, precision, batch):
    before = ours(path, precision, batch)
    peer = float("nan") if args.without_peer else theirs(path, batch)
    after = ours(path, precision, batch)
    mine = min(before, after, key=lambda each: each["ns"])
    return f"{peer:,.1f} | {mine['ns']:,.1f} | {peer / mine['ns']:.2f} | {mine['share_of_peak']:.0%} |"


with tempfile.TemporaryDirectory() as temporary:
    folder = args.folder or temporary
    print(f"| net | batch | ONNX Runtime {onnxruntime.__version__}, ns a sample | Lockstep | ratio | of the FMA peak |")
    print("|---|---|---|---|---|---|")
    for name, (_, dtype) in zoo_nets.NETS.items():
        if args.nets and not any(part in name for part in args.nets.split(",")):
            continue
        path = os.path.join(folder, name.replace(" ", "_").replace(",", "") + ".onnx")
        zoo_nets.save(name, path)
        for batch in map(int, args.sizes.split(",")):
            with open(args.lock or os.devnull, "a") as lock:
                if args.lock:
                    fcntl.flock(lock, fcntl.LOCK_EX)
                text = row(path, "f32" if dtype == np.float32 else "f64", batch)
            print(f"| {name} | {batch:,} | {text}")
            sys.stdout.flush()
